//! The reader thread: round after round over the rings, until the targets have ended.

use crate::access::command::Command;
use crate::attach::counting::{self, OpenGroup};
use crate::attach::rings::{CpuOutputs, Rings};
use crate::attach::{OpenEvent, OpenSideBand};
use crate::channel::batch::{BatchSender, Slots};
use crate::cost::lives::Lives;
use crate::event::EventPlan;
use crate::event::attr::{Binding, KernelFeatures};
use crate::event::counted::CountPlan;
use crate::live::counts::GroupSums;
use crate::live::cpu_watch::CpuWatch;
use crate::live::drain::Drain;
use crate::live::governing::Governing;
use crate::live::group_watch::{GroupChange, GroupWatch};
use crate::live::notices::Told;
use crate::live::parts::{Heard, MAX_BATCHES_BEHIND, Outcome, Parts, Shared};
use crate::live::removal::Removal;
use crate::live::variation::Varying;
use crate::lookup::gate::Gate;
use crate::perf_data::write::Writer;
use crate::sys::clock::now_ns;
use crate::sys::{open, pidfd};
use crate::system::procfs::Procfs;
use crate::target::Watched;
use crate::target::membership::CommFilter;
use dataspace_proto::record::Record;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Interval at which the analyzer is told the time, samples or not. Also the longest wait for a ring to
/// fill to its mark.
const TICK_NS: u64 = 100_000_000;
/// Interval at which the counts are told.
const COUNTS_NS: u64 = 1_000_000_000;
/// While the analyzer is behind, rings are looked at so often whether they still have room.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);
/// Other things have to be done too.
const MAX_WAIT: Duration = Duration::from_millis(20);

/// Things that the reader waits for: rings to fill, answers to come, targets to end, a call to stop.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    /// Of the threads that look processes up.
    bell: Option<&'a OwnedFd>,
    pub(super) watched: &'a [Watched],
    shared: &'a Shared,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(
        bell: Option<&'a OwnedFd>,
        watched: &'a [Watched],
        shared: &'a Shared,
    ) -> Self {
        Self { bell, watched, shared }
    }

    /// The call to stop, then the bell, then the rings, then the targets.
    fn poll_fds<'b>(&self, outputs: &'b [Arc<CpuOutputs>]) -> Vec<PollFd<'b>>
    where
        'a: 'b,
    {
        let poll_fd = |fd: &'b OwnedFd| PollFd::new(fd, PollFlags::IN);
        let mut fds = vec![poll_fd(&self.shared.wake)];
        fds.extend(self.bell.map(poll_fd));
        fds.extend(outputs.iter().flat_map(|cpu| [&cpu.samples, &cpu.side_band]).map(poll_fd));
        fds.extend(self.watched.iter().map(|watched| poll_fd(&watched.pidfd)));
        fds
    }
}

/// Reads a session from its first record to its last.
pub(crate) fn run(
    mut parts: Parts,
    sender: BatchSender,
    shared: &Shared,
    child: Option<Command>,
    recorded: Option<(Writer, Heard)>,
) -> Outcome {
    let watched = std::mem::take(&mut parts.watched);
    let bell = parts.gate.bell();
    let watch = Watch::new(bell.as_deref(), &watched, shared);
    let (recorder, heard) = recorded.unzip();
    let mut reader = Reader::new(parts, sender, recorder, heard.unwrap_or_default());
    reader.rounds(&watch);
    reader.finish(&watch, child.as_ref())
}

