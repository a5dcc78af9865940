//! Asks the history what the screen is to show: through the lens, on the page that is open, and hottest lines.

use super::errand::{Errand, Found, WatchedPlace};
use super::lens::{Lens, begin_s, shown};
use super::page::code::CodeWishes;
use super::page::object::ObjectWishes;
use super::page::{PageRow, Subject, choice, code, layout, measurement, object, sharing, time};
use super::state::ScreenState;
use super::variable::{VariableRows, condition_among};
use super::view;
use crate::annotation::subject::CodeSubject;
use crate::arrangement::descendants_first;
use crate::column::Column;
use crate::config::Names;
use crate::header::{Segment, Tone};
use crate::measure::view::MeasureView;
use crate::session::Source;
use crate::session::inspection::Inspector;
use crate::session::question::Question;
use crate::text::visible;
use dataspace_proto::measure::Measure;
use dataspace_proto::query::{KeyValue, Query, QueryAnswer};
use dataspace_proto::snapshot::{ObjectLine, Snapshot};
use dataspace_proto::window::Window;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Most lines that are asked for.
const MAX_LINES: usize = 5_000;

/// All that the history is asked for a picture.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    whole: Arc<Snapshot>,
    /// The part of it that is seen through the lens.
    shown: Arc<Snapshot>,
    lens: Lens,
    variables: Arc<VariableRows>,
    window: Window,
    names: Names,
    own_keys: BTreeMap<String, String>,
    measure: Option<Measure>,
    has_hot_lines: bool,
    /// An errand, and a condition on the samples that it is about.
    errand: Option<(Errand, String)>,
    /// The page that is open.
    subject: Option<Subject>,
    /// True where the history knows what is on it.
    is_page_asked: bool,
    /// Columns within the frame of a page.
    width: usize,
}

/// The totals through a lens.
#[derive(Debug)]
struct Seen {
    snapshot: Arc<Snapshot>,
    /// Rows that are of one variable.
    variables: Arc<VariableRows>,
    /// A word where the history does not have all samples.
    missing: Option<String>,
}

/// Answers of the history to a wish.
#[derive(Debug)]
pub(super) struct Sight {
    wish: Wish,
    seen: Option<Result<Seen, String>>,
    hot_lines: Option<HashMap<String, String>>,
    found: Option<Result<Found, String>>,
    rows: Option<Vec<PageRow>>,
}

/// The questions for a screen of `width` columns, if there are any; rows that need none are put on it.
pub(super) fn wish(state: &mut ScreenState, width: usize) -> Option<Wish> {
    state.is_stale = false;
    state.seen_columns = view::columns(state, width);
    // Within the frame and its padding.
    let width = width.saturating_sub(4);
    let subject = state.pages.last().map(|page| page.subject.clone());
    let is_page_asked = put_own_rows(state, width);
    // Below a page no column is seen.
    let has_hot_lines = state.seen_columns.contains(&Column::HotLine)
        && !state.lens.is_split()
        && state.pages.is_empty();
    let errand = state.takes_errand();
    let is_needed = state.lens.is_needed() || has_hot_lines || errand.is_some() || is_page_asked;
    is_needed.then(|| Wish {
        whole: Arc::clone(&state.whole),
        shown: Arc::clone(&state.snapshot),
        lens: state.lens.clone(),
        variables: Arc::clone(&state.variables),
        window: state.arrangement().window,
        names: state.arrangement().names,
        own_keys: state.own_keys.clone(),
        measure: state.measure,
        has_hot_lines,
        errand,
        subject,
        is_page_asked,
        width,
    })
}

/// Puts on the page that is open what needs no question. Whether the history has to be asked too.
fn put_own_rows(state: &mut ScreenState, width: usize) -> bool {
    let Some(page) = state.pages.last() else { return false };
    let (own, is_new) = (own_rows(state, &page.subject, width), page.rows.is_empty());
    let is_asked = own.is_none();
    let first = || match &page.subject {
        Subject::Object(id) => {
            let object = state.object(*id)?;
            let window = state.lens.only_window(state.arrangement().window);
            let wishes = ObjectWishes { window, names: state.arrangement().names, width };
            Some(object::rows(&state.snapshot, object, Ok(&[]), wishes))
        }
        _ => Some(vec![PageRow::text("the samples are being asked…", Tone::Faint)]),
    };
    let rows = own.or_else(|| is_new.then(first).flatten());
    if let (Some(rows), Some(page)) = (rows, state.pages.last_mut()) {
        page.rows = rows;
    }
    is_asked
}

