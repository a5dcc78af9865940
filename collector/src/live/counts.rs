//! The counts of events that take no samples, summed over tasks and CPUs.

use crate::attach::counting::OpenGroup;
use crate::event::counted::CountPlan;
use crate::sys::open::{self, EventCounts};
use dataspace_proto::event_count::EventCount;

/// The counts of a session's groups.
#[derive(Debug, Default)]
pub(crate) struct GroupSums {
    /// As they were last read, by plan and event: those of groups that were closed are in them.
    read: Vec<Vec<EventCounts>>,
    closed: Vec<Vec<EventCounts>>,
}

impl GroupSums {
    pub(crate) fn new(plans: &[CountPlan]) -> Self {
        let none = || plans.iter().map(|plan| vec![EventCounts::default(); plan.events.len()]);
        Self { read: none().collect(), closed: none().collect() }
    }

    /// Reads all open groups again.
    pub(crate) fn read(&mut self, groups: &[OpenGroup]) {
        self.read.clone_from(&self.closed);
        for group in groups {
            for (sum, fd) in self.read[group.plan].iter_mut().zip(&group.fds) {
                // One that cannot be read has nothing to add.
                let Ok(Some(counts)) = open::read_counts(fd) else { continue };
                sum.value += counts.value;
                sum.enabled_ns += counts.enabled_ns;
                sum.running_ns += counts.running_ns;
            }
        }
    }

    /// Reads all open groups for the last time: they are about to be closed.
    pub(crate) fn close(&mut self, groups: &[OpenGroup]) {
        self.read(groups);
        self.closed.clone_from(&self.read);
    }

    /// The sums, by event of `plans`.
    pub(crate) fn told(&self, plans: &[CountPlan], is_cpu_wide: bool) -> Vec<EventCount> {
        let mut told = Vec::new();
        for (plan_idx, plan) in plans.iter().enumerate() {
            for (event_idx, event) in plan.events.iter().enumerate() {
                let own = self.read[plan_idx][event_idx];
                let (enabled_ns, running_ns) = self.times(plans, plan, event_idx, is_cpu_wide);
                let scaled = EventCount::scaled(own.value, enabled_ns, running_ns);
                told.push(EventCount {
                    event: event.name.clone(),
                    selector: event.selector.clone(),
                    count: scaled.filter(|_| !plan.is_refused()),
                    counted: own.value,
                    enabled_ns,
                    running_ns,
                    includes_kernel: !event.source.exclude_kernel,
                    lacks: plan.lacks.clone(),
                });
            }
        }
        told
    }

    /// Times of an event over all kinds of core. One that is of some cores only is enabled whenever its thread runs, and
    /// runs on those: time on the others is time in which the same group counts there.
    fn times(
        &self,
        plans: &[CountPlan],
        plan: &CountPlan,
        event_idx: usize,
        is_cpu_wide: bool,
    ) -> (u64, u64) {
        let (mut enabled_ns, mut running_ns) = (0, 0);
        for (other, counts) in plans.iter().zip(&self.read) {
            let counts = match std::ptr::eq(other, plan) {
                true => counts[event_idx],
                false if !plan.is_twin(other) => continue,
                // They count together.
                false => counts[0],
            };
            enabled_ns = match is_cpu_wide {
                true => enabled_ns + counts.enabled_ns,
                false => counts.enabled_ns.max(enabled_ns),
            };
            running_ns += counts.running_ns;
        }
        (enabled_ns, running_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::attr::EventSource;
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
        counts.read =
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
        counts.read = vec![vec![counted(700, 100, 70)], vec![counted(30, 100, 30)]];
        let told = counts.told(&plans, false);
        assert_eq!((told[0].count, told[1].count), (Some(700), Some(30)));
        assert!(!told[0].is_scaled() && !told[1].is_scaled());
        // Both had half of their own time.
        counts.read = vec![vec![counted(350, 100, 35)], vec![counted(15, 100, 15)]];
        let told = counts.told(&plans, false);
        assert_eq!((told[0].count, told[1].count), (Some(700), Some(30)));
        // Whole CPUs are enabled and run each on its own.
        counts.read = vec![vec![counted(700, 100, 100)], vec![counted(30, 100, 100)]];
        let told = counts.told(&plans, true);
        assert_eq!((told[0].count, told[1].count), (Some(700), Some(30)));
    }

    #[test]
    fn what_had_no_counter_has_no_count() {
        let mut refused = plan(&["slots"], None, 0);
        (refused.is_settled, refused.lacks) = (false, Some("there is none".to_owned()));
        let plans = [plan(&["loads"], None, 0), refused];
        let mut counts = GroupSums::new(&plans);
        counts.read[0][0] = counted(0, 100, 0);
        let told = counts.told(&plans, false);
        assert_eq!((told[0].count, told[1].count), (None, None));
        assert_eq!(told[1].lacks.as_deref(), Some("there is none"));
    }

    #[test]
    fn what_was_closed_stays_in_the_sum() {
        let plans = [plan(&["loads"], None, 0)];
        let mut counts = GroupSums::new(&plans);
        counts.read[0][0] = counted(5, 10, 10);
        counts.closed.clone_from(&counts.read);
        counts.read(&[]);
        assert_eq!(counts.told(&plans, false)[0].count, Some(5));
    }
}
