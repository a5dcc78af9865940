//! A measurement's report as JSON and as CSV. Programs read these keys: they keep their meaning.

use super::column::Shares;
use super::detail::{DetailKind, DetailRow, FunctionDetail};
use super::rate::DerivedRate;
use super::report::MeasureReport;
use super::scale::LatencyScale;
use super::summary::{Summary, SummaryRow};
use super::sums::{Fill, SampleSums};
use crate::annotation::cutoff::CodeCutoffs;
use crate::export::csv::{FieldColumn, write_fields, write_titles};
use dataspace_proto::accounting::Accounting;
use dataspace_proto::event_count::EventCount;
use dataspace_proto::query::{KeyValue, QueryMetrics, QueryRow};
use dataspace_proto::snapshot::EventLine;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Rises when the meaning of a field changes.
const SCHEMA: u32 = 1;

/// A report.
#[derive(Debug, Serialize)]
pub(crate) struct MeasureDocument<'a> {
    schema: u32,
    measure: &'static str,
    run: Vec<RunFact<'a>>,
    elapsed_ns: u64,
    events: &'a [EventLine],
    accounting: &'a Accounting,
    counts: &'a [EventCount],
    rates: &'a [DerivedRate],
    latency_buckets: Option<Vec<BucketDocument>>,
    cutoffs: CutoffDocument,
    by: &'a [String],
    rows_of_span: u64,
    rows_held: u64,
    truncated: bool,
    total: &'a QueryMetrics,
    rows: &'a [QueryRow],
    summaries: BTreeMap<&'a str, Vec<RowDocument<'a>>>,
    details: Vec<DetailDocument<'a>>,
    threads: Vec<ThreadDocument<'a>>,
    /// Code and threads that are left out for their number, or because they cannot be read.
    not_shown: &'a [String],
    warnings: &'a [String],
}

/// A line of the run information; some names come more than once.
#[derive(Debug, Serialize)]
struct RunFact<'a> {
    name: &'a str,
    text: &'a str,
}

#[derive(Debug, Serialize)]
struct BucketDocument {
    /// The highest latency in it; `null` of the last.
    to: Option<u64>,
    /// The level that it was measured for.
    level: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct CutoffDocument {
    summary: [f64; 3],
    detail: [f64; 3],
}

#[derive(Debug, Serialize)]
struct RowDocument<'a> {
    key: &'a [KeyValue],
    name: &'a str,
    /// It is left out of the text by the cutoffs.
    cut: bool,
    #[serde(flatten)]
    sums: SumsDocument<'a>,
}

#[derive(Debug, Serialize)]
struct SumsDocument<'a> {
    /// Share of the whole, in percent.
    percent: f64,
    samples: u64,
    hits: u64,
    period: &'a BTreeMap<String, u64>,
    latency: u64,
    average_latency: Option<f64>,
    buckets: Option<&'a [u64]>,
    levels: &'a BTreeMap<String, u64>,
    l2_fills: u64,
    walker_fills: u64,
    software_fills: u64,
}

#[derive(Debug, Serialize)]
struct ThreadDocument<'a> {
    thread: &'a KeyValue,
    name: &'a str,
    summaries: BTreeMap<&'a str, Vec<RowDocument<'a>>>,
    details: Vec<DetailDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct DetailDocument<'a> {
    module: &'a str,
    function: &'a str,
    address: String,
    file: Option<&'a str>,
    /// Samples that were reported in it and are at none of its instructions.
    elsewhere: u64,
    total: SumsDocument<'a>,
    rows: Vec<DetailRowDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct DetailRowDocument<'a> {
    kind: &'static str,
    line: Option<u32>,
    column: Option<u16>,
    offset: Option<i64>,
    address: Option<String>,
    approximate: bool,
    out_of_order: bool,
    /// Reason that not all of a line of the cache is this function's.
    crosses: Option<&'static str>,
    text: &'a str,
    object: Option<&'a str>,
    #[serde(flatten)]
    sums: SumsDocument<'a>,
}

