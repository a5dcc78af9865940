//! The lines that threads share as JSON, and as CSV.

use super::row::{LineRow, PartRow, SharingRows};
use crate::export::csv::{self, FieldColumn};
use dataspace_proto::snapshot::SCHEMA;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Columns of a cache line.
const LINE_COLUMNS: [FieldColumn; 9] = [
    ("line", "/line"),
    ("pid", "/pid"),
    ("sharing", "/sharing"),
    ("verdict", "/verdict"),
    ("advice", "/advice"),
    ("line_samples", "/samples"),
    ("line_samples_at_stake", "/samples_at_stake"),
    ("line_time_ns", "/time_ns"),
    ("at_stake_ns", "/at_stake_ns"),
];

/// Columns of a part of it: each has a row.
const PART_COLUMNS: [FieldColumn; 17] = [
    ("object", "/object"),
    ("name", "/name"),
    ("offset", "/offset"),
    ("index", "/index"),
    ("tid", "/tid"),
    ("comm", "/comm"),
    ("address", "/address"),
    ("line_offset", "/line_offset"),
    ("size", "/size"),
    ("reads", "/reads"),
    ("writes", "/writes"),
    ("samples", "/samples"),
    ("samples_at_stake", "/samples_at_stake"),
    ("time_ns", "/time_ns"),
    ("function", "/function"),
    ("module", "/module"),
    ("source", "/source"),
];

/// The whole answer. `reads` and `writes` are samples; what nothing measured is null.
pub(crate) fn of(rows: &SharingRows) -> Value {
    let survey = &rows.survey;
    json!({
        "schema": SCHEMA,
        "lines": rows.lines.iter().map(line).collect::<Vec<_>>(),
        "truncated": rows.n_left_out != 0,
        "common_lines": survey.n_common,
        "rows_of_span": survey.rows_of_span,
        "rows_held": survey.rows_held,
        "samples_on_memory": survey.n_memory,
        "samples_with_address": survey.n_addressed,
        "samples_left_out": survey.n_left_out,
        "lines_open": survey.lines_open,
        "time_ns": (survey.time_ns != 0).then_some(survey.time_ns),
    })
}

/// The same for somebody who may not know addresses.
pub(crate) fn without_addresses(rows: &SharingRows) -> Value {
    let mut document = of(rows);
    let lines = document["lines"].as_array_mut();
    for line in lines.into_iter().flatten() {
        line["line"] = Value::Null;
        for part in line["parts"].as_array_mut().into_iter().flatten() {
            part["address"] = Value::Null;
        }
    }
    document
}

/// Writes one line for each part of each cache line.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write_csv(rows: &SharingRows, out: &mut dyn Write) -> io::Result<()> {
    csv::write_titles(&[&LINE_COLUMNS, &PART_COLUMNS], out)?;
    for row in &rows.lines {
        let line = line(row);
        for part in row.parts.iter().map(part) {
            csv::write_fields(&[(&LINE_COLUMNS, &line), (&PART_COLUMNS, &part)], out)?;
        }
    }
    out.flush()
}

fn line(row: &LineRow) -> Value {
    json!({
        "line": hex(row.address),
        "pid": row.pid,
        "sharing": row.sharing.name(),
        "verdict": row.verdict,
        "advice": row.advice,
        "samples": row.samples,
        "samples_at_stake": row.met,
        "time_ns": row.time_ns,
        "at_stake_ns": row.at_stake_ns,
        "parts": row.parts.iter().map(part).collect::<Vec<_>>(),
        "parts_left_out": row.n_parts_left_out,
    })
}

fn part(row: &PartRow) -> Value {
    let part = &row.part;
    json!({
        "object": part.object,
        "name": row.name,
        "offset": part.offset,
        "index": part.index,
        "tid": part.tid,
        "comm": part.comm,
        "address": hex(part.address.0),
        "line_offset": row.line_offset,
        "size": (part.size != 0).then_some(part.size),
        "reads": part.reads,
        "writes": part.writes,
        "samples": part.samples,
        "samples_at_stake": part.met,
        "time_ns": row.time_ns,
        "function": part.function,
        "module": part.module,
        "source": row.source,
    })
}

fn hex(address: u64) -> String {
    format!("{address:#x}")
}