/// A drain of what was attached, which takes over what that has read already.
fn drain(parts: &mut Parts, recorder: Option<Writer>) -> Drain {
    let n_together = if parts.binding.is_cpu_wide { 1 } else { parts.rings.outputs.len() };
    let mut drain = Drain::new(&parts.plans, parts.features, n_together);
    let Parts { attached, procfs, plans, counted, rings, binding, .. } = parts;
    drain.tally.read(&attached.events);
    drain.ids = std::mem::take(&mut attached.ids);
    drain.suspects = std::mem::take(&mut attached.suspects);
    drain.own_mount = procfs.mount_namespace("self");
    drain.recorder = recorder;
    for record in attached.early.drain(..) {
        drain.early(record);
    }
    if !binding.is_cpu_wide {
        let n_counters = counted.iter().filter(|it| !it.is_refused()).map(|it| it.events.len());
        let cpus = rings.outputs.iter().map(|output| output.cpu);
        let mut lives = Lives::new(plans, cpus, n_counters.sum::<usize>() as u64);
        lives.opened(&attached.events);
        drain.lives = Some(lives);
    }
    drain
}

#[derive(Debug)]
pub(super) struct Reader {
    pub(super) drain: Drain,
    pub(super) rings: Rings,
    pub(super) events: Vec<OpenEvent>,
    pub(super) side_band: Vec<OpenSideBand>,
    pub(super) plans: Vec<EventPlan>,
    /// Groups that are counted beside the samples, where they are open, and the sums.
    pub(super) counted: Vec<CountPlan>,
    pub(super) groups: Vec<OpenGroup>,
    pub(super) counts: GroupSums,
    pub(super) features: KernelFeatures,
    pub(super) binding: Binding,
    pub(super) group: Option<GroupWatch>,
    pub(super) cpu_watch: CpuWatch,
    pub(super) gate: Gate,
    pub(super) procfs: Procfs,
    pub(super) governing: Governing,
    pub(super) varying: Option<Varying>,
    pub(super) sender: BatchSender,
    pub(super) heard: Heard,
    /// Slots of records that were not sent, on their way back.
    pub(super) spare: Slots,
    pub(super) is_confined: bool,
    pub(super) removal: Removal,
    pub(super) told_names: Option<CommFilter>,
    next_tick_ns: u64,
    next_counts_ns: u64,
    pub(super) told: Told,
}

impl Reader {
    fn new(mut parts: Parts, sender: BatchSender, recorder: Option<Writer>, heard: Heard) -> Self {
        let drain = drain(&mut parts, recorder);
        let governing = Governing::new(
            parts.max_overhead,
            parts.keeps_counts,
            &parts.plans,
            parts.calibration,
            [parts.consumer_cpu_ns, parts.reader_cpu_ns],
            now_ns(),
        );
        Self {
            drain,
            rings: parts.rings,
            events: parts.attached.events,
            side_band: parts.attached.side_band,
            plans: parts.plans,
            counts: GroupSums::new(&parts.counted),
            counted: parts.counted,
            groups: parts.attached.groups,
            features: parts.features,
            binding: parts.binding,
            group: parts.group,
            cpu_watch: parts.cpu_watch,
            gate: parts.gate,
            procfs: parts.procfs,
            governing,
            varying: parts.variation.map(|variation| Varying::new(variation, now_ns())),
            sender,
            heard,
            spare: Slots::new(),
            is_confined: parts.is_confined,
            removal: Removal::default(),
            told_names: parts.told_names,
            next_tick_ns: 0,
            next_counts_ns: 0,
            told: Told::default(),
        }
    }

    pub(super) fn push(&mut self, record: Record) {
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
        let mut previous_began_ns = 0;
        self.next_tick_ns = now_ns() + TICK_NS;
        self.next_counts_ns = now_ns() + COUNTS_NS;
        let mut is_over = false;
        while !is_over {
            let outputs = self.rings.outputs.clone();
            is_over = self.rounds_on(&outputs, &mut previous_began_ns, watch);
        }
    }

