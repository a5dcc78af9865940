//! Keys and what they change.

use super::*;
use crate::arrangement::SortKey;
use crate::config::{Output, ScreenSettings, Selection};
use crate::fixture::{self, FakeSource};
use crate::session::Source;
use crate::session::inspection::Inspector;
use crate::tui::look;
use crate::tui::page::Meaning;
use std::collections::BTreeMap;
use std::time::Duration;

/// Options of a screen of which nothing else is said.
pub(in crate::tui) fn options() -> TopOptions {
    TopOptions {
        output: Output::Screen,
        interval: Duration::from_secs(1),
        duration: None,
        query: None,
        newest: None,
        selection: Selection::default(),
        window: None,
        names: Names::Source,
        has_color: true,
        screen: ScreenSettings::default(),
        measure: None,
        own_keys: BTreeMap::new(),
        is_ascii: false,
    }
}

fn state() -> ScreenState {
    let mut state = ScreenState::new(Arc::new(fixture::running()), &options());
    state.at.fit(state.listing().rows.len(), 5);
    state
}

/// Presses `keys`, and lets the history answer after each.
pub(in crate::tui) fn press(state: &mut ScreenState, keys: &str) {
    let source = FakeSource::new(fixture::running(), 9);
    for c in keys.chars() {
        press_on(state, c);
        look_at(state, &source, None, 80);
    }
}

/// Asks until there is nothing more to ask.
pub(in crate::tui) fn look_at(
    state: &mut ScreenState,
    source: &dyn Source,
    mut inspector: Option<&mut Inspector>,
    width: usize,
) {
    while state.is_stale {
        let Some(wish) = look::wish(state, width) else { return };
        look::take(state, look::see(wish, source, inspector.as_deref_mut()));
    }
}

/// Presses one key.
pub(in crate::tui) fn press_on(state: &mut ScreenState, key: char) {
    let code = match key {
        '\n' => KeyCode::Enter,
        '\t' => KeyCode::Tab,
        '\x1b' => KeyCode::Esc,
        '\x08' => KeyCode::Backspace,
        '⇟' => KeyCode::PageDown,
        '⇞' => KeyCode::PageUp,
        '⌂' => KeyCode::Home,
        c => KeyCode::Char(c),
    };
    state.press(KeyEvent::new(code, KeyModifiers::NONE));
}

#[test]
fn an_answer_for_a_page_that_was_closed_opens_nothing() {
    let source = FakeSource::new(fixture::running(), 9);
    let mut state = state();
    press(&mut state, "\n");
    press_on(&mut state, 'c');
    let late = look::wish(&mut state, 80).unwrap();
    press_on(&mut state, 'q');
    look::take(&mut state, look::see(late, &source, None));
    assert!(state.pages.is_empty(), "the code was asked for on a page that is gone");
    assert!(state.is_stale, "what is seen now is asked for");
}

#[test]
fn samples_that_the_history_lacks_hide_no_filter() {
    let mut state = state();
    press(&mut state, "f");
    state.missing = Some("the history has 8 of 9 samples of this window".to_owned());
    let said = crate::tui::view::news(&state).text;
    assert!(said.starts_with("only ") && said.ends_with("8 of 9 samples of this window"), "{said}");
}

#[test]
fn a_page_below_another_gets_its_rows_when_that_is_closed() {
    let source = FakeSource::new(fixture::running(), 9);
    let mut state = state();
    press_on(&mut state, 'h');
    let of_time = look::wish(&mut state, 80).unwrap();
    press_on(&mut state, 't');
    look::take(&mut state, look::see(of_time, &source, None));
    press_on(&mut state, 'q');
    look_at(&mut state, &source, None, 80);
    let page = state.pages.last().unwrap();
    assert!(!page.is_awaited && page.rows.len() > 1, "{page:?}");
}

fn selected(state: &ScreenState) -> String {
    state.selected_object().map(|object| object.object.to_string()).unwrap_or_default()
}

fn labels(state: &ScreenState) -> Vec<String> {
    let rows = state.listing().rows.iter();
    rows.map(|row| format!("{}{}", "  ".repeat(row.depth), row.label)).collect()
}

#[test]
fn the_selection_stays_on_its_object() {
    let mut state = state();
    press(&mut state, "j");
    let name = selected(&state);
    assert_eq!(name, "{structure:order}.{pointer+structure:order next}");
    for keys in ["\t", "s", "s", "S", "i", "w", "4", "/next\n", "\x1b", "n"] {
        press(&mut state, keys);
        assert_eq!(selected(&state), name, "{keys:?}");
    }
    let mut snapshot = fixture::running();
    snapshot.objects.swap(2, 9);
    state.update(Arc::new(snapshot));
    assert_eq!(selected(&state), name);
}

