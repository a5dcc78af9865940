//! Opens the groups of events that are counted beside the samples.
//!
//! On threads each group is open once, on whichever CPU its thread runs, and inherited; else it is open on each CPU. What
//! the kernel refuses is no reason not to sample: it is told in the place of the count.

use crate::access::{self, EventPlace};
use crate::attach::{Attacher, coverage};
use crate::error::Error;
use crate::event::attr::{self, Binding, KernelFeatures};
use crate::event::counted::CountPlan;
use crate::sys::open;
use crate::target::Watched;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use std::path::Path;

/// Counters that are open at most beside samples of whole CPUs: each takes a descriptor, and the exit of its thread longer.
const MAX_COUNTERS: usize = 16_384;

/// A group that is open on one thread, or on one CPU.
#[derive(Debug)]
pub(crate) struct OpenGroup {
    /// By event; none once it was found to double an inherited one.
    pub(crate) fds: Vec<OwnedFd>,
    /// The number of its plan.
    pub(crate) plan: usize,
    /// −1 where it counts all of a CPU's tasks, or those of a control group.
    pub(crate) tid: i32,
}

/// Opens `plan`, number `plan_idx`, in `place`, without the kernel's side where that is refused. `Ok(None)` where it is not
/// to be had: then the plan tells why.
///
/// # Errors
/// [`Errno::SRCH`] where the thread is gone.
pub(crate) fn open_group(
    plan: &mut CountPlan,
    plan_idx: usize,
    (binding, features): (Binding, KernelFeatures),
    place: EventPlace<'_>,
) -> Result<Option<OpenGroup>, Errno> {
    while !plan.is_refused() {
        let attrs: Vec<_> = plan
            .events
            .iter()
            .map(|event| attr::counted(&event.source, binding, features))
            .collect();
        match access::events(&attrs.iter().collect::<Vec<_>>(), place) {
            Ok(fds) => {
                plan.is_settled = true;
                return Ok(Some(OpenGroup { fds, plan: plan_idx, tid: place.tid() }));
            }
            Err(Errno::SRCH) => return Err(Errno::SRCH),
            // A CPU that is off line counts nothing.
            Err(Errno::NODEV) if plan.is_settled => return Ok(None),
            Err(Errno::ACCESS | Errno::PERM) if !plan.is_settled && plan.leave_kernel_out() => {}
            Err(errno) => {
                plan.lacks
                    .get_or_insert_with(|| refusal(errno, plan.events.len(), plan.is_settled));
                return Ok(None);
            }
        }
    }
    Ok(None)
}

/// Stops the counters; their values stay.
pub(crate) fn disable(groups: &[OpenGroup]) {
    for fd in groups.iter().flat_map(|group| &group.fds) {
        if let Err(errno) = open::disable(fd.as_fd()) {
            tracing::warn!(%errno, "a counter could not be disabled");
        }
    }
}

impl<'a> Attacher<'a> {
    /// An attacher that opens these groups too, to be counted beside the samples.
    pub(crate) fn counting(self, counted: &'a mut [CountPlan]) -> Self {
        Self { counted, ..self }
    }

    /// Number of the counters of each thread.
    pub(super) fn n_counters(&self) -> usize {
        self.counted.iter().map(|plan| plan.events.len()).sum()
    }

    /// Counts all tasks of every CPU, or those of `group`.
    pub(crate) fn count_cpus(&mut self, group: Option<&Path>) {
        for cpu_idx in 0..self.rings.outputs.len() {
            let cpu = self.rings.outputs[cpu_idx].cpu;
            self.groups(EventPlace::of_cpu(cpu, group), |plan| plan.is_on(cpu));
        }
    }

    /// Counts the threads of each of `watched` one by one, where samples are of whole CPUs, and there are not too many.
    pub(crate) fn count_tasks(&mut self, watched: &[Watched]) -> Result<(), Error> {
        let n_threads = coverage::n_threads(watched, self.procfs);
        if n_threads * self.n_counters() > MAX_COUNTERS {
            let why = format!("{n_threads} threads are too many to be counted one by one");
            for plan in self.counted.iter_mut() {
                plan.lacks.get_or_insert_with(|| why.clone());
            }
            return Ok(());
        }
        let of_samples = self.binding;
        self.only_counts = true;
        self.binding = Binding { inherit: true, is_cpu_wide: false, ..of_samples };
        let result = self.tasks(watched);
        (self.binding, self.only_counts) = (of_samples, false);
        result
    }

    /// Opens the groups that are on a place. Whether its thread is there.
    pub(super) fn groups(
        &mut self,
        place: EventPlace<'_>,
        is_on: impl Fn(&CountPlan) -> bool,
    ) -> bool {
        for (plan_idx, plan) in self.counted.iter_mut().enumerate() {
            if is_on(plan) {
                match open_group(plan, plan_idx, (self.binding, self.features), place) {
                    Ok(opened) => self.attached.groups.extend(opened),
                    Err(_) => return false,
                }
            }
        }
        true
    }
}

