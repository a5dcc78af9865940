//! Units of the debug information: which files they are in, how their bytes are read, what is walked over.

pub(crate) mod abbreviation;
pub(crate) mod code_range;
pub(crate) mod entry_walk;
pub(crate) mod package;
pub mod parsed;
pub(crate) mod reader;
pub(crate) mod section;
pub(crate) mod source;
pub(crate) mod split;
pub(crate) mod supplementary;
pub mod tag;
