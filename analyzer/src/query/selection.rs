//! The samples of a history that questions are about: those of a time that a filter keeps.

use crate::history::store::HistoryView;
use crate::query::compile::Compiler;
use crate::query::error::QueryError;
use crate::query::expression::{Answers, Formula};
use crate::query::field::At;
use crate::query::span::Span;
use std::collections::BTreeMap;

/// The samples that count: all, or those that an expression keeps, or those of a time.
#[derive(Clone, Debug, Default)]
pub struct SampleFilter {
    formula: Option<Formula>,
    span_ns: Option<(u64, u64)>,
}

impl SampleFilter {
    /// Reads an expression that is true or false, over the fields of samples and these names of others.
    ///
    /// # Errors
    /// What in it means nothing.
    pub fn new(text: &str, keys: &BTreeMap<String, String>) -> Result<Self, QueryError> {
        Ok(Self { formula: Some(Compiler::new(keys)?.filter(text)?), span_ns: None })
    }

    /// The same within a span, as a question has it, of the time that `view` is of.
    ///
    /// # Errors
    /// That it is no span.
    pub fn within(self, span: &str, view: &HistoryView) -> Result<Self, QueryError> {
        let span_ns = Span::parse(span)?.times_ns(view.first_ns, view.last_ns);
        Ok(Self { span_ns: Some(span_ns), ..self })
    }
}

/// A span and a filter, and the rows of one chunk that are left.
#[derive(Clone, Debug)]
pub(crate) struct SelectedRows<'a> {
    span_ns: (u64, u64),
    filter: Option<&'a Formula>,
    /// Samples that touch no memory count too.
    has_all: bool,
    answers: Answers,
    pub(crate) reach: Reach,
    /// Rows of the span in the chunk that was looked at last, and those of them that count, by their numbers.
    pub(crate) held: Vec<u16>,
    pub(crate) rows: Vec<u16>,
}

/// Samples of a span, whether a filter keeps them or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    pub(crate) n_held: u64,
    first_ns: u64,
    last_ns: u64,
}

impl Reach {
    /// Time between the first and the last of them.
    pub(crate) const fn held_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns)
    }
}

impl<'a> SelectedRows<'a> {
    pub(crate) fn new(span_ns: (u64, u64), filter: Option<&'a Formula>, has_all: bool) -> Self {
        let reach = Reach { n_held: 0, first_ns: u64::MAX, last_ns: 0 };
        let (answers, held, rows) = (Answers::default(), Vec::new(), Vec::new());
        Self { span_ns, filter, has_all, answers, reach, held, rows }
    }

    /// All samples that a filter keeps, whether they touch memory or not.
    pub(crate) fn of_filter(filter: Option<&'a SampleFilter>) -> Self {
        let span_ns = filter.and_then(|filter| filter.span_ns);
        Self::new(
            span_ns.unwrap_or((0, u64::MAX)),
            filter.and_then(|filter| filter.formula.as_ref()),
            true,
        )
    }

    /// Tells whether it keeps the same rows as another.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let all = |it: &Self| (it.span_ns, it.has_all);
        all(self) == all(other) && self.filter == other.filter
    }

    /// Looks at the rows of a chunk.
    pub(crate) fn select(&mut self, view: &HistoryView, chunk: usize) {
        let (from_ns, to_ns) = self.span_ns;
        let chunk = &view.kept.chunks[chunk];
        self.held.clear();
        for (row, time_ns) in chunk.times_ns().iter().enumerate() {
            // The end is not in the span, unless it has none.
            if from_ns <= *time_ns && (*time_ns < to_ns || to_ns == u64::MAX) {
                self.held.push(row as u16);
                self.reach.first_ns = self.reach.first_ns.min(*time_ns);
                self.reach.last_ns = self.reach.last_ns.max(*time_ns);
            }
        }
        self.reach.n_held += self.held.len() as u64;
        self.rows.clone_from(&self.held);
        let of = At { view, chunk, row: 0 };
        if !self.has_all {
            self.rows.retain(|row| of.row(*row).is_memory());
        }
        if let Some(filter) = self.filter {
            filter.narrow(true, of, &mut self.rows, &mut self.answers);
        }
    }
}
