//! The page about one object: where it is, every sum over every window, and who touches it from where.

use super::{Meaning, PageRow};
use crate::column::{Column, Scale, bar, evidence};
use crate::config::Names;
use crate::header::{Segment, Tone};
use crate::table::reason_of;
use crate::text::{percent, short_count, size, visible};
use crate::tui::lens::{Lens, shown};
use dataspace_proto::query::{KeyValue, Query, QueryAnswer};
use dataspace_proto::sample_line::Evidence;
use dataspace_proto::snapshot::{Metrics, ObjectKind, ObjectLine, Snapshot};
use dataspace_proto::window::Window;
use std::collections::{BTreeSet, HashMap};

/// Width of the names of the sums, and of each number.
const NAME_WIDTH: usize = 12;
const NUMBER_WIDTH: usize = 10;

/// Rows of each list.
const N_LISTED: usize = 8;

/// Lists of who touches an object: the heading, and the keys.
const LISTS: [(&str, &[&str]); 6] = [
    ("HOTTEST LINES", &["line", "function"]),
    ("FUNCTIONS", &["function", "module"]),
    ("CALLED FROM, BY THE SAMPLED STACK", &["caller", "function"]),
    ("THREADS", &["thread", "comm"]),
    ("VARIABLES", &["variable"]),
    ("INSTANCES, BY ADDRESS", &["instance"]),
];

/// The questions for the lists of an object, whose samples meet a condition.
pub(in crate::tui) fn queries(condition: &str, lens: &Lens, window: Window) -> Vec<Query> {
    let query = |(_, keys): &(&str, &[&str])| {
        let by = keys.iter().map(|key| (*key).to_owned()).collect();
        lens.asked(by, window, Some(condition), N_LISTED)
    };
    LISTS.iter().map(query).collect()
}

/// Form of a page.
#[derive(Clone, Copy, Debug)]
pub(in crate::tui) struct ObjectWishes {
    /// The window that the sums are of, where the history was asked; otherwise each has its own.
    pub(in crate::tui) window: Option<Window>,
    pub(in crate::tui) names: Names,
    /// Columns of a row.
    pub(in crate::tui) width: usize,
}

/// The rows of the page.
pub(in crate::tui) fn rows(
    snapshot: &Snapshot,
    object: &ObjectLine,
    answers: Result<&[QueryAnswer], &String>,
    wishes: ObjectWishes,
) -> Vec<PageRow> {
    let mut rows = identity(snapshot, object, wishes.names, wishes.width);
    rows.push(PageRow::default());
    rows.extend(sums(snapshot, object, wishes.window));
    match answers {
        Ok(answers) => {
            let lists = LISTS.iter().zip(answers);
            rows.extend(lists.flat_map(|((heading, keys), answer)| list(heading, keys, answer)));
        }
        Err(what) => {
            rows.extend([PageRow::default(), PageRow::text(visible(what), Tone::Faint)]);
        }
    }
    rows
}

/// The values of the keys with the most samples; nothing where no sample has one.
fn list(heading: &str, keys: &[&str], answer: &QueryAnswer) -> Vec<PageRow> {
    let has_value = answer.rows.iter().any(|row| row.key.first() != Some(&KeyValue::None));
    if !has_value {
        return Vec::new();
    }
    let title = format!("{:>6} {:<5} {:>7} {:>7} {heading}", "SHARE", "", "LOADS", "STORES");
    let mut rows = vec![PageRow::default(), PageRow::heading(title, Tone::Strong)];
    let whole = answer.total.samples;
    for row in &answer.rows {
        let Some(value) = row.key.first() else { continue };
        let sums = &row.metrics;
        let share = percent(sums.samples, whole);
        let (loads, stores) = (short_count(sums.loads, 7), short_count(sums.stores, 7));
        let texts: Vec<String> = row.key.iter().map(|value| short(&shown(value))).collect();
        let bar = Segment::new(format!("{:<5}", bar(sums.samples, whole, 5)), Tone::Heat);
        let text = format!(" {loads:>7} {stores:>7} {}", visible(&texts.join("  ")));
        let segments = vec![
            Segment::new(format!("{share:>6} "), Tone::Plain),
            bar,
            Segment::new(text, Tone::Plain),
        ];
        let key = keys.first().copied().unwrap_or_default().to_owned();
        let meaning = Meaning::Key(key, value.clone());
        rows.push(PageRow { segments, meaning });
    }
    if answer.truncated {
        rows.push(PageRow::text(format!("{:>29}more: g groups by it", "… "), Tone::Faint));
    }
    rows
}

/// A path without its directories, where it is one.
pub(in crate::tui) fn short(text: &str) -> String {
    match text.rsplit_once('/') {
        Some((directory, name)) if directory.is_empty() || text.starts_with(['/', '.']) => {
            name.to_owned()
        }
        _ => text.to_owned(),
    }
}

