//! Keys and what they change.

use super::*;
use crate::arrangement::SortKey;
use crate::config::{Output, Selection};
use crate::fixture;
use std::time::Duration;

fn state() -> ScreenState {
    let options = TopOptions {
        output: Output::Screen,
        interval: Duration::from_secs(1),
        duration: None,
        query: None,
        selection: Selection::default(),
        window: None,
        has_color: true,
    };
    let mut state = ScreenState::new(Arc::new(fixture::running()), &options);
    state.fit_rows(5);
    state
}

fn press(state: &mut ScreenState, keys: &str) {
    for c in keys.chars() {
        let code = match c {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\x1b' => KeyCode::Esc,
            '\x08' => KeyCode::Backspace,
            '⇟' => KeyCode::PageDown,
            '⇞' => KeyCode::PageUp,
            c => KeyCode::Char(c),
        };
        state.press(KeyEvent::new(code, KeyModifiers::NONE));
    }
}

fn selected(state: &ScreenState) -> String {
    state.selected_object().map(|object| object.object.to_string()).unwrap_or_default()
}

#[test]
fn the_selection_stays_on_its_object() {
    let mut state = state();
    press(&mut state, "jj");
    let name = selected(&state);
    assert_eq!(name, "{structure:order}.{pointer+structure:order next}");
    for keys in ["\t", "s", "s", "S", "i", "w", "4", "/next\n", "\x1b"] {
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
    assert_eq!(state.selected(), 0);
    press(&mut state, "⇟");
    assert_eq!(state.selected(), 4);
    press(&mut state, "Gj⇟");
    assert_eq!(state.selected(), n_rows - 1);
    assert_eq!(state.fit_rows(5), n_rows - 5);
    assert_eq!(state.fit_rows(100), 0);
    press(&mut state, "g");
    assert_eq!((state.selected(), state.fit_rows(5)), (0, 0));
}

#[test]
fn a_filter_is_typed_kept_and_cleared() {
    let mut state = state();
    press(&mut state, "/partiq");
    assert_eq!(state.mode(), Mode::Filter);
    assert!(!state.is_left(), "q is a letter here");
    press(&mut state, "\x08cle\n");
    assert_eq!(state.mode(), Mode::Table);
    assert_eq!(state.listing().rows.len(), 3);
    press(&mut state, "\x1b");
    assert_eq!(state.arrangement().selection.filter, "");
    press(&mut state, "/x\x1b");
    assert_eq!((state.mode(), state.arrangement().selection.filter.as_str()), (Mode::Table, ""));
}

#[test]
fn a_filter_that_matches_nothing_leaves_total() {
    let mut state = state();
    press(&mut state, "G/nothing at all\n");
    assert_eq!(selected(&state), "<Total>");
}

#[test]
fn a_pause_keeps_the_picture() {
    let mut state = state();
    press(&mut state, " ");
    state.update(Arc::new(fixture::ended()));
    assert!(state.is_paused() && state.snapshot().target.running);
    press(&mut state, " ");
    state.update(Arc::new(fixture::ended()));
    assert!(!state.snapshot().target.running);
}

#[test]
fn windows_and_columns_are_chosen() {
    let mut state = state();
    press(&mut state, "w");
    assert_eq!(state.arrangement().window, Window::Last(60));
    press(&mut state, "1");
    assert_eq!(state.arrangement().window, Window::Last(1));
    press(&mut state, "5");
    assert_eq!(state.arrangement().window, Window::Last(1), "there is no fifth");
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
fn pages_open_scroll_and_close() {
    let mut state = state();
    press(&mut state, "\n");
    assert_eq!(state.mode(), Mode::Detail);
    state.fit_page(30, 10);
    press(&mut state, "jjj");
    assert_eq!((state.fit_page(30, 10), state.selected()), (3, 0));
    press(&mut state, "G");
    assert_eq!(state.fit_page(30, 10), 20);
    press(&mut state, "?");
    assert_eq!((state.mode(), state.fit_page(30, 10)), (Mode::Help, 0));
    press(&mut state, "\x1b");
    assert_eq!(state.mode(), Mode::Table);
    press(&mut state, "\n\n?q");
    assert!(state.is_left());
}

#[test]
fn an_empty_session_obeys_every_key() {
    let mut state = state();
    state.update(Arc::new(fixture::empty()));
    press(&mut state, "jkgG⇞⇟sSiw12345\t \n\x1b?\x1b/x\n\x1b");
    assert!(state.selected_object().is_none());
}
