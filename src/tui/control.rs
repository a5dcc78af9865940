//! The keys: one list that is obeyed, shown in the help line and shown on the help screen, so
//! that the three cannot drift apart.

use dataspace_proto::window::Window;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Open,
    Quit,
    Help,
    Pause,
    NextWindow,
    /// The one at this place among those of the session, shortest first.
    SetWindow(usize),
    NextSort,
    PreviousSort,
    Invert,
    EditFilter,
    FilterHere,
    Unfilter,
    Group,
    Layout,
    Code,
    Threads,
    Watch,
    Time,
    Measurement,
    Now,
    Names,
    Columns,
    Variables,
    Warnings,
    Back,
    ToggleTree,
    Unfold,
    Fold,
    UnfoldAll,
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

/// One line of the help screen.
#[derive(Debug)]
pub(super) struct Control {
    /// Its effect.
    pub(super) action: Action,
    /// Any of these keys.
    pub(super) keys: &'static [KeyCode],
    /// One word for the help line; empty where it is not worth the room.
    pub(super) word: &'static str,
    /// For the help screen; what it says of windows depends on the session's, see [`description`].
    pub(super) description: &'static str,
}

const fn control(
    action: Action,
    keys: &'static [KeyCode],
    word: &'static str,
    description: &'static str,
) -> Control {
    Control { action, keys, word, description }
}

/// Every key, except those that type a filter. The help line takes what fits, from the front.
pub(super) const CONTROLS: &[Control] = &[
    control(Action::Help, &[KeyCode::Char('?'), KeyCode::F(1)], "help", "this page"),
    control(
        Action::Open,
        &[KeyCode::Enter],
        "open",
        "all about the object, or what the row stands for",
    ),
    control(
        Action::Quit,
        &[KeyCode::Char('q')],
        "quit",
        "close the page; on the first one leave, with a last table (Ctrl-C leaves at once)",
    ),
    control(
        Action::Layout,
        &[KeyCode::Char('l')],
        "layout",
        "the members of the type in their cache lines",
    ),
    control(
        Action::Code,
        &[KeyCode::Char('c')],
        "code",
        "the code that touches it most: source, instructions, objects",
    ),
    control(
        Action::Threads,
        &[KeyCode::Char('t')],
        "threads",
        "cache lines that threads share (t was tree: Tab)",
    ),
    control(
        Action::EditFilter,
        &[KeyCode::Char('/')],
        "filter",
        "show only objects with this text; after = an expression",
    ),
    control(
        Action::Group,
        &[KeyCode::Char('g')],
        "group",
        "put samples together by thread, function, line, ... (Home goes to the first row)",
    ),
    control(Action::NextWindow, &[KeyCode::Char('w')], "window", "next window"),
    control(Action::NextSort, &[KeyCode::Char('s')], "sort", "sort by the next column"),
    control(
        Action::Time,
        &[KeyCode::Char('h')],
        "time",
        "samples by second; Enter there moves the window back",
    ),
    control(
        Action::Pause,
        &[KeyCode::Char(' ')],
        "pause",
        "stop the picture, not the sampling; again to go on",
    ),
    control(
        Action::Names,
        &[KeyCode::Char('n')],
        "names",
        "names of the source, or descriptors by type",
    ),
    control(
        Action::FilterHere,
        &[KeyCode::Char('f')],
        "",
        "only samples of what is under the cursor, in every view",
    ),
    control(Action::Unfilter, &[KeyCode::Char('F')], "", "take the last such filter off again"),
    control(Action::Now, &[KeyCode::Char('0')], "", "back to now, where the window was moved back"),
    control(
        Action::Unfold,
        &[KeyCode::Char('+'), KeyCode::Right],
        "",
        "show the members below a row",
    ),
    control(
        Action::Fold,
        &[KeyCode::Char('-'), KeyCode::Left],
        "",
        "hide them, or go to the row around",
    ),
    control(
        Action::UnfoldAll,
        &[KeyCode::Char('*')],
        "",
        "show the members of all rows, or of none",
    ),
    control(
        Action::Variables,
        &[KeyCode::Char('v')],
        "",
        "tell a type's variables apart: order · g_orders",
    ),
    control(
        Action::ToggleTree,
        &[KeyCode::Tab],
        "",
        "members below their aggregate, or one list (was t)",
    ),
    control(
        Action::Watch,
        &[KeyCode::Char('W')],
        "",
        "watch who reads and writes it, by a hardware breakpoint",
    ),
    control(
        Action::Measurement,
        &[KeyCode::Char('m')],
        "",
        "exact counts, and sums by process, function, object and region",
    ),
    control(Action::Columns, &[KeyCode::Char('o')], "", "choose the columns"),
    control(Action::Warnings, &[KeyCode::Char('!')], "", "all warnings"),
    control(Action::Invert, &[KeyCode::Char('i')], "", "sort the other way round"),
    control(Action::PreviousSort, &[KeyCode::Char('S')], "", "sort by the previous column"),
    control(Action::SetWindow(0), &[KeyCode::Char('1')], "", ""),
    control(Action::SetWindow(1), &[KeyCode::Char('2')], "", ""),
    control(Action::SetWindow(2), &[KeyCode::Char('3')], "", ""),
    control(Action::SetWindow(3), &[KeyCode::Char('4')], "", ""),
    control(Action::SetWindow(4), &[KeyCode::Char('5')], "", ""),
    control(Action::Up, &[KeyCode::Up, KeyCode::Char('k')], "", "up"),
    control(Action::Down, &[KeyCode::Down, KeyCode::Char('j')], "", "down"),
    control(Action::PageUp, &[KeyCode::PageUp], "", "a page up"),
    control(Action::PageDown, &[KeyCode::PageDown], "", "a page down"),
    control(Action::First, &[KeyCode::Home], "", "to the first row (was g)"),
    control(Action::Last, &[KeyCode::End, KeyCode::Char('G')], "", "to the last row"),
    control(Action::Back, &[KeyCode::Esc], "", "close what is open; then clear the filters"),
];

