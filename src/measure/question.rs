//! Questions to the history that a measurement is made of.

use super::scale::LatencyScale;
use super::sums::SampleSums;
use crate::exit::{Failure, Kind};
use crate::session::Source;
use crate::session::question::{Question, quoted};
use crate::text::visible;
use dataspace_proto::event::EventClass;
use dataspace_proto::measure::Measure;
use dataspace_proto::query::{KeyValue, Query, QueryAnswer, QueryMetrics};
use dataspace_proto::snapshot::EventLine;
use std::collections::{BTreeMap, HashMap};

/// The measurements, of which the first is shown that the events of a session are of.
const MEASURES: [Measure; 4] = [Measure::Faults, Measure::Dcache, Measure::Icache, Measure::Time];

/// Things that samples are summed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dimension {
    /// Processes.
    Process,
    /// Threads.
    Thread,
    /// Load objects.
    Module,
    /// Functions of load objects.
    Function,
    /// Data objects.
    Object,
    /// Data objects, by the load object of the code that touched them.
    ModuleObject,
    /// Kinds of memory.
    Segment,
    /// Instructions.
    Instruction,
}

impl Dimension {
    /// The keys of the question.
    pub(crate) const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Process => &["process"],
            Self::Thread => &["process", "thread", "comm"],
            Self::Module => &["module"],
            Self::Function => &["module", "function"],
            Self::Object => &["object"],
            Self::ModuleObject => &["module", "object"],
            Self::Segment => &["segment"],
            Self::Instruction => &["instruction"],
        }
    }
}

/// The samples of one thing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measured {
    /// The values of its keys.
    pub(crate) key: Vec<KeyValue>,
    /// Its sums.
    pub(crate) sums: SampleSums,
}

/// The samples that are measured.
#[derive(Clone, Debug)]
pub(crate) struct MeasuredSamples {
    /// Thing that is measured.
    pub(crate) measure: Measure,
    /// An expression of the user's that is true for them.
    pub(crate) condition: Option<String>,
    /// The span.
    pub(crate) span: Option<String>,
    /// Names for expressions, which the condition may use.
    pub(crate) keys: BTreeMap<String, String>,
    /// The only events that are of it; none: all are.
    pub(crate) events: Vec<String>,
    /// Weights are nanoseconds.
    pub(crate) is_of_time: bool,
    /// The event tells of each sample whether it missed: one that tells nothing did not.
    pub(crate) is_strict: bool,
    /// Buckets of latency.
    pub(crate) scale: Option<LatencyScale>,
}

impl MeasuredSamples {
    /// The samples of a measurement among those of these events.
    ///
    /// # Errors
    /// Where none of them is of what is measured.
    pub(crate) fn new(
        measure: Measure,
        events: &[EventLine],
        condition: Option<String>,
        span: Option<String>,
        keys: BTreeMap<String, String>,
    ) -> Result<Self, Failure> {
        let is_of_it = |event: &&EventLine| is_event_of(measure, event);
        let names: Vec<String> =
            events.iter().filter(is_of_it).map(|event| event.name.clone()).collect();
        if names.is_empty() {
            return Err(no_event(measure, events));
        }
        let is_strict = names.iter().any(|event| event.contains("ibs_"));
        let is_of_time = events.iter().filter(is_of_it).all(|it| it.kind == EventClass::Clock);
        let is_all = names.len() == events.len();
        let events = if is_all { Vec::new() } else { names };
        Ok(Self { measure, condition, span, keys, events, is_of_time, is_strict, scale: None })
    }

    /// The samples of the first measurement that some of these events are of; those that `query` keeps.
    ///
    /// # Errors
    /// Where they are of none.
    pub(crate) fn fitting(events: &[EventLine], query: &Query) -> Result<Self, Failure> {
        let samples = |measure: Measure| {
            let Query { filter, span, keys, .. } = query.clone();
            Self::new(measure, events, filter, span, keys)
        };
        MEASURES.into_iter().find_map(|measure| samples(measure).ok()).ok_or_else(|| {
            let what = "what is sampled is no measurement: faults, dcache, icache or time";
            Failure::new(Kind::Failed, what)
        })
    }

