//! A thread for work that may never come back, such as reading a file from a FUSE mount: each job
//! has a deadline, and a thread that misses it is left behind.

use crossbeam_channel::{Sender, bounded, unbounded};
use std::sync::Mutex;
use std::time::Duration;

/// How long one job may take. Files come from the page cache or a disk; a network file system
/// that takes longer than this is as good as gone for a live view.
const DEADLINE: Duration = Duration::from_secs(5);

/// Threads that may be left behind before all further work is refused.
const MAX_LEFT_BEHIND: u32 = 8;

type Job = Box<dyn FnOnce() + Send>;

/// Runs jobs one at a time on a thread that can be given up.
#[derive(Debug)]
pub(crate) struct Expendable {
    deadline: Duration,
    state: Mutex<State>,
}

impl Default for Expendable {
    fn default() -> Self {
        Self { deadline: DEADLINE, state: Mutex::default() }
    }
}

#[derive(Debug, Default)]
struct State {
    thread: Option<Sender<Job>>,
    n_left_behind: u32,
}

impl Expendable {
    /// What `job` returns; `None` if it does not return in time, or too many before it did not.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if state.n_left_behind >= MAX_LEFT_BEHIND {
            return None;
        }
        let thread = match state.thread.take() {
            Some(thread) => thread,
            None => spawn()?,
        };
        let (done, result) = bounded(1);
        let job: Job = Box::new(move || {
            // Nobody listens any more if the deadline is over.
            let _ = done.send(job());
        });
        thread.send(job).ok()?;
        match result.recv_timeout(self.deadline) {
            Ok(value) => {
                state.thread = Some(thread);
                Some(value)
            }
            Err(_) => {
                state.n_left_behind += 1;
                tracing::warn!("a file does not answer: its reader is left behind");
                None
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

    #[test]
    fn a_job_that_never_ends_costs_a_thread_and_no_more() {
        let short = Duration::from_millis(10);
        let expendable = Expendable { deadline: short, state: Mutex::default() };
        // Nobody ever sends: the job waits until the test is over.
        let (never, wait) = bounded::<()>(0);
        for _ in 0..MAX_LEFT_BEHIND {
            let wait = wait.clone();
            assert_eq!(expendable.run(move || wait.recv().is_ok()), None);
        }
        assert_eq!(expendable.run(|| 7), None, "too many were left behind");
        drop(never);
    }

    #[test]
    fn work_goes_on_after_a_job_was_given_up() {
        let expendable =
            Expendable { deadline: Duration::from_millis(10), state: Mutex::default() };
        let (never, wait) = bounded::<()>(0);
        assert_eq!(expendable.run(move || wait.recv().is_ok()), None);
        let patient = Expendable { deadline: Duration::MAX, state: expendable.state };
        assert_eq!(patient.run(|| 7), Some(7));
        drop(never);
    }
}
