//! `dataspace top`: a live session, on the screen, as JSON lines or as one table.

use super::own_setting::with_own_settings;
use super::{comm_note, fetch, json};
use crate::answer;
use crate::broker::{self, Terms};
use crate::cli::{
    ConnectArgs, EventArgs, Global, TargetArgs, TopArgs, WatchArgs, When, WindowsArgs, asked_for,
};
use crate::client::{Client, RemoteSession};
use crate::config::{LiveOptions, Output, Selection, TopOptions};
use crate::diagnostic;
use crate::exit::{Failure, Kind};
use crate::export::csv;
use crate::file_source::FilePolicy;
use crate::header;
use crate::interrupt::Interrupt;
use crate::memory_bound;
use crate::selection::reduced;
use crate::session::question::Question;
use crate::session::{self, Source};
use crate::table::{self, TableOptions};
use crate::tui::{self, Leave, Watching};
use crate::way_out::WayOut;
use dataspace_collector::system::procfs::Procfs;
use dataspace_proto::api::SessionSpec;
use dataspace_proto::window::{Window, WindowLengths};
use std::io::{IsTerminal, Write, stderr, stdout};
use std::time::{Duration, Instant};

/// Number of objects that stay on the terminal after the screen is left.
const FAREWELL_LIMIT: usize = 12;

/// Time that a wait for the end of a session lasts before it begins anew.
const LOOK: Duration = Duration::from_secs(1);

/// Runs the command.
pub(super) fn run(args: TopArgs, global: &Global) -> anyhow::Result<()> {
    let view = args.view.resolve(global.color, stdout().is_terminal());
    diagnostic::start(global.verbose, view.output == Output::Screen);
    let view = with_own_settings(view)?;
    let is_watching = args.connect.is_watching(&args.target);
    if !is_watching {
        // Before a command is started, or the daemon attaches.
        check_window(view.window, args.windows.resolve())?;
    }
    // The same: what means nothing is said at once.
    let question = view.query.clone().map(Question::new).transpose()?;
    let name_note = comm_note::of(&args.target.comms, &Procfs::default());
    let output = view.output;
    let mut wanted =
        wanted(args.target, args.event, args.windows, args.connect, output, args.history)?;
    if args.debuginfod
        && let Wanted::Live(live) = &wanted
    {
        fetch::for_session(live, global)?;
    }
    if let Wanted::Live(live) = &mut wanted {
        live.has_lines = question.as_ref().is_some_and(Question::has_lines);
    }
    memory_bound::check_asked(args.memory_max)?;
    let (terms, memory_max) = (wanted.terms(view.output), args.memory_max);
    let way_out = WayOut::new(question.is_some_and(|it| it.has_reasons()))?;
    let work = || watch(wanted, &view, memory_max, is_watching, name_note.as_deref(), &way_out);
    match terms {
        Some(terms) => broker::split(global.sandbox, terms, work)?,
        None => return work(),
    }
    Ok(way_out.tell((!args.debuginfod).then_some("top -p PID"), &mut stdout())?)
}

/// Begins a session of our own and shows it as `view` says.
pub(super) fn run_live(
    live: LiveOptions,
    view: &TopOptions,
    global: &Global,
) -> anyhow::Result<()> {
    diagnostic::start(global.verbose, view.output == Output::Screen);
    let way_out = WayOut::new(false)?;
    let terms = Terms::of_session(&live);
    broker::split(global.sandbox, terms, || {
        watch(Wanted::Live(live), view, None, false, None, &way_out)
    })
}

/// Begins the session and shows it.
fn watch(
    wanted: Wanted,
    view: &TopOptions,
    memory_max: Option<u64>,
    is_watching: bool,
    name_note: Option<&str>,
    way_out: &WayOut,
) -> anyhow::Result<()> {
    memory_bound::set(memory_max);
    let interrupt = Interrupt::listen()?;
    let files = wanted.terms(view.output).map(|terms| terms.policy);
    let source = begun(wanted.start(&interrupt), &interrupt)?;
    if is_watching && view.output.is_single() && view.duration.is_none() {
        // It has totals already, and may never end.
        check_window(view.window, source.snapshot().window_lengths())?;
        return print_snapshot(&*source, view, &mut stdout().lock());
    }
    show(&*source, view, files, &interrupt)?;
    if matches!(view.output, Output::Table | Output::Screen) {
        way_out.note(&source.snapshot());
    }
    if let Some(note) = name_note.filter(|_| source.snapshot().accounting.kernel == 0) {
        // Nobody may be reading standard error.
        let _ = writeln!(stderr(), "{note}");
    }
    Ok(())
}

