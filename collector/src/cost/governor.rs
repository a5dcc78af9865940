//! Keeps what sampling costs below what it may cost, by longer periods and, where no period helps,
//! by switching events off for a while. Decides only; the reader applies.

use crate::cost::sample::SampleCosts;
use crate::event::meaning::counts_each;
use dataspace_proto::event::{EventKind, Sampling};
use dataspace_proto::governance::{EventGovernance, Governance, PeriodChange};
use std::collections::VecDeque;

/// Time between two decisions: a storm is met in the first one, and tamed by the second.
pub(crate) const DECISION_NS: u64 = 250_000_000;
/// Our own share is the mean over so many decisions, as an exponential average: 4 s. What it takes
/// to read a large process's mappings, or the first names, is no reason to sample less.
const OWN_MEMORY: f64 = 16.0;
/// Breakpoints are switched on again so often.
const CYCLE_NS: u64 = 1_000_000_000;
/// Savings that a breakpoint may have, in cycles: a few thousand hits in a burst are all seen.
const MAX_SAVED_CYCLES: f64 = 10.0;
/// Savings that it begins with: the first second's own share. With all that may be saved one that is hot from the beginning
/// cost four times what it may over the first three seconds.
const FIRST_CYCLES: f64 = 1.0;
/// Decisions in a row that have to find too much before a period is raised, unless it is far too
/// much: reading debug information at the start is not to slow a session for its life.
const PATIENCE: u32 = 3;
/// So many times the budget is far too much.
const FAR_TOO_MUCH: f64 = 2.0;
/// Aim when a period is changed, as a share of the budget: room for chance.
const AIM: f64 = 0.85;
/// Least cost of samples that is allowed, as a share of the budget: where the births, mappings and ends of a whole
/// machine's tasks take all of it, no period helps, and the last samples are not given up for nothing.
const LEAST: f64 = 0.25;
/// Time of our threads for a sample among few; of many it is a tenth. What they take beyond is not for
/// samples, and no period lowers it.
const OWN_SAMPLE_NS: f64 = 4_000.0;
/// Below this share of the budget a raised period may come down again.
const LOW: f64 = 0.6;
/// Decisions in a row below [`LOW`] before it does.
const LOW_PATIENCE: u32 = 8;
/// Fewer samples a second than this tell nothing: no period is raised beyond it.
const MIN_SAMPLES_PER_SECOND: f64 = 20.0;
/// Changes that are shown.
const N_CHANGES_SHOWN: usize = 16;

/// Time used since the session began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) time_ns: u64,
    /// CPU time of the collector's and the analyzer's threads.
    pub(crate) own_cpu_ns: u64,
    /// Number of CPUs that the target keeps busy, as far as it is known.
    pub(crate) n_target_cpus: f64,
    /// Samples that the kernel took, by event, as far as they found room.
    pub(crate) n_samples: Vec<u64>,
    /// Samples that found none; whose they were is not told at once.
    pub(crate) n_lost: u64,
}

/// Decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Decision {
    /// The event is to have this period, or frequency.
    Sample(Sampling),
    /// The event is to be switched off.
    Off,
    /// The event is to be switched on.
    On,
}

#[derive(Clone, Debug)]
struct Governed {
    kind: EventKind,
    asked: Sampling,
    now: Sampling,
    cost_ns: u64,
    /// Since when it is off.
    off_since_ns: Option<u64>,
    /// The begin of a breakpoint's cycle, and the number of samples then.
    cycle_began: (u64, u64),
    /// Cycles that it may cost now, for a budget of all of them.
    saved_cycles: f64,
    /// Its period was asked for, and says which events are samples: it stays.
    is_fixed: bool,
}

/// The governor of one session.
#[derive(Debug, Default)]
pub(crate) struct Governor {
    max_overhead: Option<f64>,
    events: Vec<Governed>,
    last: Usage,
    n_over: u32,
    n_low: u32,
    own_share: f64,
    /// The part of it that is for samples at most, averaged alike.
    own_for_samples: f64,
    overhead: f64,
    gap_ns: u64,
    n_changes: u64,
    changes: VecDeque<PeriodChange>,
}

