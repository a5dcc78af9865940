//! One module for each command.

mod calibrate;
mod demo;
pub(crate) mod doctor;
mod json;
mod record;
mod report;
mod script;
mod top;

use crate::cli::{Cli, Command};

/// Runs the command that was typed.
pub(crate) fn run(cli: Cli) -> anyhow::Result<()> {
    let global = cli.global;
    match cli.command {
        Command::Top(args) => top::run(args, &global),
        Command::Record(args) => record::run(args, &global),
        Command::Report(args) => report::run(args, &global),
        Command::Script(args) => script::run(args, &global),
        Command::Doctor(args) => doctor::run(args, &global),
        Command::Demo(args) => demo::run(args, &global),
    }
}
