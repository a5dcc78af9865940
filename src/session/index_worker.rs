//! The thread that answers the analyzer's questions: it reads files and debug information.

use crate::expendable::FilesEnd;
use crate::file_source::{FilePolicy, SystemFiles};
use crate::memory_bound::{self, NoTurn};
use crossbeam_channel::{Receiver, Sender, bounded, select_biased, unbounded};
use dataspace_analyzer::bytes::file::LoadObjectIdx;
use dataspace_analyzer::index::question::{Answer, Delay, Request, Response};
use dataspace_analyzer::index::worker::Worker;
use dataspace_collector::live::thread_cpu_ns;
use dataspace_proto::reason::Reason;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time that a load object is left alone whose question took more memory than there was; each time twice as
/// long, for what it takes is read again from the beginning.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The same at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Interval at which it is checked whether it has ended.
const END_LOOK: Duration = Duration::from_millis(5);

/// A thread that answers the analyzer's questions.
pub(super) struct IndexWorker {
    pub(super) requests: Sender<Request>,
    pub(super) responses: Receiver<Response>,
    /// Wakes it where it may have something to give up.
    nudges: Sender<()>,
    /// Time from which files give nothing more.
    end: Arc<FilesEnd>,
    thread: Option<JoinHandle<()>>,
}

impl IndexWorker {
    /// One that opens files by `policy`, and keeps the CPU time it has used in `cpu_ns`.
    pub(super) fn start(policy: FilePolicy, cpu_ns: Arc<AtomicU64>) -> Self {
        let (requests, incoming) = unbounded::<Request>();
        let (outgoing, responses) = unbounded();
        let (nudges, nudged) = bounded::<()>(1);
        let end: Arc<FilesEnd> = Arc::default();
        let of_thread = Arc::clone(&end);
        let spawned = std::thread::Builder::new().name("index".to_owned()).spawn(move || {
            let mut desk = Desk::new(policy, of_thread);
            loop {
                let request = select_biased! {
                    recv(nudged) -> nudge => match nudge {
                        Ok(()) => None,
                        Err(_) => break,
                    },
                    recv(incoming) -> request => match request {
                        Ok(request) => Some(request),
                        Err(_) => break,
                    },
                };
                desk.keep_to_memory();
                let response = request.map(|request| desk.answer_in_turn(&request));
                if incoming.is_empty() {
                    desk.end.turn().end();
                }
                cpu_ns.store(thread_cpu_ns(), Ordering::Relaxed);
                if response.is_some_and(|response| outgoing.send(response).is_err()) {
                    break;
                }
            }
        });
        let told = |error: &std::io::Error| {
            tracing::error!(%error, "no thread for the index: nothing can be named");
        };
        let thread = spawned.inspect_err(told).ok();
        Self { requests, responses, nudges, end, thread }
    }

    /// Ends it, and waits until it has, or until `is_hurried`: what it is about to read is not there any
    /// more.
    pub(super) fn end(mut self, is_hurried: &AtomicBool) {
        self.end.end();
        let thread = self.thread.take();
        // Without these it has nobody to work for.
        drop(self);
        let Some(thread) = thread else { return };
        while !thread.is_finished() {
            if is_hurried.load(Ordering::Acquire) {
                return;
            }
            std::thread::sleep(END_LOOK);
        }
        // A panic of its own has been caught: see `answer`.
        let _ = thread.join();
    }

    /// Has it look whether it is to give something up, also if it is asked nothing.
    pub(super) fn nudge(&self) {
        let _ = self.nudges.try_send(());
    }
}

/// Thread that works on questions, as far as there is memory.
struct Desk {
    worker: Worker,
    end: Arc<FilesEnd>,
    /// Load objects that were given up for want of memory.
    asked: memory_bound::Asked,
    /// Load objects that took more memory than there was.
    broken_off: HashMap<LoadObjectIdx, BrokenOff>,
}

/// A load object that is left alone.
#[derive(Clone, Copy)]
struct BrokenOff {
    /// Number of times that it was broken off.
    n: u32,
    until: Instant,
    why: Delay,
}

impl Desk {
    fn new(policy: FilePolicy, end: Arc<FilesEnd>) -> Self {
        let files = SystemFiles::until(policy, Arc::clone(&end));
        let worker = Worker::new(Box::new(files));
        let asked = memory_bound::Asked::from_now();
        Self { worker, end, asked, broken_off: HashMap::new() }
    }

    /// Gives up what is asked for where memory is short.
    fn keep_to_memory(&mut self) {
        if let Some(stage) = self.asked.anew() {
            self.worker.evict(stage);
            memory_bound::given_up();
        }
    }

    /// The answer, once there is room to work on it; none for the time being where there will be none.
    fn answer_in_turn(&mut self, request: &Request) -> Response {
        let left_alone = self.broken_off.get(&request.object);
        if let Some(BrokenOff { why, .. }) = left_alone.filter(|it| Instant::now() < it.until) {
            return put_off(request, *why);
        }
        let end = Arc::clone(&self.end);
        let begun = end.turn().begin(|| {
            self.keep_to_memory();
            !memory_bound::is_short() && !end.is_over()
        });
        match begun {
            Ok(()) => self.answer(request),
            Err(NoTurn::Unwanted) => put_off(request, Delay::Short),
            Err(NoTurn::Late) => put_off(request, Delay::NoRoom),
        }
    }

    /// The answer, unless it takes more memory than there is.
    fn answer(&mut self, request: &Request) -> Response {
        let _ = self.end.was_broken_off();
        let response = answer(&mut self.worker, request);
        let Some(why) = self.end.was_broken_off() else { return response };
        // What it found is made of a part of the file.
        self.worker.forget(request.object);
        memory_bound::given_up();
        let now = Instant::now();
        let before = self.broken_off.get(&request.object);
        let n = before.map_or(1, |it| if now > it.until + LONGEST_PAUSE { 1 } else { it.n + 1 });
        let pause = LONGEST_PAUSE.min(FIRST_PAUSE * (1 << (n - 1).min(6)));
        self.broken_off.insert(request.object, BrokenOff { n, until: now + pause, why });
        if n.is_power_of_two() {
            let path = request.key.path_text();
            let why = match why {
                Delay::NoRoom => "its files answer slowly, and others need the memory meanwhile",
                Delay::TooLarge | Delay::Short => {
                    "its debug information takes more memory than there is"
                }
            };
            tracing::warn!(%path, n, why, "broken off: a higher memory_max would help");
        }
        put_off(request, why)
    }
}

/// The worker's answer; a panic over hostile input costs that one answer, not the session.
pub(super) fn answer(worker: &mut Worker, request: &Request) -> Response {
    catch_unwind(AssertUnwindSafe(|| worker.answer(request))).unwrap_or_else(|_| {
        tracing::error!(path = %request.key.path_text(), "the index panicked");
        refusal(request)
    })
}

/// The answer to a request that nobody works on for want of memory.
fn put_off(request: &Request, why: Delay) -> Response {
    let (object, question) = (request.object, request.question);
    Response { object, question, answer: Answer::NotNow(why) }
}

/// The answer to a request that nobody can work on.
pub(super) fn refusal(request: &Request) -> Response {
    let (object, question) = (request.object, request.question);
    Response { object, question, answer: Answer::Failed(Reason::OverBudget) }
}
