//! Pages to choose from: keys to group by, columns.

use super::{Meaning, PageRow};
use crate::column::Column;
use crate::header::Tone;
use dataspace_proto::snapshot::Snapshot;
use std::collections::BTreeMap;

/// Keys that people group by, and what that tells.
const KEYS: &[(&str, &str)] = &[
    ("variable", "the variable by which an object was reached"),
    ("type", "the outermost named type"),
    ("thread", "the thread, by its number"),
    ("comm", "the thread, by its name"),
    ("process", "the process"),
    ("function", "the function"),
    ("line", "the source line"),
    ("module", "the program or library"),
    ("access", "load, store, load_store, prefetch"),
    ("cpu", "the CPU"),
    ("node", "the NUMA node of the CPU"),
    ("cgroup", "the control group"),
    ("second", "the second"),
    ("event", "the event"),
    ("level", "where the data were found"),
    ("latency_bucket", "core cycles, between powers of two"),
    ("evidence", "what the name rests on"),
    ("reason", "the reason that there is no name"),
    ("instance", "which of many objects of a type, by its address"),
    ("index", "the element of an array"),
    ("cacheline", "the line of 64 bytes"),
    ("page", "the page of 4 KiB"),
    ("alignment", "the offset of an instance in its line"),
];

/// All keys, those of the user's configuration first.
pub(in crate::tui) fn keys(own: &BTreeMap<String, String>, now: Option<&str>) -> Vec<PageRow> {
    let row = |key: Option<&str>, text: &str| {
        let mark = if key == now { '•' } else { ' ' };
        let name = key.unwrap_or("object");
        PageRow::of(format!("{mark} {name:<16} {text}"), Meaning::Group(key.map(str::to_owned)))
    };
    let own = own.iter().map(|(name, expression)| row(Some(name), expression));
    let known = KEYS.iter().map(|(key, text)| row(Some(key), text));
    std::iter::once(row(None, "objects and their members")).chain(own).chain(known).collect()
}

/// All columns, with what they tell; those of which nothing is measured here are named after them.
pub(in crate::tui) fn columns(shown: &[Column], snapshot: &Snapshot) -> Vec<PageRow> {
    let row = |column: Column, is_measured: bool| {
        let mark = if shown.contains(&column) { "[x]" } else { "[ ]" };
        let (name, meaning) = (column.name(), column.meaning());
        match is_measured {
            true => PageRow::of(format!("{mark} {name:<9} {meaning}"), Meaning::Column(column)),
            false => PageRow::text(format!("    {name:<9} nothing here measures it"), Tone::Faint),
        }
    };
    let (measured, others): (Vec<Column>, Vec<Column>) =
        Column::ALL.iter().copied().partition(|column| column.is_measured(snapshot));
    let measured = measured.into_iter().map(|column| row(column, true));
    measured.chain(others.into_iter().map(|column| row(column, false))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_analyzer::query::field::Field;

    #[test]
    fn every_key_is_one_of_the_history() {
        assert!(KEYS.iter().all(|(key, _)| Field::named(key).is_some()));
    }
}
