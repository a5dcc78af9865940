//! Opens a session's events on the threads of its targets.

pub(crate) mod births;
pub(crate) mod counting;
pub(crate) mod coverage;
pub(crate) mod feature;
pub(crate) mod mark;
pub(crate) mod opening;
pub(crate) mod refusal;
pub(crate) mod rings;

use crate::access::{self, EventPlace};
use crate::attach::births::Births;
use crate::attach::counting::OpenGroup;
use crate::attach::opening::{Opened, open_planned};
use crate::attach::refusal::{Request, Scope};
use crate::attach::rings::{CpuOutputs, Rings};
use crate::error::Error;
use crate::event::EventPlan;
use crate::event::attr::{self, Binding, KernelFeatures};
use crate::event::counted::CountPlan;
use crate::record::ring::{Joint, RingReader};
use crate::record::side_band::{self, SideBand};
use crate::sys::clock::now_ns;
use crate::sys::open;
use crate::system::procfs::Procfs;
use crate::target::Watched;
use dataspace_proto::event::EventIdx;
use dataspace_proto::record::Record;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::collections::HashSet;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// A process whose threads are born faster than we can look: beyond this the rest is left to
/// inheritance, and a warning tells.
const MAX_PASSES: usize = 1_000;

/// Reading `/proc/PID/task` stops short, or skips threads, whenever the thread it has come to ends
/// meanwhile (`proc_task_readdir()` in Linux `fs/proc/base.c`). Two equal lists are complete; where
/// threads come and go, so many lists in a row without a new one are.
const QUIET_PASSES: usize = 20;

/// Processes that are born of processes born while their parents are opened: so many times they are
/// looked for.
const MAX_GENERATIONS: usize = 20;

/// Gives the short-lived threads that cut the last list short the time to end.
const BETWEEN_PASSES: Duration = Duration::from_millis(1);

/// The thread of an event that counts on a whole CPU.
pub(crate) const NO_TASK: i32 = -1;

/// The CPU of an event that counts its thread wherever that runs.
const ANY_CPU: i32 = -1;

/// One sampled event on one CPU, of one thread or of all.
#[derive(Debug)]
pub(crate) struct OpenEvent {
    /// `None` once it was found to double an inherited one. Its samples and counts are then as if
    /// they had never been.
    pub(crate) fd: Option<OwnedFd>,
    /// The event that leads its group: kept open, not read.
    pub(crate) leader: Option<OwnedFd>,
    pub(crate) event: EventIdx,
    /// −1 where it counts all of a CPU's tasks, or those of a control group.
    pub(crate) pid: i32,
    pub(crate) tid: i32,
}

/// An event that tells of mappings, names, births and deaths: kept open, not read.
#[derive(Debug)]
pub(crate) struct OpenSideBand {
    pub(crate) fd: OwnedFd,
    /// −1 where it is of a whole CPU.
    pub(crate) pid: i32,
    pub(crate) cpu: i32,
}

/// Descriptors of events that may be open for somebody who may see less than we: his target makes threads, and the process
/// has no more than so many for all its sessions.
const MAX_CONFINED_EVENTS: usize = 4_096;

/// All that is open.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    /// By thread, then event, then CPU.
    pub(crate) events: Vec<OpenEvent>,
    /// Ids as they stand in samples, with the index in `events`; sorted.
    pub(crate) ids: Vec<(u64, u32)>,
    pub(crate) side_band: Vec<OpenSideBand>,
    /// Groups that are counted beside the samples.
    pub(crate) groups: Vec<OpenGroup>,
    /// Threads that turned up late: their events may double inherited ones.
    pub(crate) suspects: HashSet<i32>,
    /// Content of the side-band rings while we were still opening.
    pub(crate) early: Vec<Record>,
    pub(crate) warnings: Vec<String>,
    /// CPUs that were found off line.
    pub(crate) offline: Vec<i32>,
}

/// Opens events: thread by thread, or on whole CPUs.
#[derive(Debug)]
pub(crate) struct Attacher<'a> {
    pub(crate) procfs: &'a Procfs,
    pub(crate) plans: &'a mut [EventPlan],
    pub(crate) rings: &'a mut Rings,
    pub(crate) binding: Binding,
    pub(crate) features: KernelFeatures,
    /// The CPUs that side-band events are opened on, if not on all: those on others are open already,
    /// and stay.
    side_band_cpus: Option<&'a [i32]>,
    /// See [`Self::confined`].
    is_confined: bool,
    /// See [`Self::counting`].
    counted: &'a mut [CountPlan],
    /// Whole CPUs are sampled, and single threads counted.
    only_counts: bool,
    attached: Attached,
    births: Births,
    joint: Joint,
}

