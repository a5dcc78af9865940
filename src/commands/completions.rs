//! `dataspace completions`: what a shell reads to complete our commands and options.

use crate::cli::CompletionsArgs;
use crate::manual;
use std::io::{Write as _, stdout};

/// Runs the command.
pub(super) fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    stdout().lock().write_all(manual::completion(args.shell).as_bytes())?;
    Ok(())
}
