//! The session: joins the collector, which brings records, with the analyzer, which decides
//! samples, and owns the worker that reads files and debug information.

pub(crate) mod cost;
pub(crate) mod findings;
mod index_worker;
pub(crate) mod inspection;
mod live;
mod named_event;
mod published;
pub(crate) mod question;
pub(crate) mod raw;
pub(crate) mod recording;
mod replay;
mod script;

use crate::config::{self, Input, LiveOptions, RecordingOptions};
use crate::exit::{Failure, Kind};
use crate::file_source::FilePolicy;
use anyhow::Context as _;
use cost::OwnCpu;
use dataspace_analyzer::attribution::world::Paths;
use dataspace_analyzer::history::store::HistoryView;
use dataspace_analyzer::session::analyzer::Config;
use dataspace_collector::error::{Error, ErrorKind};
use dataspace_collector::event::EventSelector;
use dataspace_collector::live::LiveConfig;
use dataspace_collector::measurement::Measurement;
use dataspace_collector::perf_data::read::{RecordingError, RecordingFile};
use dataspace_collector::system::machine::Machine;
use dataspace_proto::measure::MeasureRequest;
use dataspace_proto::query::QueryAnswer;
use dataspace_proto::sample_line::SampleLine;
use dataspace_proto::snapshot::Snapshot;
use findings::Findings;
use live::LiveSession;
use question::Question;
use replay::{Replay, ReplaySession};
use std::io::stdin;
use std::ops::ControlFlow;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A running session, as views need it.
pub(crate) trait Source: Send + Sync {
    /// Its findings as they stand, or stood a moment ago; cheap.
    fn findings(&self) -> Findings;

    /// The same with the history, where the session keeps one here; with the source lines of all that is in it, so far
    /// as they are found out soon, where it `has_lines`.
    fn history(&self, _has_lines: bool) -> Findings {
        self.findings()
    }

    /// Tells whether it answers questions after its end.
    fn answers_at_end(&self) -> bool {
        true
    }

    /// The answer to a question to its history.
    ///
    /// # Errors
    /// Where it keeps none.
    fn ask(&self, question: &Question) -> anyhow::Result<QueryAnswer> {
        Ok(question.answer(&self.history(question.has_lines()))?)
    }

    /// The answers to several questions.
    ///
    /// # Errors
    /// Where one cannot be answered.
    fn ask_all(&self, questions: &[Question]) -> anyhow::Result<Vec<QueryAnswer>> {
        let has_lines = questions.iter().any(Question::has_lines);
        Ok(Question::answer_together(questions, &self.history(has_lines))?)
    }

    /// Its totals, without the rest of its findings.
    fn snapshot(&self) -> Arc<Snapshot> {
        self.findings().snapshot
    }

    /// Tells whether the target or the recording has ended and the totals are final.
    fn is_finished(&self) -> bool;

    /// Number of heartbeats of a session on running tasks when its newest snapshot was made.
    /// The collector's thread beats ten times a second, whether samples come or not, and each beat
    /// goes through the analyzer: one that stands still tells that one of them does.
    fn heartbeat(&self) -> u64 {
        0
    }

    /// Ends the session in order. When it returns, [`Self::findings`] are final.
    /// A second call does nothing.
    fn stop(&self);
}

/// Attaches to a target and begins to sample. What was mapped before is not waited for when it `is_over`.
///
/// # Errors
/// When nothing can be sampled, with the remedy.
pub(crate) fn start_live(
    options: &LiveOptions,
    is_over: &dyn Fn() -> bool,
) -> anyhow::Result<Box<dyn Source>> {
    start_live_hurried_by(options, Arc::default(), is_over)
}

/// The same. Once `is_hurried` an end that is under way, or to come, waits no longer than it must for
/// debug information that is still being read.
///
/// # Errors
/// As [`start_live`].
pub(crate) fn start_live_hurried_by(
    options: &LiveOptions,
    is_hurried: Arc<AtomicBool>,
    is_over: &dyn Fn() -> bool,
) -> anyhow::Result<Box<dyn Source>> {
    let analysis = Config {
        windows: options.windows,
        history_bytes: options.history_bytes,
        has_lines: options.has_lines,
        ..Config::default()
    };
    let policy = files_of(options);
    let own_cpu = OwnCpu::begin(options.is_one_of_many);
    let config = live_config(options)?;
    let session = LiveSession::start(config, policy, analysis, own_cpu, is_hurried, is_over);
    Ok(Box::new(session.map_err(|error| failure(&error))?))
}