impl<'a> Attacher<'a> {
    pub(crate) fn new(
        procfs: &'a Procfs,
        plans: &'a mut [EventPlan],
        rings: &'a mut Rings,
        binding: Binding,
        features: KernelFeatures,
    ) -> Self {
        let (attached, births, joint) = Default::default();
        Self {
            procfs,
            plans,
            rings,
            binding,
            features,
            side_band_cpus: None,
            is_confined: false,
            counted: &mut [],
            only_counts: false,
            attached,
            births,
            joint,
        }
    }

    /// An attacher for somebody who may see less than we, if it `is_confined`: it opens so many events only, and nothing
    /// that is not of the target.
    pub(crate) fn confined(self, is_confined: bool) -> Self {
        Self { is_confined, ..self }
    }

    /// Tells whether there is no room for another thread; then a warning tells.
    fn is_full(&mut self, pid: i32) -> bool {
        let n_counting: usize = self.attached.groups.iter().map(|group| group.fds.len()).sum();
        let n_open = self.attached.events.len() + self.attached.side_band.len() + n_counting;
        let n_each = self.rings.outputs.len() * (self.plans.len() + 1) + self.n_counters();
        if !self.is_confined || n_open + n_each <= MAX_CONFINED_EVENTS {
            return false;
        }
        let warning = format!(
            "process {pid} and those before have more threads than {MAX_CONFINED_EVENTS} events are enough \
             for: the others are not seen"
        );
        if self.attached.warnings.last() != Some(&warning) {
            self.attached.warnings.push(warning);
        }
        true
    }

    /// An attacher that opens sampled events beside side-band events that are open, and the latter
    /// only on `cpus`.
    pub(crate) fn with_side_band_on(self, cpus: &'a [i32]) -> Self {
        Self { side_band_cpus: Some(cpus), ..self }
    }

    /// Tells whether side-band events are to be opened on `cpu`.
    fn has_side_band_on(&self, cpu: i32) -> bool {
        self.side_band_cpus.is_none_or(|cpus| cpus.contains(&cpu))
    }

    /// Opens events on every CPU, for all tasks or for those of `group`.
    pub(crate) fn cpus(&mut self, group: Option<&Path>) -> Result<(), Error> {
        let place = |cpu| EventPlace::of_cpu(cpu, group);
        // What happens to a mapping is told from before the first sample on.
        for cpu_idx in 0..self.rings.outputs.len() {
            self.side_band(place(self.rings.outputs[cpu_idx].cpu), NO_TASK, cpu_idx)?;
        }
        for event_idx in 0..self.plans.len() {
            for cpu_idx in 0..self.rings.outputs.len() {
                let place = place(self.rings.outputs[cpu_idx].cpu);
                self.sampled(place, (NO_TASK, NO_TASK), event_idx, cpu_idx)?;
            }
        }
        Ok(())
    }

    /// Opens events on every thread of each of `watched`, or only on the one that is asked for.
    pub(crate) fn tasks(&mut self, watched: &[Watched]) -> Result<(), Error> {
        watched.iter().try_for_each(|watched| self.process(watched.pid, watched.tid))
    }

    /// Opens events on every thread of these processes, and of those that are born of them meanwhile.
    ///
    /// One that refuses does not keep the others from being opened; the first error is given.
    pub(crate) fn processes(&mut self, mut pids: Vec<i32>) -> Result<(), Error> {
        let (mut seen, mut result) = (HashSet::new(), Ok(()));
        for _ in 0..MAX_GENERATIONS {
            for &pid in &pids {
                if seen.insert(pid)
                    && let Err(error) = self.process(pid, None)
                {
                    self.attached.warnings.push(format!("process {pid} is not seen: {error}"));
                    result = result.and(Err(error));
                }
            }
            self.read_side_band();
            let births = self.attached.early.iter().filter_map(|record| match record {
                Record::Fork(fork) if seen.contains(&fork.parent_pid) => Some(fork.pid),
                _ => None,
            });
            pids = births.filter(|pid| !seen.contains(pid)).collect();
            if pids.is_empty() {
                break;
            }
        }
        result
    }

