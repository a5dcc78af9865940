//! `threads` as it is typed, and what it asks for.

use super::session::{EventArgs, QUESTION, TARGETS, TargetArgs, VIEW};
use super::value;
use super::view::FormArgs;
use crate::config::{AnswerForm, LiveOptions, Output, RecordingOptions};
use crate::exit::Failure;
use clap::Args;
use dataspace_proto::query::Query;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub(super) const EXAMPLES: &str = "\
Examples:
  dataspace threads --duration 10 -p 4711     ten seconds of a running process
  dataspace threads -- ./server --port 1      a command until it ends, or Ctrl-C
  dataspace threads -i perf.data              a recording
  dataspace threads -p 4711 --json | jq '.lines[] | select(.sharing == \"false\")'
  dataspace threads -i perf.data --where 'type == \"order\"' --span -30s..

A line is shared where a thread touches it, then another, then the first again, in short order, and at
least one of the two writes: false sharing where they touch different bytes, true where the same. What
is at stake is the time of those samples: the sharing cannot cost more of the time spent at the line.";

/// Lines that a table has, where no limit was given.
const DEFAULT_LIMIT: usize = 20;

/// `threads`.
#[derive(Debug, Args)]
pub(crate) struct ThreadsArgs {
    /// Processes: all their threads, and the children born from now on.
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',', value_parser = value::task,
        group = "target", help_heading = TARGETS)]
    pids: Vec<i32>,
    /// Single threads.
    #[arg(short, long = "tid", value_name = "TID", value_delimiter = ',', value_parser = value::task,
        group = "target", help_heading = TARGETS)]
    tids: Vec<i32>,
    /// The service or other unit of systemd.
    #[arg(short, long, value_name = "NAME", group = "target", help_heading = TARGETS)]
    unit: Option<String>,
    /// A command to run, counted from its first instruction.
    #[arg(last = true, value_name = "COMMAND", group = "target", help_heading = TARGETS)]
    command: Vec<OsString>,
    /// A recording; `-` is standard input [default, where no target is named: perf.data].
    #[arg(short, long, value_name = "FILE", group = "target", help_heading = TARGETS)]
    input: Option<PathBuf>,
    /// Look for a recording's load objects below DIR first, as `perf report --symfs` does.
    #[arg(long, value_name = "DIR", help_heading = TARGETS)]
    symfs: Option<PathBuf>,
    #[command(flatten)]
    event: EventArgs,
    /// Stop after so long: 5, 0.5, 10s, 1m.
    #[arg(long, value_name = "SECS", value_parser = value::duration, help_heading = VIEW)]
    duration: Option<Duration>,
    #[command(flatten)]
    form: FormArgs,
    /// Show at most N lines [default: 20, with --json or --csv all].
    #[arg(long, value_name = "N", value_parser = value::limit, help_heading = VIEW)]
    limit: Option<usize>,
    /// Show lines that nobody shares, too.
    #[arg(long, help_heading = VIEW)]
    all: bool,
    /// Count only samples for which the expression is true: 'type == "order"'.
    #[arg(long = "where", value_name = "EXPR", help_heading = QUESTION)]
    condition: Option<String>,
    /// Count only samples of this span: -30s..-10s before the end, 5s..10s after the beginning, -1m..
    #[arg(long, value_name = "FROM..TO", allow_hyphen_values = true, help_heading = QUESTION)]
    span: Option<String>,
    /// Keep the newest samples in so much memory [default: 64M, about a million samples; of a recording 256M].
    #[arg(long, value_name = "SIZE", value_parser = value::size, help_heading = QUESTION)]
    history: Option<u64>,
}

/// All that `threads` is to do.
#[derive(Debug)]
pub(crate) struct ThreadsOptions {
    /// Source of the samples.
    pub(crate) source: SampleSource,
    /// Span and filter of the samples that count.
    pub(crate) query: Query,
    /// Lines that nobody shares are shown too.
    pub(crate) has_all: bool,
    /// Most lines.
    pub(crate) limit: usize,
    /// Form of the output.
    pub(crate) form: AnswerForm,
}

/// Origin of samples.
#[derive(Debug)]
pub(crate) enum SampleSource {
    /// A session of our own, and how long it is.
    Live(Box<LiveOptions>, Option<Duration>),
    /// A recording.
    Recording(RecordingOptions),
}

impl ThreadsArgs {
    /// The options that were meant.
    ///
    /// # Errors
    /// Where no target can be made of the arguments.
    pub(crate) fn resolve(self) -> Result<ThreadsOptions, Failure> {
        let query = Query { filter: self.condition, span: self.span, ..Query::default() };
        let form = self.form.resolve();
        let limit = if form == AnswerForm::Text { DEFAULT_LIMIT } else { usize::MAX };
        let Self { pids, tids, unit, command, .. } = self;
        let target = TargetArgs { pids, tids, unit, command, ..TargetArgs::default() };
        let source = if target.is_given() {
            let live = self.event.resolve(target.resolve("threads")?, Output::Table);
            let history_bytes = self.history.unwrap_or(live.history_bytes);
            let live = LiveOptions { history_bytes, has_lines: true, ..live };
            SampleSource::Live(Box::new(live), self.duration)
        } else {
            SampleSource::Recording(RecordingOptions::of_samples(
                self.input,
                self.symfs,
                self.history,
                true,
            ))
        };
        Ok(ThreadsOptions {
            source,
            query,
            has_all: self.all,
            limit: self.limit.unwrap_or(limit),
            form,
        })
    }
}
