//! A question over a history, and its answer.

use crate::history::store::HistoryView;
use crate::limit;
use crate::query::compile::Compiler;
use crate::query::error::QueryError;
use crate::query::expression::{Answers, Formula};
use crate::query::field::{At, Field, Notation, ValueType};
use crate::query::grouping::{Group, Grouping, MAX_KEYS};
use crate::query::newest::Newest;
use crate::query::selection::SelectedRows;
use crate::query::span::Span;
use dataspace_proto::query::{ANSWER_SCHEMA, KeyValue, Metric, Query, QueryAnswer, QueryRow};
use rustc_hash::FxHashMap;

/// Most keys of a question for samples that are not summed.
const MAX_SAMPLE_KEYS: usize = 16;

/// A question that means something.
#[derive(Clone, Debug)]
pub struct Inquiry {
    by: Vec<String>,
    keys: Vec<(Formula, ValueType)>,
    filter: Option<Formula>,
    /// The metrics that are to be shown, at least one where rows are sums.
    pub metrics: Vec<Metric>,
    sort: Metric,
    span: Span,
    limit: usize,
    /// Samples, the newest so many, each a row of its own.
    newest: Option<usize>,
    /// Addresses are told as ordinals.
    is_confined: bool,
}

impl Inquiry {
    /// Reads a question.
    ///
    /// # Errors
    /// What in it means nothing, with the column of an expression.
    pub fn new(query: &Query) -> Result<Self, QueryError> {
        let by = if query.by.is_empty() { vec!["object".to_owned()] } else { query.by.clone() };
        let max = if query.newest.is_some() { MAX_SAMPLE_KEYS } else { MAX_KEYS };
        if by.len() > max {
            return Err(QueryError::Keys { max });
        }
        let mut compiler = Compiler::new(&query.keys)?;
        let mut keys = Vec::new();
        for key in &by {
            keys.push(match compiler.named(key.trim()) {
                Some(known) => known,
                None => compiler.expression(key)?,
            });
        }
        let filter = query.filter.as_ref().map(|text| compiler.filter(text)).transpose()?;
        let metric = |name: &String| {
            Metric::named(name.trim()).ok_or_else(|| QueryError::Metric(name.clone()))
        };
        let mut metrics: Vec<Metric> =
            query.metrics.iter().map(metric).collect::<Result<_, _>>()?;
        if metrics.is_empty() && query.newest.is_none() {
            metrics = vec![Metric::Samples, Metric::Share, Metric::Loads, Metric::Stores];
        }
        let sort = query.sort.as_ref().map(metric).transpose()?;
        let span = query.span.as_ref().map(|text| Span::parse(text)).transpose()?;
        Ok(Self {
            by: by.iter().map(|key| key.trim().to_owned()).collect(),
            keys,
            filter,
            sort: sort.or(metrics.first().copied()).unwrap_or(Metric::Samples),
            metrics,
            span: span.unwrap_or_default(),
            limit: query.limit.unwrap_or(usize::MAX),
            newest: query.newest,
            is_confined: false,
        })
    }

    /// Its keys and its filter.
    fn formulas(&self) -> impl Iterator<Item = &Formula> {
        self.keys.iter().map(|(key, _)| key).chain(&self.filter)
    }

    /// Has at most `max_rows` rows in its answer.
    pub fn bound(&mut self, max_rows: usize) {
        self.limit = self.limit.min(max_rows);
    }

    /// Has addresses told as ordinals.
    ///
    /// # Errors
    /// Where an expression speaks of addresses: it could find one out.
    pub fn confine(&mut self) -> Result<(), QueryError> {
        // A filter is true or false, and so no address by itself.
        let is_address = |field: &&Field| field.form() == Notation::Hex;
        let tells = |formula: &Formula| {
            let is_made = !matches!(formula, Formula::Field(_));
            is_made && Field::ALL.iter().filter(is_address).any(|field| formula.has(*field))
        };
        if self.formulas().any(tells) {
            return Err(QueryError::Addresses);
        }
        self.is_confined = true;
        Ok(())
    }

