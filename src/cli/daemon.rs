//! The daemon and its clients as they are typed.

use super::session::{EventArgs, TargetArgs};
use super::value;
use super::view::WindowsArgs;
use crate::client::Client;
use crate::config::{DAEMON_HISTORY_BYTES, LiveOptions, Sandbox};
use crate::daemon::DaemonOptions;
use crate::daemon::config_file::{DEFAULT_PATH, DEFAULT_SOCKET};
use crate::daemon::limit::MemoryMax;
use crate::daemon::session::spec;
use crate::daemon::session::staff::Workplace;
use crate::exit::{Failure, Kind};
use clap::{Args, Subcommand};
use dataspace_proto::api::SessionSpec;
use dataspace_proto::measure::{Measure, MeasureRequest};
use std::path::PathBuf;

pub(super) const DAEMON_EXAMPLES: &str = "\
Examples:
  sudo dataspace daemon
  dataspace daemon --config mine.toml --socket mine.sock
  dataspace daemon --memory-max 512M

It says on standard error what it does, reads its configuration again on SIGHUP,
and ends on SIGTERM or Ctrl-C with exit code 0. Root and members of the configured
group may see and do all; any other user sees and attaches only to processes of his
own, by number (-p): not by name, thread, unit or control group. He may give his
sessions no name, and his --max-overhead is lowered to 1% where it is higher.";

pub(super) const CONFIG_EXAMPLES: &str = "\
Examples:
  dataspace config check
  dataspace config check mine.toml";

pub(super) const INSTALL_UNITS_EXAMPLES: &str = "\
Examples:
  sudo dataspace install-units
  dataspace install-units --root /mnt/image

It writes below /usr/local and says what to run next. A configuration that is there
stays as it is; units and binary are replaced: changes to units belong into
`systemctl edit dataspace`.";

pub(super) const ATTACH_EXAMPLES: &str = "\
Examples:
  dataspace attach -p 4711
  dataspace attach -u redis-server.service --name redis
  dataspace attach --comm postgres -e page-faults --json

The session goes on until `dataspace detach`. It prints the session's number.";

pub(super) const DETACH_EXAMPLES: &str = "\
Examples:
  dataspace detach 3
  dataspace detach redis postgres";

pub(super) const SESSIONS_EXAMPLES: &str = "\
Examples:
  dataspace sessions
  dataspace sessions --json | jq -r '.sessions[] | select(.state == \"failed\") | .detail'";

pub(super) const STATUS_EXAMPLES: &str = "\
Examples:
  dataspace status
  dataspace status --socket mine.sock --json
  dataspace status --connect http://127.0.0.1:9170 --token-file token

The exit code is 0 where the daemon is well, else 1.";

pub(super) const DAEMON: &str = "Daemon";

/// `daemon`.
#[derive(Debug, Args)]
pub(crate) struct DaemonArgs {
    /// The configuration [default: /etc/dataspace/dataspace.toml, if it is there].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Listen at PATH, whatever the configuration says.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Keep the resident memory of daemon and workers below SIZE, whatever the configuration says: 256M, 1G, or
    /// off [default: 1G, or a quarter of the machine's where that is less]. Near it caches of debug information are given up first, then indices, answers, and the naming of samples,
    /// which are `over_budget` then; at last sessions that were asked for. At least 32M, and 5M for each
    /// session of the configuration.
    #[arg(long, value_name = "SIZE", value_parser = MemoryMax::parse)]
    memory_max: Option<MemoryMax>,
    /// Let sessions be done by workers that are started for whoever connects at PATH, as by systemd, and not
    /// by children.
    #[arg(long, value_name = "PATH")]
    worker_socket: Option<PathBuf>,
}