/// The rows of a page that tells nothing of samples; `None` where the history has to be asked.
fn own_rows(state: &ScreenState, subject: &Subject, width: usize) -> Option<Vec<PageRow>> {
    Some(match subject {
        Subject::Group => choice::keys(&state.own_keys, state.lens.group.as_deref()),
        Subject::Columns => choice::columns(state.chosen_columns(), &state.whole),
        Subject::Warnings => warning_rows(state, width),
        Subject::Help => view::help_rows(state),
        Subject::Object(_)
        | Subject::Layout(_)
        | Subject::Threads
        | Subject::Measurement
        | Subject::Code(_)
        | Subject::Time(_) => return None,
    })
}

fn warning_rows(state: &ScreenState, width: usize) -> Vec<PageRow> {
    let warnings = state.whole.warnings.iter();
    let rows: Vec<PageRow> = warnings
        .flat_map(|warning| PageRow::wrapped(&visible(warning), Tone::Loss, width))
        .collect();
    if rows.is_empty() { vec![PageRow::text("nothing went wrong", Tone::Faint)] } else { rows }
}

/// Puts on the screen what the history said, unless something else is looked at by now.
pub(super) fn take(state: &mut ScreenState, sight: Sight) {
    let Sight { wish, seen, hot_lines, found, rows } = sight;
    state.has_errand_out &= wish.errand.is_none();
    if wish.lens != state.lens || wish.window != state.arrangement().window {
        return;
    }
    match seen {
        Some(Ok(Seen { snapshot, variables, missing })) => {
            state.show(snapshot);
            state.variables = variables;
            state.missing = missing;
        }
        Some(Err(what)) => take_off(state, &what),
        None => {}
    }
    if let Some(lines) = hot_lines {
        state.hot_lines = lines;
    }
    if wish.subject.as_ref() != state.pages.last().map(|page| &page.subject) {
        // Another page was opened or closed since: it is asked for next.
        return;
    }
    if let (Some(rows), Some(page)) = (rows, state.pages.last_mut()) {
        if page.is_awaited && matches!(page.subject, Subject::Code(_)) {
            page.at.selected = code::hottest(&rows);
        }
        page.is_awaited = false;
        page.rows = rows;
    }
    match found {
        Some(Ok(found)) => state.bring(found),
        Some(Err(what)) => state.tell(what),
        None => {}
    }
}

/// Takes a lens off that the history cannot answer for, and says why.
fn take_off(state: &mut ScreenState, what: &str) {
    if state.lens.conditions.pop().is_none() {
        state.lens = Default::default();
    }
    state.message = Some(Segment::new(visible(what).into_owned(), Tone::Loss));
    state.is_stale = true;
    if !state.lens.is_needed() {
        state.show(Arc::clone(&state.whole));
    }
}

/// Asks.
pub(super) fn see(mut wish: Wish, source: &dyn Source, inspector: Option<&mut Inspector>) -> Sight {
    let seen = wish.lens.is_needed().then(|| wish.seen(source));
    if let Some(Ok(seen)) = &seen {
        wish.shown = Arc::clone(&seen.snapshot);
        wish.variables = Arc::clone(&seen.variables);
    }
    let hot_lines = wish.has_hot_lines.then(|| wish.hot_lines(source)).flatten();
    let found = wish.errand.as_ref().map(|(errand, condition)| match errand {
        Errand::Code => wish.function(condition, source).map(Found::Function),
        Errand::Watch => wish.place(condition, source).map(Found::Place),
    });
    let subject = wish.subject.clone().filter(|_| wish.is_page_asked);
    let rows = subject.map(|subject| wish.page(subject, source, inspector));
    Sight { wish, seen, hot_lines, found, rows }
}

/// A sight of nothing, where `what` went wrong.
pub(super) fn blind(wish: Wish, what: &str) -> Sight {
    let rows = vec![PageRow::text(what, Tone::Loss)];
    Sight { wish, seen: None, hot_lines: None, found: None, rows: Some(rows) }
}

