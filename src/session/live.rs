//! A session on running tasks: the collector's thread brings records, the analyzer's thread decides
//! samples and publishes snapshots.

use super::Source;
use super::cost;
use super::index_worker::{self, IndexWorker};
use super::published::Published;
use crate::file_source::FilePolicy;
use crossbeam_channel::{Receiver, RecvTimeoutError, SendError, never, select_biased};
use dataspace_analyzer::analyzer::{Analyzer, Config, Unobserved};
use dataspace_analyzer::report::event_line;
use dataspace_collector::error::Error;
use dataspace_collector::live::{Live, LiveConfig, Running};
use dataspace_proto::batch::{self, BatchReceiver};
use dataspace_proto::snapshot::{Cost, EventLine, Snapshot, Target};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Batches between collector and analyzer: 64 × 1,024 samples are a fifth of a second at the highest
/// rate the kernel can give. They take 42 MB if the analyzer ever falls so far behind, else what two
/// or three take: buffers are made when none has come back.
pub(super) const N_BATCHES: usize = 64;

/// Records in a batch. At the default rate a batch is sent long before it is full.
pub(super) const BATCH_LEN: usize = 1024;

/// How long the end of a session waits for debug information that is still being read.
const DRAIN_DEADLINE: Duration = Duration::from_secs(3);

/// A session on running tasks.
#[derive(Debug)]
pub(super) struct LiveSession {
    published: Arc<Published>,
    /// Taken by whoever ends the session.
    threads: Mutex<Option<Threads>>,
}

#[derive(Debug)]
struct Threads {
    collector: Running,
    analyzer: JoinHandle<()>,
}

impl LiveSession {
    /// Opens the events and begins.
    ///
    /// # Errors
    /// The collector's, which say what would help.
    pub(super) fn start(config: LiveConfig, policy: FilePolicy) -> Result<Self, Error> {
        let cost_before = cost::so_far(0);
        let own_cpu_ns = Arc::clone(&config.consumer_cpu_ns);
        let live = Live::open(config)?;
        let target = Target {
            description: live.description().to_owned(),
            pids: live.pids().to_vec(),
            running: true,
        };
        let (sender, receiver) = batch::channel(N_BATCHES, BATCH_LEN);
        let mut analyzer = Analyzer::new(Config::default());
        let mut first = analyzer.snapshot(target.clone(), Cost::default(), None);
        let events: Vec<EventLine> = live.events().iter().map(event_line).collect();
        first.events.clone_from(&events);
        let (published, wishes) = Published::new(first);
        let published = Arc::new(published);
        let began = Instant::now();
        let collector = live.start(sender)?;
        let for_thread = Arc::clone(&published);
        let analyzer = std::thread::Builder::new()
            .name("analyzer".to_owned())
            .spawn(move || {
                let worker = IndexWorker::start(policy);
                let published = for_thread;
                let session = AnalyzerThread {
                    analyzer,
                    target,
                    worker,
                    published,
                    wishes,
                    began,
                    own_cpu_ns,
                    cost_before,
                    events,
                };
                let holder = Arc::clone(&session.published);
                if catch_unwind(AssertUnwindSafe(|| session.run(&receiver))).is_err() {
                    holder.end_early();
                }
            })
            .map_err(Error::Thread)?;
        Ok(Self { published, threads: Mutex::new(Some(Threads { collector, analyzer })) })
    }
}

impl Source for LiveSession {
    fn snapshot(&self) -> Arc<Snapshot> {
        self.published.newest()
    }

    fn is_finished(&self) -> bool {
        self.published.is_final()
    }

    fn stop(&self) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Threads { collector, analyzer }) = threads.take() else { return };
        collector.stop();
        let _ = collector.join();
        // A panic of the analyzer has been caught, and is in the last snapshot.
        let _ = analyzer.join();
    }
}

impl Drop for LiveSession {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The analyzer's thread: takes batches and answers in, publishes snapshots.
struct AnalyzerThread {
    analyzer: Analyzer,
    target: Target,
    worker: IndexWorker,
    published: Arc<Published>,
    wishes: Receiver<()>,
    began: Instant,
    /// What this thread has used, for the governor.
    own_cpu_ns: Arc<AtomicU64>,
    /// What the process had used before the session: a daemon's is not all this session's.
    cost_before: Cost,
    /// Those that were opened, until the analyzer has heard of them.
    events: Vec<EventLine>,
}

impl AnalyzerThread {
    fn run(mut self, batches: &BatchReceiver) {
        loop {
            select_biased! {
                recv(self.wishes) -> _ => {
                    let snapshot = self.snapshot();
                    self.published.publish(snapshot);
                },
                recv(self.worker.responses) -> response => match response {
                    Ok(response) => self.analyzer.answer(response, &mut Unobserved),
                    // Without its thread the channel is ready for ever: it must not starve the rest.
                    Err(_) => self.worker.responses = never(),
                },
                recv(batches.receiver()) -> batch => {
                    let Ok(batch) = batch else { break };
                    for record in &batch {
                        self.analyzer.apply(record, &mut Unobserved);
                    }
                    batches.recycle(batch);
                    self.own_cpu_ns.store(cost::thread_cpu_ns(), Ordering::Relaxed);
                },
            }
            self.send_requests();
        }
        self.drain();
        self.target.running = false;
        let snapshot = self.snapshot();
        self.published.publish_final(snapshot);
    }

    fn send_requests(&mut self) {
        while let Some(request) = self.analyzer.next_request() {
            // Its thread could not be had, or is gone: nobody will answer.
            if let Err(SendError(request)) = self.worker.requests.send(request) {
                self.analyzer.answer(index_worker::refusal(&request), &mut Unobserved);
            }
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

    fn snapshot(&mut self) -> Snapshot {
        let governance = self.analyzer.collected().governance.clone();
        let mut cost = cost::so_far(governance.target_ns);
        cost.own_cpu_ns -= self.cost_before.own_cpu_ns.min(cost.own_cpu_ns);
        let mut snapshot = self.analyzer.snapshot(self.target.clone(), cost, None);
        snapshot.governance = Some(governance);
        if snapshot.events.is_empty() {
            snapshot.events.clone_from(&self.events);
        }
        // Costs are shares of the time that passed here, not of that between two samples.
        snapshot.elapsed_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        snapshot
    }
}
