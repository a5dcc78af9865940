//! The table of Rust's `HashMap`: hashbrown, as it is in Rust 1.95.

/// The table. Its values lie before a pointer to bytes, and have the type of its parameter; control bytes lie
/// from the pointer on. Crates have copies of it.
pub(crate) const RAW_TABLE: &str = "RawTable";

/// Control bytes that are compared at once: a vector of SSE2.
pub(crate) const GROUP_BYTES: u32 = 16;