    /// Opens events on every thread of process `pid`; sampled ones only on `only`, if given.
    ///
    /// A process that is gone, or goes meanwhile, is no error: the caller sees that it has ended.
    pub(crate) fn process(&mut self, pid: i32, only: Option<i32>) -> Result<(), Error> {
        let mut n_quiet = 0;
        let mut previous = Vec::new();
        for pass in 0..MAX_PASSES {
            self.read_side_band();
            self.births.settle();
            let tids = self.procfs.tasks(pid).unwrap_or_default();
            let found_any = self.new_threads(pid, &tids, only, pass > 0)?;
            n_quiet = if found_any { 0 } else { n_quiet + 1 };
            if n_quiet > 0 && (tids == previous || n_quiet >= QUIET_PASSES) {
                return Ok(());
            }
            if pass > 0 {
                thread::sleep(BETWEEN_PASSES);
            }
            previous = tids;
        }
        self.attached.warnings.push(format!(
            "process {pid} starts threads faster than they can be found: {} were opened, some of \
             the others may not be seen",
            self.births.n_opened()
        ));
        Ok(())
    }

    /// Opens events on those of `tids` that are not counted yet. Whether there were any.
    fn new_threads(
        &mut self,
        pid: i32,
        tids: &[i32],
        only: Option<i32>,
        is_late: bool,
    ) -> Result<bool, Error> {
        let mut found_any = false;
        for &tid in tids {
            if self.births.is_counted(tid) {
                continue;
            }
            found_any = true;
            let is_sampled = only.is_none_or(|only| only == tid);
            if self.thread(pid, tid, is_sampled)? && is_late && self.binding.inherit {
                self.attached.suspects.insert(tid);
            }
        }
        Ok(found_any)
    }

    /// Opens events on one thread. Whether it was there.
    pub(crate) fn thread(&mut self, pid: i32, tid: i32, is_sampled: bool) -> Result<bool, Error> {
        // Also for one that is gone: it need not be tried again.
        self.births.opened(tid, u64::MAX / 2);
        if self.is_full(pid) {
            return Ok(false);
        }
        let n_cpus = self.rings.outputs.len();
        let place = |this: &Self, cpu_idx: usize| EventPlace::Task {
            tid,
            cpu: this.rings.outputs[cpu_idx].cpu,
        };
        if is_sampled && !self.groups(EventPlace::Task { tid, cpu: ANY_CPU }, |_| true) {
            return Ok(false);
        }
        if self.only_counts {
            self.births.opened(tid, now_ns());
            return Ok(true);
        }
        if is_sampled {
            for event_idx in 0..self.plans.len() {
                for cpu_idx in 0..n_cpus {
                    if !self.sampled(place(self, cpu_idx), (pid, tid), event_idx, cpu_idx)? {
                        return Ok(false);
                    }
                }
            }
        }
        // After the sampled events: a birth that is told of has inherited them (`births`).
        for cpu_idx in 0..n_cpus {
            if !self.side_band(place(self, cpu_idx), pid, cpu_idx)? {
                return Ok(false);
            }
        }
        self.births.opened(tid, now_ns());
        Ok(true)
    }

    /// Opens the event that tells of mappings, names, births and deaths. Whether its task is there.
    fn side_band(
        &mut self,
        place: EventPlace<'_>,
        pid: i32,
        cpu_idx: usize,
    ) -> Result<bool, Error> {
        let cpu = self.rings.outputs[cpu_idx].cpu;
        if !self.has_side_band_on(cpu) {
            return Ok(true);
        }
        let inherit = matches!(place, EventPlace::Task { .. });
        match access::event(&attr::side_band(self.features, inherit), place) {
            Ok(fd) => {
                set_output(&fd, &self.rings.outputs[cpu_idx].side_band)?;
                self.attached.side_band.push(OpenSideBand { fd, pid, cpu });
                Ok(true)
            }
            Err(Errno::SRCH) => Ok(false),
            Err(Errno::NODEV) if self.is_off(place, cpu) => Ok(false),
            Err(errno) => {
                let request = Request::new("its side-band", pid, place.tid(), self.procfs);
                Err(request.on(Scope::of(place)).error(errno))
            }
        }
    }

