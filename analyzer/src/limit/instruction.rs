//! Limits on what is looked at of instructions around an access.

/// Instructions after a load in which masks and shifts of the value are looked for: compilers put
/// them next to it, and other work of the block between.
pub const MAX_BIT_STEPS: usize = 16;

/// Instructions in which a loaded pointer is looked for as the base of an operand.
pub const MAX_ADDRESS_STEPS: usize = 12;

/// Distances of members from a pointer: a number beyond is a fixed address.
pub const MAX_MEMBER_DISPLACEMENT: i64 = 1 << 16;

/// Stores of one instruction that are told apart: `enter` may write 32 words.
pub const MAX_STORES: usize = 4;

/// Instructions further back than any trigger that are looked at for contradictions. Registers that
/// a compiler set further back are seldom still there.
pub const LOOKBACK: u32 = 16;

/// Instructions before a trigger that are looked at for what put its address into a register that it has overwritten
/// itself: nine of ten are found so.
pub const RECOVERY: u32 = 8;
