//! Does what the governor decides: periods of open events, events off and on.

use crate::attach::OpenEvent;
use crate::cost::calibration::Calibration;
use crate::cost::governor::{Decision, Governor, Usage};
use crate::cost::lives::Lives;
use crate::event::EventPlan;
use crate::live::reader::{Reader, Watch};
use crate::sys::clock::{now_ns, thread_cpu_ns};
use crate::sys::open;
use dataspace_proto::event::{EventIdx, EventKind, Sampling};
use dataspace_proto::governance::Governance;
use rustix::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The governor and what it is told.
#[derive(Debug)]
pub(super) struct Governing {
    governor: Governor,
    /// Being measured.
    calibration: Option<JoinHandle<Calibration>>,
    consumer_cpu_ns: Arc<AtomicU64>,
    /// Told to others.
    reader_cpu_ns: Arc<AtomicU64>,
    decisions: Vec<(usize, Decision)>,
    usage: Usage,
    /// CPU time of the target, and when that was read.
    running: (u64, u64),
    /// A person was told that periods change.
    has_told: bool,
}

impl Governing {
    pub(super) fn new(
        max_overhead: Option<f64>,
        keeps_counts: bool,
        plans: &[EventPlan],
        calibration: Option<JoinHandle<Calibration>>,
        [consumer_cpu_ns, reader_cpu_ns]: [Arc<AtomicU64>; 2],
        began_ns: u64,
    ) -> Self {
        let events: Vec<(EventKind, Sampling)> =
            plans.iter().map(|plan| (plan.event.kind, plan.event.sampling)).collect();
        Self {
            governor: Governor::new(max_overhead, keeps_counts, &events, began_ns),
            calibration,
            consumer_cpu_ns,
            reader_cpu_ns,
            decisions: Vec::new(),
            usage: Usage::default(),
            running: (0, began_ns),
            has_told: false,
        }
    }

    /// Tells whether any period is not what it was at first.
    pub(super) const fn has_changed(&self) -> bool {
        self.governor.has_changed()
    }

    /// Costs of samples and lives, once they are measured.
    fn calibrated(&mut self) -> Option<Calibration> {
        let is_there = self.calibration.as_ref().is_some_and(JoinHandle::is_finished);
        let measured = self.calibration.take_if(|_| is_there)?.join().ok()?;
        let Calibration { samples, life } = measured;
        tracing::info!(
            interrupt_ns = samples.interrupt_ns,
            breakpoint_ns = samples.breakpoint_ns,
            in_kernel_ns = samples.in_kernel_ns,
            birth_ns = life.birth_ns,
            end_ns = life.end_ns,
            "what sampling costs was measured"
        );
        self.governor.set_costs(&measured.samples);
        Some(measured)
    }
}

impl Reader {
    /// Keeps the cost of sampling within its bounds.
    pub(super) fn govern(&mut self, time_ns: u64, watch: &Watch<'_>) {
        let mut decisions = std::mem::take(&mut self.governing.decisions);
        decisions.clear();
        self.governing.governor.cycle(time_ns, &self.drain.tally.n_taken, &mut decisions);
        if self.governing.governor.is_due(time_ns) {
            if let Some(measured) = self.governing.calibrated()
                && let Some(lives) = &mut self.drain.lives
            {
                lives.set_cost(measured.life);
            }
            self.measure(time_ns);
            let Governing { governor, usage, .. } = &mut self.governing;
            governor.decide(usage, &mut decisions);
        }
        if !decisions.is_empty() {
            self.apply(&decisions, watch);
        }
        self.governing.decisions = decisions;
    }

    fn measure(&mut self, time_ns: u64) {
        let tally = &self.drain.tally;
        let Governing { usage, consumer_cpu_ns, reader_cpu_ns, running, .. } = &mut self.governing;
        let own_ns = thread_cpu_ns();
        reader_cpu_ns.store(own_ns, Ordering::Relaxed);
        usage.own_cpu_ns = own_ns + consumer_cpu_ns.load(Ordering::Relaxed);
        usage.n_samples.clone_from(&tally.n_taken);
        usage.n_lost = tally.n_lost_told;
        let (running_ns, read_ns) = *running;
        if tally.running_ns() != running_ns && time_ns > read_ns {
            let busy_ns = tally.running_ns().saturating_sub(running_ns) as f64;
            usage.n_target_cpus = busy_ns / (time_ns - read_ns) as f64;
            *running = (tally.running_ns(), time_ns);
        }
        // Whole CPUs run even while they are idle.
        if self.binding.is_cpu_wide && self.group.is_none() {
            usage.n_target_cpus = 1.0;
        }
        usage.time_ns = time_ns;
    }

