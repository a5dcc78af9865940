//! The answer to a question as a table and as CSV.

use crate::arrangement::ObjectNames;
use crate::export::csv::quoted;
use crate::header::Tone;
use crate::session::Source;
use crate::session::question::Question;
use crate::table::{DEFAULT_LIMIT, Printer, TableOptions};
use crate::text::visible;
use dataspace_proto::query::{KeyValue, Metric, QueryAnswer, QueryMetrics};
use dataspace_proto::snapshot::Snapshot;
use std::io::{self, Write};

/// Columns that are filled up for the sake of one long key.
const MAX_WIDTH: usize = 200;

/// Between two columns.
const GAP: &str = "  ";

/// A key's value for a person and for spreadsheets; nothing where there is none.
pub(crate) fn text(value: &KeyValue) -> String {
    match value {
        KeyValue::None => String::new(),
        KeyValue::Bool(is_so) => is_so.to_string(),
        KeyValue::Number(number) => number.to_string(),
        KeyValue::Text(text) => text.clone(),
    }
}

/// Writes one line for each row.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write_csv(
    question: &Question,
    answer: &QueryAnswer,
    out: &mut dyn Write,
) -> io::Result<()> {
    let metrics = question.metrics();
    let titles = answer.by.iter().map(String::as_str).chain(metrics.iter().map(|it| it.name()));
    let titles: Vec<String> = titles.map(quoted).collect();
    write!(out, "{}\r\n", titles.join(","))?;
    for row in &answer.rows {
        let keys = row.key.iter().map(|value| match value {
            KeyValue::Text(text) => quoted(text),
            other => text(other),
        });
        let values = metrics.iter().map(|metric| match metric {
            Metric::Share => share(&row.metrics, &answer.total).to_string(),
            metric => metric.of(&row.metrics).to_string(),
        });
        let cells: Vec<String> = keys.chain(values).collect();
        write!(out, "{}\r\n", cells.join(","))?;
    }
    out.flush()
}

/// Part of the samples that the filter kept.
fn share(metrics: &QueryMetrics, total: &QueryMetrics) -> f64 {
    if total.samples == 0 { 0.0 } else { metrics.samples as f64 / total.samples as f64 }
}

fn cell(metric: Metric, metrics: &QueryMetrics, total: &QueryMetrics) -> String {
    match metric {
        Metric::Share => format!("{:.1}%", 100.0 * share(metrics, total)),
        metric => metric.of(metrics).to_string(),
    }
}

/// Asks a session, and writes a table for each answer.
///
/// # Errors
/// Where it cannot answer; those of `out`.
pub(crate) fn write_asked(
    source: &dyn Source,
    questions: &[Question],
    options: &TableOptions,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let answers: Vec<_> = questions.iter().zip(source.ask_all(questions)?).collect();
    Ok(write_tables(&source.snapshot(), &answers, options, out)?)
}

/// Writes a table for each answer below the header of `snapshot`.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write_tables(
    snapshot: &Snapshot,
    answers: &[(&Question, QueryAnswer)],
    options: &TableOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut printer = Printer { out, has_color: options.has_color };
    printer.header(snapshot, options.window)?;
    let names = ObjectNames::of(&snapshot.objects, options.names);
    for (idx, (question, answer)) in answers.iter().enumerate() {
        if idx != 0 {
            printer.out.write_all(b"\n")?;
        }
        write_rows((question, answer), &names, options.selection.limit, &mut printer)?;
    }
    if let Some((_, answer)) = answers.first() {
        printer.toned(format!("\n{}", held(answer)), Tone::Faint)?;
    }
    printer.warnings(&snapshot.warnings)?;
    printer.out.flush()
}

/// Writes the rows of one answer, at most `limit`.
fn write_rows(
    (question, answer): (&Question, &QueryAnswer),
    names: &ObjectNames,
    limit: Option<usize>,
    printer: &mut Printer<'_>,
) -> io::Result<()> {
    let is_of_samples = question.is_of_samples();
    let default = if is_of_samples { usize::MAX } else { DEFAULT_LIMIT };
    let n_shown = limit.unwrap_or(default).min(answer.rows.len());
    let metrics = question.metrics();
    let titles = metrics.iter().map(|metric| metric.name().to_uppercase().replace('_', " "));
    let mut lines = vec![titles.collect::<Vec<_>>()];
    let mut keys: Vec<Vec<String>> = vec![answer.by.iter().map(|key| key.to_uppercase()).collect()];
    let of = |sums: &QueryMetrics| -> Vec<String> {
        metrics.iter().map(|metric| cell(*metric, sums, &answer.total)).collect()
    };
    if !is_of_samples {
        lines.push(of(&answer.total));
        let mut total_keys = vec![String::new(); answer.by.len()];
        total_keys[0] = "(all)".to_owned();
        keys.push(total_keys);
    }
    for row in &answer.rows[..n_shown] {
        lines.push(of(&row.metrics));
        let shown = |(key, value): (&String, &KeyValue)| match value {
            KeyValue::None => "-".to_owned(),
            KeyValue::Text(object) if matches!(&**key, "object" | "aggregate") => {
                visible(names.spelled(object)).into_owned()
            }
            KeyValue::Number(time_ns) if key == "time" => format!("{:.6}", *time_ns as f64 / 1e9),
            value => visible(&text(value)).into_owned(),
        };
        keys.push(answer.by.iter().zip(&row.key).map(shown).collect());
    }
    let widths = |cells: &[Vec<String>]| -> Vec<usize> {
        let n_columns = cells.first().map_or(0, Vec::len);
        let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max();
        (0..n_columns).map(|column| width(column).unwrap_or(0).min(MAX_WIDTH)).collect()
    };
    let (metric_widths, key_widths) = (widths(&lines), widths(&keys));
    for (idx, (cells, keys)) in lines.iter().zip(&keys).enumerate() {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(&metric_widths) {
            line.push_str(&format!("{cell:>width$}{GAP}"));
        }
        for (key, width) in keys.iter().zip(&key_widths) {
            line.push_str(&format!("{key:<width$}{GAP}"));
        }
        let tone = if idx == 0 { Tone::Strong } else { Tone::Plain };
        printer.toned(line.trim_end(), tone)?;
    }
    if answer.rows.is_empty() && answer.rows_held > 0 {
        printer.toned("no sample meets the filter", Tone::Strong)?;
    }
    let n_more = answer.rows.len() - n_shown;
    if is_of_samples {
        return Ok(());
    }
    if n_more > 0 {
        printer.toned(format!("… and {n_more} more (--limit N shows more)"), Tone::Plain)?;
    } else if answer.truncated {
        printer.toned("… and more (--limit N shows more)", Tone::Plain)?;
    }
    Ok(())
}

/// The part of the span's samples that the answer rests on.
fn held(answer: &QueryAnswer) -> String {
    let lines = match answer.lines_open {
        0 => String::new(),
        n_open => format!("; the lines of {n_open} places in code are not found out"),
    };
    held_samples(answer) + &lines
}

fn held_samples(answer: &QueryAnswer) -> String {
    let seconds = answer.held_ns as f64 / 1e9;
    let QueryAnswer { rows_held, rows_of_span, .. } = answer;
    match rows_held == rows_of_span {
        true => format!("of all {rows_held} samples of the span, over {seconds:.1} s"),
        false => format!(
            "of {rows_held} of the {rows_of_span} samples of the span, over {seconds:.1} s: the others are \
             no longer in the history (top --history SIZE keeps more), or wait for debug information"
        ),
    }
}
