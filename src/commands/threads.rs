//! `dataspace threads`: which threads share a cache line, live or of a recording.

use super::own_setting::with_own_keys;
use super::{json, reading, top};
use crate::broker::{self, Terms};
use crate::cli::{Global, SampleSource, ThreadsArgs, ThreadsOptions};
use crate::config::{AnswerForm, LiveOptions};
use crate::diagnostic;
use crate::exit::{Failure, Kind};
use crate::interrupt::Interrupt;
use crate::session::question::mistake;
use crate::session::{self, OpenRecording, Source};
use crate::sharing::row::SharingRows;
use crate::sharing::{document, sheet};
use dataspace_analyzer::sharing::survey::LineSurvey;
use std::io::{IsTerminal, stderr, stdout};
use std::time::Duration;

/// A survey, and how its answer is shown.
struct View {
    survey: LineSurvey,
    limit: usize,
    form: AnswerForm,
    has_color: bool,
}

/// Runs the command.
pub(super) fn run(args: ThreadsArgs, global: &Global) -> anyhow::Result<()> {
    diagnostic::start(global.verbose, false);
    let ThreadsOptions { source, query, has_all, limit, form } = args.resolve()?;
    let query = with_own_keys(Some(query))?.unwrap_or_default();
    let survey = LineSurvey::new(&query, has_all).map_err(|error| mistake(&error))?;
    let has_color = global.color.resolve(stdout().is_terminal());
    let view = View { survey, limit, form, has_color };
    match source {
        SampleSource::Live(live, duration) => {
            broker::split(global.sandbox, Terms::of_session(&live), || {
                watch(&live, duration, &view)
            })
        }
        SampleSource::Recording(recording) => {
            let recording = OpenRecording::open(&recording)?;
            let terms = Terms::of_files(recording.policy.clone());
            broker::split(global.sandbox, terms, || read(recording, &view))
        }
    }
}

/// Samples until the target ends, the time is over or somebody ends it.
fn watch(live: &LiveOptions, duration: Option<Duration>, view: &View) -> anyhow::Result<()> {
    let interrupt = Interrupt::listen()?;
    let source = top::begun(session::start_live(live, &|| interrupt.is_set()), &interrupt)?;
    top::announce(&*source, duration, &mut stderr().lock());
    top::wait_for_end(&*source, duration, &interrupt);
    top::stop(&*source, &interrupt)?;
    tell(&*source, view)
}

fn read(recording: OpenRecording, view: &View) -> anyhow::Result<()> {
    let interrupt = Interrupt::listen()?;
    let source = recording.totals()?;
    reading::wait(&*source, &interrupt)?;
    tell(&*source, view)
}

/// Prints what a session that has ended tells.
fn tell(source: &dyn Source, view: &View) -> anyhow::Result<()> {
    let findings = source.history(true);
    let Some(history) = &findings.history else {
        let failure = Failure::new(Kind::Usage, "no samples were kept to look at");
        return Err(failure.with_remedy("--history 64M   keeps a million of them").into());
    };
    let rows = SharingRows::new(view.survey.of(history), view.limit);
    let mut out = stdout().lock();
    match view.form {
        AnswerForm::Json => json::write(&document::of(&rows), &mut out),
        AnswerForm::Csv => Ok(document::write_csv(&rows, &mut out)?),
        AnswerForm::Text => Ok(sheet::write(&findings.snapshot, &rows, view.has_color, &mut out)?),
    }
}
