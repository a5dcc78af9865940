//! A measurement's report: all that its sheet and its document are made of.

use super::column::{MeasureColumn, Shares};
use super::detail::{DetailSearch, FunctionDetail, SampledCode};
use super::question::{Dimension, Measured, MeasuredSamples, text};
use super::rate::DerivedRate;
use super::sums::SampleSums;
use crate::annotation::cutoff::{CodeCutoffs, percent};
use crate::arrangement::ObjectNames;
use crate::config::Names;
use crate::exit::{Failure, Kind};
use crate::session::Source;
use crate::session::inspection::Inspector;
use crate::session::question::{Question, mistake};
use dataspace_analyzer::index::code_listing::AssemblySyntax;
use dataspace_analyzer::query::code_sums::SampleFilter;
use dataspace_proto::measure::Measure;
use dataspace_proto::query::{KeyValue, QueryAnswer};
use dataspace_proto::snapshot::Snapshot;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Functions whose code is shown, at most.
const MAX_DETAILS: usize = 40;

/// Threads that have sections of their own, at most.
const MAX_THREADS: usize = 64;

/// Keys of the rows of the document: each sample is in one of them.
const ROW_KEYS: [&str; 6] = ["process", "thread", "module", "function", "instruction", "object"];

/// Order of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SortBy {
    /// That of the measurement: latency, misses, faults, time.
    #[default]
    Metric,
    /// Samples.
    #[value(alias = "misses")]
    Samples,
    /// Latency of a sample on average.
    #[value(alias = "average-latency")]
    Average,
    /// Translations that the second level had.
    L2Fills,
    /// Translations that the hardware walked for.
    #[value(alias = "walker-fills")]
    HpwFills,
    /// Translations that the kernel made.
    SoftFills,
    /// Names, and of functions their addresses.
    Address,
}

/// Rows of a function's code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DetailRows {
    /// Statements alone.
    Statement,
    /// Instructions alone.
    Instruction,
    /// Both.
    #[default]
    All,
}

/// Threads that have sections of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ThreadChoice {
    /// None: all are summed.
    #[default]
    SumAll,
    /// Each.
    All,
    /// This one.
    One(i32),
}

/// Presentation of a measurement.
#[derive(Clone, Debug)]
pub(crate) struct MeasureView {
    /// Order of the rows.
    pub(crate) sort: SortBy,
    /// Rows of summaries that stay.
    pub(crate) summary: CodeCutoffs,
    /// Functions whose code is shown.
    pub(crate) detail: CodeCutoffs,
    /// Rows of their code.
    pub(crate) rows: DetailRows,
    /// Lines of source around a statement.
    pub(crate) context_lines: u32,
    /// Functions stand below their load objects.
    pub(crate) is_by_module: bool,
    /// Threads with sections of their own.
    pub(crate) threads: ThreadChoice,
    /// Latency buckets are shown.
    pub(crate) has_buckets: bool,
    /// Data are told by the load object of the code too.
    pub(crate) has_module_data: bool,
    /// Spelling of objects.
    pub(crate) names: Names,
    /// Syntax in which code is written.
    pub(crate) syntax: AssemblySyntax,
}

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

/// Sections of one thread.
#[derive(Clone, Debug)]
pub(crate) struct ThreadSection {
    /// Its name.
    pub(crate) name: String,
    /// Its number.
    pub(crate) tid: KeyValue,
    /// Load objects and functions.
    pub(crate) summaries: Vec<Summary>,
    /// Code.
    pub(crate) details: Vec<FunctionDetail>,
}

