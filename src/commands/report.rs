//! `dataspace report`: the totals of a recording.

use super::own_setting::{with_own_keys, with_own_settings};
use super::progress::ProgressText;
use super::reading::wait;
use super::{fetch, json};
use crate::answer;
use crate::broker::{self, Terms};
use crate::cli::{Global, ReportArgs, ReportFormat, is_utf8};
use crate::config::{
    Names, Output, RECORDING_HISTORY_BYTES, RecordingOptions, ScreenSettings, Selection, TopOptions,
};
use crate::diagnostic;
use crate::exit::{Failure, Kind};
use crate::export::{csv, folded, pprof};
use crate::file_source::FilePolicy;
use crate::interrupt::Interrupt;
use crate::page::embedded::EmbeddedData;
use crate::page::single;
use crate::pager::Pager;
use crate::selection::reduced;
use crate::session::question::Question;
use crate::session::{OpenRecording, Source};
use crate::table::{self, TableOptions};
use crate::tui;
use crate::way_out::WayOut;
use dataspace_proto::query::QueryAnswer;
use dataspace_proto::snapshot::Snapshot;
use dataspace_proto::window::Window;
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write, stdin, stdout};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// Records between two words on progress.
const PROGRESS_RECORDS: u64 = 1 << 19;

/// Runs the command.
pub(super) fn run(args: ReportArgs, global: &Global) -> anyhow::Result<()> {
    diagnostic::start(global.verbose, false);
    let format = if args.json { ReportFormat::Json } else { args.format };
    let mut selection = args.selection.resolve();
    let has_color = global.color.resolve(stdout().is_terminal());
    let width = table::terminal_width();
    check(format, &selection, stdout().is_terminal())?;
    let question = with_own_keys(args.query.resolve(selection.limit))?.map(Question::new);
    let question = question.transpose()?;
    check_question(question.as_ref(), format, &selection)?;
    let is_fetched = args.recording.debuginfod;
    let has_terminal = stdout().is_terminal() && stdin().is_terminal();
    let is_plain = args.plain || args.no_pager || question.is_some();
    let is_screen = format == ReportFormat::Table && has_terminal && !is_plain;
    let is_page = format == ReportFormat::Html;
    let recording = RecordingOptions {
        windows: args.windows.resolve(),
        history_bytes: match question.is_some() || is_screen || is_page {
            true => args.history.unwrap_or(RECORDING_HISTORY_BYTES),
            false => 0,
        },
        has_lines: is_screen || is_page || question.as_ref().is_some_and(Question::has_lines),
        ..args.recording.resolve()
    };
    if is_fetched {
        fetch::for_recording(&recording, global)?;
    }
    let mut recording = OpenRecording::open(&recording)?;
    if is_screen {
        recording.policy.shows_sources = true;
        let view = with_own_settings(screen_view(selection, args.names.how, has_color))?;
        return show(recording, &view, global);
    }
    recording.policy.shows_sources = is_page;
    let is_paged = format == ReportFormat::Table && stdout().is_terminal() && !args.no_pager;
    let pager = is_paged.then(Pager::start).flatten();
    if pager.is_some() {
        // All of it: who reads it can leave at any line.
        selection.limit.get_or_insert(usize::MAX);
    }
    let options =
        TableOptions { window: Window::All, selection, names: args.names.how, has_color, width };
    let files = recording.policy.clone();
    let terms = Terms::of_files(files.clone());
    let way_out = WayOut::new(question.as_ref().is_some_and(Question::has_reasons))?;
    let done = broker::split(global.sandbox, terms, || {
        let interrupt = Interrupt::listen()?;
        let again = recording.again();
        let source = recording.totals()?;
        wait(&*source, &interrupt)?;
        match &question {
            None => {
                if format == ReportFormat::Table {
                    way_out.note(&source.snapshot());
                }
                print(&*source, format, (&options, &files), &mut stdout().lock())
            }
            Some(question) => {
                let (snapshot, answer) = answer(source, question, again, &interrupt)?;
                let mut out = stdout().lock();
                match format {
                    ReportFormat::Json => json::write(&answer, &mut out)?,
                    ReportFormat::Csv => answer::write_csv(question, &answer, &mut out)?,
                    _ => {
                        way_out.note(&snapshot);
                        answer::write_tables(&snapshot, &[(question, answer)], &options, &mut out)?;
                    }
                }
                Ok(())
            }
        }
    });
    done?;
    Ok(way_out.tell((!is_fetched).then_some("report -i FILE"), &mut stdout())?)
}

/// Options of the screen on which a recording is shown.
fn screen_view(selection: Selection, names: Names, has_color: bool) -> TopOptions {
    TopOptions {
        output: Output::Screen,
        interval: Duration::from_secs(1),
        duration: None,
        selection,
        query: None,
        newest: None,
        window: Some(Window::All),
        names,
        has_color,
        screen: ScreenSettings::default(),
        measure: None,
        own_keys: BTreeMap::new(),
        is_ascii: !is_utf8(),
    }
}

/// Shows a recording on the screen.
fn show(recording: OpenRecording, view: &TopOptions, global: &Global) -> anyhow::Result<()> {
    let policy = recording.policy.clone();
    broker::split(global.sandbox, Terms::of_files(policy.clone()), || {
        let interrupt = Interrupt::listen()?;
        let source = recording.totals()?;
        wait(&*source, &interrupt)?;
        tui::run(&*source, view, Some(policy), None, &interrupt)?;
        Ok(())
    })
}

