//! Grammar of the command line, and the options that it means. Of the world outside it looks at two things
//! only: the environment, for colour (`NO_COLOR`, `TERM`), and the token's file, for a client of the daemon.

mod annotate;
mod daemon;
mod layout;
mod measure;
mod mistake;
mod record;
mod resolve;
mod session;
mod threads;
pub(crate) mod value;
mod view;
mod watch;
mod web;

pub(crate) use annotate::{AnnotateArgs, AnnotateOptions, CodeSamples};
pub(crate) use daemon::{
    AskArgs, AttachArgs, ConfigArgs, ConfigCommand, ConnectArgs, DaemonArgs, DetachArgs,
    InstallUnitsArgs, asked_for,
};
pub(crate) use layout::LayoutArgs;
pub(crate) use measure::{MeasureArgs, MeasureOptions, MeasureSource};
pub(crate) use mistake::with_tip;
pub(crate) use record::RecordArgs;
pub(crate) use session::{EventArgs, Global, TargetArgs, When};
pub(crate) use threads::{SampleSource, ThreadsArgs, ThreadsOptions};
pub(crate) use view::{NamesArgs, QueryArgs, SelectionArgs, ViewArgs, WindowsArgs, is_utf8};
pub(crate) use watch::WatchArgs;
pub(crate) use web::WebArgs;

use crate::config::Paths;
use clap::{Args, Parser, Subcommand, ValueEnum};
use session::{QUESTION, VIEW};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  dataspace demo                             see it work with nothing at hand
  dataspace top -p 4711                      watch a running process
  dataspace top -- ./server --port 1         run a command under it
  dataspace top --once --duration 5 -p 4711  one table after five seconds
  dataspace record -p 4711                   record it now, to look later
  dataspace report -i perf.data              what was recorded, here or elsewhere, by perf too
  dataspace doctor                           what this machine can do
  dataspace daemon                           stay attached to services; see attach, sessions, status

Exit codes: 0 done, 1 failed, 2 usage, 3 not permitted, 4 this machine cannot,
130 interrupted before there was a result.";

const TOP_EXAMPLES: &str = "\
Examples:
  dataspace top -p 4711,4712
  sudo dataspace top -u redis-server.service
  sudo dataspace top -a --exclude-comm Xorg
  sudo dataspace top --comm postgres
  dataspace top --json --duration 10 -p 4711 > snapshots.jsonl
  dataspace top -F 199 -- ./server --port 1
  dataspace top --windows 300,60,5 -p 4711
  dataspace top --once --duration 5 --by process,object -p 4711,4712
  dataspace top -e page-faults -p 4711
  dataspace top -e mem:0x404028/8:rw -c 1 -- ./count 1000000
  dataspace top --connect --session redis    what a daemon's session has
  dataspace top --connect --session redis --once   the same as one table, now
  dataspace top --connect http://127.0.0.1:9170 --token-file token
  dataspace top --connect -p 4711            a session of its own in the daemon, ended at the end

Everything after -- is the command and its arguments. Without a terminal on standard output,
one plain table is printed when the target ends or on Ctrl-C; of a daemon's session at once, unless
--duration is given.";

const REPORT_EXAMPLES: &str = "\
Examples:
  dataspace report -i perf.data
  perf record -e cpu-clock --intr-regs -o - ./a.out | dataspace report -i -
  dataspace report -i perf.data --json --limit 20
  dataspace report -i perf.data --format csv > objects.csv
  dataspace report -i perf.data --by thread,object --metrics samples,share,latency
  dataspace report -i perf.data --by cacheline,member --where 'type == \"order\"'
  dataspace report -i perf.data --by second --span -30s..-10s
  dataspace report -i perf.data --by 'address / 2097152' --where 'access == \"store\"'
  dataspace report -i perf.data --by reason,module,function    the way out of <Unknown>
  dataspace report -i perf.data --format folded | flamegraph.pl > objects.svg
  dataspace report -i perf.data --format pprof > objects.pb.gz; go tool pprof -top objects.pb.gz

A stack is <Total>, the objects around an object, the object, and the function that accessed it. In a
profile for pprof the function comes after <Total>: -top lists objects, -peek OBJECT who touches it.";

const SCRIPT_EXAMPLES: &str = "\
Examples:
  dataspace script -i perf.data | jq -c 'select(.member == \"next\")'
  dataspace script -i perf.data --skid 0 --paths type";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  dataspace doctor                              what you may do here
  sudo dataspace doctor                         what root could do
  dataspace doctor --json                       the same for a program
  dataspace doctor --calibrate                  how far the samples of the best event skid here
  dataspace doctor --calibrate -e task-clock --duration 30 --json