/// All that a measurement found.
#[derive(Clone, Debug)]
pub(crate) struct MeasureReport {
    /// The samples, and their scale.
    pub(crate) samples: MeasuredSamples,
    /// Presentation.
    pub(crate) view: MeasureView,
    /// State of the session at its end.
    pub(crate) snapshot: Arc<Snapshot>,
    /// Run information: names and texts.
    pub(crate) run: Vec<(&'static str, String)>,
    /// Rates of the exact counts.
    pub(crate) rates: Vec<DerivedRate>,
    /// Columns of all tables.
    pub(crate) columns: Vec<MeasureColumn>,
    /// Sum of all samples.
    pub(crate) total: SampleSums,
    /// Summaries of all threads together, in order.
    pub(crate) summaries: Vec<Summary>,
    /// Code of functions.
    pub(crate) details: Vec<FunctionDetail>,
    /// Sections of single threads.
    pub(crate) threads: Vec<ThreadSection>,
    /// Data summaries.
    pub(crate) data: Vec<Summary>,
    /// The rows of the document.
    pub(crate) answer: QueryAnswer,
}

impl MeasureReport {
    /// The number that shares are of.
    pub(crate) fn metric(&self, sums: &SampleSums) -> u64 {
        sums.metric(self.samples.measure, self.samples.scale.is_some())
    }

    /// Asks a session that has ended.
    ///
    /// # Errors
    /// Where it kept no samples, or a condition means nothing.
    pub(crate) fn of(
        source: &dyn Source,
        mut samples: MeasuredSamples,
        view: MeasureView,
        run: Vec<(&'static str, String)>,
        inspector: &mut Inspector,
    ) -> anyhow::Result<Self> {
        samples.measure_scale(source)?;
        let findings = source.history(false);
        let Some(history) = &findings.history else {
            let failure = Failure::new(Kind::Usage, "no samples were kept to look at");
            return Err(failure.with_remedy("--history 64M   keeps a million of them").into());
        };
        let snapshot = Arc::clone(&findings.snapshot);
        let object = if view.has_module_data { Dimension::ModuleObject } else { Dimension::Object };
        let dimensions = [
            Dimension::Process,
            Dimension::Thread,
            Dimension::Module,
            Dimension::Function,
            object,
            Dimension::Segment,
            Dimension::Instruction,
        ];
        let tables = samples.ask(source, &dimensions)?;
        let mut total = SampleSums::default();
        tables[0].iter().for_each(|row| total.add(&row.sums));
        let by = ROW_KEYS.map(str::to_owned).to_vec();
        let answer = source.ask(&Question::new(samples.query(by, false))?)?;
        let has_levels = !total.levels.is_empty();
        let scale = samples.scale.as_ref();
        let (has_buckets, is_of_time) = (view.has_buckets, samples.is_of_time);
        let columns =
            MeasureColumn::of(samples.measure, scale, has_buckets, has_levels, is_of_time);
        let rates = DerivedRate::all(samples.measure, &snapshot.counts, snapshot.elapsed_ns);
        let names = ObjectNames::of(&snapshot.objects, view.names);
        let maker = SummaryMaker { samples: &samples, view: &view, names: &names, total: &total };
        let code = SampledCode::of(&tables[6]);
        let summaries: Vec<Summary> = maker.all(&dimensions[..4], &tables[..4]);
        let data = maker.all(&dimensions[4..6], &tables[4..6]);
        let filter = SampleFilter::new(&samples.filter(false), &BTreeMap::new())
            .map_err(|error| mistake(&error))?;
        let mut search = DetailSearch {
            history,
            filter: Some(&filter),
            inspector,
            code: &code,
            view: &view,
            names: &names,
            is_of_code: samples.measure.is_of_code(),
        };
        let details = maker.details(&tables[3], &mut search);
        let threads = maker.threads(source, &summaries[1], history, search.inspector)?;
        Ok(Self {
            snapshot,
            run,
            rates,
            columns,
            summaries,
            details,
            threads,
            data,
            answer,
            total: total.clone(),
            samples,
            view,
        })
    }
}

/// Makes summaries of tables.
struct SummaryMaker<'a> {
    samples: &'a MeasuredSamples,
    view: &'a MeasureView,
    names: &'a ObjectNames,
    total: &'a SampleSums,
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