    /// The expression that is true for samples of what is measured, or for those that missed nothing.
    pub(crate) fn filter(&self, is_of_hits: bool) -> String {
        let misses = match self.measure {
            // Those that touch no memory count too: all that have a value.
            Measure::Faults | Measure::Time => "(memory || !memory)",
            Measure::Dcache | Measure::Icache if self.is_strict => {
                "(memory || !memory) && (level != null ? level != \"L1\" && level != \"L0\" : latency != null)"
            }
            Measure::Dcache | Measure::Icache => {
                "(memory || !memory) && (level == null || (level != \"L1\" && level != \"L0\"))"
            }
            Measure::Dtlb | Measure::Itlb if self.is_strict => {
                "(memory || !memory) && tlb != null && tlb != \"L1 hit\" && tlb != \"L1|L2 hit\""
            }
            Measure::Dtlb | Measure::Itlb => {
                "(memory || !memory) && (tlb == null || (tlb != \"L1 hit\" && tlb != \"L1|L2 hit\"))"
            }
        };
        let hits = "(memory || !memory) && level != null && (level == \"L1\" || level == \"L0\")";
        let mut filter = if is_of_hits { hits } else { misses }.to_owned();
        if !self.events.is_empty() {
            let events: Vec<String> = self.events.iter().map(|event| quoted(event)).collect();
            filter.push_str(&format!(" && event in [{}]", events.join(", ")));
        }
        if let Some(condition) = &self.condition {
            filter.push_str(&format!(" && ({condition})"));
        }
        filter
    }

    /// Tells whether samples that missed nothing are shown beside.
    pub(crate) const fn has_hits(&self) -> bool {
        matches!(self.measure, Measure::Dcache)
    }

    /// Keys by which the columns are told apart.
    fn columns(&self) -> Vec<String> {
        match self.measure {
            Measure::Faults | Measure::Time => Vec::new(),
            Measure::Dtlb | Measure::Itlb => vec!["event".to_owned(), "tlb".to_owned()],
            Measure::Dcache | Measure::Icache => {
                let bucket = self.scale.iter().map(LatencyScale::expression);
                ["level".to_owned()].into_iter().chain(bucket).collect()
            }
        }
    }

    /// A question for samples by these keys.
    pub(crate) fn query(&self, by: Vec<String>, is_of_hits: bool) -> Query {
        let (filter, span) = (Some(self.filter(is_of_hits)), self.span.clone());
        Query { by, filter, span, ..Query::default() }.with_keys(self.keys.clone())
    }

    /// Measures the scale of latencies.
    ///
    /// # Errors
    /// Where the session keeps no history, or the condition means nothing.
    pub(crate) fn measure_scale(&mut self, source: &dyn Source) -> anyhow::Result<()> {
        if !self.measure.has_latency() {
            return Ok(());
        }
        let by = vec!["level".to_owned(), "latency".to_owned()];
        let answer = source.ask(&Question::new(self.query(by, false))?)?;
        let mut samples = BTreeMap::new();
        for row in answer.rows {
            if let [level, KeyValue::Number(latency)] = &row.key[..] {
                let latency = u64::try_from(*latency).unwrap_or(0);
                samples.insert((text(level), latency), row.metrics.samples);
            }
        }
        self.scale = LatencyScale::measured(&samples);
        Ok(())
    }

    /// The sums by each of these dimensions, most first.
    ///
    /// # Errors
    /// Where the session keeps no history, or the condition means nothing.
    pub(crate) fn ask(
        &self,
        source: &dyn Source,
        dimensions: &[Dimension],
    ) -> anyhow::Result<Vec<Vec<Measured>>> {
        let keys = |dimension: &Dimension| dimension.keys().iter().map(|key| (*key).to_owned());
        let mut questions = Vec::new();
        for dimension in dimensions {
            let by = keys(dimension).chain(self.columns()).collect();
            questions.push(Question::new(self.query(by, false))?);
        }
        if self.has_hits() {
            for dimension in dimensions {
                questions.push(Question::new(self.query(keys(dimension).collect(), true))?);
            }
        }
        let mut answers = source.ask_all(&questions)?;
        let mut hits = answers.split_off(dimensions.len()).into_iter();
        let tables = dimensions
            .iter()
            .zip(answers)
            .map(|(dimension, answer)| self.table(dimension.keys().len(), &answer, hits.next()));
        Ok(tables.collect())
    }

