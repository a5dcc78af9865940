//! Looks processes up in `/proc` on threads of its own: the mappings of one take a tenth of a second to
//! read if there are many, and as long as it keeps them locked, and rings are to be read meanwhile.

use crate::error::Error;
use crate::live::announce;
use crate::procfs::Procfs;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use dataspace_proto::record::Record;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::sync::Arc;
use std::thread;

/// Questions that wait for a thread.
const MAX_QUESTIONS: usize = 64;
/// Answers that wait for the reader: one may be of 65,530 mappings (`vm.max_map_count`), 10 MB.
const MAX_ANSWERS: usize = 2;
/// So many processes can each hold up the thread that reads of them, for ever if they wait for a file
/// system that is gone, and one that does not is still looked up, if one fewer do.
pub(crate) const MAX_THREADS: usize = 16;

/// What `/proc` says of a process.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) question: Question,
    /// Empty if it is gone.
    pub(crate) name: Box<[u8]>,
    pub(crate) n_threads: usize,
    /// Names of its threads, its namespace, its mappings.
    pub(crate) before: std::vec::IntoIter<Record>,
}

/// Which process is asked about, and the how manieth question it is: process numbers are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) pid: i32,
    pub(crate) number: u64,
}

/// The threads, and the way to them and back.
#[derive(Debug)]
pub(crate) struct Lookup {
    questions: Sender<Question>,
    answers: Receiver<Found>,
    bell: Arc<OwnedFd>,
    /// What a thread gets.
    desk: Desk,
    n_threads: usize,
}

#[derive(Clone, Debug)]
struct Desk {
    procfs: Procfs,
    questions: Receiver<Question>,
    answers: Sender<Found>,
    /// Readable when there are answers.
    bell: Arc<OwnedFd>,
}

impl Desk {
    /// Answers questions until nobody asks any more.
    fn serve(&self) {
        for question in &self.questions {
            let pid = question.pid;
            let found = Found {
                question,
                name: self.procfs.comm(pid, pid).unwrap_or_default(),
                n_threads: self.procfs.tasks(pid).map_or(1, |tids| tids.len()),
                before: announce::what_was_before(&[pid], &self.procfs).into_iter(),
            };
            if self.answers.send(found).is_err() {
                return;
            }
            // It cannot block: the counter is far from full.
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        }
    }
}

impl Lookup {
    /// A lookup in `procfs`, with its first thread.
    ///
    /// # Errors
    /// [`Error::System`] or [`Error::Thread`] if there is no descriptor or thread left.
    pub(crate) fn new(procfs: Procfs) -> Result<Self, Error> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| Error::System { call: "eventfd", errno })?;
        let bell = Arc::new(bell);
        let (questions, asked) = bounded(MAX_QUESTIONS);
        let (answered, answers) = bounded(MAX_ANSWERS);
        let desk = Desk { procfs, questions: asked, answers: answered, bell: Arc::clone(&bell) };
        let mut lookup = Self { questions, answers, bell, desk, n_threads: 0 };
        lookup.begin_thread().map_err(Error::Thread)?;
        Ok(lookup)
    }

    /// They end with the last question; one that is held up is not waited for.
    fn begin_thread(&mut self) -> Result<(), std::io::Error> {
        let desk = self.desk.clone();
        thread::Builder::new().name("lookup".to_owned()).spawn(move || desk.serve())?;
        self.n_threads += 1;
        Ok(())
    }

    /// Asks; whether there was room for the question.
    pub(crate) fn ask(&self, question: Question) -> bool {
        match self.questions.try_send(question) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }

    /// Whether every thread there may be is held up, if so many answers are overdue.
    pub(crate) const fn is_held_up(&self, n_overdue: usize) -> bool {
        self.n_threads >= MAX_THREADS && n_overdue >= MAX_THREADS
    }

    /// An answer is overdue: others get another thread, up to a bound.
    pub(crate) fn go_round(&mut self) {
        if self.n_threads < MAX_THREADS
            && let Err(error) = self.begin_thread()
        {
            tracing::warn!(%error, "processes are looked up by fewer threads");
        }
    }

    /// Ends the ringing, until there is another answer than those that can be [taken](Self::answer).
    pub(crate) fn hush(&self) {
        let mut n_rung = [0; 8];
        // It has rung or not.
        let _ = rustix::io::read(&self.bell, &mut n_rung);
    }

    /// An answer that is there.
    pub(crate) fn answer(&self) -> Option<Found> {
        self.answers.try_recv().ok()
    }

    /// Whether one is there.
    pub(crate) fn has_answer(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Readable when there may be answers.
    pub(crate) fn bell(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.bell)
    }
}
