//! Pictures of the screen, compared with files.

use super::*;
use crate::config::ThemeName;
use crate::fixture::sampled::Sampled;
use crate::session::Source as _;
use crate::tui::page::{Meaning, Subject};
use crate::tui::state::tests::{look_at, options, press, press_on};
use crate::{fixture, golden};
use dataspace_proto::snapshot::Snapshot;
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyModifiers, MouseEvent, MouseEventKind};
use ratatui::style::{Color, Modifier};
use std::sync::Arc;

fn state(snapshot: Snapshot, keys: &str) -> ScreenState {
    let mut state = ScreenState::new(Arc::new(snapshot), &options());
    press(&mut state, keys);
    state
}

fn picture(state: &mut ScreenState, width: u16, height: u16, has_color: bool) -> Buffer {
    let theme = Theme::new(has_color, ThemeName::Dark, false);
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    state.is_stale = true;
    look_at(state, &fixture::FakeSource::new(fixture::running(), 9), None, width.into());
    terminal.draw(|frame| draw(frame, state, &theme)).unwrap();
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
fn the_table() {
    check("tree_80x24", fixture::running(), "", (80, 24));
    check("tree_160x50", fixture::running(), "", (160, 50));
    check("flat_by_name_120x24", fixture::running(), "\tS", (120, 24));
    check("descriptors_80x24", fixture::running(), "n", (80, 24));
}

#[test]
fn losses_and_warnings_are_visible() {
    check("lossy_100x20", fixture::lossy(), "", (100, 20));
    check("lossy_40x10", fixture::lossy(), "", (40, 10));
    check("warnings_80x24", fixture::lossy(), "!", (80, 24));
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
    check("object_80x24", fixture::running(), "j\n", (80, 24));
    check("object_160x50", fixture::running(), "j\n", (160, 50));
    // The history was asked for one window, and tells of no other.
    check("object_filtered_80x24", fixture::running(), "jf\n", (80, 24));
}

/// The pages that need code or the samples themselves, of a session that has them.
fn check_sampled(name: &str, keys: &str) {
    let source = Sampled::new();
    for (width, height) in [(80, 24), (160, 50)] {
        let mut inspector = source.inspector();
        let mut state = ScreenState::new(source.snapshot(), &options());
        let theme = Theme::new(true, ThemeName::Dark, false);
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let mut draw_now = |state: &mut ScreenState| {
            state.is_stale = true;
            look_at(state, &source, Some(&mut inspector), width.into());
            terminal.draw(|frame| draw(frame, state, &theme)).unwrap();
            text(terminal.backend().buffer())
        };
        let mut shown = draw_now(&mut state);
        for key in keys.chars() {
            press_on(&mut state, key);
            shown = draw_now(&mut state);
        }
        golden::check(&format!("tui/golden/{name}_{width}x{height}.txt"), &shown);
    }
}

#[test]
fn the_layout_of_a_type() {
    check_sampled("layout", "jjjl");
}

#[test]
fn the_code_of_a_function() {
    check_sampled("code", "jjjc");
}

#[test]
fn a_measurement() {
    check_sampled("measurement", "m");
}

#[test]
fn the_variables_of_a_type() {
    check_sampled("variables", "v");
}

#[test]
fn titles_of_columns_stay_where_a_page_scrolls() {
    let source = Sampled::new();
    let mut inspector = source.inspector();
    let mut state = ScreenState::new(source.snapshot(), &options());
    let theme = Theme::new(true, ThemeName::Dark, false);
    let mut terminal = Terminal::new(TestBackend::new(100, 18)).unwrap();
    for key in "jjjcG".chars() {
        press_on(&mut state, key);
        look_at(&mut state, &source, Some(&mut inspector), 100);
        terminal.draw(|frame| draw(frame, &mut state, &theme)).unwrap();
    }
    let shown = text(terminal.backend().buffer());
    let lines: Vec<&str> = shown.lines().collect();
    let top = lines.iter().position(|line| line.contains(" code ")).unwrap();
    assert!(lines[top + 1].contains("WAITED") && lines[top + 1].contains("ADDRESS"), "{shown}");
    assert_eq!(shown.matches("WAITED").count(), 1, "{shown}");
    assert_eq!(usize::from(state.body.y), top + 2, "a click finds its row");
    // The wheel comes to the last row as the key did.
    state.pages.last_mut().unwrap().at.step(isize::MIN, 1000);
    let wheel = MouseEvent {
        kind: MouseEventKind::ScrollDown,
        column: 5,
        row: 8,
        modifiers: KeyModifiers::NONE,
    };
    for _ in 0..200 {
        state.point(wheel);
        terminal.draw(|frame| draw(frame, &mut state, &theme)).unwrap();
    }
    assert!(!text(terminal.backend().buffer()).contains(" more "), "rows are left below");
}

#[test]
fn a_click_finds_its_row_wherever_a_page_stands() {
    let mut state = state(fixture::running(), "j\n");
    let theme = Theme::new(false, ThemeName::Dark, false);
    let mut terminal = Terminal::new(TestBackend::new(100, 20)).unwrap();
    look_at(&mut state, &fixture::FakeSource::new(fixture::running(), 9), None, 100);
    let n_rows = state.pages.last().unwrap().rows.len();
    assert!(n_rows > 25, "it has to scroll over several tables: {n_rows}");
    for _ in 0..n_rows {
        terminal.draw(|frame| draw(frame, &mut state, &theme)).unwrap();
        let shown = text(terminal.backend().buffer());
        let lines: Vec<&str> = shown.lines().collect();
        let page = state.pages.last().unwrap();
        for at in 0..state.body.height.into() {
            let Some(row) = page.rows.get(page.at.at_line(at)) else { continue };
            let line = lines[usize::from(state.body.y) + at];
            let first = row.segments.first().map_or("", |segment| segment.text.trim_end());
            assert!(line.contains(first), "row {at}, {first:?}:\n{shown}");
        }
        press_on(&mut state, 'j');
    }
}

#[test]
fn variables_lead_to_their_layout_and_back() {
    let source = Sampled::new();
    let mut inspector = source.inspector();
    let mut state = ScreenState::new(source.snapshot(), &options());
    let mut go = |state: &mut ScreenState, keys: &str| {
        for key in keys.chars() {
            press_on(state, key);
            look_at(state, &source, Some(&mut inspector), 100);
        }
    };
    go(&mut state, "v");
    let at = |state: &ScreenState| {
        let rows = state.listing().rows.iter();
        let mut labels = rows.map(|row| &*state.snapshot.objects[row.object_idx].name);
        labels.position(|name| name == "stats · g_stats").unwrap()
    };
    let down = "j".repeat(at(&state));
    go(&mut state, &down);
    go(&mut state, "l");
    let page = state.pages.last().unwrap();
    let is_member = |row: &PageRow| matches!(row.meaning, Meaning::Member { .. });
    let member = page.rows.iter().position(is_member).expect("the layout has measured members");
    go(&mut state, &"j".repeat(member));
    go(&mut state, "\n");
    let Some(Subject::Object(id)) = state.pages.last().map(|page| &page.subject) else {
        panic!("{:?}", state.message)
    };
    let object = state.object(*id).unwrap();
    assert!(object.name.starts_with("stats · g_stats."), "{}", object.name);
    assert!(object.object.starts_with("{structure:stats} · g_stats."), "{}", object.object);
    assert!(!state.descriptor(object).contains('·'));
}

#[test]
fn the_cache_lines_that_threads_share() {
    check_sampled("threads", "t");
}

#[test]
fn samples_by_second() {
    check("time_80x24", fixture::running(), "jh", (80, 24));
    check("time_160x50", fixture::running(), "jh", (160, 50));
}

#[test]
fn keys_to_group_by_and_what_they_make() {
    check("group_80x24", fixture::running(), "g", (80, 24));
    check("by_thread_80x24", fixture::running(), "gjjj\n", (80, 24));
    check("by_thread_160x50", fixture::running(), "gjjj\n", (160, 50));
}

#[test]
fn the_columns_to_choose() {
    check("columns_80x24", fixture::running(), "o", (80, 24));
}

#[test]
fn the_page_of_keys() {
    check("help_80x70", fixture::running(), "?", (80, 70));
}

#[test]
fn filters_are_said() {
    check("filter_80x16", fixture::running(), " /int y", (80, 16));
    check("condition_80x16", fixture::running(), "jf", (80, 16));
}

#[test]
fn what_a_reason_means() {
    check("reason_80x24", fixture::running(), "Gk", (80, 24));
}

#[test]
fn a_terminal_without_other_letters_has_those_of_ascii() {
    let theme = Theme::new(false, ThemeName::Dark, true);
    for keys in ["", "\n", "h", "?"] {
        let mut state = state(fixture::lossy(), keys);
        let mut terminal = Terminal::new(TestBackend::new(160, 60)).unwrap();
        terminal.draw(|frame| draw(frame, &mut state, &theme)).unwrap();
        let text = text(terminal.backend().buffer());
        assert!(text.is_ascii(), "{keys:?}\n{text}");
        assert!(!text.contains('?') || keys == "?" || text.matches('?').count() == 1, "{text}");
    }
}

#[test]
fn losses_are_red_and_without_colour_bold() {
    let find = |has_color: bool| {
        let buffer = picture(&mut state(fixture::lossy(), ""), 120, 20, has_color);
        let y = (0..20).find(|&y| text(&buffer).lines().nth(y.into()).unwrap().contains("lost 2"));
        let line = text(&buffer).lines().nth(y.unwrap().into()).unwrap().to_owned();
        let x = u16::try_from(line.find("lost 2").unwrap()).unwrap();
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
