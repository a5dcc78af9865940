//! The thread that answers the analyzer's questions: it reads files and debug information.

use crate::file_source::{FilePolicy, SystemFiles};
use crate::memory_bound;
use crossbeam_channel::{Receiver, Sender, bounded, select_biased, unbounded};
use dataspace_analyzer::worker::{Answer, Request, Response, Worker};
use dataspace_collector::live::thread_cpu_ns;
use dataspace_proto::reason::Reason;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// A thread that answers the analyzer's questions.
pub(super) struct IndexWorker {
    pub(super) requests: Sender<Request>,
    pub(super) responses: Receiver<Response>,
    /// Wakes it where it may have something to give up.
    nudges: Sender<()>,
    /// Files give nothing more from when it is set.
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl IndexWorker {
    /// One that opens files by `policy`, and keeps the CPU time it has used in `cpu_ns`.
    pub(super) fn start(policy: FilePolicy, cpu_ns: Arc<AtomicU64>) -> Self {
        let (requests, incoming) = unbounded::<Request>();
        let (outgoing, responses) = unbounded();
        let (nudges, nudged) = bounded::<()>(1);
        let is_over = Arc::new(AtomicBool::new(false));
        let files_end = Arc::clone(&is_over);
        let spawned = std::thread::Builder::new().name("index".to_owned()).spawn(move || {
            let files = SystemFiles::until(policy, files_end);
            let mut worker = Worker::new(Box::new(files));
            let mut asked = memory_bound::Asked::from_now();
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
                if let Some(stage) = asked.anew() {
                    worker.shed(stage);
                    memory_bound::given_up();
                }
                let response = request.map(|request| {
                    let is_short = memory_bound::is_short();
                    if is_short { put_off(&request) } else { answer(&mut worker, &request) }
                });
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
        Self { requests, responses, nudges, is_over, thread }
    }

    /// Ends it, and waits until it has: what it is about to read is not there any more.
    pub(super) fn end(mut self) {
        self.is_over.store(true, Ordering::Release);
        let thread = self.thread.take();
        // Without these it has nobody to work for.
        drop(self);
        // A panic of its own has been caught: see `answer`.
        let _ = thread.map(JoinHandle::join);
    }

    /// Lets it end by itself: the process is about to.
    pub(super) fn leave(self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Has it look whether it is to give something up, also if it is asked nothing.
    pub(super) fn nudge(&self) {
        let _ = self.nudges.try_send(());
    }
}

/// The worker's answer; a panic over hostile input costs that one answer, not the session.
pub(super) fn answer(worker: &mut Worker, request: &Request) -> Response {
    catch_unwind(AssertUnwindSafe(|| worker.answer(request))).unwrap_or_else(|_| {
        tracing::error!(path = %String::from_utf8_lossy(&request.key.path), "the index panicked");
        refusal(request)
    })
}

/// The answer to a request that nobody works on while memory is short.
fn put_off(request: &Request) -> Response {
    let (object, question) = (request.object, request.question);
    Response { object, question, answer: Answer::NotNow }
}

/// The answer to a request that nobody can work on.
pub(super) fn refusal(request: &Request) -> Response {
    let (object, question) = (request.object, request.question);
    Response { object, question, answer: Answer::Failed(Reason::OverBudget) }
}
