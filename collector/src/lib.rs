//! Ordered memory samples with exact loss counts, from the kernel's rings or from a perf.data file.
//!
//! You give a target (processes, threads or a command) and events, as a
//! [`live::LiveConfig`], or the bytes of a recording; you get [`dataspace_proto::record::Record`]s
//! through a bounded channel: samples, mappings, births and deaths in the order of time, and counts
//! of what the kernel took and of what was lost where. What is lost is counted by the kernel's own
//! figures, never guessed.
//!
//! This crate knows the perf ABI and procfs. It knows nothing of debug information, of x86
//! instructions or of totals. All unsafe code of the project is in its `sys` module.
//!
//! A live session is opened, which may fail for want of privilege and then says what would help,
//! then started; its thread ends with the target:
//!
//! ```no_run
//! use dataspace_collector::live::{Live, LiveConfig};
//! use dataspace_collector::target::TargetSpec;
//! use dataspace_collector::channel::batch;
//!
//! let live = Live::open(LiveConfig::new(TargetSpec::Pids(vec![1234])))?;
//! println!("{} with {:?}", live.description(), live.events());
//! let (sender, receiver) = batch::channel(64, 1024);
//! let running = live.start(sender)?;
//! while let Some(batch) = receiver.receive() {
//!     // …attribute the records…
//!     receiver.recycle(batch);
//! }
//! println!("{:?}", running.join().collected);
//! # Ok::<(), dataspace_collector::error::Error>(())
//! ```
//!
//! Nothing of it needs a kernel to be tested: a ring is two byte slices.
//!
//! ```
//! use dataspace_collector::record::decode::{self, NATIVE, SampleLayout};
//! use dataspace_collector::channel::merge::Merge;
//! use dataspace_collector::record::ring::{Joint, RingReader};
//! use dataspace_proto::event::Machine;
//! use dataspace_proto::record::Record;
//!
//! // Two samples of IP and TIME (bits 0 and 2 of sample_type), the later one first.
//! let layout = SampleLayout {
//!     sample_type: 0b101,
//!     read_format: 0,
//!     branch_sample_type: 0,
//!     user_registers: 0,
//!     interrupt_registers: 0,
//!     is_precise: false,
//!     has_fetch: false,
//!     sample_id_all: true,
//!     endian: NATIVE,
//!     machine: Machine::X86_64,
//! };
//! let mut ring = Vec::new();
//! for (ip, time_ns) in [(0x401010_u64, 20_u64), (0x401000, 10)] {
//!     ring.extend(9_u32.to_ne_bytes()); // PERF_RECORD_SAMPLE
//!     ring.extend(2_u16.to_ne_bytes()); // PERF_RECORD_MISC_USER
//!     ring.extend(24_u16.to_ne_bytes()); // with the header
//!     ring.extend(ip.to_ne_bytes());
//!     ring.extend(time_ns.to_ne_bytes());
//! }
//!
//! let mut joint = Joint::default();
//! let mut reader = RingReader::new(&ring, &[], &mut joint);
//! let mut merge = Merge::default();
//! while let Some(raw) = reader.next()? {
//!     let sample = decode::sample(&layout, raw.misc, raw.payload)?.sample;
//!     merge.add(0, sample.time_ns, 0, Box::new(Record::Sample(sample)));
//! }
//! let mut ips = Vec::new();
//! merge.hand_on_all(|_, record| {
//!     if let Record::Sample(sample) = *record {
//!         ips.push(sample.ip.0);
//!     }
//! });
//! assert_eq!(ips, [0x401000, 0x401010]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod access;
mod attach;
pub mod capability;
pub mod channel;
mod cost;
pub mod error;
pub mod event;
pub mod live;
mod lookup;
pub mod measurement;
pub mod perf_data;
pub mod quota;
pub mod record;
mod sys;
pub mod system;
pub mod target;
