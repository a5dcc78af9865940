//! A thread for work that may never come back, such as reading a file from a FUSE mount: each job
//! has a deadline, and a thread that misses it is left behind.

use crate::lock::lock;
use crate::memory_bound::{self, NoTurn, Turn};
use dataspace_analyzer::index::question::Delay;
use dataspace_collector::quota::places::{Place, Places};
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Time that one job may take. Files come from the page cache or a disk; a network file system
/// that takes longer than this is as good as gone for a live view.
const DEADLINE: Duration = Duration::from_secs(5);

/// Interval at which it is checked whether it is over.
const LOOK: Duration = Duration::from_millis(50);

/// Threads of one session that may be left behind before its further work is refused.
const MAX_LEFT_BEHIND: usize = 8;

/// The same, of the whole process: sessions come and go. A session may be one above, for the job that it had begun.
static LEFT_BEHIND: Places = Places::new(64);

/// Comes and goes through channels of the standard library, which sleep at once. crossbeam's yield the CPU a few
/// times first, and where others want it each is a turn of theirs: beside six busy loops on two CPUs the first
/// name from a program on tmpfs took 27 s instead of 4.
type Job = Box<dyn FnOnce() + Send>;

/// End of a session's files, after which they give nothing more, and the turn of the index thread that reads
/// them.
#[derive(Debug, Default)]
pub(crate) struct FilesEnd {
    is_over: AtomicBool,
    /// Reason for which they give nothing to the question that is worked on.
    broken_off: Mutex<Option<Delay>>,
    turn: Turn,
}

impl FilesEnd {
    /// They are to give nothing from now on.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Tells whether they were told to.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// The turn of who reads them.
    pub(crate) const fn turn(&self) -> &Turn {
        &self.turn
    }

    /// Tells whether they give nothing of `n_bytes`. Where memory is used up, or somebody else has none for what
    /// was read, they do not until [`Self::was_broken_off`]: a question that went without a part of its
    /// answer goes without all of it.
    fn has_come(&self, n_bytes: usize) -> bool {
        if memory_bound::is_used_up(n_bytes) {
            self.break_off(Delay::TooLarge);
        }
        if self.turn.is_to_give_way() {
            self.break_off(Delay::NoRoom);
        }
        self.is_broken_off() || self.is_over()
    }

    /// Has the question go on that waited for a file, or breaks it off.
    fn go_on(&self) {
        let is_wanted = || !self.has_come(0);
        if !self.has_come(0) && self.turn.go_on(is_wanted) == Err(NoTurn::Late) {
            self.break_off(Delay::NoRoom);
        }
    }

    fn break_off(&self, delay: Delay) {
        lock(&self.broken_off).get_or_insert(delay);
    }

    fn is_broken_off(&self) -> bool {
        lock(&self.broken_off).is_some()
    }

    /// Tells whether anything was not read because there was no memory for it, since this was asked.
    pub(crate) fn was_broken_off(&self) -> Option<Delay> {
        lock(&self.broken_off).take()
    }
}

/// Runs jobs one at a time on a thread that can be given up.
#[derive(Debug)]
pub(crate) struct Expendable {
    deadline: Duration,
    places: &'static Places,
    /// As many more of it as threads were left behind and have not come back.
    left_behind: Arc<()>,
    /// True when it was told that there are too many of them.
    is_refusal_told: AtomicBool,
    /// Time from which nothing is run, or waited for, any more.
    end: Arc<FilesEnd>,
    thread: Mutex<Option<Sender<Job>>>,
}

/// Share of the bounds that a thread which was left behind takes until it comes back.
#[derive(Debug)]
struct LeftBehind {
    _of_process: Place,
    _of_session: Arc<()>,
}

/// Reason for which a job's value did not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missed {
    /// It panicked, and its thread is gone.
    Failed,
    /// It takes too long.
    Late,
    /// Nobody wants it any more.
    Over,
}

impl Expendable {
    /// One that runs jobs until the `end`.
    pub(crate) fn until(end: Arc<FilesEnd>) -> Self {
        Self {
            deadline: DEADLINE,
            places: &LEFT_BEHIND,
            left_behind: Arc::default(),
            is_refusal_told: AtomicBool::new(false),
            end,
            thread: Mutex::default(),
        }
    }

    /// Tells whether nothing is run any more.
    fn is_over(&self) -> bool {
        self.end.has_come(0)
    }

    /// Tells whether so many bytes are not to be read any more.
    pub(crate) fn refuses(&self, n_bytes: usize) -> bool {
        self.end.has_come(n_bytes)
    }

    /// Tells whether that is so for want of memory, or because it is over, and no fault of a file.
    pub(crate) fn is_given_up(&self) -> bool {
        self.end.is_broken_off() || self.end.is_over()
    }