/// The session that has begun, unless somebody ended it before.
///
/// # Errors
/// Those of its beginning; where it was ended.
pub(super) fn begun(
    started: anyhow::Result<Box<dyn Source>>,
    interrupt: &Interrupt,
) -> anyhow::Result<Box<dyn Source>> {
    if interrupt.is_set() {
        if let Ok(source) = started {
            source.stop();
        }
        return Err(Failure::new(Kind::Interrupted, "interrupted before sampling began").into());
    }
    started
}

/// The session that is shown.
enum Wanted {
    /// One of our own.
    Live(LiveOptions),
    /// One that the daemon at a socket has: the number or name, if one was given.
    Watched(Client, Option<String>),
    /// One that the daemon is to begin, and that ends with us.
    Attached(Client, Box<SessionSpec>),
}

fn wanted(
    target: TargetArgs,
    event: EventArgs,
    windows: WindowsArgs,
    connect: ConnectArgs,
    output: Output,
    history_bytes: Option<u64>,
) -> anyhow::Result<Wanted> {
    let Some(socket) = connect.connect else {
        let mut live = windows.of(event.resolve(target.resolve("top")?, output));
        live.history_bytes = history_bytes.unwrap_or(live.history_bytes);
        return Ok(Wanted::Live(live));
    };
    let client = Client::new(&socket, connect.token_file.as_deref())?;
    if target.is_given() {
        let live = windows.of(event.resolve(target.resolve("top")?, output));
        return Ok(Wanted::Attached(client, Box::new(asked_for(live, history_bytes)?)));
    }
    if event.is_given() || windows.lengths.is_some() || history_bytes.is_some() {
        let what = "a session that the daemon has samples what it samples, and has its windows and history";
        let remedy = format!("{} -p PID -e EVENT   one of your own", client.typed_top());
        return Err(Failure::new(Kind::Usage, what).with_remedy(remedy).into());
    }
    Ok(Wanted::Watched(client, connect.session))
}

impl Wanted {
    /// The broker's terms, where it is a session of our own.
    fn terms(&self, output: Output) -> Option<Terms> {
        let Self::Live(live) = self else { return None };
        let mut terms = Terms::of_session(live);
        terms.policy.shows_sources = output == Output::Screen;
        Some(terms)
    }

    fn start(self, interrupt: &Interrupt) -> anyhow::Result<Box<dyn Source>> {
        Ok(match self {
            Self::Live(live) => session::start_live(&live, &|| interrupt.is_set())?,
            Self::Watched(client, key) => Box::new(RemoteSession::watch(client, key.as_deref())?),
            Self::Attached(client, spec) => Box::new(RemoteSession::attach(client, &spec)?),
        })
    }
}

/// Tells whether a session with `lengths` has the window that was asked for.
fn check_window(wanted: Option<Window>, lengths: WindowLengths) -> Result<(), Failure> {
    let Some(wanted) = wanted.filter(|wanted| lengths.windows().all(|window| window != *wanted))
    else {
        return Ok(());
    };
    let windows: Vec<String> = lengths.windows().map(|window| window.to_string()).collect();
    let what = format!("the session has no window {wanted}: it has {}", windows.join(", "));
    let remedy = "dataspace top --windows 300,60,5 --window 5s -p PID   a session with others";
    Err(Failure::new(Kind::Usage, what).with_remedy(remedy))
}

/// Shows the session until the target ends, the time is over or somebody ends it; then ends it
/// and gives its results. Code is read by the rules of `files`, where the session is in this process; then data can be
/// watched.
pub(super) fn show(
    source: &dyn Source,
    view: &TopOptions,
    files: Option<FilePolicy>,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    check_window(view.window, source.snapshot().window_lengths())?;
    let mut out = stdout().lock();
    let questions = Question::all(view)?;
    let begin = |pid, place| watching(pid, place, interrupt);
    let watch: Option<tui::Watch<'_>> = if files.is_some() { Some(&begin) } else { None };
    match view.output {
        Output::Json => print_json(source, view, interrupt, &mut out),
        Output::Table | Output::JsonOnce | Output::Csv => {
            announce(source, view.duration, &mut stderr().lock());
            print_once(source, view, interrupt, &mut out)
        }
        Output::Screen => {
            let shown = match questions.is_empty() {
                true => tui::run(source, view, files, watch, interrupt),
                false => tui::asked::run(source, &questions, view, interrupt),
            };
            if shown.as_ref().is_ok_and(|shown| *shown != Leave::HungUp)
                && ends_with_answer(source, view)
            {
                let printed = print_snapshot(source, view, &mut out);
                source.stop();
                return printed;
            }
            source.stop();
            if shown? == Leave::HungUp {
                return Ok(());
            }
            if !questions.is_empty() {
                return print_snapshot(source, view, &mut out);
            }
            let limit = view.selection.limit.unwrap_or(FAREWELL_LIMIT);
            let options = TableOptions {
                window: Window::All,
                selection: Selection { limit: Some(limit), ..view.selection.clone() },
                names: view.names,
                has_color: view.has_color,
                width: table::terminal_width(),
            };
            table::render(&source.snapshot(), &options, &mut out)?;
            Ok(())
        }
    }
}

