//! Groups of events that are counted and take no samples.

use crate::error::Error;
use crate::event::EventSelector;
use crate::event::attr::{EventSource, Source};
use crate::system::machine::Machine;
use crate::system::tracefs::Tracefs;
use dataspace_proto::broker::MAX_FDS;
use dataspace_proto::event::Sampling;
use perf_event_open_sys::bindings as abi;

/// An event that is to be counted, and what reports call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedSelector {
    /// Its name in reports.
    pub name: String,
    /// The event.
    pub selector: EventSelector,
}

/// Events that are counted in the same time: the kernel gives counters to all of them, or to none.
pub type CountedGroup = Vec<CountedSelector>;

/// One event of a group.
#[derive(Clone, Debug)]
pub(crate) struct CountedEvent {
    pub(crate) name: String,
    pub(crate) selector: String,
    pub(crate) source: EventSource,
}

impl CountedEvent {
    fn is_software(&self, configs: &[abi::perf_sw_ids]) -> bool {
        configs.iter().any(|config| self.source.source == Source::Software(u64::from(*config)))
    }

    /// Tells whether it counts time.
    pub(crate) fn is_clock(&self) -> bool {
        self.is_software(&[abi::PERF_COUNT_SW_CPU_CLOCK, abi::PERF_COUNT_SW_TASK_CLOCK])
    }

    /// Tells whether only the kernel does what it counts.
    fn is_of_kernel_alone(&self) -> bool {
        self.is_software(&[abi::PERF_COUNT_SW_CONTEXT_SWITCHES, abi::PERF_COUNT_SW_CPU_MIGRATIONS])
    }
}

/// A group as it is opened: on a hybrid machine one for each kind of core.
#[derive(Clone, Debug)]
pub(crate) struct CountPlan {
    pub(crate) events: Vec<CountedEvent>,
    /// The CPUs that have it; `None` where all have.
    pub(crate) cpus: Option<Vec<i32>>,
    /// The number of the group that was asked for: the same for each kind of core.
    pub(crate) group: usize,
    /// The reason that it is not counted, or not on all tasks.
    pub(crate) lacks: Option<String>,
    /// True if it was opened once.
    pub(crate) is_settled: bool,
}

impl CountPlan {
    /// Plans for `groups` on `machine`. What the machine has not is planned as lacking, with the reason.
    pub(crate) fn all(groups: &[CountedGroup], machine: &Machine, tracefs: &Tracefs) -> Vec<Self> {
        let mut plans: Vec<Self> = Vec::new();
        for (group, selectors) in groups.iter().enumerate() {
            let first = plans.len();
            for one in selectors {
                // Counted or not, a plan wants a period.
                let asked = Some(Sampling::Period(1));
                match one.selector.plan(asked, machine, tracefs) {
                    Ok(planned) => {
                        for plan in planned {
                            let event = CountedEvent {
                                name: one.name.clone(),
                                selector: plan.event.name,
                                source: plan.source,
                            };
                            let has_room =
                                |it: &&mut Self| it.lacks.is_none() && it.events.len() < MAX_FDS;
                            let mut open = plans[first..].iter_mut().filter(has_room);
                            match open.find(|it| it.cpus == plan.cpus) {
                                Some(known) => known.events.push(event),
                                None => plans.push(Self::new(vec![event], plan.cpus, group)),
                            }
                        }
                    }
                    Err(error) => plans.push(Self::lacking(one, group, &error)),
                }
            }
        }
        plans.iter_mut().for_each(Self::refuse_emptiness);
        plans
    }

    fn new(events: Vec<CountedEvent>, cpus: Option<Vec<i32>>, group: usize) -> Self {
        Self { events, cpus, group, lacks: None, is_settled: false }
    }

    /// A plan of an event that cannot be had.
    fn lacking(one: &CountedSelector, group: usize, error: &Error) -> Self {
        let event = CountedEvent {
            name: one.name.clone(),
            selector: one.selector.to_string(),
            source: EventSource::NOTHING,
        };
        Self { lacks: Some(error.to_string()), ..Self::new(vec![event], None, group) }
    }

    /// Tells whether it is to be opened on `cpu`.
    pub(crate) fn is_on(&self, cpu: i32) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu))
    }

    /// Says what it counts beside the target: what whole CPUs do besides, and whoever is not of those that were named.
    pub(crate) fn tell_scope(&mut self, is_whole: bool, is_named: bool) {
        let more = if is_whole && self.events.iter().any(CountedEvent::is_clock) {
            "of whole CPUs, idle time included"
        } else if is_named {
            "of all tasks, not only of those that were named"
        } else {
            return;
        };
        self.lacks.get_or_insert_with(|| more.to_owned());
    }

    /// Refuses it where it is of what only the kernel does, and that is left out: it would count nothing
    /// (`perf_exclude_event()` in Linux `kernel/events/core.c`).
    fn refuse_emptiness(&mut self) {
        let is_empty =
            |event: &CountedEvent| event.source.exclude_kernel && event.is_of_kernel_alone();
        if !self.is_settled && self.events.iter().any(is_empty) {
            let why = "it happens in the kernel, which is left out or may not be counted";
            self.lacks.get_or_insert_with(|| why.to_owned());
        }
    }

    /// Tells whether `other` is the same group on another kind of core.
    pub(crate) fn is_twin(&self, other: &Self) -> bool {
        self.cpus.is_some()
            && other.cpus.is_some()
            && self.group == other.group
            && self.cpus != other.cpus
    }

    /// Tells whether it cannot be had at all.
    pub(crate) const fn is_refused(&self) -> bool {
        !self.is_settled && self.lacks.is_some()
    }

    /// Leaves the kernel's side out. Whether there was anything to leave out.
    pub(crate) fn leave_kernel_out(&mut self) -> bool {
        let has_kernel = self.events.iter().any(|event| !event.source.exclude_kernel);
        let can = self.events.iter().all(|event| !event.source.exclude_user);
        if has_kernel && can {
            self.events.iter_mut().for_each(|event| event.source.exclude_kernel = true);
            self.refuse_emptiness();
        }
        has_kernel && can
    }
}
