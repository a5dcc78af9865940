//! One module for each command.

mod annotate;
mod attach;
mod calibrate;
mod comm_note;
mod completions;
mod daemon;
mod demo;
pub(crate) mod doctor;
mod fetch;
mod install_units;
mod json;
mod layout;
mod measure;
mod own_setting;
mod progress;
mod reading;
mod record;
mod report;
mod script;
mod sessions;
mod status;
mod threads;
mod top;
mod watch;
mod web;

use crate::broker::opener;
use crate::cli::{Cli, Command};

/// Runs the command that was typed.
pub(crate) fn run(cli: Cli) -> anyhow::Result<()> {
    let global = cli.global;
    match cli.command {
        Command::Top(args) => top::run(*args, &global),
        Command::Record(args) => record::run(args, &global),
        Command::Report(args) => report::run(args, &global),
        Command::Script(args) => script::run(args, &global),
        Command::Layout(args) => layout::run(args, &global),
        Command::Annotate(args) => annotate::run(*args, &global),
        Command::Completions(args) => completions::run(&args),
        Command::Doctor(args) => doctor::run(args, &global),
        Command::Demo(args) => demo::run(args, &global),
        Command::Daemon(args) => daemon::run(&args.resolve(global.sandbox)?, &global),
        Command::Worker => daemon::run_worker(&global),
        Command::Opener => opener::run(),
        Command::FetchDebug => fetch::run(),
        Command::InstallUnits(args) => install_units::run(&args, &global),
        Command::Config(args) => daemon::check(args, &global),
        Command::Attach(args) => attach::attach(args, &global),
        Command::Detach(args) => attach::detach(&args, &global),
        Command::Sessions(args) => sessions::run(&args, &global),
        Command::Status(args) => status::run(&args, &global),
        Command::Measure(args) => measure::run(*args, &global),
        Command::Threads(args) => threads::run(*args, &global),
        Command::Watch(args) => watch::run(args, &global),
        Command::Web(args) => web::run(*args, &global),
    }
}