impl DaemonArgs {
    /// Options of the daemon.
    pub(crate) fn resolve(self, sandbox: Sandbox) -> anyhow::Result<DaemonOptions> {
        if sandbox == Sandbox::Off {
            let what = "the daemon has its sessions done by workers always: --sandbox off is for other commands";
            return Err(Failure::new(Kind::Usage, what).into());
        }
        let Self { config, socket, memory_max, worker_socket } = self;
        let workplace = worker_socket.map_or(Workplace::Child, Workplace::Socket);
        Ok(DaemonOptions { config, socket, memory_max, workplace })
    }
}

/// `install-units`.
#[derive(Debug, Args)]
pub(crate) struct InstallUnitsArgs {
    /// The root directory of the system to install to.
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub(crate) root: PathBuf,
}

/// `config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

/// The commands of `config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Say what is wrong with a configuration, with its line.
    Check {
        /// The configuration.
        #[arg(value_name = "FILE", default_value = DEFAULT_PATH)]
        file: PathBuf,
    },
}

/// Address of the daemon.
#[derive(Debug, Args)]
pub(crate) struct SocketArgs {
    /// The daemon's socket, or http://HOST:PORT.
    #[arg(long = "socket", visible_alias = "connect", value_name = "PATH|URL",
        default_value = DEFAULT_SOCKET, help_heading = DAEMON)]
    path: PathBuf,
    /// The token that a daemon over http wants; nobody else may read FILE.
    #[arg(long, value_name = "FILE", help_heading = DAEMON)]
    token_file: Option<PathBuf>,
}

impl SocketArgs {
    /// A client of the daemon.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        Client::new(&self.path, self.token_file.as_deref())
    }
}

/// `attach`. A command is refused by [`Self::resolve`], with the reason.
#[derive(Debug, Args)]
#[command(mut_arg("command", |command| command.hide(true)))]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    event: EventArgs,
    #[command(flatten)]
    windows: WindowsArgs,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
    /// Name of the session.
    #[arg(long, value_name = "NAME", help_heading = DAEMON)]
    name: Option<String>,
    /// Have the newest samples kept in so much memory, for questions; 0 keeps none [default: 16M].
    #[arg(long, value_name = "SIZE", value_parser = value::size_or_none)]
    history: Option<u64>,
    /// Measure, as the command measure does: its counts are metrics of Prometheus.
    #[arg(long, value_name = "MEASURE", value_parser = value::measure, conflicts_with_all = ["events", "frequency"])]
    measure: Option<Measure>,
    /// Print the session as JSON.
    #[arg(long, help_heading = DAEMON)]
    pub(crate) json: bool,
}

impl AttachArgs {
    /// Request to the daemon.
    ///
    /// # Errors
    /// When there is no target, or none that a daemon can have.
    pub(crate) fn resolve(self) -> Result<SessionSpec, Failure> {
        let target = self.target.resolve("attach")?;
        let options = self.event.resolve(target, crate::config::Output::Json);
        let measure = self.measure.map(MeasureRequest::new);
        let options = LiveOptions { measure, ..self.windows.of(options) };
        Ok(SessionSpec { name: self.name, ..asked_for(options, self.history)? })
    }
}

/// Request to the daemon in place of a session of our own, with a history of so many bytes.
///
/// # Errors
/// When it cannot have that.
pub(crate) fn asked_for(
    options: LiveOptions,
    history_bytes: Option<u64>,
) -> Result<SessionSpec, Failure> {
    let history_bytes = history_bytes.unwrap_or(DAEMON_HISTORY_BYTES);
    spec::of_options(&LiveOptions { history_bytes, ..options })
        .map_err(|why| Failure::new(Kind::Usage, why))
}

/// `detach`.
#[derive(Debug, Args)]
pub(crate) struct DetachArgs {
    /// Numbers or names of sessions.
    #[arg(value_name = "SESSION", required = true)]
    pub(crate) sessions: Vec<String>,
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
    /// Print the sessions as JSON, one a line.
    #[arg(long, help_heading = DAEMON)]
    pub(crate) json: bool,
}

