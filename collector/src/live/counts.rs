//! The counts of events that take no samples, summed over tasks and CPUs.

use crate::attach::counting::OpenGroup;
use crate::event::counted::CountPlan;
use crate::sys::open::{self, EventCounts};
use dataspace_proto::event_count::EventCount;

/// Counters that are read at most while the session runs, once a second: each is a call. Where there are more, they take
/// turns.
const MAX_READ: usize = 512;

/// Time that may be missing between the counters of two kinds of core though one of them always ran.
const MAX_SKEW_NS: u64 = 10_000_000;

/// The counts of a session's groups.
#[derive(Debug, Default)]
pub(crate) struct GroupSums {
    /// Those of groups that were closed, by plan and event.
    closed: Vec<Vec<EventCounts>>,
    /// Those of open groups, in their order, as they were last read; none where they were not read yet.
    open: Vec<Option<OpenCounts>>,
    /// The open group that is read next.
    next: usize,
}

/// Counts of an open group.
#[derive(Debug)]
struct OpenCounts {
    plan: usize,
    counts: Vec<EventCounts>,
}

impl OpenCounts {
    fn read(group: &OpenGroup) -> Self {
        // One that cannot be read has nothing to add.
        let count = |fd| open::read_counts(fd).ok().flatten().unwrap_or_default();
        Self { plan: group.plan, counts: group.fds.iter().map(count).collect() }
    }
}

impl GroupSums {
    pub(crate) fn new(plans: &[CountPlan]) -> Self {
        let none = |plan: &CountPlan| vec![EventCounts::default(); plan.events.len()];
        Self { closed: plans.iter().map(none).collect(), open: Vec::new(), next: 0 }
    }

    /// Reads all open groups again.
    pub(crate) fn read(&mut self, groups: &[OpenGroup]) {
        self.open = groups.iter().map(|group| Some(OpenCounts::read(group))).collect();
    }

    /// Reads some of the open groups again, each in its turn.
    pub(crate) fn read_some(&mut self, groups: &[OpenGroup]) {
        self.open.resize_with(groups.len(), || None);
        let mut n_left = MAX_READ;
        for _ in 0..groups.len() {
            self.next = if self.next < groups.len() { self.next } else { 0 };
            let group = &groups[self.next];
            let Some(left) = n_left.checked_sub(group.fds.len()) else { break };
            n_left = left;
            self.open[self.next] = Some(OpenCounts::read(group));
            self.next += 1;
        }
    }

    /// Reads all open groups for the last time: they are about to be closed.
    pub(crate) fn close(&mut self, groups: &[OpenGroup]) {
        self.read(groups);
        self.closed = (0..self.closed.len()).map(|plan| self.sums(plan)).collect();
        (self.open, self.next) = (Vec::new(), 0);
    }

    /// The sums of a plan's events over what was closed and what is open.
    fn sums(&self, plan: usize) -> Vec<EventCounts> {
        let mut sums = self.closed[plan].clone();
        for open in self.open.iter().flatten().filter(|open| open.plan == plan) {
            for (sum, counts) in sums.iter_mut().zip(&open.counts) {
                sum.value += counts.value;
                sum.enabled_ns += counts.enabled_ns;
                sum.running_ns += counts.running_ns;
            }
        }
        sums
    }

    /// Words where not all open groups have been read yet.
    fn not_read(&self) -> Option<String> {
        let n_read = self.open.iter().flatten().count();
        (n_read < self.open.len()).then(|| {
            format!("{n_read} of {} groups of counters have been read so far", self.open.len())
        })
    }

    /// The sums, by event of `plans`.
    pub(crate) fn told(&self, plans: &[CountPlan], is_cpu_wide: bool) -> Vec<EventCount> {
        let mut told = Vec::new();
        let sums: Vec<_> = (0..plans.len()).map(|plan| self.sums(plan)).collect();
        let not_read = self.not_read();
        for (plan_idx, plan) in plans.iter().enumerate() {
            for (event_idx, event) in plan.events.iter().enumerate() {
                let own = sums[plan_idx][event_idx];
                let (enabled_ns, running_ns) = match is_cpu_wide {
                    // Those of one kind of core are enabled on those alone.
                    true => (own.enabled_ns, own.running_ns),
                    false => times(plans, &sums, plan_idx, event_idx),
                };
                let scaled = EventCount::scaled(own.value, enabled_ns, running_ns);
                told.push(EventCount {
                    event: event.name.clone(),
                    selector: event.selector.clone(),
                    count: scaled.filter(|_| !plan.is_refused() && not_read.is_none()),
                    counted: own.value,
                    enabled_ns,
                    running_ns,
                    // A clock counts the kernel's time too, whatever it was asked for.
                    includes_kernel: !event.source.exclude_kernel || event.is_clock(),
                    lacks: plan.lacks.clone().or_else(|| not_read.clone()),
                });
            }
        }
        told
    }
}

