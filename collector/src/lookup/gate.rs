//! Lets records of the target through, and those of others not; has processes that nothing is known of
//! looked up when their first sample comes, and lets that wait for the answer, but not for long.

use crate::error::Error;
use crate::lookup::{Found, Lookup, Question};
use crate::system::procfs::Procfs;
use crate::target::membership::{Membership, Standing};
use dataspace_proto::record::Record;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use std::collections::HashMap;
use std::sync::Arc;

/// Greatest age of a sample that waits for its process to be looked up: reading 65,530 mappings takes
/// a tenth of that. All that is younger waits with it, for order's sake.
const MAX_WAIT_NS: u64 = 1_000_000_000;
/// So many records may come meanwhile: 23 MB.
const MAX_WAITING: usize = 32_768;
/// Processes asked about at once: those whose answers are overdue, and one.
const MAX_ASKED: usize = 64;
/// Mappings and names of a process that are kept for an answer that is overdue.
const MAX_KEPT: usize = 4_096;
/// Records that are told of processes between two looks at the rings: each takes a slot, and slots that
/// are made take a microsecond or two.
const MAX_TOLD: usize = 2_048;
/// Longest wait for an answer, between two looks at the rings.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// Fate of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is of the target.
    Admitted,
    /// It is another's.
    Outside,
    /// It is not known yet: the record, and all after it, is to be shown again.
    Waits,
}

/// State while records are handed on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) time_ns: u64,
    /// Records that wait for their turn.
    pub(crate) n_waiting: usize,
}

/// The processes whose records reach the analyzer.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    membership: Membership,
    /// `None` where nothing but the target's own can come: no sample has to be asked about.
    lookup: Option<Lookup>,
    asked: HashMap<i32, Asked>,
    /// An answer of which a part was told.
    telling: Option<Found>,
    n_questions: u64,
    is_waiting: bool,
    /// Samples that were not kept waiting, though nothing was told of their processes.
    n_untold: u64,
}

/// A process that is being looked up.
#[derive(Debug)]
struct Asked {
    question: u64,
    n_waiting: usize,
    /// Its samples are not kept waiting any more.
    is_overdue: bool,
    /// Records of it since then, to be told after the answer.
    kept: Vec<Record>,
}

impl Gate {
    /// `is_open` where the kernel shows nothing but the target.
    ///
    /// # Errors
    /// [`Error::System`] or [`Error::Thread`] if there is no descriptor or thread left.
    pub(crate) fn new(
        membership: Membership,
        procfs: Procfs,
        is_open: bool,
    ) -> Result<Self, Error> {
        let lookup = if is_open { None } else { Some(Lookup::new(procfs)?) };
        Ok(Self { membership, lookup, ..Self::default() })
    }

    /// Tells whether every sample is of the target: none has to be looked at.
    pub(crate) const fn is_open(&self) -> bool {
        self.lookup.is_none()
    }

    /// Tells whether `record` is of the target.
    pub(crate) fn admits(&mut self, record: &Record, moment: Moment) -> Verdict {
        let is_admitted = match record {
            Record::Sample(_) if self.lookup.is_none() => true,
            Record::Sample(sample) => match self.membership.standing(sample.pid) {
                Standing::Member => true,
                Standing::Outsider => false,
                Standing::Stranger if self.waits(sample.pid, sample.time_ns, moment) => {
                    self.is_waiting = true;
                    return Verdict::Waits;
                }
                Standing::Stranger => {
                    self.n_untold += 1;
                    self.membership.may_belong(sample.pid)
                }
            },
            _ => {
                if !self.asked.is_empty() {
                    self.keep(record);
                }
                self.membership.learn(record) || self.lookup.is_none()
            }
        };
        if is_admitted { Verdict::Admitted } else { Verdict::Outside }
    }

