//! Samples summed by their keys.

use crate::limit;
use crate::process::recent::Places;
use crate::query::expression::{Answers, Formula};
use crate::query::field::{At, Column, Field, Notation, Value, ValueType};
use dataspace_proto::memory::{Access, Snoop};
use dataspace_proto::query::{KeyValue, Metric, QueryMetrics, QueryRow};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// Most keys of one question.
pub(crate) const MAX_KEYS: usize = 6;

/// Groups that are remembered: 18 KiB.
const N_RECENT: usize = 256;

/// Sums over samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) samples: u64,
    loads: u64,
    stores: u64,
    latency: u64,
    tlb_misses: u64,
    locked: u64,
    hitm: u64,
    remote: u64,
}

impl Tally {
    pub(crate) fn count(&mut self, at: At<'_>) {
        let told = at.chunk.told[at.row].get();
        let access = at.access();
        self.samples += 1;
        self.loads += u64::from(matches!(access, Some(Access::Load | Access::LoadStore)));
        self.stores += u64::from(matches!(access, Some(Access::Store | Access::LoadStore)));
        self.latency = self.latency.wrapping_add(at.chunk.latency[at.row].into());
        self.tlb_misses += u64::from(told.tlb.is_first_level_miss());
        self.locked += u64::from(told.locked == Some(true));
        self.hitm += u64::from(told.snoop.has(Snoop::HITM));
        self.remote += u64::from(told.is_remote);
    }

    fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        self.loads += other.loads;
        self.stores += other.stores;
        self.latency = self.latency.wrapping_add(other.latency);
        self.tlb_misses += other.tlb_misses;
        self.locked += other.locked;
        self.hitm += other.hitm;
        self.remote += other.remote;
    }

    fn of(self, metric: Metric, periods: &[u64]) -> u64 {
        match metric {
            Metric::Period => periods.iter().fold(0, |sum, period| sum.wrapping_add(*period)),
            // Without names of events nothing is allocated.
            metric => metric.of(&self.metrics(&[], &[])),
        }
    }

    pub(crate) fn metrics(self, events: &[String], periods: &[u64]) -> QueryMetrics {
        let periods = events.iter().zip(periods).filter(|(_, period)| **period != 0);
        QueryMetrics {
            samples: self.samples,
            loads: self.loads,
            stores: self.stores,
            latency: self.latency,
            tlb_misses: self.tlb_misses,
            locked: self.locked,
            hitm: self.hitm,
            remote: self.remote,
            period: periods.map(|(event, period)| (event.clone(), *period)).collect(),
        }
    }
}

/// Samples of the same keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group<'a> {
    /// In the order of first samples.
    pub(crate) number: u32,
    /// The sum that groups are sorted by.
    pub(crate) value: u64,
    key: &'a GroupKey,
}

/// The keys of a sample as numbers.
#[derive(Clone, Copy, Debug, Default, Eq)]
struct GroupKey {
    codes: [u64; MAX_KEYS],
    /// A bit for each key that has no value.
    nones: u8,
}

impl GroupKey {
    /// The number of a key's value, where it has one.
    fn code(&self, idx: usize) -> Option<u64> {
        (self.nones & (1 << idx) == 0).then_some(self.codes[idx])
    }
}

impl PartialEq for GroupKey {
    fn eq(&self, other: &Self) -> bool {
        // Without branches, and without the call of `memcmp` that a comparison of arrays is.
        let codes = self.codes.iter().zip(&other.codes);
        let differences = codes.fold(0, |known, (one, other)| known | (one ^ other));
        differences | u64::from(self.nones ^ other.nones) == 0
    }
}

impl Hash for GroupKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.codes.iter().for_each(|code| state.write_u64(*code));
        state.write_u8(self.nones);
    }
}

/// One key, and how its values become numbers.
#[derive(Clone, Debug)]
struct Key {
    expression: Formula,
    kind: ValueType,
    form: Notation,
    /// The table that it comes from, and the codes of its entries.
    table: Option<(Column, Vec<Option<Code>>)>,
}

/// The number of a value; `None` inside where there is none.
#[derive(Clone, Copy, Debug)]
struct Code(Option<u64>);

