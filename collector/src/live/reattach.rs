//! Closes the sampled events of a running session and opens them anew: a period that inherited
//! events are to have, or another control group of the same name.

use crate::live::attach::Attacher;
use crate::live::permission::close_unseen;
use crate::live::reader::{self, Reader, Watch};
use crate::sys::attr::Binding;
use dataspace_proto::batch::BatchSender;

impl Reader {
    /// Opens all sampled events again. What the old ones saw is counted; in the milliseconds in
    /// between nothing is seen, but for the births, whose processes are opened too.
    pub(super) fn reattach(&mut self, watch: &Watch<'_>) {
        reader::disable(&self.events);
        self.read_all();
        self.close_doubled();
        // The places of events in their list are part of what waits: nothing may.
        let until_ns = self.drain.merge.last_time_ns().unwrap_or(0);
        self.hand_on(until_ns, BatchSender::flush_or_drop_samples);
        self.drain.tally.close(&self.events);
        self.events.clear();
        self.drain.ids.clear();
        self.drain.suspects.clear();
        self.drain.saw_birth = false;
        if let Err(error) = self.open_again(watch) {
            self.warn(format!("not all events could be opened again: {error}"));
        }
        self.rest_again();
    }

    fn open_again(&mut self, watch: &Watch<'_>) -> Result<(), crate::error::Error> {
        // A command that was to begin with exec has done so.
        let binding = Binding { enable_on_exec: false, ..self.binding };
        let has_side_band = !self.side_band.is_empty();
        let mut attacher =
            Attacher::new(&self.procfs, &mut self.plans, &mut self.rings, binding, self.features);
        if has_side_band {
            attacher = attacher.without_side_band();
        }
        let result = match &self.group {
            Some(group) => attacher.cpus(Some(group.directory())),
            None if binding.is_cpu_wide => attacher.cpus(None),
            // Single threads have no heirs.
            None if !binding.inherit => attacher.tasks(watch.watched),
            None => {
                let mut pids = self.gate.members();
                // A child may have executed a set-uid program, which took the kernel's events away.
                if let Some(permission) = &self.permission {
                    pids.retain(|&pid| permission.may_see(pid));
                }
                attacher.processes(pids)
            }
        };
        let mut attached = attacher.finish();
        if let Some(permission) = &self.permission {
            close_unseen(&**permission, &mut attached.events);
        }
        self.events = attached.events;
        self.drain.ids = attached.ids;
        self.drain.suspects = attached.suspects;
        self.side_band.extend(attached.side_band);
        for record in attached.early {
            self.drain.early(record);
        }
        for warning in attached.warnings {
            self.warn(warning);
        }
        result
    }
}
