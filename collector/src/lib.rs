//! Ordered memory samples with exact loss counts, from the kernel's rings or from a perf.data file.
//!
//! This crate knows the perf ABI and procfs. It knows nothing of debug information, of x86
//! instructions or of totals.

pub mod capability;
pub mod data_source;
pub mod decode;
pub mod error;
pub mod event;
pub mod live;
pub mod merge;
pub mod period;
pub mod procfs;
pub mod recording;
pub mod ring;
pub mod side_band;
mod sys;
pub mod target;
pub mod tracefs;
