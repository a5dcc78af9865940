//! Pages that are opened from the table and from each other.

use super::super::errand::{Errand, Found, WatchedPlace};
use super::super::page::{Meaning, Page, Subject};
use super::{MAX_PAGES, ScreenState};
use crate::column::Column;
use dataspace_proto::query::KeyValue;
use dataspace_proto::snapshot::{ObjectKind, ObjectLine};
use std::cmp::Reverse;

impl ScreenState {
    /// Opens a page, or closes it where it is the one that is seen.
    pub(super) fn open(&mut self, subject: Subject) {
        let is_open = self.pages.last().is_some_and(|page| page.subject == subject);
        if is_open {
            self.close_page();
        } else if self.pages.len() < MAX_PAGES {
            self.pages.push(Page::new(subject));
            self.is_stale = true;
        }
    }

    /// Closes the page that is seen, if there is one. That below may be one whose answer came while this lay over it: it is
    /// asked for anew.
    pub(super) fn close_page(&mut self) -> bool {
        let is_closed = self.pages.pop().is_some();
        self.is_stale |= is_closed;
        is_closed
    }

    /// The object that the open page is about, or the selected one.
    pub(in crate::tui) fn spoken_of(&self) -> Option<&ObjectLine> {
        let page = self.pages.iter().rev().find_map(|page| match page.subject {
            Subject::Object(id) => Some(id),
            _ => None,
        });
        match page {
            Some(id) => self.object(id),
            None => self.selected_object(),
        }
    }

    /// Opens the code that the selected row is about: of a function, a line or a member, or else of the object.
    pub(super) fn open_code(&mut self) {
        let meaning = self.pages.last().map(|page| page.selected().clone());
        match meaning {
            Some(Meaning::Key(key, KeyValue::Text(text))) if key == "function" || key == "line" => {
                self.open(Subject::Code(text));
            }
            // Which function that is, the history tells.
            _ => self.send(Errand::Code),
        }
        self.is_stale = true;
    }

    pub(super) fn send(&mut self, errand: Errand) {
        if !self.has_errand_out {
            self.errand = Some(errand);
            self.is_stale = true;
        }
    }

    /// The errand that was sent, once, and a condition on the samples that it is about.
    pub(in crate::tui) fn takes_errand(&mut self) -> Option<(Errand, String)> {
        let errand = self.errand.take()?;
        let of_row = self.pages.last().and_then(|page| page.selected().condition());
        let of_row = of_row.map(|condition| condition.expression);
        let of_object = |state: &Self| state.spoken_of().map(|object| state.expression(object));
        let condition = match errand {
            Errand::Code => of_row.or_else(|| of_object(self)).or(Some("true".to_owned())),
            Errand::Watch => self.watch_condition(of_row),
        };
        if condition.is_none() {
            self.tell("nothing that can be watched is under the cursor");
        }
        self.has_errand_out = condition.is_some();
        Some((errand, condition?))
    }

    /// The condition on samples of what is to be watched: of the object that a page is about or that is selected, and of the
    /// row of the page; on the page of threads of the row alone.
    fn watch_condition(&self, of_row: Option<String>) -> Option<String> {
        let of_object = match self.pages.last().map(|page| &page.subject) {
            Some(Subject::Object(_) | Subject::Layout(_) | Subject::Code(_)) | None => {
                let object = self.spoken_of()?;
                Some(self.condition(object)?.expression)
            }
            Some(Subject::Threads) => None,
            Some(_) => return None,
        };
        let parts: Vec<String> =
            of_object.into_iter().chain(of_row).map(|part| format!("({part})")).collect();
        (!parts.is_empty()).then(|| parts.join(" && "))
    }

    /// Does what the answer to an errand is for.
    pub(in crate::tui) fn bring(&mut self, found: Found) {
        match found {
            Found::Function(function) => self.open(Subject::Code(function)),
            Found::Place(place) => self.watched = Some(place),
        }
    }

    /// The data that is to be watched, once.
    pub(in crate::tui) fn takes_watched(&mut self) -> Option<WatchedPlace> {
        self.watched.take()
    }

