//! The types that cross a boundary in `dataspace`: records on their way from the collector to the
//! analyzer, and snapshots on their way from the analyzer to a person or a program.
//!
//! This crate knows nothing of I/O, of the kernel or of debug information.
//!
//! ```
//! use dataspace_proto::batch;
//! use dataspace_proto::record::Record;
//!
//! let (mut sender, receiver) = batch::channel(4, 16);
//! sender.push(Record::Tick { time_ns: 1_000 });
//! sender.flush_waiting();
//! drop(sender);
//! let batch = receiver.receive().expect("one batch was sent");
//! assert!(matches!(batch[0], Record::Tick { time_ns: 1_000 }));
//! receiver.recycle(batch);
//! assert!(receiver.receive().is_none(), "the sender is gone");
//! ```

pub mod accounting;
pub mod address;
pub mod api;
pub mod batch;
pub mod counts;
pub mod event;
pub mod governance;
pub mod memory;
pub mod object_detail;
pub mod places;
pub mod reason;
pub mod record;
pub mod register;
pub mod sample_line;
pub mod snapshot;
pub mod stack;
pub mod window;