    /// Tells whether it speaks of source lines, which have to be found out first.
    #[must_use]
    pub fn has_lines(&self) -> bool {
        const FOUND_OUT: [Field; 4] =
            [Field::Line, Field::Inlined, Field::Caller, Field::CallerLine];
        self.formulas().any(|it| FOUND_OUT.iter().any(|field| it.has(*field)))
    }

    /// Tells whether it speaks of reasons.
    #[must_use]
    pub fn has_reasons(&self) -> bool {
        self.formulas().any(|it| it.has(Field::Reason))
    }

    /// The answer that a history gives.
    #[must_use]
    pub fn answer(&self, view: &HistoryView) -> QueryAnswer {
        let mut reckoning = self.reckoning(view);
        reckoning.add(view);
        reckoning.answer(view)
    }

    /// The answers that a history gives to several: those that keep the same samples share one look at all of them.
    #[must_use]
    pub fn answer_together(inquiries: &[&Self], view: &HistoryView) -> Vec<QueryAnswer> {
        let mut reckonings: Vec<Reckoning<'_>> =
            inquiries.iter().map(|inquiry| inquiry.reckoning(view)).collect();
        let Some((first, others)) = reckonings.split_first_mut() else { return Vec::new() };
        for chunk in 0..view.kept.chunks.len() {
            first.add_chunk(view, chunk);
            for other in &mut *others {
                match other.selected.is_same(&first.selected) {
                    true => other.count(view, chunk, &first.selected.rows),
                    false => other.add_chunk(view, chunk),
                }
            }
        }
        for other in &mut *others {
            if other.selected.is_same(&first.selected) {
                other.selected.reach = first.selected.reach;
            }
        }
        reckonings.iter_mut().for_each(|reckoning| reckoning.read_newest(view));
        reckonings.into_iter().map(|reckoning| reckoning.answer(view)).collect()
    }

    /// An answer to which no samples have been added yet; `view`, which has all events, tells where the session begins and
    /// ends.
    #[must_use]
    pub fn reckoning(&self, view: &HistoryView) -> Reckoning<'_> {
        // Samples that touch no memory count where the question speaks of that.
        let has_all = self.formulas().any(|it| it.has(Field::Memory));
        let span_ns = self.span.times_ns(view.first_ns, view.last_ns);
        let max = |newest: usize| newest.clamp(1, limit::MAX_ANSWER_ROWS).min(self.limit);
        // Where rows are not sums, there is but one sum.
        let keys = if self.newest.is_some() { Vec::new() } else { self.keys.clone() };
        Reckoning {
            inquiry: self,
            selected: SelectedRows::new(span_ns, self.filter.as_ref(), has_all),
            newest: self.newest.map(|newest| Newest::new(max(newest))),
            grouping: Grouping::new(keys, view.events.len()),
            answers: Answers::default(),
        }
    }

    /// The rows in order, as many as were asked for, and whether there are more.
    fn rows(&self, grouping: &Grouping, events: &[String]) -> (Vec<QueryRow>, bool) {
        let mut groups: Vec<Group<'_>> = grouping.groups(self.sort).collect();
        let order = |one: &Group<'_>, other: &Group<'_>| {
            other.value.cmp(&one.value).then_with(|| match self.is_confined {
                // The order of addresses tells of them.
                true => one.number.cmp(&other.number),
                false => grouping.order(one, other),
            })
        };
        let truncated = grouping.is_cut() || groups.len() > self.limit;
        if groups.len() > self.limit {
            // Nearly all of a million instances are left out, and need neither an order nor a text.
            groups.select_nth_unstable_by(self.limit, order);
            groups.truncate(self.limit);
        }
        groups.sort_unstable_by(order);
        (groups.iter().map(|group| grouping.row(group, events)).collect(), truncated)
    }

    /// Puts ordinals in the place of addresses, in the order of the rows.
    fn hide_addresses(&self, rows: &mut [QueryRow]) {
        for (idx, (key, _)) in self.keys.iter().enumerate() {
            if key.form() != Notation::Hex {
                continue;
            }
            let mut ordinals: FxHashMap<String, i64> = FxHashMap::default();
            for row in &mut *rows {
                if let KeyValue::Text(address) = &row.key[idx] {
                    let next = ordinals.len() as i64 + 1;
                    let ordinal = *ordinals.entry(address.clone()).or_insert(next);
                    row.key[idx] = KeyValue::Number(ordinal);
                }
            }
        }
    }
}

