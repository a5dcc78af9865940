//! The two lines above the table: the session, and the accounts of one window.

use super::flow::elide;
use super::{Theme, objects};
use crate::column::Scale;
use crate::header::{Segment, Tone, loss_causes};
use crate::text::{percent, size, span, visible};
use crate::tui::lens::begin_s;
use crate::tui::state::ScreenState;
use dataspace_proto::reason::Reason;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Between two parts of a line.
const GAP: &str = " · ";

/// Room that the target's name keeps.
const MIN_NAME_WIDTH: usize = 12;

/// The lines, as whole as the screen can hold them.
pub(super) fn lines(state: &ScreenState, area: Rect, theme: &Theme) -> Vec<Line<'static>> {
    let width = usize::from(area.width);
    let mut lines = vec![fitting(session(state, width), GAP, width, theme)];
    if area.height > 3 {
        lines.push(fitting(accounts(state), " ", width, theme));
    }
    lines
}

/// Segments on one line: those that have no room are left out, from the end.
fn fitting(segments: Vec<Segment>, gap: &str, width: usize, theme: &Theme) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut used = 0;
    for segment in segments.into_iter().filter(|segment| !segment.text.is_empty()) {
        let before = if spans.is_empty() { "" } else { gap };
        let text = theme.drawn(&segment.text).into_owned();
        let span = Span::styled(text, theme.style(segment.tone));
        let needed = before.chars().count() + span.width();
        if used + needed > width && !spans.is_empty() {
            break;
        }
        used += needed;
        spans.push(Span::styled(theme.drawn(before).into_owned(), theme.style(Tone::Faint)));
        spans.push(span);
    }
    Line::from(spans)
}

/// The target, how long it has been watched, the window, and what is not as usual.
fn session(state: &ScreenState, width: usize) -> Vec<Segment> {
    let snapshot = &state.whole;
    let plain = |text: String| Segment::new(text, Tone::Plain);
    let mut segments = Vec::new();
    if state.is_paused() {
        segments.push(Segment::new("PAUSED", Tone::Strong));
    }
    let name_width = width.saturating_sub(50).max(MIN_NAME_WIDTH);
    let name = elide(&visible(&snapshot.target.description), name_width);
    segments.push(Segment::new(name, Tone::Strong));
    let elapsed = span(snapshot.elapsed_ns);
    segments.push(match snapshot.target.running {
        true => plain(elapsed),
        false => Segment::new(format!("ended after {elapsed}"), Tone::Strong),
    });
    let window = state.arrangement().window;
    segments.push(match state.lens.end_s {
        None => plain(format!("window {window}")),
        Some(end) => {
            let begin = begin_s(window, end);
            Segment::new(format!("AT {begin}..{end} s"), Tone::Strong)
        }
    });
    match &state.lens.group {
        Some(key) => segments.push(Segment::new(format!("by {}", visible(key)), Tone::Strong)),
        None if state.lens.by_variable => {
            segments.push(Segment::new("variables apart", Tone::Strong));
        }
        None => {}
    }
    match snapshot.warnings.len() {
        0 => {}
        n_warnings => segments.push(Segment::new(format!("⚠ {n_warnings}"), Tone::Loss)),
    }
    segments
        .extend(objects::hidden_sort(state, width).map(|key| plain(format!("sorted by {key}"))));
    segments.extend(crate::header::events(snapshot));
    segments
}

/// Each sample of the window in one of the parts, as shares; then what profiling costs.
fn accounts(state: &ScreenState) -> Vec<Segment> {
    let snapshot = &state.whole;
    let (accounts, seconds) = state.trend.accounting(snapshot, state.arrangement().window);
    let pending = accounts.unknown.get(&Reason::Pending).copied().unwrap_or(0);
    let unknown = accounts.unknown_total() - pending;
    let whole = accounts.kernel;
    let part = |count: u64| percent(count, whole);
    let mut segments = vec![
        Segment::new(format!("{whole} samples ="), Tone::Plain),
        Segment::new(format!("named {}", part(accounts.attributed)), Tone::Strong),
        Segment::new(format!("+ unknown {}", part(unknown)), Tone::Plain),
    ];
    if pending > 0 {
        segments.push(Segment::new(format!("+ waiting {}", part(pending)), Tone::Faint));
    }
    segments.push(Segment::new(format!("+ no memory {}", part(accounts.not_memory)), Tone::Plain));
    let lost = accounts.lost.total();
    if lost == 0 {
        segments.push(Segment::new("+ lost 0", Tone::Plain));
    } else {
        // On a narrow screen the end is cut: what is wrong comes first.
        segments.insert(1, Segment::new(format!("lost {} +", part(lost)), Tone::Loss));
        let causes = loss_causes(accounts.lost, snapshot.governance.is_some());
        segments.push(Segment::new(causes, Tone::Loss));
    }
    if let Some(total) = snapshot.objects.first() {
        let scale = Scale::new(snapshot, state.arrangement().window);
        let time_ns = scale.time_ns(total.metrics.get(scale.window));
        if let Some(time_ns) = time_ns.filter(|_| seconds > 0.0) {
            let cpus = time_ns as f64 / 1e9 / scale.seconds.max(f64::MIN_POSITIVE);
            segments.push(Segment::new(format!("· {cpus:.2} CPU"), Tone::Plain));
        }
    }
    let cost = snapshot.cost;
    if cost.own_cpu_ns > 0 {
        let cpu = cost.own_cpu_ns as f64 / snapshot.elapsed_ns.max(1) as f64 * 100.0;
        let memory = size(cost.own_rss_bytes);
        segments.push(Segment::new(format!("· own cost {cpu:.1}% {memory}"), Tone::Faint));
    }
    if accounts.conflicts > 0 {
        let share = percent(accounts.conflicts, snapshot.accounting.attributed);
        segments.push(Segment::new(format!("· conflicts {share}"), Tone::Faint));
    }
    segments
}
