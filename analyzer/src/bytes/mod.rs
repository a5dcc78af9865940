//! The bytes of files: how they are asked for, held to bounds and kept by the page.

pub(crate) mod bounded_file;
pub mod eviction;
pub mod file;
pub mod name;
pub(crate) mod page;
