//! The full screen.

pub(crate) mod asked;
mod control;
mod errand;
mod keyboard;
mod lens;
mod look;
mod looker;
mod page;
mod rows;
mod screen;
mod state;
mod trend;
mod variable;
mod view;

use crate::config::TopOptions;
use crate::file_source::FilePolicy;
use crate::interrupt::Interrupt;
use crate::session::Source;
use crate::session::inspection::Inspector;
use crate::session::question::Question;
use crate::text::visible;
use anyhow::Context;
use errand::WatchedPlace;
use keyboard::{KeyInput, Keyboard};
use looker::Looker;
use ratatui::crossterm::event::Event;
use screen::Screen;
use state::ScreenState;
use std::io;
use std::thread;
use std::time::{Duration, Instant};
use view::Theme;

/// Time that a look at the keyboard lasts: signals and the end of the time are noticed after it.
const GLANCE: Duration = Duration::from_millis(50);

/// The same while the history is being asked.
const BLINK: Duration = Duration::from_millis(5);

/// While the session is young the screen follows it closely: the first objects are waited for.
const YOUTH: Duration = Duration::from_secs(3);
const YOUNG_INTERVAL: Duration = Duration::from_millis(100);

/// Reason for which the screen was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// By a key, a signal or the end of the time.
    Asked,
    /// By Ctrl-C, which leaves all that is open.
    AtOnce,
    /// The terminal is gone: nothing can be shown any more.
    HungUp,
}

/// Data that is watched beside a session.
pub(crate) struct Watching {
    pub(crate) source: Box<dyn Source>,
    /// Presentation of it.
    pub(crate) options: TopOptions,
}

/// Begins to watch a place of a process, by its number.
pub(crate) type Watch<'a> = &'a dyn Fn(i32, String) -> anyhow::Result<Watching>;

/// Shows the session until somebody leaves the screen or the time given is over. The end of the
/// target does not end it: its final totals are there to be looked at. Code
/// and sources are read by the rules of `files`, where the session is in this process; of a live one data can be watched.
pub(crate) fn run(
    source: &dyn Source,
    options: &TopOptions,
    files: Option<FilePolicy>,
    watch: Option<Watch<'_>>,
    interrupt: &Interrupt,
) -> anyhow::Result<Leave> {
    let keyboard = Keyboard::open()?;
    let screen = Screen::enter()?;
    let theme =
        Theme::new(options.has_color, options.screen.theme.unwrap_or_default(), options.is_ascii);
    let mut state = ScreenState::new(source.snapshot(), options);
    let inspector = files.map(Inspector::new);
    thread::scope(|scope| {
        let looker = Looker::start(scope, source, inspector).context("starting a thread")?;
        let shown = Shown { source, options, watch, keyboard, screen, theme, looker };
        shown.run(&mut state, interrupt)
    })
}

/// A session on the screen.
struct Shown<'a> {
    source: &'a dyn Source,
    options: &'a TopOptions,
    watch: Option<Watch<'a>>,
    keyboard: Keyboard,
    screen: Screen,
    theme: Theme,
    looker: Looker,
}

impl Shown<'_> {
    fn run(mut self, state: &mut ScreenState, interrupt: &Interrupt) -> anyhow::Result<Leave> {
        let start = Instant::now();
        let end = self.options.duration.map(|duration| start + duration);
        let is_over = || interrupt.is_set() || end.is_some_and(|end| end <= Instant::now());
        let mut refreshed = start;
        let mut is_changed = true;
        while !state.is_left() && !is_over() {
            let interval =
                if start.elapsed() < YOUTH { YOUNG_INTERVAL } else { self.options.interval };
            if refreshed.elapsed() >= interval.min(self.options.interval) {
                refreshed = Instant::now();
                is_changed |= state.update(self.source.snapshot());
            }
            is_changed |= self.looker.look(state, self.screen.width());
            if is_changed {
                let drawn = self.screen.draw(|frame| view::draw(frame, state, &self.theme));
                if let Err(error) = drawn {
                    return undrawn(error, &self.keyboard);
                }
            }
            let glance = if self.looker.is_looking() { BLINK } else { GLANCE };
            match read_keys(&self.keyboard, state, glance)? {
                KeyInput::HungUp => return Ok(Leave::HungUp),
                KeyInput::Event(_) => is_changed = true,
                KeyInput::Nothing => is_changed = false,
            }
            if state.takes_suspension() {
                self.screen.suspend()?;
            }
            if let Some(place) = state.takes_watched() {
                let rest = end.map(|end| end.saturating_duration_since(Instant::now()));
                match self.watched(place, state, rest, interrupt)? {
                    Leave::Asked => {}
                    left => return Ok(left),
                }
                is_changed = true;
            }
        }
        Ok(Leave::Asked)
    }

    /// Shows who touches some data, until that is left.
    fn watched(
        &mut self,
        watched: WatchedPlace,
        state: &mut ScreenState,
        rest: Option<Duration>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Leave> {
        let Some(watch) = self.watch else {
            state.tell("only what runs here, and this command samples, can be watched");
            return Ok(Leave::Asked);
        };
        let WatchedPlace { pid, place } = watched;
        let shown = watch(pid, place).and_then(|Watching { source, options }| {
            let questions = Question::all(&options)?;
            let options = TopOptions { duration: rest, ..options };
            let screen = &mut self.screen;
            let left =
                asked::show(&*source, &questions, &options, interrupt, &self.keyboard, screen);
            source.stop();
            left
        });
        if let Err(error) = &shown {
            state.tell(visible(&format!("{error:#}")));
        }
        Ok(shown.unwrap_or(Leave::Asked))
    }
}

/// Leaves the screen that cannot be drawn on: because the terminal is gone, or with the error.
fn undrawn(error: io::Error, keyboard: &Keyboard) -> anyhow::Result<Leave> {
    match keyboard.wait(Duration::ZERO) {
        Ok(KeyInput::HungUp) => Ok(Leave::HungUp),
        _ => Err(error).context("drawing on the terminal"),
    }
}

/// Waits a moment for a key and takes all that were pressed; gives the last thing that happened.
fn read_keys(
    keyboard: &Keyboard,
    state: &mut ScreenState,
    glance: Duration,
) -> anyhow::Result<KeyInput> {
    let mut last = KeyInput::Nothing;
    loop {
        let wait = if matches!(last, KeyInput::Nothing) { glance } else { Duration::ZERO };
        match keyboard.wait(wait)? {
            KeyInput::Nothing => return Ok(last),
            KeyInput::HungUp => return Ok(KeyInput::HungUp),
            KeyInput::Event(event) => {
                if let Some(key) = event.as_key_press_event() {
                    state.press(key);
                } else if let Event::Mouse(mouse) = event {
                    state.point(mouse);
                } else if let Event::Resize(..) = event {
                    // Rows of pages are as wide as the screen.
                    state.is_stale = true;
                }
                last = KeyInput::Event(event);
            }
        }
        if state.is_left() {
            return Ok(last);
        }
    }
}
