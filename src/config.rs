//! Options of the program, worked out from what was typed: no flag is looked at below here.

use crate::column::Column;
use dataspace_collector::target::TargetSpec;
use dataspace_collector::target::membership::CommFilter;
use dataspace_proto::broker::CommandOutput;
use dataspace_proto::event::{Sampling, SkidModel};
use dataspace_proto::measure::{Measure, MeasureRequest};
use dataspace_proto::query::Query;
use dataspace_proto::snapshot::ObjectLine;
use dataspace_proto::window::{Window, WindowLengths};
use dataspace_proto::worker::Viewer;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Limit of the cost of sampling unless the user says otherwise, as a share of the CPU time.
pub(crate) const DEFAULT_MAX_OVERHEAD: f64 = 0.01;

/// Options of a live session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LiveOptions {
    /// Target to profile.
    pub(crate) target: TargetSpec,
    /// Processes of which names only, and of which not.
    pub(crate) comms: CommFilter,
    /// Events as `--event` takes them; none: the best one that there is.
    pub(crate) events: Vec<String>,
    /// Rate of the samples, where the user said so.
    pub(crate) sampling: Option<Sampling>,
    /// A measurement, which says what is sampled and what is counted beside it.
    pub(crate) measure: Option<MeasureRequest>,
    /// Limit of the cost of sampling, as a share of the CPU time; `None`: no limit.
    pub(crate) max_overhead: Option<f64>,
    /// With a period, every Nth fault, breakpoint and tracepoint stays a sample.
    pub(crate) keeps_counts: bool,
    /// Pages of each CPU's ring, where the user said so.
    pub(crate) ring_pages: Option<usize>,
    /// Windows that metrics are summed over.
    pub(crate) windows: WindowLengths,
    /// Most bytes of the history; 0 for none.
    pub(crate) history_bytes: u64,
    /// The history has source lines.
    pub(crate) has_lines: bool,
    /// Destination of a command's own output: ours is for data only.
    pub(crate) command_output: CommandOutput,
    /// This process has other sessions besides: what it costs is that of their threads then.
    pub(crate) is_one_of_many: bool,
    /// For whom it is, where that is a user with fewer privileges than ours: then only files that he
    /// may read are opened, and events are on processes of his only.
    pub(crate) viewer: Option<Viewer>,
}

impl LiveOptions {
    /// Bounds them for a user who may see only his own: it is for `viewer` then.
    pub(crate) fn confine(&mut self, viewer: Viewer) {
        let asked = self.max_overhead.unwrap_or(DEFAULT_MAX_OVERHEAD);
        self.max_overhead = Some(asked.min(DEFAULT_MAX_OVERHEAD));
        self.keeps_counts = false;
        self.history_bytes = self.history_bytes.min(DAEMON_HISTORY_BYTES);
        self.viewer = Some(viewer);
    }
}

/// Bytes of the history of a session of one's own, where nothing else is said: about a million samples.
pub(crate) const DEFAULT_HISTORY_BYTES: u64 = 64 << 20;

/// The same of a session of the daemon.
pub(crate) const DAEMON_HISTORY_BYTES: u64 = 16 << 20;

/// Bytes of the history of a recording that is asked a question: nearly four million samples. One that has more is read twice.
pub(crate) const RECORDING_HISTORY_BYTES: u64 = 256 << 20;

/// Destination and length of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordOptions {
    /// The file; standard output otherwise.
    pub(crate) file: Option<PathBuf>,
    /// The length at which it ends.
    pub(crate) max_bytes: Option<u64>,
    /// Time after which to stop, if not at the target's end.
    pub(crate) duration: Option<Duration>,
    /// One JSON object on standard output at the end.
    pub(crate) is_json: bool,
}

/// Recording to read, and how to attribute its samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordingOptions {
    /// The recording.
    pub(crate) input: Input,
    /// A directory below which load objects are looked for first.
    pub(crate) symfs: Option<PathBuf>,
    /// The skid model.
    pub(crate) skid: Skid,
    /// Paths that may answer.
    pub(crate) paths: Paths,
    /// Windows that metrics are summed over.
    pub(crate) windows: WindowLengths,
    /// Most bytes of the history; 0 for none.
    pub(crate) history_bytes: u64,
    /// The history has source lines.
    pub(crate) has_lines: bool,
}

/// Options of `layout`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LayoutOptions {
    /// Name of the type, or a glob.
    pub(crate) name: String,
    /// The file whose debug information has it.
    pub(crate) program: Option<PathBuf>,
    /// Origin of the samples.
    pub(crate) source: LayoutSource,
    /// Form of the output.
    pub(crate) form: AnswerForm,
    /// Also those that are alike.
    pub(crate) is_every: bool,
    /// With a pager on a terminal.
    pub(crate) is_paged: bool,
}

/// Origin of the samples of a layout.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LayoutSource {
    /// There are none.
    None,
    /// A recording.
    Recording(Box<RecordingOptions>),
    /// Running tasks, for so long or until their end.
    Live(Box<LiveOptions>, Option<Duration>),
}

