//! A layout as a line of JSON, and as CSV.

use super::figure::{FirstTouch, MemberFigures};
use super::row::{LayoutRow, LayoutRows, LayoutSummary, PartKind, PartRow};
use crate::export::csv::{self, FieldColumn};
use dataspace_analyzer::dwarf::layout::listing::FoundLayout;
use dataspace_proto::object_detail::CACHE_LINE_BYTES;
use dataspace_proto::snapshot::{BitPlace, SCHEMA};
use serde::Serialize;
use serde_json::json;
use std::io::{self, Write};
use std::sync::Arc;

/// Columns of a layout.
const LAYOUT_COLUMNS: [FieldColumn; 3] =
    [("layout", "/type"), ("unit", "/unit"), ("entry", "/entry")];

/// Columns of a member, hole or padding: each has a row.
const MEMBER_COLUMNS: [FieldColumn; 20] = [
    ("offset", "/offset"),
    ("size", "/size"),
    ("first_bit", "/bits/first"),
    ("bits", "/bits/width"),
    ("name", "/name"),
    ("type", "/type"),
    ("kind", "/kind"),
    ("depth", "/depth"),
    ("elements", "/elements"),
    ("is_arm", "/is_arm"),
    ("cache_line", "/cache_line"),
    ("mark", "/mark"),
    ("samples", "/samples"),
    ("time_ns", "/time_ns"),
    ("reads", "/reads"),
    ("writes", "/writes"),
    ("n_threads", "/n_threads"),
    ("threads", "/threads"),
    ("line_waits", "/first_touch/waits"),
    ("first", "/first_touch/first"),
];

/// One layout. Scripts rely on the fields of the issue; the others may grow.
#[derive(Debug, Serialize)]
pub(crate) struct LayoutDocument<'a> {
    schema: u32,
    /// The name with its name spaces.
    #[serde(rename = "type")]
    name: &'a str,
    /// Another name by which it was found.
    alias: Option<&'a str>,
    /// The type as descriptors spell it: `structure:cell`.
    descriptor: &'a str,
    unit: Option<&'a str>,
    /// Offset of its description in `.debug_info`.
    entry: Option<String>,
    is_union: bool,
    #[serde(flatten)]
    summary: LayoutSummary,
    cache_line_bytes: u64,
    /// The place in its line at which most instances begin, by samples; null where no address was sampled.
    alignment: Option<u64>,
    virtual_bases: &'a [Arc<str>],
    /// True where members were left out at a limit.
    truncated: bool,
    samples: Option<u64>,
    /// Sums of what is in each cache line, as borders are drawn; null where nothing was measured.
    lines: Option<Vec<LineDocument>>,
    notes: &'a [String],
    members: Vec<MemberDocument<'a>>,
}

/// One member, part, hole or padding.
#[derive(Debug, Serialize)]
struct MemberDocument<'a> {
    offset: u64,
    size: u64,
    bits: Option<BitPlace>,
    name: Option<&'a str>,
    #[serde(rename = "type")]
    type_name: Option<&'a str>,
    kind: PartKind,
    depth: u32,
    elements: Option<u64>,
    is_arm: bool,
    cache_line: u64,
    mark: char,
    samples: Option<u64>,
    time_ns: Option<u64>,
    reads: Option<u64>,
    writes: Option<u64>,
    /// Their numbers, most samples first.
    threads: Option<&'a [i64]>,
    n_threads: Option<u64>,
    hottest: Option<Vec<ElementDocument>>,
    /// Waits for the lines that it is in, and those in which it was touched first; null where nothing tells.
    first_touch: Option<FirstTouch>,
}

/// One cache line that was measured.
#[derive(Debug, Serialize)]
struct LineDocument {
    line: u64,
    offset: u64,
    samples: u64,
    time_ns: Option<u64>,
    reads: u64,
    writes: u64,
    n_threads: u64,
}

/// Samples of one element of an array.
#[derive(Debug, Serialize)]
struct ElementDocument {
    index: u64,
    samples: u64,
}

impl<'a> LayoutDocument<'a> {
    /// The document of `found`, whose rows are `rows`.
    pub(crate) fn new(found: &'a FoundLayout, rows: &'a LayoutRows, notes: &'a [String]) -> Self {
        let parts = rows.rows.iter().filter_map(|row| match row {
            LayoutRow::Part(part) => Some(part),
            LayoutRow::Line(_) => None,
        });
        Self {
            schema: SCHEMA,
            name: &found.name,
            alias: found.alias.as_deref(),
            descriptor: &found.layout.type_name,
            unit: found.unit.as_deref(),
            entry: found.entry.map(|entry| format!("{entry:#x}")),
            is_union: found.layout.is_union,
            summary: rows.summary,
            cache_line_bytes: CACHE_LINE_BYTES,
            alignment: rows.measured_alignment,
            virtual_bases: &found.virtual_bases,
            truncated: found.layout.truncated,
            samples: rows.is_measured.then_some(rows.samples),
            lines: rows.is_measured.then(|| lines(rows)),
            notes,
            members: parts.map(member).collect(),
        }
    }

    /// Writes one line for each member, hole and padding, and the titles before the first layout.
    ///
    /// # Errors
    /// Those of `out`.
    pub(crate) fn write_csv(&self, is_first: bool, out: &mut dyn Write) -> io::Result<()> {
        if is_first {
            csv::write_titles(&[&LAYOUT_COLUMNS, &MEMBER_COLUMNS], out)?;
        }
        let layout = json!({ "type": self.name, "unit": self.unit, "entry": self.entry });
        for member in &self.members {
            let member = serde_json::to_value(member)?;
            csv::write_fields(&[(&LAYOUT_COLUMNS, &layout), (&MEMBER_COLUMNS, &member)], out)?;
        }
        Ok(())
    }
}

fn member(part: &PartRow) -> MemberDocument<'_> {
    let known = part.figures.as_ref();
    let number = |of: fn(&MemberFigures) -> u64| known.map(of);
    MemberDocument {
        offset: part.offset,
        size: part.size,
        bits: part.bits,
        name: part.path.as_deref(),
        type_name: part.type_name.as_deref(),
        kind: part.kind,
        depth: part.depth,
        elements: part.elements,
        is_arm: part.is_arm,
        cache_line: part.line,
        mark: part.mark.sign(),
        samples: number(|it| it.samples),
        time_ns: known.and_then(|it| it.time_ns),
        reads: number(|it| it.reads),
        writes: number(|it| it.writes),
        threads: known.map(|it| &*it.threads),
        n_threads: number(|it| it.n_threads),
        hottest: known.filter(|_| part.elements.is_some()).map(|it| {
            let element = |(index, samples): &(u64, u64)| ElementDocument {
                index: *index,
                samples: *samples,
            };
            it.hottest.iter().map(element).collect()
        }),
        first_touch: known.and_then(|it| it.first_touch),
    }
}

fn lines(rows: &LayoutRows) -> Vec<LineDocument> {
    let line = |row: &LayoutRow| match row {
        LayoutRow::Line(line) => line.figures.as_ref().map(|it| LineDocument {
            line: line.line,
            offset: line.offset,
            samples: it.samples,
            time_ns: it.time_ns,
            reads: it.reads,
            writes: it.writes,
            n_threads: it.n_threads,
        }),
        LayoutRow::Part(_) => None,
    };
    rows.rows.iter().filter_map(line).collect()
}