/// The document of a report.
pub(crate) fn of(report: &MeasureReport) -> MeasureDocument<'_> {
    let cutoffs = |of: &CodeCutoffs| [of.min_percent, of.cumulative_percent, of.min_samples as f64];
    MeasureDocument {
        schema: SCHEMA,
        measure: report.overview.samples.measure.name(),
        run: report.run.iter().map(|(name, text)| RunFact { name, text }).collect(),
        elapsed_ns: report.overview.snapshot.elapsed_ns,
        events: &report.overview.snapshot.events,
        accounting: &report.overview.snapshot.accounting,
        counts: &report.overview.snapshot.counts,
        rates: &report.overview.rates,
        latency_buckets: report.overview.samples.scale.as_ref().map(buckets),
        cutoffs: CutoffDocument {
            summary: cutoffs(&report.view.summary),
            detail: cutoffs(&report.view.detail),
        },
        by: &report.answer.by,
        rows_of_span: report.answer.rows_of_span,
        rows_held: report.answer.rows_held,
        truncated: report.answer.truncated,
        total: &report.answer.total,
        rows: &report.answer.rows,
        summaries: summaries(report, report.overview.summaries.iter().chain(&report.overview.data)),
        details: report.details.iter().map(|it| detail(report, it)).collect(),
        threads: report
            .threads
            .iter()
            .map(|thread| ThreadDocument {
                thread: &thread.tid,
                name: &thread.name,
                summaries: summaries(report, thread.summaries.iter()),
                details: thread.details.iter().map(|it| detail(report, it)).collect(),
            })
            .collect(),
        not_shown: &report.not_shown,
        warnings: &report.overview.snapshot.warnings,
    }
}

fn buckets(scale: &LatencyScale) -> Vec<BucketDocument> {
    let bounded = scale.bounds.iter().zip(scale.levels);
    let bounded = bounded.map(|(to, level)| BucketDocument { to: Some(*to), level });
    bounded.chain([BucketDocument { to: None, level: None }]).collect()
}

fn summaries<'a>(
    report: &'a MeasureReport,
    summaries: impl Iterator<Item = &'a Summary>,
) -> BTreeMap<&'a str, Vec<RowDocument<'a>>> {
    let row = |row: &'a SummaryRow| RowDocument {
        key: &row.key,
        name: &row.name,
        cut: row.is_cut,
        sums: sums(report, &row.sums, row.shares),
    };
    summaries.map(|summary| (summary.name, summary.rows.iter().map(row).collect())).collect()
}

fn sums<'a>(report: &MeasureReport, sums: &'a SampleSums, shares: Shares) -> SumsDocument<'a> {
    let average = (sums.samples != 0 && report.overview.samples.scale.is_some())
        .then(|| sums.latency as f64 / sums.samples as f64);
    SumsDocument {
        percent: crate::annotation::cutoff::percent(shares.own, shares.total),
        samples: sums.samples,
        hits: sums.hits,
        period: &sums.weights,
        latency: sums.latency,
        average_latency: average,
        buckets: report.overview.samples.scale.is_some().then_some(&sums.buckets[..]),
        levels: &sums.levels,
        l2_fills: sums.fill(Fill::SecondLevel),
        walker_fills: sums.fill(Fill::Walker),
        software_fills: sums.fill(Fill::Software),
    }
}

