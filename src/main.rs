//! The `dataspace` binary: reads the command line, runs one command, gives its exit code.

mod annotation;
mod answer;
mod arrangement;
mod broker;
mod bundled;
mod calibration;
mod cli;
mod client;
mod column;
mod commands;
mod config;
mod daemon;
mod debuginfod;
mod demo;
mod diagnostic;
mod exit;
mod expendable;
mod export;
mod file_source;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod golden;
mod header;
mod interrupt;
mod journal;
mod layout;
mod lock;
mod log_queue;
mod manual;
mod measure;
mod memory_bound;
mod ownership;
mod package;
mod page;
mod pager;
mod selection;
mod session;
mod sharing;
mod table;
mod text;
mod tui;
mod way_out;
mod worker;

use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let typed: Vec<OsString> = std::env::args_os().collect();
    let cli = cli::Cli::try_parse_from(&typed)
        .unwrap_or_else(|error| cli::with_tip(error, &typed).exit());
    let code = exit::report(commands::run(cli));
    broker::take_leave(code);
    ExitCode::from(code)
}