    pub(super) fn open_time(&mut self) {
        let id = match self.pages.last().map(|page| &page.subject) {
            Some(Subject::Object(id)) => Some(*id),
            Some(_) => None,
            None => self.selected_object().map(|object| object.id),
        };
        match self.pages.last().map(|page| &page.subject) {
            Some(Subject::Time(id)) => self.open(Subject::Time(*id)),
            _ => self.open(Subject::Time(id)),
        }
    }

    /// Opens what the selected row stands for.
    pub(super) fn open_selected(&mut self) {
        let Some(page) = self.pages.last() else {
            if let Some(id) = self.selected_object().map(|object| object.id) {
                self.open(Subject::Object(id));
            }
            return;
        };
        match page.selected().clone() {
            Meaning::Second(second) => {
                self.pages.clear();
                self.change_lens(|lens| lens.end_s = Some(second + 1));
            }
            Meaning::Group(key) => {
                self.pages.pop();
                self.change_lens(|lens| lens.group = key);
            }
            Meaning::Column(column) => self.turn_column(column),
            // From a line or a function to its code, from an instruction or a member to its object.
            Meaning::Key(key, KeyValue::Text(text)) if key == "line" || key == "function" => {
                self.open(Subject::Code(text));
            }
            Meaning::Code { object: Some(object), .. } => match self.id_of(&object) {
                Some(id) => self.open(Subject::Object(id)),
                None => self.tell("that object is not in the table"),
            },
            Meaning::Member { path: KeyValue::Text(path), .. } => match self.member_id(&path) {
                Some(id) => self.open(Subject::Object(id)),
                None => self.tell("that member is not in the table"),
            },
            Meaning::Key(..) => self.filter_here(),
            Meaning::Member { .. } | Meaning::Code { .. } | Meaning::Text | Meaning::Heading => {}
        }
    }

    /// Number of the row of a descriptor: of the variable or group that is spoken of, else of those with the most samples.
    pub(super) fn id_of(&self, object: &str) -> Option<u32> {
        let spoken = self.spoken_of();
        let of = spoken.and_then(|spoken| self.variables.get(&spoken.id)).map(|row| row.variable);
        let group = spoken.filter(|_| self.lens.group.is_some()).and_then(|it| it.parent_id);
        let worth = |line: &&ObjectLine| {
            let row = self.variables.get(&line.id);
            let is_of_it = of.is_some() && row.map(|row| row.variable) == of;
            let is_beside = group.is_some() && line.parent_id == group;
            let samples = line.metrics.get(self.arrangement.window).samples;
            (is_of_it || is_beside, row.is_some(), samples, Reverse(line.id))
        };
        let lines = self.snapshot.objects.iter();
        let found = lines.filter(|line| &**self.descriptor(line) == object).max_by_key(worth);
        found.map(|line| line.id)
    }

    /// The object that is the member at a dotted path of the aggregate whose layout is open.
    pub(super) fn member_id(&self, path: &str) -> Option<u32> {
        let Some(Subject::Layout(object)) = self.pages.last().map(|page| &page.subject) else {
            return None;
        };
        // Members stand below their type here, however rows are put together.
        let all = &self.whole.objects;
        let mut next = all.iter().find(|line| line.object == *object)?;
        while next.kind == ObjectKind::Member
            && let Some(around) = all.iter().find(|line| Some(line.id) == next.parent_id)
        {
            next = around;
        }
        for name in path.split('.') {
            let is_it = |line: &&ObjectLine| {
                line.parent_id == Some(next.id) && line.object.ends_with(&format!(" {name}}}"))
            };
            next = all.iter().find(is_it)?;
        }
        self.id_of(&next.object)
    }

    /// The columns that were chosen, or else those of the last picture.
    pub(in crate::tui) fn chosen_columns(&self) -> &[Column] {
        if self.columns.is_empty() { &self.seen_columns } else { &self.columns }
    }

    pub(super) fn turn_column(&mut self, column: Column) {
        self.columns = self.chosen_columns().to_vec();
        match self.columns.iter().position(|shown| *shown == column) {
            Some(at) => drop(self.columns.remove(at)),
            None => self.columns.push(column),
        }
        self.columns.sort_by_key(|shown| Column::ALL.iter().position(|known| known == shown));
        self.is_stale = true;
    }
}
