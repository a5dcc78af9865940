//! Spans of time, as they are typed.

use crate::history::store::HistoryView;
use crate::query::error::QueryError;
use dataspace_proto::window::typed_seconds;

const SECOND_NS: u64 = 1_000_000_000;

/// One end of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// So long after the beginning.
    AfterBeginning(u64),
    /// So long before the end.
    BeforeEnd(u64),
}

/// A span; open at a side that is not told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    from: Option<Moment>,
    to: Option<Moment>,
}

impl Span {
    /// Reads `FROM..TO`.
    pub(crate) fn parse(text: &str) -> Result<Self, QueryError> {
        let wrong = || QueryError::Span(text.to_owned());
        let (from, to) = text.split_once("..").ok_or_else(wrong)?;
        let moment = |text: &str| match text.trim() {
            "" => Some(None),
            text => moment(text).map(Some),
        };
        let span =
            Self { from: moment(from).ok_or_else(wrong)?, to: moment(to).ok_or_else(wrong)? };
        let is_backwards = match (span.from, span.to) {
            (Some(Moment::AfterBeginning(from)), Some(Moment::AfterBeginning(to))) => from > to,
            (Some(Moment::BeforeEnd(from)), Some(Moment::BeforeEnd(to))) => from < to,
            _ => false,
        };
        if is_backwards { Err(wrong()) } else { Ok(span) }
    }

    /// The first time of the span and the first after it, of samples from `first_ns` to `last_ns`.
    pub(crate) fn times_ns(self, first_ns: u64, last_ns: u64) -> (u64, u64) {
        let time = |moment| match moment {
            Moment::AfterBeginning(ns) => first_ns.saturating_add(ns),
            Moment::BeforeEnd(ns) => last_ns.saturating_sub(ns),
        };
        (self.from.map_or(0, time), self.to.map_or(u64::MAX, time))
    }

    /// Samples of the span that a history no longer has, or does not have yet.
    pub(crate) fn n_not_held(self, view: &HistoryView) -> u64 {
        let (from_ns, to_ns) = self.times_ns(view.first_ns, view.last_ns);
        // Of what is gone only the second is known.
        let is_of_span = |second: u64| (from_ns / SECOND_NS..=to_ns / SECOND_NS).contains(&second);
        let gone = view.kept.gone.iter().filter(|(second, _)| is_of_span(*second));
        let n_gone: u64 = gone.map(|(_, count)| count).sum();
        n_gone + if self.is_open() { view.n_pending } else { 0 }
    }

    /// Tells whether it reaches to the end.
    const fn is_open(self) -> bool {
        self.to.is_none()
    }
}

/// `-30s`, `5`, `1.5m`, `200ms`.
fn moment(text: &str) -> Option<Moment> {
    let (is_before_end, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let ns = typed_seconds(text).filter(|seconds| *seconds >= 0.0)? * 1e9;
    // Saturates.
    let ns = ns.round() as u64;
    Some(if is_before_end { Moment::BeforeEnd(ns) } else { Moment::AfterBeginning(ns) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_count_from_the_beginning_or_back_from_the_end() {
        let second = 1_000_000_000;
        let times = |text: &str| {
            Span::parse(text).map(|span| span.times_ns(100 * second, 160 * second)).ok()
        };
        assert_eq!(times("-30s..-10s"), Some((130 * second, 150 * second)));
        assert_eq!(times("5..10"), Some((105 * second, 110 * second)));
        assert_eq!(times("..500ms"), Some((0, 100 * second + second / 2)));
        assert_eq!(times("-0.5m.."), Some((130 * second, u64::MAX)));
        assert_eq!(times(".."), Some((0, u64::MAX)));
        for wrong in ["", "5", "5s", "a..b", "10s..5s", "-5s..-10s", "nan..", "1d..", "--1s.."] {
            assert_eq!(times(wrong), None, "{wrong}");
        }
    }
}