/// Samples by their keys.
#[derive(Clone, Debug)]
pub(crate) struct Grouping {
    keys: Vec<Key>,
    texts: Vec<String>,
    of_text: FxHashMap<String, u64>,
    groups: FxHashMap<GroupKey, u32>,
    /// The table that all keys are from, and the groups of its entries, as far as they are known.
    of_entry: Option<(Column, Vec<Option<u32>>)>,
    /// Groups of samples that were counted lately, found again without the map's hash over all keys.
    recent: Places<(GroupKey, u32), N_RECENT>,
    tallies: Vec<Tally>,
    /// Sums of periods of each group by event.
    periods: Vec<u64>,
    n_events: usize,
    /// Samples that would have made one group too many.
    cut: Option<(Tally, Vec<u64>)>,
}

impl Grouping {
    /// No samples yet; of a session with so many events.
    pub(crate) fn new(keys: Vec<(Formula, ValueType)>, n_events: usize) -> Self {
        let keys: Vec<Key> = keys
            .into_iter()
            .map(|(expression, kind)| {
                let table = expression.field().and_then(Field::table);
                let table = table.map(|table| (table, Vec::new()));
                Key { form: expression.form(), expression, kind, table }
            })
            .collect();
        let mut columns = keys.iter().map(|key| key.table.as_ref().map(|(column, _)| *column));
        let first = columns.next().flatten();
        let only = first.filter(|first| columns.all(|column| column == Some(*first)));
        Self {
            of_entry: only.map(|column| (column, Vec::new())),
            keys,
            texts: Vec::new(),
            of_text: FxHashMap::default(),
            groups: FxHashMap::default(),
            recent: Places::default(),
            tallies: Vec::new(),
            periods: Vec::new(),
            n_events,
            cut: None,
        }
    }

    /// Counts a sample.
    pub(crate) fn count(&mut self, at: At<'_>, answers: &mut Answers) {
        let (tally, periods) = match self.group_of(at, answers) {
            Some(group) => {
                let first = group * self.n_events;
                let periods = &mut self.periods[first..first + self.n_events];
                (&mut self.tallies[group], periods)
            }
            None => {
                let (tally, periods) =
                    self.cut.get_or_insert_with(|| (Tally::default(), vec![0; self.n_events]));
                (tally, &mut periods[..])
            }
        };
        tally.count(at);
        if let Some(sum) = periods.get_mut(usize::from(at.chunk.event[at.row])) {
            *sum = sum.wrapping_add(at.chunk.period[at.row]);
        }
    }

    /// The group of a sample. Where all keys are of one table, its number there tells it: over a million rows that takes
    /// half of the time of a look at their values.
    fn group_of(&mut self, at: At<'_>, answers: &mut Answers) -> Option<usize> {
        let entry = self.of_entry.as_ref().map(|(column, _)| at.number(*column) as usize);
        if let (Some((_, groups)), Some(entry)) = (&self.of_entry, entry)
            && let Some(Some(known)) = groups.get(entry)
        {
            return Some(*known as usize);
        }
        let mut key = GroupKey::default();
        for idx in 0..self.keys.len() {
            match self.code(idx, at, answers) {
                Some(code) => key.codes[idx] = code,
                None => key.nones |= 1 << idx,
            }
        }
        let group = self.group(key)?;
        if let (Some((_, groups)), Some(entry)) = (&mut self.of_entry, entry)
            && entry < limit::MAX_KEPT_ANSWERS
        {
            if groups.len() <= entry {
                groups.resize(entry + 1, None);
            }
            groups[entry] = Some(group as u32);
        }
        Some(group)
    }

    fn group(&mut self, key: GroupKey) -> Option<usize> {
        let near =
            key.codes[..self.keys.len()].iter().fold(0u64, |mix, code| mix.rotate_left(7) ^ code);
        if let Some(group) = self.recent.find(near, key, 0) {
            return Some(group as usize);
        }
        let is_full = self.tallies.len() >= limit::MAX_ANSWER_ROWS;
        let group = match self.groups.get(&key) {
            Some(group) => *group,
            None if is_full => return None,
            None => {
                let group = self.tallies.len() as u32;
                self.groups.insert(key, group);
                self.tallies.push(Tally::default());
                self.periods.resize(self.tallies.len() * self.n_events, 0);
                group
            }
        };
        self.recent.keep(near, key, 0, group);
        Some(group as usize)
    }

