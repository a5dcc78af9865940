//! Looks processes up in `/proc` on threads of its own: the mappings of one take a tenth of a second to
//! read if there are many, and as long as it keeps them locked, and rings are to be read meanwhile.

pub(crate) mod before;
pub(crate) mod gate;
pub(crate) mod process;

use crate::error::Error;
use crate::quota::places::{Place, Places};
use crate::system::procfs::Procfs;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use dataspace_proto::record::Record;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Questions that wait for a thread.
const MAX_QUESTIONS: usize = 64;
/// Answers that wait for the reader: one may be of 65,530 mappings (`vm.max_map_count`), 10 MB.
const MAX_ANSWERS: usize = 2;
/// So many processes can each hold up the thread that reads of them, for ever if they wait for a file
/// system that is gone, and one that does not is still looked up, if one fewer do.
pub(crate) const MAX_THREADS: usize = 16;
/// The same, of the whole process: threads that are held up stay when their session has ended.
static THREADS: Places = Places::new(64);
/// Long answers, of more than some 2,500 mappings, that there are at once in the whole process, from when
/// they are read until all of them is told. Else all threads that are let go together would have one each.
static LONG_ANSWERS: Places = Places::new(3);
/// Time that such a place is waited for. Then the answer is cut short: one who has it may be held up.
const MAX_LONG_WAIT: Duration = Duration::from_secs(1);
/// A thread that nothing was asked of for so long ends, if another one waits for questions too.
const MAX_IDLE: Duration = Duration::from_secs(1);

/// Answer of `/proc` about a process.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) question: Question,
    /// Empty if it is gone.
    pub(crate) name: Box<[u8]>,
    pub(crate) n_threads: usize,
    /// Names of its threads, its namespace, its mappings.
    pub(crate) before: std::vec::IntoIter<Record>,
    /// Places for long answers.
    _long: Option<Place>,
}

/// The process asked about, and the number of the question: process numbers are used again.
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
    /// Work of a thread.
    desk: Desk,
    places: &'static Places,
}

#[derive(Clone, Debug)]
struct Desk {
    procfs: Procfs,
    questions: Receiver<Question>,
    answers: Sender<Found>,
    /// Readable when there are answers.
    bell: Arc<OwnedFd>,
    n_threads: Arc<AtomicUsize>,
    /// Those that wait for a question: the others are at work, or held up.
    n_idle: Arc<AtomicUsize>,
    long_answers: &'static Places,
}

impl Desk {
    /// Answers questions until nobody asks any more, or others are enough for those who do.
    fn serve(&self, _place: Place) {
        while let Some(question) = self.next() {
            if self.answers.send(self.find(question)).is_err() {
                return;
            }
            // It cannot block: the counter is far from full.
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        }
    }

    fn find(&self, question: Question) -> Found {
        let Self { procfs, long_answers, .. } = self;
        let pid = question.pid;
        let mut long = None;
        let mut may_be_long =
            || long.get_or_insert_with(|| long_answers.take_within(None, MAX_LONG_WAIT)).is_some();
        Found {
            question,
            name: procfs.comm(pid, pid).unwrap_or_default(),
            n_threads: procfs.tasks(pid).map_or(1, |tids| tids.len()),
            before: process::of_process(pid, procfs, &mut may_be_long).into_iter(),
            _long: long.flatten(),
        }
    }

    /// The next question for this thread; `None` when it is to end.
    fn next(&self) -> Option<Question> {
        self.n_idle.fetch_add(1, Ordering::Relaxed);
        loop {
            match self.questions.recv_timeout(MAX_IDLE) {
                Ok(question) => {
                    self.n_idle.fetch_sub(1, Ordering::Relaxed);
                    return Some(question);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
            let fewer = |n_idle: usize| (n_idle > 1).then(|| n_idle - 1);
            if self.n_idle.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).is_ok() {
                self.n_threads.fetch_sub(1, Ordering::Relaxed);
                return None;
            }
        }
    }
}

impl Lookup {
    /// A lookup in `procfs`, with its first thread.
    ///
    /// # Errors
    /// [`Error::System`] or [`Error::Thread`] if there is no descriptor or thread left.
    pub(crate) fn new(procfs: Procfs) -> Result<Self, Error> {
        Self::within(&THREADS, &LONG_ANSWERS, procfs)
    }

