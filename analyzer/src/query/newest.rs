//! The newest samples of a span, each for itself.

use crate::history::store::HistoryView;
use crate::query::expression::{Answers, Formula};
use crate::query::field::{At, Notation, Value, ValueType};
use crate::query::grouping::Tally;
use dataspace_proto::query::{KeyValue, QueryRow};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Times of samples, and the chunk and the row of each.
type SampleHeap = BinaryHeap<Reverse<(u64, usize, usize)>>;

/// The newest samples, at most so many.
#[derive(Debug)]
pub(crate) struct Newest {
    max: usize,
    /// Those of the history that is being looked at; the oldest of them is at hand.
    heap: SampleHeap,
    /// The rows of those before, with their times.
    rows: Vec<(u64, QueryRow)>,
}

impl Newest {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, heap: SampleHeap::new(), rows: Vec::new() }
    }

    /// Notes a sample, by its chunk and row.
    pub(crate) fn note(&mut self, time_ns: u64, chunk: usize, row: usize) {
        let is_older = self.heap.peek().is_some_and(|Reverse((oldest, ..))| time_ns < *oldest);
        if self.heap.len() == self.max && is_older {
            return;
        }
        self.heap.push(Reverse((time_ns, chunk, row)));
        if self.heap.len() > self.max {
            self.heap.pop();
        }
    }

    /// Makes rows of what was noted of `view`.
    pub(crate) fn read(
        &mut self,
        view: &HistoryView,
        keys: &[(Formula, ValueType)],
        answers: &mut Answers,
    ) {
        for Reverse((time_ns, chunk, row)) in self.heap.drain() {
            let at = At { view, chunk: &view.kept.chunks[chunk], row };
            self.rows.push((time_ns, of_sample(at, keys, answers)));
        }
        self.rows.sort_by_key(|(time_ns, _)| Reverse(*time_ns));
        self.rows.truncate(self.max);
    }

    /// The rows, newest first.
    pub(crate) fn into_rows(self) -> Vec<QueryRow> {
        self.rows.into_iter().map(|(_, row)| row).collect()
    }
}

/// The row of one sample.
fn of_sample(at: At<'_>, keys: &[(Formula, ValueType)], answers: &mut Answers) -> QueryRow {
    let key = keys.iter().map(|(formula, _)| {
        let is_address = formula.form() == Notation::Hex;
        match formula.value(at, answers) {
            Value::None => KeyValue::None,
            Value::Bool(is_so) => KeyValue::Bool(is_so),
            Value::Number(number) if is_address => KeyValue::Text(format!("{number:#x}")),
            Value::Number(number) => KeyValue::Number(number),
            Value::Text(text) => KeyValue::Text(text.into_owned()),
        }
    });
    let key = key.collect();
    let (mut tally, mut periods) = (Tally::default(), vec![0; at.view.events.len()]);
    tally.count(at);
    if let Some(period) = periods.get_mut(usize::from(at.chunk.event[at.row])) {
        *period = at.chunk.period[at.row];
    }
    QueryRow { key, metrics: tally.metrics(&at.view.events, &periods) }
}