    fn code(&mut self, idx: usize, at: At<'_>, answers: &mut Answers) -> Option<u64> {
        let key = &self.keys[idx];
        let number = key.table.as_ref().map(|(table, _)| at.number(*table) as usize);
        if let (Some((_, codes)), Some(number)) = (&key.table, number)
            && let Some(Some(Code(known))) = codes.get(number)
        {
            return *known;
        }
        if key.kind == ValueType::Number && number.is_none() {
            return key.expression.number(at, answers).map(|number| number as u64);
        }
        let value = key.expression.value(at, answers);
        let code = match value {
            Value::None => None,
            Value::Bool(is_so) => Some(u64::from(is_so)),
            Value::Number(number) => Some(number as u64),
            Value::Text(text) => Some(match self.of_text.get(&*text) {
                Some(known) => *known,
                None => {
                    let code = self.texts.len() as u64;
                    self.texts.push(text.clone().into_owned());
                    self.of_text.insert(text.into_owned(), code);
                    code
                }
            }),
        };
        if let (Some((_, codes)), Some(number)) = (&mut self.keys[idx].table, number)
            && number < limit::MAX_KEPT_ANSWERS
        {
            if codes.len() <= number {
                codes.resize(number + 1, None);
            }
            codes[number] = Some(Code(code));
        }
        code
    }

    /// Sums over all samples.
    pub(crate) fn total(&self, events: &[String]) -> QueryMetrics {
        let (mut total, mut total_periods) = self.cut.clone().unwrap_or_default();
        total_periods.resize(self.n_events, 0);
        self.tallies.iter().for_each(|tally| total.add(tally));
        for (idx, period) in self.periods.iter().enumerate() {
            let sum = &mut total_periods[idx % self.n_events];
            *sum = sum.wrapping_add(*period);
        }
        total.metrics(events, &total_periods)
    }

    /// Tells whether samples are in no row.
    pub(crate) const fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// Each group, with its sum of `metric`.
    pub(crate) fn groups(&self, metric: Metric) -> impl Iterator<Item = Group<'_>> {
        self.groups.iter().map(move |(key, &number)| {
            let value = self.tallies[number as usize].of(metric, self.periods(number));
            Group { number, value, key }
        })
    }

    fn periods(&self, number: u32) -> &[u64] {
        let first = number as usize * self.n_events;
        &self.periods[first..first + self.n_events]
    }

    /// The order of two groups by the values of their keys; what has none comes first.
    pub(crate) fn order(&self, one: &Group<'_>, other: &Group<'_>) -> Ordering {
        let of_key = |(idx, key): (usize, &Key)| {
            let (one, other) = (one.key.code(idx), other.key.code(idx));
            match (key.kind, key.form) {
                (ValueType::Text, _) => {
                    let text = |code: Option<u64>| self.texts.get(code? as usize);
                    text(one).cmp(&text(other))
                }
                (ValueType::Number, Notation::Plain) => {
                    one.map(|code| code as i64).cmp(&other.map(|code| code as i64))
                }
                _ => one.cmp(&other),
            }
        };
        let mut orders = self.keys.iter().enumerate().map(of_key);
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// A group as it is told.
    pub(crate) fn row(&self, group: &Group<'_>, events: &[String]) -> QueryRow {
        let values = self.keys.iter().enumerate().map(|(idx, own)| {
            group.key.code(idx).map_or(KeyValue::None, |code| self.shown(own, code))
        });
        let tally = self.tallies[group.number as usize];
        let metrics = tally.metrics(events, self.periods(group.number));
        QueryRow { key: values.collect(), metrics }
    }

    fn shown(&self, key: &Key, code: u64) -> KeyValue {
        match (key.kind, key.form) {
            (ValueType::None, _) => KeyValue::None,
            (ValueType::Bool, _) => KeyValue::Bool(code != 0),
            (ValueType::Number, Notation::Hex) => KeyValue::Text(format!("{code:#x}")),
            (ValueType::Number, Notation::Plain) => KeyValue::Number(code as i64),
            (ValueType::Text, _) => {
                KeyValue::Text(self.texts.get(code as usize).cloned().unwrap_or_default())
            }
        }
    }
}