impl Governor {
    /// A governor of events of these kinds, sampled as is said; `max_overhead` is a share (0.01).
    /// With `keeps_counts` every Nth fault, breakpoint or tracepoint stays a sample.
    pub(crate) fn new(
        max_overhead: Option<f64>,
        keeps_counts: bool,
        events: &[(EventKind, Sampling)],
        began_ns: u64,
    ) -> Self {
        let governed = |&(kind, asked): &(EventKind, Sampling)| Governed {
            kind,
            asked,
            now: asked,
            cost_ns: SampleCosts::USUAL.of(kind),
            off_since_ns: None,
            cycle_began: (began_ns, 0),
            saved_cycles: FIRST_CYCLES,
            is_fixed: keeps_counts && counts_each(kind),
        };
        let n_samples = vec![0; events.len()];
        Self {
            max_overhead,
            events: events.iter().map(governed).collect(),
            last: Usage { time_ns: began_ns, n_samples, ..Usage::default() },
            ..Self::default()
        }
    }

    /// Takes the measured cost of a sample.
    pub(crate) fn set_costs(&mut self, costs: &SampleCosts) {
        for event in &mut self.events {
            event.cost_ns = costs.of(event.kind);
        }
    }

    /// Tells whether it is time to [decide](Self::decide).
    pub(crate) const fn is_due(&self, time_ns: u64) -> bool {
        time_ns >= self.last.time_ns + DECISION_NS
    }

    /// Decides what is to be changed, by event.
    pub(crate) fn decide(&mut self, usage: &Usage, into: &mut Vec<(usize, Decision)>) {
        let elapsed_ns = usage.time_ns.saturating_sub(self.last.time_ns).max(1) as f64;
        let kernel_ns = self.kernel_ns(usage, |event| !Self::rests(event));
        let own_ns = usage.own_cpu_ns.saturating_sub(self.last.own_cpu_ns) as f64;
        let allowance_ns = elapsed_ns * usage.n_target_cpus.max(1.0);
        self.own_share += (own_ns / allowance_ns - self.own_share) / OWN_MEMORY;
        let for_samples = self.n_new(usage) as f64 * OWN_SAMPLE_NS / allowance_ns;
        self.own_for_samples += (for_samples - self.own_for_samples) / OWN_MEMORY;
        let rest_ns = self.kernel_ns(usage, Self::rests);
        self.overhead = (kernel_ns + rest_ns) / allowance_ns + self.own_share;
        if let Some(max) = self.max_overhead.map(|max| max * self.share()) {
            let of_samples = kernel_ns / allowance_ns + for_samples.min(self.own_share);
            let beside = (self.own_share - self.own_for_samples).max(0.0);
            let excess = of_samples / (max * AIM - beside).max(max * LEAST);
            self.n_over = if excess > 1.0 / AIM { self.n_over + 1 } else { 0 };
            self.n_low = if excess < LOW / AIM { self.n_low + 1 } else { 0 };
            // Our own work alone may be reading debug information: only the kernel's is a storm.
            let is_storm = kernel_ns / allowance_ns > max * FAR_TOO_MUCH;
            if self.n_over >= PATIENCE || is_storm {
                self.scale(excess, usage, elapsed_ns, into);
                self.n_over = 0;
            } else if self.n_low >= LOW_PATIENCE {
                self.scale(excess.max(0.5), usage, elapsed_ns, into);
                self.n_low = 0;
            }
        }
        self.last.clone_from(usage);
    }

    /// Tells whether it is governed by being switched off.
    const fn rests(event: &Governed) -> bool {
        matches!(event.kind, EventKind::Breakpoint { .. })
    }

    /// The part of the budget that events have together whose periods are governed, and that each
    /// of the others has.
    fn share(&self) -> f64 {
        let n_resting = self.events.iter().filter(|event| Self::rests(event)).count();
        let has_periods = n_resting < self.events.len();
        1.0 / (n_resting + usize::from(has_periods)).max(1) as f64
    }

    /// Samples since the last decision.
    fn n_new(&self, usage: &Usage) -> u64 {
        let counts = usage.n_samples.iter().zip(&self.last.n_samples);
        counts.map(|(now, last)| now.saturating_sub(*last)).sum()
    }

