//! Annotated code: a function's instructions and source lines, the samples that waited at each, and the data objects beside
//! them. The same rows are printed and drawn.

pub(crate) mod csv;
pub(crate) mod cutoff;
pub(crate) mod document;
pub(crate) mod model;
pub(crate) mod row;
pub(crate) mod subject;
pub(crate) mod text;