/// Times of a thread's event over all kinds of core. One that is of some cores only is enabled whenever its thread runs, and
/// runs on those: time on the others is time in which the same group counts there.
fn times(
    plans: &[CountPlan],
    sums: &[Vec<EventCounts>],
    plan_idx: usize,
    event_idx: usize,
) -> (u64, u64) {
    let (mut enabled_ns, mut running_ns) = (0, 0);
    for (other_idx, (other, counts)) in plans.iter().zip(sums).enumerate() {
        let counts = match other_idx == plan_idx {
            true => counts[event_idx],
            false if !plans[plan_idx].is_twin(other) => continue,
            // They count together.
            false => counts[0],
        };
        enabled_ns = counts.enabled_ns.max(enabled_ns);
        running_ns += counts.running_ns;
    }
    // They are opened and read one after the other.
    if enabled_ns.saturating_sub(running_ns) <= MAX_SKEW_NS && plans[plan_idx].cpus.is_some() {
        running_ns = running_ns.max(enabled_ns);
    }
    (enabled_ns, running_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{self, EventPlace};
    use crate::event::attr::{self, Binding, EventSource, KernelFeatures};
    use crate::event::counted::CountedEvent;

    fn plan(names: &[&str], cpus: Option<Vec<i32>>, group: usize) -> CountPlan {
        let event = |name: &&str| CountedEvent {
            name: (*name).to_owned(),
            selector: (*name).to_owned(),
            source: EventSource::NOTHING,
        };
        let events = names.iter().map(event).collect();
        CountPlan { events, cpus, group, lacks: None, is_settled: true }
    }

    fn counted(value: u64, enabled_ns: u64, running_ns: u64) -> EventCounts {
        EventCounts { value, enabled_ns, running_ns, n_lost: 0 }
    }

    #[test]
    fn groups_that_took_turns_are_scaled_each_by_its_own_time() {
        let plans = [plan(&["loads", "misses"], None, 0), plan(&["walks"], None, 1)];
        let mut counts = GroupSums::new(&plans);
        counts.closed =
            vec![vec![counted(900, 100, 60), counted(90, 100, 60)], vec![counted(40, 100, 40)]];
        let told = counts.told(&plans, false);
        let of = |at: usize| (told[at].count, told[at].counted, told[at].is_scaled());
        assert_eq!(of(0), (Some(1_500), 900, true));
        assert_eq!(of(1), (Some(150), 90, true), "the ratio of a group stays what it was");
        assert_eq!(of(2), (Some(100), 40, true));
    }

    #[test]
    fn time_on_the_other_kind_of_core_is_no_turn_that_was_missed() {
        let plans = [plan(&["loads"], Some(vec![0]), 0), plan(&["loads"], Some(vec![1]), 0)];
        let mut counts = GroupSums::new(&plans);
        counts.closed = vec![
            vec![counted(700, 100_000_000, 70_000_000)],
            vec![counted(30, 100_000_000, 30_000_000)],
        ];
        let told = counts.told(&plans, false);
        assert_eq!((told[0].count, told[1].count), (Some(700), Some(30)));
        assert!(!told[0].is_scaled() && !told[1].is_scaled());
        // The second one was read a little later.
        counts.closed = vec![
            vec![counted(700, 100_000_000, 70_000_000)],
            vec![counted(30, 100_100_000, 30_000_000)],
        ];
        let told = counts.told(&plans, false);
        assert_eq!((told[0].count, told[1].count), (Some(700), Some(30)));
        // Both had half of their own time.
        counts.closed = vec![
            vec![counted(350, 100_000_000, 35_000_000)],
            vec![counted(15, 100_000_000, 15_000_000)],
        ];
        let told = counts.told(&plans, false);
        assert_eq!((told[0].count, told[1].count), (Some(700), Some(30)));
        // Whole CPUs are enabled and run each on its own.
        counts.closed = vec![vec![counted(700, 100, 50)], vec![counted(30, 100, 100)]];
        let told = counts.told(&plans, true);
        assert_eq!((told[0].count, told[1].count), (Some(1_400), Some(30)));
    }

    #[test]
    fn what_had_no_counter_has_no_count() {
        let mut refused = plan(&["slots"], None, 0);
        (refused.is_settled, refused.lacks) = (false, Some("there is none".to_owned()));
        let plans = [plan(&["loads"], None, 0), refused];
        let mut counts = GroupSums::new(&plans);
        counts.closed[0][0] = counted(0, 100, 0);
        let told = counts.told(&plans, false);
        assert_eq!((told[0].count, told[1].count), (None, None));
        assert_eq!(told[1].lacks.as_deref(), Some("there is none"));
    }

    #[test]
    fn groups_take_turns_in_being_read_and_have_no_count_before() {
        let plans = [plan(&["loads"], None, 0)];
        let mut counts = GroupSums::new(&plans);
        let source = EventSource { exclude_kernel: true, ..EventSource::NOTHING };
        let attr = attr::counted(&source, Binding::default(), KernelFeatures::default());
        let group = |_| {
            let fds = access::events(&[&attr], EventPlace::own_thread(-1)).unwrap();
            OpenGroup { fds, plan: 0, tid: 1 }
        };
        let groups: Vec<OpenGroup> = (0..MAX_READ + 1).map(group).collect();
        counts.closed[0][0] = counted(5, 10, 10);
        counts.read_some(&groups);
        let told = &counts.told(&plans, false)[0];
        assert_eq!(told.count, None);
        assert!(told.lacks.as_deref().unwrap().starts_with("512 of 513 groups"), "{told:?}");
        counts.read_some(&groups);
        let told = &counts.told(&plans, false)[0];
        assert_eq!((told.count, &told.lacks), (Some(5), &None));
        // Those that are closed are in the sum, and nothing of them twice.
        counts.close(&groups);
        counts.read(&[]);
        assert_eq!(counts.told(&plans, false)[0].count, Some(5));
    }
}