    /// Asks about a process, once. Whether its sample of `time_ns` has to wait for the answer.
    fn waits(&mut self, pid: i32, time_ns: u64, moment: Moment) -> bool {
        let Some(lookup) = &mut self.lookup else { return false };
        if !self.asked.contains_key(&pid) {
            let question = Question { pid, number: self.n_questions };
            if self.asked.len() >= MAX_ASKED || !lookup.ask(question) {
                return false;
            }
            self.n_questions += 1;
            let n_overdue = self.asked.values().filter(|asked| asked.is_overdue).count();
            let asked = Asked {
                question: question.number,
                n_waiting: moment.n_waiting,
                // Nobody reads of it soon: it is told of when a thread comes back.
                is_overdue: lookup.is_held_up(n_overdue),
                kept: Vec::new(),
            };
            self.asked.insert(pid, asked);
        }
        let Some(asked) = self.asked.get_mut(&pid) else { return false };
        let is_overdue = moment.time_ns.saturating_sub(time_ns) >= MAX_WAIT_NS
            || moment.n_waiting.saturating_sub(asked.n_waiting) >= MAX_WAITING;
        if is_overdue && !asked.is_overdue {
            asked.is_overdue = true;
            lookup.go_round();
        }
        !asked.is_overdue
    }

    /// Keeps what is told of a process whose answer is overdue: that may be older.
    fn keep(&mut self, record: &Record) {
        let (pid, is_over) = match record {
            Record::Mmap(mmap) => (mmap.pid, false),
            Record::Namespace(namespace) => (namespace.pid, false),
            // What was mapped before exec is gone.
            Record::Comm(comm) => (comm.pid, comm.is_exec),
            // Another process has the number.
            Record::Fork(fork) => (fork.pid, fork.pid != fork.parent_pid),
            _ => return,
        };
        let Some(asked) = self.asked.get_mut(&pid) else { return };
        if is_over || asked.kept.len() >= MAX_KEPT {
            // One that is still a stranger is asked about again.
            self.asked.remove(&pid);
        } else if !matches!(record, Record::Fork(_)) {
            asked.kept.push(record.clone());
        }
    }

    /// Takes in what was found out since, and gives what has to be known of the target's processes to
    /// `push`, as of `time_ns`, up to which everything was handed on; at most [`MAX_TOLD`] records.
    pub(crate) fn take_answers(&mut self, time_ns: u64, mut push: impl FnMut(Record)) {
        self.is_waiting = false;
        let Some(lookup) = &self.lookup else { return };
        lookup.hush();
        let mut n_left = MAX_TOLD;
        while n_left != 0 {
            let Some(mut found) = self.telling.take().or_else(|| lookup.answer()) else { return };
            let Question { pid, number } = found.question;
            if self.asked.get(&pid).is_none_or(|asked| asked.question != number) {
                continue;
            }
            if self.membership.passes(&found.name) {
                for record in found.before.by_ref().take(n_left) {
                    n_left -= 1;
                    push(at(record, time_ns));
                }
                if found.before.len() != 0 {
                    self.telling = Some(found);
                    return;
                }
            }
            let kept = self.asked.remove(&pid).map(|asked| asked.kept).unwrap_or_default();
            if self.membership.add(pid, &found.name, found.n_threads, true) {
                kept.into_iter().for_each(|record| push(at(record, time_ns)));
            }
        }
    }

    /// Tells whether there is more to tell at once.
    pub(crate) fn is_telling(&self) -> bool {
        self.telling.is_some() || self.lookup.as_ref().is_some_and(Lookup::has_answer)
    }

    /// Tells whether a record was told to wait since answers were last taken.
    pub(crate) const fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Waits for an answer, for a moment.
    pub(crate) fn wait(&self) {
        let Some(bell) = self.bell().filter(|_| !self.is_telling()) else { return };
        // A signal ends the wait too.
        let _ = poll(&mut [PollFd::new(&bell, PollFlags::IN)], Some(&LOOK));
    }

    /// Readable when there may be answers.
    pub(crate) fn bell(&self) -> Option<Arc<OwnedFd>> {
        self.lookup.as_ref().map(Lookup::bell)
    }

    /// Samples that were not kept waiting, though nothing was told of their processes.
    pub(crate) const fn n_untold(&self) -> u64 {
        self.n_untold
    }

    /// The processes of the target that have not ended.
    pub(crate) fn members(&self) -> Vec<i32> {
        self.membership.members()
    }
}

/// `record` at another time: what is told late is not to go back.
fn at(mut record: Record, at_ns: u64) -> Record {
    match &mut record {
        Record::Mmap(mmap) => mmap.time_ns = at_ns,
        Record::Comm(comm) => comm.time_ns = at_ns,
        Record::Namespace(namespace) => namespace.time_ns = at_ns,
        _ => {}
    }
    record
}

#[cfg(test)]
#[path = "gate/tests.rs"]
mod tests;
