//! State of the screen, and how keys change it: no widget, no terminal.

use super::control::{Action, action, is_ctrl_c};
use crate::arrangement::{Arrangement, Listing};
use crate::config::TopOptions;
use dataspace_proto::snapshot::{ObjectLine, Snapshot};
use dataspace_proto::window::Window;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::sync::Arc;

/// The longest filter: no descriptor that fits on a screen needs more.
const MAX_FILTER_LEN: usize = 200;

/// Length of the longest window that is shown first, in seconds: long enough for figures
/// that stand still, short enough to follow the target.
const USUAL_WINDOW_S: u16 = 10;

/// Receiver of the keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The table.
    Table,
    /// The line in which a filter is typed.
    Filter,
    /// The page about the selected object.
    Detail,
    /// The page about the keys.
    Help,
}

/// The state of the screen.
#[derive(Debug)]
pub(super) struct ScreenState {
    snapshot: Arc<Snapshot>,
    listing: Listing,
    arrangement: Arrangement,
    /// The window that was chosen; a session need not have it.
    window: Option<Window>,
    mode: Mode,
    is_paused: bool,
    is_left: bool,
    /// The selected row, and the object in it: the selection stays on the object when the order
    /// changes under it.
    selected: usize,
    selected_id: Option<u32>,
    /// The first row that is visible.
    first_row: usize,
    /// Number of rows that were visible in the last picture.
    n_visible_rows: usize,
    /// The first line of the open page that is visible, and the last one that may be.
    page_scroll: usize,
    max_page_scroll: usize,
}

impl ScreenState {
    /// The first picture.
    pub(super) fn new(snapshot: Arc<Snapshot>, options: &TopOptions) -> Self {
        let arrangement = Arrangement {
            window: window_of(&snapshot, options.window),
            is_tree: true,
            selection: options.selection.clone(),
            ..Arrangement::default()
        };
        let mut state = Self {
            listing: arrangement.list(&snapshot),
            snapshot,
            arrangement,
            window: options.window,
            mode: Mode::Table,
            is_paused: false,
            is_left: false,
            selected: 0,
            selected_id: None,
            first_row: 0,
            n_visible_rows: 1,
            page_scroll: 0,
            max_page_scroll: 0,
        };
        state.select(0);
        state
    }

    /// Takes newer totals, unless the picture is paused.
    pub(super) fn update(&mut self, snapshot: Arc<Snapshot>) {
        if !self.is_paused {
            self.snapshot = snapshot;
            self.rearrange();
        }
    }

    /// Does what a key asks for.
    pub(super) fn press(&mut self, key: KeyEvent) {
        if self.mode == Mode::Filter && !is_ctrl_c(key) {
            self.edit_filter(key);
        } else if let Some(action) = action(key) {
            self.apply(action);
        }
    }

    /// Says how many rows the picture has room for; gives the first one to show.
    pub(super) fn fit_rows(&mut self, n_visible_rows: usize) -> usize {
        self.n_visible_rows = n_visible_rows.max(1);
        let last_first = self.listing.rows.len().saturating_sub(self.n_visible_rows);
        let low = (self.selected + 1).saturating_sub(self.n_visible_rows);
        self.first_row = self.first_row.clamp(low, self.selected.max(low)).min(last_first);
        self.first_row
    }

    /// Says how many lines of the open page do not fit; gives the first one to show.
    pub(super) fn fit_page(&mut self, n_lines: usize, n_visible: usize) -> usize {
        self.max_page_scroll = n_lines.saturating_sub(n_visible);
        self.page_scroll = self.page_scroll.min(self.max_page_scroll);
        self.n_visible_rows = n_visible.max(1);
        self.page_scroll
    }

    /// The totals shown.
    pub(super) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The rows, of which a part is visible.
    pub(super) fn listing(&self) -> &Listing {
        &self.listing
    }

    /// Window, order and filter.
    pub(super) fn arrangement(&self) -> &Arrangement {
        &self.arrangement
    }

    /// Receiver of the keyboard.
    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    /// Tells whether the picture stands still.
    pub(super) fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Tells whether the screen is to be left.
    pub(super) fn is_left(&self) -> bool {
        self.is_left
    }

    /// The selected row.
    pub(super) fn selected(&self) -> usize {
        self.selected
    }

    /// The object in the selected row.
    pub(super) fn selected_object(&self) -> Option<&ObjectLine> {
        let row = self.listing.rows.get(self.selected)?;
        self.snapshot.objects.get(row.object_idx)
    }