/// Rules for the files of a session with `options`.
pub(crate) fn files_of(options: &LiveOptions) -> FilePolicy {
    FilePolicy { is_live: true, viewer: options.viewer.clone(), ..FilePolicy::default() }
}

/// Rules for the files that a recording names, which are looked for below `symfs` first.
pub(crate) fn files_of_recording(symfs: Option<&Path>) -> FilePolicy {
    FilePolicy { symfs: symfs.map(Into::into), ..FilePolicy::default() }
}

/// The recording at `input`, of which nothing was read yet.
///
/// # Errors
/// What the kernel said.
pub(crate) fn recording_file(input: &Input) -> anyhow::Result<RecordingFile> {
    match input {
        Input::File(path) => RecordingFile::open(path).map_err(not_opened),
        Input::Stdin => {
            let file = stdin().as_fd().try_clone_to_owned()?.into();
            Ok(RecordingFile { file, name: PathBuf::from("-") })
        }
    }
}

/// Tells whether each of `events` is spelled as one; it may still not be had on this machine.
///
/// # Errors
/// What is wrong with the first that is not.
pub(crate) fn check_events(events: &[String]) -> anyhow::Result<()> {
    for name in events {
        EventSelector::parse(name).map_err(|error| failure(&error.into()))?;
    }
    Ok(())
}

/// Options of the collector.
fn live_config(options: &LiveOptions) -> anyhow::Result<LiveConfig> {
    let mut live = LiveConfig::new(options.target.clone());
    live.comms = options.comms.clone();
    live.max_overhead = options.max_overhead;
    live.keeps_counts = options.keeps_counts;
    live.ring_pages = options.ring_pages;
    for name in &named_event::resolved(options, files_of(options))? {
        let event = EventSelector::parse(name);
        live.events.push(event.map_err(|error| failure(&error.into()))?);
    }
    live.sampling = options.sampling;
    live.is_confined = options.viewer.is_some();
    if let Some(request) = &options.measure {
        measured(&mut live, request)?;
    }
    live.command_output = options.command_output;
    Ok(live)
}

/// Makes `live` a session that measures what was asked for.
fn measured(live: &mut LiveConfig, request: &MeasureRequest) -> anyhow::Result<()> {
    let machine = Machine::read(Path::new("/"));
    let plan = Measurement::plan(request, &machine).map_err(|error| failure(&error))?;
    if live.is_confined && plan.sampled.iter().any(|event| event.starts_with("ibs_fetch/")) {
        let measure = request.measure.name();
        let text = format!(
            "{measure}: what IBS tells of a fetch has its physical address, which is not for everybody"
        );
        return Err(Failure::new(Kind::NotPermitted, text).into());
    }
    for event in &plan.sampled {
        live.events.push(EventSelector::parse(event).map_err(|error| failure(&error.into()))?);
    }
    live.sampling = Some(plan.sampling);
    // A rate that nobody asked for is raised where sampling costs too much.
    live.keeps_counts &= request.rate.is_some();
    live.variation = Some(request.variation);
    live.counted = plan.counted;
    live.notes = plan.notes;
    Ok(())
}

/// A recording that is open, and how it is to be read.
pub(crate) struct OpenRecording {
    file: RecordingFile,
    description: String,
    config: Config,
    /// Rules for the files that it names.
    pub(crate) policy: FilePolicy,
}

impl OpenRecording {
    /// Opens it; nothing of it is read yet.
    ///
    /// # Errors
    /// What the kernel said.
    pub(crate) fn open(options: &RecordingOptions) -> anyhow::Result<Self> {
        Ok(Self::of_file(recording_file(&options.input)?, options))
    }