/// The reason that `errno` is for a group of so many events, in a person's words.
fn refusal(errno: Errno, n_events: usize, is_settled: bool) -> String {
    if is_settled {
        return format!("not counted on all threads: {errno}");
    }
    match errno {
        Errno::ACCESS | Errno::PERM => {
            format!("not permitted ({errno}): dataspace doctor tells what would allow it")
        }
        Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP | Errno::NOSYS => {
            format!("this machine does not count it ({errno})")
        }
        Errno::INVAL if n_events > 1 => {
            format!(
                "the processor does not count these {n_events} events at the same time ({errno})"
            )
        }
        errno => format!("the kernel refuses to count it ({errno})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventSelector;
    use crate::event::counted::CountedSelector;
    use crate::system::machine::Machine;
    use crate::system::tracefs::Tracefs;

    fn plans(events: &[&str]) -> Vec<CountPlan> {
        let selector = |text: &&str| CountedSelector {
            name: (*text).to_owned(),
            selector: EventSelector::parse(text).unwrap(),
        };
        let group = events.iter().map(selector).collect();
        CountPlan::all(&[group], &Machine::read(Path::new("/")), &Tracefs::new(Path::new("/")))
    }

    #[test]
    fn page_faults_are_counted_as_the_kernel_accounts_them() {
        const N_PAGES: usize = 500;
        let features = crate::attach::feature::kernel_features();
        let mut plans = plans(&["page-faults", "minor-faults", "major-faults"]);
        assert_eq!(plans.len(), 1);
        let place = EventPlace::own_thread(-1);
        let opened = open_group(&mut plans[0], 0, (Binding::default(), features), place).unwrap();
        let Some(group) = opened else {
            eprintln!("not run: {:?}", plans[0].lacks);
            return;
        };
        if plans[0].events[0].source.exclude_kernel {
            eprintln!("not run: faults of the kernel's copies cannot be counted here");
            return;
        }
        let count = |idx: usize| open::read_counts(&group.fds[idx]).unwrap().unwrap();
        let stat = std::fs::File::open("/proc/thread-self/stat").unwrap();
        // `minflt` and `majflt`, by proc_pid_stat(5).
        let accounted = || {
            let mut bytes = [0; 1024];
            let n_bytes = rustix::io::pread(&stat, &mut bytes, 0).unwrap();
            let text = std::str::from_utf8(&bytes[..n_bytes]).unwrap();
            let mut fields = text[text.rfind(')').unwrap() + 2..].split(' ').skip(7).step_by(2);
            let mut next = || fields.next().unwrap().parse::<u64>().unwrap();
            (next(), next())
        };
        // Once in vain: the code below has its own pages.
        for is_counted in [false, true] {
            let len = N_PAGES * 4096;
            let before = [count(0), count(1), count(2)].map(|it| it.value);
            let before_by_kernel = accounted();
            let touched = vec![1u8; len];
            let by_kernel = accounted();
            let after = [count(0), count(1), count(2)].map(|it| it.value);
            assert_eq!(touched[len - 1], 1);
            if is_counted {
                let grown = [0, 1, 2].map(|at| after[at] - before[at]);
                let minor = by_kernel.0 - before_by_kernel.0;
                let major = by_kernel.1 - before_by_kernel.1;
                assert_eq!(grown, [minor + major, minor, major]);
                assert!(minor >= 1, "{minor}");
            }
        }
        let times = count(0);
        assert_eq!(times.enabled_ns, times.running_ns);
    }

    #[test]
    fn what_is_not_there_says_so_and_stops_nobody() {
        let mut plans = plans(&["page-faults", "nonsense.event"]);
        assert_eq!(plans.len(), 2, "the one goes without the other");
        let features = crate::attach::feature::kernel_features();
        let (binding, place) = (Binding::default(), EventPlace::own_thread(-1));
        let refused = open_group(&mut plans[1], 1, (binding, features), place).unwrap();
        assert!(refused.is_none() && plans[1].is_refused(), "{plans:?}");
        let why = plans[1].lacks.clone().unwrap();
        assert!(why.contains("nonsense.event"), "{why}");
    }

    #[test]
    fn a_thread_that_is_gone_is_told_from_an_event_that_is_not_there() {
        let mut plans = plans(&["page-faults"]);
        let features = crate::attach::feature::kernel_features();
        // The highest number is 2^22 (`PID_MAX_LIMIT`).
        let place = EventPlace::Task { tid: 1 << 23, cpu: -1 };
        let opened = open_group(&mut plans[0], 0, (Binding::default(), features), place);
        assert_eq!(opened.err(), Some(Errno::SRCH));
        assert!(plans[0].lacks.is_none());
    }
}
