//! A session: joins the collector, which brings records, and the analyzer, which decides samples,
//! and owns the worker that reads files and debug information.

use crate::file_source::{FilePolicy, SystemFiles};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, select_biased, unbounded};
use dataspace_analyzer::analyzer::{Analyzer, Config, Observer, Unobserved};
use dataspace_analyzer::worker::{Answer, Request, Response, Worker};
use dataspace_collector::live::{Live, LiveConfig, Outcome, Running};
use dataspace_collector::recording::Recording;
use dataspace_proto::batch::{self, BatchReceiver};
use dataspace_proto::reason::Reason;
use dataspace_proto::record::Record;
use dataspace_proto::snapshot::{Cost, Snapshot, Target};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Batches between collector and analyzer: 64 × 1,024 samples are about 25 MB when all are full,
/// a fifth of a second at the highest rate the kernel can give.
const N_BATCHES: usize = 64;

/// Records in a batch. At the default rate a batch is sent long before it is full.
const BATCH_LEN: usize = 1024;

/// How long the end of a session waits for debug information that is still being read.
const DRAIN_DEADLINE: Duration = Duration::from_secs(10);

/// What one sample costs the target, as measured on a VM (13 to 16 µs; design section 4): an
/// estimate, shown as such.
const TARGET_COST_NS: u64 = 15_000;

/// What a view needs of a session.
pub trait Source {
    /// The totals now, or as they were a moment ago.
    fn snapshot(&self) -> Arc<Snapshot>;
    /// Whether the session is over and its last snapshot is there.
    fn is_finished(&self) -> bool;
    /// Asks the session to detach and to finish.
    fn stop(&self);
}

/// A session on running tasks.
#[derive(Debug)]
pub struct LiveSession {
    shared: Arc<Shared>,
    running: Mutex<Option<Running>>,
    analyzer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    snapshot: Mutex<Arc<Snapshot>>,
    /// Somebody waits for a newer snapshot.
    is_wanted: AtomicBool,
    is_finished: AtomicBool,
}

impl LiveSession {
    /// Opens the events and begins.
    ///
    /// # Errors
    /// The collector's, which say what would help.
    pub fn start(
        live: LiveConfig,
        config: Config,
        policy: FilePolicy,
    ) -> Result<Self, dataspace_collector::error::Error> {
        let live = Live::open(live)?;
        let target = Target {
            description: live.description().to_owned(),
            pids: live.pids().to_vec(),
            running: true,
        };
        let (sender, receiver) = batch::channel(N_BATCHES, BATCH_LEN);
        let analyzer = Analyzer::new(config);
        let first = analyzer.snapshot(target.clone(), Cost::default(), None);
        let shared = Arc::new(Shared {
            snapshot: Mutex::new(Arc::new(first)),
            is_wanted: AtomicBool::new(true),
            is_finished: AtomicBool::new(false),
        });
        let running = live.start(sender)?;
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("analyzer".to_owned())
            .spawn(move || {
                let mut session = AnalyzerThread::new(analyzer, target, policy, for_thread);
                session.run(&receiver);
            })
            .map_err(dataspace_collector::error::Error::Thread)?;
        Ok(Self { shared, running: Mutex::new(Some(running)), analyzer: Mutex::new(Some(thread)) })
    }

    /// Waits for the end, which comes with that of the target or with [`Source::stop`].
    pub fn join(&self) -> Outcome {
        let running = lock(&self.running).take();
        let outcome = running.map(Running::join).unwrap_or_default();
        if let Some(thread) = lock(&self.analyzer).take()
            && thread.join().is_err()
        {
            tracing::error!("the analyzer thread panicked: the last totals may be missing");
        }
        self.shared.is_finished.store(true, Ordering::Release);
        outcome
    }
}

impl Source for LiveSession {
    fn snapshot(&self) -> Arc<Snapshot> {
        self.shared.is_wanted.store(true, Ordering::Release);
        Arc::clone(&lock(&self.shared.snapshot))
    }

    fn is_finished(&self) -> bool {
        self.shared.is_finished.load(Ordering::Acquire)
    }

