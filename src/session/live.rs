//! A session on running tasks: the collector's thread brings records, the analyzer's thread decides
//! samples and publishes snapshots.

use super::Source;
use super::cost::{self, OwnCpu};
use super::findings::{Findings, Queues};
use super::index_worker::{self, IndexWorker};
use super::published::Published;
use crate::file_source::FilePolicy;
use crate::lock::lock;
use crate::memory_bound;
use crossbeam_channel::{Receiver, RecvTimeoutError, SendError, never, select_biased};
use dataspace_analyzer::index::question::Response;
use dataspace_analyzer::session::analyzer::{Analyzer, Config, Unobserved};
use dataspace_analyzer::session::report::event_line;
use dataspace_collector::channel::ahead;
use dataspace_collector::channel::batch::{self, BatchReceiver};
use dataspace_collector::error::Error;
use dataspace_collector::live::{Live, LiveConfig, Running, thread_cpu_ns};
use dataspace_proto::record::Record;
use dataspace_proto::snapshot::{Cost, EventLine, Target};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Batches between collector and analyzer: 64 × 1,024 samples are a fifth of a second at the highest
/// rate the kernel can give. They take 42 MB if the analyzer ever falls so far behind, else what two
/// or three take: buffers are made when none has come back.
pub(super) const N_BATCHES: usize = 64;

/// Records in a batch. At the default rate a batch is sent long before it is full.
pub(super) const BATCH_LEN: usize = 1024;

/// Questions that the worker is asked before it has answered the first of them.
const MAX_ASKED: usize = 16;

/// Time that the end of a session waits for debug information that is still being read.
const DRAIN_DEADLINE: Duration = Duration::from_secs(3);

/// The same, where that end is to be soon.
const HURRIED_DEADLINE: Duration = Duration::from_millis(500);

/// Interval at which it is checked whether it has ended.
const DRAIN_LOOK: Duration = Duration::from_millis(20);

/// A session on running tasks.
#[derive(Debug)]
pub(super) struct LiveSession {
    published: Arc<Published>,
    /// Taken by whoever ends the session.
    threads: Mutex<Option<Threads>>,
    sampled: Arc<OnceLock<Sampled>>,
    own_cpu: OwnCpu,
    keeps_history: bool,
}

/// Length and cost of a session when it ended to sample: what comes then, debug information that is still being
/// read, is no part of its time.
#[derive(Clone, Copy, Debug)]
struct Sampled {
    elapsed: Duration,
    own_cpu_ns: u64,
}

#[derive(Debug)]
struct Threads {
    collector: Running,
    analyzer: JoinHandle<()>,
    began: Instant,
}

impl LiveSession {
    /// Opens the events and begins. Once `is_hurried` its end waits for files no longer than it must; when it
    /// `is_over`, what was mapped before is waited for no longer.
    ///
    /// # Errors
    /// The collector's, which say what would help.
    pub(super) fn start(
        mut config: LiveConfig,
        policy: FilePolicy,
        analysis: Config,
        own_cpu: OwnCpu,
        is_hurried: Arc<AtomicBool>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        config.consumer_cpu_ns = Arc::clone(&own_cpu.analyzer_ns);
        config.reader_cpu_ns = Arc::clone(&own_cpu.reader_ns);
        let cpu_of_thread = own_cpu.clone();
        let mut live = Live::open(config)?;
        let target = Target {
            description: live.description().to_owned(),
            pids: live.pids().to_vec(),
            running: true,
        };
        let (mut sender, receiver) = batch::channel(N_BATCHES, BATCH_LEN);
        let mut analyzer = Analyzer::new(analysis);
        let mut first = analyzer.snapshot(target.clone(), Cost::default(), None);
        let events: Vec<EventLine> = live.events().iter().map(event_line).collect();
        first.events.clone_from(&events);
        let first = Findings::new(first, &analyzer, Queues::default());
        let (published, wishes) = Published::new(first);
        let published = Arc::new(published);
        let began = Instant::now();
        let for_thread = Arc::clone(&published);
        let sampled: Arc<OnceLock<Sampled>> = Arc::default();
        let sampled_of_thread = Arc::clone(&sampled);
        let analyzer = std::thread::Builder::new()
            .name("analyzer".to_owned())
            .spawn(move || {
                let own_cpu = cpu_of_thread;
                let worker = IndexWorker::start(policy, Arc::clone(&own_cpu.index_ns));
                let published = for_thread;
                let session = AnalyzerThread {
                    analyzer,
                    target,
                    worker,
                    published,
                    wishes,
                    began,
                    sampled: sampled_of_thread,
                    own_cpu,
                    events,
                    asked: memory_bound::Asked::from_now(),
                    n_ticks: 0,
                    n_asked: 0,
                    is_hurried,
                };
                let holder = Arc::clone(&session.published);
                if catch_unwind(AssertUnwindSafe(|| session.run(&receiver))).is_err() {
                    holder.end_early();
                }
            })
            .map_err(Error::Thread)?;
        live.announce(&mut sender, is_over);
        // Without a collector nothing comes to the analyzer any more: its thread ends.
        let collector = live.start(sender)?;
        let threads = Mutex::new(Some(Threads { collector, analyzer, began }));
        let keeps_history = analysis.history_bytes != 0;
        Ok(Self { published, threads, sampled, own_cpu, keeps_history })
    }
}