    /// Reason for which a job gave nothing.
    pub(crate) fn silence(&self) -> &'static str {
        match (self.end.is_broken_off(), self.end.is_over()) {
            (true, _) => "memory is used up (--memory-max), so it is not read on",
            (_, true) => "the session ends",
            _ => "the file does not answer",
        }
    }

    /// Threads that were left behind and have not come back.
    fn n_left_behind(&self) -> usize {
        Arc::strong_count(&self.left_behind) - 1
    }

    fn has_room(&self) -> bool {
        let has_room = self.n_left_behind() < MAX_LEFT_BEHIND && self.places.has_room(None);
        if !has_room && !self.is_refusal_told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "as many readers as may be wait for files that do not answer: files of this session \
                 are not read until some do"
            );
        }
        has_room
    }

    /// Runs `job`, and gives its result; `None` if it does not return in time, or too many have not returned yet. Who
    /// waits long for it gives his room in memory to others meanwhile; `None` also if he gets none again.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let value = self.run_once(job);
        self.end.go_on();
        if self.is_given_up() {
            self.discard(value);
            return None;
        }
        value
    }

    /// Drops `value` on the thread, and does not wait for that: to close a file takes as long as its server likes.
    pub(crate) fn discard(&self, value: impl Send + 'static) {
        let mut thread = lock(&self.thread);
        if let Some(sender) = thread.take().or_else(spawn)
            && sender.send(Box::new(move || drop(value))).is_ok()
        {
            *thread = Some(sender);
        }
    }

    fn run_once<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let mut thread = lock(&self.thread);
        if self.is_over() || !self.has_room() {
            return None;
        }
        let sender = match thread.take() {
            Some(sender) => sender,
            None => spawn()?,
        };
        let (done, result) = channel();
        // Both have it, so that what is put in is given back by whoever leaves last.
        let parting: Arc<OnceLock<LeftBehind>> = Arc::default();
        let for_job = Arc::clone(&parting);
        let job: Job = Box::new(move || {
            let _parting = for_job;
            // Nobody listens any more if the deadline is over.
            let _ = done.send(job());
        });
        sender.send(job).ok()?;
        let missed = match self.wait(&result) {
            Ok(value) => {
                *thread = Some(sender);
                return Some(value);
            }
            Err(Missed::Failed) => return None,
            Err(missed) => missed,
        };
        let _ = parting.set(LeftBehind {
            _of_process: self.places.take_anyhow(None),
            _of_session: Arc::clone(&self.left_behind),
        });
        drop(parting);
        let value = result.try_recv().ok();
        if value.is_none() && missed == Missed::Late {
            tracing::warn!("a file does not answer: its reader is left behind");
        }
        value
    }

    /// Receives what comes in time, and before it is over.
    fn wait<T>(&self, result: &Receiver<T>) -> Result<T, Missed> {
        let began = Instant::now();
        let turn = self.end.turn();
        let mut look = turn.patience().min(LOOK);
        loop {
            let left = self.deadline.saturating_sub(began.elapsed());
            match result.recv_timeout(left.min(look)) {
                Ok(value) => {
                    turn.has_waited(began.elapsed());
                    return Ok(value);
                }
                Err(RecvTimeoutError::Disconnected) => return Err(Missed::Failed),
                Err(RecvTimeoutError::Timeout) if self.is_over() => return Err(Missed::Over),
                Err(RecvTimeoutError::Timeout) if left <= look => return Err(Missed::Late),
                Err(RecvTimeoutError::Timeout) => {
                    turn.interrupt();
                    look = LOOK;
                }
            }
        }
    }
}

/// A file that jobs read, and that a job closes.
#[derive(Debug)]
pub(crate) struct Lent {
    /// There until it is dropped.
    file: Option<Arc<File>>,
    expendable: Arc<Expendable>,
}

impl Lent {
    /// The `file`, which `expendable` closes in the end.
    pub(crate) fn new(file: File, expendable: Arc<Expendable>) -> Self {
        Self { file: Some(Arc::new(file)), expendable }
    }

    /// The thread for jobs on it.
    pub(crate) fn expendable(&self) -> &Expendable {
        &self.expendable
    }

    /// The file, for one job or a call that does not wait.
    pub(crate) fn file(&self) -> Option<Arc<File>> {
        self.file.clone()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.expendable.discard(self.file.take());
    }
}

