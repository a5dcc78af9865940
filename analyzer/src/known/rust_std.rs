//! Rust's `core` and `alloc`. All names were seen in Rust 1.95.

/// Type in which `Vec`, `VecDeque` and `String` keep their elements: a pointer to bytes, and the elements' type as a
/// parameter. Crates have copies of it.
pub(crate) const RAW_VEC: &str = "RawVec";

/// Functions that copy a value of their first type parameter from memory.
pub(crate) const READS: [&str; 3] =
    ["core::ptr::read", "core::ptr::read_unaligned", "core::ptr::read_volatile"];

/// The same, to memory.
pub(crate) const WRITES: [&str; 3] =
    ["core::ptr::write", "core::ptr::write_unaligned", "core::ptr::write_volatile"];

/// Tells whether a type is an inner node of a `BTreeMap`, which begins as a leaf does: code that looks for a key
/// takes a leaf for one until it looks at what comes after that.
pub(crate) fn is_inner_tree_node(name: &str) -> bool {
    name.starts_with("alloc::collections::btree::node::InternalNode<")
}
