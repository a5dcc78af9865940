//! The reader of a session over one ring in ordinary memory: what a sample costs between ring and analyzer,
//! without a kernel that has to make it.

use crate::attach::OpenEvent;
use crate::attach::rings::Ring;
use crate::channel::batch::BatchSender;
use crate::event::EventSelector;
use crate::event::attr::{self, Binding, KernelFeatures};
use crate::live::drain::Drain;
use crate::live::parts::MAX_BATCHES_BEHIND;
use crate::record::decode::SampleLayout;
use crate::record::ring::HEADER_BYTES;
use crate::sys::mmap::MappedRing;
use crate::system::machine::Machine;
use crate::system::tracefs::Tracefs;
use dataspace_proto::event::EventIdx;
use dataspace_proto::record::{CpuMode, Sample};
use dataspace_proto::register::{Register, Registers};
use dataspace_proto::stack::N_STACK_BYTES;
use perf_event_open_sys::bindings as abi;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// The id in every sample.
const ID: u64 = 4711;

/// A reader and its ring, which [`Self::write`] fills as the kernel would.
#[derive(Debug)]
pub struct SyntheticSession {
    drain: Drain,
    ring: Ring,
    events: Vec<OpenEvent>,
    sender: BatchSender,
    layout: SampleLayout,
    record: Vec<u8>,
}

impl SyntheticSession {
    /// A session of the clock on a ring of `n_pages`, a power of two, that begins at byte `start`, a multiple of 8.
    ///
    /// # Errors
    /// The system's, where there is no memory or no descriptor.
    pub fn new(n_pages: usize, start: u64, sender: BatchSender) -> Result<Self, std::io::Error> {
        let features = KernelFeatures { lost: true, build_id: true, ..KernelFeatures::default() };
        let machine = Machine::read(Path::new("/"));
        let plans = EventSelector::cpu_clock()
            .plan(None, &machine, &Tracefs::new(Path::new("/")))
            .map_err(std::io::Error::other)?;
        let plan = plans.first().ok_or(std::io::ErrorKind::NotFound)?;
        let binding = Binding::default();
        let layout = attr::layout(&attr::sampled(&plan.source, binding, features));
        let mut mapped = MappedRing::in_memory(n_pages).map_err(os_error)?;
        mapped.begin_at(start);
        // Only whether it is there is ever asked.
        let fd = Some(OwnedFd::from(File::open("/dev/null")?));
        let events = vec![OpenEvent { fd, leader: None, event: EventIdx(0), pid: 1, tid: 1 }];
        let mut drain = Drain::new(&plans, features, 1);
        drain.ids = vec![(ID, 0)];
        let ring = Ring { mapped, carries_samples: true };
        Ok(Self { drain, ring, events, sender, layout, record: Vec::new() })
    }

    /// Puts a sample into the ring, laid out as the kernel does (`perf_output_sample()` in Linux
    /// `kernel/events/core.c`). Whether there was room.
    pub fn write(&mut self, sample: &Sample) -> bool {
        self.encode(sample);
        self.ring.mapped.write(&self.record)
    }

    fn encode(&mut self, sample: &Sample) {
        let Self { record, layout, .. } = self;
        record.clear();
        let mode = match sample.mode {
            CpuMode::User => abi::PERF_RECORD_MISC_USER,
            _ => abi::PERF_RECORD_MISC_KERNEL,
        };
        record.extend(abi::PERF_RECORD_SAMPLE.to_ne_bytes());
        record.extend((mode as u16).to_ne_bytes());
        record.extend([0; 2]);
        for word in [ID, sample.ip.0] {
            record.extend(word.to_ne_bytes());
        }
        record.extend(sample.pid.to_ne_bytes());
        record.extend(sample.tid.to_ne_bytes());
        for word in [sample.time_ns, 0, u64::from(sample.cpu.unwrap_or(0))] {
            record.extend(word.to_ne_bytes());
        }
        let one_set = match sample.mode {
            CpuMode::User => &sample.registers,
            _ => &sample.user_registers,
        };
        registers(record, layout.user_registers, one_set);
        record.extend((N_STACK_BYTES as u64).to_ne_bytes());
        record.extend(sample.stack.bytes());
        record.resize(record.len() + N_STACK_BYTES - sample.stack.bytes().len(), 0);
        record.extend((sample.stack.bytes().len() as u64).to_ne_bytes());
        debug_assert!(record.len() > HEADER_BYTES);
        let n_bytes = record.len() as u16;
        record[6..8].copy_from_slice(&n_bytes.to_ne_bytes());
    }

    /// Rounds of the reader until the ring is empty: what it holds goes to the analyzer, waiting where the
    /// channel is full.
    pub fn drain(&mut self) {
        loop {
            while !self.sender.wait_while_behind(MAX_BATCHES_BEHIND, Duration::from_millis(1)) {}
            self.sender.take_slots(self.drain.merge.slots());
            self.drain.begin_round();
            self.drain.ring(0, &mut self.ring, &self.events);
            let until_ns = self.drain.read_to_ns.unwrap_or(u64::MAX);
            let Self { drain: Drain { merge, tally, .. }, events, sender, .. } = self;
            merge.hand_on(until_ns, |source, slot| {
                tally.passed(events.get(source as usize), true);
                sender.push_slot(slot);
                if sender.is_full() {
                    sender.flush_waiting();
                }
            });
            if until_ns == u64::MAX {
                break;
            }
        }
        self.sender.flush_waiting();
    }
}

fn os_error(errno: Errno) -> std::io::Error {
    std::io::Error::from_raw_os_error(errno.raw_os_error())
}

fn registers(record: &mut Vec<u8>, mask: u64, registers: &Registers) {
    record.extend(u64::from(abi::PERF_SAMPLE_REGS_ABI_64).to_ne_bytes());
    let asked = (0..u64::BITS).filter(|bit| mask >> bit & 1 != 0);
    for register in asked.filter_map(Register::from_perf) {
        record.extend(registers.get(register).unwrap_or(0).to_ne_bytes());
    }
}
