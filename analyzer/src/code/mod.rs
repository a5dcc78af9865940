//! The code of one load object: where functions begin and end, and what never returns.

pub(crate) mod crossing;
pub(crate) mod image;
pub(crate) mod noreturn;
pub(crate) mod outline;
