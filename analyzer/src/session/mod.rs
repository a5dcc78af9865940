//! The state of one analysis: samples are parked, decided and charged; totals are reported.

pub mod analyzer;
pub(crate) mod charge_table;
pub mod eviction;
mod keeping;
pub(crate) mod parking;
pub mod report;
pub(crate) mod undescribed;