impl Wish {
    fn ask(&self, source: &dyn Source, query: Query) -> Result<QueryAnswer, String> {
        let question = Question::new(query.with_keys(self.own_keys.clone()));
        let question = question.map_err(|failure| failure.to_string())?;
        source.ask(&question).map_err(|error| format!("{error:#}"))
    }

    /// The same for several at once.
    fn ask_all(
        &self,
        source: &dyn Source,
        queries: Vec<Query>,
    ) -> Result<Vec<QueryAnswer>, String> {
        let question = |query: Query| Question::new(query.with_keys(self.own_keys.clone()));
        let questions = queries.into_iter().map(question).collect::<Result<Vec<_>, _>>();
        let questions = questions.map_err(|failure| failure.to_string())?;
        source.ask_all(&questions).map_err(|error| format!("{error:#}"))
    }

    fn object(&self, id: u32) -> Option<&ObjectLine> {
        self.shown.objects.iter().find(|object| object.id == id)
    }

    /// The table through the lens.
    fn seen(&self, source: &dyn Source) -> Result<Seen, String> {
        let answer = self.ask(source, self.lens.query(self.window))?;
        let (snapshot, variables) = self.lens.seen(&self.whole, &answer);
        let QueryAnswer { rows_held, rows_of_span, .. } = answer;
        let missing = (rows_held < rows_of_span).then(|| {
            format!("the history has {rows_held} of {rows_of_span} samples of this window")
        });
        Ok(Seen { snapshot: Arc::new(snapshot), variables: Arc::new(variables), missing })
    }

    /// The hottest line of each object, by its descriptor, and of what is around it.
    fn hot_lines(&self, source: &dyn Source) -> Option<HashMap<String, String>> {
        let by = ["object", "line", "function"].map(str::to_owned).to_vec();
        let query = self.lens.asked(by, self.window, None, MAX_LINES);
        // A column of its own has no place for a reason: what is said is said by the page of an object.
        let answer = self.ask(source, query).ok()?;
        let objects = self.shown.objects.iter().enumerate().rev();
        let places: HashMap<&str, usize> = objects.map(|(at, it)| (&*it.object, at)).collect();
        let mut lines: Vec<HashMap<String, u64>> = vec![HashMap::new(); self.shown.objects.len()];
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
        for (child, parent) in descendants_first(&self.shown.objects) {
            for (line, samples) in lines[child].clone() {
                *lines[parent].entry(line).or_default() += samples;
            }
        }
        let hottest = |lines: HashMap<String, u64>| {
            lines.into_iter().max_by(|one, other| one.1.cmp(&other.1).then(other.0.cmp(&one.0)))
        };
        let objects = self.shown.objects.iter().zip(lines);
        let named = objects
            .filter_map(|(object, lines)| Some((object.object.to_string(), hottest(lines)?.0)));
        Some(named.collect())
    }

    /// The function that touches most of the samples that meet a condition.
    fn function(&self, condition: &str, source: &dyn Source) -> Result<String, String> {
        let by = vec!["function".to_owned()];
        let query = self.lens.asked(by, self.window, Some(condition), 2);
        let answer = self.ask(source, query).map_err(|what| visible(&what).into_owned())?;
        let functions = answer.rows.into_iter().filter_map(|row| row.key.into_iter().next());
        let mut named = functions.filter_map(|function| match function {
            KeyValue::Text(function) => Some(function),
            _ => None,
        });
        named.next().ok_or("no function is known to touch it in this window".to_owned())
    }

    /// The place that most of the samples that meet a condition touch.
    fn place(&self, condition: &str, source: &dyn Source) -> Result<WatchedPlace, String> {
        let by = ["process", "address", "size"].map(str::to_owned).to_vec();
        let condition = format!("{condition} && address != null");
        let query = self.lens.asked(by, self.window, Some(&condition), 1);
        let answer = self.ask(source, query).map_err(|what| visible(&what).into_owned())?;
        let row = answer.rows.first().map(|row| &row.key[..]);
        let Some([KeyValue::Number(pid), KeyValue::Text(address), size]) = row else {
            return Err("no sample of it in this window has an address".to_owned());
        };
        let size = if let KeyValue::Number(size) = size { *size as u64 } else { 1 };
        let place = watchable(address, size).ok_or("it has no address that can be watched")?;
        Ok(WatchedPlace { pid: *pid as i32, place })
    }