/// An answer while samples are added to it.
#[derive(Debug)]
pub struct Reckoning<'a> {
    inquiry: &'a Inquiry,
    selected: SelectedRows<'a>,
    grouping: Grouping,
    newest: Option<Newest>,
    answers: Answers,
}

impl Reckoning<'_> {
    /// Adds all samples that a history holds. Where several are added, their names, places and tasks have the same
    /// numbers: they are of one session.
    pub fn add(&mut self, view: &HistoryView) {
        for chunk in 0..view.kept.chunks.len() {
            self.add_chunk(view, chunk);
        }
        self.read_newest(view);
    }

    fn add_chunk(&mut self, view: &HistoryView, chunk: usize) {
        self.selected.select(view, chunk);
        let rows = std::mem::take(&mut self.selected.rows);
        self.count(view, chunk, &rows);
        self.selected.rows = rows;
    }

    /// Counts rows of a chunk.
    fn count(&mut self, view: &HistoryView, number: usize, rows: &[u16]) {
        let chunk = &view.kept.chunks[number];
        let of = At { view, chunk, row: 0 };
        rows.iter().for_each(|row| self.grouping.count(of.row(*row), &mut self.answers));
        if let Some(newest) = &mut self.newest {
            for row in rows.iter().map(|row| usize::from(*row)) {
                newest.note(chunk.times_ns()[row], number, row);
            }
        }
    }

    fn read_newest(&mut self, view: &HistoryView) {
        if let Some(newest) = &mut self.newest {
            newest.read(view, &self.inquiry.keys, &mut self.answers);
        }
    }

    /// The answer as far as samples were added; `view` tells how many more there were.
    #[must_use]
    pub fn answer(self, view: &HistoryView) -> QueryAnswer {
        let Self { inquiry, grouping, newest, selected, .. } = self;
        let n_held = selected.reach.n_held;
        let n_lines_open = view.n_lines_open + view.n_lines_given_up;
        let total = grouping.total(&view.events);
        let (mut rows, truncated) = match newest {
            Some(newest) => {
                let rows = newest.into_rows();
                let truncated = total.samples > rows.len() as u64;
                (rows, truncated)
            }
            None => inquiry.rows(&grouping, &view.events),
        };
        if inquiry.is_confined {
            inquiry.hide_addresses(&mut rows);
        }
        QueryAnswer {
            schema: ANSWER_SCHEMA,
            by: inquiry.by.clone(),
            rows_of_span: n_held + inquiry.span.n_not_held(view),
            rows_held: n_held,
            held_ns: selected.reach.held_ns(),
            lines_open: if inquiry.has_lines() { n_lines_open } else { 0 },
            total,
            truncated,
            rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::chunk::{Chunk, NONE, Row};
    use crate::history::data_name::{DataName, DataNames};
    use crate::history::store::KeptRows;
    use crate::history::task::Tasks;
    use crate::history::telling::{Found, PackedTold};
    use crate::query::field::Value;
    use crate::totals::rolling::ObjectIdx;
    use crate::types::scalar_notation::ScalarNotation;
    use dataspace_proto::memory::Access;
    use dataspace_proto::query::QueryMetrics;
    use dataspace_proto::record::{Comm, Sample};
    use dataspace_proto::sample_line::AddressSource;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    const N_NAMES: u32 = 4;

    /// A history of these rows, with four objects and two threads.
    fn view(rows: &[Row]) -> HistoryView {
        let (mut names, mut tasks) = (DataNames::default(), Tasks::default());
        for number in 0..N_NAMES {
            let text = |what: &str| -> Arc<str> { format!("{what}{number}").into() };
            names.number(ObjectIdx(number), None, |_| DataName {
                object: text("object"),
                name: text("name"),
                aggregate: "aggregate".into(),
                type_name: (number != 0).then(|| text("type")),
                member: None,
                variable: None,
                reason: None,
                notation: ScalarNotation::DIGITS,
            });
        }
        for tid in [7, 8] {
            let name = format!("thread{tid}").into_bytes().into();
            tasks.comm(&Comm { pid: 7, tid, name, ..Comm::default() });
            tasks.number(&Sample { pid: 7, tid, ..Sample::default() }, |_| None);
        }
        HistoryView {
            kept: KeptRows {
                chunks: Chunk::of_rows(rows, 100),
                names: names.freeze(),
                tasks: tasks.freeze(),
                ..KeptRows::default()
            },
            events: vec!["cpu-clock".to_owned(), "page-faults".to_owned()],
            first_ns: rows.iter().map(|row| row.time_ns).min().unwrap_or(0),
            last_ns: rows.iter().map(|row| row.time_ns).max().unwrap_or(0),
            ..HistoryView::default()
        }
    }

    fn row() -> impl Strategy<Value = Row> {
        let name = prop_oneof![0..N_NAMES, Just(NONE)];
        let access = prop_oneof![
            Just(None),
            Just(Some(Access::Load)),
            Just(Some(Access::Store)),
            Just(Some(Access::LoadStore))
        ];
        let small = prop_oneof![Just(NONE), 0..5u32];
        let address = prop_oneof![Just(0u64), 0x1000..0x3000u64, Just(u64::MAX)];
        (0..3_000u64, name, access, small, address, 0..2u32, 0..2u16, 0..300u32).prop_map(
            |(ms, name, access, small, addr, task, event, latency)| Row {
                time_ns: ms * 1_000_000,
                period: ms,
                addr,
                name,
                offset: small,
                index: small,
                place: NONE,
                caller: NONE,
                task,
                cpu: small,
                latency,
                event,
                size: 8,
                told: PackedTold::default(),
                found: Found {
                    access,
                    address_source: (addr != 0).then_some(AddressSource::Sampled),
                    ..Found::default()
                }
                .pack(),
            },
        )
    }

    /// Filters, with what they say in Rust.
    type Filter = (&'static str, fn(At<'_>) -> bool);

    fn filters() -> Vec<Filter> {
        fn is(at: At<'_>, field: Field, text: &str) -> bool {
            at.value(field) == Value::Text(text.into())
        }
        fn number(at: At<'_>, field: Field) -> Option<i64> {
            match at.value(field) {
                Value::Number(number) => Some(number),
                _ => None,
            }
        }
        vec![
            ("memory || !memory", |_| true),
            ("object == 'object1'", |at| is(at, Field::Object, "object1")),
            ("type != 'type1'", |at| {
                at.value(Field::Type) != Value::None && !is(at, Field::Type, "type1")
            }),
            ("type == null", |at| at.is_memory() && at.value(Field::Type) == Value::None),
            ("access == 'store' || object == 'object2'", |at| {
                at.is_memory()
                    && (is(at, Field::Access, "store") || is(at, Field::Object, "object2"))
            }),
            ("cpu % 2 == 1 && comm.endsWith('8')", |at| {
                at.is_memory()
                    && number(at, Field::Cpu).is_some_and(|cpu| cpu % 2 == 1)
                    && is(at, Field::Comm, "thread8")
            }),
            ("!(cpu % 2 == 1 && comm.endsWith('8'))", |at| {
                let is_odd = number(at, Field::Cpu).map(|cpu| cpu % 2 == 1);
                at.is_memory() && (!is(at, Field::Comm, "thread8") || is_odd == Some(false))
            }),
            ("!(cpu > 1 || latency < 100)", |at| {
                let is_high = number(at, Field::Cpu).map(|cpu| cpu > 1);
                let is_short = number(at, Field::Latency).map(|cycles| cycles < 100);
                at.is_memory() && (is_high, is_short) == (Some(false), Some(false))
            }),
            ("address / 4096 == 1 || -address % 64 > 0 && !(type == 'type2')", |at| {
                let Some(address) = number(at, Field::Address) else { return false };
                let is_other =
                    at.value(Field::Type) != Value::None && !is(at, Field::Type, "type2");
                at.is_memory() && (address / 4096 == 1 || -address % 64 > 0 && is_other)
            }),
            ("10 / cpu > 2", |at| {
                at.is_memory() && number(at, Field::Cpu).is_some_and(|cpu| (1..=3).contains(&cpu))
            }),
            ("latency_bucket == '64..127'", |at| {
                at.is_memory() && (64..128).contains(&at.chunk.latency[at.row])
            }),
        ]
    }

    proptest! {
        /// Each sample that a filter keeps is in one row and in the total, whatever the keys.
        #[test]
        fn rows_sum_to_the_total_and_the_total_is_what_the_filter_keeps(
            rows in proptest::collection::vec(row(), 0..400),
            keys in proptest::sample::subsequence(Field::ALL.to_vec(), 1..4),
            filter in proptest::sample::select(filters()),
            from_ms in 0..1_500u64,
        ) {
            let view = view(&rows);
            let by = keys.iter().filter(|key| **key != Field::Memory);
            let by: Vec<String> = by.map(|key| key.name().to_owned()).collect();
            prop_assume!(!by.is_empty());
            let (text, is_kept) = filter;
            let query = Query {
                by,
                filter: Some(text.to_owned()),
                span: Some(format!("{from_ms}ms..")),
                ..Query::default()
            };
            let inquiry = Inquiry::new(&query).unwrap();
            let answer = inquiry.answer(&view);
            // The same of parts, as a recording that does not fit is read.
            let mut reckoning = inquiry.reckoning(&view.outline());
            for chunk in &view.kept.chunks {
                let kept = KeptRows { chunks: vec![Arc::clone(chunk)], ..view.kept.clone() };
                reckoning.add(&HistoryView { kept, ..view.clone() });
            }
            prop_assert_eq!(&reckoning.answer(&view), &answer);
            let from_ns = view.first_ns + from_ms * 1_000_000;
            let (mut n_held, mut expected) = (0, QueryMetrics::default());
            let mut groups: BTreeMap<Vec<String>, u64> = BTreeMap::new();
            for chunk in &view.kept.chunks {
                for row in 0..chunk.len() {
                    let at = At { view: &view, chunk, row };
                    if chunk.time_ns[row] < from_ns {
                        continue;
                    }
                    n_held += 1;
                    if is_kept(at) {
                        expected.samples += 1;
                        expected.latency += u64::from(chunk.latency[row]);
                        let event = view.events[usize::from(chunk.event[row])].clone();
                        *expected.period.entry(event).or_default() += chunk.period[row];
                        let values = query.by.iter().map(|key| Field::named(key).unwrap());
                        let key = values.map(|field| format!("{:?}", at.value(field))).collect();
                        *groups.entry(key).or_default() += 1;
                    }
                }
            }
            prop_assert_eq!((answer.rows_of_span, answer.rows_held), (n_held, n_held));
            prop_assert_eq!(answer.total.samples, expected.samples, "{}", text);
            prop_assert_eq!(answer.total.latency, expected.latency);
            prop_assert_eq!(&answer.total.period.values().sum::<u64>(), &expected.period.values().sum::<u64>());
            let mut counts: Vec<u64> = answer.rows.iter().map(|row| row.metrics.samples).collect();
            prop_assert!(counts.is_sorted_by(|one, other| one >= other));
            let mut expected: Vec<u64> = groups.into_values().collect();
            counts.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(counts, expected);
            for metric in [Metric::Loads, Metric::Stores, Metric::Latency, Metric::Period] {
                let sum: u64 = answer.rows.iter().map(|row| metric.of(&row.metrics)).sum();
                prop_assert_eq!(sum, metric.of(&answer.total));
            }
        }
    }

    #[test]
    fn questions_that_are_asked_together_are_answered_as_each_for_itself() {
        let name = |idx| if idx % 7 == 0 { NONE } else { idx % N_NAMES };
        let row = |idx: u32| Row {
            time_ns: u64::from(idx) * 100_000_000,
            name: name(idx),
            task: idx % 2,
            ..Row::default()
        };
        let rows: Vec<Row> = (0..250).map(row).collect();
        let query = |by: &str, filter: Option<&str>, span: Option<&str>| Query {
            by: vec![by.to_owned()],
            filter: filter.map(str::to_owned),
            span: span.map(str::to_owned),
            ..Query::default()
        };
        let filter = Some("object == \"object1\"");
        let newest = Query { newest: Some(4), ..query("time", filter, None) };
        let queries = [
            query("thread", filter, None),
            query("object", filter, None),
            newest,
            query("second % 3", filter, None),
            query("object", None, None),
            query("memory", None, None),
            query("thread", filter, Some("3s..9s")),
        ];
        let view = view(&rows);
        let inquiries = queries.map(|query| Inquiry::new(&query).unwrap());
        let apart: Vec<QueryAnswer> = inquiries.iter().map(|it| it.answer(&view)).collect();
        let all: Vec<&Inquiry> = inquiries.iter().collect();
        assert_eq!(Inquiry::answer_together(&all, &view), apart);
        assert_eq!(apart[0].rows_held, 250);
        assert_eq!(Inquiry::answer_together(&[], &view), []);
    }

    #[test]
    fn rows_that_are_cut_off_count_in_the_total() {
        let rows: Vec<Row> = (0..50).map(|idx| Row { name: idx % 3, ..Row::default() }).collect();
        let query = Query { by: vec!["object".to_owned()], limit: Some(1), ..Query::default() };
        let answer = Inquiry::new(&query).unwrap().answer(&view(&rows));
        assert_eq!((answer.total.samples, answer.rows.len(), answer.truncated), (50, 1, true));
        assert_eq!(answer.rows[0].key, [KeyValue::Text("object0".to_owned())]);
        assert_eq!(answer.rows[0].metrics.samples, 17);
    }

    #[test]
    fn the_newest_samples_are_rows_of_their_own_and_the_sum_is_of_all() {
        // Decided late, some come after younger ones.
        let row =
            |idx: u64| Row { time_ns: 1000 + (idx * 37) % 301, period: idx, ..Row::default() };
        let rows: Vec<Row> = (0..301).map(row).collect();
        let by = vec!["time".to_owned(), "object".to_owned()];
        let query = Query { by, newest: Some(3), ..Query::default() };
        let inquiry = Inquiry::new(&query).unwrap();
        let newest = [300, 299, 298].map(KeyValue::Number);
        let keys = |answer: &QueryAnswer| -> Vec<KeyValue> {
            answer.rows.iter().map(|row| row.key[0].clone()).collect()
        };
        let answer = inquiry.answer(&view(&rows));
        assert_eq!(keys(&answer), newest);
        assert_eq!((answer.total.samples, answer.truncated), (301, true));
        assert_eq!(answer.rows[0].metrics.samples, 1);
        assert_eq!(answer.total.period["cpu-clock"], 300 * 301 / 2);
        // The same, asked of one part after the other.
        let whole = view(&rows);
        let mut reckoning = inquiry.reckoning(&whole);
        rows.chunks(90).for_each(|rows| reckoning.add(&view(rows)));
        assert_eq!(reckoning.answer(&whole).rows.len(), 3);
        let mut bound = inquiry.clone();
        bound.bound(2);
        assert_eq!(keys(&bound.answer(&whole)), newest[..2]);
    }

    #[test]
    fn rows_of_one_sum_are_in_the_order_of_their_keys() {
        let found = Found { address_source: Some(AddressSource::Sampled), ..Found::default() };
        let found = found.pack();
        let addr = |idx: u32| [0, 0x2000, 0x200, 0x20][idx as usize % 4];
        let row = |idx| Row { addr: addr(idx), found, ..Row::default() };
        let rows: Vec<Row> = (0..400).map(row).collect();
        let keys = |limit: Option<usize>| -> Vec<KeyValue> {
            let query = Query { by: vec!["address".to_owned()], limit, ..Query::default() };
            let answer = Inquiry::new(&query).unwrap().answer(&view(&rows));
            answer.rows.into_iter().map(|row| row.key[0].clone()).collect()
        };
        let expected = ["0x0", "0x20", "0x200", "0x2000"].map(|text| KeyValue::Text(text.into()));
        assert_eq!(keys(None), expected);
        for limit in 0..4 {
            assert_eq!(keys(Some(limit)), expected[..limit]);
        }
    }

    #[test]
    fn who_may_not_see_all_gets_ordinals_and_no_way_to_ask_for_addresses() {
        let addr = |idx: u32| 0x1000 + 8 * u64::from(idx % 3);
        let found = Found { address_source: Some(AddressSource::Sampled), ..Found::default() };
        let found = found.pack();
        let row = |idx| Row { addr: addr(idx), offset: 0, found, ..Row::default() };
        let rows: Vec<Row> = (0..50).map(row).collect();
        let asked = |by: &str, filter: Option<&str>| {
            let (by, filter) = (vec![by.to_owned()], filter.map(str::to_owned));
            let mut inquiry = Inquiry::new(&Query { by, filter, ..Query::default() }).unwrap();
            inquiry.bound(2);
            inquiry.confine()?;
            Ok(inquiry.answer(&view(&rows)))
        };
        for key in ["address", "addr", "instance"] {
            let answer = asked(key, None).unwrap();
            let keys: Vec<_> = answer.rows.iter().map(|row| row.key[0].clone()).collect();
            assert_eq!(keys, [KeyValue::Number(1), KeyValue::Number(2)], "{key}");
            assert_eq!((answer.total.samples, answer.truncated), (50, true));
        }
        let told = [
            ("address / 4096", None),
            ("object", Some("address > 5")),
            ("object", Some("instance % 2 == 0 || page == 1")),
        ];
        for (by, filter) in told {
            assert_eq!(asked(by, filter), Err(QueryError::Addresses), "{by} {filter:?}");
        }
        assert!(asked("alignment", Some("offset == 0")).is_ok());
    }

    #[test]
    fn samples_that_touch_no_memory_count_where_the_question_speaks_of_it() {
        let name = |idx| if idx % 5 == 0 { NONE } else { 0 };
        let rows: Vec<Row> = (0..50).map(|idx| Row { name: name(idx), ..Row::default() }).collect();
        let total = |by: &str, filter: Option<&str>| {
            let filter = filter.map(str::to_owned);
            let query = Query { by: vec![by.to_owned()], filter, ..Query::default() };
            Inquiry::new(&query).unwrap().answer(&view(&rows)).total.samples
        };
        assert_eq!(total("object", None), 40);
        assert_eq!(total("memory", None), 50);
        assert_eq!(total("object", Some("memory == false")), 10);
    }
}
