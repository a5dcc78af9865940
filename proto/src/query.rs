//! Questions to a session's history, and their answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Rises when the meaning of a field of an answer changes.
pub const ANSWER_SCHEMA: u32 = 1;

/// A question: the samples of a span that a filter keeps, summed by keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// Keys, or expressions over a sample's fields, such as `thread` and `address / 2097152`; none: `object`.
    #[serde(default)]
    pub by: Vec<String>,
    /// An expression that is true for the samples that count: `function == "main" && access == "store"`.
    #[serde(rename = "where", default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Names of metrics that a table or CSV shows; the JSON has all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<String>,
    /// The metric that puts the rows in order, most first; else the first of `metrics`, else samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<String>,
    /// The span: `-30s..-10s` before the end, `5s..10s` after the beginning, either side may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<String>,
    /// Most rows in the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// So many of the newest samples that the filter keeps, newest first, each a row of its own, in the place of sums; of
    /// up to 16 keys; `sort` means nothing then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<usize>,
    /// Names for expressions, which may then be used as keys are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<String, String>,
}

impl Query {
    /// The same with those of `keys` that it speaks of, by way of others too. Its own come first where both have a name.
    #[must_use]
    pub fn with_keys(mut self, mut keys: BTreeMap<String, String>) -> Self {
        let own = self.keys.values();
        let mut open: Vec<String> =
            self.by.iter().chain(&self.filter).chain(own).cloned().collect();
        while let Some(text) = open.pop() {
            let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            for word in text.split(|c| !is_of_word(c)) {
                if !self.keys.contains_key(word)
                    && let Some((name, expression)) = keys.remove_entry(word)
                {
                    open.push(expression.clone());
                    self.keys.insert(name, expression);
                }
            }
        }
        self
    }
}

/// The answer to a question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueryAnswer {
    /// Version of the format: it rises when the meaning of a field changes.
    #[schemars(extend("const" = ANSWER_SCHEMA))]
    pub schema: u32,
    /// The keys, as they were asked for.
    pub by: Vec<String>,
    /// Samples that were taken in the span.
    pub rows_of_span: u64,
    /// Those that the history still has.
    pub rows_held: u64,
    /// Time between the first and the last sample that the history still has of the span.
    pub held_ns: u64,
    /// Places in code whose source lines are not found out, where lines were asked for: they have none here.
    #[serde(default, skip_serializing_if = "crate::accounting::is_zero")]
    pub lines_open: u64,
    /// Sums over all samples that the filter kept, whether they are in a row below or were cut off.
    pub total: QueryMetrics,
    /// True where rows were cut off at the limit.
    pub truncated: bool,
    /// The rows: each sample is in one of them, or in one that was cut off.
    pub rows: Vec<QueryRow>,
}

/// The samples that have the same keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueryRow {
    /// The value of each key; `null` where the samples have none.
    pub key: Vec<KeyValue>,
    /// Their sums.
    pub metrics: QueryMetrics,
}

/// Value of a key.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(untagged)]
pub enum KeyValue {
    /// The samples have none.
    #[default]
    None,
    /// A truth value.
    Bool(bool),
    /// A number.
    Number(i64),
    /// A text; addresses are `"0x…"`.
    Text(String),
}

/// Sums over samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueryMetrics {
    /// Samples.
    pub samples: u64,
    /// Samples whose trigger reads memory.
    pub loads: u64,
    /// Samples whose trigger writes memory.
    pub stores: u64,
    /// Sum of latencies in core cycles.
    pub latency: u64,
    /// Samples whose access missed the first-level data TLB.
    pub tlb_misses: u64,
    /// Samples of locked accesses.
    pub locked: u64,
    /// Samples that found the line modified in another core's cache.
    pub hitm: u64,
    /// Samples whose data came from another node or socket.
    pub remote: u64,
    /// Sum of periods by event.
    pub period: BTreeMap<String, u64>,
}

named! {
    /// A metric of an answer.
    Metric {
        /// Samples.
        Samples = "samples";
        /// Share of the samples that the filter kept.
        Share = "share";
        /// Samples that read.
        Loads = "loads";
        /// Samples that write.
        Stores = "stores";
        /// Sum of latencies.
        Latency = "latency";
        /// Misses of the first-level data TLB.
        TlbMisses = "tlb_misses";
        /// Locked accesses.
        Locked = "locked";
        /// Lines that were modified in another core's cache.
        Hitm = "hitm";
        /// Data from another node or socket.
        Remote = "remote";
        /// Sum of the periods of all events.
        Period = "period";
    }
}

impl Metric {
    /// The metric of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name)
    }

    /// Its value; of a share the number of samples that it is the share of.
    #[must_use]
    pub fn of(self, metrics: &QueryMetrics) -> u64 {
        match self {
            Self::Samples | Self::Share => metrics.samples,
            Self::Loads => metrics.loads,
            Self::Stores => metrics.stores,
            Self::Latency => metrics.latency,
            Self::TlbMisses => metrics.tlb_misses,
            Self::Locked => metrics.locked,
            Self::Hitm => metrics.hitm,
            Self::Remote => metrics.remote,
            Self::Period => {
                metrics.period.values().fold(0, |sum, period| sum.wrapping_add(*period))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_that_a_question_speaks_of_come_to_it() {
        let keys = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
        };
        let own = keys(&[("half", "cpu / 4")]);
        let by = vec!["pair + 1".to_owned()];
        let query = Query { by, filter: Some("half == 1".into()), keys: own, ..Query::default() };
        let known = keys(&[("pair", "two / 2"), ("two", "cpu"), ("half", "cpu / 2"), ("bad", "+")]);
        let expected = keys(&[("pair", "two / 2"), ("two", "cpu"), ("half", "cpu / 4")]);
        assert_eq!(query.with_keys(known).keys, expected);
    }
}
