//! Number of tasks that were born and ended with a session's events, and what that cost them.

use crate::attach::OpenEvent;
use crate::cost::life::LifeCost;
use crate::event::EventPlan;
use dataspace_proto::governance;

/// The lives of the target's tasks. Where whole CPUs are sampled, tasks have no events.
#[derive(Debug)]
pub(crate) struct Lives {
    /// Events that each of its tasks has.
    n_events: u64,
    cost: LifeCost,
    n_births: u64,
    n_ends: u64,
    /// Below 0 for a moment where an end is read before its birth: they come from several rings.
    n_alive: i64,
}

impl Lives {
    /// Tasks with events of `plans` on `cpus`, and so many counters.
    pub(crate) fn new(
        plans: &[EventPlan],
        cpus: impl Iterator<Item = i32>,
        n_counters: u64,
    ) -> Self {
        // Beside the sampled ones there is one on each CPU that tells of mappings and births.
        let on = |cpu| 1 + plans.iter().filter(|plan| plan.is_on(cpu)).count() as u64;
        let n_events = cpus.map(on).sum::<u64>() + n_counters;
        Self { n_events, cost: LifeCost::USUAL, n_births: 0, n_ends: 0, n_alive: 0 }
    }

    /// Takes the measured cost of an event.
    pub(crate) const fn set_cost(&mut self, cost: LifeCost) {
        self.cost = cost;
    }

    /// These are open now: on every task that is alive.
    pub(crate) fn opened(&mut self, events: &[OpenEvent]) {
        self.n_alive = events.chunk_by(|one, other| one.tid == other.tid).count() as i64;
    }

    /// A task was born.
    pub(crate) const fn born(&mut self) {
        self.n_births += 1;
        self.n_alive += 1;
    }

    /// A task has ended.
    pub(crate) const fn ended(&mut self) {
        self.n_ends += 1;
        self.n_alive -= 1;
    }

    /// Words for a person.
    pub(crate) const fn told(&self) -> governance::Lives {
        let birth_cost_ns = self.n_events * self.cost.birth_ns;
        let end_cost_ns = self.n_events * self.cost.end_ns;
        let n_alive = if self.n_alive < 0 { 0 } else { self.n_alive.unsigned_abs() };
        governance::Lives {
            n_births: self.n_births,
            n_ends: self.n_ends,
            birth_cost_ns,
            end_cost_ns,
            target_ns: self.n_births * birth_cost_ns + self.n_ends * end_cost_ns,
            exit_ns: n_alive * end_cost_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn births_and_ends_add_up_and_what_lives_has_its_end_before_it() {
        let mut lives = Lives::new(&[], [0, 1].into_iter(), 1);
        lives.set_cost(LifeCost { birth_ns: 10, end_ns: 100 });
        for _ in 0..5 {
            lives.born();
        }
        lives.ended();
        lives.ended();
        let told = lives.told();
        assert_eq!((told.birth_cost_ns, told.end_cost_ns), (30, 300));
        assert_eq!((told.n_births, told.n_ends), (5, 2));
        assert_eq!((told.target_ns, told.exit_ns), (5 * 30 + 2 * 300, 3 * 300));
    }

    #[test]
    fn an_end_that_is_read_before_its_birth_is_one_all_the_same() {
        let mut lives = Lives::new(&[], [0].into_iter(), 0);
        lives.ended();
        assert_eq!(lives.told().exit_ns, 0);
        lives.born();
        assert_eq!(lives.told().exit_ns, 0);
    }
}