#[test]
fn moves_stop_at_the_ends() {
    let mut state = state();
    let n_rows = state.listing().rows.len();
    press(&mut state, "k⇞");
    assert_eq!(state.at.selected, 0);
    press(&mut state, "⇟");
    assert_eq!(state.at.selected, 4);
    press(&mut state, "Gj⇟");
    assert_eq!(state.at.selected, n_rows - 1);
    press(&mut state, "⌂");
    assert_eq!((state.at.selected, state.at.fit(n_rows, 5)), (0, 0));
}

#[test]
fn a_tree_joins_chains_and_folds() {
    let mut state = state();
    let all = [
        "order",
        "  .next",
        "  .pos.y",
        "  .price",
        "particle.x",
        "counters[]",
        "<Unknown>",
        "  .(unresolvable)",
        "  .(unascertainable)",
        "hostile\\u{1b}[2Jname",
    ];
    assert_eq!(labels(&state), all);
    press(&mut state, "jjj-");
    assert_eq!((selected(&state).as_str(), state.at.selected), ("{structure:order}", 0));
    press(&mut state, "-");
    assert_eq!(labels(&state)[..2], ["order", "particle.x"]);
    press(&mut state, "+");
    assert_eq!(labels(&state), all);
    press(&mut state, "-/pos\n");
    assert_eq!(labels(&state), ["order", "  .pos.y"], "what was looked for is seen");
    press(&mut state, "\x1b*");
    assert_eq!(labels(&state), all);
}

#[test]
fn names_are_of_the_source_or_descriptors() {
    let mut state = state();
    press(&mut state, "n");
    assert_eq!(
        labels(&state)[..3],
        [
            "{structure:order}",
            "  .{pointer+structure:order next}",
            "  .{structure:pos_t pos}.{int y}"
        ]
    );
    press(&mut state, "\tn");
    assert_eq!(labels(&state)[..3], ["<Total>", "order", "order.next"]);
}

#[test]
fn a_filter_is_typed_kept_and_cleared() {
    let mut state = state();
    press(&mut state, "/partiq");
    assert!(!state.is_left() && state.typed.is_some(), "q is a letter here");
    press(&mut state, "\x08cle\n");
    assert_eq!((state.typed.as_deref(), labels(&state)), (None, vec!["particle.x".to_owned()]));
    press(&mut state, "\x1b");
    assert_eq!(state.arrangement().selection.filter, "");
    press(&mut state, "/x\x1b");
    assert_eq!((&state.typed, state.arrangement().selection.filter.as_str()), (&None, ""));
}

#[test]
fn an_expression_keeps_samples_and_one_that_means_nothing_is_taken_off() {
    let mut state = state();
    press(&mut state, "/=thread == 4711\n");
    assert_eq!(state.lens.filter(None).unwrap(), "(thread == 4711)");
    assert_eq!(labels(&state), ["order.price", "particle.x"], "as the history answers");
    press(&mut state, "/=thred == 4711\n");
    assert_eq!(state.lens.filter(None).unwrap(), "(thread == 4711)");
    assert!(state.message.as_ref().unwrap().text.contains("thred"), "{:?}", state.message);
    press(&mut state, "F");
    assert!(!state.lens.is_needed());
    assert_eq!(labels(&state)[0], "order");
}

#[test]
fn what_is_under_the_cursor_is_filtered_by_in_every_view() {
    let mut state = state();
    press(&mut state, "jf");
    let object = "(object.startsWith(\"{structure:order}.{pointer+structure:order next}\"))";
    assert_eq!(state.lens.filter(None).unwrap(), object);
    press(&mut state, "\x1b\nf");
    assert_eq!(state.lens.conditions.len(), 1, "the object of the page");
    // The first of the lists of lines.
    let line = |page: &Page| {
        page.rows
            .iter()
            .position(|row| matches!(&row.meaning, Meaning::Key(key, _) if key == "line"))
    };
    let at = line(state.pages.last().unwrap()).unwrap();
    state.pages.last_mut().unwrap().at.selected = at;
    press(&mut state, "f");
    assert_eq!(state.lens.conditions[1].expression, "line == \"/src/book.c:107\"");
    press(&mut state, "qFF");
    assert!(!state.lens.is_needed() && state.pages.is_empty());
}

#[test]
fn the_window_moves_back_and_forth() {
    let mut state = state();
    press(&mut state, "h");
    let page = state.pages.last_mut().unwrap();
    page.at.selected = page.rows.iter().position(|row| row.meaning == Meaning::Second(1)).unwrap();
    press(&mut state, "\n");
    assert_eq!((state.lens.end_s, state.pages.len()), (Some(2), 0));
    press(&mut state, "0");
    assert_eq!(state.lens.end_s, None);
}