With --calibrate a bundled program runs loops in which one access is slow and known: a load that
depends on the load before it, an independent load, a store; each first, in the middle and last.
Where the samples lie, counted in retired instructions from the slow access, is the skid; a warning
says where it does not fit the model that the event's samples are attributed with.";

const DEMO_EXAMPLES: &str = "\
Examples:
  dataspace demo                          on the screen, until q
  dataspace demo | cat                    one table, after five seconds
  dataspace demo -e page-faults --json    as lines of JSON
  dataspace demo --windows 30,5           sums over these last seconds, in place of 60, 10 and 1";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  dataspace completions bash > ~/.local/share/bash-completion/completions/dataspace
  dataspace completions zsh > ~/.zfunc/_dataspace      with ~/.zfunc in $fpath
  dataspace completions fish > ~/.config/fish/completions/dataspace.fish

The package and install-units install them, and manual pages, for all users.";

/// Tells which data objects a running program spends its memory time on: struct members, globals,
/// array elements, locals. It needs nothing but debug information (-g).
#[derive(Debug, Parser)]
#[command(name = "dataspace", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Watch the hot data objects of a running process, or of a command.
    #[command(after_help = TOP_EXAMPLES)]
    Top(Box<TopArgs>),
    /// Record a running process, or a command, to a perf.data file.
    #[command(after_help = record::EXAMPLES)]
    Record(RecordArgs),
    /// Show the data objects of a recording (perf.data).
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArgs),
    /// Print one JSON object for each sample of a recording, in time order.
    #[command(after_help = SCRIPT_EXAMPLES)]
    Script(ScriptArgs),
    /// Show all members of a type by offset: holes, padding, bit-fields, cache lines.
    #[command(after_help = layout::EXAMPLES)]
    Layout(LayoutArgs),
    /// Show a function's source and instructions with the data objects that they touch.
    #[command(after_help = annotate::EXAMPLES)]
    Annotate(Box<AnnotateArgs>),
    /// Tell which threads share a cache line, and what would separate them.
    #[command(after_help = threads::EXAMPLES)]
    Threads(Box<ThreadsArgs>),
    /// Count events exactly and sample one beside them: cache and TLB misses, page faults, time.
    #[command(after_help = measure::EXAMPLES)]
    Measure(Box<MeasureArgs>),
    /// Tell who reads and writes some data, by hardware breakpoints on it.
    #[command(after_help = watch::EXAMPLES)]
    Watch(WatchArgs),
    /// Show data objects in a browser.
    #[command(after_help = web::EXAMPLES)]
    Web(Box<WebArgs>),
    /// Tell what this machine and these privileges allow, and what would allow more.
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Profile a small bundled program, to see it work.
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoArgs),
    /// Stay attached to services and serve their totals over a socket.
    #[command(after_help = daemon::DAEMON_EXAMPLES)]
    Daemon(DaemonArgs),
    /// Do the work of a user's sessions, for the daemon that started this.
    #[command(hide = true)]
    Worker,
    /// Open files, for the process that started this.
    #[command(hide = true)]
    Opener,
    /// Fetch debug information, for the process that started this.
    #[command(hide = true)]
    FetchDebug,
    /// Install the daemon as a service: this binary, its units, an example configuration.
    #[command(after_help = daemon::INSTALL_UNITS_EXAMPLES)]
    InstallUnits(InstallUnitsArgs),
    /// Print what a shell reads to complete commands and options.
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Check the daemon's configuration.
    #[command(after_help = daemon::CONFIG_EXAMPLES)]
    Config(ConfigArgs),
    /// Have the daemon attach to a target.
    #[command(after_help = daemon::ATTACH_EXAMPLES)]
    Attach(AttachArgs),
    /// Have the daemon end sessions.
    #[command(after_help = daemon::DETACH_EXAMPLES)]
    Detach(DetachArgs),
    /// List the daemon's sessions that you may see.
    #[command(after_help = daemon::SESSIONS_EXAMPLES)]
    Sessions(AskArgs),
    /// Tell how the daemon is.
    #[command(after_help = daemon::STATUS_EXAMPLES)]
    Status(AskArgs),
}

/// `top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) event: EventArgs,
    #[command(flatten)]
    pub(crate) view: ViewArgs,
    #[command(flatten)]
    pub(crate) windows: WindowsArgs,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// Keep our own resident memory below SIZE: 256M, 1G. Near it caches of debug information are given
    /// up, and at last the naming of samples (`over_budget`). At least 37M.
    #[arg(long, value_name = "SIZE", value_parser = value::size, conflicts_with = "connect")]
    pub(crate) memory_max: Option<u64>,
    /// Keep the newest samples in so much memory, so that --by and --where can ask for them; 0 keeps none
    /// [default: 64M, about a million samples; of the daemon 16M].
    #[arg(long, value_name = "SIZE", value_parser = value::size_or_none)]
    pub(crate) history: Option<u64>,
    /// Sample for a second first, and fetch debug information that is missing here from the servers in
    /// $DEBUGINFOD_URLS, by build-id, into the cache of debuginfod's clients.
    #[arg(long, conflicts_with = "connect")]
    pub(crate) debuginfod: bool,
}

