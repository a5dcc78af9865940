//! Records in, attributions to data objects and rolling totals out.
//!
//! You give an [`analyzer::Analyzer`] records in time order, and a [`worker::Worker`] the bytes of
//! the files that are mapped, through the small trait [`file::FileSource`]. You get questions to
//! carry from the one to the other, and snapshots of the totals. The analyzer itself does no I/O,
//! reads no clock, has no thread and no unsafe code; it never parses debug information and never
//! waits: a sample whose code is not known yet is parked as `pending` until a worker answered.
//!
//! It is not for collecting samples: see `dataspace-collector`.
//!
//! ```
//! use dataspace_analyzer::analyzer::{Analyzer, Config, Unobserved};
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

mod address_path;
mod agreement;
pub mod analyzer;
mod attribution;
mod bounded_file;
pub mod call_site;
mod caller;
mod cgroup_table;
mod choice;
mod code_image;
pub mod code_names;
mod code_place;
mod containment;
mod crossing;
pub mod data_symbol;
mod dataflow;
pub mod descent;
pub mod descriptor;
pub mod dwarf;
pub mod elf;
pub mod entry_name;
pub mod file;
mod flow_cache;
mod function_table;
pub mod index;
mod index_call;
mod index_flow;
pub mod layout;
pub mod limit;
mod linkage;
mod made_code;
mod name_table;
pub mod named_code;
mod noreturn;
mod outline;
mod packing;
mod page;
mod pointed;
pub mod process;
mod recent;
mod relocation;
pub mod report;
mod resumption;
mod search;
pub mod shedding;
pub mod site;
mod site_table;
pub mod static_data;
mod sums;
mod symbol_name;
pub mod thread_access;
pub mod thread_block;
mod thread_storage;
mod thunk;
mod totals;
mod type_layout;
mod type_path;
mod undescribed;
mod vote;
mod voted_object;
pub mod worker;
pub mod x86_64;

#[cfg(test)]
#[path = "../tests/support/program.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "the tests of the whole crate use the rest")]
mod program;