impl RecordingOptions {
    /// Those of a recording whose samples are kept, to be looked at one by one: `perf.data` unless another one is named.
    pub(crate) fn of_samples(
        input: Option<PathBuf>,
        symfs: Option<PathBuf>,
        history_bytes: Option<u64>,
        has_lines: bool,
    ) -> Self {
        Self {
            input: Input::at(input.unwrap_or_else(|| PathBuf::from("perf.data"))),
            symfs,
            skid: Skid::Auto,
            paths: Paths::Both,
            windows: WindowLengths::default(),
            history_bytes: history_bytes.unwrap_or(RECORDING_HISTORY_BYTES),
            has_lines,
        }
    }
}

/// Form of an answer to one question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AnswerForm {
    /// For a person.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// One line for each row.
    Csv,
}

/// Options of a calibration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CalibrationOptions {
    /// The event as `--event` takes it; none: the best one that there is.
    pub(crate) event: Option<String>,
    /// Rate of the samples, where the user said so.
    pub(crate) sampling: Option<Sampling>,
    /// Time that all loops run together.
    pub(crate) duration: Duration,
    /// One JSON object instead of a table.
    pub(crate) is_json: bool,
    /// True for output in colour.
    pub(crate) has_color: bool,
}

/// Spelling of data objects for people; programs get both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Names {
    /// As the source has them: order.next.
    #[default]
    Source,
    /// By their types: {structure:order}.{pointer+structure:order next}.
    Descriptor,
}

impl Names {
    /// The name of `object`.
    pub(crate) fn of(self, object: &ObjectLine) -> &Arc<str> {
        match self {
            Self::Source if !object.name.is_empty() => &object.name,
            // A daemon of an older version has descriptors only.
            Self::Source | Self::Descriptor => &object.object,
        }
    }
}

/// Source of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A file.
    File(PathBuf),
    /// Standard input, in pipe mode.
    Stdin,
}

impl Input {
    /// The recording at a path, of which `-` is standard input.
    pub(crate) fn at(path: PathBuf) -> Self {
        if path.as_os_str() == "-" { Self::Stdin } else { Self::File(path) }
    }
}

/// Skid model that samples are attributed with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Skid {
    /// As each event tells.
    #[default]
    Auto,
    /// The same for all events.
    Forced(SkidModel),
}

/// The paths from trigger to data object that may answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Paths {
    /// Only the instruction and the debug information.
    Type,
    /// Only the data address.
    Address,
    /// Both, joined.
    #[default]
    Both,
}

/// Presentation of `top`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TopOptions {
    /// Form of the output.
    pub(crate) output: Output,
    /// Time between two snapshots.
    pub(crate) interval: Duration,
    /// Time after which to stop, if not at the target's end.
    pub(crate) duration: Option<Duration>,
    /// Objects to show.
    pub(crate) selection: Selection,
    /// A question whose answer is shown in place of objects.
    pub(crate) query: Option<Query>,
    /// A question for single samples, which are shown below that answer where people read it.
    pub(crate) newest: Option<Query>,
    /// The window shown first, where the user said so.
    pub(crate) window: Option<Window>,
    /// Spelling of the objects.
    pub(crate) names: Names,
    /// True for output in colour.
    pub(crate) has_color: bool,
    /// Columns and colours of the screen.
    pub(crate) screen: ScreenSettings,
    /// The measurement that the session is for: its page is shown first.
    pub(crate) measure: Option<Measure>,
    /// Keys of the user's own, for questions of the screen.
    pub(crate) own_keys: BTreeMap<String, String>,
    /// True where the terminal has no letters but those of ASCII.
    pub(crate) is_ascii: bool,
}

/// Columns and colours of the screen, as `[screen]` of a configuration has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ScreenSettings {
    /// Its columns; none: those that there is room for.
    pub(crate) columns: Vec<Column>,
    /// Its colours; none: the dark ones.
    pub(crate) theme: Option<ThemeName>,
}

impl ScreenSettings {
    /// These, and where they say nothing `others`.
    pub(crate) fn or(&self, others: &Self) -> Self {
        let columns = if self.columns.is_empty() { &others.columns } else { &self.columns };
        Self { columns: columns.clone(), theme: self.theme.or(others.theme) }
    }
}

/// Colours of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ThemeName {
    /// For light letters on a dark ground.
    #[default]
    Dark,
    /// For dark letters on a light ground.
    Light,
}

/// Form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// The full-screen table.
    Screen,
    /// One JSON snapshot a line.
    Json,
    /// One plain table at the end.
    Table,
    /// One JSON snapshot at the end.
    JsonOnce,
    /// One line for each object at the end.
    Csv,
}

impl Output {
    /// Tells whether one answer is given and no more.
    pub(crate) const fn is_single(self) -> bool {
        matches!(self, Self::Table | Self::JsonOnce | Self::Csv)
    }
}

/// Objects of a snapshot that are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    /// At most so many objects, `<Total>` among them.
    pub(crate) limit: Option<usize>,
    /// Only objects whose descriptor contains this text.
    pub(crate) filter: String,
}

/// Use of a worker without privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sandbox {
    /// One is used.
    On,
    /// All is done in one process.
    Off,
}
