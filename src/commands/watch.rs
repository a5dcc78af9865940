//! `dataspace watch`: who reads and writes some data, by hardware breakpoints on it.

use super::top;
use crate::cli::{Global, WatchArgs};
use std::io::{IsTerminal, stdout};

/// Runs the command.
pub(super) fn run(args: WatchArgs, global: &Global) -> anyhow::Result<()> {
    let (live, view) = args.resolve(global.color, stdout().is_terminal())?;
    top::run_live(live, &view, global)
}
