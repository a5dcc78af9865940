//! `dataspace annotate`: the code of a function, with its samples and the data objects that it touches.

use super::json;
use super::progress::ProgressText;
use super::reading::wait;
use super::top;
use crate::annotation::csv;
use crate::annotation::document::AnnotationDocument;
use crate::annotation::model::Annotation;
use crate::annotation::subject::CodeSearch;
use crate::annotation::text;
use crate::arrangement::ObjectNames;
use crate::broker::{self, Terms};
use crate::cli::{AnnotateArgs, AnnotateOptions, CodeSamples, Global};
use crate::config::AnswerForm;
use crate::daemon::config_file;
use crate::diagnostic;
use crate::exit::{Failure, Kind};
use crate::file_source::FilePolicy;
use crate::interrupt::Interrupt;
use crate::pager::Pager;
use crate::session::findings::Findings;
use crate::session::inspection::Inspector;
use crate::session::question::mistake;
use crate::session::{self, OpenRecording};
use dataspace_analyzer::query::code_sums::{CodeReckoning, CodeSums};
use dataspace_analyzer::query::selection::SampleFilter;
use std::io::{IsTerminal as _, stdout};
use std::ops::ControlFlow;

/// Records between two words on progress.
const PROGRESS_RECORDS: u64 = 1 << 19;

/// Runs the command.
pub(super) fn run(args: AnnotateArgs, global: &Global) -> anyhow::Result<()> {
    diagnostic::start(global.verbose, false);
    let (options, samples) = args.resolve()?;
    let filter = filter(&options)?;
    let is_terminal = stdout().is_terminal();
    let has_color = global.color.resolve(is_terminal);
    match samples {
        CodeSamples::Recording(recording) => {
            let mut recording = OpenRecording::open(&recording)?;
            with_sources(&mut recording.policy, &options);
            let policy = recording.policy.clone();
            let is_paged = is_terminal && options.form == AnswerForm::Text && !options.is_unpaged;
            let _pager = is_paged.then(Pager::start).flatten();
            broker::split(global.sandbox, Terms::of_files(policy.clone()), || {
                let interrupt = Interrupt::listen()?;
                let again = recording.again();
                let source = recording.totals()?;
                wait(&*source, &interrupt)?;
                let findings = source.history(options.subject.has_line());
                drop(source);
                let (options, filter, interrupt) = (&options, filter.as_ref(), &interrupt);
                Shown { options, filter, policy, has_color, interrupt }.print(findings, again)
            })
        }
        CodeSamples::Live(live) => {
            let mut terms = Terms::of_session(&live);
            with_sources(&mut terms.policy, &options);
            let policy = terms.policy.clone();
            broker::split(global.sandbox, terms, || {
                let interrupt = Interrupt::listen()?;
                let source = session::start_live(&live, &|| interrupt.is_set())?;
                top::wait_for_end(&*source, options.duration, &interrupt);
                top::stop(&*source, &interrupt)?;
                let findings = source.history(live.has_lines);
                let (options, filter, interrupt) = (&options, filter.as_ref(), &interrupt);
                Shown { options, filter, policy, has_color, interrupt }.print(findings, None)
            })
        }
    }
}

/// The filter that was typed, with the keys of the configuration.
fn filter(options: &AnnotateOptions) -> anyhow::Result<Option<SampleFilter>> {
    let Some(text) = &options.condition else { return Ok(None) };
    let filter = SampleFilter::new(text, &config_file::own_keys()?);
    Ok(Some(filter.map_err(|error| mistake(&error))?))
}

fn with_sources(policy: &mut FilePolicy, options: &AnnotateOptions) {
    policy.shows_sources = true;
    policy.sources = options.source.clone().map(Into::into);
}

/// A view of what was sampled.
struct Shown<'a> {
    options: &'a AnnotateOptions,
    filter: Option<&'a SampleFilter>,
    policy: FilePolicy,
    has_color: bool,
    interrupt: &'a Interrupt,
}

impl Shown<'_> {
    /// Finds the function, and prints it. A recording that holds more samples than were kept is read once more.
    fn print(self, findings: Findings, again: Option<OpenRecording>) -> anyhow::Result<()> {
        let Self { options, filter, policy, has_color, interrupt } = self;
        let Some(history) = findings.history.clone() else {
            let what = "the session kept no samples";
            return Err(Failure::new(Kind::Failed, what).with_remedy("--history 64M").into());
        };
        let mut inspector = Inspector::new(policy);
        let mut search = CodeSearch {
            history: &history,
            filter,
            inspector: &mut inspector,
            syntax: options.syntax,
        };
        let found = search.find(&options.subject)?;
        let reckoning = || CodeReckoning::new(found.object, &found.listing.parts, filter);
        let mut of_kept = reckoning();
        of_kept.add(&history);
        let mut sums = of_kept.finish(&history);
        let events = history.events().to_vec();
        let names = ObjectNames::of(&findings.snapshot.objects, options.names);
        if let Some(again) = again.filter(|_| sums.n_not_held != 0) {
            // What was kept may fill the memory.
            drop((history, findings));
            sums = read_again(again, reckoning(), interrupt)?;
        }
        let annotation = Annotation::new(found, sums, &events, &inspector, options.cutoffs, names);
        let mut out = stdout().lock();
        let document = || AnnotationDocument::of(&annotation);
        match options.form {
            AnswerForm::Json => json::write(&document(), &mut out),
            AnswerForm::Csv => Ok(csv::write(&document(), options.view, &mut out)?),
            AnswerForm::Text => Ok(text::render(&annotation, options.view, has_color, &mut out)?),
        }
    }
}

/// The sums over all samples of a recording.
fn read_again(
    recording: OpenRecording,
    mut reckoning: CodeReckoning<'_>,
    interrupt: &Interrupt,
) -> anyhow::Result<CodeSums> {
    let mut n_records = 0_u64;
    let mut progress = ProgressText::new();
    let last = recording.in_parts(&mut |part| reckoning.add(part), &mut || {
        n_records += 1;
        if n_records.is_multiple_of(PROGRESS_RECORDS) {
            progress.tell(&format!("reading again: {n_records} records"));
        }
        if interrupt.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if interrupt.is_set() {
        return Err(Failure::new(Kind::Interrupted, "interrupted while reading").into());
    }
    Ok(reckoning.finish(&last))
}