    fn apply(&mut self, decisions: &[(usize, Decision)], watch: &Watch<'_>) {
        let (mut needs_reattaching, mut changed) = (false, Vec::new());
        for &(event_idx, decision) in decisions {
            let began_ns = now_ns();
            // What inherited an event keeps its period, and a thread that is being born while
            // events are switched on may stay blind.
            let has_heirs = self.has_heirs();
            match decision {
                Decision::Sample(sampling) => {
                    let sampling = self.plans[event_idx].rounded(sampling);
                    self.plans[event_idx].source.sampling = sampling;
                    let (Sampling::Period(number) | Sampling::FrequencyHz(number)) = sampling;
                    if has_heirs {
                        needs_reattaching = true;
                    } else {
                        self.each(event_idx, |fd| open::set_period(fd, number));
                    }
                    if let Sampling::Period(period) = sampling {
                        changed.push((
                            event_idx,
                            period,
                            if has_heirs { began_ns } else { now_ns() },
                        ));
                    }
                    self.tell_change(event_idx, sampling);
                }
                Decision::Off => self.each(event_idx, open::disable),
                Decision::On if has_heirs => needs_reattaching = true,
                Decision::On => self.each(event_idx, open::enable),
            }
        }
        if needs_reattaching {
            self.reattach(watch);
        }
        // What was sampled before a reattaching has been read by now, and has its old weight.
        for (event_idx, period, from_ns) in changed {
            self.drain.periods.set(EventIdx(event_idx as u16), from_ns, period);
        }
    }

    /// Events that were opened again count; those that rest are not to.
    pub(super) fn rest_again(&self) {
        for event_idx in self.governing.governor.switched_off() {
            self.each(event_idx, open::disable);
        }
    }

    pub(super) fn each(
        &self,
        event_idx: usize,
        act: impl Fn(rustix::fd::BorrowedFd<'_>) -> Result<(), rustix::io::Errno>,
    ) {
        let is_its = |open: &&OpenEvent| usize::from(open.event.0) == event_idx;
        for fd in self.events.iter().filter(is_its).filter_map(|open| open.fd.as_ref()) {
            if let Err(errno) = act(fd.as_fd()) {
                tracing::warn!(%errno, "an event could not be governed");
            }
        }
    }

    /// Tells whether tasks were born that have inherited the events that are open.
    pub(super) const fn has_heirs(&self) -> bool {
        self.binding.inherit && self.drain.first_birth_ns.is_some()
    }

    fn tell_change(&mut self, event_idx: usize, sampling: Sampling) {
        let governance = self.governance();
        let name = &self.plans[event_idx].event.name;
        // What there is none of is no field.
        let (what, period, frequency_hz) = match sampling {
            Sampling::Period(period) => ("period", Some(period), None),
            Sampling::FrequencyHz(hz) => ("frequency", None, Some(hz)),
        };
        let taken_percent = format!("{:.2}", governance.overhead * 100.0);
        tracing::info!(event = %name, period, frequency_hz, %taken_percent, "the governor changed the {what}");
        if !std::mem::replace(&mut self.governing.has_told, true) {
            let warning = format!(
                "the {what} of {name} is changed where sampling takes more than --max-overhead allows; the \
                 header and governance.events in the JSON have the present one"
            );
            self.warn(warning);
        }
    }

    pub(super) fn governance(&self) -> Governance {
        let of_samples = self.governing.governor.governance(now_ns(), &self.drain.tally.n_taken);
        let lives = self.drain.lives.as_ref().map(Lives::told);
        let target_ns = of_samples.target_ns + lives.map_or(0, |lives| lives.target_ns);
        let mut told = Governance { target_ns, lives, ..of_samples };
        for (event_idx, event) in told.events.iter_mut().enumerate() {
            event.variation = self.varying.as_ref().and_then(|it| it.varied(event_idx));
        }
        told
    }
}
