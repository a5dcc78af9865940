//! A session over a recording: each sample is decided before the next one is read.

use super::Source;
use super::findings::{Findings, Queues};
use super::index_worker;
use super::published::Published;
use super::question::Question;
use super::script::Lines;
use crate::file_source::{FilePolicy, SystemFiles};
use crate::lock::lock;
use dataspace_analyzer::history::store::HistoryView;
use dataspace_analyzer::index::worker::Worker;
use dataspace_analyzer::session::analyzer::{Analyzer, Config, Observer, Unobserved};
use dataspace_collector::perf_data::read::{Recording, RecordingError};
use dataspace_proto::query::QueryAnswer;
use dataspace_proto::record::Record;
use dataspace_proto::sample_line::SampleLine;
use dataspace_proto::snapshot::{Cost, Snapshot, Target};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A recording on its way through an analyzer.
pub(super) struct Replay {
    recording: Recording,
    analyzer: Analyzer,
    worker: Worker,
    target: Target,
}

impl Replay {
    pub(super) fn new(
        recording: Recording,
        description: String,
        config: Config,
        policy: FilePolicy,
    ) -> Self {
        Self {
            recording,
            analyzer: Analyzer::new(config),
            worker: Worker::new(Box::new(SystemFiles::new(policy))),
            target: Target { description, ..Target::default() },
        }
    }

    /// Reads on to the end, or until `look` breaks off between two records. An error of the
    /// recording ends it like its end: what came before is whole.
    fn run<O: Observer>(
        &mut self,
        observer: &mut O,
        mut look: impl FnMut(&mut Self, &mut O) -> ControlFlow<()>,
    ) -> Result<(), RecordingError> {
        let result = loop {
            let record = match self.recording.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            self.analyzer.apply(&record, observer);
            self.answer_all(observer);
            if look(self, observer).is_break() {
                break Ok(());
            }
        };
        self.analyzer.settle(observer);
        self.answer_all(observer);
        let collected = Box::new(self.recording.collected());
        self.analyzer.apply(&Record::Collected(collected), observer);
        result
    }

    /// Answers at once what samples wait for.
    fn answer_all<O: Observer>(&mut self, observer: &mut O) {
        while let Some(request) = self.analyzer.next_request() {
            let response = index_worker::answer(&mut self.worker, &request);
            self.analyzer.answer(response, observer);
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        self.analyzer.snapshot(self.target.clone(), Cost::default(), None)
    }

    fn findings(&mut self) -> Findings {
        Findings::new(self.snapshot(), &self.analyzer, Queues::default())
    }

    /// Hands the answer to each sample to `line`, in time order, with the source of its trigger if it `has_sources`; gives
    /// the warnings.
    pub(super) fn script(
        mut self,
        has_sources: bool,
        line: &mut dyn FnMut(&SampleLine) -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<String>> {
        let mut lines = Lines::new(has_sources, line);
        let result = self.run(&mut lines, |replay, lines| {
            lines.hand_on(&replay.analyzer, &mut replay.worker);
            is_over(lines.has_failed())
        });
        lines.end(&mut self.worker)?;
        result?;
        Ok(self.snapshot().warnings)
    }

    /// The answer to a question to more samples than a history holds. `whole` is the history of the same recording that was
    /// read before; `look` is asked after each record whether to go on.
    pub(super) fn answer(
        self,
        question: &Question,
        whole: &HistoryView,
        look: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<QueryAnswer, RecordingError> {
        let mut reckoning = question.reckoning(whole);
        let last = self.in_parts(&mut |part| reckoning.add(part), look)?;
        Ok(reckoning.answer(&last))
    }

    /// Hands all samples on, some at a time, as histories of one session; gives the last of them. `look` is asked after
    /// each record whether to go on.
    pub(super) fn in_parts(
        mut self,
        add: &mut dyn FnMut(&HistoryView),
        look: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<HistoryView, RecordingError> {
        self.run(&mut Unobserved, |replay, _| {
            if replay.analyzer.n_held() >= REREAD_ROWS {
                add(&replay.analyzer.take_history());
            }
            look()
        })?;
        let last = self.analyzer.take_history();
        add(&last);
        Ok(last)
    }
}

/// Samples that are kept at a time where a recording is read again: 17 MB.
const REREAD_ROWS: usize = 1 << 18;

/// Bytes of a history that holds them, and those that a second of waiting samples may add at once.
pub(super) const REREAD_BYTES: u64 = 64 << 20;

const fn is_over(is_over: bool) -> ControlFlow<()> {
    if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// A recording that is read on a thread of its own.
pub(super) struct ReplaySession {
    published: Arc<Published>,
    is_stopped: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
    config: Config,
}

impl ReplaySession {
    /// Begins to read; `config` is that of the analyzer.
    pub(super) fn start(mut replay: Replay, config: Config) -> std::io::Result<Self> {
        let (published, wishes) = Published::new(replay.findings());
        let published = Arc::new(published);
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (for_thread, stop) = (Arc::clone(&published), Arc::clone(&is_stopped));
        let thread = std::thread::Builder::new().name("replay".to_owned()).spawn(move || {
            let read = AssertUnwindSafe(|| {
                replay.run(&mut Unobserved, |replay, _| {
                    if wishes.try_recv().is_ok() {
                        let findings = replay.findings();
                        let findings = match for_thread.has_history() {
                            true => findings.with_history(&replay.analyzer),
                            false => findings,
                        };
                        for_thread.publish(findings, 0);
                    }
                    is_over(stop.load(Ordering::Acquire))
                })
            });
            let Ok(result) = catch_unwind(read) else {
                for_thread.end_early();
                return;
            };
            if let Err(error) = result {
                replay.analyzer.warn(error.to_string());
            }
            let findings = replay.findings().with_history(&replay.analyzer);
            for_thread.publish_final(findings);
        })?;
        Ok(Self { published, is_stopped, thread: Mutex::new(Some(thread)), config })
    }
}

impl Source for ReplaySession {
    fn findings(&self) -> Findings {
        self.published.newest()
    }

    fn history(&self, has_lines: bool) -> Findings {
        self.published.history(has_lines && self.config.has_lines, self.config.history_bytes != 0)
    }

    fn is_finished(&self) -> bool {
        self.published.is_final()
    }

    fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        let thread = lock(&self.thread).take();
        // A panic of the analyzer has been caught, and is in the last snapshot.
        let _ = thread.map(JoinHandle::join);
    }
}
