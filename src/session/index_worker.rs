//! The thread that answers the analyzer's questions: it reads files and debug information.

use crate::file_source::{FilePolicy, SystemFiles};
use crossbeam_channel::{Receiver, Sender, unbounded};
use dataspace_analyzer::worker::{Answer, Request, Response, Worker};
use dataspace_proto::reason::Reason;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A thread that answers the analyzer's questions.
pub(super) struct IndexWorker {
    pub(super) requests: Sender<Request>,
    pub(super) responses: Receiver<Response>,
}

impl IndexWorker {
    pub(super) fn start(policy: FilePolicy) -> Self {
        let (requests, incoming) = unbounded::<Request>();
        let (outgoing, responses) = unbounded();
        let spawned = std::thread::Builder::new().name("index".to_owned()).spawn(move || {
            let mut worker = Worker::new(Box::new(SystemFiles::new(policy)));
            for request in incoming {
                let response = answer(&mut worker, &request);
                if outgoing.send(response).is_err() {
                    break;
                }
            }
        });
        if let Err(error) = spawned {
            tracing::error!(%error, "no thread for the index: nothing can be named");
        }
        Self { requests, responses }
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
