//! Options that many commands have: the target, its events, and what holds for all of them.

use super::value;
use crate::config::Sandbox;
use clap::{ArgAction, Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

pub(super) const TARGETS: &str = "Target";
pub(super) const EVENTS: &str = "Events";
pub(super) const VIEW: &str = "View";
pub(super) const QUESTION: &str = "Question to the history";

/// Flags that every command has.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Say more on standard error; twice or thrice for more still.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Use of colour; `auto` honours NO_COLOR.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
    /// Reads what the target controls in a process without privileges; off: in this one.
    #[arg(long, global = true, value_name = "HOW", default_value = "on")]
    pub(crate) sandbox: Sandbox,
}

/// Target to profile.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = TARGETS)]
pub(crate) struct TargetArgs {
    /// Processes: all their threads, and the children born from now on.
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',', value_parser = value::task,
        group = "target")]
    pub(crate) pids: Vec<i32>,
    /// Single threads.
    #[arg(short, long = "tid", value_name = "TID", value_delimiter = ',', value_parser = value::task,
        group = "target")]
    pub(crate) tids: Vec<i32>,
    /// The service or other unit of systemd, through its restarts.
    #[arg(short, long, value_name = "NAME", group = "target")]
    pub(crate) unit: Option<String>,
    /// A control group and those below it: its directory, or the path in /proc/PID/cgroup.
    #[arg(long, value_name = "PATH", group = "target")]
    pub(crate) cgroup: Option<PathBuf>,
    /// Every process of the machine.
    #[arg(short, long, group = "target")]
    pub(crate) all: bool,
    /// A command to run, counted from its first instruction.
    #[arg(last = true, value_name = "COMMAND", group = "target")]
    pub(crate) command: Vec<OsString>,
    /// Only processes of this name; without another target, all of them, now and later. It is the name
    /// that `ps -o comm` shows, of 15 bytes at most.
    #[arg(long = "comm", value_name = "NAME", value_delimiter = ',', value_parser = value::comm)]
    pub(crate) comms: Vec<Box<[u8]>>,
    /// No processes of this name.
    #[arg(long = "exclude-comm", value_name = "NAME", value_delimiter = ',', value_parser = value::comm)]
    pub(crate) excluded_comms: Vec<Box<[u8]>>,
}

/// Events to sample.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = EVENTS)]
pub(crate) struct EventArgs {
    /// Events in perf's spelling: mem, loads and stores (what this machine has for them), cpu-clock,
    /// page-faults, mem:0x404028/8:rw, syscalls:sys_enter_read, cpu/mem-loads,ldlat=30/P, ibs_op//,
    /// cycles:pp, r1cd [default: the best one that this machine and these privileges allow].
    #[arg(short, long = "event", value_name = "NAME", value_parser = value::event_list)]
    pub(crate) events: Vec<value::EventList>,
    /// Take one sample each N events.
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) period: Option<u64>,
    /// Take HZ samples a second of each thread on a CPU.
    #[arg(short = 'F', long = "freq", value_name = "HZ", conflicts_with = "period",
        value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) frequency: Option<u64>,
    /// Sample less where sampling takes more than this share of the target's CPU time, or of one
    /// CPU: 0.5%, 3%, off [default: 1%, but with -c every Nth fault, breakpoint and tracepoint].
    #[arg(long, value_name = "SHARE", value_parser = value::share)]
    pub(crate) max_overhead: Option<value::Share>,
    /// Pages of each CPU's ring, a power of two [default: 512 KiB].
    #[arg(short = 'm', long, value_name = "PAGES", value_parser = value::pages)]
    pub(crate) mmap_pages: Option<usize>,
}

/// Use of colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
