//! The rows of a history that questions are about, which several questions may share.

use crate::history::store::HistoryView;
use crate::query::expression::{Answers, Formula};
use crate::query::field::At;

/// A span and a filter, and the rows of one chunk that are left.
#[derive(Clone, Debug)]
pub(crate) struct SelectedRows<'a> {
    span_ns: (u64, u64),
    filter: Option<&'a Formula>,
    /// Samples that touch no memory count too.
    has_all: bool,
    answers: Answers,
    pub(crate) reach: Reach,
    /// Numbers of the rows of the chunk that was looked at last.
    pub(crate) rows: Vec<usize>,
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
        Self { span_ns, filter, has_all, answers: Answers::default(), reach, rows: Vec::new() }
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
        self.rows.clear();
        for (row, time_ns) in chunk.times_ns().iter().enumerate() {
            if !(from_ns..to_ns).contains(time_ns) {
                continue;
            }
            self.reach.n_held += 1;
            self.reach.first_ns = self.reach.first_ns.min(*time_ns);
            self.reach.last_ns = self.reach.last_ns.max(*time_ns);
            let at = At { view, chunk, row };
            let passes = |filter: &Formula| filter.truth(at, &mut self.answers) == Some(true);
            if (self.has_all || at.is_memory()) && self.filter.is_none_or(passes) {
                self.rows.push(row);
            }
        }
    }
}
