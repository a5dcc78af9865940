//! Summaries of a measurement: sums by process, thread, load module, function, data object and kind of memory.

use super::column::{MeasureColumn, Shares};
use super::question::{Dimension, Measured, MeasuredSamples, text};
use super::rate::DerivedRate;
use super::sums::{Fill, SampleSums};
use super::view::{MeasureView, SortBy};
use crate::annotation::cutoff::{CodeCutoffs, percent};
use crate::arrangement::ObjectNames;
use crate::session::Source;
use dataspace_proto::query::KeyValue;
use dataspace_proto::snapshot::Snapshot;
use std::collections::HashMap;
use std::sync::Arc;

/// A row of a summary.
#[derive(Clone, Debug)]
pub(crate) struct SummaryRow {
    /// The values of its keys.
    pub(crate) key: Vec<KeyValue>,
    /// Its name, for a person.
    pub(crate) name: String,
    /// Its sums.
    pub(crate) sums: SampleSums,
    /// Its share.
    pub(crate) shares: Shares,
    /// It is left out by the cutoffs.
    pub(crate) is_cut: bool,
}

/// Sums by one thing.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    /// Title of the section.
    pub(crate) title: &'static str,
    /// Name of the section in documents.
    pub(crate) name: &'static str,
    /// Title of the column of names.
    pub(crate) heading: &'static str,
    /// Its rows, in order.
    pub(crate) rows: Vec<SummaryRow>,
}

/// All sums of a measurement.
#[derive(Clone, Debug)]
pub(crate) struct MeasureOverview {
    /// The samples, and their scale.
    pub(crate) samples: MeasuredSamples,
    /// State of the session.
    pub(crate) snapshot: Arc<Snapshot>,
    /// Rates of the exact counts.
    pub(crate) rates: Vec<DerivedRate>,
    /// Columns of all tables.
    pub(crate) columns: Vec<MeasureColumn>,
    /// Sum of all samples.
    pub(crate) total: SampleSums,
    /// Summaries of code, in order.
    pub(crate) summaries: Vec<Summary>,
    /// Summaries of data; none where code is measured.
    pub(crate) data: Vec<Summary>,
    /// Names of objects.
    pub(crate) names: ObjectNames,
}

impl MeasureOverview {
    /// Asks a session.
    ///
    /// # Errors
    /// Where it keeps no samples, or a condition means nothing.
    pub(crate) fn of(
        source: &dyn Source,
        mut samples: MeasuredSamples,
        view: &MeasureView,
    ) -> anyhow::Result<Self> {
        samples.measure_scale(source)?;
        let snapshot = source.snapshot();
        let object = if view.has_module_data { Dimension::ModuleObject } else { Dimension::Object };
        let of_code =
            [Dimension::Process, Dimension::Thread, Dimension::Module, Dimension::Function];
        let of_data: &[_] = match samples.measure.is_of_code() {
            true => &[],
            false => &[object, Dimension::Segment],
        };
        let dimensions = [&of_code[..], of_data].concat();
        let mut tables = samples.ask(source, &dimensions)?;
        tables[1] = samples.merge_threads(std::mem::take(&mut tables[1]));
        let mut total = SampleSums::default();
        tables[0].iter().for_each(|row| total.add(&row.sums));
        let scale = samples.scale.as_ref();
        let has_levels = !total.levels.is_empty();
        let (has_buckets, is_of_time) = (view.has_buckets, samples.is_of_time);
        let columns =
            MeasureColumn::of(samples.measure, scale, has_buckets, has_levels, is_of_time);
        let rates = DerivedRate::all(samples.measure, &snapshot.counts, snapshot.elapsed_ns);
        let names = ObjectNames::of(&snapshot.objects, view.names);
        let maker = SummaryMaker { samples: &samples, view, names: &names, total: &total };
        let (code, data) = tables.split_at(of_code.len());
        let (summaries, data) = (maker.all(&of_code, code), maker.all(of_data, data));
        Ok(Self { snapshot, rates, columns, summaries, data, total, names, samples })
    }

    /// The number that shares are of.
    pub(crate) fn metric(&self, sums: &SampleSums) -> u64 {
        sums.metric(self.samples.measure, self.samples.scale.is_some())
    }
}

/// Makes summaries of tables.
pub(super) struct SummaryMaker<'a> {
    pub(super) samples: &'a MeasuredSamples,
    pub(super) view: &'a MeasureView,
    pub(super) names: &'a ObjectNames,
    pub(super) total: &'a SampleSums,
}