/// `sessions` and `status`.
#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    #[command(flatten)]
    pub(crate) socket: SocketArgs,
    /// Print what the daemon answers as JSON.
    #[arg(long, help_heading = DAEMON)]
    pub(crate) json: bool,
}

/// Daemon that `top` gets its totals from, if not from a session of its own.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = DAEMON)]
pub(crate) struct ConnectArgs {
    /// Show a session of the daemon at PATH, or http://HOST:PORT, instead of one of our own.
    #[arg(long, visible_alias = "socket", value_name = "PATH|URL", num_args = 0..=1,
        default_missing_value = DEFAULT_SOCKET)]
    pub(crate) connect: Option<PathBuf>,
    /// The token that a daemon over http wants; nobody else may read FILE.
    #[arg(long, value_name = "FILE", requires = "connect")]
    pub(crate) token_file: Option<PathBuf>,
    /// Session, by number or name; without it, and without a target, the only one.
    #[arg(long, value_name = "SESSION", requires = "connect", conflicts_with = "target")]
    pub(crate) session: Option<String>,
}

impl ConnectArgs {
    /// Tells whether a session is shown that the daemon has already.
    pub(crate) fn is_watching(&self, target: &TargetArgs) -> bool {
        self.connect.is_some() && !target.is_given()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Command};
    use super::*;
    use clap::Parser;

    fn command(args: &[&str]) -> Result<Command, String> {
        let args = ["dataspace"].iter().chain(args);
        Cli::try_parse_from(args).map(|cli| cli.command).map_err(|error| error.to_string())
    }

    #[test]
    fn a_daemon_is_asked_for_any_target_but_a_command() {
        let attach = |args: &[&str]| match command(&[&["attach"], args].concat()).unwrap() {
            Command::Attach(args) => args.resolve().map_err(|failure| failure.to_string()),
            other => panic!("{other:?}"),
        };
        let windows = attach(&["-a", "--windows", "5,300s,60"]).unwrap().windows_s.unwrap();
        assert_eq!(windows.seconds(), [300, 60, 5]);
        let spec = attach(&["-p", "7", "--name", "a", "-F", "99"]).unwrap();
        assert_eq!(spec.windows_s, None);
        assert_eq!((spec.pids, spec.frequency_hz), (vec![7], Some(99)));
        assert_eq!(spec.name.as_deref(), Some("a"));
        assert_eq!(attach(&["--comm", "x"]).unwrap().comm, ["x"]);
        assert!(attach(&[]).unwrap_err().contains("no target"));
        assert!(attach(&["--", "./a"]).unwrap_err().contains("starts no commands"));
        let help = command(&["attach", "--help"]).unwrap_err();
        assert!(help.contains("Usage: dataspace attach [OPTIONS]\n"), "{help}");
        assert!(!help.contains("COMMAND"), "{help}");
        assert!(command(&["top", "--help"]).unwrap_err().contains("[-- <COMMAND>...]"));
    }

    #[test]
    fn connecting_takes_a_path_or_the_usual_one() {
        let connect = |args: &[&str]| match command(&[&["top"], args].concat()).unwrap() {
            Command::Top(top) => top.connect,
            other => panic!("{other:?}"),
        };
        assert_eq!(connect(&["-p", "7"]).connect, None);
        assert_eq!(connect(&["--connect", "-p", "7"]).connect, Some(DEFAULT_SOCKET.into()));
        for option in ["--connect", "--socket"] {
            assert_eq!(connect(&[option, "/x"]).connect, Some("/x".into()));
        }
        assert_eq!(connect(&["--connect", "--session", "3"]).session.as_deref(), Some("3"));
        for wrong in [&["top", "--session", "3"][..], &["top", "--connect", "--session", "3", "-a"]]
        {
            assert!(command(wrong).is_err(), "{wrong:?}");
        }
        assert!(command(&["detach"]).is_err() && command(&["config"]).is_err());
    }
}
