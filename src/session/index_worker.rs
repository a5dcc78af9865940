//! The thread that answers the analyzer's questions: it reads files and debug information.

use crate::file_source::{FilePolicy, SystemFiles};
use crate::memory_bound;
use crossbeam_channel::{Receiver, Sender, bounded, select_biased, unbounded};
use dataspace_analyzer::worker::{Answer, Request, Response, Worker};
use dataspace_proto::reason::Reason;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A thread that answers the analyzer's questions.
pub(super) struct IndexWorker {
    pub(super) requests: Sender<Request>,
    pub(super) responses: Receiver<Response>,
    /// Wakes it where it may have something to give up.
    nudges: Sender<()>,
}

impl IndexWorker {
    pub(super) fn start(policy: FilePolicy) -> Self {
        let (requests, incoming) = unbounded::<Request>();
        let (outgoing, responses) = unbounded();
        let (nudges, nudged) = bounded::<()>(1);
        let spawned = std::thread::Builder::new().name("index".to_owned()).spawn(move || {
            let mut worker = Worker::new(Box::new(SystemFiles::new(policy)));
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
                // What was asked before memory was short is waited for no more.
                let request = request.filter(|_| !memory_bound::is_short());
                if let Some(request) = request
                    && outgoing.send(answer(&mut worker, &request)).is_err()
                {
                    break;
                }
            }
        });
        if let Err(error) = spawned {
            tracing::error!(%error, "no thread for the index: nothing can be named");
        }
        Self { requests, responses, nudges }
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

/// The answer to a request that nobody can work on.
pub(super) fn refusal(request: &Request) -> Response {
    let (object, question) = (request.object, request.question);
    Response { object, question, answer: Answer::Failed(Reason::OverBudget) }
}