    /// Time that the kernel spent on the `wanted` events' samples since the last decision.
    fn kernel_ns(&self, usage: &Usage, wanted: impl Fn(&Governed) -> bool) -> f64 {
        let counts = usage.n_samples.iter().zip(&self.last.n_samples);
        let costs = self.events.iter().zip(counts).filter(|(event, _)| wanted(event));
        let taken_ns: f64 = costs
            .map(|(event, (now, last))| (now.saturating_sub(*last) * event.cost_ns) as f64)
            .sum();
        // A lost sample costs nearly as much as one that was stored.
        let wanted = self.events.iter().filter(|event| wanted(event));
        let dearest_ns = wanted.map(|event| event.cost_ns).max().unwrap_or(0);
        let n_lost = usage.n_lost.saturating_sub(self.last.n_lost);
        taken_ns + (n_lost * dearest_ns) as f64
    }

    /// Makes the cost of each event `factor` times less, but never less than was asked for.
    fn scale(
        &mut self,
        factor: f64,
        usage: &Usage,
        elapsed_ns: f64,
        into: &mut Vec<(usize, Decision)>,
    ) {
        for (event_idx, event) in self.events.iter_mut().enumerate() {
            if event.is_fixed || Self::rests(event) {
                continue;
            }
            let n_new = usage.n_samples[event_idx].saturating_sub(self.last.n_samples[event_idx]);
            let per_second = n_new as f64 * 1e9 / elapsed_ns;
            // A factor below 1 gives more samples, and is good for every rate.
            let factor = factor.min((per_second / MIN_SAMPLES_PER_SECOND).max(1.0));
            let to = scaled(event.now, event.asked, factor);
            if to == event.now {
                continue;
            }
            let change = PeriodChange {
                time_ns: usage.time_ns,
                event: event_idx as u16,
                from: number(event.now),
                to: number(to),
                overhead: self.overhead,
            };
            event.now = to;
            self.n_changes += 1;
            if self.changes.len() == N_CHANGES_SHOWN {
                self.changes.pop_front();
            }
            self.changes.push_back(change);
            into.push((event_idx, Decision::Sample(to)));
        }
    }

    /// Switches breakpoints off that have cost this second's share, and on when the next begins.
    /// To be asked in every round: a breakpoint's storm takes a whole CPU.
    pub(crate) fn cycle(
        &mut self,
        time_ns: u64,
        n_samples: &[u64],
        into: &mut Vec<(usize, Decision)>,
    ) {
        let Some(max) = self.max_overhead.map(|max| max * self.share()) else { return };
        for (event_idx, event) in self.events.iter_mut().enumerate() {
            if event.is_fixed || !Self::rests(event) {
                continue;
            }
            let (began_ns, n_then) = event.cycle_began;
            let is_next = time_ns >= began_ns + CYCLE_NS;
            let used = n_samples[event_idx].saturating_sub(n_then) * event.cost_ns;
            let used_cycles = used as f64 / (max * CYCLE_NS as f64);
            if is_next {
                event.cycle_began = (time_ns, n_samples[event_idx]);
                // It is switched off late, by what a round takes, and pays for that later.
                let saved = event.saved_cycles - used_cycles + 1.0;
                event.saved_cycles = saved.clamp(-MAX_SAVED_CYCLES, MAX_SAVED_CYCLES);
            }
            match event.off_since_ns {
                Some(since_ns) if is_next && event.saved_cycles > 0.0 => {
                    self.gap_ns += time_ns.saturating_sub(since_ns);
                    event.off_since_ns = None;
                    into.push((event_idx, Decision::On));
                }
                None if !is_next && used_cycles > event.saved_cycles => {
                    event.off_since_ns = Some(time_ns);
                    into.push((event_idx, Decision::Off));
                }
                _ => {}
            }
        }
    }

    /// Tells whether any period is not what it was at first.
    pub(crate) const fn has_changed(&self) -> bool {
        self.n_changes != 0
    }

    /// The events that are off.
    pub(crate) fn switched_off(&self) -> Vec<usize> {
        let events = self.events.iter().enumerate();
        events.filter(|(_, event)| event.off_since_ns.is_some()).map(|(idx, _)| idx).collect()
    }

    /// Words for a person.
    pub(crate) fn governance(&self, time_ns: u64, n_samples: &[u64]) -> Governance {
        let of = |event: &Governed| EventGovernance {
            period: match event.now {
                Sampling::Period(period) => Some(period),
                Sampling::FrequencyHz(_) => None,
            },
            frequency_hz: match event.now {
                Sampling::FrequencyHz(hz) => Some(hz),
                Sampling::Period(_) => None,
            },
            variation: None,
            sample_cost_ns: event.cost_ns,
            is_off: event.off_since_ns.is_some(),
        };
        let open_gaps = self.events.iter().filter_map(|event| event.off_since_ns);
        let open_gap_ns: u64 = open_gaps.map(|since_ns| time_ns.saturating_sub(since_ns)).sum();
        let costs = self.events.iter().zip(n_samples);
        Governance {
            max_overhead: self.max_overhead,
            overhead: self.overhead,
            events: self.events.iter().map(of).collect(),
            gap_ns: self.gap_ns + open_gap_ns,
            target_ns: costs.map(|(event, n)| n * event.cost_ns).sum(),
            lives: None,
            n_changes: self.n_changes,
            changes: self.changes.iter().copied().collect(),
        }
    }
}