    fn apply(&mut self, action: Action) {
        match action {
            Action::Quit => self.is_left = true,
            Action::Help => self.open(Mode::Help),
            Action::Detail => self.open(Mode::Detail),
            Action::Pause => self.is_paused = !self.is_paused,
            Action::EditFilter => self.mode = Mode::Filter,
            Action::Back if self.mode != Mode::Table => self.mode = Mode::Table,
            Action::Back => self.set_filter(String::new()),
            Action::Up => self.step(-1),
            Action::Down => self.step(1),
            Action::PageUp => self.step(-self.page_step()),
            Action::PageDown => self.step(self.page_step()),
            Action::First => self.step(isize::MIN),
            Action::Last => self.step(isize::MAX),
            Action::NextWindow => self.next_window(),
            Action::SetWindow(idx) => self.set_window(idx),
            Action::NextSort => self.sort_by_next(1),
            Action::PreviousSort => self.sort_by_next(-1),
            Action::Invert => {
                self.arrangement.is_inverted = !self.arrangement.is_inverted;
                self.rearrange();
            }
            Action::ToggleTree => {
                self.arrangement.is_tree = !self.arrangement.is_tree;
                self.rearrange();
            }
        }
    }

    fn open(&mut self, page: Mode) {
        self.mode = if self.mode == page { Mode::Table } else { page };
        self.page_scroll = 0;
    }

    fn edit_filter(&mut self, key: KeyEvent) {
        let mut filter = self.arrangement.selection.filter.clone();
        let is_control = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            KeyCode::Enter => self.mode = Mode::Table,
            KeyCode::Esc => {
                self.mode = Mode::Table;
                filter.clear();
            }
            KeyCode::Backspace => drop(filter.pop()),
            KeyCode::Char('u') if is_control => filter.clear(),
            KeyCode::Char(c) if !is_control && filter.len() < MAX_FILTER_LEN => filter.push(c),
            KeyCode::Up => self.step(-1),
            KeyCode::Down => self.step(1),
            _ => {}
        }
        self.set_filter(filter);
    }

    fn set_filter(&mut self, filter: String) {
        if filter != self.arrangement.selection.filter {
            self.arrangement.selection.filter = filter;
            self.rearrange();
        }
    }

    /// Chooses the window at `idx` among those of the session, if there is one.
    fn set_window(&mut self, idx: usize) {
        self.window = self.snapshot.window_lengths().windows().nth(idx).or(self.window);
        self.rearrange();
    }

    fn next_window(&mut self) {
        let lengths = self.snapshot.window_lengths();
        let here = lengths.windows().position(|window| window == self.arrangement.window);
        self.set_window(here.map_or(0, |here| (here + 1) % lengths.windows().count()));
    }

    fn sort_by_next(&mut self, step: isize) {
        self.arrangement.sort = self.arrangement.sort.after(step);
        self.rearrange();
    }

    /// A line of the old page stays visible on the new one.
    fn page_step(&self) -> isize {
        isize::try_from(self.n_visible_rows.saturating_sub(1).max(1)).unwrap_or(1)
    }

    fn step(&mut self, n_lines: isize) {
        if matches!(self.mode, Mode::Detail | Mode::Help) {
            self.page_scroll =
                self.page_scroll.saturating_add_signed(n_lines).min(self.max_page_scroll);
        } else {
            self.select(self.selected.saturating_add_signed(n_lines));
        }
    }

    fn select(&mut self, row: usize) {
        self.selected = row.min(self.listing.rows.len().saturating_sub(1));
        self.selected_id = self.selected_object().map(|object| object.id);
    }

    /// Lists anew. The selection stays on its object; a selection on the first line stays there:
    /// that is where one looks who selected nothing.
    fn rearrange(&mut self) {
        self.arrangement.window = window_of(&self.snapshot, self.window);
        self.listing = self.arrangement.list(&self.snapshot);
        let objects = &self.snapshot.objects;
        let is_selected = |object_idx: usize| Some(objects[object_idx].id) == self.selected_id;
        let row = self.listing.rows.iter().position(|row| is_selected(row.object_idx));
        self.select(row.unwrap_or(self.selected));
    }
}

/// The window that is shown: the one chosen, if the session has it, else one of some seconds.
fn window_of(snapshot: &Snapshot, chosen: Option<Window>) -> Window {
    let lengths = snapshot.window_lengths();
    let chosen = chosen.filter(|chosen| lengths.windows().any(|window| window == *chosen));
    chosen.unwrap_or_else(|| lengths.at_most(USUAL_WINDOW_S))
}

#[cfg(test)]
mod tests;
