//! Cost of events for a task in its life, to be born with them and to end with them: measured on
//! children of our own.

use crate::access::{self, EventPlace};
use crate::event::EventPlan;
use crate::event::attr::{self, Binding, KernelFeatures};
use crate::sys::clock::now_ns;
use crate::sys::mmap::MappedRing;
use crate::sys::open;
use crate::sys::spawn;
use crate::system::procfs::Procfs;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;

/// Each figure is the least of several runs: whatever disturbs a run makes it longer. There are so many at
/// least.
const MIN_RUNS: usize = 4;
/// And at most, as long as they take no longer than [`PATIENCE_NS`].
const MAX_RUNS: usize = 32;
/// Time that runs may take: a session begins after them.
const PATIENCE_NS: u64 = 20_000_000;
/// Events on so many CPUs are enough to tell what one costs.
const MAX_CPUS: usize = 4;
/// Pages of a ring that nobody reads.
const RING_PAGES: usize = 1;

/// Time that one event adds to the life of a task, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LifeCost {
    /// To its birth, if it is inherited.
    pub(crate) birth_ns: u64,
    /// To its end, inherited or opened on it: they differ by less than runs do.
    pub(crate) end_ns: u64,
}

impl LifeCost {
    /// Measured on a virtual machine; used until, and where, nothing is measured.
    pub(crate) const USUAL: Self = Self { birth_ns: 5_000, end_ns: 5_000 };

    /// Measures what an event of these plans costs a child of this thread, on the mean.
    ///
    /// # Errors
    /// What the kernel said where it let no events be opened, or no child be born.
    pub(crate) fn measure(
        plans: &[EventPlan],
        cpus: &[i32],
        features: KernelFeatures,
    ) -> Result<Self, Errno> {
        let without = Life::shortest()?;
        let heritage = Heritage::open(plans, &cpus[..cpus.len().min(MAX_CPUS)], features)?;
        let with = Life::shortest()?;
        let n_events = heritage.events.len().max(1) as u64;
        Ok(Self {
            birth_ns: with.birth_ns.saturating_sub(without.birth_ns) / n_events,
            end_ns: with.end_ns.saturating_sub(without.end_ns) / n_events,
        })
    }
}

/// Events of this thread that its children inherit, as those of a target are.
#[derive(Debug)]
struct Heritage {
    events: Vec<OwnedFd>,
    /// Held open and mapped: where the events write.
    _outputs: Vec<(OwnedFd, MappedRing)>,
}

impl Heritage {
    fn open(plans: &[EventPlan], cpus: &[i32], features: KernelFeatures) -> Result<Self, Errno> {
        let binding = Binding { inherit: true, ..Binding::default() };
        let (mut events, mut outputs) = (Vec::new(), Vec::new());
        for &cpu in cpus {
            let place = EventPlace::own_thread(cpu);
            let output = access::event(&attr::ring_owner(1), place)?;
            // Before there is a ring nothing can be sent to it.
            let ring = MappedRing::new(output.as_fd(), RING_PAGES)?;
            let sampled = plans.iter().filter(|plan| plan.is_on(cpu));
            let attrs = sampled.map(|plan| attr::sampled(&plan.source, binding, features));
            for attr in attrs.chain([attr::side_band(features, true)]) {
                let event = access::event(&attr, place)?;
                open::set_output(event.as_fd(), output.as_fd())?;
                events.push(event);
            }
            outputs.push((output, ring));
        }
        Ok(Self { events, _outputs: outputs })
    }
}

/// Times that a child took to be born, and to end.
#[derive(Clone, Copy, Debug)]
struct Life {
    birth_ns: u64,
    end_ns: u64,
}

impl Life {
    /// The life of a child that does nothing, without what either of us waited for a CPU: where all are busy
    /// that is milliseconds.
    fn lead() -> Result<Self, Errno> {
        let own = rustix::thread::gettid().to_string();
        let procfs = Procfs::default();
        let delay_ns = |task: &str| procfs.delay_ns(task);
        let (delayed_ns, began_ns) = (delay_ns(&own), now_ns());
        let child = spawn::idle()?;
        let birth_ns = now_ns() - began_ns;
        let birth_delay_ns = delay_ns(&own).saturating_sub(delayed_ns);
        let task = child.pid().to_string();
        let both_delayed_ns = || delay_ns(&own) + delay_ns(&task);
        let (delayed_ns, ending_ns) = (both_delayed_ns(), now_ns());
        child.end()?;
        let end_ns = now_ns() - ending_ns;
        let end_delay_ns = both_delayed_ns().saturating_sub(delayed_ns);
        Ok(Self {
            birth_ns: birth_ns.saturating_sub(birth_delay_ns),
            end_ns: end_ns.saturating_sub(end_delay_ns),
        })
    }

    /// The least of several, of each part.
    fn shortest() -> Result<Self, Errno> {
        let (mut shortest, began_ns) = (Self::lead()?, now_ns());
        for n_runs in 1..MAX_RUNS {
            if n_runs >= MIN_RUNS && now_ns() - began_ns > PATIENCE_NS {
                break;
            }
            let life = Self::lead()?;
            shortest.birth_ns = shortest.birth_ns.min(life.birth_ns);
            shortest.end_ns = shortest.end_ns.min(life.end_ns);
        }
        Ok(shortest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::feature::kernel_features;
    use crate::event::EventSelector;
    use crate::system::machine::Machine;
    use crate::system::tracefs::Tracefs;
    use std::path::Path;

    #[test]
    fn what_an_event_costs_a_child_is_measured() {
        let root = Path::new("/");
        let (machine, tracefs) = (Machine::read(root), Tracefs::new(root));
        let plans = EventSelector::cpu_clock().plan(None, &machine, &tracefs).unwrap();
        let cpus = &machine.online_cpus[..1];
        let began_ns = now_ns();
        match LifeCost::measure(&plans, cpus, kernel_features()) {
            Ok(cost) => {
                println!("{cost:?}");
                // Several lives were measured in that time.
                assert!(cost.birth_ns + cost.end_ns < now_ns() - began_ns, "{cost:?}");
            }
            Err(errno @ (Errno::ACCESS | Errno::PERM | Errno::MFILE)) => {
                eprintln!("not run: {errno}");
            }
            Err(errno) => panic!("{errno}"),
        }
    }

    #[test]
    fn a_child_of_many_threads_at_once_ends_all_the_same() {
        let lives = || (0..50).filter(|_| Life::lead().is_ok()).count();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(lives)).collect();
            assert!(threads.into_iter().all(|thread| thread.join().unwrap() == 50));
        });
    }
}