/// Begins to watch a place of a process.
fn watching(pid: i32, place: String, interrupt: &Interrupt) -> anyhow::Result<Watching> {
    let (live, options) = WatchArgs::of(pid, place).resolve(When::Never, true)?;
    let source = session::start_live(&live, &|| interrupt.is_set())?;
    Ok(Watching { source, options })
}

/// One line each interval, and one with the final totals.
fn print_json(
    source: &dyn Source,
    view: &TopOptions,
    interrupt: &Interrupt,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let start = Instant::now();
    let end = view.duration.map(|duration| start + duration);
    let mut next = start + view.interval;
    while !is_over_by(next, end, source, interrupt) {
        print_line(source, view, out)?;
        // Not `now + interval`: the time that printing takes must not add up.
        next += view.interval;
    }
    if ends_with_answer(source, view) {
        print_line(source, view, out)?;
        return stop(source, interrupt);
    }
    stop(source, interrupt)?;
    print_line(source, view, out)
}

/// Tells whether the last thing to be told is an answer that can only be had before the end.
fn ends_with_answer(source: &dyn Source, view: &TopOptions) -> bool {
    view.query.is_some() && !source.answers_at_end()
}

/// The totals as they stand, or the answer to the question, as a line of JSON.
fn print_line(source: &dyn Source, view: &TopOptions, out: &mut dyn Write) -> anyhow::Result<()> {
    match view.query.clone() {
        Some(query) => json::write(&source.ask(&Question::new(query)?)?, out),
        None => json::write_line(&source.snapshot(), &view.selection, out),
    }
}

/// One table, JSON object or sheet with the final totals.
fn print_once(
    source: &dyn Source,
    view: &TopOptions,
    interrupt: &Interrupt,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    wait_for_end(source, view.duration, interrupt);
    if ends_with_answer(source, view) {
        print_snapshot(source, view, out)?;
        return stop(source, interrupt);
    }
    stop(source, interrupt)?;
    print_snapshot(source, view, out)
}

/// Waits until the session has ended, its time is over, or somebody ends it.
pub(super) fn wait_for_end(source: &dyn Source, duration: Option<Duration>, interrupt: &Interrupt) {
    let end = duration.map(|duration| Instant::now() + duration);
    while !is_over_by(Instant::now() + LOOK, end, source, interrupt) {}
}

/// Waits until `next`, and tells whether it was over before that: at `end`, with the session, or interrupted.
fn is_over_by(
    next: Instant,
    end: Option<Instant>,
    source: &dyn Source,
    interrupt: &Interrupt,
) -> bool {
    interrupt.wait_until(end.map_or(next, |end| end.min(next)), || source.is_finished());
    end.is_some_and(|end| end <= Instant::now()) || interrupt.is_set() || source.is_finished()
}

/// The totals as they stand, as one table, JSON object or sheet.
fn print_snapshot(
    source: &dyn Source,
    view: &TopOptions,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    if view.output == Output::JsonOnce {
        return print_line(source, view, out);
    }
    let snapshot = source.snapshot();
    let options = TableOptions {
        window: view.window.unwrap_or_default(),
        selection: view.selection.clone(),
        names: view.names,
        has_color: view.has_color,
        width: table::terminal_width(),
    };
    let questions = Question::all(view)?;
    if let Some(question) = questions.first() {
        if view.output == Output::Csv {
            return Ok(answer::write_csv(question, &source.ask(question)?, out)?);
        }
        return answer::write_asked(source, &questions, &options, out);
    }
    if view.output == Output::Csv {
        return Ok(csv::write(&reduced(&snapshot, &view.selection), options.window, out)?);
    }
    table::render(&snapshot, &options, out)?;
    out.flush()?;
    Ok(())
}

/// Ends the session; a second interrupt ends us.
pub(super) fn stop(source: &dyn Source, interrupt: &Interrupt) -> anyhow::Result<()> {
    if interrupt.is_set() {
        interrupt.end_at_next()?;
    }
    source.stop();
    Ok(())
}

