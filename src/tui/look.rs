//! Asks the history what the screen is to show: through the lens, on the page that is open, and hottest lines.

use super::lens::{begin_s, condition_of, shown};
use super::page::code::CodeWishes;
use super::page::{PageRow, Subject, choice, code, layout, object, sharing, time};
use super::state::ScreenState;
use super::view;
use crate::annotation::subject::CodeSubject;
use crate::arrangement::descendants_first;
use crate::column::Column;
use crate::header::{Segment, Tone};
use crate::session::Source;
use crate::session::inspection::Inspector;
use crate::session::question::Question;
use crate::text::visible;
use dataspace_proto::query::{KeyValue, Query, QueryAnswer};
use std::collections::HashMap;
use std::sync::Arc;

/// Most lines that are asked for.
const MAX_LINES: usize = 5_000;

/// Brings everything that is asked of the history up to date.
pub(super) fn look(
    state: &mut ScreenState,
    source: &dyn Source,
    inspector: Option<&mut Inspector>,
    width: usize,
) {
    if !state.is_stale {
        return;
    }
    state.is_stale = false;
    state.seen_columns = view::columns(state, width);
    look_through(state, source);
    look_for_lines(state, source);
    look_for_function(state, source);
    look_at_page(state, source, inspector, width);
}

fn ask(state: &ScreenState, source: &dyn Source, query: Query) -> Result<QueryAnswer, String> {
    let question = Question::new(query.with_keys(state.own_keys.clone()));
    let question = question.map_err(|failure| failure.to_string())?;
    source.ask(&question).map_err(|error| format!("{error:#}"))
}

/// The table through the lens. Where the history cannot answer, the lens is taken off, and why is said.
fn look_through(state: &mut ScreenState, source: &dyn Source) {
    if !state.lens.is_needed() {
        return;
    }
    match ask(state, source, state.lens.query(state.arrangement().window)) {
        Ok(answer) => {
            let seen = state.lens.seen(&state.whole, &answer);
            state.show(Arc::new(seen));
            if answer.rows_held < answer.rows_of_span {
                let QueryAnswer { rows_held, rows_of_span, .. } = answer;
                let text =
                    format!("the history has {rows_held} of {rows_of_span} samples of this window");
                state.message.get_or_insert_with(|| Segment::new(text, Tone::Faint));
            }
        }
        Err(what) => {
            if state.lens.conditions.pop().is_none() {
                state.lens = Default::default();
            }
            state.message = Some(Segment::new(visible(&what).into_owned(), Tone::Loss));
            state.is_stale = state.lens.is_needed();
            if !state.is_stale {
                state.show(Arc::clone(&state.whole));
            }
        }
    }
}

/// The hottest line of each object and of what is around it, where that column is shown.
fn look_for_lines(state: &mut ScreenState, source: &dyn Source) {
    if !state.seen_columns.contains(&Column::HotLine) || state.lens.group.is_some() {
        return;
    }
    let by = ["object", "line", "function"].map(str::to_owned).to_vec();
    let query = state.lens.asked(by, state.arrangement().window, None, MAX_LINES);
    // A column of its own has no place for a reason: what is said is said by the page of an object.
    let Ok(answer) = ask(state, source, query) else { return };
    let places: HashMap<&str, usize> =
        state.snapshot.objects.iter().enumerate().map(|(at, it)| (&*it.object, at)).collect();
    let mut lines: Vec<HashMap<String, u64>> = vec![HashMap::new(); state.snapshot.objects.len()];
    for row in &answer.rows {
        let [object, line, function] = &row.key[..] else { continue };
        if let Some(at) = places.get(shown(object).as_str()) {
            let place = match (line, function) {
                (KeyValue::Text(line), KeyValue::Text(function)) => {
                    format!("{} {function}", object::short(line))
                }
                (KeyValue::None, KeyValue::Text(function)) => function.clone(),
                _ => continue,
            };
            *lines[*at].entry(place).or_default() += row.metrics.samples;
        }
    }
    for (child, parent) in descendants_first(&state.snapshot.objects) {
        for (line, samples) in lines[child].clone() {
            *lines[parent].entry(line).or_default() += samples;
        }
    }
    let hottest = |lines: HashMap<String, u64>| {
        lines.into_iter().max_by(|one, other| one.1.cmp(&other.1).then(other.0.cmp(&one.0)))
    };
    let objects = state.snapshot.objects.iter().zip(lines);
    state.hot_lines = objects
        .filter_map(|(object, lines)| Some((object.object.to_string(), hottest(lines)?.0)))
        .collect();
}

