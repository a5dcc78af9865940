//! Pictures of the screen, compared with files.

use super::*;
use crate::config::{Output, Selection, TopOptions};
use crate::{fixture, golden};
use dataspace_proto::snapshot::Snapshot;
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};
use std::sync::Arc;
use std::time::Duration;

fn state(snapshot: Snapshot, keys: &str) -> ScreenState {
    let options = TopOptions {
        output: Output::Screen,
        interval: Duration::from_secs(1),
        duration: None,
        query: None,
        selection: Selection::default(),
        window: None,
        has_color: true,
    };
    let mut state = ScreenState::new(Arc::new(snapshot), &options);
    for c in keys.chars() {
        let code = if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) };
        state.press(KeyEvent::new(code, KeyModifiers::NONE));
    }
    state
}

fn picture(state: &mut ScreenState, width: u16, height: u16, has_color: bool) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state, &Theme::new(has_color))).unwrap();
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let area = buffer.area;
    let line = |y: u16| (0..area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..area.height).map(|y| line(y) + "\n").collect()
}

#[track_caller]
fn check(name: &str, snapshot: Snapshot, keys: &str, (width, height): (u16, u16)) {
    let buffer = picture(&mut state(snapshot, keys), width, height, true);
    golden::check(&format!("tui/golden/{name}.txt"), &text(&buffer));
}

#[test]
fn the_table_as_a_tree() {
    check("tree_80x24", fixture::running(), "", (80, 24));
}

#[test]
fn the_table_as_a_list_sorted_by_name_on_a_wide_terminal() {
    check("flat_by_name_120x24", fixture::running(), "tS", (120, 24));
}

#[test]
fn losses_and_warnings_are_visible() {
    check("lossy_100x20", fixture::lossy(), "", (100, 20));
}

#[test]
fn a_small_terminal_keeps_the_accounting() {
    check("lossy_40x10", fixture::lossy(), "", (40, 10));
}

#[test]
fn the_end_of_the_target_is_said() {
    check("ended_80x16", fixture::ended(), "", (80, 16));
}

#[test]
fn before_the_first_sample() {
    check("empty_80x12", fixture::empty(), "", (80, 12));
}

#[test]
fn the_page_about_an_object() {
    check("detail_80x30", fixture::running(), "jj\n", (80, 30));
}

#[test]
fn the_page_about_everything_has_the_warnings() {
    check("detail_total_80x30", fixture::lossy(), "\n", (80, 30));
}

#[test]
fn the_page_of_keys() {
    check("help_80x40", fixture::running(), "?", (80, 40));
}

#[test]
fn a_filter_while_it_is_typed_and_the_picture_paused() {
    check("filter_80x16", fixture::running(), " /int y", (80, 16));
}

#[test]
fn what_a_reason_means() {
    check("reason_80x24", fixture::running(), "Gk", (80, 24));
}

#[test]
fn losses_are_red_and_without_colour_bold() {
    let find = |has_color: bool| {
        let buffer = picture(&mut state(fixture::lossy(), ""), 120, 20, has_color);
        let y =
            (0..20).find(|&y| text(&buffer).lines().nth(y.into()).unwrap().contains("+ lost 300"));
        let line = text(&buffer).lines().nth(y.unwrap().into()).unwrap().to_owned();
        let x = u16::try_from(line.find("+ lost").unwrap()).unwrap();
        buffer[(x, y.unwrap())].style()
    };
    assert_eq!(find(true).fg, Some(Color::Red));
    assert_eq!(find(false).fg, Some(Color::Reset));
    assert!(find(false).add_modifier.contains(Modifier::BOLD));
}

#[test]
fn nothing_is_coloured_without_colour() {
    let buffer = picture(&mut state(fixture::lossy(), ""), 120, 24, false);
    assert!(buffer.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_size_and_no_key_panics(width in 0u16..130, height in 0u16..45, keys in "[?q \nwsStigGjk1-5/xy]{0,8}") {
        for snapshot in [fixture::lossy(), fixture::empty(), fixture::ended()] {
            picture(&mut state(snapshot, &keys), width, height, true);
        }
    }
}
