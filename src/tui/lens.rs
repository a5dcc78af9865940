//! A part of the samples that the screen is about: those that filters keep, of a window that may have been moved back, put
//! together by a key. The history answers for it; without any of that the rolling totals do.

use super::variable::{OwnIds, VariableRows, unfolded};
use crate::answer;
use crate::arrangement::descendants_first;
use dataspace_proto::query::{KeyValue, Query, QueryAnswer, QueryMetrics};
use dataspace_proto::sample_line::Scope;
use dataspace_proto::snapshot::{Metrics, ObjectKind, ObjectLine, Snapshot};
use dataspace_proto::window::{Window, Windows};
use std::collections::HashMap;
use std::sync::Arc;

/// Most rows of an answer that is shown.
const MAX_ROWS: usize = 20_000;

/// Numbers of objects that the screen makes: those of a session are counted from 0.
pub(super) const FIRST_OWN_ID: u32 = 1 << 31;

/// A condition on samples, and what it is called on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    /// The expression.
    pub(super) expression: String,
    /// For a person.
    pub(super) label: String,
}

/// The part of the samples that is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lens {
    /// Samples have to meet all of them.
    pub(super) conditions: Vec<Condition>,
    /// End of the window, in seconds since the session began; `None` is now.
    pub(super) end_s: Option<u64>,
    /// Key that objects are put together by.
    pub(super) group: Option<String>,
    /// Types are told apart by variable, where they are not put together by a key.
    pub(super) by_variable: bool,
}

impl Lens {
    /// Tells whether the history has to be asked.
    pub(super) fn is_needed(&self) -> bool {
        *self != Self::default()
    }

    /// Tells whether some samples are left out, but for those of another window.
    pub(super) fn is_part(&self) -> bool {
        !self.conditions.is_empty() || self.end_s.is_some()
    }

    /// Tells whether a row is not simply an object of the session.
    pub(super) fn is_split(&self) -> bool {
        self.by_variable || self.group.is_some()
    }

    /// The window that sums are of, where the history was asked; otherwise each window has its own.
    pub(super) fn only_window(&self, window: Window) -> Option<Window> {
        self.is_needed().then_some(window)
    }

    /// All conditions as one expression, with another one.
    pub(super) fn filter(&self, other: Option<&str>) -> Option<String> {
        let own = self.conditions.iter().map(|condition| condition.expression.as_str());
        let all: Vec<String> = own.chain(other).map(|text| format!("({text})")).collect();
        (!all.is_empty()).then(|| all.join(" && "))
    }

    /// The span of a window as a question has it.
    pub(super) fn span(&self, window: Window) -> Option<String> {
        match (self.end_s, window) {
            (None, Window::All) => None,
            (None, Window::Last(seconds)) => Some(format!("-{seconds}s..")),
            (Some(end), Window::All) => Some(format!("..{end}s")),
            (Some(end), Window::Last(_)) => Some(format!("{}s..{end}s", begin_s(window, end))),
        }
    }

    /// The question whose answer is seen through it.
    pub(super) fn query(&self, window: Window) -> Query {
        let group = self.group.clone().or_else(|| self.by_variable.then(|| "variable".to_owned()));
        let by = group.into_iter().chain(["object".to_owned()]);
        self.asked(by.collect(), window, None, MAX_ROWS)
    }

    /// A question about the same samples, of which another condition may leave some out.
    pub(super) fn asked(
        &self,
        by: Vec<String>,
        window: Window,
        other: Option<&str>,
        limit: usize,
    ) -> Query {
        Query {
            by,
            filter: self.filter(other),
            span: self.span(window),
            limit: Some(limit),
            ..Query::default()
        }
    }