    /// The same, until there are other rings than those of `outputs`. Whether it is over.
    fn rounds_on(
        &mut self,
        outputs: &[Arc<CpuOutputs>],
        previous_began_ns: &mut u64,
        watch: &Watch<'_>,
    ) -> bool {
        let mut poll_fds = watch.poll_fds(outputs);
        let n_not_targets = poll_fds.len() - watch.watched.len();
        while self.rings.outputs.len() == outputs.len() {
            // The kernel tells once that there is something to read, not that there still is.
            let has_rest = self.drain.read_to_ns.is_some() || self.gate.is_telling();
            wait(&mut poll_fds, if has_rest { 0 } else { self.next_tick_ns });
            self.wait_for_analyzer(watch);
            let began_ns = now_ns();
            self.round();
            self.close_doubled();
            let until_ns = (*previous_began_ns).min(self.drain.read_to_ns.unwrap_or(u64::MAX));
            self.hand_on(until_ns, BatchSender::flush_or_drop_samples);
            self.govern(began_ns, watch);
            self.vary(began_ns, watch);
            if began_ns >= self.next_tick_ns {
                self.tell_removed(watch);
                self.tick();
                self.drain.finish_round(began_ns);
                self.next_tick_ns = began_ns + TICK_NS;
            }
            if began_ns >= self.next_counts_ns {
                self.tell_counts();
                self.look_after_group(watch);
                self.look_after_cpus(watch);
                self.next_counts_ns = began_ns + COUNTS_NS;
            }
            let n_before = poll_fds.len();
            forget_ended(&mut poll_fds, n_not_targets);
            let is_over = poll_fds.len() == n_not_targets && !watch.watched.is_empty();
            if poll_fds.len() < n_before && !is_over {
                self.tell_target(watch);
            }
            let nobody_listens = self.sender.is_closed() && self.drain.recorder.is_none();
            let is_over = is_over || nobody_listens || self.drain.is_recording_over();
            if is_over || watch.shared.stop.load(Ordering::Acquire) {
                return true;
            }
            *previous_began_ns = began_ns;
        }
        false
    }

    /// Leaves records in their rings while the analyzer is behind and they have room: what is on its way
    /// in few slots stays in the caches of both CPUs.
    fn wait_for_analyzer(&mut self, watch: &Watch<'_>) {
        let mut is_behind = self.sender.is_behind(MAX_BATCHES_BEHIND);
        if !is_behind {
            return;
        }
        let end_ns = now_ns() + MAX_WAIT.as_nanos() as u64;
        while is_behind
            && self.rings.have_room()
            && !watch.shared.stop.load(Ordering::Acquire)
            && now_ns() < end_ns
        {
            is_behind = !self.sender.wait_while_behind(MAX_BATCHES_BEHIND, BETWEEN_LOOKS);
        }
    }

    pub(super) fn round(&mut self) {
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

    /// A control group that was removed and is there again is another one to the kernel.
    fn look_after_group(&mut self, watch: &Watch<'_>) {
        let Some(group) = &mut self.group else { return };
        let change = group.check(Instant::now());
        let name = group.name();
        match change {
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

    /// Closes the events of threads that turned out to have inherited their parent's.
    ///
    /// A breakpoint, fault or tracepoint writes the samples of both into one ring, one after the
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
            self.groups.iter_mut().filter(|group| group.tid == tid).for_each(|it| it.fds.clear());
        }
    }

    fn finish(mut self, watch: &Watch<'_>, child: Option<&Command>) -> Outcome {
        disable(&self.events);
        counting::disable(&self.groups);
        // The targets see no more of us from here on, whatever the analyzer takes for the rest.
        self.side_band.clear();
        self.read_all();
        self.close_doubled();
        self.counts.read(&self.groups);
        self.drain.tally.read(&self.events);
        self.hand_on_all(u64::MAX, BatchSender::flush_waiting);
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
}

pub(super) fn disable(events: &[OpenEvent]) {
    for fd in events.iter().filter_map(|open| open.fd.as_ref()) {
        if let Err(errno) = open::disable(fd.as_fd()) {
            tracing::warn!(%errno, "an event could not be disabled");
        }
    }
}

/// Time that a command gets to end after SIGTERM before it is left alone.
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

/// The command's exit status. One that still runs was started for this session and ends with it, as
/// under perf; `None` if it does not take the signal.
fn exit_status(child: &Command, watch: &Watch<'_>) -> Option<ExitStatus> {
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
    child.try_reap().map(ExitStatus::from_raw)
}