    fn stop(&self) {
        if let Some(running) = &*lock(&self.running) {
            running.stop();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The analyzer's thread: takes batches and answers in, publishes snapshots.
struct AnalyzerThread {
    analyzer: Analyzer,
    target: Target,
    worker: IndexWorker,
    shared: Arc<Shared>,
}

impl AnalyzerThread {
    fn new(analyzer: Analyzer, target: Target, policy: FilePolicy, shared: Arc<Shared>) -> Self {
        Self { analyzer, target, worker: IndexWorker::start(policy), shared }
    }

    fn run(&mut self, batches: &BatchReceiver) {
        loop {
            select_biased! {
                recv(self.worker.responses) -> response => if let Ok(response) = response {
                    self.analyzer.answer(response, &mut Unobserved);
                },
                recv(batches.receiver()) -> batch => {
                    let Ok(batch) = batch else { break };
                    for record in &batch {
                        self.analyzer.apply(record, &mut Unobserved);
                    }
                    batches.recycle(batch);
                },
            }
            self.send_requests();
            if self.shared.is_wanted.swap(false, Ordering::AcqRel) {
                self.publish();
            }
        }
        self.drain();
        self.analyzer.finish();
        self.target.running = false;
        self.publish();
        self.shared.is_finished.store(true, Ordering::Release);
    }

    fn send_requests(&mut self) {
        while let Some(request) = self.analyzer.next_request() {
            // The worker's channel closes only with this thread.
            let _ = self.worker.requests.send(request);
        }
    }

    /// Lets the worker finish what samples wait for, up to a deadline.
    fn drain(&mut self) {
        let deadline = Instant::now() + DRAIN_DEADLINE;
        while self.analyzer.n_pending() != 0 {
            match self.worker.responses.recv_deadline(deadline) {
                Ok(response) => self.analyzer.answer(response, &mut Unobserved),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
            self.send_requests();
        }
        if self.analyzer.n_pending() != 0 {
            self.analyzer.give_up_pending(&mut Unobserved);
        }
    }

    fn publish(&self) {
        let cost = own_cost(self.analyzer.accounting().kernel);
        let snapshot = self.analyzer.snapshot(self.target.clone(), cost, None);
        *lock(&self.shared.snapshot) = Arc::new(snapshot);
    }
}

/// What the profiler has cost so far.
fn own_cost(kernel_samples: u64) -> Cost {
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 =
        statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default();
    Cost {
        own_cpu_ns: cpu.tv_sec.unsigned_abs() * 1_000_000_000 + cpu.tv_nsec.unsigned_abs(),
        own_rss_bytes: pages * rustix::param::page_size() as u64,
        target_ns: kernel_samples * TARGET_COST_NS,
    }
}

/// A thread that answers the analyzer's questions.
struct IndexWorker {
    requests: Sender<Request>,
    responses: Receiver<Response>,
}

impl IndexWorker {
    fn start(policy: FilePolicy) -> Self {
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
fn answer(worker: &mut Worker, request: &Request) -> Response {
    catch_unwind(AssertUnwindSafe(|| worker.answer(request))).unwrap_or_else(|_| {
        tracing::error!(path = %String::from_utf8_lossy(&request.key.path), "the index panicked");
        let (object, question) = (request.object, request.question);
        Response { object, question, answer: Answer::Failed(Reason::OverBudget) }
    })
}

/// Reads a whole recording: `observer` sees every sample in time order.
///
/// # Errors
/// The recording's.
pub fn replay(
    recording: &mut Recording,
    config: Config,
    policy: FilePolicy,
    observer: &mut dyn Observer,
    mut progress: impl FnMut(&Recording) -> std::ops::ControlFlow<()>,
) -> Result<Analyzer, dataspace_collector::recording::RecordingError> {
    let mut analyzer = Analyzer::new(config);
    let mut worker = Worker::new(Box::new(SystemFiles::new(policy)));
    while let Some(record) = recording.next_record()? {
        analyzer.apply(&record, observer);
        // Answered at once, samples are decided in the order in which they come.
        while let Some(request) = analyzer.next_request() {
            let response = answer(&mut worker, &request);
            analyzer.answer(response, observer);
        }
        if progress(recording).is_break() {
            let collected = Box::new(recording.collected());
            analyzer.apply(&Record::Collected(collected), observer);
            break;
        }
    }
    analyzer.finish();
    Ok(analyzer)
}
