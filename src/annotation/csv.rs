//! Annotated code as CSV: a row for each instruction or source line, with what the JSON has of it.

use super::document::AnnotationDocument;
use super::text::CodeView;
use crate::export::csv::{FieldColumn, write_fields, write_titles};
use serde_json::json;
use std::io::{self, Write};

/// Columns of instructions.
const INSTRUCTION_COLUMNS: [FieldColumn; 24] = [
    ("function", "/code/function"),
    ("module", "/code/module"),
    ("address", "/row/address"),
    ("bytes", "/row/bytes"),
    ("text", "/row/text"),
    ("file", "/row/file"),
    ("line", "/row/line"),
    ("approximate", "/row/approximate"),
    ("statement", "/row/statement"),
    ("out_of_order", "/row/out_of_order"),
    ("innermost_function", "/row/inlined/0/function"),
    ("access", "/row/access"),
    ("size", "/row/size"),
    ("operand", "/row/operand"),
    ("operand_reason", "/row/operand_reason"),
    ("object", "/row/object"),
    ("name", "/row/objects/0/name"),
    ("waited", "/row/waited"),
    ("reported", "/row/reported"),
    ("loads", "/row/loads"),
    ("stores", "/row/stores"),
    ("not_memory", "/row/not_memory"),
    ("latency", "/row/latency"),
    ("cut", "/row/cut"),
];

/// Columns of source lines.
const LINE_COLUMNS: [FieldColumn; 10] = [
    ("function", "/code/function"),
    ("module", "/code/module"),
    ("file", "/row/file"),
    ("line", "/row/line"),
    ("text", "/row/text"),
    ("approximate", "/row/approximate"),
    ("waited", "/row/waited"),
    ("reported", "/row/reported"),
    ("object", "/row/object"),
    ("cut", "/row/cut"),
];

/// Writes all rows of `document`: cutoffs leave none out, they are told.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write(
    document: &AnnotationDocument<'_>,
    view: CodeView,
    out: &mut dyn Write,
) -> io::Result<()> {
    let code = serde_json::to_value(document)?;
    let (columns, rows) = match view {
        CodeView::Instructions => (&INSTRUCTION_COLUMNS[..], "instructions"),
        CodeView::Lines => (&LINE_COLUMNS[..], "lines"),
    };
    write_titles(columns, out)?;
    for row in code[rows].as_array().into_iter().flatten() {
        let of = json!({ "function": code["function"], "module": code["module"] });
        write_fields(columns, &json!({ "code": of, "row": row }), out)?;
    }
    out.flush()
}