impl SummaryMaker<'_> {
    fn metric(&self, sums: &SampleSums) -> u64 {
        sums.metric(self.samples.measure, self.samples.scale.is_some())
    }

    fn all(&self, dimensions: &[Dimension], tables: &[Vec<Measured>]) -> Vec<Summary> {
        let comms = tables.get(1).map(|threads| comms(threads)).unwrap_or_default();
        let summary = |(dimension, rows): (&Dimension, &Vec<Measured>)| {
            self.summary(*dimension, rows, &comms)
        };
        dimensions.iter().zip(tables).map(summary).collect()
    }

    /// The summary of one table.
    pub(super) fn summary(
        &self,
        dimension: Dimension,
        table: &[Measured],
        comms: &HashMap<KeyValue, String>,
    ) -> Summary {
        let (title, name, heading) = match dimension {
            Dimension::Process => ("Process summary", "process", "Process"),
            Dimension::Thread => ("Thread summary", "thread", "Thread"),
            Dimension::Module => ("Load module summary", "module", "Load module"),
            Dimension::Function => ("Function summary", "function", "Function"),
            Dimension::Object => ("Data summary by object", "object", "Data entry"),
            Dimension::ModuleObject => {
                ("Data summary by object and load module", "object", "Data entry")
            }
            Dimension::Segment => ("Data summary by region", "segment", "Region"),
            Dimension::Instruction => ("Instructions", "instruction", "Instruction"),
        };
        let mut rows: Vec<SummaryRow> = table
            .iter()
            .map(|row| SummaryRow {
                name: self.name(dimension, &row.key, comms),
                key: row.key.clone(),
                sums: row.sums.clone(),
                shares: Shares::default(),
                is_cut: false,
            })
            .collect();
        self.sort(&mut rows);
        if self.view.is_by_module && dimension == Dimension::Function {
            self.group(&mut rows);
        }
        self.share(&mut rows, self.total, &self.view.summary);
        Summary { title, name, heading, rows }
    }

    /// Puts rows in the order that was asked for.
    fn sort(&self, rows: &mut [SummaryRow]) {
        let average = |sums: &SampleSums| sums.latency.checked_div(sums.samples).unwrap_or(0);
        let by = |row: &SummaryRow| match self.view.sort {
            SortBy::Metric => self.metric(&row.sums),
            SortBy::Samples => row.sums.samples,
            SortBy::Average => average(&row.sums),
            SortBy::L2Fills => row.sums.fill(Fill::SecondLevel),
            SortBy::HpwFills => row.sums.fill(Fill::Walker),
            SortBy::SoftFills => row.sums.fill(Fill::Software),
            SortBy::Address => 0,
        };
        // Those with as much stay in the order of the measurement, or of their names.
        if self.view.sort == SortBy::Address {
            rows.sort_by(|a, b| a.name.cmp(&b.name));
        } else {
            rows.sort_by_key(|row| std::cmp::Reverse(by(row)));
        }
    }

    /// Puts rows of one load object together, the one with the most first.
    fn group(&self, rows: &mut [SummaryRow]) {
        let mut sums: HashMap<KeyValue, u64> = HashMap::new();
        let module = |row: &SummaryRow| row.key.first().cloned().unwrap_or_default();
        for row in rows.iter() {
            *sums.entry(module(row)).or_default() += self.metric(&row.sums);
        }
        rows.sort_by_key(|row| (std::cmp::Reverse(sums[&module(row)]), module(row)));
    }

    /// Tells the shares of rows, and which of them are left out.
    pub(super) fn share(&self, rows: &mut [SummaryRow], total: &SampleSums, cutoffs: &CodeCutoffs) {
        // Where nothing missed, what hit is all there is to see.
        let is_of_hits = total.samples == 0;
        let total = self.metric(total);
        let is_in_order = self.view.sort == SortBy::Metric;
        // What counts until the cumulative share is full is the metric, however rows are shown.
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(self.metric(&rows[*at].sums)));
        let mut before = 0;
        for at in order {
            let row = &mut rows[at];
            let own = self.metric(&row.sums);
            let is_over = before > 0
                && cutoffs.cumulative_percent < 100.0
                && percent(before, total) >= cutoffs.cumulative_percent;
            let has_share = total == 0 || percent(own, total) >= cutoffs.min_percent;
            let n_samples = if is_of_hits { row.sums.hits } else { row.sums.samples };
            row.is_cut = is_over || n_samples < cutoffs.min_samples || !has_share;
            before += own;
        }
        let mut before = 0;
        for row in rows {
            let own = self.metric(&row.sums);
            row.shares = Shares { own, before: is_in_order.then_some(before), total };
            before += own;
        }
    }

    fn name(
        &self,
        dimension: Dimension,
        key: &[KeyValue],
        comms: &HashMap<KeyValue, String>,
    ) -> String {
        let part = |at: usize| key.get(at).and_then(text);
        let known = |at: usize| part(at).unwrap_or_else(|| "(not known)".to_owned());
        match dimension {
            Dimension::Process => match key.first().and_then(|pid| comms.get(pid)) {
                Some(comm) => format!("{comm} [{}]", known(0)),
                None => known(0),
            },
            Dimension::Thread => format!("{} [{}] of {}", known(2), known(1), known(0)),
            Dimension::Function => {
                let module = known(0);
                let file = module.rsplit('/').next().unwrap_or(&module);
                format!("{file}::{}", part(1).unwrap_or_else(|| "(no function)".to_owned()))
            }
            Dimension::Object => self.object(part(0)),
            Dimension::ModuleObject => {
                let module = known(0);
                let file = module.rsplit('/').next().unwrap_or(&module);
                format!("{file}::{}", self.object(part(1)))
            }
            Dimension::Segment => match part(0) {
                Some(segment) => segment,
                None => "(not known)".to_owned(),
            },
            Dimension::Module | Dimension::Instruction => known(0),
        }
    }

    fn object(&self, object: Option<String>) -> String {
        match object {
            Some(object) => self.names.spelled(&object).to_owned(),
            None => "(touches no memory)".to_owned(),
        }
    }
}

/// The names of processes: those of their first threads.
fn comms(threads: &[Measured]) -> HashMap<KeyValue, String> {
    let mut comms = HashMap::new();
    for row in threads {
        if let [pid, tid, comm] = &row.key[..]
            && let Some(comm) = text(comm)
            && (pid == tid || !comms.contains_key(pid))
        {
            comms.insert(pid.clone(), comm);
        }
    }
    comms
}
