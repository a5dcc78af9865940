//! Diagnostics of the program on standard error, or in the journal where that is the same.

use crate::journal::Journal;
use crate::log_queue::LogQueue;
use std::io::{IsTerminal, stderr};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Begins to print diagnostics as `verbosity` (the number of `-v`) asks. A full-screen table on
/// the same terminal silences them: they would be written across it.
pub(crate) fn start(verbosity: u8, is_full_screen: bool) {
    let level = match verbosity {
        _ if is_full_screen && stderr().is_terminal() => LevelFilter::OFF,
        verbosity => level(verbosity),
    };
    print(level, stderr);
}

/// The same for the daemon, which goes on whether or not somebody reads what it says. At its end the
/// queue, if there is one, is to be finished.
pub(crate) fn start_daemon(verbosity: u8) -> Option<LogQueue> {
    let queue = LogQueue::to_stderr();
    match &queue {
        Ok(queue) => print(level(verbosity), queue.clone()),
        Err(_) => print(level(verbosity), stderr),
    }
    queue.ok()
}

const fn level(verbosity: u8) -> LevelFilter {
    match verbosity {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}

fn print(level: LevelFilter, writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static) {
    // A second subscriber is refused; then the first stays, as in tests.
    if let Some(journal) = Journal::of_stderr() {
        let _ = tracing_subscriber::registry().with(level).with(journal).try_init();
        return;
    }
    let _ = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(writer)
        .with_ansi(false)
        .without_time()
        .with_target(level > LevelFilter::INFO)
        // A line that cannot be written, for the pipe is closed or the disk full, is lost: to say so
        // where it could not be said would end the thread that tried.
        .log_internal_errors(false)
        .try_init();
}