    /// `snapshot` as far as the answer to [`Self::query`] has it: sums of the window asked for, in all windows. With it
    /// the rows that are of one variable.
    pub(super) fn seen(
        &self,
        snapshot: &Snapshot,
        answer: &QueryAnswer,
    ) -> (Snapshot, VariableRows) {
        let (objects, variables) = match (&self.group, self.by_variable) {
            (Some(_), _) => (grouped(snapshot, answer), HashMap::new()),
            (None, true) => unfolded(snapshot, answer),
            (None, false) => (kept(snapshot, answer), HashMap::new()),
        };
        let mut seen = Snapshot { objects, ..snapshot.clone() };
        seen.truncated |= answer.truncated;
        (seen, variables)
    }
}

/// The beginning of a window that ends so many seconds after the session began.
pub(super) fn begin_s(window: Window, end_s: u64) -> u64 {
    match window {
        Window::All => 0,
        Window::Last(seconds) => end_s.saturating_sub(seconds.into()),
    }
}

/// The objects of `snapshot` with the sums of the answer.
pub(super) fn kept(snapshot: &Snapshot, answer: &QueryAnswer) -> Vec<ObjectLine> {
    let mut sums: HashMap<&str, Metrics> = HashMap::new();
    for row in &answer.rows {
        if let Some(KeyValue::Text(object)) = row.key.last() {
            add(sums.entry(object).or_default(), &metrics(&row.metrics));
        }
    }
    let objects = &snapshot.objects;
    let mut own: Vec<Metrics> =
        objects.iter().map(|object| sums.remove(&*object.object).unwrap_or_default()).collect();
    for (child, parent) in descendants_first(objects) {
        let sum = own[child].clone();
        add(&mut own[parent], &sum);
    }
    let lengths = snapshot.window_lengths();
    let line = |(object, metrics): (&ObjectLine, Metrics)| ObjectLine {
        metrics: Windows::new(lengths, |_| metrics.clone()),
        ..object.clone()
    };
    objects.iter().zip(own).map(line).collect()
}

/// A line for each value of the key, and the objects below it.
fn grouped(snapshot: &Snapshot, answer: &QueryAnswer) -> Vec<ObjectLine> {
    let lengths = snapshot.window_lengths();
    let names: HashMap<&str, &ObjectLine> =
        snapshot.objects.iter().map(|object| (&*object.object, object)).collect();
    let line = |id: u32, parent_id: Option<u32>, name: &str, metrics: Metrics| ObjectLine {
        id,
        parent_id,
        object: name.into(),
        name: name.into(),
        part: None,
        is_elided: false,
        kind: ObjectKind::Aggregate,
        offset: None,
        size: None,
        candidates: Vec::new(),
        scope: Vec::<Scope>::new(),
        metrics: Windows::new(lengths, |_| metrics.clone()),
    };
    let mut ids = OwnIds::default();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut lines = vec![ObjectLine {
        kind: ObjectKind::Total,
        ..line(ids.of("<Total>"), None, "<Total>", metrics(&answer.total))
    }];
    for row in &answer.rows {
        let [group, object] = &row.key[..] else { continue };
        let group = shown(group);
        let object = shown(object);
        let at = *places.entry(group.clone()).or_insert(lines.len());
        if at == lines.len() {
            lines.push(line(ids.of(&group), Some(lines[0].id), &group, Metrics::default()));
        }
        let sums = metrics(&row.metrics);
        let mut all = lines[at].metrics.all.clone();
        add(&mut all, &sums);
        lines[at].metrics = Windows::new(lengths, |_| all.clone());
        let known = names.get(object.as_str());
        let child = line(ids.of((&group, &object)), Some(lines[at].id), &object, sums);
        lines.push(match known {
            Some(known) => ObjectLine {
                name: Arc::clone(&known.name),
                kind: known.kind,
                offset: known.offset,
                size: known.size,
                scope: known.scope.clone(),
                ..child
            },
            None => child,
        });
    }
    lines
}

/// A key's value for a person.
pub(super) fn shown(value: &KeyValue) -> String {
    match value {
        KeyValue::None => "(none)".to_owned(),
        value => answer::text(value),
    }
}

