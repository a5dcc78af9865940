//! Records of the reader besides samples: counts, losses, and what a person should know.

use crate::live::reader::{Reader, Watch};
use crate::sys::pidfd;
use crate::target::membership::listed;
use dataspace_proto::accounting::Collected;
use dataspace_proto::event::{EventIdx, EventKind, Sampling};
use dataspace_proto::record::Record;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Reading a descriptor takes about a microsecond, and interrupts the CPU that runs its thread:
/// beyond so many, counts are read only when something was lost, and at the end.
const MAX_READ_EACH_SECOND: usize = 512;
/// CPU time that is enough to tell whether samples stand for it.
const SHORT_LIVES_NS: u64 = 1_000_000_000;

/// Figures that were told already.
#[derive(Debug, Default)]
pub(super) struct Told {
    n_side_band_lost: u64,
    n_corrupt_rings: u64,
    n_untold: u64,
    has_short_lives: bool,
}

/// Tells whether a warning is due: the first one, and again when `n` has doubled since it was `told`, for a
/// flood is not to become one of warnings.
const fn has_doubled(n: u64, told: &mut u64) -> bool {
    let is_due = n > told.saturating_mul(2);
    if is_due {
        *told = n;
    }
    is_due
}

impl Reader {
    /// Says when the kernel took the events away. A tick lies between suspicion and certainty: a
    /// process that is just ending has no events left either, but not for that long.
    pub(super) fn tell_removed(&mut self, watch: &Watch<'_>) {
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

    pub(super) fn tell_counts(&mut self) {
        self.counts.read_some(&self.groups);
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
    pub(super) fn tell_short_lives(&mut self) {
        if self.told.has_short_lives || self.binding.is_cpu_wide {
            return;
        }
        for (event_idx, plan) in self.plans.iter().enumerate() {
            let is_whole = plan.event.kind == EventKind::Clock && plan.event.includes_kernel;
            let idx = EventIdx(event_idx as u16);
            let Some((count_ns, sampled_ns)) = self.drain.tally.count_and_weights(idx) else {
                continue;
            };
            if is_whole && count_ns > SHORT_LIVES_NS && sampled_ns < count_ns / 2 {
                self.told.has_short_lives = true;
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

    /// Counts go after the samples that they count, and those have met a full channel or not.
    fn tell_collected(&mut self) {
        self.sender.flush_or_drop_samples();
        let collected = self.collected();
        self.push(Record::Collected(Box::new(collected)));
    }

    pub(super) fn collected(&self) -> Collected {
        let n_dropped = self.sender.n_dropped_samples();
        let collected = self.drain.tally.collected(n_dropped, self.drain.merge.n_late());
        let mut counts = self.counts.told(&self.counted, self.counts_cpus());
        let suspects = &self.drain.suspects;
        if self.groups.iter().any(|it| !it.fds.is_empty() && suspects.contains(&it.tid)) {
            let why = "threads that were born while this was opened may count twice";
            for count in &mut counts {
                count.lacks.get_or_insert_with(|| why.to_owned());
            }
        }
        Collected { governance: self.governance(), counts, ..collected }
    }

    pub(super) fn tell_side_band_lost(&mut self) {
        let n_lost = self.drain.n_side_band_lost;
        if has_doubled(n_lost, &mut self.told.n_side_band_lost) {
            self.warn(format!(
                "{n_lost} mappings, names or births were lost because a ring was full: some data \
                 objects may stay unknown"
            ));
        }
        let n_corrupt = self.drain.n_corrupt_rings;
        if has_doubled(n_corrupt, &mut self.told.n_corrupt_rings) {
            self.warn(format!(
                "a ring held a record of impossible size, {n_corrupt} times: what stood behind \
                 it is lost, and counted as one undecodable sample each time"
            ));
        }
        let n_untold = self.gate.n_untold();
        if has_doubled(n_untold, &mut self.told.n_untold) {
            self.warn(format!(
                "{n_untold} samples could not wait until their processes were looked up in /proc: \
                 their data objects are not known, or they were taken for others' (--comm)"
            ));
        }
    }

    /// Says how a command ended, if not well: one that dies at its start looks like one that does
    /// nothing.
    pub(super) fn tell_end(&mut self, status: Option<ExitStatus>) {
        let Some(status) = status.filter(|status| !status.success()) else { return };
        // Our own request to end is no news.
        if status.signal() != Some(rustix::process::Signal::TERM.as_raw()) {
            self.warn(format!("the command ended with {status}"));
        }
    }

    /// Says what is left of a target whose tasks were named one by one, when one of them has ended.
    pub(super) fn tell_target(&mut self, watch: &Watch<'_>) {
        let Some(comms) = &self.told_names else { return };
        let lives = watch.watched.iter().filter(|watched| !pidfd::has_ended(&watched.pidfd));
        let names: Vec<&str> = lives.map(|watched| watched.name.as_str()).collect();
        // The next round finds that it is over.
        if !names.is_empty() {
            let text = comms.describe(Some(&listed(&names)));
            self.push(Record::Target(text.into()));
        }
    }

    /// Compares the kernel's two figures, which agree where each event makes a sample. While a thread of
    /// the target lives they may not: one being cloned escapes the disabling for a moment.
    pub(super) fn tell_imbalance(&mut self) {
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
