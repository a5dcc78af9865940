//! Annotated code as CSV: a row for each instruction or source line, with what the JSON has of it.

use super::document::AnnotationDocument;
use super::text::CodeView;
use crate::export::csv::{FieldColumn, write_fields, write_titles};
use std::io::{self, Write};

/// Columns of the function.
const CODE_COLUMNS: [FieldColumn; 2] = [("function", "/function"), ("module", "/module")];

/// Columns of instructions.
const INSTRUCTION_COLUMNS: [FieldColumn; 22] = [
    ("address", "/address"),
    ("bytes", "/bytes"),
    ("text", "/text"),
    ("file", "/file"),
    ("line", "/line"),
    ("approximate", "/approximate"),
    ("statement", "/statement"),
    ("out_of_order", "/out_of_order"),
    ("innermost_function", "/inlined/0/function"),
    ("access", "/access"),
    ("size", "/size"),
    ("operand", "/operand"),
    ("operand_reason", "/operand_reason"),
    ("object", "/object"),
    ("name", "/objects/0/name"),
    ("waited", "/waited"),
    ("reported", "/reported"),
    ("loads", "/loads"),
    ("stores", "/stores"),
    ("not_memory", "/not_memory"),
    ("latency", "/latency"),
    ("cut", "/cut"),
];

/// Columns of source lines.
const LINE_COLUMNS: [FieldColumn; 8] = [
    ("file", "/file"),
    ("line", "/line"),
    ("text", "/text"),
    ("approximate", "/approximate"),
    ("waited", "/waited"),
    ("reported", "/reported"),
    ("object", "/object"),
    ("cut", "/cut"),
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
    write_titles(&[&CODE_COLUMNS, columns], out)?;
    for row in code[rows].as_array().into_iter().flatten() {
        write_fields(&[(&CODE_COLUMNS, &code), (columns, row)], out)?;
    }
    out.flush()
}
