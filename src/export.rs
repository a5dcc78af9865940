//! Totals in the formats of other tools: pprof's profiles, folded stacks for flame graphs, CSV.

pub(crate) mod csv;
pub(crate) mod folded;
pub(crate) mod pprof;
mod stack;
