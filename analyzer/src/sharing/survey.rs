//! The survey of a history: which lines threads share, in which way, and who does what there.

use crate::history::store::HistoryView;
use crate::limit;
use crate::query::compile::Compiler;
use crate::query::error::QueryError;
use crate::query::expression::Formula;
use crate::query::field::At;
use crate::query::selection::SelectedRows;
use crate::query::span::Span;
use crate::sharing::meeting::{LEAST_MET, LineAccess, Meeting, meetings};
pub use crate::sharing::part::LinePart;
use crate::sharing::part::PartSums;
use crate::sharing::touch::{LineFinder, LineKey, LineTouch, is_access, row_number};
use dataspace_proto::address::Avma;
use dataspace_proto::query::Query;

/// Sharing of a line by threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// They touch different bytes: each could have a line of its own.
    False,
    /// They touch the same bytes.
    True,
    /// They do not get into each other's way.
    None,
}

impl Sharing {
    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::False => "false",
            Self::True => "true",
            Self::None => "none",
        }
    }
}

/// A cache line of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyedLine {
    /// The process.
    pub pid: i32,
    /// The first of its 64 bytes.
    pub address: Avma,
    /// The verdict: where both kinds of sharing are there, the one with more samples.
    pub sharing: Sharing,
    /// Samples on it.
    pub samples: u64,
    /// Samples that met others which touch other bytes only.
    pub met_apart: u64,
    /// Samples that met others which touch the same bytes.
    pub met_same: u64,
    /// Nanoseconds on a CPU that all of its samples stand for.
    pub time_ns: u64,
    /// The same of those that met others: the sharing cannot cost more of the time that is spent at the line.
    pub at_stake_ns: u64,
    /// The parts of it that threads touch, most samples first.
    pub parts: Vec<LinePart>,
    /// Parts that were too many to tell.
    pub n_parts_left_out: u64,
}

/// The answer of a survey.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SurveyedLines {
    /// Lines, those with most at stake first.
    pub lines: Vec<SurveyedLine>,
    /// Lines that were too many to tell.
    pub n_lines_left_out: u64,
    /// Lines that two threads of a process or more touch.
    pub n_common: u64,
    /// Samples that were taken in the span.
    pub rows_of_span: u64,
    /// Those that the history still has.
    pub rows_held: u64,
    /// Samples on memory among them that the filter kept.
    pub n_memory: u64,
    /// Those whose address is known.
    pub n_addressed: u64,
    /// Samples on lines that were too many to look at.
    pub n_left_out: u64,
    /// Nanoseconds on a CPU that all samples of the span stand for; 0 where no event is a clock.
    pub time_ns: u64,
    /// Places in code whose source lines are not found out.
    pub lines_open: u64,
}

/// A survey that is to be made.
#[derive(Clone, Debug, Default)]
pub struct LineSurvey {
    filter: Option<Formula>,
    span: Span,
    has_all: bool,
}

impl LineSurvey {
    /// A survey of the samples in the span of `query` that its filter keeps; its keys and metrics say nothing. Lines that
    /// nobody shares are told too where it `has_all`.
    ///
    /// # Errors
    /// What in it means nothing.
    pub fn new(query: &Query, has_all: bool) -> Result<Self, QueryError> {
        let mut compiler = Compiler::new(&query.keys)?;
        let filter = query.filter.as_ref().map(|text| compiler.filter(text)).transpose()?;
        let span = query.span.as_ref().map(|text| Span::parse(text)).transpose()?;
        Ok(Self { filter, span: span.unwrap_or_default(), has_all })
    }

    /// The lines of a history.
    #[must_use]
    pub fn of(&self, view: &HistoryView) -> SurveyedLines {
        let mut answer = SurveyedLines::default();
        let touches = self.find(view, &mut answer).finish(self.has_all);
        let mut told: Vec<Judged<'_>> = Vec::new();
        for (key, touches) in touches.by_line() {
            let judged = Judged::new(view, key, touches);
            if self.has_all || judged.sharing != Sharing::None {
                told.push(judged);
            }
            if told.len() >= 2 * limit::MAX_TOLD_LINES {
                answer.n_lines_left_out += shorten(&mut told);
            }
        }
        answer.n_lines_left_out += shorten(&mut told);
        answer.lines = told.iter().map(|it| it.told(view)).collect();
        answer.n_common = touches.n_common;
        answer.n_left_out = touches.n_left_out;
        answer.lines_open = view.n_lines_open + view.n_lines_given_up;
        answer
    }

