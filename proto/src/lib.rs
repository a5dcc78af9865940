//! Types that cross a boundary in `dataspace`: records on their way from the collector to the
//! analyzer, and snapshots on their way from the analyzer to a person or a program.
//!
//! It holds messages only. It knows nothing of I/O, of threads, of the kernel or of debug information.

#[macro_use]
mod named;

pub mod accounting;
pub mod address;
pub mod api;
pub mod broker;
pub mod event;
pub mod event_count;
pub mod governance;
pub mod measure;
pub mod memory;
pub mod object_detail;
pub mod query;
pub mod reason;
pub mod record;
pub mod register;
pub mod sample_line;
pub mod snapshot;
pub mod stack;
pub mod view;
pub mod window;
pub mod worker;
