//! `dataspace daemon` and `dataspace config`.

use crate::cli::{ConfigArgs, ConfigCommand, Global};
use crate::daemon::client::token::Token;
use crate::daemon::config_file::DaemonConfig;
use crate::daemon::{self, DaemonOptions};
use crate::diagnostic;
use crate::worker;
use std::io::{Write, stdout};

/// Runs the daemon.
pub(super) fn run(options: &DaemonOptions, global: &Global) -> anyhow::Result<()> {
    // What it does is worth a line each without being asked.
    let log = diagnostic::start_daemon(global.verbose.saturating_add(1));
    let ended = daemon::run(options);
    if let Some(log) = log {
        log.finish();
    }
    ended
}

/// Runs a worker of the daemon.
pub(super) fn run_worker(global: &Global) -> anyhow::Result<()> {
    diagnostic::start(global.verbose.saturating_add(1), false);
    worker::run()
}

/// Checks a configuration.
pub(super) fn check(args: ConfigArgs, global: &Global) -> anyhow::Result<()> {
    diagnostic::start(global.verbose, false);
    let ConfigCommand::Check { file } = args.command;
    let config = DaemonConfig::read(Some(&file))?;
    if let Some(tcp) = &config.tcp {
        Token::read(&tcp.token_file)?;
    }
    let noun = if config.sessions.len() == 1 { "session" } else { "sessions" };
    writeln!(stdout(), "{}: {} {noun}, nothing wrong", file.display(), config.sessions.len())?;
    for note in config.notes() {
        writeln!(stdout(), "note: {note}")?;
    }
    Ok(())
}
