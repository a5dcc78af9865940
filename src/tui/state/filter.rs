//! Filters by what is under the cursor.

use super::super::lens::Condition;
use super::super::page::{Meaning, Page, Subject};
use super::super::rows::Rows;
use super::super::variable::condition_among;
use super::ScreenState;
use crate::text::visible;
use dataspace_proto::query::KeyValue;
use dataspace_proto::snapshot::{ObjectKind, ObjectLine};
use std::sync::Arc;

impl ScreenState {
    /// Leaves only samples of what is under the cursor.
    pub(super) fn filter_here(&mut self) {
        let condition = match self.pages.last() {
            Some(Page { subject: Subject::Object(id), at, .. }) if at.selected == 0 => {
                self.object(*id).and_then(|object| self.condition(object))
            }
            Some(page) => page.selected().condition(),
            None => self.selected_object().and_then(|object| self.condition(object)),
        };
        match condition {
            Some(condition) if self.lens.conditions.contains(&condition) => {
                self.tell("that filter is on already; F takes it off");
            }
            Some(condition) => {
                if let Some(page) = self.pages.last_mut() {
                    page.at = Rows::default();
                }
                self.change_lens(|lens| lens.conditions.push(condition));
            }
            None => self.tell("nothing under the cursor to filter by"),
        }
    }

    /// The condition that samples are of a row of the table.
    pub(super) fn condition(&self, object: &ObjectLine) -> Option<Condition> {
        let label = visible(self.arrangement.names.of(object)).into_owned();
        if object.kind == ObjectKind::Total {
            return None;
        }
        let is_group = object.parent_id == self.snapshot.objects.first().map(|total| total.id);
        match &self.lens.group {
            Some(key) if is_group => group_condition(key, &object.object),
            _ => Some(Condition { expression: self.expression(object), label }),
        }
    }

    /// The expression that is true for samples of an object, or of what is inside of it.
    pub(in crate::tui) fn expression(&self, object: &ObjectLine) -> String {
        condition_among(&self.variables, object)
    }

    /// The descriptor of an object, without the variable that its row may be of.
    pub(in crate::tui) fn descriptor<'a>(&'a self, object: &'a ObjectLine) -> &'a Arc<str> {
        self.variables.get(&object.id).map_or(&object.object, |row| &row.descriptor)
    }

    pub(super) fn unfilter(&mut self) {
        if self.lens.conditions.is_empty() {
            return self.tell("no filter is on; f sets one");
        }
        self.change_lens(|lens| drop(lens.conditions.pop()));
    }
}

/// The condition that a key has the value that is shown so.
fn group_condition(key: &str, shown: &str) -> Option<Condition> {
    let value = match shown {
        "(none)" => KeyValue::None,
        "true" | "false" => KeyValue::Bool(shown == "true"),
        _ => shown.parse().map_or_else(|_| KeyValue::Text(shown.to_owned()), KeyValue::Number),
    };
    Meaning::Key(key.to_owned(), value).condition()
}
