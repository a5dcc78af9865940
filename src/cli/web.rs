//! `web` as it is typed, and what it asks for.

use super::daemon::{DAEMON, asked_for};
use super::session::{EventArgs, TargetArgs};
use super::value;
use super::view::WindowsArgs;
use crate::client::Client;
use crate::config::{DEFAULT_HISTORY_BYTES, Output};
use crate::daemon::alone::{AloneOptions, Shown};
use crate::daemon::config_file::{self, DEFAULT_SOCKET};
use clap::Args;
use dataspace_proto::api::Health;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  dataspace web -p 4711                   a page that shows a running process
  dataspace web -p 4711 --open            the same, in the browser at once
  dataspace web                           the sessions of the daemon
  dataspace web --connect http://db1:9170 --token-file token
  ssh -L 8080:127.0.0.1:8080 HOST dataspace web -p 4711 --port 8080

The address that is printed has a token in it, which opens the page: whoever has it sees the session. It holds
until the command ends. The page is served to this machine alone, and fetches nothing from elsewhere.";

/// `web`. A command is refused by [`Self::resolve`], with the reason.
#[derive(Debug, Args)]
#[command(mut_arg("command", |command| command.hide(true)))]
pub(crate) struct WebArgs {
    #[command(flatten)]
    target: TargetArgs,
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
    /// Keep the newest samples in so much memory, for questions; 0 keeps none [default: 64M].
    #[arg(long, value_name = "SIZE", value_parser = value::size_or_none)]
    history: Option<u64>,
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
        let (port, keys) = (self.port, config_file::own_keys()?);
        if self.target.is_given() {
            let live = self.event.resolve(self.target.resolve("web")?, Output::Screen);
            let history = self.history.unwrap_or(DEFAULT_HISTORY_BYTES);
            let spec = asked_for(self.windows.of(live), Some(history))?;
            return Ok(AloneOptions { shown: Shown::Session(Box::new(spec)), port, keys });
        }
        let socket = self.connect.unwrap_or_else(|| DEFAULT_SOCKET.into());
        let client = Client::new(&socket, self.token_file.as_deref())?;
        // Nobody is to open a page that shows nothing.
        let _: Health = client.get("health")?;
        Ok(AloneOptions { shown: Shown::Elsewhere(client.elsewhere()), port, keys })
    }
}