impl Source for LiveSession {
    fn findings(&self) -> Findings {
        self.published.newest()
    }

    fn history(&self, has_lines: bool) -> Findings {
        self.published.history(has_lines, self.keeps_history)
    }

    fn is_finished(&self) -> bool {
        self.published.is_final()
    }

    fn heartbeat(&self) -> u64 {
        self.published.n_ticks()
    }

    fn stop(&self) {
        let mut threads = lock(&self.threads);
        let Some(Threads { collector, analyzer, began }) = threads.take() else { return };
        // Where the target has ended, this is not the first to know.
        self.sampled.get_or_init(|| Sampled::since(began, &self.own_cpu));
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

impl Sampled {
    fn since(began: Instant, own_cpu: &OwnCpu) -> Self {
        Self { elapsed: began.elapsed(), own_cpu_ns: own_cpu.ns() }
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
    /// Filled when the session ends to sample.
    sampled: Arc<OnceLock<Sampled>>,
    own_cpu: OwnCpu,
    /// Those that were opened, until the analyzer has heard of them.
    events: Vec<EventLine>,
    /// Requests to give memory up.
    asked: memory_bound::Asked,
    /// Ticks of the reader that have come.
    n_ticks: u64,
    /// Questions that the worker has not answered.
    n_asked: usize,
    is_hurried: Arc<AtomicBool>,
}

impl AnalyzerThread {
    fn run(mut self, batches: &BatchReceiver) {
        loop {
            select_biased! {
                recv(self.wishes) -> _ => {
                    if self.published.has_lines() {
                        self.analyzer.want_lines();
                    }
                    let mut findings = self.findings();
                    findings.queues.batches = batches.receiver().len();
                    self.published.publish(findings, self.n_ticks);
                },
                recv(self.worker.responses) -> response => match response {
                    Ok(response) => self.take(response),
                    // Without its thread the channel is ready for ever: it must not starve the rest.
                    Err(_) => {
                        self.worker.responses = never();
                        self.n_asked = 0;
                    }
                },
                recv(batches.receiver()) -> batch => {
                    let Ok(batch) = batch else { break };
                    ahead::each(&batch, |record| {
                        match record {
                            Record::Tick { .. } => self.n_ticks += 1,
                            Record::Target(text) => self.target.description = text.to_string(),
                            _ => {}
                        }
                        self.analyzer.apply(record, &mut Unobserved);
                    });
                    batches.recycle(batch);
                    self.own_cpu.analyzer_ns.store(thread_cpu_ns(), Ordering::Relaxed);
                },
            }
            self.send_requests();
            self.keep_to_memory();
        }
        self.sampled.get_or_init(|| Sampled::since(self.began, &self.own_cpu));
        self.drain();
        self.target.running = false;
        // The analyzer ends: who asks later asks these.
        let findings = self.findings().with_history(&self.analyzer);
        self.published.publish_final(findings);
        // Who is in a hurry has the last snapshot, and waits for nothing more.
        self.worker.end(&self.is_hurried);
    }

    /// Gives up what is asked for where memory is short. A tick comes ten times a second, so that this is
    /// asked as often.
    fn keep_to_memory(&mut self) {
        let Some(stage) = self.asked.anew() else {
            return self.analyzer.set_short_of_memory(memory_bound::is_short());
        };
        self.worker.nudge();
        self.analyzer.evict(stage, &mut Unobserved);
        self.analyzer.set_short_of_memory(memory_bound::is_short());
        memory_bound::given_up();
    }

    fn take(&mut self, response: Response) {
        self.n_asked = self.n_asked.saturating_sub(1);
        self.analyzer.answer(response, &mut Unobserved);
    }

    /// Has the worker asked as much as keeps it at work; the rest is kept in the order in which it matters.
    fn send_requests(&mut self) {
        while self.n_asked < MAX_ASKED
            && let Some(request) = self.analyzer.next_request()
        {
            self.n_asked += 1;
            // Its thread could not be had, or is gone: nobody will answer.
            if let Err(SendError(request)) = self.worker.requests.send(request) {
                self.take(index_worker::refusal(&request));
            }
        }
    }

    /// Lets the worker finish what samples wait for, up to a deadline.
    fn drain(&mut self) {
        let began = Instant::now();
        self.analyzer.settle(&mut Unobserved);
        self.send_requests();
        while self.analyzer.n_pending() + self.analyzer.n_lines_open() != 0 {
            let is_hurried = self.is_hurried.load(Ordering::Acquire);
            let time = if is_hurried { HURRIED_DEADLINE } else { DRAIN_DEADLINE };
            if began.elapsed() >= time {
                break;
            }
            match self.worker.responses.recv_timeout(DRAIN_LOOK) {
                Ok(response) => self.take(response),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.send_requests();
        }
        if self.analyzer.n_pending() != 0 {
            self.analyzer.give_up_at_end(&mut Unobserved);
        }
    }

    fn findings(&mut self) -> Findings {
        let governance = self.analyzer.collected().governance.clone();
        let cost = cost::so_far(governance.target_ns);
        let mut snapshot = self.analyzer.snapshot(self.target.clone(), cost, None);
        snapshot.governance = Some(governance);
        if snapshot.events.is_empty() {
            snapshot.events.clone_from(&self.events);
        }
        // Costs are shares of the time that passed here, not of that between two samples.
        let ended = self.sampled.get().copied();
        let sampled = ended.unwrap_or_else(|| Sampled::since(self.began, &self.own_cpu));
        snapshot.elapsed_ns = u64::try_from(sampled.elapsed.as_nanos()).unwrap_or(u64::MAX);
        snapshot.cost.own_cpu_ns = sampled.own_cpu_ns;
        let questions = self.worker.requests.len() + self.analyzer.n_requests();
        let queues = Queues { questions, ..Queues::default() };
        let findings = Findings::new(snapshot, &self.analyzer, queues);
        if self.published.has_history() { findings.with_history(&self.analyzer) } else { findings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_collector::channel::batch::BatchSender;

    /// The analyzer's thread of a session without events, and what it publishes to.
    fn thread(sampled: &Arc<OnceLock<Sampled>>) -> (AnalyzerThread, Arc<Published>) {
        let mut analyzer = Analyzer::new(Config::default());
        let first = analyzer.snapshot(Target::default(), Cost::default(), None);
        let first = Findings::new(first, &analyzer, Queues::default());
        let (published, wishes) = Published::new(first);
        let published = Arc::new(published);
        let policy = FilePolicy { is_live: true, ..FilePolicy::default() };
        let thread = AnalyzerThread {
            analyzer,
            target: Target::default(),
            worker: IndexWorker::start(policy, Arc::default()),
            published: Arc::clone(&published),
            wishes,
            began: Instant::now(),
            sampled: Arc::clone(sampled),
            own_cpu: OwnCpu::begin(false),
            events: Vec::new(),
            asked: memory_bound::Asked::from_now(),
            n_ticks: 0,
            n_asked: 0,
            is_hurried: Arc::default(),
        };
        (thread, published)
    }

    /// The last snapshot of a session that brought nothing and had ended to sample so.
    fn last(sampled: &Arc<OnceLock<Sampled>>) -> Arc<dataspace_proto::snapshot::Snapshot> {
        let (session, published) = thread(sampled);
        let (sender, receiver) = batch::channel(N_BATCHES, BATCH_LEN);
        drop(sender);
        session.run(&receiver);
        published.newest().snapshot
    }

    #[test]
    fn a_heartbeat_is_one_that_went_through_reader_analyzer_and_snapshot() {
        let (mut sender, receiver) = batch::channel(N_BATCHES, BATCH_LEN);
        let (session, published) = thread(&Arc::default());
        let tick = |sender: &mut BatchSender, time_ns| {
            sender.push(Record::Tick { time_ns });
            sender.flush_or_drop_samples();
        };
        // The reader beats and the analyzer stands still.
        tick(&mut sender, 1);
        published.newest();
        assert_eq!(published.n_ticks(), 0);
        std::thread::scope(|scope| {
            scope.spawn(|| session.run(&receiver));
            let beats = |n_ticks| {
                while published.n_ticks() != n_ticks {
                    published.newest();
                }
            };
            beats(1);
            tick(&mut sender, 2);
            beats(2);
            // The analyzer goes on, snapshots are made, and the reader stands still.
            let before = published.newest().snapshot.elapsed_ns;
            while published.newest().snapshot.elapsed_ns == before {}
            assert_eq!(published.n_ticks(), 2);
            drop(sender);
        });
        assert!(published.is_final());
    }

    #[test]
    fn a_session_lasts_until_it_ends_to_sample() {
        let sampled: Arc<OnceLock<Sampled>> = Arc::default();
        let known = Sampled { elapsed: Duration::from_secs(1_000), own_cpu_ns: 7 };
        sampled.set(known).unwrap();
        let snapshot = last(&sampled);
        assert_eq!((snapshot.elapsed_ns, snapshot.cost.own_cpu_ns), (1_000_000_000_000, 7));
        // A target that ends by itself is known to have when its records end.
        let sampled = Arc::default();
        let snapshot = last(&sampled);
        let elapsed_ns = sampled.get().unwrap().elapsed.as_nanos();
        assert_eq!(u128::from(snapshot.elapsed_ns), elapsed_ns);
    }
}
