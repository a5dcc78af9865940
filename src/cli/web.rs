//! `web` as it is typed, and what it asks for.

use super::daemon::{DAEMON, asked_for};
use super::session::{EventArgs, TARGETS, TargetArgs};
use super::value;
use super::view::WindowsArgs;
use crate::client::Client;
use crate::config::{DEFAULT_HISTORY_BYTES, Input, Output, RECORDING_HISTORY_BYTES};
use crate::daemon::alone::{AloneOptions, Shown};
use crate::daemon::config_file::{self, DEFAULT_SOCKET};
use crate::daemon::session::own_work::OwnWork;
use crate::exit::{Failure, Kind};
use crate::memory_bound;
use crate::session::recording_file;
use clap::Args;
use dataspace_collector::target::TargetSpec;
use dataspace_proto::api::{Health, SessionSpec};
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  dataspace web -p 4711                   a page that shows a running process
  dataspace web -p 4711 --open            the same, in the browser at once
  dataspace web -- ./server --port 1      a command, from its first instruction
  dataspace web -i perf.data              a recording
  dataspace web                           the sessions of the daemon
  dataspace web --connect http://db1:9170 --token-file token
  ssh -L 8080:127.0.0.1:8080 HOST dataspace web -p 4711 --port 8080

The address that is printed has a token in it, which opens the page: whoever has it sees the session. It holds
until the command ends. The page is served to this machine alone, and fetches nothing from elsewhere.";

/// `web`.
#[derive(Debug, Args)]
pub(crate) struct WebArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// A recording; `-` is standard input.
    #[arg(short, long, value_name = "FILE", group = "target", help_heading = TARGETS)]
    input: Option<PathBuf>,
    /// Look for a recording's load objects below DIR first, as `perf report --symfs` does.
    #[arg(long, value_name = "DIR", requires = "input", help_heading = TARGETS)]
    symfs: Option<PathBuf>,
    #[command(flatten)]
    event: EventArgs,
    #[command(flatten)]
    windows: WindowsArgs,
    /// Show the sessions of the daemon at PATH, or http://HOST:PORT [default, where no target is named].
    #[arg(long, visible_alias = "socket", value_name = "PATH|URL", num_args = 0..=1,
        default_missing_value = DEFAULT_SOCKET, conflicts_with = "target", help_heading = DAEMON)]
    connect: Option<PathBuf>,
    /// The token that a daemon over http wants; nobody else may read FILE.
    #[arg(long, value_name = "FILE", requires = "connect", help_heading = DAEMON)]
    token_file: Option<PathBuf>,
    /// Keep the newest samples in so much memory, for questions; 0 keeps none [default: 64M, of a recording 256M].
    #[arg(long, value_name = "SIZE", value_parser = value::size_or_none)]
    history: Option<u64>,
    /// Bound resident memory, of all processes together: 256M, 1G [default: no bound].
    #[arg(long, value_name = "SIZE", value_parser = value::size, conflicts_with = "input")]
    memory_max: Option<u64>,
    /// Serve the page at this port of 127.0.0.1 [default: any that is free].
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Open the page in the browser.
    #[arg(long)]
    pub(crate) open: bool,
}

impl WebArgs {
    /// The options that were meant.
    ///
    /// # Errors
    /// Where the target or the daemon is none.
    pub(crate) fn resolve(self) -> anyhow::Result<AloneOptions> {
        let (port, keys, memory_max) = (self.port, config_file::own_keys()?, self.memory_max);
        memory_bound::check_asked(memory_max)?;
        Ok(AloneOptions { shown: self.shown()?, port, memory_max, keys })
    }

    fn shown(self) -> anyhow::Result<Shown> {
        if let Some(input) = self.input {
            if self.event.is_given() || self.target.is_given() {
                let what = "a recording has its events and processes: there is nothing to sample";
                let remedy = "the page's filter leaves some samples out, as =comm == \"NAME\"";
                return Err(Failure::new(Kind::Usage, what).with_remedy(remedy).into());
            }
            let recording = recording_file(&Input::at(input))?;
            let work = OwnWork::Recording { recording, symfs: self.symfs };
            let history = self.history.unwrap_or(RECORDING_HISTORY_BYTES);
            let spec = SessionSpec {
                // It takes the place of a target.
                all: true,
                history: Some(history.to_string()),
                windows_s: self.windows.lengths,
                ..SessionSpec::default()
            };
            return Ok(Shown::Session(Box::new(spec), work));
        }
        if self.target.is_given() {
            let (mut target, comms) = self.target.resolve("web")?;
            let work = match &target {
                TargetSpec::Command(words) => OwnWork::Command(words.clone()),
                _ => OwnWork::Target,
            };
            if matches!(work, OwnWork::Command(_)) {
                target = TargetSpec::All;
            }
            let live = self.event.resolve((target, comms), Output::Screen);
            let history = self.history.unwrap_or(DEFAULT_HISTORY_BYTES);
            let spec = asked_for(self.windows.of(live), Some(history))?;
            return Ok(Shown::Session(Box::new(spec), work));
        }
        let socket = self.connect.unwrap_or_else(|| DEFAULT_SOCKET.into());
        let client = Client::new(&socket, self.token_file.as_deref())?;
        // Nobody is to open a page that shows nothing.
        let _: Health = client.get("health")?;
        Ok(Shown::Elsewhere(client.elsewhere()))
    }
}
