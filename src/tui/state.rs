//! State of the screen, and how keys change it: no widget, no terminal.

mod filter;
mod opening;

use super::control::{Action, action, is_control};
use super::errand::{Errand, WatchedPlace};
use super::lens::{Condition, Lens};
use super::page::{Page, Subject};
use super::rows::Rows;
use super::trend::Trend;
use super::variable::VariableRows;
use crate::arrangement::{Arrangement, Fold, Listing};
use crate::column::Column;
use crate::config::{Names, TopOptions};
use crate::header::{Segment, Tone};
use dataspace_proto::measure::Measure;
use dataspace_proto::snapshot::{ObjectLine, Snapshot};
use dataspace_proto::window::Window;
use ratatui::crossterm::event::{
    KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::layout::Rect;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The longest filter: no descriptor that fits on a screen needs more.
const MAX_FILTER_LEN: usize = 200;

/// Length of the longest window that is shown first, in seconds: long enough for figures
/// that stand still, short enough to follow the target.
const USUAL_WINDOW_S: u16 = 10;

/// Lines that a turn of the wheel moves.
const WHEEL_LINES: isize = 3;

/// Pages that lie over each other at most.
const MAX_PAGES: usize = 32;

/// The state of the screen.
#[derive(Debug)]
pub(super) struct ScreenState {
    /// The newest totals.
    pub(super) whole: Arc<Snapshot>,
    /// The part of them that is shown: through the lens.
    pub(super) snapshot: Arc<Snapshot>,
    /// The part of the samples that is looked at.
    pub(super) lens: Lens,
    /// Rows that are of one variable.
    pub(super) variables: Arc<VariableRows>,
    pub(super) trend: Trend,
    /// The hottest line of each object, by its descriptor.
    pub(super) hot_lines: HashMap<String, String>,
    /// The text in which a filter is typed.
    pub(super) typed: Option<String>,
    /// Pages over the table, the one that is seen last.
    pub(super) pages: Vec<Page>,
    /// The columns that were chosen; none: those that there is room for.
    pub(super) columns: Vec<Column>,
    /// The columns of the last picture.
    pub(super) seen_columns: Vec<Column>,
    /// Keys of the user's own.
    pub(super) own_keys: BTreeMap<String, String>,
    /// The measurement that the session is for.
    pub(super) measure: Option<Measure>,
    /// Samples that the history lacks of what is seen through the lens, for a person.
    pub(super) missing: Option<String>,
    /// Said in answer to a key, until the next one.
    pub(super) message: Option<Segment>,
    /// The history has to be asked anew.
    pub(super) is_stale: bool,
    /// The lines that the table's rows are in.
    pub(super) body: Rect,
    pub(super) at: Rows,
    listing: Listing,
    arrangement: Arrangement,
    /// The window that was chosen; a session need not have it.
    window: Option<Window>,
    is_paused: bool,
    is_left: bool,
    is_suspended: bool,
    errand: Option<Errand>,
    /// An errand whose answer is awaited; others do nothing meanwhile.
    pub(super) has_errand_out: bool,
    /// Data that is to be watched, until that has begun.
    watched: Option<WatchedPlace>,
    /// The selected object: the selection stays on it when the order changes under it.
    selected_id: Option<u32>,
}

impl ScreenState {
    /// The first picture.
    pub(super) fn new(snapshot: Arc<Snapshot>, options: &TopOptions) -> Self {
        let arrangement = Arrangement {
            window: window_of(&snapshot, options.window),
            is_tree: true,
            names: options.names,
            selection: options.selection.clone(),
            ..Arrangement::default()
        };
        let mut state = Self {
            listing: arrangement.list(&snapshot),
            whole: Arc::clone(&snapshot),
            snapshot,
            lens: Lens::default(),
            variables: Arc::default(),
            trend: Trend::default(),
            hot_lines: HashMap::new(),
            typed: None,
            pages: Vec::new(),
            columns: options.screen.columns.clone(),
            seen_columns: Vec::new(),
            own_keys: options.own_keys.clone(),
            measure: options.measure,
            missing: None,
            message: None,
            is_stale: false,
            body: Rect::default(),
            at: Rows::default(),
            arrangement,
            window: options.window,
            is_paused: false,
            is_left: false,
            is_suspended: false,
            errand: None,
            has_errand_out: false,
            watched: None,
            selected_id: None,
        };
        state.trend.note(&state.whole);
        state.select(0);
        if options.measure.is_some() {
            state.open(Subject::Measurement);
        }
        state
    }

    /// Takes newer totals, unless the picture is paused. Whether there are any.
    pub(super) fn update(&mut self, snapshot: Arc<Snapshot>) -> bool {
        if Arc::ptr_eq(&self.whole, &snapshot) {
            // As of a recording that was read, and of a session that has ended.
            return false;
        }
        self.trend.note(&snapshot);
        if !self.is_paused {
            self.whole = snapshot;
            self.is_stale = true;
            if !self.lens.is_needed() {
                self.show(Arc::clone(&self.whole));
            }
        }
        true
    }

    /// Shows totals, or the part of them that the lens keeps.
    pub(super) fn show(&mut self, snapshot: Arc<Snapshot>) {
        self.snapshot = snapshot;
        self.rearrange();
    }

    /// Does what a key asks for.
    pub(super) fn press(&mut self, key: KeyEvent) {
        self.message = None;
        if is_control(key, 'c') {
            self.is_left = true;
        } else if is_control(key, 'z') {
            self.is_suspended = true;
        } else if let Some(typed) = self.typed.take() {
            self.edit_filter(typed, key);
        } else if let Some(action) = action(key) {
            self.apply(action);
        } else if let KeyCode::Char(letter) = key.code {
            self.tell(format!("{} does nothing here; ? shows the keys", letter.escape_default()));
        }
    }

    /// Does what the mouse asks for: a click selects, a click on what is selected opens it.
    pub(super) fn point(&mut self, mouse: MouseEvent) {
        let is_inside = self.body.contains((mouse.column, mouse.row).into());
        match mouse.kind {
            MouseEventKind::ScrollUp => self.scroll(-WHEEL_LINES),
            MouseEventKind::ScrollDown => self.scroll(WHEEL_LINES),
            MouseEventKind::Down(MouseButton::Left) if is_inside => {
                let line = usize::from(mouse.row - self.body.y);
                let at = self.pages.last().map_or(self.at, |page| page.at);
                let row = at.at_line(line);
                if row == at.selected {
                    self.apply(Action::Open);
                } else {
                    self.go(|_, _| row);
                }
            }
            _ => {}
        }
    }

    /// Window, order and filter.
    pub(super) fn arrangement(&self) -> &Arrangement {
        &self.arrangement
    }

    /// The rows, of which a part is visible.
    pub(super) fn listing(&self) -> &Listing {
        &self.listing
    }

    /// Tells whether the picture stands still.
    pub(super) fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Tells whether the screen is to be left.
    pub(super) fn is_left(&self) -> bool {
        self.is_left
    }

    /// Tells, once, whether the program is to be suspended.
    pub(super) fn takes_suspension(&mut self) -> bool {
        std::mem::take(&mut self.is_suspended)
    }

    /// The object in the selected row.
    pub(super) fn selected_object(&self) -> Option<&ObjectLine> {
        let row = self.listing.rows.get(self.at.selected)?;
        self.snapshot.objects.get(row.object_idx)
    }

    /// The object of a number.
    pub(super) fn object(&self, id: u32) -> Option<&ObjectLine> {
        self.snapshot.objects.iter().find(|object| object.id == id)
    }

    /// Says something in answer to a key.
    pub(super) fn tell(&mut self, text: impl Into<String>) {
        self.message = Some(Segment::new(text, Tone::Strong));
    }

    fn apply(&mut self, action: Action) {
        match action {
            Action::Quit => self.is_left = !self.close_page(),
            Action::Help => self.open(Subject::Help),
            Action::Warnings => self.open(Subject::Warnings),
            Action::Group => self.open(Subject::Group),
            Action::Columns => self.open(Subject::Columns),
            Action::Time => self.open_time(),
            Action::Measurement => self.open(Subject::Measurement),
            Action::Threads => self.open(Subject::Threads),
            Action::Layout => {
                match self.spoken_of().map(|object| Arc::clone(self.descriptor(object))) {
                    Some(object) => self.open(Subject::Layout(object)),
                    None => self.tell("no object to show the layout of"),
                }
            }
            Action::Code => self.open_code(),
            Action::Watch => self.send(Errand::Watch),
            Action::Open => self.open_selected(),
            Action::Pause => self.is_paused = !self.is_paused,
            Action::EditFilter => self.typed = Some(self.arrangement.selection.filter.clone()),
            Action::FilterHere => self.filter_here(),
            Action::Unfilter => self.unfilter(),
            Action::Now => self.change_lens(|lens| lens.end_s = None),
            Action::Names => {
                self.arrangement.names = match self.arrangement.names {
                    Names::Source => Names::Descriptor,
                    Names::Descriptor => Names::Source,
                };
                self.is_stale = true;
                self.rearrange();
            }
            Action::Back => self.go_back(),
            Action::Up => self.step(-1),
            Action::Down => self.step(1),
            Action::PageUp | Action::PageDown => {
                let at = self.pages.last().map_or(self.at, |page| page.at);
                let sign = if action == Action::PageUp { -1 } else { 1 };
                self.step(sign * at.page_step());
            }
            Action::First => self.step(isize::MIN),
            Action::Last => self.step(isize::MAX),
            Action::NextWindow => self.next_window(),
            Action::SetWindow(idx) => self.set_window(idx),
            Action::NextSort => self.sort_by_next(1),
            Action::PreviousSort => self.sort_by_next(-1),
            Action::Invert => self.change(|arrangement| {
                arrangement.is_inverted = !arrangement.is_inverted;
            }),
            Action::ToggleTree => {
                self.change(|arrangement| arrangement.is_tree = !arrangement.is_tree);
            }
            Action::Unfold => self.fold(true),
            Action::Fold => self.fold(false),
            Action::Variables if !self.pages.is_empty() => {
                self.tell("variables are told apart in the table: q closes the page");
            }
            Action::Variables => {
                self.change_lens(|lens| lens.by_variable = !lens.by_variable);
            }
            Action::UnfoldAll => self.change(|arrangement| arrangement.folds.turn_all()),
        }
    }

    /// Closes what is open, then takes off what leaves samples out, one after the other.
    fn go_back(&mut self) {
        if self.close_page() {
            // That was one step.
        } else if !self.arrangement.selection.filter.is_empty() {
            self.set_text(String::new());
        } else if self.lens.end_s.is_some() {
            self.change_lens(|lens| lens.end_s = None);
        } else if !self.lens.conditions.is_empty() {
            self.unfilter();
        } else if self.lens.group.is_some() {
            self.change_lens(|lens| lens.group = None);
        } else if self.lens.by_variable {
            self.change_lens(|lens| lens.by_variable = false);
        } else {
            self.tell("nothing to close; q leaves");
        }
    }

    /// Another part of the samples: the history is asked for it.
    fn change_lens(&mut self, change: impl FnOnce(&mut Lens)) {
        change(&mut self.lens);
        self.is_stale = true;
        if !self.lens.is_needed() {
            self.show(Arc::clone(&self.whole));
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut Arrangement)) {
        change(&mut self.arrangement);
        self.rearrange();
    }

    fn fold(&mut self, is_open: bool) {
        let Some(row) = self.listing.rows.get(self.at.selected).cloned() else { return };
        let Some(id) = self.selected_object().map(|object| object.id) else { return };
        match (row.fold, is_open) {
            (Fold::Closed, true) | (Fold::Open, false) => {
                self.change(|arrangement| arrangement.folds.set(id, row.depth, is_open));
            }
            (_, false) if row.depth > 0 => {
                let above = self.listing.rows[..self.at.selected].iter();
                let around = above.rev().position(|above| above.depth < row.depth);
                self.select(self.at.selected - 1 - around.unwrap_or(0));
            }
            _ => {}
        }
    }

    fn edit_filter(&mut self, mut typed: String, key: KeyEvent) {
        let is_control = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            KeyCode::Enter => return self.keep_filter(&typed),
            KeyCode::Esc => return self.set_text(String::new()),
            KeyCode::Backspace => drop(typed.pop()),
            KeyCode::Char('u') if is_control => typed.clear(),
            KeyCode::Char(c) if !is_control && typed.len() < MAX_FILTER_LEN => typed.push(c),
            KeyCode::Up => self.step(-1),
            KeyCode::Down => self.step(1),
            _ => {}
        }
        if !typed.starts_with('=') {
            self.set_text(typed.clone());
        }
        self.typed = Some(typed);
    }

    /// Keeps what was typed: a text is there already, an expression is a condition.
    fn keep_filter(&mut self, typed: &str) {
        let Some(expression) = typed.strip_prefix('=').map(str::trim) else { return };
        self.set_text(String::new());
        if expression.is_empty() {
            return;
        }
        let condition =
            Condition { expression: expression.to_owned(), label: expression.to_owned() };
        self.change_lens(|lens| lens.conditions.push(condition));
    }

    fn set_text(&mut self, filter: String) {
        if filter != self.arrangement.selection.filter {
            self.change(|arrangement| arrangement.selection.filter = filter);
        }
    }

    /// Chooses the window at `idx` among those of the session, if there is one.
    fn set_window(&mut self, idx: usize) {
        let lengths = self.whole.window_lengths();
        let Some(window) = lengths.windows().nth(idx) else {
            return self.tell(format!("the session has no window {}", idx + 1));
        };
        self.window = Some(window);
        self.is_stale = true;
        self.rearrange();
    }

    fn next_window(&mut self) {
        let lengths = self.whole.window_lengths();
        let here = lengths.windows().position(|window| window == self.arrangement.window);
        self.set_window(here.map_or(0, |here| (here + 1) % lengths.windows().count()));
    }

    fn sort_by_next(&mut self, step: isize) {
        self.change(|arrangement| arrangement.sort = arrangement.sort.after(step));
    }

    fn step(&mut self, n_lines: isize) {
        self.go(|at, n_rows| {
            at.step(n_lines, n_rows);
            at.selected
        });
    }

    fn scroll(&mut self, n_lines: isize) {
        self.go(|at, n_rows| {
            at.scroll(n_lines, n_rows);
            at.selected
        });
    }

    /// Selects the row that `to` gives, of the page or the table.
    fn go(&mut self, to: impl FnOnce(&mut Rows, usize) -> usize) {
        if let Some(page) = self.pages.last_mut() {
            let n_rows = page.rows.len();
            page.at.selected = to(&mut page.at, n_rows).min(n_rows.saturating_sub(1));
        } else {
            let row = to(&mut self.at, self.listing.rows.len());
            self.select(row);
        }
    }

    fn select(&mut self, row: usize) {
        self.at.selected = row.min(self.listing.rows.len().saturating_sub(1));
        self.selected_id = self.selected_object().map(|object| object.id);
    }

    /// Lists anew. The selection stays on its object; a selection on the first line stays there:
    /// that is where one looks who selected nothing.
    fn rearrange(&mut self) {
        self.arrangement.window = window_of(&self.whole, self.window);
        self.listing = self.arrangement.list(&self.snapshot);
        let objects = &self.snapshot.objects;
        let is_selected = |object_idx: usize| Some(objects[object_idx].id) == self.selected_id;
        let row = self.listing.rows.iter().position(|row| is_selected(row.object_idx));
        let row = row.filter(|_| self.at.selected > 0).unwrap_or(self.at.selected);
        self.select(row);
    }
}

/// The window that is shown: the one chosen, if the session has it, else one of some seconds.
fn window_of(snapshot: &Snapshot, chosen: Option<Window>) -> Window {
    let lengths = snapshot.window_lengths();
    let chosen = chosen.filter(|chosen| lengths.windows().any(|window| window == *chosen));
    chosen.unwrap_or_else(|| lengths.at_most(USUAL_WINDOW_S))
}

#[cfg(test)]
pub(in crate::tui) mod tests;
