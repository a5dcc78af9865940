//! What the program needs, worked out from what was typed: no flag is looked at below here.

use crate::file_source::FileReader;
use dataspace_proto::event::{Sampling, SkidModel};
use dataspace_proto::window::{Window, WindowLengths};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What a live session samples, and how.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LiveOptions {
    /// Whom to profile.
    pub(crate) target: LiveTarget,
    /// Processes of which names only, and of which not.
    pub(crate) comms: Comms,
    /// Events as `--event` takes them; none: the best one that there is.
    pub(crate) events: Vec<String>,
    /// How often, where the user said so.
    pub(crate) sampling: Option<Sampling>,
    /// What sampling may cost, as a share of the CPU time; `None`: anything.
    pub(crate) max_overhead: Option<f64>,
    /// With a period, every Nth fault, breakpoint and tracepoint stays a sample.
    pub(crate) keeps_counts: bool,
    /// Pages of each CPU's ring, where the user said so.
    pub(crate) ring_pages: Option<usize>,
    /// What metrics are summed over.
    pub(crate) windows: WindowLengths,
    /// Where a command's own output goes.
    pub(crate) command_output: CommandOutput,
    /// This process has other sessions besides: what it costs is that of their threads then.
    pub(crate) is_one_of_many: bool,
    /// For whom it is, where that is a user with fewer privileges than ours: then only files that he
    /// may read are opened, and events are on processes of his only.
    pub(crate) reader: Option<FileReader>,
}

/// Whom a live session profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LiveTarget {
    /// Running processes: all their threads and the children born from now on.
    Processes(Vec<i32>),
    /// Single threads.
    Threads(Vec<i32>),
    /// A program to start: its path or name, then its arguments.
    Command(Vec<OsString>),
    /// The control group of a unit of systemd.
    Unit(String),
    /// A control group.
    Cgroup(PathBuf),
    /// Every process of the machine.
    All,
}

/// Names of processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comms {
    /// Only these; none: any.
    pub(crate) include: Vec<Vec<u8>>,
    /// Not these.
    pub(crate) exclude: Vec<Vec<u8>>,
}

/// Where the output of a started command goes. Our standard output is for data only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandOutput {
    /// Where ours goes: nothing of ours is on it.
    Inherit,
    /// Its standard output goes to our standard error, its standard error too; it keeps the
    /// standard input.
    Stderr,
    /// Everything is discarded and the standard input is empty: the full-screen table has the
    /// terminal.
    Discard,
}

/// Where a live session is recorded to, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordOptions {
    /// The file; standard output otherwise.
    pub(crate) file: Option<PathBuf>,
    /// The length at which it ends.
    pub(crate) max_bytes: Option<u64>,
    /// When to stop, if not at the target's end.
    pub(crate) duration: Option<Duration>,
    /// One JSON object on standard output at the end.
    pub(crate) is_json: bool,
}

/// Which recording to read, and how to attribute its samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordingOptions {
    /// The recording.
    pub(crate) input: Input,
    /// A directory below which load objects are looked for first.
    pub(crate) symfs: Option<PathBuf>,
    /// The skid model.
    pub(crate) skid: Skid,
    /// Which paths may answer.
    pub(crate) paths: Paths,
    /// What metrics are summed over.
    pub(crate) windows: WindowLengths,
}

/// What is calibrated, and how it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CalibrationOptions {
    /// The event as `--event` takes it; none: the best one that there is.
    pub(crate) event: Option<String>,
    /// How often, where the user said so.
    pub(crate) sampling: Option<Sampling>,
    /// How long all loops run together.
    pub(crate) duration: Duration,
    /// One JSON object instead of a table.
    pub(crate) is_json: bool,
    /// Whether to use colour.
    pub(crate) has_color: bool,
}

/// Where a recording is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A file.
    File(PathBuf),
    /// Standard input, in pipe mode.
    Stdin,
}

/// How far the reported IP is taken to lie behind the trigger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Skid {
    /// As each event tells.
    #[default]
    Auto,
    /// The same for all events.
    Forced(SkidModel),
}

/// Which of the two paths from trigger to data object may answer.
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

/// How `top` shows what it finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TopOptions {
    /// What comes out.
    pub(crate) output: Output,
    /// Time between two snapshots.
    pub(crate) interval: Duration,
    /// When to stop, if not at the target's end.
    pub(crate) duration: Option<Duration>,
    /// Which objects.
    pub(crate) selection: Selection,
    /// The window shown first, where the user said so.
    pub(crate) window: Option<Window>,
    /// Whether to use colour.
    pub(crate) has_color: bool,
}

/// What form the answer takes.
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
}

impl Output {
    /// Whether one answer is given and no more.
    pub(crate) const fn is_single(self) -> bool {
        matches!(self, Self::Table | Self::JsonOnce)
    }
}

/// Which objects of a snapshot are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    /// At most so many objects, `<Total>` among them.
    pub(crate) limit: Option<usize>,
    /// Only objects whose descriptor contains this text.
    pub(crate) filter: String,
}
