//! Limits of the totals.

/// Data objects with totals of their own; what comes above is summed under `<Other>`.
pub const MAX_OBJECTS: usize = 1 << 13;

/// Functions whose accesses are told apart, with 100 bytes each; those above have no name in profiles.
pub const MAX_FUNCTIONS: usize = 1 << 13;

/// Pairs of object and function with sums of their own: 8 MB.
pub const MAX_FUNCTION_SUMS: usize = 1 << 16;

/// Sums that wait to be shared out: 4 MB. A second has some hundred.
pub const MAX_CHARGED: usize = 1 << 14;

/// Members of one type that are listed with it.
pub const MAX_LISTED_MEMBERS: usize = 1 << 12;

/// Members of all types together: 11 MB. The kernel's `task_struct` has some 700, with nested ones.
pub const MAX_KEPT_MEMBERS: usize = 1 << 17;

/// Deepest nesting of members that are listed.
pub const MAX_LISTED_DEPTH: u32 = 16;

/// Threads that an object's thread count tells apart.
pub const MAX_THREADS_AN_OBJECT: usize = 256;

/// Scopes (functions) that an object lists.
pub const MAX_SCOPES_AN_OBJECT: usize = 4;