    /// The rows of the page that is open.
    fn page(
        &self,
        subject: Subject,
        source: &dyn Source,
        inspector: Option<&mut Inspector>,
    ) -> Vec<PageRow> {
        match subject {
            Subject::Object(id) => self.object_rows(source, id),
            Subject::Layout(object) => {
                let within = match self.lens.is_part() {
                    true => self.lens.asked(Vec::new(), self.window, None, 1),
                    // All that there is: the rarer a member is touched, the longer it takes to be seen.
                    false => Query::default(),
                };
                let within = within.with_keys(self.own_keys.clone());
                let has_lines = Question::new(within.clone()).is_ok_and(|it| it.has_lines());
                let findings = source.history(has_lines);
                told(layout::rows(&findings, &object, &within, self.width))
            }
            Subject::Threads => {
                let query = self.lens.asked(Vec::new(), self.window, None, 1);
                let query = query.with_keys(self.own_keys.clone());
                told(sharing::rows(&source.history(true), &query, self.width))
            }
            Subject::Measurement => {
                let query = self.lens.asked(Vec::new(), self.window, None, 1);
                let query = query.with_keys(self.own_keys.clone());
                let view = MeasureView { names: self.names, ..MeasureView::default() };
                told(measurement::rows(source, query, self.measure, &view))
            }
            Subject::Code(subject) => match inspector {
                Some(inspector) => {
                    let filter = self.lens.filter(None);
                    // The filter may speak of lines.
                    let has_line = CodeSubject::parse(&subject).has_line() || filter.is_some();
                    let findings = source.history(has_line);
                    let wishes = CodeWishes {
                        subject: &subject,
                        filter: filter.as_deref(),
                        own_keys: &self.own_keys,
                        names: self.names,
                        width: self.width,
                    };
                    told(code::rows(&findings, &wishes, inspector))
                }
                None => {
                    vec![PageRow::text("code is not shown of a session of the daemon", Tone::Faint)]
                }
            },
            Subject::Time(id) => self.time_rows(source, id),
            Subject::Group | Subject::Columns | Subject::Warnings | Subject::Help => Vec::new(),
        }
    }

    fn object_rows(&self, source: &dyn Source, id: u32) -> Vec<PageRow> {
        let Some(object) = self.object(id) else {
            return vec![PageRow::text("the object is no longer in the list", Tone::Faint)];
        };
        let queries =
            object::queries(&condition_among(&self.variables, object), &self.lens, self.window);
        let answers = self.ask_all(source, queries);
        let window = self.lens.only_window(self.window);
        let wishes = ObjectWishes { window, names: self.names, width: self.width };
        object::rows(&self.shown, object, answers.as_deref(), wishes)
    }

    fn time_rows(&self, source: &dyn Source, id: Option<u32>) -> Vec<PageRow> {
        let object = id.and_then(|id| self.object(id));
        let condition = object
            .map(|object| condition_among(&self.variables, object))
            .filter(|_| self.lens.group.is_none());
        let filter = self.lens.filter(condition.as_deref());
        let now_s = self.whole.elapsed_ns / 1_000_000_000 + 1;
        let end = self.lens.end_s.unwrap_or(now_s);
        let begin = begin_s(self.window, end);
        let mut rows = match object {
            Some(object) => {
                let name = visible(self.names.of(object)).into_owned();
                vec![PageRow::text(
                    format!("{name}: Enter moves the window back, 0 is now"),
                    Tone::Faint,
                )]
            }
            None => vec![PageRow::text("Enter moves the window back, 0 is now", Tone::Faint)],
        };
        match self.ask(source, time::query(filter)) {
            Ok(answer) => rows.extend(time::rows(&answer, (begin, end))),
            Err(what) => rows.push(PageRow::text(visible(&what), Tone::Loss)),
        }
        rows
    }
}

/// An address and the length that a debug register can watch there: of an access of `size` bytes as much as it can.
fn watchable(address: &str, size: u64) -> Option<String> {
    let at = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
    let length = [8, 4, 2, 1].into_iter().find(|length| *length <= size.max(1) && at % length == 0);
    Some(format!("{address}/{}", length?))
}

/// The rows, or why there are none.
fn told(rows: Result<Vec<PageRow>, String>) -> Vec<PageRow> {
    rows.unwrap_or_else(|what| vec![PageRow::text(visible(&what), Tone::Loss)])
}
