//! The `dataspace` binary.
fn main() {}
