//! Closes the sampled events of a running session and opens them anew: a period that inherited
//! events are to have, another control group of the same name, or a CPU that came.

use crate::attach::{self, Attacher, NO_TASK};
use crate::channel::batch::BatchSender;
use crate::event::attr::Binding;
use crate::live::cpu_watch::CpuChange;
use crate::live::group_watch::GroupWatch;
use crate::live::reader::{self, Reader, Watch};
use crate::sys::clock::now_ns;

/// Interval at which all that waits is handed on: side-band records go on coming, and an event that was being
/// inherited while it was disabled may have made a last sample.
const MAX_SETTLING: usize = 3;

impl Reader {
    /// Opens all sampled events again. What the old ones saw is counted; in the milliseconds in
    /// between nothing is seen, but for the births, whose processes are opened too.
    pub(super) fn reattach(&mut self, watch: &Watch<'_>) {
        self.reattach_with(&[], watch);
    }

    /// The same, and opens side-band events on `new_cpus` beside those that are open.
    fn reattach_with(&mut self, new_cpus: &[i32], watch: &Watch<'_>) {
        // While events still count: a process may have to be looked up, for up to a second.
        let until_ns = now_ns();
        self.read_all();
        self.hand_on_all(until_ns, BatchSender::flush_or_drop_samples);
        reader::disable(&self.events);
        self.read_all();
        // The places of events in their list are part of what waits: nothing may.
        for _ in 0..MAX_SETTLING {
            self.close_doubled();
            let Some(until_ns) = self.drain.merge.last_time_ns() else { break };
            self.hand_on_all(until_ns, BatchSender::flush_or_drop_samples);
        }
        self.drain.tally.close(&self.events);
        self.end_varying(until_ns);
        self.events.clear();
        // What is on threads counts them on every CPU, and goes on.
        if self.counts_cpus() {
            self.counts.close(&self.groups);
            self.groups.clear();
        }
        self.drain.ids.clear();
        // Those whose counters go on may count twice still.
        let groups = &self.groups;
        let is_counted = |tid: &i32| groups.iter().any(|it| it.tid == *tid && !it.fds.is_empty());
        self.drain.suspects.retain(is_counted);
        self.drain.first_birth_ns = None;
        if !self.binding.is_cpu_wide {
            self.drain.tally.set_cpus(&self.plans, self.rings.outputs.len());
        }
        if let Err(error) = self.open_again(new_cpus, watch) {
            self.warn(format!("not all events could be opened again: {error}"));
        }
        self.rest_again();
    }

    /// Covers CPUs that came on line. Those that went are covered by the events of tasks when they
    /// are back, and by new ones where events are on whole CPUs.
    pub(super) fn look_after_cpus(&mut self, watch: &Watch<'_>) {
        let CpuChange { came, went } = self.cpu_watch.check();
        if self.binding.is_cpu_wide {
            for cpu in went {
                self.warn(format!("CPU {cpu} went off line; when it is back, it is seen again"));
            }
        }
        let mut new_cpus = Vec::new();
        for cpu in came {
            // What was open on a whole CPU ended when that went off line.
            self.side_band.retain(|open| (open.pid, open.cpu) != (NO_TASK, cpu));
            let has_ring = self.rings.outputs.iter().any(|output| output.cpu == cpu);
            let added = if has_ring { Ok(()) } else { self.rings.add(cpu, &self.procfs) };
            match added {
                Ok(()) if has_ring && !self.binding.is_cpu_wide => self.hear_machine_on(cpu),
                Ok(()) => new_cpus.push(cpu),
                Err(error) => {
                    self.warn(format!("CPU {cpu} came on line, and is not seen: {error}"));
                }
            }
        }
        if new_cpus.is_empty() {
            return;
        }
        self.reattach_with(&new_cpus, watch);
        for cpu in new_cpus {
            self.warn(format!("CPU {cpu} came on line, and is seen from now on"));
        }
    }

    /// Tells whether what is counted is counted on whole CPUs: where those are sampled, threads may be counted one by one.
    pub(super) fn counts_cpus(&self) -> bool {
        self.binding.is_cpu_wide && self.groups.iter().all(|group| group.tid == NO_TASK)
    }

    /// Asks for what the kernel tells of itself on a CPU that is back.
    fn hear_machine_on(&mut self, cpu: i32) {
        // For a user it was not opened: it is not only of his processes.
        if self.is_confined {
            return;
        }
        let output = self.rings.outputs.iter().find(|output| output.cpu == cpu);
        let machine = output.and_then(|output| attach::machine_on(output, self.features));
        self.side_band.extend(machine);
    }

    fn open_again(
        &mut self,
        new_cpus: &[i32],
        watch: &Watch<'_>,
    ) -> Result<(), crate::error::Error> {
        // A command that was to begin with exec has done so.
        let binding = Binding { enable_on_exec: false, ..self.binding };
        let has_side_band = !self.side_band.is_empty();
        let counts_cpus = self.counts_cpus();
        let mut attacher =
            Attacher::new(&self.procfs, &mut self.plans, &mut self.rings, binding, self.features)
                .confined(self.is_confined);
        if has_side_band {
            attacher = attacher.with_side_band_on(new_cpus);
        }
        if counts_cpus {
            attacher = attacher.counting(&mut self.counted);
        }
        let result = if binding.is_cpu_wide {
            let group = self.group.as_ref().map(GroupWatch::directory);
            attacher.count_cpus(group);
            attacher.cpus(group)
        } else if !binding.inherit {
            // Single threads have no heirs.
            attacher.tasks(watch.watched)
        } else {
            // A child may have executed a set-uid program, which took the kernel's events away: the broker has none
            // for us then.
            attacher.processes(self.gate.members())
        };
        let attached = attacher.finish();
        self.events = attached.events;
        self.groups.extend(attached.groups);
        self.drain.ids = attached.ids;
        self.drain.suspects.extend(attached.suspects);
        self.side_band.extend(attached.side_band);
        for record in attached.early {
            self.drain.early(record);
        }
        if let Some(lives) = &mut self.drain.lives {
            lives.opened(&self.events);
        }
        for cpu in attached.offline {
            self.cpu_watch.is_off(cpu);
        }
        for warning in attached.warnings {
            self.warn(warning);
        }
        result
    }
}
