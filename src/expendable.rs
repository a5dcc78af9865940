//! A thread for work that may never come back, such as reading a file from a FUSE mount: each job
//! has a deadline, and a thread that misses it is left behind.

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long one job may take. Files come from the page cache or a disk; a network file system
/// that takes longer than this is as good as gone for a live view.
const DEADLINE: Duration = Duration::from_secs(5);

/// How often it is looked whether it is over.
const LOOK: Duration = Duration::from_millis(50);

/// Threads of one session that may be left behind before its further work is refused.
const MAX_LEFT_BEHIND: u32 = 8;

/// The same, of the whole process: users who each have files that never answer.
const MAX_LEFT_BEHIND_IN_ALL: u32 = 64;

/// Threads of this process that were left behind and have not come back.
static LEFT_BEHIND: Bound = Bound { n: AtomicU32::new(0), max: MAX_LEFT_BEHIND_IN_ALL };

type Job = Box<dyn FnOnce() + Send>;

/// How many there are, and may be.
#[derive(Debug)]
struct Bound {
    n: AtomicU32,
    max: u32,
}

impl Bound {
    fn is_reached(&self) -> bool {
        self.n.load(Ordering::Relaxed) >= self.max
    }
}

/// Runs jobs one at a time on a thread that can be given up.
#[derive(Debug)]
pub(crate) struct Expendable {
    deadline: Duration,
    left_behind: Arc<Bound>,
    /// Nothing is run, or waited for, any more.
    is_over: Arc<AtomicBool>,
    thread: Mutex<Option<Sender<Job>>>,
}

/// A job that both its thread and whoever waits for it leave: which of them is the first?
#[derive(Debug, Default)]
struct Parting {
    is_left: AtomicBool,
}

impl Parting {
    /// Whether the other one has left already.
    fn leave(&self) -> bool {
        self.is_left.swap(true, Ordering::AcqRel)
    }
}

impl Expendable {
    /// One that runs jobs until `is_over`.
    pub(crate) fn until(is_over: Arc<AtomicBool>) -> Self {
        let left_behind = Arc::new(Bound { n: AtomicU32::new(0), max: MAX_LEFT_BEHIND });
        Self { deadline: DEADLINE, left_behind, is_over, thread: Mutex::default() }
    }

    /// Whether nothing is run any more.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// What `job` returns; `None` if it does not return in time, or too many have not returned yet.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_over() || self.left_behind.is_reached() || LEFT_BEHIND.is_reached() {
            return None;
        }
        let sender = match thread.take() {
            Some(sender) => sender,
            None => spawn()?,
        };
        let (done, result) = bounded(1);
        let parting = Arc::new(Parting::default());
        let (for_job, left_behind) = (Arc::clone(&parting), Arc::clone(&self.left_behind));
        let job: Job = Box::new(move || {
            // Nobody listens any more if the deadline is over.
            let _ = done.send(job());
            if for_job.leave() {
                left_behind.n.fetch_sub(1, Ordering::Relaxed);
                LEFT_BEHIND.n.fetch_sub(1, Ordering::Relaxed);
            }
        });
        sender.send(job).ok()?;
        match self.wait(&result) {
            Ok(value) => {
                *thread = Some(sender);
                return Some(value);
            }
            // The job panicked, and its thread is gone.
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        // Counted first: it is taken off by the thread, if that comes back.
        self.left_behind.n.fetch_add(1, Ordering::Relaxed);
        LEFT_BEHIND.n.fetch_add(1, Ordering::Relaxed);
        if parting.leave() {
            self.left_behind.n.fetch_sub(1, Ordering::Relaxed);
            LEFT_BEHIND.n.fetch_sub(1, Ordering::Relaxed);
            return result.try_recv().ok();
        }
        tracing::warn!("a file does not answer: its reader is left behind");
        None
    }

    /// What comes in time, and before it is over.
    fn wait<T>(&self, result: &Receiver<T>) -> Result<T, RecvTimeoutError> {
        let began = Instant::now();
        loop {
            let left = self.deadline.saturating_sub(began.elapsed());
            match result.recv_timeout(left.min(LOOK)) {
                Err(RecvTimeoutError::Timeout) if left > LOOK && !self.is_over() => {}
                come => return come,
            }
        }
    }
}

fn spawn() -> Option<Sender<Job>> {
    let (sender, receiver) = unbounded::<Job>();
    std::thread::Builder::new()
        .name("file-reader".to_owned())
        .spawn(move || receiver.into_iter().for_each(|job| job()))
        .ok()?;
    Some(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hasty() -> Expendable {
        Expendable { deadline: Duration::from_millis(10), ..Expendable::until(Arc::default()) }
    }

    #[test]
    fn a_job_that_never_ends_costs_a_thread_and_no_more() {
        let expendable = hasty();
        // Nobody ever sends: the job waits until the test is over.
        let (never, wait) = bounded::<()>(0);
        for _ in 0..MAX_LEFT_BEHIND {
            let wait = wait.clone();
            assert_eq!(expendable.run(move || wait.recv().is_ok()), None);
        }
        assert_eq!(expendable.run(|| 7), None, "too many were left behind");
        assert!(LEFT_BEHIND.n.load(Ordering::Relaxed) >= MAX_LEFT_BEHIND, "of the process, too");
        // They come back, as from a server that is there again.
        drop(never);
        while expendable.left_behind.n.load(Ordering::Relaxed) != 0 {
            std::thread::yield_now();
        }
        let patient = Expendable { deadline: Duration::MAX, ..expendable };
        assert_eq!(patient.run(|| 7), Some(7));
    }

    #[test]
    fn what_is_over_waits_for_nothing() {
        let is_over = Arc::<AtomicBool>::default();
        let expendable =
            Arc::new(Expendable { deadline: Duration::MAX, ..Expendable::until(is_over.clone()) });
        let (never, wait) = bounded::<()>(0);
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
        is_over.store(true, Ordering::Release);
        assert_eq!(waiting.join().unwrap(), None);
        assert_eq!(expendable.run(|| 7), None);
        drop(never);
    }

    #[test]
    fn work_goes_on_after_a_job_was_given_up() {
        let expendable = hasty();
        let (never, wait) = bounded::<()>(0);
        assert_eq!(expendable.run(move || wait.recv().is_ok()), None);
        let patient = Expendable { deadline: Duration::MAX, ..expendable };
        assert_eq!(patient.run(|| 7), Some(7));
        drop(never);
    }
}
