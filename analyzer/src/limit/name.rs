//! Limits of looking data up by its name.

/// Steps after a variable's name, and nested bases that a member is looked for in.
pub const MAX_NAMED_STEPS: usize = 32;

/// Names that an error lists.
pub const MAX_NAMES_TOLD: usize = 24;

/// Variables of one name that are told apart, in all load objects of a process.
pub const MAX_NAMED_DATA: usize = 64;

/// Turns that a variable's type is looked for: each looks through some megabytes of debug information.
pub const MAX_NAME_TURNS: usize = 4096;

/// Load objects of a process that a name is looked for in.
pub const MAX_NAMED_OBJECTS: usize = 1024;