/// Sums of an answer as objects have them.
pub(super) fn metrics(sums: &QueryMetrics) -> Metrics {
    Metrics {
        samples: sums.samples,
        loads: sums.loads,
        stores: sums.stores,
        latency: Some(sums.latency),
        tlb_misses: Some(sums.tlb_misses),
        locked: Some(sums.locked),
        hitm: Some(sums.hitm),
        remote: Some(sums.remote),
        events: sums.period.clone(),
        ..Metrics::default()
    }
}

/// Adds the figures of an answer to others.
pub(super) fn add(sum: &mut Metrics, other: &Metrics) {
    sum.samples += other.samples;
    sum.loads += other.loads;
    sum.stores += other.stores;
    for (sum, other) in [
        (&mut sum.latency, other.latency),
        (&mut sum.tlb_misses, other.tlb_misses),
        (&mut sum.locked, other.locked),
        (&mut sum.hitm, other.hitm),
        (&mut sum.remote, other.remote),
    ] {
        if let Some(other) = other {
            *sum = Some(sum.unwrap_or(0).wrapping_add(other));
        }
    }
    for (event, period) in &other.events {
        let sum = sum.events.entry(event.clone()).or_default();
        *sum = sum.wrapping_add(*period);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::session::question::{Question, condition_of};
    use dataspace_proto::query::QueryRow;

    fn row(key: &[&str], samples: u64) -> QueryRow {
        let key = key.iter().map(|text| KeyValue::Text((*text).to_owned())).collect();
        QueryRow { key, metrics: QueryMetrics { samples, ..QueryMetrics::default() } }
    }

    #[test]
    fn sums_of_an_answer_go_to_all_that_is_around() {
        let lens = Lens { end_s: Some(9), ..Lens::default() };
        let rows = vec![
            row(&["{structure:order}.{structure:pos_t pos}.{int y}"], 5),
            row(&["{structure:order}.{long_int price}"], 2),
            row(&["{structure:order}"], 1),
        ];
        let answer = QueryAnswer { rows, ..QueryAnswer::default() };
        let (seen, _) = lens.seen(&fixture::running(), &answer);
        let samples = |id: u32| {
            seen.objects.iter().find(|object| object.id == id).unwrap().metrics.all.samples
        };
        assert_eq!([1, 2, 4, 5, 6, 7].map(samples), [8, 8, 5, 5, 2, 0]);
    }

    #[test]
    fn groups_hold_their_objects() {
        let lens = Lens { group: Some("comm".into()), ..Lens::default() };
        let rows = vec![
            row(&["hits", "{structure:order}.{long_int price}"], 4),
            row(&["misses", "{structure:order}.{long_int price}"], 2),
            row(&["hits", "{structure:particle}.{double x}"], 1),
        ];
        let answer = QueryAnswer { rows, ..QueryAnswer::default() };
        let objects = lens.seen(&fixture::running(), &answer).0.objects;
        let sums: Vec<(&str, u64)> =
            objects.iter().map(|line| (&*line.name, line.metrics.all.samples)).collect();
        assert_eq!(
            sums,
            [
                ("<Total>", 0),
                ("hits", 5),
                ("order.price", 4),
                ("misses", 2),
                ("order.price", 2),
                ("particle.x", 1)
            ]
        );
        assert_eq!(objects[2].parent_id, Some(objects[1].id));
    }

    #[test]
    fn every_question_of_a_lens_means_something() {
        let mut lens = Lens { group: Some("thread".into()), ..Lens::default() };
        for object in &fixture::running().objects {
            let expression = condition_of(object);
            lens.conditions.push(Condition { expression, label: String::new() });
        }
        for (end_s, window, span) in [
            (None, Window::All, None),
            (None, Window::Last(10), Some("-10s..")),
            (Some(25), Window::Last(10), Some("15s..25s")),
            (Some(5), Window::Last(10), Some("0s..5s")),
            (Some(5), Window::All, Some("..5s")),
        ] {
            lens.end_s = end_s;
            let query = lens.query(window);
            assert_eq!(query.span.as_deref(), span);
            Question::new(query).unwrap();
        }
    }
}
