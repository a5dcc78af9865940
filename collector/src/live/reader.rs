//! The reader thread: round after round over the rings, until the targets have ended.

use crate::event::EventPlan;
use crate::live::attach::OpenEvent;
use crate::live::clock::now_ns;
use crate::live::drain::Drain;
use crate::live::gate::Gate;
use crate::live::governing::Governing;
use crate::live::group_watch::{GroupChange, GroupWatch};
use crate::live::record::Heard;
use crate::live::removal::Removal;
use crate::live::rings::{CpuOutputs, Rings};
use crate::live::{Outcome, Parts, Permission, Shared};
use crate::procfs::Procfs;
use crate::recorder::Writer;
use crate::sys::attr::{Binding, KernelFeatures};
use crate::sys::spawn::Child;
use crate::sys::{open, pidfd};
use crate::target::Watched;
use dataspace_proto::accounting::Collected;
use dataspace_proto::batch::{BatchSender, Slots};
use dataspace_proto::event::{EventIdx, EventKind, Sampling};
use dataspace_proto::record::Record;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How often the analyzer is told the time, samples or not. Also the longest wait for a ring to
/// fill to its mark.
const TICK_NS: u64 = 100_000_000;
/// How often the counts are told.
const COUNTS_NS: u64 = 1_000_000_000;
/// Reading a descriptor takes about a microsecond, and interrupts the CPU that runs its thread:
/// beyond so many, counts are read only when something was lost, and at the end.
const MAX_READ_EACH_SECOND: usize = 512;
/// CPU time that is enough to tell whether samples stand for it.
const SHORT_LIVES_NS: u64 = 1_000_000_000;

/// What the reader waits for: rings to fill, targets to end, a call to stop.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    owners: Vec<&'a OwnedFd>,
    pub(super) watched: &'a [Watched],
    shared: &'a Shared,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(
        outputs: &'a [CpuOutputs],
        watched: &'a [Watched],
        shared: &'a Shared,
    ) -> Self {
        let owners = outputs.iter().flat_map(|cpu| [&cpu.samples, &cpu.side_band]).collect();
        Self { owners, watched, shared }
    }

    /// The call to stop, then the rings, then the targets.
    fn poll_fds(&self) -> Vec<PollFd<'a>> {
        let poll_fd = |fd: &'a OwnedFd| PollFd::new(fd, PollFlags::IN);
        let mut fds = vec![poll_fd(&self.shared.wake)];
        fds.extend(self.owners.iter().map(|fd| poll_fd(fd)));
        fds.extend(self.watched.iter().map(|watched| poll_fd(&watched.pidfd)));
        fds
    }

    fn n_not_targets(&self) -> usize {
        1 + self.owners.len()
    }
}

/// Reads a session from its first record to its last.
pub(crate) fn run(
    parts: Parts,
    sender: BatchSender,
    shared: &Shared,
    child: Option<Child>,
    recorded: Option<(Writer, Heard)>,
) -> Outcome {
    let outputs = Arc::clone(&parts.rings.outputs);
    let watched = parts.watched;
    let watch = Watch::new(&outputs, &watched, shared);
    let (recorder, heard) = recorded.unzip();
    let Parts { attached, plans, features, binding, .. } = parts;
    let n_together = if binding.is_cpu_wide { 1 } else { outputs.len() };
    let mut drain = Drain::new(&plans, features, n_together);
    drain.tally.read(&attached.events);
    (drain.ids, drain.suspects) = (attached.ids, attached.suspects);
    drain.own_mount = Procfs::new(Path::new("/proc")).mount_namespace("self");
    drain.recorder = recorder;
    for record in attached.early {
        drain.early(record);
    }
    let governing = Governing::new(
        parts.max_overhead,
        parts.keeps_counts,
        &plans,
        parts.costs,
        parts.consumer_cpu_ns,
        now_ns(),
    );
    let mut reader = Reader {
        drain,
        rings: parts.rings,
        events: attached.events,
        side_band: attached.side_band,
        plans,
        features,
        binding,
        group: parts.group,
        gate: parts.gate,
        procfs: parts.procfs,
        governing,
        sender,
        heard: heard.unwrap_or_default(),
        spare: Slots::new(),
        permission: parts.permission,
        removal: Removal::default(),
        next_tick_ns: 0,
        next_counts_ns: 0,
        told_side_band_lost: 0,
        told_corrupt_rings: 0,
        has_told_short_lives: false,
    };
    reader.announce(parts.before, attached.warnings, features.lost);
    reader.rounds(&watch);
    reader.finish(&watch, child.as_ref())
}

