//! Code that no compiler made, in a program whose text it replaces, files that are damaged, and samples
//! in both.

pub(crate) mod case;
pub(crate) mod code;
pub(crate) mod file;
pub(crate) mod image;