    fn sampled(
        &mut self,
        place: EventPlace<'_>,
        (pid, tid): (i32, i32),
        event_idx: usize,
        cpu_idx: usize,
    ) -> Result<bool, Error> {
        if !self.plans[event_idx].is_on(self.rings.outputs[cpu_idx].cpu) {
            return Ok(true);
        }
        let Opened { event: fd, leader } = match self.open_planned(place, event_idx) {
            Ok(opened) => opened,
            Err(Errno::SRCH) => return Ok(false),
            Err(Errno::NODEV) if self.is_off(place, self.rings.outputs[cpu_idx].cpu) => {
                return Ok(false);
            }
            Err(errno) => {
                let plan = &self.plans[event_idx];
                let request = Request::planned(plan, pid, tid, self.procfs);
                return Err(request.on(Scope::of(place)).error(errno));
            }
        };
        set_output(&fd, &self.rings.outputs[cpu_idx].samples)?;
        let id = open::id(fd.as_fd()).map_err(|errno| Error::System { call: "ID", errno })?;
        // More than 2^32 descriptors cannot be open, nor 2^16 events be asked for in one line.
        self.attached.ids.push((id, self.attached.events.len() as u32));
        let event = EventIdx(event_idx as u16);
        self.attached.events.push(OpenEvent { fd: Some(fd), leader, event, pid, tid });
        Ok(true)
    }

    /// Tells whether there is nothing to count because the CPU went off line: not even this can be opened.
    fn is_off(&mut self, place: EventPlace<'_>, cpu: i32) -> bool {
        let attr = attr::side_band(KernelFeatures::default(), false);
        let is_whole = !matches!(place, EventPlace::Task { .. });
        let is_off = is_whole && matches!(access::event(&attr, place), Err(Errno::NODEV));
        if is_off && !self.attached.offline.contains(&cpu) {
            self.attached.offline.push(cpu);
        }
        is_off
    }

    /// Opens the event; the first time, with less where the kernel refuses all of it.
    fn open_planned(
        &mut self,
        place: EventPlace<'_>,
        event_idx: usize,
    ) -> Result<Opened<OwnedFd>, Errno> {
        open_planned(&mut self.plans[event_idx], self.binding, self.features, place)
    }

    /// Takes what the side-band rings hold: births, for us, and all of it for the session.
    fn read_side_band(&mut self) {
        let layout = attr::layout(&attr::side_band(self.features, true));
        for ring in self.rings.rings.iter_mut().filter(|ring| !ring.carries_samples) {
            let Some((front, back, tail)) = ring.mapped.unread() else { continue };
            let n_unread = front.len() + back.len();
            let mut reader = RingReader::new(front, back, &mut self.joint);
            while let Ok(Some(raw)) = reader.next() {
                match side_band::decode(&layout, &raw) {
                    Some(SideBand::Record(record)) => {
                        if let Record::Fork(fork) = record {
                            self.births.born(fork);
                        }
                        self.attached.early.push(record);
                    }
                    Some(SideBand::Lost(n)) => self.attached.warnings.push(format!(
                        "{n} mappings and births were lost while the target was being attached to"
                    )),
                    _ => {}
                }
            }
            ring.mapped.release(tail + n_unread as u64);
        }
    }

    /// Asks for what the kernel tells of itself, by CPU. Without the privilege there is none: then code
    /// that comes into the kernel has no name, and control groups no path.
    fn machine(&mut self) {
        for output in &self.rings.outputs {
            if self.has_side_band_on(output.cpu) {
                self.attached.side_band.extend(machine_on(output, self.features));
            }
        }
    }

    /// All that was opened.
    pub(crate) fn finish(mut self) -> Attached {
        if !self.is_confined {
            self.machine();
        }
        for cpu in &self.attached.offline {
            self.attached.warnings.push(format!("CPU {cpu} is off line, and left out"));
        }
        self.attached.ids.sort_unstable();
        self.attached
    }
}

/// Side-band event of the kernel on one CPU, if it gives one.
pub(crate) fn machine_on(output: &CpuOutputs, features: KernelFeatures) -> Option<OpenSideBand> {
    let fd = match access::event(&attr::machine_side_band(features), EventPlace::Cpu(output.cpu)) {
        Ok(fd) => fd,
        Err(errno) => {
            tracing::debug!(cpu = output.cpu, %errno, "the kernel does not tell of itself");
            return None;
        }
    };
    set_output(&fd, &output.side_band).ok()?;
    Some(OpenSideBand { fd, pid: NO_TASK, cpu: output.cpu })
}

fn set_output(fd: &OwnedFd, owner: &OwnedFd) -> Result<(), Error> {
    open::set_output(fd.as_fd(), owner.as_fd())
        .map_err(|errno| Error::System { call: "PERF_EVENT_IOC_SET_OUTPUT", errno })
}