    /// The same of a file that is open.
    pub(crate) fn of_file(file: RecordingFile, options: &RecordingOptions) -> Self {
        let description = match &options.input {
            Input::File(path) => path.display().to_string(),
            Input::Stdin => "standard input".to_owned(),
        };
        let config = Config {
            skid: match options.skid {
                config::Skid::Auto => None,
                config::Skid::Forced(model) => Some(model),
            },
            paths: match options.paths {
                config::Paths::Both => Paths::Both,
                config::Paths::Type => Paths::Type,
                config::Paths::Address => Paths::Address,
            },
            windows: options.windows,
            history_bytes: options.history_bytes,
            has_lines: options.has_lines,
        };
        let policy = files_of_recording(options.symfs.as_deref());
        Self { file, description, config, policy }
    }

    /// Begins to read it; the totals are final when the source is finished.
    ///
    /// # Errors
    /// When it is no recording. Damage further on is a warning in the snapshot.
    pub(crate) fn totals(self) -> anyhow::Result<Box<dyn Source>> {
        let config = self.config;
        let session = ReplaySession::start(self.replay()?, config);
        Ok(Box::new(session.context("no thread to read the recording")?))
    }

    /// The same recording once more, where it can be read again.
    pub(crate) fn again(&self) -> Option<Self> {
        let file = self.file.again()?;
        let Self { description, config, policy, .. } = self;
        let (description, policy) = (description.clone(), policy.clone());
        Some(Self { file, description, config: *config, policy })
    }

    /// The answer to a question to all samples of a recording of which the history that was kept, `whole`, has a part only.
    ///
    /// # Errors
    /// What is wrong with the recording. Where `look`, which is asked after each record, breaks off, the answer is to what
    /// was read until then.
    pub(crate) fn answer(
        mut self,
        question: &Question,
        whole: &HistoryView,
        look: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> anyhow::Result<QueryAnswer> {
        self.config.history_bytes = replay::REREAD_BYTES;
        Ok(self.replay()?.answer(question, whole, look)?)
    }

    /// Hands all samples of a recording on, some at a time, where a history had a part of them only; gives the last of these
    /// histories.
    ///
    /// # Errors
    /// What is wrong with the recording. `look` is asked after each record whether to go on.
    pub(crate) fn in_parts(
        mut self,
        add: &mut dyn FnMut(&HistoryView),
        look: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> anyhow::Result<HistoryView> {
        self.config.history_bytes = replay::REREAD_BYTES;
        Ok(self.replay()?.in_parts(add, look)?)
    }

    /// Gives the answer for each sample, in time order, with the source of its trigger if it `has_sources`, and at the end
    /// what a person should know: damage, missing load objects.
    ///
    /// # Errors
    /// When it is no recording, and whatever `line` gives: that ends the reading.
    pub(crate) fn script(
        self,
        has_sources: bool,
        line: &mut dyn FnMut(&SampleLine) -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<String>> {
        self.replay()?.script(has_sources, line)
    }

    fn replay(self) -> anyhow::Result<Replay> {
        let Self { file, description, config, policy } = self;
        Ok(Replay::new(file.read()?, description, config, policy))
    }
}

/// The error of a recording that cannot be opened, with what may have been meant.
fn not_opened(error: RecordingError) -> anyhow::Error {
    if let RecordingError::Io { path, source, .. } = &error
        && source.kind() == std::io::ErrorKind::NotFound
    {
        let what = format!("cannot read {}: {source}", path.display());
        let remedy = "dataspace record -- COMMAND   makes a recording\n-i FILE   reads another one";
        return Failure::new(Kind::Failed, what).with_remedy(remedy).into();
    }
    error.into()
}

/// A collector's error with the exit code that its kind has.
fn failure(error: &Error) -> anyhow::Error {
    let kind = match error.kind() {
        ErrorKind::NotPermitted => Kind::NotPermitted,
        ErrorKind::MachineCannot => Kind::Unsupported,
        ErrorKind::Usage => Kind::Usage,
        ErrorKind::Failed => return anyhow::anyhow!("{error}"),
    };
    Failure::new(kind, error.to_string()).into()
}
