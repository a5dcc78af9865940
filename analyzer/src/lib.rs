//! Records in, attributions to data objects and rolling totals out.
//!
//! You give an [`session::analyzer::Analyzer`] records in time order, and a [`index::worker::Worker`] the bytes of
//! the files that are mapped, through the small trait [`bytes::file::FileSource`]. You get questions to
//! carry from the one to the other, and snapshots of the totals. The analyzer itself does no I/O,
//! reads no clock, has no thread and no unsafe code; it never parses debug information and never
//! waits: a sample whose code is not known yet is parked as `pending` until a worker answered.
//!
//! It is not for collecting samples: see `dataspace-collector`.
//!
//! ```
//! use dataspace_analyzer::session::analyzer::{Analyzer, Config, Unobserved};
//! use dataspace_proto::record::{Record, Sample};
//! use dataspace_proto::snapshot::{Cost, Target};
//!
//! let mut analyzer = Analyzer::new(Config::default());
//! let sample = Sample { pid: 1, time_ns: 1, period: 1, ..Sample::default() };
//! analyzer.apply(&Record::Sample(sample), &mut Unobserved);
//! let snapshot = analyzer.snapshot(Target::default(), Cost::default(), None);
//! assert_eq!(snapshot.accounting.imbalance(), 0, "every sample is accounted for");
//! assert_eq!(&*snapshot.objects[0].object, "<Total>");
//! ```

pub mod attribution;
pub mod bytes;
pub mod code;
mod dataflow;
pub mod dwarf;
pub mod elf;
pub mod history;
pub mod index;
mod known;
pub mod limit;
pub mod process;
pub mod query;
pub mod session;
pub mod sharing;
pub mod totals;
pub mod types;
pub mod x86_64;

#[cfg(test)]
#[path = "../tests/support/program.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "the tests of the whole crate use the rest")]
mod program;