/// The function that touches something most, where its code is wanted.
fn look_for_function(state: &mut ScreenState, source: &dyn Source) {
    let Some(condition) = state.takes_code_wish() else { return };
    let by = vec!["function".to_owned()];
    let query = state.lens.asked(by, state.arrangement().window, Some(&condition), 2);
    let answer = match ask(state, source, query) {
        Ok(answer) => answer,
        Err(what) => return state.tell(visible(&what)),
    };
    let functions = answer.rows.into_iter().filter_map(|row| row.key.into_iter().next());
    let mut named = functions.filter_map(|function| match function {
        KeyValue::Text(function) => Some(function),
        _ => None,
    });
    match named.next() {
        Some(function) => state.open_function(function),
        None => state.tell("no function is known to touch it in this window"),
    }
}

/// The rows of the page that is open.
fn look_at_page(
    state: &mut ScreenState,
    source: &dyn Source,
    inspector: Option<&mut Inspector>,
    width: usize,
) {
    let Some(subject) = state.pages.last().map(|page| page.subject.clone()) else { return };
    // Within the frame and its padding.
    let inside = width.saturating_sub(4);
    let rows = match subject {
        Subject::Object(id) => object_rows(state, source, id, inside),
        Subject::Layout(object) => told(layout::rows(&source.history(false), &object, inside)),
        Subject::Threads => {
            let query = state.lens.asked(Vec::new(), state.arrangement().window, None, 1);
            let query = query.with_keys(state.own_keys.clone());
            told(sharing::rows(&source.history(true), &query, inside))
        }
        Subject::Code(subject) => match inspector {
            Some(inspector) => {
                let has_line = CodeSubject::parse(&subject).has_line();
                let (findings, filter) = (source.history(has_line), state.lens.filter(None));
                let wishes = CodeWishes {
                    subject: &subject,
                    filter: filter.as_deref(),
                    own_keys: &state.own_keys,
                    names: state.arrangement().names,
                    width: inside,
                };
                told(code::rows(&findings, &wishes, inspector))
            }
            None => {
                vec![PageRow::text("code is not shown of a session of the daemon", Tone::Faint)]
            }
        },
        Subject::Time(id) => time_rows(state, source, id),
        Subject::Group => choice::keys(&state.own_keys, state.lens.group.as_deref()),
        Subject::Columns => choice::columns(&state.seen_columns, &state.whole),
        Subject::Warnings => warning_rows(state, inside),
        Subject::Help => view::help_rows(state),
    };
    if let Some(page) = state.pages.last_mut() {
        if page.rows.is_empty() && matches!(page.subject, Subject::Code(_)) {
            page.at.selected = code::hottest(&rows);
        }
        page.rows = rows;
    }
}

/// The rows, or why there are none.
fn told(rows: Result<Vec<PageRow>, String>) -> Vec<PageRow> {
    rows.unwrap_or_else(|what| vec![PageRow::text(visible(&what), Tone::Loss)])
}

fn object_rows(state: &ScreenState, source: &dyn Source, id: u32, width: usize) -> Vec<PageRow> {
    let Some(object) = state.object(id) else {
        return vec![PageRow::text("the object is no longer in the list", Tone::Faint)];
    };
    let queries = object::queries(object, &state.lens, state.arrangement().window);
    let answers: Vec<Result<QueryAnswer, String>> =
        queries.into_iter().map(|query| ask(state, source, query)).collect();
    object::rows(&state.snapshot, object, &answers, state.arrangement().names, width)
}

fn time_rows(state: &ScreenState, source: &dyn Source, id: Option<u32>) -> Vec<PageRow> {
    let object = id.and_then(|id| state.object(id));
    let condition = object.map(condition_of).filter(|_| state.lens.group.is_none());
    let filter = state.lens.filter(condition.as_deref());
    let now_s = state.whole.elapsed_ns / 1_000_000_000 + 1;
    let end = state.lens.end_s.unwrap_or(now_s);
    let begin = begin_s(state.arrangement().window, end);
    let mut rows = match object {
        Some(object) => {
            let name = visible(state.arrangement().names.of(object)).into_owned();
            vec![PageRow::text(
                format!("{name}: Enter moves the window back, 0 is now"),
                Tone::Faint,
            )]
        }
        None => vec![PageRow::text("Enter moves the window back, 0 is now", Tone::Faint)],
    };
    match ask(state, source, time::query(filter)) {
        Ok(answer) => rows.extend(time::rows(&answer, (begin, end))),
        Err(what) => rows.push(PageRow::text(visible(&what), Tone::Loss)),
    }
    rows
}

fn warning_rows(state: &ScreenState, width: usize) -> Vec<PageRow> {
    let warnings = state.whole.warnings.iter();
    let rows: Vec<PageRow> = warnings
        .flat_map(|warning| PageRow::wrapped(&visible(warning), Tone::Loss, width))
        .collect();
    if rows.is_empty() { vec![PageRow::text("nothing went wrong", Tone::Faint)] } else { rows }
}