fn detail<'a>(report: &'a MeasureReport, detail: &'a FunctionDetail) -> DetailDocument<'a> {
    let of_sums = |of: &'a SampleSums| {
        let total = detail.whole;
        sums(report, of, Shares { own: report.overview.metric(of), before: None, total })
    };
    let row = |row: &'a DetailRow| {
        let mut document = DetailRowDocument {
            kind: "",
            line: None,
            column: None,
            offset: None,
            address: None,
            approximate: false,
            out_of_order: false,
            crosses: None,
            text: &row.text,
            object: row.object.as_deref(),
            sums: of_sums(&row.sums),
        };
        match &row.kind {
            DetailKind::File(path) => (document.kind, document.text) = ("file", path),
            DetailKind::Inlined(name) => {
                (document.kind, document.text) = ("inlined", name.as_deref().unwrap_or(""));
            }
            DetailKind::Statement { line, is_approximate, is_out_of_order, is_context } => {
                document.kind = if *is_context { "context" } else { "statement" };
                document.line = Some(*line);
                document.approximate = *is_approximate;
                document.out_of_order = *is_out_of_order;
            }
            DetailKind::Instruction { column, offset, is_approximate, .. } => {
                document.kind = "instruction";
                document.column = Some(*column).filter(|column| *column != 0);
                document.offset = Some(*offset);
                document.address =
                    Some(format!("{:#x}", detail.start.wrapping_add_signed(*offset)));
                document.approximate = *is_approximate;
            }
            DetailKind::CacheLine { start, crosses } => {
                document.kind = "cache_line";
                document.address = Some(format!("{start:#x}"));
                document.crosses = *crosses;
            }
            DetailKind::Gap(_) => document.kind = "gap",
        }
        document
    };
    DetailDocument {
        module: &detail.module,
        function: &detail.function,
        address: format!("{:#x}", detail.start),
        file: detail.file.as_deref(),
        elsewhere: detail.n_elsewhere,
        total: of_sums(&detail.total),
        rows: detail.rows.iter().map(row).collect(),
    }
}

/// Columns of each line of the sheet.
const COLUMNS: [FieldColumn; 24] = [
    ("section", "/section"),
    ("thread", "/thread"),
    ("name", "/name"),
    ("cut", "/cut"),
    ("count", "/count"),
    ("counted", "/counted"),
    ("enabled_ns", "/enabled_ns"),
    ("running_ns", "/running_ns"),
    ("lacks", "/lacks"),
    ("percent", "/percent"),
    ("samples", "/samples"),
    ("hits", "/hits"),
    ("events", "/events"),
    ("latency", "/latency"),
    ("average_latency", "/average_latency"),
    ("buckets", "/buckets"),
    ("l2_fills", "/l2_fills"),
    ("walker_fills", "/walker_fills"),
    ("software_fills", "/software_fills"),
    ("line", "/line"),
    ("column", "/column"),
    ("offset", "/offset"),
    ("text", "/text"),
    ("object", "/object"),
];

/// Writes one line for each count, each row of a summary and each row of a function's code.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write_csv(report: &MeasureReport, out: &mut dyn Write) -> io::Result<()> {
    write_titles(&[&COLUMNS], out)?;
    let mut line = |value: &Value| write_fields(&[(&COLUMNS, value)], out);
    for count in &report.overview.snapshot.counts {
        let mut value = serde_json::to_value(count)?;
        value["section"] = json!("count");
        value["name"] = json!(count.event);
        line(&value)?;
    }
    let document = of(report);
    let sections = [(None, &document.summaries, &document.details)].into_iter();
    let threads = document.threads.iter().map(|it| (Some(it.thread), &it.summaries, &it.details));
    for (thread, summaries, details) in sections.chain(threads) {
        let mut line_of = |mut value: Value| {
            value["thread"] = json!(thread);
            line(&value)
        };
        for (section, rows) in summaries {
            for row in rows {
                line_of(sheet_row(section, row.name, row, &row.sums)?)?;
            }
        }
        for detail in details {
            let name = format!("{}::{}", detail.module, detail.function);
            let has_code =
                |row: &&DetailRowDocument<'_>| !matches!(row.kind, "gap" | "file" | "inlined");
            for row in detail.rows.iter().filter(has_code) {
                line_of(sheet_row(row.kind, &name, row, &row.sums)?)?;
            }
        }
    }
    out.flush()
}

fn sheet_row(
    section: &str,
    name: &str,
    row: &impl Serialize,
    sums: &SumsDocument<'_>,
) -> io::Result<Value> {
    let mut value = serde_json::to_value(row)?;
    value["section"] = json!(section);
    value["name"] = json!(name);
    value["events"] = json!(sums.period.values().sum::<u64>());
    Ok(value)
}