/// The keys while a filter is typed, for the help line.
pub(super) const FILTER_CONTROLS: &[(KeyCode, &str)] =
    &[(KeyCode::Enter, "keep"), (KeyCode::Esc, "clear"), (KeyCode::Backspace, "erase")];

/// The keys while a page is open, for the help line.
pub(super) const PAGE_ACTIONS: &[Action] =
    &[Action::Quit, Action::Open, Action::FilterHere, Action::Up, Action::Down, Action::Help];

/// The effect of `key`, where it is not typed into a filter.
pub(super) fn action(key: KeyEvent) -> Option<Action> {
    if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
        return None;
    }
    CONTROLS.iter().find(|control| control.keys.contains(&key.code)).map(|control| control.action)
}

/// Tells whether `key` is the letter with Ctrl: Ctrl-C and Ctrl-Z are keys like any other in raw mode.
pub(super) fn is_control(key: KeyEvent, letter: char) -> bool {
    key.code == KeyCode::Char(letter) && key.modifiers.contains(KeyModifiers::CONTROL)
}
/// Text of the help screen for `control` where a session has `windows`; `None` where it does nothing.
pub(super) fn description(control: &Control, windows: &[Window]) -> Option<String> {
    match control.action {
        Action::NextWindow => {
            let names: Vec<String> = windows.iter().map(Window::to_string).collect();
            Some(format!("{}: {}", control.description, names.join(", ")))
        }
        Action::SetWindow(idx) => windows.get(idx).map(|window| match window {
            Window::All => "since the session began".to_owned(),
            Window::Last(1) => "the last second".to_owned(),
            Window::Last(seconds) => format!("the last {seconds} seconds"),
        }),
        _ => Some(control.description.to_owned()),
    }
}

/// Name of a key.
pub(super) fn key_name(code: KeyCode) -> String {
    match code {
        KeyCode::Char(' ') => "Space".into(),
        KeyCode::Char(c) => c.into(),
        KeyCode::Up => "↑".into(),
        KeyCode::Down => "↓".into(),
        KeyCode::PageUp => "PgUp".into(),
        KeyCode::PageDown => "PgDn".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_has_two_meanings() {
        let mut seen = Vec::new();
        for key in CONTROLS.iter().flat_map(|control| control.keys) {
            assert!(!seen.contains(&key), "{key:?}");
            seen.push(key);
        }
    }

    #[test]
    fn keys_have_short_names() {
        let names: Vec<String> = CONTROLS.iter().map(|control| key_name(control.keys[0])).collect();
        assert!(names.iter().all(|name| (1..=5).contains(&name.chars().count())), "{names:?}");
    }

    #[test]
    fn keys_with_control_are_others() {
        let key = |c: char| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
        assert!(is_control(key('c'), 'c') && action(key('c')).is_none());
        assert_eq!(action(key('s')), None);
    }
}