    /// The samples that count, by lines; the others are counted in `answer`.
    fn find(&self, view: &HistoryView, answer: &mut SurveyedLines) -> LineFinder {
        let span_ns = self.span.times_ns(view.first_ns, view.last_ns);
        let mut selected = SelectedRows::new(span_ns, self.filter.as_ref(), false);
        let mut finder = LineFinder::default();
        for (number, chunk) in view.kept.chunks.iter().enumerate() {
            selected.select(view, number);
            let of = At { view, chunk, row: 0 };
            for row in &selected.held {
                let time_ns = of.row(*row).time_on_cpu_ns();
                answer.time_ns = answer.time_ns.saturating_add(time_ns);
            }
            answer.n_memory += selected.rows.len() as u64;
            for at in selected.rows.iter().map(|row| of.row(*row)) {
                if is_access(at) {
                    answer.n_addressed += 1;
                    finder.add(at, row_number(number, at.row));
                }
            }
        }
        answer.rows_held = selected.reach.n_held;
        answer.rows_of_span = answer.rows_held + self.span.n_not_held(view);
        finder
    }
}

/// Puts lines in order and keeps as many as are told; gives the number of the others.
fn shorten(lines: &mut Vec<Judged<'_>>) -> u64 {
    lines.sort_unstable_by_key(Judged::order);
    let n_more = lines.len().saturating_sub(limit::MAX_TOLD_LINES);
    lines.truncate(limit::MAX_TOLD_LINES);
    n_more as u64
}

/// The meetings of a line's samples.
fn met(view: &HistoryView, (_, line): LineKey, touches: &[LineTouch]) -> Vec<Option<Meeting>> {
    let accesses: Vec<LineAccess> = touches.iter().map(|touch| touch.access(view, line)).collect();
    meetings(&accesses)
}

/// A line whose samples have been looked at.
struct Judged<'a> {
    key: LineKey,
    touches: &'a [LineTouch],
    sharing: Sharing,
    met_apart: u64,
    met_same: u64,
    at_stake_ns: u64,
}

impl<'a> Judged<'a> {
    fn new(view: &HistoryView, key: LineKey, touches: &'a [LineTouch]) -> Self {
        let met = met(view, key, touches);
        let count = |kind| met.iter().filter(|it| **it == Some(kind)).count() as u64;
        let (met_apart, met_same) = (count(Meeting::Apart), count(Meeting::Same));
        let sharing = if met_apart + met_same < LEAST_MET {
            Sharing::None
        } else if met_apart > met_same {
            Sharing::False
        } else {
            Sharing::True
        };
        let at_stake = touches.iter().zip(&met).filter(|(_, met)| met.is_some());
        let at_stake = at_stake.map(|(touch, _)| touch.at(view).time_on_cpu_ns());
        let at_stake_ns = at_stake.fold(0, u64::saturating_add);
        Self { key, touches, sharing, met_apart, met_same, at_stake_ns }
    }

    /// Lines that are shared, then by what is at stake, by samples and by address.
    fn order(&self) -> (bool, u64, u64, usize, LineKey) {
        let n_met = self.met_apart + self.met_same;
        let is_none = self.sharing == Sharing::None;
        let rest = usize::MAX - self.touches.len();
        (is_none, u64::MAX - self.at_stake_ns, u64::MAX - n_met, rest, self.key)
    }

