//! The code of a function: source and instructions, with the samples that waited, those that were reported, and objects.

use super::{Meaning, PageRow};
use crate::annotation::model::{AnnotatedInstruction, Annotation};
use crate::annotation::row::{CodeRow, StatementRow, code_rows};
use crate::annotation::subject::CodeSubject;
use crate::config::Names;
use crate::header::{Segment, Tone};
use crate::session::findings::Findings;
use crate::session::inspection::Inspector;
use crate::text::{percent, visible};
use dataspace_analyzer::query::selection::SampleFilter;
use dataspace_proto::query::KeyValue;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Columns of an instruction's text at most: what is longer moves its object.
const TEXT_WIDTH: usize = 40;

/// Columns before that.
const FIGURES_WIDTH: usize = 26;

/// Wishes for the page.
pub(in crate::tui) struct CodeWishes<'a> {
    /// The function, as it is typed.
    pub(in crate::tui) subject: &'a str,
    /// The expression that samples have to meet.
    pub(in crate::tui) filter: Option<&'a str>,
    /// Keys of the user's own.
    pub(in crate::tui) own_keys: &'a BTreeMap<String, String>,
    /// Spelling of the objects.
    pub(in crate::tui) names: Names,
    /// Columns that there are.
    pub(in crate::tui) width: usize,
}

/// The rows of a function.
///
/// # Errors
/// Why it cannot be shown, for a person.
pub(in crate::tui) fn rows(
    findings: &Findings,
    looked: &CodeWishes<'_>,
    inspector: &mut Inspector,
) -> Result<Vec<PageRow>, String> {
    let history = findings.history.as_ref().ok_or("the session keeps no samples to look at")?;
    let filter = looked.filter.map(|text| SampleFilter::new(text, looked.own_keys)).transpose();
    let filter = filter.map_err(|error| error.to_string())?;
    let subject = CodeSubject::parse(looked.subject);
    let of = (findings, &**history);
    let annotation = Annotation::find(of, &subject, filter.as_ref(), looked.names, inspector);
    let annotation = annotation.map_err(|failure| failure.to_string())?;
    let mut rows = vec![head(&annotation)];
    let text_width = (looked.width.saturating_sub(FIGURES_WIDTH) * 3 / 5).min(TEXT_WIDTH);
    let title = format!(
        "{:>6} {:>6} {:>8}   {:<text_width$} OBJECT",
        "WAITED", "REPORT", "ADDRESS", "CODE"
    );
    rows.push(PageRow::heading(title, Tone::Faint));
    let code = code_rows(&annotation);
    rows.extend(code.iter().map(|row| code_row(row, &annotation, text_width)));
    if annotation.is_cut {
        rows.push(PageRow::text("… there are more instructions than are listed", Tone::Faint));
    }
    Ok(rows)
}

/// The row at which most samples waited.
pub(in crate::tui) fn hottest(rows: &[PageRow]) -> usize {
    let weight = |row: &PageRow| match &row.meaning {
        Meaning::Code { waited, .. } => *waited,
        _ => 0,
    };
    let most = rows.iter().map(weight).max().unwrap_or(0);
    rows.iter().position(|row| most > 0 && weight(row) == most).unwrap_or(0)
}

fn head(annotation: &Annotation) -> PageRow {
    let n_samples = annotation.n_samples();
    let text = format!("   {n_samples} samples, of {}", visible(&annotation.module));
    PageRow {
        segments: vec![
            Segment::new(visible(&annotation.function).into_owned(), Tone::Strong),
            Segment::new(text, Tone::Plain),
        ],
        meaning: Meaning::Key(
            "function".to_owned(),
            KeyValue::Text(annotation.function.to_string()),
        ),
    }
}

fn code_row(row: &CodeRow<'_>, annotation: &Annotation, text_width: usize) -> PageRow {
    let faint = |text: String| PageRow::text(format!("{:22}{text}", ""), Tone::Faint);
    match row {
        CodeRow::File { file } => {
            let Some(file) = annotation.files.get(*file) else { return PageRow::default() };
            let why = match &file.text {
                Ok(_) => String::new(),
                Err(why) => format!("  (not shown: {})", visible(&why.0)),
            };
            faint(format!("{}{why}", visible(&file.path)))
        }
        CodeRow::Function { name: Some(name) } => faint(format!("put in line: {}", visible(name))),
        CodeRow::Function { name: None } => {
            faint(format!("of {} itself", visible(&annotation.function)))
        }
        CodeRow::Statement(statement) => source(statement, annotation),
        CodeRow::Instruction(instruction) => instruction_row(instruction, annotation, text_width),
        CodeRow::CacheLine { start, .. } => faint(format!("- - - - {start:x}")),
        CodeRow::Gap { n_instructions: 0 } => faint("~ ~ ~ ~".to_owned()),
        CodeRow::Gap { n_instructions } => faint(format!("~ ~ ~ ~  {n_instructions} instructions")),
    }
}

fn share(samples: u64, annotation: &Annotation) -> String {
    if samples == 0 { String::new() } else { percent(samples, annotation.n_samples()) }
}

fn source(row: &StatementRow<'_>, annotation: &Annotation) -> PageRow {
    let (waited, reported) = (share(row.waited, annotation), share(row.reported, annotation));
    let line = format!("{}{}", if row.is_approximate { "~" } else { "" }, row.line);
    let mark = if row.is_out_of_order { "*>" } else { ">" };
    let text =
        row.text.map(|text| visible(&text.replace('\t', "    ")).into_owned()).unwrap_or_default();
    PageRow {
        segments: vec![
            Segment::new(format!("{waited:>6} {reported:>6} "), Tone::Faint),
            Segment::new(format!("{line:>8} {mark:>2}{text}"), Tone::Strong),
        ],
        meaning: Meaning::Text,
    }
}

fn instruction_row(
    it: &AnnotatedInstruction,
    annotation: &Annotation,
    text_width: usize,
) -> PageRow {
    let (waited, reported) = (share(it.sums.samples, annotation), share(it.reported, annotation));
    let mark = match (it.sums.samples > 0, it.reported > 0) {
        (true, _) => '●',
        (false, true) => '○',
        (false, false) => ' ',
    };
    let object = it.object();
    let told = object.map_or_else(String::new, |(object, samples)| {
        let name = visible(annotation.names.spelled(object));
        // Nothing was sampled of it: the instruction alone says so.
        if samples == 0 { format!("[{name}]") } else { name.into_owned() }
    });
    let text = format!(" {mark} {:<text_width$} ", visible(&it.listed.text));
    PageRow {
        segments: vec![
            Segment::new(format!("{waited:>6} {reported:>6} {:>8x}", it.listed.at.0), Tone::Plain),
            Segment::new(text, if it.sums.samples > 0 { Tone::Strong } else { Tone::Plain }),
            Segment::new(told, if it.sums.samples > 0 { Tone::Heat } else { Tone::Faint }),
        ],
        meaning: Meaning::Code {
            waited: it.sums.samples,
            object: object.map(|(object, _)| Arc::clone(object)),
        },
    }
}