#[test]
fn samples_are_put_together_by_a_key() {
    let mut state = state();
    press(&mut state, "g");
    let page = state.pages.last_mut().unwrap();
    let comm = Meaning::Group(Some("comm".into()));
    page.at.selected = page.rows.iter().position(|row| row.meaning == comm).unwrap();
    press(&mut state, "\n");
    assert_eq!(labels(&state)[..2], ["matcher", "  order.price"]);
    press(&mut state, "f");
    assert_eq!(state.lens.filter(None).unwrap(), "(comm == \"matcher\")");
    press(&mut state, "\x1b\x1b");
    assert!(!state.lens.is_needed());
}

#[test]
fn columns_are_chosen() {
    let mut state = state();
    press(&mut state, "o");
    let page = state.pages.last_mut().unwrap();
    let is_loads =
        |row: &super::super::page::PageRow| row.meaning == Meaning::Column(Column::Loads);
    page.at.selected = page.rows.iter().position(is_loads).unwrap();
    state.body.width = 80;
    press(&mut state, "\n");
    assert!(state.columns.contains(&Column::Loads) && state.columns.contains(&Column::Share));
    press(&mut state, "\n");
    assert!(!state.columns.contains(&Column::Loads));
}

#[test]
fn a_pause_keeps_the_picture() {
    let mut state = state();
    press(&mut state, " ");
    state.update(Arc::new(fixture::ended()));
    assert!(state.is_paused() && state.whole.target.running);
    press(&mut state, " ");
    state.update(Arc::new(fixture::ended()));
    assert!(!state.whole.target.running);
}

#[test]
fn windows_and_orders_are_chosen() {
    let mut state = state();
    press(&mut state, "w");
    assert_eq!(state.arrangement().window, Window::Last(60));
    press(&mut state, "1");
    assert_eq!(state.arrangement().window, Window::Last(1));
    press(&mut state, "5");
    assert_eq!(state.arrangement().window, Window::Last(1), "there is no fifth");
    assert!(state.message.is_some());
    press(&mut state, "S");
    assert_eq!(state.arrangement().sort, SortKey::Name);
    press(&mut state, "i");
    assert!(state.arrangement().is_inverted);
}

#[test]
fn windows_are_those_of_the_session() {
    let mut state = state();
    state.update(Arc::new(fixture::with_windows(vec![5, 300, 60, 20])));
    let mut shown = vec![state.arrangement().window.to_string()];
    for key in ["w", "w", "w", "w", "w", "5", "3"] {
        press(&mut state, key);
        shown.push(state.arrangement().window.to_string());
    }
    assert_eq!(shown, ["5s", "20s", "60s", "300s", "all", "5s", "all", "60s"]);
}

#[test]
fn pages_open_and_close_before_the_screen_is_left() {
    let mut state = state();
    press(&mut state, "\n?");
    assert_eq!(state.pages.len(), 2);
    press(&mut state, "q\x1b");
    assert!(state.pages.is_empty() && !state.is_left());
    press(&mut state, "\x1b");
    assert!(!state.is_left(), "Esc never leaves");
    press(&mut state, "q");
    assert!(state.is_left());
}

#[test]
fn keys_without_a_meaning_say_so_and_control_keys_have_their_own() {
    let mut state = state();
    press(&mut state, "x");
    assert!(state.message.as_ref().unwrap().text.starts_with("x does nothing"));
    press(&mut state, "j");
    assert!(state.message.is_none());
    state.press(KeyEvent::new(KeyCode::Char('z'), KeyModifiers::CONTROL));
    assert!(state.takes_suspension() && !state.takes_suspension() && !state.is_left());
    press(&mut state, "/x");
    state.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    assert!(state.is_left());
}

#[test]
fn a_mouse_selects_opens_and_scrolls() {
    let mut state = state();
    state.body = Rect::new(0, 3, 80, 5);
    let mut point = |kind, row| {
        state.point(MouseEvent { kind, column: 9, row, modifiers: KeyModifiers::NONE });
        (state.at.selected, state.pages.len())
    };
    let click = MouseEventKind::Down(MouseButton::Left);
    assert_eq!(point(click, 5), (2, 0));
    assert_eq!(point(MouseEventKind::ScrollDown, 5), (3, 0));
    assert_eq!(point(MouseEventKind::ScrollUp, 5), (3, 0));
    assert_eq!(point(click, 1), (3, 0), "the header");
    assert_eq!(point(click, 6), (3, 1));
}

#[test]
fn an_empty_session_obeys_every_key() {
    let mut state = state();
    state.update(Arc::new(fixture::empty()));
    press(&mut state, "jkgG⇞⇟⌂sSiw12345\t \n\x1b?\x1b/x\n\x1bfFhqo\nq!qn+-*0");
    assert!(state.selected_object().is_none());
}
