//! Limits of what is looked at of callers and of called functions.

/// Callers of a function that are shown before its entry. With more than these next to nothing would
/// be ruled out.
pub const MAX_CALLERS: usize = 16;

/// Calls that are looked at for what a function is given, those of callers that pass on what they
/// were given themselves among them.
pub const MAX_CALLER_SITES: usize = 32;

/// Instructions of a function whose values are followed because it calls another one.
pub const MAX_CALLER_INSTRUCTIONS: usize = 1 << 13;

/// Functions that one jumps to another by, each ending with a jump to the next: glibc's `strcoll`
/// takes two.
pub const MAX_DETOUR: usize = 2;

/// Instructions from the one that takes a function's address to the call that it is passed to: those that set the other
/// arguments, and what the compiler moves between.
pub const MAX_PASSED_BEFORE_CALL: usize = 16;

/// Passes over a function's instructions in which the registers that calls may lose are brought to where they are read;
/// more are needed only where loops go round several jumps back.
pub const MAX_LOSS_PASSES: usize = 8;

/// Instructions of a called function that are looked at to see which registers it changes: functions that others are
/// compiled with are small.
pub const MAX_CALLED_INSTRUCTIONS: usize = 2048;

/// Functions that it may go on in: those that call more change all registers anyway.
pub const MAX_CALLED_BY_ONE: usize = 64;

/// Depth of the calls below it that are looked at.
pub const MAX_CALLED_DEPTH: usize = 3;

/// Values that may lead to the address that is called, through joins.
pub const MAX_VALUES_BEHIND_A_CALL: usize = 1024;
