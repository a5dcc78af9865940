//! The state of one analysis: samples are parked, decided and charged; totals are reported.

pub mod analyzer;
pub mod report;
pub mod shedding;