    fn within(
        places: &'static Places,
        long_answers: &'static Places,
        procfs: Procfs,
    ) -> Result<Self, Error> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| Error::System { call: "eventfd", errno })?;
        let bell = Arc::new(bell);
        let (questions, asked) = bounded(MAX_QUESTIONS);
        let (answered, answers) = bounded(MAX_ANSWERS);
        let desk = Desk {
            procfs,
            questions: asked,
            answers: answered,
            bell: Arc::clone(&bell),
            n_threads: Arc::default(),
            n_idle: Arc::default(),
            long_answers,
        };
        // No session is without one.
        let place = places.take_anyhow(None);
        let lookup = Self { questions, answers, bell, desk, places };
        lookup.begin_thread(place).map_err(Error::Thread)?;
        Ok(lookup)
    }

    /// They end with the last question; one that is held up is not waited for.
    fn begin_thread(&self, place: Place) -> Result<(), std::io::Error> {
        let desk = self.desk.clone();
        // Counted first: it may be idle before we go on.
        self.desk.n_threads.fetch_add(1, Ordering::Relaxed);
        let thread = thread::Builder::new().name("lookup".to_owned());
        let begun = thread.spawn(move || desk.serve(place));
        if begun.is_err() {
            self.desk.n_threads.fetch_sub(1, Ordering::Relaxed);
        }
        begun.map(drop)
    }

    /// Number of threads.
    fn n_threads(&self) -> usize {
        self.desk.n_threads.load(Ordering::Relaxed)
    }

    /// Asks; whether there was room for the question.
    pub(crate) fn ask(&self, question: Question) -> bool {
        self.questions.try_send(question).is_ok()
    }

    /// Tells whether every thread there may be is held up, if so many answers are overdue.
    pub(crate) fn is_held_up(&self, n_overdue: usize) -> bool {
        let n_threads = self.n_threads();
        let is_last = n_threads >= MAX_THREADS || !self.places.has_room(None);
        is_last && n_overdue >= n_threads
    }

    /// An answer is overdue: others get another thread, up to a bound.
    pub(crate) fn go_round(&self) {
        if self.n_threads() < MAX_THREADS
            && let Some(place) = self.places.take(None)
            && let Err(error) = self.begin_thread(place)
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

    /// Tells whether one is there.
    pub(crate) fn has_answer(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Readable when there may be answers.
    pub(crate) fn bell(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.bell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn threads_that_are_not_needed_any_more_end_but_for_one() {
        static PLACES: Places = Places::new(64);
        let procfs = Procfs::default();
        let lookup = Lookup::within(&PLACES, &LONG_ANSWERS, procfs).unwrap();
        for _ in 0..40 {
            lookup.go_round();
        }
        assert!(lookup.n_threads() <= MAX_THREADS);
        let deadline = Instant::now() + Duration::from_secs(60);
        while lookup.n_threads() > 1 && Instant::now() < deadline {
            thread::yield_now();
        }
        let own = std::process::id() as i32;
        assert!(lookup.ask(Question { pid: own, number: 7 }));
        while !lookup.has_answer() && Instant::now() < deadline {
            thread::yield_now();
        }
        let found = lookup.answer().expect("one thread is left");
        assert_eq!((found.question.number, lookup.n_threads()), (7, 1));
        assert!(found.n_threads >= 2, "this one and that of the lookup");
    }

    #[test]
    fn processes_that_are_held_up_take_threads_until_they_come_back() {
        static PLACES: Places = Places::new(4);
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("7/task/7")).unwrap();
        // Whoever opens it waits for who writes.
        let maps = root.path().join("7/maps");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &maps, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let begin = || Lookup::within(&PLACES, &LONG_ANSWERS, Procfs::new(root.path())).unwrap();
        // Each session ends when its thread is held up.
        while PLACES.has_room(None) {
            let lookup = begin();
            assert!(lookup.ask(Question { pid: 7, number: 0 }));
            while !lookup.questions.is_empty() {
                thread::yield_now();
            }
        }
        let next = begin();
        next.go_round();
        assert_eq!(next.n_threads(), 1, "each session has one, and no more");
        assert!(next.is_held_up(1) && !next.is_held_up(0));
        drop(next);
        std::fs::write(&maps, "").unwrap();
        // They come back, one after the other, as each reads to the end.
        while PLACES.take(None).is_none() {
            thread::yield_now();
        }
    }

    #[test]
    fn long_answers_are_few_at_once() {
        static LONG: Places = Places::new(1);
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("7/task/7")).unwrap();
        let line = |n: u64| format!("{:x}-{:x} r-xp 0 00:00 0 /lib\n", n << 12, (n + 1) << 12);
        std::fs::write(root.path().join("7/maps"), (1..20_000).map(line).collect::<String>())
            .unwrap();
        let lookup = Lookup::within(&THREADS, &LONG, Procfs::new(root.path())).unwrap();
        let answer = |number| {
            assert!(lookup.ask(Question { pid: 7, number }));
            loop {
                if let Some(found) = lookup.answer() {
                    break found;
                }
                thread::yield_now();
            }
        };
        let n_mappings = |found: &Found| {
            found.before.as_slice().iter().filter(|one| matches!(one, Record::Mmap(_))).count()
        };
        let first = answer(1);
        assert_eq!(n_mappings(&first), 19_999);
        let second = answer(2);
        assert!((1_000..19_999).contains(&n_mappings(&second)), "cut: the first is not told yet");
        let says = |record: &Record| matches!(record, Record::Warning(text) if text.contains("more mappings"));
        assert!(second.before.as_slice().iter().any(says));
        drop(first);
        assert_eq!(n_mappings(&answer(3)), 19_999);
    }
}
