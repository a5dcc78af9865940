//! The page about one object: where it is, how it was found, and every sum over every window.

use super::flow::wrap;
use super::{Theme, styled};
use crate::column::{Column, Scale, evidence};
use crate::header::Tone;
use crate::table::reason_of;
use crate::text::{short_count, size, visible};
use crate::tui::state::ScreenState;
use dataspace_proto::sample_line::{Evidence, Scope};
use dataspace_proto::snapshot::{Metrics, ObjectKind, ObjectLine, Snapshot};
use dataspace_proto::window::Window;
use ratatui::text::Line;
use std::collections::BTreeSet;

/// Width of the names of the sums, and of each number.
const NAME_WIDTH: usize = 12;
const NUMBER_WIDTH: usize = 10;

/// The page about the selected object.
pub(super) fn page(state: &ScreenState, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(object) = state.selected_object() else {
        return vec![styled("no object yet", theme.style(Tone::Faint))];
    };
    let mut lines = identity(object, width, theme);
    lines.push(Line::default());
    lines.extend(sums(state.snapshot(), object, theme));
    if object.kind == ObjectKind::Total {
        let warnings = state.snapshot().warnings.iter();
        let text =
            warnings.flat_map(|warning| wrap(&format!("warning: {}", visible(warning)), width));
        lines.extend(text.map(|piece| styled(piece, theme.style(Tone::Loss))));
    }
    lines
}

fn identity(object: &ObjectLine, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let descriptor = wrap(&visible(&object.object), width);
    let mut lines: Vec<Line<'static>> =
        descriptor.into_iter().map(|piece| styled(piece, theme.style(Tone::Strong))).collect();
    let mut facts = vec![kind_name(object.kind).to_owned()];
    facts.extend(object.offset.map(|offset| format!("offset {offset}")));
    facts.extend(object.size.map(|bytes| format!("size {}", size(bytes))));
    lines.push(Line::from(facts.join(", ")));
    if let Some(reason) = reason_of(&object.object) {
        lines.extend(wrap(reason.sentence(), width).into_iter().map(Line::from));
    }
    for scope in &object.scope {
        lines.extend(
            wrap(&format!("touched in {}", scope_text(scope)), width).into_iter().map(Line::from),
        );
    }
    let evidence = evidence(&object.metrics.all, Evidence::ALL.len());
    if !evidence.is_empty() {
        lines.push(Line::from(format!("evidence {evidence}")));
    }
    lines
}

/// `match_orders in book.c of /usr/bin/order-book`, as much of it as is known.
fn scope_text(scope: &Scope) -> String {
    let mut text = String::new();
    if let Some(function) = &scope.function {
        text.push_str(&format!("{} in ", visible(function)));
    }
    if let Some(unit) = &scope.unit {
        text.push_str(&format!("{} of ", visible(unit)));
    }
    text + &visible(&scope.object)
}

fn sums(snapshot: &Snapshot, object: &ObjectLine, theme: &Theme) -> Vec<Line<'static>> {
    let lengths = snapshot.window_lengths();
    let columns: Vec<(Scale, &Metrics)> = lengths
        .windows()
        .map(|window| (Scale::new(snapshot, window), object.metrics.get(window)))
        .collect();
    let titles = columns.iter().map(|(scale, _)| scale.window.to_string());
    let mut lines = vec![styled(row("", titles), theme.heading())];
    let mut push = |name: &str, is_kept_empty: bool, value: &dyn Fn(&Scale, &Metrics) -> String| {
        let values: Vec<String> =
            columns.iter().map(|(scale, metrics)| value(scale, metrics)).collect();
        if is_kept_empty || values.iter().any(|value| !value.is_empty() && value != "0") {
            lines.push(Line::from(row(&visible(name), values.into_iter())));
        }
    };
    for column in [Column::Share, Column::Samples, Column::Rate, Column::Loads, Column::Stores] {
        push(&column.title().to_lowercase(), true, &|scale, metrics| column.cell(metrics, scale));
    }
    push("latency", false, &|scale, metrics| Column::Latency.cell(metrics, scale));
    push("TLB misses", false, &|_, metrics| short_count(metrics.tlb_misses, NUMBER_WIDTH));
    push("locked", false, &|_, metrics| short_count(metrics.locked, NUMBER_WIDTH));
    push("HITM", false, &|_, metrics| short_count(metrics.hitm, NUMBER_WIDTH));
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
    for event in keys(&columns, |metrics| metrics.events.keys()) {
        let sum = |metrics: &Metrics| metrics.events.get(&event).copied().unwrap_or(0);
        push(&event, true, &|_, metrics| short_count(sum(metrics), NUMBER_WIDTH));
    }
    lines
}

fn keys<'a, K: Iterator<Item = &'a String>>(
    columns: &[(Scale, &'a Metrics)],
    of: impl Fn(&'a Metrics) -> K,
) -> BTreeSet<String> {
    columns.iter().flat_map(|(_, metrics)| of(metrics)).cloned().collect()
}

fn row(name: &str, values: impl Iterator<Item = String>) -> String {
    let mut text = format!("{name:<NAME_WIDTH$}");
    for value in values {
        text.push_str(&format!(" {value:>NUMBER_WIDTH$}"));
    }
    text
}

const fn kind_name(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Total => "everything that has a data object or a reason why not",
        ObjectKind::Aggregate => "aggregate",
        ObjectKind::Member => "member",
        ObjectKind::Scalar => "scalar",
        ObjectKind::Artificial => "artificial",
    }
}
