//! Lets records of the target through, and those of others not; looks up processes that nothing is
//! known of when their first sample comes.

use crate::live::announce;
use crate::membership::{Membership, Standing};
use crate::procfs::Procfs;
use dataspace_proto::record::Record;

/// Whose records reach the analyzer.
#[derive(Debug)]
pub(crate) struct Gate {
    membership: Membership,
    procfs: Procfs,
    /// Nothing but the target's own can come: no sample has to be asked about.
    is_open: bool,
}

impl Gate {
    /// `is_open` where the kernel shows nothing but the target.
    pub(crate) const fn new(membership: Membership, procfs: Procfs, is_open: bool) -> Self {
        Self { membership, procfs, is_open }
    }

    /// Whether every sample is of the target: none has to be looked at.
    pub(crate) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether `record` is of the target. What has to be known before it is given to `push`.
    pub(crate) fn admits(&mut self, record: &Record, push: impl FnMut(Record)) -> bool {
        match record {
            Record::Sample(_) if self.is_open => true,
            Record::Sample(sample) => match self.membership.standing(sample.pid) {
                Standing::Member => true,
                Standing::Outsider => false,
                Standing::Stranger => self.meet(sample.pid, sample.time_ns, push),
            },
            _ => self.membership.learn(record) || self.is_open,
        }
    }

    /// Looks up a process, once. Whether it is of the target.
    fn meet(&mut self, pid: i32, time_ns: u64, push: impl FnMut(Record)) -> bool {
        // One that is gone has no name: it belongs where every name does.
        let name = self.procfs.comm(pid, pid).unwrap_or_default();
        let n_threads = self.procfs.tasks(pid).map_or(1, |tids| tids.len());
        let is_member = self.membership.add(pid, &name, n_threads, true);
        if is_member {
            announce::what_was_before(&[pid], time_ns, &self.procfs).into_iter().for_each(push);
        }
        is_member
    }

    /// The processes of the target that have not ended.
    pub(crate) fn members(&self) -> Vec<i32> {
        self.membership.members()
    }
}