/// Says on standard error what goes on while nothing is printed.
pub(super) fn announce(source: &dyn Source, duration: Option<Duration>, out: &mut dyn Write) {
    let snapshot = source.snapshot();
    let events: Vec<String> =
        header::events(&snapshot).into_iter().map(|event| event.text).collect();
    let target = header::target(&snapshot);
    let name = target.first().map_or("", |segment| segment.text.as_str());
    let until = match duration {
        Some(duration) => format!("for {} s", duration.as_secs_f64()),
        None => "until it ends or Ctrl-C".to_owned(),
    };
    // Nobody may be reading standard error; the table is what was asked for.
    let with = if snapshot.events.is_empty() {
        String::new()
    } else {
        format!(" with {}", events.join(", "))
    };
    let _ = writeln!(out, "sampling {name}{with} {until}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Names, ScreenSettings};
    use crate::fixture::{self, FakeSource};
    use std::collections::BTreeMap;
    use std::time::Duration;

    const FOREVER: u64 = u64::MAX;

    fn view(duration: Option<Duration>) -> TopOptions {
        TopOptions {
            output: Output::Json,
            interval: Duration::from_millis(5),
            duration,
            selection: Selection::default(),
            query: None,
            newest: None,
            window: None,
            names: Names::default(),
            has_color: false,
            screen: ScreenSettings::default(),
            measure: None,
            own_keys: BTreeMap::new(),
            is_ascii: false,
        }
    }

    fn json_lines(
        n_snapshots: u64,
        duration: Option<Duration>,
        interrupt: &Interrupt,
    ) -> Vec<bool> {
        let source = FakeSource::new(fixture::running(), n_snapshots);
        let mut out = Vec::new();
        print_json(&source, &view(duration), interrupt, &mut out).unwrap();
        let lines = out.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let parsed = lines.map(|line| serde_json::from_slice::<serde_json::Value>(line).unwrap());
        parsed.map(|line| line["target"]["running"].as_bool().unwrap()).collect()
    }

    #[test]
    fn the_last_json_line_has_the_final_totals() {
        assert_eq!(json_lines(3, None, &Interrupt::default()), [true, true, true, false]);
        assert_eq!(json_lines(0, None, &Interrupt::default()), [false]);
    }

    #[test]
    fn the_duration_ends_an_endless_target() {
        let lines = json_lines(FOREVER, Some(Duration::from_millis(30)), &Interrupt::default());
        assert_eq!(lines.last(), Some(&false));
        assert!(lines.iter().filter(|running| **running).count() <= 6, "{lines:?}");
    }

    #[test]
    fn an_interrupt_ends_in_order_with_results() {
        let interrupt = Interrupt::default();
        interrupt.set();
        assert_eq!(json_lines(FOREVER, None, &interrupt), [false]);
        let source = FakeSource::new(fixture::running(), FOREVER);
        let mut out = Vec::new();
        let table = TopOptions { output: Output::Table, ..view(None) };
        print_once(&source, &table, &interrupt, &mut out).unwrap();
        let table = String::from_utf8(out).unwrap();
        assert!(table.contains("totals are final") && table.contains("<Total>"), "{table}");
    }

    #[test]
    fn once_is_one_json_object_where_json_is_wanted() {
        let once = TopOptions { output: Output::JsonOnce, ..view(None) };
        let printed = |print: &dyn Fn(&dyn Source, &mut Vec<u8>)| {
            let source = FakeSource::new(fixture::running(), FOREVER);
            let mut out = Vec::new();
            print(&source, &mut out);
            let snapshot: serde_json::Value = serde_json::from_slice(&out).unwrap();
            snapshot["target"]["running"].as_bool().unwrap()
        };
        let interrupt = Interrupt::default();
        interrupt.set();
        assert!(printed(&|source, out| print_snapshot(source, &once, out).unwrap()), "now");
        assert!(!printed(&|source, out| print_once(source, &once, &interrupt, out).unwrap()));
    }

    #[test]
    fn a_window_that_the_session_has_not_got_is_refused() {
        let check = |wanted: Window, seconds: Vec<u64>| {
            let lengths = fixture::with_windows(seconds).window_lengths();
            check_window(Some(wanted), lengths).map_err(|failure| failure.to_string())
        };
        assert_eq!(check(Window::Last(5), vec![300, 5]), Ok(()));
        assert_eq!(check(Window::All, vec![300, 5]), Ok(()));
        let error = check(Window::Last(10), vec![300, 5]).unwrap_err();
        assert!(error.contains("no window 10s: it has 5s, 300s, all"), "{error}");
    }

    #[test]
    fn the_note_names_target_events_and_end() {
        let note = |duration: Option<Duration>| {
            let mut out = Vec::new();
            let source = FakeSource::new(fixture::running(), FOREVER);
            announce(&source, duration, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert!(
            note(None).starts_with("sampling pid 4711 order-book with cpu-clock (skid after-one")
        );
        assert!(note(None).ends_with("until it ends or Ctrl-C\n"));
        assert!(note(Some(Duration::from_millis(2500))).ends_with("for 2.5 s\n"));
    }
}
