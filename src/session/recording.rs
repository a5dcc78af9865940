//! A session without an analyzer that is written to a perf.data file or stream.

use super::live::{BATCH_LEN, N_BATCHES};
use super::{check_events, failure, live_config};
use crate::config::{LiveOptions, RecordOptions};
use crossbeam_channel::RecvTimeoutError;
use dataspace_collector::channel::batch;
use dataspace_collector::error::Error;
use dataspace_collector::live::{Heard, Live};
use dataspace_collector::perf_data::write::{Output, Progress, Recorded, Recorder, RecorderConfig};
use dataspace_proto::accounting::Collected;
use dataspace_proto::event::Event;
use dataspace_proto::record::Record;
use std::io::stdout;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;

/// Time that a wait for records goes on without asking whether it is over.
const GLANCE: Duration = Duration::from_millis(20);

/// A session whose events are open, with the file that it will be written to.
pub(crate) struct RecordingSession {
    live: Live,
    recorder: Recorder,
    /// Warnings at the beginning of the file, which were said then.
    note: Option<String>,
}

/// Progress of a recording.
#[derive(Debug)]
pub(crate) struct RecordingStatus {
    pub(crate) n_samples: u64,
    pub(crate) n_bytes: u64,
    /// Samples that the kernel took and lost, as of the last second.
    pub(crate) collected: Collected,
}

/// A recording that is over.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) recorded: Recorded,
    /// The kernel's own figures.
    pub(crate) collected: Collected,
    pub(crate) warnings: Vec<String>,
    /// Warnings that were said when it began.
    pub(crate) note: Option<String>,
}

impl RecordingSession {
    /// Opens the events; `recorder` has the file.
    ///
    /// # Errors
    /// When nothing can be sampled, with the remedy.
    pub(crate) fn open(live: &LiveOptions, recorder: Recorder) -> anyhow::Result<Self> {
        let live = Live::open(live_config(live)?).map_err(|error| failure(&error))?;
        let note = recorder.note();
        Ok(Self { live, recorder, note })
    }

    /// The target, for a person.
    pub(crate) fn description(&self) -> &str {
        self.live.description()
    }

    /// The events, as they were opened.
    pub(crate) fn events(&self) -> &[Event] {
        self.live.events()
    }

