//! Code that no compiler made, in a program whose text it replaces, and samples in it.

pub(crate) mod case;
pub(crate) mod code;
pub(crate) mod image;