fn spawn() -> Option<Sender<Job>> {
    let (sender, receiver) = channel::<Job>();
    std::thread::Builder::new()
        .name("file-reader".to_owned())
        .spawn(move || receiver.into_iter().for_each(|job| job()))
        .ok()?;
    Some(sender)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam_channel::{Receiver, Sender, bounded};

    fn hasty() -> Expendable {
        let expendable = Expendable::until(Arc::default());
        Expendable { deadline: Duration::from_millis(10), ..expendable }
    }

    /// A message that never comes while the other end is there.
    fn never() -> (Sender<()>, Receiver<()>) {
        bounded(0)
    }

    /// Has a job run that begins, and ends when the other end of `wait` is gone.
    fn hang(expendable: &Expendable, wait: &Receiver<()>) -> Option<bool> {
        let wait = wait.clone();
        expendable.run(move || wait.recv().is_ok())
    }

    /// Waits until all threads of it have come back.
    fn come_back(expendable: &Expendable) {
        while expendable.n_left_behind() != 0 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_job_that_never_ends_costs_a_thread_and_no_more() {
        static PLACES: Places = Places::new(64);
        let expendable = Expendable { places: &PLACES, ..hasty() };
        let (held, wait) = never();
        for _ in 0..MAX_LEFT_BEHIND {
            assert_eq!(hang(&expendable, &wait), None);
        }
        assert_eq!(expendable.run(|| 7), None, "too many were left behind");
        // They come back, as from a server that is there again.
        drop(held);
        come_back(&expendable);
        let patient = Expendable { deadline: Duration::MAX, ..expendable };
        assert_eq!(patient.run(|| 7), Some(7));
    }

    #[test]
    fn what_is_over_waits_for_nothing() {
        let end = Arc::<FilesEnd>::default();
        let expendable = Expendable::until(end.clone());
        let expendable = Arc::new(Expendable { deadline: Duration::MAX, ..expendable });
        let (held, wait) = never();
        let (begun, has_begun) = bounded(1);
        let waiting = std::thread::spawn({
            let expendable = Arc::clone(&expendable);
            move || {
                expendable.run(move || {
                    let _ = begun.send(());
                    wait.recv().is_ok()
                })
            }
        });
        has_begun.recv().unwrap();
        end.end();
        assert_eq!(waiting.join().unwrap(), None);
        assert_eq!(expendable.n_left_behind(), 1, "it is there still");
        assert_eq!(expendable.run(|| 7), None);
        drop(held);
        come_back(&expendable);
    }

    /// Two threads' files, where there is room for one of them to work.
    fn rivals(deadline: Duration) -> [Arc<FilesEnd>; 2] {
        Turn::with_room_for_one(deadline)
            .map(|turn| Arc::new(FilesEnd { turn, ..FilesEnd::default() }))
    }

    fn patient(end: &Arc<FilesEnd>) -> Expendable {
        let expendable = Expendable::until(Arc::clone(end));
        Expendable { deadline: Duration::MAX, ..expendable }
    }

    #[test]
    fn who_waits_for_a_slow_file_leaves_the_memory_to_others() {
        let [slow, other] = rivals(Duration::MAX);
        slow.turn().begin(|| true).unwrap();
        let (held, wait) = never();
        let is_left = Arc::new(AtomicBool::new(false));
        let reading = std::thread::spawn({
            let (slow, is_left) = (Arc::clone(&slow), Arc::clone(&is_left));
            move || {
                let read = hang(&patient(&slow), &wait);
                (read, is_left.load(Ordering::Acquire))
            }
        });
        other.turn().begin(|| true).unwrap();
        // The file has answered, and what it said is worked on when there is room again.
        drop(held);
        is_left.store(true, Ordering::Release);
        other.turn().end();
        assert_eq!(reading.join().unwrap(), (Some(false), true));
        assert_eq!(slow.was_broken_off(), None);
    }

    #[test]
    fn who_gets_no_memory_again_breaks_off() {
        let [slow, other] = rivals(Duration::ZERO);
        let expendable = patient(&slow);
        slow.turn().begin(|| true).unwrap();
        slow.turn().interrupt();
        other.turn().begin(|| true).unwrap();
        assert_eq!(expendable.run(|| 7), None);
        assert!(expendable.is_given_up());
        assert_eq!(slow.was_broken_off(), Some(Delay::NoRoom));
        other.turn().end();
        slow.turn().begin(|| true).unwrap();
        assert_eq!(expendable.run(|| 7), Some(7));
    }

    #[test]
    fn who_waits_for_memory_hears_the_end() {
        let [slow, other] = rivals(Duration::MAX);
        slow.turn().begin(|| true).unwrap();
        slow.turn().interrupt();
        other.turn().begin(|| true).unwrap();
        let going_on = std::thread::spawn({
            let slow = Arc::clone(&slow);
            move || slow.go_on()
        });
        slow.end();
        going_on.join().unwrap();
        assert_eq!(slow.was_broken_off(), None);
    }

    #[test]
    fn a_session_that_is_over_is_no_file_that_does_not_answer() {
        let expendable = hasty();
        let (_held, wait) = channel::<()>();
        assert_eq!(expendable.wait(&wait), Err(Missed::Late));
        expendable.end.end();
        assert_eq!(expendable.wait(&wait), Err(Missed::Over));
        let (gone, wait) = channel::<()>();
        drop(gone);
        assert_eq!(expendable.wait(&wait), Err(Missed::Failed));
    }

    #[test]
    fn a_job_that_panics_late_is_counted_no_more() {
        let expendable = hasty();
        let (held, wait) = never();
        let job = move || assert!(wait.recv().is_ok(), "this panic is part of the test");
        assert_eq!(expendable.run(job), None);
        assert_eq!(expendable.n_left_behind(), 1);
        drop(held);
        come_back(&expendable);
    }

    #[test]
    fn work_goes_on_after_a_job_was_given_up() {
        let expendable = hasty();
        let (held, wait) = never();
        assert_eq!(hang(&expendable, &wait), None);
        let patient = Expendable { deadline: Duration::MAX, ..expendable };
        assert_eq!(patient.run(|| 7), Some(7));
        drop(held);
    }
}
