//! Cache lines that threads share, for people and for programs: who does what there, and what would separate them.

mod advice;
pub(crate) mod document;
mod name;
pub(crate) mod row;
pub(crate) mod sheet;