#[derive(Debug)]
pub(super) struct Reader {
    pub(super) drain: Drain,
    pub(super) rings: Rings,
    pub(super) events: Vec<OpenEvent>,
    /// Held open.
    pub(super) side_band: Vec<OwnedFd>,
    pub(super) plans: Vec<EventPlan>,
    pub(super) features: KernelFeatures,
    pub(super) binding: Binding,
    pub(super) group: Option<GroupWatch>,
    pub(super) gate: Gate,
    pub(super) procfs: Procfs,
    pub(super) governing: Governing,
    pub(super) sender: BatchSender,
    pub(super) heard: Heard,
    /// Slots of records that were not sent, on their way back.
    pub(super) spare: Slots,
    pub(super) permission: Option<Arc<dyn Permission>>,
    removal: Removal,
    next_tick_ns: u64,
    next_counts_ns: u64,
    told_side_band_lost: u64,
    told_corrupt_rings: u64,
    has_told_short_lives: bool,
}

impl Reader {
    fn announce(&mut self, before: Vec<Record>, warnings: Vec<String>, knows_lost: bool) {
        let machine = self.drain.side_band_layout.machine;
        self.push(Record::Machine(machine));
        for plan in &self.plans {
            self.sender.push(Record::Event(Box::new(plan.event.clone())));
        }
        for warning in self.plans.iter().flat_map(|plan| plan.warnings.clone()).chain(warnings) {
            self.sender.push(Record::Warning(warning.into()));
        }
        if !knows_lost {
            self.sender.push(Record::Warning(
                "this kernel (before 6.0) does not tell how many samples it lost; the last loss \
                 on each CPU may be missing"
                    .into(),
            ));
        }
        let heard = self.heard;
        for record in before.into_iter().filter(|record| heard.includes(record)) {
            self.push(record);
        }
        self.sender.flush_or_drop_samples();
    }

    fn push(&mut self, record: Record) {
        self.sender.push(record);
        if self.sender.is_full() {
            self.sender.flush_or_drop_samples();
        }
    }

    pub(super) fn warn(&mut self, warning: String) {
        self.push(Record::Warning(warning.into()));
    }

    /// Reads until all targets have ended, or we are asked to stop, or nobody listens.
    fn rounds(&mut self, watch: &Watch<'_>) {
        let mut poll_fds = watch.poll_fds();
        let mut previous_began_ns = 0;
        self.next_tick_ns = now_ns() + TICK_NS;
        self.next_counts_ns = now_ns() + COUNTS_NS;
        loop {
            // The kernel tells once that there is something to read, not that there still is.
            let has_rest = self.drain.read_to_ns.is_some();
            wait(&mut poll_fds, if has_rest { 0 } else { self.next_tick_ns });
            let began_ns = now_ns();
            self.round();
            self.close_doubled();
            let until_ns = previous_began_ns.min(self.drain.read_to_ns.unwrap_or(u64::MAX));
            self.hand_on(until_ns, BatchSender::flush_or_drop_samples);
            self.govern(began_ns, watch);
            if began_ns >= self.next_tick_ns {
                self.tell_removed(watch);
                self.tick();
                self.drain.finish_round(began_ns);
                self.next_tick_ns = began_ns + TICK_NS;
            }
            if began_ns >= self.next_counts_ns {
                self.tell_counts();
                self.look_after_group(watch);
                self.next_counts_ns = began_ns + COUNTS_NS;
            }
            forget_ended(&mut poll_fds, watch.n_not_targets());
            let is_over = poll_fds.len() == watch.n_not_targets() && !watch.watched.is_empty();
            let nobody_listens = self.sender.is_closed() && self.drain.recorder.is_none();
            let is_over = is_over || nobody_listens || self.drain.is_recording_over();
            if is_over || watch.shared.stop.load(Ordering::Acquire) {
                return;
            }
            previous_began_ns = began_ns;
        }
    }

    fn round(&mut self) {
        self.sender.take_slots(self.drain.merge.slots());
        self.drain.begin_round();
        for (ring_idx, ring) in self.rings.rings.iter_mut().enumerate() {
            self.drain.ring(ring_idx as u32, ring, &self.events);
        }
    }

    /// Rounds until no ring is left half read: their events are about to go.
    pub(super) fn read_all(&mut self) {
        self.round();
        while self.drain.read_to_ns.is_some() {
            self.round();
        }
    }

    /// The time up to which everything was handed on: what follows is not before it.
    fn tick(&mut self) {
        // A reattaching may have gone further than the round.
        let time_ns = self.drain.merge.handed_on_to_ns();
        self.sender.push(Record::Tick { time_ns });
        self.sender.flush_or_drop_samples();
    }