    fn summary(
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
        use super::sums::Fill;
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
    fn share(&self, rows: &mut [SummaryRow], total: &SampleSums, cutoffs: &CodeCutoffs) {
        let total = self.metric(total);
        let is_in_order = self.view.sort == SortBy::Metric;
        let mut before = 0;
        for row in rows {
            let own = self.metric(&row.sums);
            row.shares = Shares { own, before: is_in_order.then_some(before), total };
            let is_over = before > 0
                && cutoffs.cumulative_percent < 100.0
                && percent(before, total) >= cutoffs.cumulative_percent;
            // Where nothing missed, what hit is all there is to see.
            let has_share = total == 0 || percent(own, total) >= cutoffs.min_percent;
            let n_samples = if total == 0 { row.sums.hits } else { row.sums.samples };
            row.is_cut = is_over || n_samples < cutoffs.min_samples || !has_share;
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

    /// The code of functions that the cutoffs leave.
    fn details(
        &self,
        functions: &[Measured],
        search: &mut DetailSearch<'_>,
    ) -> Vec<FunctionDetail> {
        let summary = self.summary(Dimension::Function, functions, &HashMap::new());
        let mut rows = summary.rows;
        self.share(&mut rows, self.total, &self.view.detail);
        let kept = rows.iter().filter(|row| !row.is_cut).take(MAX_DETAILS);
        kept.filter_map(|row| {
            let (module, function) =
                (row.key.first().and_then(text)?, row.key.get(1).and_then(text)?);
            search.detail(&module, &function, row)
        })
        .collect()
    }

    /// The sections of single threads.
    fn threads(
        &self,
        source: &dyn Source,
        threads: &Summary,
        history: &dataspace_analyzer::history::store::HistoryView,
        inspector: &mut Inspector,
    ) -> anyhow::Result<Vec<ThreadSection>> {
        let is_chosen = |row: &&SummaryRow| match self.view.threads {
            ThreadChoice::SumAll => false,
            ThreadChoice::All => !row.is_cut,
            ThreadChoice::One(tid) => row.key.get(1) == Some(&KeyValue::Number(tid.into())),
        };
        let mut sections = Vec::new();
        for row in threads.rows.iter().filter(is_chosen).take(MAX_THREADS) {
            let tid = row.key.get(1).cloned().unwrap_or_default();
            let own = format!("thread == {}", text(&tid).unwrap_or_default());
            let condition = match &self.samples.condition {
                Some(condition) => format!("({condition}) && {own}"),
                None => own,
            };
            let samples = MeasuredSamples { condition: Some(condition), ..self.samples.clone() };
            let dimensions = [Dimension::Module, Dimension::Function, Dimension::Instruction];
            let tables = samples.ask(source, &dimensions)?;
            let maker = SummaryMaker {
                samples: &samples,
                total: &row.sums,
                view: self.view,
                names: self.names,
            };
            let filter = SampleFilter::new(&samples.filter(false), &BTreeMap::new())
                .map_err(|error| mistake(&error))?;
            let mut search = DetailSearch {
                history,
                filter: Some(&filter),
                inspector: &mut *inspector,
                code: &SampledCode::of(&tables[2]),
                view: self.view,
                names: self.names,
                is_of_code: samples.measure.is_of_code(),
            };
            sections.push(ThreadSection {
                name: row.name.clone(),
                tid,
                summaries: vec![
                    maker.summary(Dimension::Module, &tables[0], &HashMap::new()),
                    maker.summary(Dimension::Function, &tables[1], &HashMap::new()),
                ],
                details: maker.details(&tables[1], &mut search),
            });
        }
        Ok(sections)
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

/// Tells whether a measurement is of data at all.
pub(crate) const fn has_data(measure: Measure) -> bool {
    !measure.is_of_code()
}