const fn number(sampling: Sampling) -> u64 {
    match sampling {
        Sampling::Period(number) | Sampling::FrequencyHz(number) => number,
    }
}

/// `now` with `factor` times fewer samples, but never more than `asked` gives.
fn scaled(now: Sampling, asked: Sampling, factor: f64) -> Sampling {
    // A float holds every period below 2^53: three months in nanoseconds.
    match (now, asked) {
        (Sampling::Period(now), Sampling::Period(asked)) => {
            let to = (now as f64 * factor).ceil().min(1e15) as u64;
            Sampling::Period(to.max(asked))
        }
        (Sampling::FrequencyHz(now), Sampling::FrequencyHz(asked)) => {
            let to = (now as f64 / factor).floor() as u64;
            Sampling::FrequencyHz(to.clamp(1, asked))
        }
        _ => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::address::Avma;

    const BREAKPOINT: EventKind = EventKind::Breakpoint { address: Avma(8), len_bytes: 8 };

    fn sampling(governor: &Governor) -> Sampling {
        governor.events[0].now
    }

    /// A target that makes `events_per_second` events, sampled as the governor says. Gives what it
    /// cost in each quarter of a second, as a share.
    fn run(
        governor: &mut Governor,
        events_per_second: f64,
        cost_ns: f64,
        quarters: usize,
    ) -> Vec<f64> {
        let mut usage = governor.last.clone();
        let mut decisions = Vec::new();
        (0..quarters)
            .map(|_| {
                let period = number(sampling(governor)) as f64;
                let n = events_per_second / period / 4.0;
                usage.time_ns += DECISION_NS;
                usage.n_samples[0] += n as u64;
                decisions.clear();
                governor.decide(&usage, &mut decisions);
                n * cost_ns / DECISION_NS as f64
            })
            .collect()
    }

    #[test]
    fn a_storm_is_tamed_within_two_decisions_and_comes_back_when_it_is_over() {
        let asked = Sampling::Period(1);
        let mut governor = Governor::new(Some(0.01), false, &[(EventKind::Tracepoint, asked)], 0);
        let shares = run(&mut governor, 300_000.0, 2_500.0, 8);
        assert!(shares[0] > 0.5, "{shares:?}");
        assert!(shares[1..].iter().all(|&share| share <= 0.01), "{shares:?}");
        assert_eq!(governor.governance(0, &[0]).n_changes, 1);
        run(&mut governor, 1_000.0, 2_500.0, 200);
        assert_eq!(sampling(&governor), asked, "and never below what was asked for");
    }

    #[test]
    fn a_clock_within_its_budget_is_left_alone() {
        let asked = Sampling::Period(2_004_008);
        let mut governor = Governor::new(Some(0.01), false, &[(EventKind::Clock, asked)], 0);
        run(&mut governor, 1e9, 14_000.0, 100);
        assert_eq!(sampling(&governor), asked);
        let mut ungoverned =
            Governor::new(None, false, &[(EventKind::Clock, Sampling::Period(10_000))], 0);
        run(&mut ungoverned, 1e9, 14_000.0, 100);
        assert_eq!(sampling(&ungoverned), Sampling::Period(10_000));
    }

    #[test]
    fn what_no_period_lowers_leaves_samples_a_part_of_the_budget() {
        let asked = Sampling::Period(2_000_000);
        let mut governor = Governor::new(Some(0.01), false, &[(EventKind::Clock, asked)], 0);
        // All tasks of a machine that compiles: 1.2 % of a CPU beside what 500 samples a second take.
        let mut run = |quarters: usize, beside: f64| {
            let mut usage = governor.last.clone();
            let mut decisions = Vec::new();
            for _ in 0..quarters {
                let n = 250_000_000 / number(sampling(&governor));
                usage.time_ns += DECISION_NS;
                usage.n_samples[0] += n;
                usage.own_cpu_ns += (beside * DECISION_NS as f64) as u64 + n * 3_000;
                governor.decide(&usage, &mut decisions);
            }
            (number(sampling(&governor)), governor.overhead)
        };
        let (period, overhead) = run(400, 0.012);
        assert!((4_000_000..10_000_000).contains(&period), "{period}");
        assert!(overhead > 0.012, "it is not hidden: {overhead}");
        let (period, _) = run(400, 0.0);
        assert!(period < 2_500_000, "when that is over it comes down: {period}");
    }

    #[test]
    fn some_samples_are_always_taken() {
        let mut governor =
            Governor::new(Some(1e-6), false, &[(EventKind::Clock, Sampling::Period(1_000_000))], 0);
        run(&mut governor, 1e9, 14_000.0, 40);
        assert!(number(sampling(&governor)) <= 50_000_000, "{:?}", sampling(&governor));
    }

    #[test]
    fn what_was_asked_to_be_every_event_stays_so() {
        let asked = Sampling::Period(1);
        let mut governor = Governor::new(Some(0.01), true, &[(EventKind::Tracepoint, asked)], 0);
        run(&mut governor, 300_000.0, 2_500.0, 8);
        assert_eq!(sampling(&governor), asked);
        let clock = [(EventKind::Clock, Sampling::Period(20_000))];
        let mut governor = Governor::new(Some(0.01), true, &clock, 0);
        run(&mut governor, 1e9, 14_000.0, 8);
        assert_ne!(sampling(&governor), clock[0].1, "a clock has no events of its own");
    }

    #[test]
    fn a_breakpoint_rests_for_what_is_left_of_the_second() {
        let mut governor =
            Governor::new(Some(0.01), false, &[(BREAKPOINT, Sampling::Period(1))], 0);
        let mut decisions = Vec::new();
        governor.cycle(10_000_000, &[600], &mut decisions);
        assert!(decisions.is_empty(), "600 × 15 µs are below the 10 ms of a second");
        governor.cycle(12_000_000, &[700], &mut decisions);
        assert_eq!(decisions, [(0, Decision::Off)]);
        governor.cycle(900_000_000, &[700], &mut decisions);
        governor.cycle(1_000_000_000, &[700], &mut decisions);
        assert_eq!(decisions, [(0, Decision::Off), (0, Decision::On)]);
        governor.cycle(1_010_000_000, &[1_300], &mut decisions);
        assert_eq!(decisions.len(), 2, "600 × 15 µs are below the 10 ms of a second");
        governor.cycle(1_012_000_000, &[1_400], &mut decisions);
        assert_eq!(decisions.len(), 3);
        assert_eq!(governor.governance(1_012_000_000, &[1_400]).gap_ns, 988_000_000);
    }

    #[test]
    fn a_breakpoint_that_is_switched_off_late_pays_for_it() {
        let mut governor =
            Governor::new(Some(0.01), false, &[(BREAKPOINT, Sampling::Period(1))], 0);
        let (mut decisions, mut n_samples) = (Vec::new(), 0);
        // 20 ms of samples, at 15 µs each, before anybody looks: twice what a second may cost.
        for second in 0..100 {
            let is_on = governor.switched_off().is_empty();
            n_samples += if is_on { 1_334 } else { 0 };
            governor.cycle(second * 1_000_000_000 + 500_000_000, &[n_samples], &mut decisions);
            governor.cycle((second + 1) * 1_000_000_000, &[n_samples], &mut decisions);
        }
        let share = n_samples as f64 * 15_000.0 / 100e9;
        assert!((0.009..=0.0105).contains(&share), "{share}");
    }

    #[test]
    fn a_breakpoint_that_was_quiet_may_cost_what_it_saved_and_no_more() {
        let mut governor =
            Governor::new(Some(0.01), false, &[(BREAKPOINT, Sampling::Period(1))], 0);
        let mut decisions = Vec::new();
        for second in 1..20 {
            governor.cycle(second * 1_000_000_000, &[0], &mut decisions);
        }
        governor.cycle(19_100_000_000, &[6_600], &mut decisions);
        assert!(decisions.is_empty(), "6,600 × 15 µs are below the 100 ms of ten seconds");
        governor.cycle(19_200_000_000, &[6_700], &mut decisions);
        assert_eq!(decisions, [(0, Decision::Off)]);
    }
}