    /// Says when the kernel took the events away. A tick lies between suspicion and certainty: a
    /// process that is just ending has no events left either, but not for that long.
    fn tell_removed(&mut self, watch: &Watch<'_>) {
        // What counts whole CPUs stays.
        if self.binding.is_cpu_wide {
            return;
        }
        if self.removal.is_open() || std::mem::take(&mut self.drain.saw_leader_exit) {
            for warning in self.removal.check(watch.watched, &self.events) {
                self.warn(warning);
            }
        }
    }

    fn tell_counts(&mut self) {
        let few = self.events.len() <= MAX_READ_EACH_SECOND;
        if few || std::mem::take(&mut self.drain.saw_loss) {
            self.drain.tally.read(&self.events);
        }
        self.tell_collected();
        self.tell_side_band_lost();
        self.tell_short_lives();
    }

    /// A clock begins a whole period with each task that inherits it: tasks that live for less are
    /// never sampled, and their time would be missing in silence.
    fn tell_short_lives(&mut self) {
        if self.has_told_short_lives || self.binding.is_cpu_wide {
            return;
        }
        for (event_idx, plan) in self.plans.iter().enumerate() {
            let is_whole = plan.event.kind == EventKind::Clock && plan.event.includes_kernel;
            let idx = EventIdx(event_idx as u16);
            let (count_ns, sampled_ns) = self.drain.tally.count_and_weights(idx);
            if is_whole && count_ns > SHORT_LIVES_NS && sampled_ns < count_ns / 2 {
                self.has_told_short_lives = true;
                let (count_s, sampled_s) = (count_ns as f64 / 1e9, sampled_ns as f64 / 1e9);
                let warning = format!(
                    "{} counted {count_s:.1} s of CPU time, and its samples stand for \
                     {sampled_s:.1} s: tasks that live for less than a period are never sampled; \
                     --all, --cgroup and --unit sample whole CPUs and see them",
                    plan.event.name
                );
                return self.warn(warning);
            }
        }
    }

    /// Counts go behind the samples that they count, and those have met a full channel or not.
    fn tell_collected(&mut self) {
        self.sender.flush_or_drop_samples();
        let collected = self.collected();
        self.push(Record::Collected(Box::new(collected)));
    }

    fn collected(&self) -> Collected {
        let n_dropped = self.sender.n_dropped_samples();
        let collected = self.drain.tally.collected(n_dropped, self.drain.merge.n_late());
        Collected { governance: self.governance(), ..collected }
    }

    /// A control group that was removed and is there again is another one to the kernel.
    fn look_after_group(&mut self, watch: &Watch<'_>) {
        let Some(group) = &mut self.group else { return };
        let name = group.name();
        match group.check() {
            Some(GroupChange::Gone) => self.warn(format!(
                "control group {name} was removed; when it is there again, it is watched again"
            )),
            Some(GroupChange::Back) => {
                self.side_band.clear();
                self.reattach(watch);
                self.warn(format!("control group {name} is there again, and watched"));
            }
            None => {}
        }
    }

    fn tell_side_band_lost(&mut self) {
        let n_lost = self.drain.n_side_band_lost;
        // Again when it has doubled: a flood is not to become one of warnings.
        if n_lost > self.told_side_band_lost.saturating_mul(2) {
            self.told_side_band_lost = n_lost;
            self.warn(format!(
                "{n_lost} mappings, names or births were lost because a ring was full: some data \
                 objects may stay unknown"
            ));
        }
        let n_corrupt = self.drain.n_corrupt_rings;
        if n_corrupt > self.told_corrupt_rings.saturating_mul(2) {
            self.told_corrupt_rings = n_corrupt;
            self.warn(format!(
                "a ring held a record of impossible size, {n_corrupt} times: what stood behind \
                 it is lost, and counted as one undecodable sample each time"
            ));
        }
    }

    /// Closes the events of threads that turned out to have inherited their parent's.
    ///
    /// A breakpoint, fault or tracepoint writes the samples of both into one ring, one behind the
    /// other, so the double is still in the merge when it is found out, and is dropped there.
    pub(super) fn close_doubled(&mut self) {
        while let Some(tid) = self.drain.doubled.pop() {
            self.drain.suspects.remove(&tid);
            let Some(start) = self.events.iter().position(|open| open.tid == tid) else { continue };
            let n_events = self.events[start..].iter().take_while(|open| open.tid == tid).count();
            let events = &mut self.events[start..start + n_events];
            disable(events);
            for open in events {
                (open.fd, open.leader) = (None, None);
            }
        }
    }

