//! Questions to the history: which samples count, by what they are summed, and the answer.

pub mod answer;
pub mod code_sums;
pub(crate) mod compile;
pub mod error;
pub(crate) mod expression;
pub mod field;
pub(crate) mod grouping;
mod narrowing;
pub(crate) mod newest;
pub mod selection;
pub(crate) mod span;
