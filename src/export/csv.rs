//! One line for each object or row, as spreadsheets take it (RFC 4180).

use super::stack::event_names;
use crate::text::visible;
use dataspace_proto::memory::Level;
use dataspace_proto::sample_line::Evidence;
use dataspace_proto::snapshot::{ObjectLine, Snapshot};
use dataspace_proto::window::Window;
use serde_json::Value;
use std::io::{self, Write};

/// A column of rows that are JSON: its title, and the pointer to its field (RFC 6901).
pub(crate) type FieldColumn = (&'static str, &'static str);

/// Writes the titles of the columns of `parts`.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write_titles(parts: &[&[FieldColumn]], out: &mut dyn Write) -> io::Result<()> {
    let titles: Vec<&str> = parts.iter().copied().flatten().map(|(title, _)| *title).collect();
    write!(out, "{}\r\n", titles.join(","))
}

/// Writes one row, whose parts have columns of their own. A field without a text is one that nothing measured; those of
/// an array have a space between them.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write_fields(
    parts: &[(&[FieldColumn], &Value)],
    out: &mut dyn Write,
) -> io::Result<()> {
    let fields = parts.iter().flat_map(|(columns, part)| {
        columns.iter().map(|(_, pointer)| part.pointer(pointer).map(field).unwrap_or_default())
    });
    write!(out, "{}\r\n", fields.collect::<Vec<_>>().join(","))
}

fn field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        // Tabs are eight columns, as in the table of code.
        Value::String(text) => quoted(&text.replace('\t', "        ")),
        Value::Array(values) => values.iter().map(field).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// Columns that every snapshot has.
const COLUMNS: &str = "id,parent_id,kind,object,name,module,offset,size,samples,loads,stores,latency,tlb_misses,\
                       locked,hitm,remote,threads";

/// Writes the objects of `snapshot` with their sums in `window`; threads are those since the session began.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write(snapshot: &Snapshot, window: Window, out: &mut dyn Write) -> io::Result<()> {
    let events = event_names(snapshot);
    out.write_all(COLUMNS.as_bytes())?;
    for kind in Evidence::ALL {
        write!(out, ",evidence_{}", kind.name())?;
    }
    for level in Level::ALL {
        write!(out, ",level_{}", level.name())?;
    }
    for event in &events {
        write!(out, ",{}", quoted(&format!("event_{event}")))?;
    }
    out.write_all(b"\r\n")?;
    for line in &snapshot.objects {
        write_object(line, window, &events, out)?;
    }
    out.flush()
}

fn write_object(
    line: &ObjectLine,
    window: Window,
    events: &[&str],
    out: &mut dyn Write,
) -> io::Result<()> {
    let optional = |number: Option<u64>| number.map(|n| n.to_string()).unwrap_or_default();
    let (id, all) = (line.id, line.metrics.get(window));
    let kind = serde_json::to_value(line.kind)?;
    let parent = optional(line.parent_id.map(u64::from));
    let (kind, object) = (kind.as_str().unwrap_or_default(), quoted(&line.object));
    let (name, offset, size) = (quoted(&line.name), optional(line.offset), optional(line.size));
    write!(out, "{id},{parent},{kind},{object},{name},{},{offset},{size}", modules(line))?;
    // A field without a text is a figure that nothing measured.
    let sums = [
        Some(all.samples),
        Some(all.loads),
        Some(all.stores),
        all.latency,
        all.tlb_misses,
        all.locked,
        all.hitm,
        all.remote,
        Some(line.metrics.all.threads),
    ];
    let evidence = Evidence::ALL.iter().map(|kind| all.evidence.get(kind.name()));
    let levels = Level::ALL.iter().map(|level| all.levels.get(level.name()));
    let periods = events.iter().map(|name| all.events.get(*name));
    let counts = evidence.chain(levels).chain(periods).map(|count| count.copied().unwrap_or(0));
    for sum in sums {
        write!(out, ",{}", optional(sum))?;
    }
    for count in counts {
        write!(out, ",{count}")?;
    }
    out.write_all(b"\r\n")
}

/// The programs and libraries whose code touched an object, so far as it is kept: what tells namesakes apart.
fn modules(line: &ObjectLine) -> String {
    let mut modules: Vec<&str> = line.scope.iter().map(|scope| &*scope.object).collect();
    modules.sort_unstable();
    modules.dedup();
    quoted(&modules.join(" "))
}

/// In quotes, doubled inside; what a terminal would obey is written out.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", visible(text).replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// The fields of a line, by the grammar of RFC 4180, section 2.
    fn fields(line: &str) -> Vec<String> {
        let (mut fields, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '"' if is_quoted && chars.peek() == Some(&'"') => {
                    field.push('"');
                    chars.next();
                }
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => fields.push(std::mem::take(&mut field)),
                c => field.push(c),
            }
        }
        fields.push(field);
        fields
    }

    #[test]
    fn every_line_has_the_columns_of_the_head() {
        let mut snapshot = fixture::running();
        snapshot.objects[1].object = "{structure:a<\"b\",c>}".into();
        let mut out = Vec::new();
        write(&snapshot, Window::All, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let mut lines = text.split_terminator("\r\n").map(fields);
        let head = lines.next().unwrap();
        let rows: Vec<_> = lines.collect();
        assert_eq!(rows.len(), snapshot.objects.len());
        assert!(rows.iter().all(|row| row.len() == head.len()));
        let column = |name: &str| head.iter().position(|column| column == name).unwrap();
        let row = &rows[1];
        assert_eq!(row[column("object")], "{structure:a<\"b\",c>}");
        assert_eq!(row[column("samples")], "7100");
        assert_eq!(row[column("kind")], "aggregate");
        assert_eq!(row[column("evidence_both")], "93");
        assert_eq!(row[column("event_cpu-clock")], (7_100_u64 * 2_004_008).to_string());
        assert!(!text.contains('\x1b'));
    }
}