    /// The rows of an answer whose first keys are the dimension's and the others tell columns apart.
    fn table(
        &self,
        n_keys: usize,
        answer: &QueryAnswer,
        hits: Option<QueryAnswer>,
    ) -> Vec<Measured> {
        let mut found: BTreeMap<Vec<KeyValue>, SampleSums> = BTreeMap::new();
        for row in &answer.rows {
            let (key, columns) = row.key.split_at(n_keys.min(row.key.len()));
            let sums = found.entry(key.to_vec()).or_default();
            sums.add(&self.sums(columns, &row.metrics));
        }
        for row in hits.into_iter().flat_map(|answer| answer.rows) {
            found.entry(row.key).or_default().hits += row.metrics.samples;
        }
        let mut rows: Vec<Measured> =
            found.into_iter().map(|(key, sums)| Measured { key, sums }).collect();
        self.sort(&mut rows);
        rows
    }

    fn sort(&self, rows: &mut [Measured]) {
        let has_latency = self.scale.is_some();
        rows.sort_by_key(|row| std::cmp::Reverse(row.sums.metric(self.measure, has_latency)));
    }

    /// Rows of threads with one for each, whose name is the one that most of its samples have: a thread may take others.
    pub(crate) fn merge_threads(&self, rows: Vec<Measured>) -> Vec<Measured> {
        let mut merged: Vec<Measured> = Vec::new();
        let mut places: HashMap<Vec<KeyValue>, usize> = HashMap::new();
        for row in rows {
            let thread: Vec<KeyValue> = row.key.iter().take(2).cloned().collect();
            match places.get(&thread) {
                Some(&place) => merged[place].sums.add(&row.sums),
                None => {
                    places.insert(thread, merged.len());
                    merged.push(row);
                }
            }
        }
        self.sort(&mut merged);
        merged
    }

    fn sums(&self, columns: &[KeyValue], metrics: &QueryMetrics) -> SampleSums {
        let samples = metrics.samples;
        let mut sums = SampleSums {
            samples,
            latency: metrics.latency,
            weights: metrics.period.clone(),
            ..SampleSums::default()
        };
        match (self.measure, columns) {
            (Measure::Dtlb | Measure::Itlb, [event, tlb]) => {
                let event = text(event).unwrap_or_default();
                if let Some(fill) = super::sums::Fill::of(text(tlb).as_deref(), &event) {
                    sums.fills[fill as usize] += samples;
                }
            }
            (Measure::Dcache | Measure::Icache, [level, rest @ ..]) => {
                if let Some(level) = text(level) {
                    sums.levels.insert(level, samples);
                }
                if let [KeyValue::Number(bucket)] = rest
                    && let Some(bucket) = usize::try_from(*bucket)
                        .ok()
                        .and_then(|bucket| sums.buckets.get_mut(bucket))
                {
                    *bucket += samples;
                }
            }
            _ => {}
        }
        sums
    }
}

/// Tells whether samples of an event are of what is measured.
fn is_event_of(measure: Measure, event: &EventLine) -> bool {
    let is_cycles = || {
        let name = event
            .name
            .rsplit_once('/')
            .map_or(&*event.name, |_| event.name.split('/').nth(1).unwrap_or_default());
        ["cycles", "cpu-cycles"].iter().any(|it| name == *it || name.starts_with(&format!("{it}:")))
    };
    match measure {
        Measure::Dcache | Measure::Dtlb => event.kind == EventClass::Memory,
        Measure::Icache | Measure::Itlb => event.kind == EventClass::Fetch,
        Measure::Faults => event.kind == EventClass::PageFault,
        Measure::Time => event.kind == EventClass::Clock || is_cycles(),
    }
}

/// The failure of a recording, or of an event that was named, which is of something else.
fn no_event(measure: Measure, events: &[EventLine]) -> Failure {
    let names: Vec<String> = events.iter().map(|event| visible(&event.name).into_owned()).collect();
    let (of, record) = match measure {
        Measure::Dcache | Measure::Dtlb => ("accesses to memory", "perf mem record -- COMMAND"),
        Measure::Icache | Measure::Itlb => {
            ("fetches of code", "perf record -e ibs_fetch// --raw-samples -a -- COMMAND   (AMD)")
        }
        Measure::Faults => ("page faults", "dataspace record -e page-faults -- COMMAND"),
        Measure::Time => ("time on a CPU", "dataspace record -e cpu-clock -- COMMAND"),
    };
    let what = match names.is_empty() {
        true => format!("there are no samples of {of}: no event was sampled"),
        false => format!("there are no samples of {of}: what was sampled is {}", names.join(", ")),
    };
    Failure::new(Kind::Usage, what).with_remedy(format!("{record}   makes some"))
}

/// The text of a value; `None` where there is none.
pub(crate) fn text(value: &KeyValue) -> Option<String> {
    match value {
        KeyValue::None => None,
        value => Some(crate::answer::text(value)),
    }
}
