//! A measurement's report: all that its sheet and its document are made of.

use super::detail::{DetailSearch, FunctionDetail, SampledCode};
use super::question::{Dimension, Measured, MeasuredSamples, text};
use super::summary::{MeasureOverview, Summary, SummaryMaker, SummaryRow};
use super::sums::SampleSums;
use super::view::{MeasureView, ThreadChoice};
use crate::arrangement::ObjectNames;
use crate::exit::{Failure, Kind};
use crate::session::Source;
use crate::session::inspection::Inspector;
use crate::session::question::{Question, mistake};
use dataspace_analyzer::history::store::HistoryView;
use dataspace_analyzer::query::code_sums::sampled_functions;
use dataspace_analyzer::query::selection::SampleFilter;
use dataspace_proto::query::{KeyValue, QueryAnswer};
use std::collections::{BTreeSet, HashMap};

/// Functions whose code is shown, at most.
const MAX_DETAILS: usize = 40;

/// Threads that have sections of their own, at most.
const MAX_THREADS: usize = 64;

/// Keys of the rows of the document: each sample is in one of them.
const ROW_KEYS: [&str; 6] = ["process", "thread", "module", "function", "instruction", "object"];

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
    /// Its sums.
    pub(crate) overview: MeasureOverview,
    /// Presentation.
    pub(crate) view: MeasureView,
    /// Run information: names and texts.
    pub(crate) run: Vec<(&'static str, String)>,
    /// Code of functions.
    pub(crate) details: Vec<FunctionDetail>,
    /// Sections of single threads.
    pub(crate) threads: Vec<ThreadSection>,
    /// Rows of the document where it is one; else those of processes.
    pub(crate) answer: QueryAnswer,
    /// Functions whose code is left out though the cutoffs would leave it, and threads: how many, and why.
    pub(crate) not_shown: Vec<String>,
}

impl MeasureReport {
    /// Asks a session that has ended.
    ///
    /// # Errors
    /// Where it kept no samples, or a condition means nothing.
    pub(crate) fn of(
        source: &dyn Source,
        samples: MeasuredSamples,
        view: MeasureView,
        run: Vec<(&'static str, String)>,
        has_rows: bool,
        inspector: &mut Inspector,
    ) -> anyhow::Result<Self> {
        let findings = source.history(false);
        let Some(history) = &findings.history else {
            let failure = Failure::new(Kind::Usage, "no samples were kept to look at");
            return Err(failure.with_remedy("--history 64M   keeps a million of them").into());
        };
        let overview = MeasureOverview::of(source, samples, &view)?;
        let by = if has_rows { &ROW_KEYS[..] } else { &ROW_KEYS[..1] };
        let by = by.iter().map(|key| (*key).to_owned()).collect();
        let answer = source.ask(&Question::new(overview.samples.query(by, false))?)?;
        let MeasureOverview { samples, names, total, .. } = &overview;
        // In the order of their questions: process, thread, load module, function.
        let (threads, functions) = (&overview.summaries[1], &overview.summaries[3]);
        let mut code = CodeOf { source, history, view: &view, names, not_shown: BTreeSet::new() };
        let details = code.details(samples, functions, total, "", inspector)?;
        let threads = code.threads(samples, threads, inspector)?;
        let not_shown = code.not_shown.into_iter().collect();
        Ok(Self { overview, view, run, details, threads, answer, not_shown })
    }
}

/// Code of a session, with the sums of samples.
struct CodeOf<'a> {
    source: &'a dyn Source,
    history: &'a HistoryView,
    view: &'a MeasureView,
    names: &'a ObjectNames,
    not_shown: BTreeSet<String>,
}

impl CodeOf<'_> {
    /// The code of functions that the cutoffs leave; `of` are words for whose it is.
    fn details(
        &mut self,
        samples: &MeasuredSamples,
        functions: &Summary,
        total: &SampleSums,
        of: &str,
        inspector: &mut Inspector,
    ) -> anyhow::Result<Vec<FunctionDetail>> {
        let instructions = samples.ask(self.source, &[Dimension::Instruction])?.concat();
        let filter = SampleFilter::new(&samples.filter(false), &samples.keys);
        let filter = filter.map_err(|error| mistake(&error))?;
        let mut search = DetailSearch {
            history: self.history,
            filter: Some(&filter),
            sampled: &sampled_functions(self.history, Some(&filter)),
            inspector,
            code: &SampledCode::of(&instructions),
            view: self.view,
            names: self.names,
            is_of_code: samples.measure.is_of_code(),
        };
        let maker = SummaryMaker { samples, view: self.view, names: self.names, total };
        let mut rows = functions.rows.clone();
        maker.share(&mut rows, total, &self.view.detail);
        let mut details = Vec::new();
        let kept = rows.iter().filter(|row| !row.is_cut);
        for row in kept.clone().take(MAX_DETAILS) {
            let part = |at: usize| row.key.get(at).and_then(text);
            let (Some(module), Some(function)) = (part(0), part(1)) else { continue };
            match search.detail(&module, &function, row.shares.total) {
                Some(detail) => details.push(detail),
                None => {
                    self.not_shown.insert(format!("{}{of} (it cannot be read)", row.name));
                }
            }
        }
        let n_more = kept.count().saturating_sub(MAX_DETAILS);
        if n_more > 0 {
            self.not_shown.insert(format!("{n_more} functions more{of} (--detail-cutoff chooses)"));
        }
        Ok(details)
    }

    /// The sections of single threads.
    fn threads(
        &mut self,
        samples: &MeasuredSamples,
        threads: &Summary,
        inspector: &mut Inspector,
    ) -> anyhow::Result<Vec<ThreadSection>> {
        let is_chosen = |row: &&SummaryRow| match self.view.threads {
            ThreadChoice::SumAll => false,
            ThreadChoice::All => !row.is_cut,
            ThreadChoice::One(tid) => row.key.get(1) == Some(&KeyValue::Number(tid.into())),
        };
        let mut sections = Vec::new();
        let n_more = threads.rows.iter().filter(is_chosen).count().saturating_sub(MAX_THREADS);
        if n_more > 0 {
            self.not_shown.insert(format!("{n_more} threads more (--thread TID chooses one)"));
        }
        for row in threads.rows.iter().filter(is_chosen).take(MAX_THREADS) {
            let tid = row.key.get(1).cloned().unwrap_or_default();
            let of = |at: usize| row.key.get(at).and_then(text).unwrap_or_default();
            let own = format!("process == {} && thread == {}", of(0), of(1));
            let condition = match &samples.condition {
                Some(condition) => format!("({condition}) && {own}"),
                None => own,
            };
            let samples = MeasuredSamples { condition: Some(condition), ..samples.clone() };
            let dimensions = [Dimension::Module, Dimension::Function];
            let tables = samples.ask(self.source, &dimensions)?;
            let (view, names) = (self.view, self.names);
            let maker = SummaryMaker { samples: &samples, total: &row.sums, view, names };
            let summary = |(dimension, table): (&Dimension, &Vec<Measured>)| {
                maker.summary(*dimension, table, &HashMap::new())
            };
            let summaries: Vec<Summary> = dimensions.iter().zip(&tables).map(summary).collect();
            let whose = format!(" of thread {}", of(1));
            let details = self.details(&samples, &summaries[1], &row.sums, &whose, inspector)?;
            sections.push(ThreadSection { name: row.name.clone(), tid, summaries, details });
        }
        Ok(sections)
    }
}
