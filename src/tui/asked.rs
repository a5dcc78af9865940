//! The answer to a question on the full screen, asked again and again.

use super::control::is_control;
use super::keyboard::{KeyInput, Keyboard};
use super::screen::Screen;
use super::{GLANCE, Leave, undrawn};
use crate::answer;
use crate::config::{Selection, TopOptions};
use crate::interrupt::Interrupt;
use crate::session::Source;
use crate::session::question::Question;
use crate::table::TableOptions;
use dataspace_proto::window::Window;
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout};
use ratatui::widgets::Paragraph;
use std::time::Instant;

/// Lines of the table that are no rows: header, titles, sums, accounts, the key.
const N_OTHER_LINES: usize = 12;

/// Shows the answer until somebody leaves the screen or the time given is over.
///
/// # Errors
/// Where the terminal cannot be drawn on, or the session has no answers.
pub(crate) fn run(
    source: &dyn Source,
    questions: &[Question],
    options: &TopOptions,
    interrupt: &Interrupt,
) -> anyhow::Result<Leave> {
    let keyboard = Keyboard::open()?;
    show(source, questions, options, interrupt, &keyboard, &mut Screen::enter()?)
}

/// The same on a screen that was entered.
pub(super) fn show(
    source: &dyn Source,
    questions: &[Question],
    options: &TopOptions,
    interrupt: &Interrupt,
    keyboard: &Keyboard,
    screen: &mut Screen,
) -> anyhow::Result<Leave> {
    let end = options.duration.map(|duration| Instant::now() + duration);
    let mut text = asked(source, questions, options, screen.height())?;
    let mut refreshed = Instant::now();
    while !interrupt.is_set() && end.is_none_or(|end| Instant::now() < end) {
        if refreshed.elapsed() >= options.interval {
            refreshed = Instant::now();
            match asked(source, questions, options, screen.height()) {
                Ok(newer) => text = newer,
                // A session that is gone answers no more: its last answer stays.
                Err(_) if source.is_finished() => {}
                Err(error) => return Err(error),
            }
        }
        let draw = |frame: &mut Frame<'_>| {
            let [page, hint] =
                Layout::vertical([Constraint::Min(1), Constraint::Length(1)]).areas(frame.area());
            frame.render_widget(Paragraph::new(text.as_str()), page);
            frame.render_widget(Paragraph::new("q leaves"), hint);
        };
        if let Err(error) = screen.draw(draw) {
            return undrawn(error, keyboard);
        }
        match keyboard.wait(GLANCE)? {
            KeyInput::HungUp => return Ok(Leave::HungUp),
            KeyInput::Event(event) => {
                let Some(key) = event.as_key_press_event() else { continue };
                if is_control(key, 'c') {
                    return Ok(Leave::AtOnce);
                }
                if is_control(key, 'z') {
                    screen.suspend()?;
                }
                if matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                    break;
                }
            }
            KeyInput::Nothing => {}
        }
    }
    Ok(Leave::Asked)
}

/// The answer as it is now, in so many lines.
fn asked(
    source: &dyn Source,
    questions: &[Question],
    view: &TopOptions,
    height: usize,
) -> anyhow::Result<String> {
    // A blank line and titles are before each table but the first.
    let n_tables = questions.len().max(1);
    let n_rows = height.saturating_sub(N_OTHER_LINES + 2 * (n_tables - 1));
    let limit = (n_rows / n_tables).max(1);
    let options = TableOptions {
        window: Window::All,
        selection: Selection { limit: Some(limit), ..Selection::default() },
        names: view.names,
        has_color: false,
        width: None,
    };
    let mut text = Vec::new();
    answer::write_asked(source, questions, &options, &mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