    fn told(&self, view: &HistoryView) -> SurveyedLine {
        let mut sums = PartSums::default();
        for (touch, met) in self.touches.iter().zip(met(view, self.key, self.touches)) {
            sums.count(touch.at(view), met.is_some());
        }
        let mut parts = sums.finish();
        let n_parts_left_out = parts.len().saturating_sub(limit::MAX_LINE_PARTS) as u64;
        let time_ns = parts.iter().map(|part| part.time_ns).fold(0, u64::saturating_add);
        parts.truncate(limit::MAX_LINE_PARTS);
        SurveyedLine {
            pid: self.key.0,
            address: Avma(self.key.1),
            sharing: self.sharing,
            samples: self.touches.len() as u64,
            met_apart: self.met_apart,
            met_same: self.met_same,
            time_ns,
            at_stake_ns: self.at_stake_ns,
            parts,
            n_parts_left_out,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::chunk::{CHUNK_ROWS, Chunk, NONE, Row};
    use crate::history::data_name::{DataName, DataNames};
    use crate::history::store::KeptRows;
    use crate::history::task::Tasks;
    use crate::history::telling::Found;
    use crate::totals::rolling::ObjectIdx;
    use crate::types::scalar_notation::ScalarNotation;
    use dataspace_proto::memory::Access;
    use dataspace_proto::record::Sample;
    use dataspace_proto::sample_line::AddressSource;
    use std::sync::Arc;

    const MS: u64 = 1_000_000;

    /// Threads 7 and 8 of process 7, and thread 9 of process 9.
    const TASKS: [(i32, i32); 3] = [(7, 7), (7, 8), (9, 9)];

    fn view(rows: &[Row]) -> HistoryView {
        let (mut names, mut tasks) = (DataNames::default(), Tasks::default());
        for number in 0..2 {
            let object: Arc<str> = format!("{{long counter{number}}}").into();
            names.number(ObjectIdx(number), None, |_| DataName {
                name: Arc::default(),
                aggregate: Arc::clone(&object),
                object,
                type_name: None,
                member: None,
                variable: None,
                reason: None,
                notation: ScalarNotation::DIGITS,
            });
        }
        for (pid, tid) in TASKS {
            tasks.number(&Sample { pid, tid, ..Sample::default() }, |_| None);
        }
        HistoryView {
            kept: KeptRows {
                chunks: Chunk::of_rows(rows, CHUNK_ROWS),
                names: names.freeze(),
                tasks: tasks.freeze(),
                ..KeptRows::default()
            },
            events: vec!["cpu-clock".to_owned(), "page-faults".to_owned()],
            clocks: vec![true, false],
            last_ns: rows.iter().map(|row| row.time_ns).max().unwrap_or(0),
            ..HistoryView::default()
        }
    }

    /// A sample of a task at an address, of an access of eight bytes that reads and writes.
    fn row(ms: u64, task: u32, addr: u64, size: u16) -> Row {
        Row {
            time_ns: ms * MS,
            period: MS,
            addr,
            name: task % 2,
            offset: NONE,
            index: NONE,
            place: NONE,
            task,
            cpu: NONE,
            size,
            found: Found {
                access: Some(Access::LoadStore),
                address_source: Some(AddressSource::Computed),
                ..Found::default()
            }
            .pack(),
            ..Row::default()
        }
    }

    fn survey(rows: &[Row], has_all: bool) -> SurveyedLines {
        LineSurvey::new(&Query::default(), has_all).unwrap().of(&view(rows))
    }

    /// Two tasks in turns, each at its address.
    fn in_turns(n: u64, [one, other]: [(u32, u64); 2]) -> Vec<Row> {
        let turn = |ms| if ms % 2 == 0 { one } else { other };
        (0..n).map(|ms| row(ms, turn(ms).0, turn(ms).1, 8)).collect()
    }

    #[test]
    fn both_sides_are_told_with_what_they_do_and_what_is_at_stake() {
        let answer = survey(&in_turns(100, [(0, 0x1000), (1, 0x1008)]), false);
        let [line] = &answer.lines[..] else { panic!("{answer:?}") };
        assert_eq!((line.pid, line.address, line.sharing), (7, Avma(0x1000), Sharing::False));
        assert_eq!((line.samples, line.met_apart, line.met_same), (100, 98, 0));
        assert_eq!((line.time_ns, line.at_stake_ns, answer.time_ns), (100 * MS, 98 * MS, 100 * MS));
        let parts: Vec<_> = line.parts.iter().map(|part| (part.tid, part.address.0)).collect();
        assert_eq!(parts, [(7, 0x1000), (8, 0x1008)]);
        for part in &line.parts {
            assert_eq!((part.samples, part.reads, part.writes, part.met), (50, 50, 50, 49));
        }
        assert_eq!((answer.n_common, answer.n_addressed, answer.rows_of_span), (1, 100, 100));
        let answer = survey(&in_turns(100, [(0, 0x1000), (1, 0x1000)]), false);
        assert_eq!(answer.lines[0].sharing, Sharing::True);
    }

    #[test]
    fn lines_of_their_own_and_other_processes_are_not_shared() {
        for apart in [[(0, 0x1000), (1, 0x1040)], [(0, 0x1000), (2, 0x1000)]] {
            let rows = in_turns(100, apart);
            assert_eq!(survey(&rows, false).lines, []);
            let all = survey(&rows, true).lines;
            assert_eq!(all.len(), 2);
            assert!(all.iter().all(|line| line.sharing == Sharing::None && line.samples == 50));
        }
    }

    #[test]
    fn an_access_across_a_border_is_on_both_lines() {
        let rows = in_turns(100, [(0, 0x103c), (1, 0x1040)]);
        let lines = survey(&rows, true).lines;
        let found: Vec<_> =
            lines.iter().map(|line| (line.address.0, line.sharing, line.samples)).collect();
        assert_eq!(found, [(0x1040, Sharing::True, 100), (0x1000, Sharing::None, 50)]);
    }

    #[test]
    fn samples_that_waited_are_in_the_order_of_their_time() {
        let mut rows = in_turns(100, [(0, 0x1000), (1, 0x1008)]);
        // One thread's samples were decided after the other's.
        rows.sort_by_key(|row| row.task);
        assert_eq!(survey(&rows, false).lines[0].met_apart, 98);
    }

    #[test]
    fn what_touches_nothing_or_nowhere_does_not_count() {
        let mut rows = in_turns(100, [(0, 0x1000), (1, 0x1008)]);
        for row in &mut rows[50..] {
            row.found = Found { address_source: None, ..row.found.get() }.pack();
        }
        for row in &mut rows[75..] {
            row.name = NONE;
        }
        // The kernel's half.
        rows.extend(in_turns(100, [(0, 1 << 63), (1, 1 << 63)]));
        let answer = survey(&rows, true);
        assert_eq!((answer.rows_held, answer.n_memory, answer.n_addressed), (200, 175, 50));
        assert_eq!(answer.lines.len(), 1);
        assert_eq!(answer.lines[0].samples, 50);
    }

    #[test]
    fn a_question_narrows_it() {
        let rows = in_turns(100, [(0, 0x1000), (1, 0x1008)]);
        let told = |filter: Option<&str>, span: Option<&str>| {
            let text = |text: Option<&str>| text.map(str::to_owned);
            let query = Query { filter: text(filter), span: text(span), ..Query::default() };
            LineSurvey::new(&query, false).unwrap().of(&view(&rows))
        };
        assert_eq!(told(Some("thread == 7"), None).lines, []);
        let late = told(None, Some("50ms..")).lines;
        assert_eq!(late[0].samples, 50);
        let wrong = Query { filter: Some("thread".to_owned()), ..Query::default() };
        assert!(LineSurvey::new(&wrong, false).is_err());
    }

    #[test]
    fn addresses_at_the_end_of_memory_overflow_nothing() {
        let mut rows = in_turns(20, [(0, u64::MAX - 3), (1, (1 << 47) - 4)]);
        rows.extend(in_turns(20, [(0, 0), (1, 1)]));
        for row in &mut rows {
            row.period = u64::MAX;
            row.size = u16::MAX;
        }
        survey(&rows, true);
        assert_eq!(survey(&[], true).lines, []);
    }
}