/// The totals of a recording that was read, and the answer to a question. One that holds more samples than were kept is read
/// once more, where it can be.
fn answer(
    source: Box<dyn Source>,
    question: &Question,
    again: Option<OpenRecording>,
    interrupt: &Interrupt,
) -> anyhow::Result<(Arc<Snapshot>, QueryAnswer)> {
    let findings = source.history(question.has_lines());
    let answer = question.answer(&findings)?;
    let (Some(again), Some(history)) = (again, &findings.history) else {
        return Ok((findings.snapshot, answer));
    };
    if answer.rows_held == answer.rows_of_span {
        return Ok((findings.snapshot, answer));
    }
    let (snapshot, whole) = (Arc::clone(&findings.snapshot), history.outline());
    // What was kept may fill the memory.
    drop((findings, source));
    let mut n_records = 0;
    let mut progress = ProgressText::new();
    let answer = again.answer(question, &whole, &mut || {
        n_records += 1;
        if n_records % PROGRESS_RECORDS == 0 {
            progress.tell(&format!("reading again: {n_records} records"));
        }
        if interrupt.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if interrupt.is_set() {
        return Err(Failure::new(Kind::Interrupted, "interrupted while reading").into());
    }
    Ok((snapshot, answer))
}

/// Tells whether that can be printed there.
fn check(format: ReportFormat, selection: &Selection, is_terminal: bool) -> Result<(), Failure> {
    if format.has_stacks() && *selection != Selection::default() {
        let what = "stacks have every sample: --limit and --filter would leave some out";
        let remedy = "go tool pprof -focus TEXT FILE   shows a part of a profile";
        return Err(Failure::new(Kind::Usage, what).with_remedy(remedy));
    }
    if format == ReportFormat::Html && *selection != Selection::default() {
        let what = "a page has all objects: --limit and --filter would leave some out";
        return Err(Failure::new(Kind::Usage, what).with_remedy("the page itself has a filter"));
    }
    if format == ReportFormat::Html && is_terminal {
        let what = "a page is no text for a terminal";
        let remedy = "dataspace report --format html … > report.html";
        return Err(Failure::new(Kind::Usage, what).with_remedy(remedy));
    }
    if format == ReportFormat::Pprof && is_terminal {
        let what = "a profile is no text for a terminal";
        let remedy = "dataspace report --format pprof … > profile.pb.gz";
        return Err(Failure::new(Kind::Usage, what).with_remedy(remedy));
    }
    Ok(())
}

/// Tells whether the answer to a question can be printed so.
fn check_question(
    question: Option<&Question>,
    format: ReportFormat,
    selection: &Selection,
) -> Result<(), Failure> {
    if question.is_none() {
        return Ok(());
    }
    let (what, remedy) = if format == ReportFormat::Html {
        ("a page has all its views and answers no question", "dataspace report --by … --format csv")
    } else if format.has_stacks() {
        (
            "stacks have every sample: they answer no question",
            "dataspace report --by … --format csv",
        )
    } else if !selection.filter.is_empty() {
        let remedy = "dataspace report --by object --where 'object.contains(\"TEXT\")'";
        ("--filter is for objects", remedy)
    } else {
        return Ok(());
    };
    Err(Failure::new(Kind::Usage, what).with_remedy(remedy))
}

fn print(
    source: &dyn Source,
    format: ReportFormat,
    (options, files): (&TableOptions, &FilePolicy),
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let findings = source.findings();
    let snapshot = &*findings.snapshot;
    let selection = &options.selection;
    match format {
        ReportFormat::Table => table::render(snapshot, options, out)?,
        ReportFormat::Json => return json::write_line(snapshot, selection, out),
        ReportFormat::Csv => csv::write(&reduced(snapshot, selection), Window::All, out)?,
        ReportFormat::Folded => folded::write(&findings, usize::MAX, out)?,
        // The totals do not tell the time of the recording.
        ReportFormat::Pprof => pprof::write(&findings, None, usize::MAX, out)?,
        ReportFormat::Html => single::write(&EmbeddedData::of(source, files.clone())?, out)?,
    }
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit;
    use crate::fixture::{self, FakeSource};

    #[test]
    fn an_interrupted_reading_has_no_result() {
        let interrupt = Interrupt::default();
        interrupt.set();
        let error = wait(&FakeSource::new(fixture::running(), 9), &interrupt).unwrap_err();
        assert_eq!(exit::code(&error), exit::INTERRUPTED);
    }

    #[test]
    fn json_is_one_line_and_the_others_are_many() {
        let source = FakeSource::new(fixture::ended(), 0);
        let printed = |format| {
            let mut out = Vec::new();
            let (options, files) = (TableOptions::default(), FilePolicy::default());
            print(&source, format, (&options, &files), &mut out).unwrap();
            out
        };
        let n_lines = |format| printed(format).iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!(n_lines(ReportFormat::Json), 1);
        for format in [ReportFormat::Table, ReportFormat::Csv, ReportFormat::Folded] {
            assert!(n_lines(format) > 5, "{format:?}");
        }
        // RFC 1952, section 2.3.1.
        assert!(printed(ReportFormat::Pprof).starts_with(&[0x1f, 0x8b]));
    }

    #[test]
    fn what_would_leave_samples_out_or_spoil_a_terminal_is_refused() {
        let some = Selection { limit: Some(3), filter: String::new() };
        let all = Selection::default();
        assert!(check(ReportFormat::Folded, &some, false).is_err());
        assert!(check(ReportFormat::Csv, &some, true).is_ok());
        assert!(check(ReportFormat::Html, &some, false).is_err());
        assert!(check(ReportFormat::Html, &all, true).is_err());
        assert!(check(ReportFormat::Html, &all, false).is_ok());
        assert!(check(ReportFormat::Pprof, &all, true).is_err());
        assert!(check(ReportFormat::Pprof, &all, false).is_ok());
    }
}