    /// Records until `is_over`, which is asked often, or until the target ends or the file is as
    /// long as it may be. What was mapped before is waited for until it `is_given_up`.
    ///
    /// # Errors
    /// When the recording broke off: what of it can be read, and why.
    pub(crate) fn run(
        self,
        is_given_up: &dyn Fn() -> bool,
        mut is_over: impl FnMut(&RecordingStatus) -> bool,
    ) -> anyhow::Result<Summary> {
        let progress = self.recorder.progress();
        let (sender, receiver) = batch::channel(N_BATCHES, BATCH_LEN);
        let running = self.live.record(self.recorder, sender, Heard::Notices, is_given_up);
        let running = running.map_err(|error| match error {
            Error::Recorder(error) => error.into(),
            error => failure(&error),
        })?;
        let mut warnings = Vec::new();
        let mut status =
            RecordingStatus { n_samples: 0, n_bytes: 0, collected: Collected::default() };
        let mut take = |status: &mut RecordingStatus, record: &Record| match record {
            Record::Warning(text) => warnings.push(text.to_string()),
            Record::Collected(collected) => status.collected = (**collected).clone(),
            _ => {}
        };
        loop {
            match receiver.receiver().recv_timeout(GLANCE) {
                Ok(batch) => {
                    batch.iter().for_each(|record| take(&mut status, record));
                    receiver.recycle(batch);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            look(&progress, &mut status);
            if is_over(&status) {
                running.stop();
            }
        }
        let outcome = running.join();
        let recorded = progress.finished()?;
        Ok(Summary { recorded, collected: outcome.collected, warnings, note: self.note })
    }
}

fn look(progress: &Arc<Progress>, status: &mut RecordingStatus) {
    status.n_samples = progress.n_samples();
    status.n_bytes = progress.n_bytes();
}

/// Begins the file. The reader of a named pipe is waited for until `is_given_up`.
///
/// # Errors
/// When the events are not spelled as such, or the file cannot be written, with the remedy.
pub(crate) fn recorder(
    live: &LiveOptions,
    options: &RecordOptions,
    is_given_up: impl Fn() -> bool,
) -> anyhow::Result<Recorder> {
    check_events(&live.events)?;
    let recorder = RecorderConfig {
        output: output(options)?,
        max_bytes: options.max_bytes,
        program: concat!("dataspace ", env!("CARGO_PKG_VERSION")).to_owned(),
        command_line: std::env::args_os().collect(),
    };
    Ok(Recorder::create_unless(recorder, is_given_up)?)
}

fn output(options: &RecordOptions) -> anyhow::Result<Output> {
    Ok(match &options.file {
        Some(path) => Output::File(path.clone()),
        None => {
            // Not `Stdout`, which looks for line ends in what it gets.
            let stream = std::fs::File::from(stdout().as_fd().try_clone_to_owned()?);
            Output::Stream { stream: Box::new(stream), name: "standard output".into() }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::index_worker;
    use crate::file_source::{FilePolicy, SystemFiles};
    use dataspace_analyzer::index::worker::Worker;
    use dataspace_analyzer::session::analyzer::{Analyzer, Config, Decided, Observer};
    use dataspace_collector::channel::batch;
    use dataspace_collector::live::{Heard, Live, LiveConfig};
    use dataspace_collector::perf_data::read::Recording;
    use dataspace_collector::perf_data::write::{Output, Recorder, RecorderConfig};
    use dataspace_collector::target::TargetSpec;
    use dataspace_proto::broker::CommandOutput;
    use dataspace_proto::record::Record;
    use std::path::Path;
    use std::process::Command;

    /// Takes the answers down.
    #[derive(Default)]
    struct Lines(Vec<String>);

    impl Observer for Lines {
        fn decided(&mut self, analyzer: &Analyzer, decided: Decided<'_>) {
            self.0.push(serde_json::to_string(&analyzer.sample_line(decided)).unwrap());
        }
    }

    fn lines(records: &[Record]) -> Vec<String> {
        let mut analyzer = Analyzer::new(Config::default());
        let mut worker = Worker::new(Box::new(SystemFiles::new(FilePolicy::default())));
        let mut lines = Lines::default();
        for record in records {
            analyzer.apply(record, &mut lines);
            while let Some(request) = analyzer.next_request() {
                let response = index_worker::answer(&mut worker, &request);
                analyzer.answer(response, &mut lines);
            }
        }
        lines.0
    }

    fn compile(dir: &Path) -> Option<std::path::PathBuf> {
        let program = dir.join("chase");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/chase.c");
        let status = Command::new("gcc").args(["-O2", "-g", source, "-o"]).arg(&program).status();
        status.is_ok_and(|status| status.success()).then_some(program)
    }

    #[test]
    fn live_and_recorded_samples_have_the_same_answers() {
        let dir = tempfile::tempdir().unwrap();
        let Some(program) = compile(dir.path()) else {
            eprintln!("not run: gcc is not installed");
            return;
        };
        let path = dir.path().join("perf.data");
        let argv = vec![program.into_os_string(), "32".into()];
        let mut config = LiveConfig::new(TargetSpec::Command(argv));
        config.command_output = CommandOutput::Discard;
        let live = match Live::open(config) {
            Ok(live) => live,
            Err(error) => {
                eprintln!("not run: {error}");
                return;
            }
        };
        let recorder = Recorder::create(RecorderConfig {
            output: Output::File(path.clone()),
            max_bytes: Some(200_000),
            program: "test".to_owned(),
            command_line: Vec::new(),
        });
        let (sender, receiver) = batch::channel(64, 1024);
        let recorder = recorder.unwrap();
        let progress = recorder.progress();
        let running = live.record(recorder, sender, Heard::Everything, &|| false).unwrap();
        let mut heard = Vec::new();
        while let Some(batch) = receiver.receive() {
            heard.extend(batch.iter().cloned());
            receiver.recycle(batch);
        }
        let outcome = running.join();
        let mut recorded = Vec::new();
        let mut recording = Recording::open(&path).unwrap();
        while let Some(record) = recording.next_record().unwrap() {
            recorded.push(record);
        }
        let (live, replayed) = (lines(&heard), lines(&recorded));
        assert!(live.len() > 100, "{} samples", live.len());
        assert_eq!(live.len() as u64, outcome.collected.delivered);
        assert!(live.iter().any(|line| line.contains("{structure:cell}")), "{}", live[0]);
        for (live, replayed) in live.iter().zip(&replayed) {
            assert_eq!(live, replayed);
        }
        // The channel has no bound of its own.
        let n_behind_end = progress.finished().unwrap().n_behind_end;
        assert_eq!(live.len() as u64, replayed.len() as u64 + n_behind_end);
    }
}