fn identity(snapshot: &Snapshot, object: &ObjectLine, names: Names, width: usize) -> Vec<PageRow> {
    let wrapped = |text: &str, tone: Tone| PageRow::wrapped(text, tone, width);
    let mut rows = wrapped(&visible(names.of(object)), Tone::Strong);
    if names == Names::Source && object.name != object.object {
        rows.extend(wrapped(&visible(&object.object), Tone::Faint));
    }
    let mut facts = vec![kind_name(object.kind).to_owned()];
    let ids: HashMap<u32, &ObjectLine> = snapshot.objects.iter().map(|it| (it.id, it)).collect();
    let around = object.parent_id.and_then(|id| ids.get(&id));
    if let Some(around) = around.filter(|_| object.kind == ObjectKind::Member) {
        facts[0] = format!("member of {}", visible(names.of(around)));
    }
    facts.extend(object.offset.map(|offset| format!("offset {offset}")));
    facts.extend(object.size.map(|bytes| format!("size {}", size(bytes))));
    rows.extend(wrapped(&facts.join(", "), Tone::Plain));
    if let Some(reason) = reason_of(&object.object) {
        rows.extend(wrapped(reason.sentence(), Tone::Plain));
    }
    let evidence = evidence(&object.metrics.all, Evidence::ALL.len());
    if !evidence.is_empty() {
        rows.push(PageRow::text(format!("evidence {evidence}"), Tone::Plain));
    }
    rows
}

fn sums(snapshot: &Snapshot, object: &ObjectLine, only: Option<Window>) -> Vec<PageRow> {
    let lengths = snapshot.window_lengths();
    let columns: Vec<(Scale, &Metrics)> = lengths
        .windows()
        .filter(|window| only.is_none_or(|only| only == *window))
        .map(|window| (Scale::new(snapshot, window), object.metrics.get(window)))
        .collect();
    let titles = columns.iter().map(|(scale, _)| scale.window.to_string());
    let mut rows = vec![PageRow::text(line("", titles), Tone::Strong)];
    let mut push = |name: &str, is_kept_empty: bool, value: &dyn Fn(&Scale, &Metrics) -> String| {
        let values: Vec<String> =
            columns.iter().map(|(scale, metrics)| value(scale, metrics)).collect();
        if is_kept_empty || values.iter().any(|value| !value.is_empty() && value != "0") {
            rows.push(PageRow::text(line(&visible(name), values.into_iter()), Tone::Plain));
        }
    };
    push("time", false, &|scale, metrics| Column::Time.cell(metrics, scale));
    for column in [Column::Share, Column::Samples, Column::Rate, Column::Loads, Column::Stores] {
        push(&column.title().to_lowercase(), true, &|scale, metrics| column.cell(metrics, scale));
    }
    push("latency", false, &|scale, metrics| Column::Latency.cell(metrics, scale));
    let optional =
        |sum: Option<u64>| sum.map_or_else(String::new, |it| short_count(it, NUMBER_WIDTH));
    push("TLB misses", false, &|_, metrics| optional(metrics.tlb_misses));
    push("locked", false, &|_, metrics| optional(metrics.locked));
    push("HITM", false, &|_, metrics| optional(metrics.hitm));
    push("threads", false, &|scale, metrics| {
        if scale.window == Window::All {
            short_count(metrics.threads, NUMBER_WIDTH)
        } else {
            String::new()
        }
    });
    for level in keys(&columns, |metrics| metrics.levels.keys()) {
        push(&level, true, &|_, metrics| {
            short_count(metrics.levels.get(&level).copied().unwrap_or(0), NUMBER_WIDTH)
        });
    }
    // The time on a CPU is above.
    let is_clock = |event: &String| columns.iter().any(|(scale, _)| scale.is_clock(event));
    for event in keys(&columns, |metrics| metrics.events.keys()).iter().filter(|it| !is_clock(it)) {
        let sum = |metrics: &Metrics| metrics.events.get(event).copied().unwrap_or(0);
        push(event, true, &|_, metrics| short_count(sum(metrics), NUMBER_WIDTH));
    }
    rows
}

fn keys<'a, K: Iterator<Item = &'a String>>(
    columns: &[(Scale, &'a Metrics)],
    of: impl Fn(&'a Metrics) -> K,
) -> BTreeSet<String> {
    columns.iter().flat_map(|(_, metrics)| of(metrics)).cloned().collect()
}

fn line(name: &str, values: impl Iterator<Item = String>) -> String {
    let mut text = format!("{name:<NAME_WIDTH$}");
    for value in values {
        text.push_str(&format!(" {value:>NUMBER_WIDTH$}"));
    }
    text
}

const fn kind_name(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Total => "everything that has a data object or a reason why not",
        ObjectKind::Aggregate => "structure, class or union",
        ObjectKind::Member => "member",
        ObjectKind::Scalar => "variable, or what a pointer leads to",
        ObjectKind::Artificial => "not an object of the program's",
    }
}
