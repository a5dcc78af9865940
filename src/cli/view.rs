//! Options of what is shown: output, objects, windows, questions.

use super::session::{QUESTION, VIEW, When};
use super::value;
use crate::column::Column;
use crate::config::{AnswerForm, Names, Output, ScreenSettings, Selection, ThemeName, TopOptions};
use clap::Args;
use dataspace_proto::query::Query;
use dataspace_proto::window::{Window, WindowLengths};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time between two snapshots, unless another one was asked for.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);

/// Presentation of a live session.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = VIEW)]
pub(crate) struct ViewArgs {
    /// Print one JSON snapshot a line each interval, and the last one at the end.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print one plain table at the end, or with --json one snapshot.
    #[arg(long)]
    pub(crate) once: bool,
    /// Print one line for each row at the end, as spreadsheets take it.
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Stop after so long: 5, 0.5, 10s, 1m.
    #[arg(long, value_name = "SECS", value_parser = value::duration)]
    pub(crate) duration: Option<Duration>,
    /// Time between two snapshots.
    #[arg(long, value_name = "SECS", value_parser = value::interval)]
    pub(crate) interval: Option<Duration>,
    /// Span that shares and rates are taken over: 60s, 10s, 1s, all, or one of the session's own
    /// [default: 10s or the next shorter one on the screen, else all].
    #[arg(long, value_name = "SPAN")]
    pub(crate) window: Option<Window>,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    #[command(flatten)]
    pub(crate) names: NamesArgs,
    /// Columns of the screen: time, cpu, share, bar, trend, samples, rate, rw, loads, stores, latency, levels, tlb, locked,
    /// hitm, threads, evidence, line [default: those that there is room for, or those of `[screen]` in
    /// ~/.config/dataspace/dataspace.toml].
    #[arg(long, value_name = "COLUMN,...", value_parser = Column::named, value_delimiter = ',')]
    pub(crate) columns: Vec<Column>,
    /// Colours of the screen [default: dark].
    #[arg(long, value_name = "NAME")]
    pub(crate) theme: Option<ThemeName>,
    #[command(flatten)]
    pub(crate) query: QueryArgs,
}

/// Form of one answer.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = VIEW)]
pub(crate) struct FormArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Print one line for each row, as spreadsheets take it (RFC 4180).
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

impl FormArgs {
    /// The form that was asked for.
    pub(crate) const fn resolve(self) -> AnswerForm {
        match (self.json, self.csv) {
            (true, _) => AnswerForm::Json,
            (_, true) => AnswerForm::Csv,
            _ => AnswerForm::Text,
        }
    }
}

/// Windows that a session sums metrics over.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = VIEW)]
pub(crate) struct WindowsArgs {
    /// The session's windows besides the time since it began: 1 to 4 lengths of up to 300 seconds
    /// [default: 60,10,1].
    #[arg(long = "windows", value_name = "SECS,...", value_parser = value::windows)]
    pub(crate) lengths: Option<WindowLengths>,
}

/// Keys of the newest samples, where none are said.
const SAMPLE_KEYS: [&str; 7] = ["time", "thread", "comm", "access", "object", "function", "line"];

/// Objects to show.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = VIEW)]
pub(crate) struct SelectionArgs {
    /// Show at most N objects, `<Total>` among them.
    #[arg(long, value_name = "N", value_parser = value::limit)]
    pub(crate) limit: Option<usize>,
    /// Show only objects whose name or descriptor contains TEXT, whatever the case.
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
}