/// `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    pub(crate) event: EventArgs,
    #[command(flatten)]
    pub(crate) view: ViewArgs,
    #[command(flatten)]
    pub(crate) windows: WindowsArgs,
}

/// `doctor`.
#[derive(Debug, Default, Args)]
pub(crate) struct DoctorArgs {
    /// Measure how far this machine's samples skid, on a bundled program.
    #[arg(long)]
    pub(crate) calibrate: bool,
    /// Calibrate so long: 5, 0.5, 10s, 1m [default: 10s].
    #[arg(long, value_name = "SECS", value_parser = value::duration, requires = "calibrate")]
    pub(crate) duration: Option<Duration>,
    /// Print one JSON object with all that was found or measured.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) event: EventArgs,
}

/// `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) recording: RecordingArgs,
    /// Print one JSON snapshot instead of a table: the same as --format json.
    #[arg(long, help_heading = VIEW, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Form of the output.
    #[arg(long, value_name = "FORMAT", default_value = "table", help_heading = VIEW)]
    pub(crate) format: ReportFormat,
    /// Print a table in place of the screen on a terminal.
    #[arg(long, help_heading = VIEW)]
    pub(crate) plain: bool,
    /// Print it at once, and not with $DATASPACE_PAGER, $PAGER or less.
    #[arg(long, help_heading = VIEW)]
    pub(crate) no_pager: bool,
    #[command(flatten)]
    pub(crate) windows: WindowsArgs,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    #[command(flatten)]
    pub(crate) names: NamesArgs,
    #[command(flatten)]
    pub(crate) query: QueryArgs,
    /// Keep samples in so much memory while a question is answered; a recording that has more is read twice
    /// [default: 256M, nearly four million samples].
    #[arg(long, value_name = "SIZE", value_parser = value::size, help_heading = QUESTION)]
    pub(crate) history: Option<u64>,
}

/// In which format a report is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For a person.
    #[default]
    Table,
    /// One JSON snapshot.
    Json,
    /// One line for each object.
    Csv,
    /// One line for each stack of objects and function, for flame graphs.
    Folded,
    /// A profile for `go tool pprof`, compressed with gzip.
    Pprof,
    /// One file for a browser, with all views and the data inside: it needs no server and no network.
    Html,
}

impl ReportFormat {
    /// Tells whether every sample is in it, so that no objects can be left out.
    pub(crate) const fn has_stacks(self) -> bool {
        matches!(self, Self::Folded | Self::Pprof)
    }
}

/// `script`.
#[derive(Debug, Args)]
pub(crate) struct ScriptArgs {
    #[command(flatten)]
    pub(crate) recording: RecordingArgs,
    /// Print at most N lines.
    #[arg(long, value_name = "N", value_parser = value::limit)]
    pub(crate) limit: Option<usize>,
    /// Print these fields only, in this order: `time_ns,tid,object,file,line`.
    #[arg(long, value_name = "FIELD,…", value_delimiter = ',')]
    pub(crate) fields: Vec<String>,
    /// Accepted as on `report`: the lines are JSON in any case.
    #[arg(long, hide = true)]
    pub(crate) json: bool,
}

/// Recording to read, and how to attribute its samples.
#[derive(Debug, Args)]
pub(crate) struct RecordingArgs {
    /// The recording; `-` is standard input.
    #[arg(short, long, value_name = "FILE", default_value = "perf.data")]
    pub(crate) input: PathBuf,
    /// Look for load objects below DIR first, as `perf report --symfs` does.
    #[arg(long, value_name = "DIR")]
    pub(crate) symfs: Option<PathBuf>,
    /// Take the reported IP (0), the instruction before it (1), or at most N back as the trigger.
    #[arg(long, value_name = "0|1|auto|N", default_value = "auto", value_parser = value::skid)]
    pub(crate) skid: crate::config::Skid,
    /// Let only one path from trigger to data object answer, for measuring.
    #[arg(long, value_name = "WHICH", default_value = "both")]
    pub(crate) paths: Paths,
    /// Fetch debug information that is missing here from the servers in $DEBUGINFOD_URLS, by build-id, into the
    /// cache of debuginfod's clients.
    #[arg(long)]
    pub(crate) debuginfod: bool,
}