    fn finish(mut self, watch: &Watch<'_>, child: Option<&Child>) -> Outcome {
        disable(&self.events);
        // The targets see no more of us from here on, whatever the analyzer takes for the rest.
        self.side_band.clear();
        self.read_all();
        self.close_doubled();
        self.drain.tally.read(&self.events);
        self.hand_on(u64::MAX, BatchSender::flush_waiting);
        self.drain.finish_recording(now_ns());
        self.tell_side_band_lost();
        self.tell_short_lives();
        for warning in self.drain.undecoded.warnings() {
            self.warn(warning);
        }
        self.tell_imbalance();
        let exit_status = child.and_then(|child| exit_status(child, watch));
        self.tell_end(exit_status);
        // Nothing is younger: all events are off.
        self.sender.push(Record::Tick { time_ns: now_ns() });
        self.sender.flush_waiting();
        let collected = self.collected();
        self.sender.push(Record::Collected(Box::new(collected.clone())));
        self.sender.flush_waiting();
        Outcome { collected, exit_status }
    }

    /// Says how a command ended, if not well: one that dies at its start looks like one that does
    /// nothing.
    fn tell_end(&mut self, status: Option<ExitStatus>) {
        let Some(status) = status.filter(|status| !status.success()) else { return };
        // Our own request to end is no news.
        if status.signal() != Some(rustix::process::Signal::TERM.as_raw()) {
            self.warn(format!("the command ended with {status}"));
        }
    }

    /// Where each event makes a sample, the kernel's two figures have to agree. While a thread of
    /// the target lives they may not: one being cloned escapes the disabling for a moment.
    fn tell_imbalance(&mut self) {
        for event_idx in 0..self.plans.len() {
            let event = &self.plans[event_idx].event;
            let is_changed = self.governing.has_changed();
            if is_changed || event.sampling != Sampling::Period(1) || event.kind == EventKind::Clock
            {
                continue;
            }
            let (n_samples, count) = self.drain.tally.samples_and_count(EventIdx(event_idx as u16));
            let is_sound = n_samples == count || self.drain.tally.n_undecodable != 0;
            let mut fds = self.events.iter().filter_map(|open| open.fd.as_ref());
            if !is_sound && fds.all(pidfd::is_hung_up) {
                let warning = format!(
                    "the kernel counted {count} events of {} and made {n_samples} samples of them",
                    event.name
                );
                self.warn(warning);
            }
        }
    }
}

pub(super) fn disable(events: &[OpenEvent]) {
    for fd in events.iter().filter_map(|open| open.fd.as_ref()) {
        if let Err(errno) = open::disable(fd.as_fd()) {
            tracing::warn!(%errno, "an event could not be disabled");
        }
    }
}

/// How long a command gets to end after SIGTERM before it is left alone.
const TERMINATION_NS: u64 = 1_000_000_000;

/// Waits until there is something to do, or until `deadline_ns`. A signal ends the wait too.
fn wait(fds: &mut [PollFd<'_>], deadline_ns: u64) {
    let left_ns = deadline_ns.saturating_sub(now_ns());
    let timeout = Timespec {
        tv_sec: (left_ns / 1_000_000_000) as i64,
        tv_nsec: (left_ns % 1_000_000_000) as i64,
    };
    if let Err(errno) = poll(fds, Some(&timeout)) {
        tracing::debug!(%errno, "the wait was cut short");
        for fd in fds {
            fd.clear_revents();
        }
    }
}

/// Takes the targets that have ended out of the wait.
fn forget_ended(fds: &mut Vec<PollFd<'_>>, n_not_targets: usize) {
    for fd_idx in (n_not_targets..fds.len()).rev() {
        if !fds[fd_idx].revents().is_empty() {
            fds.swap_remove(fd_idx);
        }
    }
}

/// How the command ended. One that still runs was started for this session and ends with it, as
/// under perf; `None` if it does not take the signal.
fn exit_status(child: &Child, watch: &Watch<'_>) -> Option<ExitStatus> {
    let has_ended = |watched: &Watched| pidfd::has_ended(&watched.pidfd);
    if !watch.watched.iter().all(has_ended) {
        child.terminate();
        let mut fds: Vec<PollFd<'_>> = watch
            .watched
            .iter()
            .map(|watched| PollFd::new(&watched.pidfd, PollFlags::IN))
            .collect();
        wait(&mut fds, now_ns() + TERMINATION_NS);
    }
    child.try_reap().map(|status| ExitStatus::from_raw(status.as_raw()))
}
