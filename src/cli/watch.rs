//! `watch` as it is typed, and what it asks for.

use super::session::{EVENTS, EventArgs, TARGETS, TargetArgs, VIEW, When};
use super::value;
use super::view::ViewArgs;
use crate::config::{DEFAULT_MAX_OVERHEAD, LiveOptions, TopOptions};
use crate::exit::{Failure, Kind};
use clap::Args;
use dataspace_proto::query::Query;
use std::time::Duration;

pub(super) const EXAMPLES: &str = "\
Examples:
  dataspace watch -p 4711 g_stats.hits            who reads and writes it
  dataspace watch -p 4711 'orders[3].price:w'     who writes it
  dataspace watch -p 4711 0x55d0c4a0e0c8/8        data at an address
  dataspace watch -p 4711 g_stats.hits --newest 100 --csv   each access, with the values before and after
  dataspace watch -p 4711 head tail --duration 5 --json

Each OBJECT takes one of the four debug registers that a thread has; they are given back at the end. It
is a variable, or a member or element of one, of 1, 2, 4 or 8 bytes. :r, :w or :rw after it says which
accesses count; the processor cannot watch for reads alone, so with :r writes are sampled too.

OLD and NEW are the values before and after an access, where the registers after it tell them: both of a load, the
new one of a store, the old one of an exchange; neither of `add $1,g_stats.hits`.";

/// Breakpoints that a thread has (`DR0` to `DR3`, SDM volume 3, 19.2).
const MAX_OBJECTS: usize = 4;

/// Keys of the rows.
const KEYS: [&str; 5] = ["thread", "comm", "object", "function", "line"];

/// Keys of single accesses.
const ACCESS_KEYS: [&str; 9] =
    ["time", "thread", "comm", "access", "object", "old", "new", "function", "line"];

/// Accesses that are shown below the sums.
const DEFAULT_NEWEST: usize = 10;

/// Metrics of the rows.
const METRICS: [&str; 3] = ["samples", "loads", "stores"];

/// `watch`.
#[derive(Debug, Default, Args)]
pub(crate) struct WatchArgs {
    /// The process.
    #[arg(short, long, value_name = "PID", value_parser = value::task, help_heading = TARGETS)]
    pid: i32,
    /// Data to watch: NAME, NAME.member, an element of NAME by its number in brackets, 0xADDRESS/LENGTH; at most four.
    #[arg(value_name = "OBJECT", required = true, num_args = 1..)]
    objects: Vec<String>,
    /// Take one sample each N accesses [default: 1, as long as --max-overhead allows].
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..),
        help_heading = EVENTS)]
    period: Option<u64>,
    /// Sample less where sampling takes more than this share of the target's CPU time: 0.5%, 3%, off
    /// [default: 1%].
    #[arg(long, value_name = "SHARE", value_parser = value::share, help_heading = EVENTS)]
    max_overhead: Option<value::Share>,
    /// Print one JSON document each interval, and the last one at the end.
    #[arg(long, help_heading = VIEW)]
    json: bool,
    /// Print one table at the end, or with --json one document.
    #[arg(long, help_heading = VIEW)]
    once: bool,
    /// Print one line for each row at the end, as spreadsheets take it.
    #[arg(long, help_heading = VIEW, conflicts_with = "json")]
    csv: bool,
    /// Stop after so long: 5, 0.5, 10s, 1m.
    #[arg(long, value_name = "SECS", value_parser = value::duration, help_heading = VIEW)]
    duration: Option<Duration>,
    /// Time between two looks.
    #[arg(long, value_name = "SECS", value_parser = value::interval, help_heading = VIEW)]
    interval: Option<Duration>,
    /// Show the newest N accesses, each in a row, without sums [default: 10, below the sums].
    #[arg(long, value_name = "N", value_parser = value::limit, help_heading = VIEW)]
    newest: Option<usize>,
    /// Show at most N rows of sums.
    #[arg(long, value_name = "N", value_parser = value::limit, help_heading = VIEW)]
    limit: Option<usize>,
}

impl WatchArgs {
    /// Those that watch one place of a process.
    pub(crate) fn of(pid: i32, place: String) -> Self {
        Self { pid, objects: vec![place], ..Self::default() }
    }

    /// The session and its presentation.
    ///
    /// # Errors
    /// Where there are too many objects, or they are no objects.
    pub(crate) fn resolve(
        self,
        color: When,
        is_terminal: bool,
    ) -> Result<(LiveOptions, TopOptions), Failure> {
        if self.objects.len() > MAX_OBJECTS {
            let what =
                format!("a thread has {MAX_OBJECTS} debug registers, and each object takes one");
            return Err(Failure::new(Kind::Usage, what));
        }
        let view = ViewArgs {
            json: self.json,
            once: self.once,
            csv: self.csv,
            duration: self.duration,
            interval: self.interval,
            ..ViewArgs::default()
        };
        let mut view = view.resolve(color, is_terminal);
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let newest =
            |newest| Query { by: words(&ACCESS_KEYS), newest: Some(newest), ..Query::default() };
        match self.newest {
            Some(asked) => view.query = Some(newest(asked)),
            None => {
                view.query = Some(Query {
                    by: words(&KEYS),
                    metrics: words(&METRICS),
                    limit: self.limit,
                    ..Query::default()
                });
                view.newest = Some(newest(DEFAULT_NEWEST));
            }
        }
        let event = EventArgs {
            period: Some(self.period.unwrap_or(1)),
            // Said, so that it holds for breakpoints too.
            max_overhead: Some(
                self.max_overhead.unwrap_or(value::Share(Some(DEFAULT_MAX_OVERHEAD))),
            ),
            ..EventArgs::default()
        };
        let target = TargetArgs { pids: vec![self.pid], ..TargetArgs::default() };
        let live = event.resolve(target.resolve("watch")?, view.output);
        let events = self.objects.iter().map(|object| event_of(object)).collect();
        Ok((LiveOptions { events, has_lines: true, ..live }, view))
    }
}

/// The breakpoint on an object, with `:rw` where no access is named.
fn event_of(object: &str) -> String {
    let has_access = object.rsplit_once(':').is_some_and(|(before, access)| {
        !before.ends_with(':') && matches!(access, "r" | "w" | "rw" | "wr")
    });
    format!("mem:{object}{}", if has_access { "" } else { ":rw" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_breakpoints_on_all_accesses_unless_one_is_named() {
        let check = |object: &str, expected: &str| assert_eq!(event_of(object), expected);
        check("g_stats.hits", "mem:g_stats.hits:rw");
        check("a[3].b:w", "mem:a[3].b:w");
        check("ns::w", "mem:ns::w:rw");
        check("0x1000/8", "mem:0x1000/8:rw");
    }
}
