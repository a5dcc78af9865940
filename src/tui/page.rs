//! Pages over the table of objects: rows of text, of which some stand for something that can be opened or filtered by.

pub(super) mod choice;
pub(super) mod code;
pub(super) mod layout;
pub(super) mod measurement;
pub(super) mod object;
pub(super) mod sharing;
pub(super) mod time;

use super::lens::Condition;
use super::rows::Rows;
use super::view::flow::wrap;
use crate::column::Column;
use crate::header::{Segment, Tone};
use crate::session::question::quoted;
use dataspace_proto::query::KeyValue;
use std::sync::Arc;

/// Subject of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// One object, by its number.
    Object(u32),
    /// The layout of the aggregate around an object, by its descriptor.
    Layout(Arc<str>),
    /// The code of a function, or of one that has a line.
    Code(String),
    /// The cache lines that threads share.
    Threads,
    /// Exact counts and sums of what is measured.
    Measurement,
    /// Samples by second, of one object or of all.
    Time(Option<u32>),
    /// The keys that samples can be put together by.
    Group,
    /// The columns of the table.
    Columns,
    /// Warnings.
    Warnings,
    /// The keys of the keyboard.
    Help,
}

/// Meaning of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Nothing but its text.
    #[default]
    Text,
    /// Titles of the columns below it, which stay when the page scrolls.
    Heading,
    /// Samples with this value of a key.
    Key(String, KeyValue),
    /// A member of an aggregate: the condition that samples are of that, and the dotted path.
    Member { aggregate: String, path: KeyValue },
    /// An instruction, with the samples that waited at it and the object that it touches, by its descriptor.
    Code { waited: u64, object: Option<Arc<str>> },
    /// A second of the session.
    Second(u64),
    /// A way to put samples together; none is by object.
    Group(Option<String>),
    /// A column that can be shown or not.
    Column(Column),
}

impl Meaning {
    /// The condition on samples that are of it.
    pub(super) fn condition(&self) -> Option<Condition> {
        let (expression, label) = match self {
            Self::Key(key, KeyValue::Text(text)) => {
                // An address is shown as a text.
                let is_number = text.starts_with("0x");
                let value = if is_number { text.clone() } else { quoted(text) };
                (format!("{key} == {value}"), format!("{key} {text}"))
            }
            Self::Key(key, KeyValue::Number(number)) => {
                (format!("{key} == {number}"), format!("{key} {number}"))
            }
            Self::Key(key, KeyValue::None) => (format!("{key} == null"), format!("no {key}")),
            Self::Key(key, KeyValue::Bool(is_so)) => {
                (format!("{key} == {is_so}"), format!("{key} {is_so}"))
            }
            Self::Member { aggregate, path: KeyValue::Text(path) } => {
                (format!("{aggregate} && member == {}", quoted(path)), format!(".{path}"))
            }
            Self::Code { object: Some(object), .. } => {
                (format!("object == {}", quoted(object)), object.to_string())
            }
            Self::Second(second) => (format!("second == {second}"), format!("second {second}")),
            _ => return None,
        };
        Some(Condition { expression, label })
    }
}

/// A row of a page.
#[derive(Clone, Debug, Default)]
pub(super) struct PageRow {
    /// Its text.
    pub(super) segments: Vec<Segment>,
    /// Its meaning.
    pub(super) meaning: Meaning,
}

impl PageRow {
    /// A row of one tone.
    pub(super) fn text(text: impl Into<String>, tone: Tone) -> Self {
        Self { segments: vec![Segment::new(text, tone)], meaning: Meaning::Text }
    }

    /// Titles of columns.
    pub(super) fn heading(text: impl Into<String>, tone: Tone) -> Self {
        Self { meaning: Meaning::Heading, ..Self::text(text, tone) }
    }

    /// Text broken into rows of at most `width` columns.
    pub(super) fn wrapped(text: &str, tone: Tone, width: usize) -> Vec<Self> {
        wrap(text, width).into_iter().map(|piece| Self::text(piece, tone)).collect()
    }

    /// The same that stands for something.
    pub(super) fn of(text: impl Into<String>, meaning: Meaning) -> Self {
        Self { meaning, ..Self::text(text, Tone::Plain) }
    }
}

/// An open page.
#[derive(Debug)]
pub(super) struct Page {
    /// Its subject.
    pub(super) subject: Subject,
    /// Its rows.
    pub(super) rows: Vec<PageRow>,
    /// The selected one, and those on the screen.
    pub(super) at: Rows,
    /// True until the history has told of the subject.
    pub(super) is_awaited: bool,
}

impl Page {
    /// One without rows.
    pub(super) fn new(subject: Subject) -> Self {
        Self { subject, rows: Vec::new(), at: Rows::default(), is_awaited: true }
    }

    /// The titles of columns above a row, where it is in their table: an empty row ends one.
    pub(super) fn heading_above(&self, row: usize) -> Option<&PageRow> {
        let is_empty = |row: &&PageRow| row.segments.is_empty();
        let from_here = self.rows.get(..=row)?.iter().rev().take_while(|row| !is_empty(row));
        let heading = from_here.enumerate().find(|(_, row)| row.meaning == Meaning::Heading);
        // A heading that is in sight needs no other.
        heading.filter(|(distance, _)| *distance > 0).map(|(_, row)| row)
    }

    /// Meaning of the selected row.
    pub(super) fn selected(&self) -> &Meaning {
        self.rows.get(self.at.selected).map_or(&Meaning::Text, |row| &row.meaning)
    }

    /// For the frame around it.
    pub(super) fn title(&self) -> &'static str {
        match self.subject {
            Subject::Object(_) => " object ",
            Subject::Layout(_) => " layout ",
            Subject::Code(_) => " code ",
            Subject::Threads => " threads on one cache line ",
            Subject::Measurement => " measurement ",
            Subject::Time(_) => " samples by second ",
            Subject::Group => " group by ",
            Subject::Columns => " columns ",
            Subject::Warnings => " warnings ",
            Subject::Help => " keys ",
        }
    }
}