/// A question to the history.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = QUESTION)]
pub(crate) struct QueryArgs {
    /// Sum samples by these keys in place of showing objects: object, aggregate, member, type, variable,
    /// function, caller, caller_line, line, inlined, instruction, module, unit, process, thread, comm, cpu,
    /// cgroup, second, access, memory, latency_bucket, level, evidence, reason, page, page_2m, cacheline, address, instance, index,
    /// offset, segment, alignment, size, old, new, event; or an expression over them, as in 'address / 4096'.
    #[arg(long, value_name = "KEY,...", value_parser = value::keys)]
    pub(crate) by: Option<value::KeyList>,
    /// Count only samples for which the expression is true: 'function == "main" && access == "store"'.
    #[arg(long = "where", value_name = "EXPR")]
    pub(crate) condition: Option<String>,
    /// Metrics to show: samples, share, loads, stores, latency, tlb_misses, locked, hitm, remote, period.
    #[arg(long, value_name = "METRIC,...", value_delimiter = ',')]
    pub(crate) metrics: Vec<String>,
    /// Show the newest N samples, each in a row, in the place of sums.
    #[arg(long, value_name = "N", value_parser = value::limit, conflicts_with = "sort")]
    pub(crate) newest: Option<usize>,
    /// The metric that puts rows in order, most first [default: the first one shown].
    #[arg(long, value_name = "METRIC")]
    pub(crate) sort: Option<String>,
    /// Count only samples of this span: -30s..-10s before the end, 5s..10s after the beginning, -1m..
    #[arg(long, value_name = "FROM..TO", allow_hyphen_values = true)]
    pub(crate) span: Option<String>,
    /// Name an expression, to use it as keys are used: --key 'huge=address / 2097152' --by huge.
    #[arg(long = "key", value_name = "NAME=EXPR", value_parser = value::own_key)]
    pub(crate) keys: Vec<(String, String)>,
}

/// Spelling of objects.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = VIEW)]
pub(crate) struct NamesArgs {
    /// Spell objects for people as the source has them, order.next, or by their types,
    /// {structure:order}.{pointer+structure:order next}; programs get both.
    #[arg(long = "names", value_name = "HOW", default_value = "source")]
    pub(crate) how: Names,
}

impl ViewArgs {
    /// Presentation of the session, given whether standard output is a terminal.
    pub(crate) fn resolve(self, color: When, is_terminal: bool) -> TopOptions {
        let output = match (self.json, self.once) {
            _ if self.csv => Output::Csv,
            (true, true) => Output::JsonOnce,
            (true, false) => Output::Json,
            (_, true) => Output::Table,
            _ if is_terminal => Output::Screen,
            _ => Output::Table,
        };
        let default_window = (output != Output::Screen).then_some(Window::All);
        TopOptions {
            output,
            interval: self.interval.unwrap_or(DEFAULT_INTERVAL),
            duration: self.duration,
            query: self.query.resolve(self.selection.limit),
            newest: None,
            selection: self.selection.resolve(),
            window: self.window.or(default_window),
            names: self.names.how,
            has_color: color.resolve(is_terminal),
            screen: ScreenSettings { columns: self.columns, theme: self.theme },
            measure: None,
            own_keys: BTreeMap::new(),
            is_ascii: !is_utf8(),
        }
    }
}

impl SelectionArgs {
    /// Objects to show.
    pub(crate) fn resolve(self) -> Selection {
        Selection { limit: self.limit, filter: self.filter.unwrap_or_default() }
    }
}

impl QueryArgs {
    /// The question, if one is asked; with at most `limit` rows in its answer.
    pub(crate) fn resolve(self, limit: Option<usize>) -> Option<Query> {
        let Self { by, condition: filter, metrics, newest, sort, span, keys } = self;
        let is_asked = by.is_some() || filter.is_some() || sort.is_some() || span.is_some();
        if !is_asked && metrics.is_empty() && keys.is_empty() && newest.is_none() {
            return None;
        }
        let default = if newest.is_some() { &SAMPLE_KEYS[..] } else { &["object"] };
        let by =
            by.map_or_else(|| default.iter().map(|key| (*key).to_owned()).collect(), |by| by.0);
        let keys = keys.into_iter().collect();
        Some(Query { by, filter, metrics, newest, sort, span, limit, keys })
    }
}

/// Tells whether the terminal shows letters beyond ASCII (locale(7): the first of these that is set counts).
pub(crate) fn is_utf8() -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"].iter();
    let locale = names.filter_map(std::env::var_os).find(|value| !value.is_empty());
    // Where nothing is set, as in a container, terminals are of our time all the same.
    locale.is_none_or(|locale| {
        let locale = locale.to_string_lossy().to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}
