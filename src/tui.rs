//! The full-screen table.

mod control;
mod screen;
mod state;
mod view;

use crate::config::TopOptions;
use crate::interrupt::Interrupt;
use crate::session::Source;
use anyhow::Context;
use ratatui::crossterm::event;
use screen::Screen;
use state::State;
use std::time::{Duration, Instant};
use view::Theme;

/// How long a look at the keyboard lasts: signals and the end of the time are noticed after it.
const GLANCE: Duration = Duration::from_millis(50);

/// While the session is young the screen follows it closely: the first objects are waited for.
const YOUTH: Duration = Duration::from_secs(3);
const YOUNG_INTERVAL: Duration = Duration::from_millis(200);

/// Shows the session until somebody leaves the screen or the time given is over. The end of the
/// target does not end it: its final totals are there to be looked at.
pub(crate) fn run(
    source: &dyn Source,
    options: &TopOptions,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let mut screen = Screen::enter()?;
    let theme = Theme::new(options.has_color);
    let mut state = State::new(source.snapshot(), options);
    let start = Instant::now();
    let end = options.duration.map(|duration| start + duration);
    let mut refreshed = start;
    let mut is_changed = true;
    while !state.is_left() && !interrupt.is_set() && end.is_none_or(|end| Instant::now() < end) {
        let interval = if start.elapsed() < YOUTH { YOUNG_INTERVAL } else { options.interval };
        if refreshed.elapsed() >= interval.min(options.interval) {
            refreshed = Instant::now();
            state.update(source.snapshot());
            is_changed = true;
        }
        if is_changed {
            screen.draw(|frame| view::draw(frame, &mut state, &theme))?;
        }
        is_changed = read_keys(&mut state)?;
    }
    Ok(())
}

/// Waits a moment for a key and takes all that were pressed; says whether there was any event.
fn read_keys(state: &mut State) -> anyhow::Result<bool> {
    let mut wait = GLANCE;
    let mut is_any = false;
    while event::poll(wait).context("waiting for a key")? {
        // A resize is an event too: what it changes is drawn anew.
        if let Some(key) = event::read().context("reading a key")?.as_key_press_event() {
            state.press(key);
        }
        is_any = true;
        wait = Duration::ZERO;
        if state.is_left() {
            break;
        }
    }
    Ok(is_any)
}
