//! Annotated code as JSON. Programs read these keys: they keep their meaning.

use super::cutoff::CodeCutoffs;
use super::model::{AnnotatedInstruction, Annotation};
use super::row::{CodeRow, LineRow, SourceRow, code_rows, line_rows, source_lines};
use dataspace_analyzer::dwarf::code::line::SourceLine;
use dataspace_proto::memory::Access;
use dataspace_proto::reason::Reason;
use dataspace_proto::snapshot::SCHEMA;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Key of the samples that one of several instructions caused.
const ONE_OF_SEVERAL: &str = "one_of_several";

/// One function.
#[derive(Debug, Serialize)]
pub(crate) struct AnnotationDocument<'a> {
    schema: u32,
    function: &'a str,
    symbol: Option<&'a str>,
    module: &'a str,
    parts: Vec<PartDocument>,
    /// The function has more instructions than are listed.
    truncated: bool,
    total: TotalDocument<'a>,
    cutoffs: CutoffDocument,
    files: Vec<FileDocument<'a>>,
    instructions: Vec<InstructionDocument<'a>>,
    lines: Vec<LineDocument<'a>>,
    objects: Vec<ObjectDocument<'a>>,
    others: Vec<OtherDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct PartDocument {
    start: String,
    end: String,
}

/// `samples = waited + Σ without_trigger`; `reported = waited − waited_reported_elsewhere + Σ without_trigger +
/// reported_waited_elsewhere`.
#[derive(Debug, Serialize)]
struct TotalDocument<'a> {
    samples: u64,
    waited: u64,
    reported: u64,
    without_trigger: BTreeMap<&'a str, u64>,
    waited_reported_elsewhere: u64,
    reported_waited_elsewhere: u64,
    samples_of_session: u64,
    samples_held: u64,
    samples_not_held: u64,
}

#[derive(Debug, Serialize)]
struct CutoffDocument {
    percent: f64,
    cumulative: f64,
    minimum: u64,
}

#[derive(Debug, Serialize)]
struct FileDocument<'a> {
    path: &'a str,
    /// Reason that its text is not shown.
    not_shown: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct InstructionDocument<'a> {
    address: String,
    bytes: String,
    text: &'a str,
    refers_to: Option<String>,
    refers_to_name: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    approximate: bool,
    statement: bool,
    out_of_order: bool,
    /// Innermost first; the last is the function's own line.
    inlined: Vec<ChainDocument<'a>>,
    access: Option<Access>,
    size: Option<u32>,
    /// Its operand, as instruction and debug information say.
    operand: Option<&'a str>,
    operand_reason: Option<&'a str>,
    /// The object that most of its samples touched.
    object: Option<&'a str>,
    objects: Vec<CountDocument<'a>>,
    #[serde(flatten)]
    sums: SumsDocument<'a>,
    /// It is left out by the cutoffs.
    cut: bool,
}

#[derive(Debug, Serialize)]
struct SumsDocument<'a> {
    waited: u64,
    reported: u64,
    reported_at: Vec<PlaceDocument>,
    loads: u64,
    stores: u64,
    not_memory: u64,
    frequency: u64,
    latency: u64,
    period: BTreeMap<&'a str, u64>,
}

#[derive(Debug, Serialize)]
struct ChainDocument<'a> {
    function: Option<&'a str>,
    file: Option<&'a str>,
    line: u32,
}

#[derive(Debug, Serialize)]
struct CountDocument<'a> {
    object: &'a str,
    name: Option<&'a str>,
    samples: u64,
}

#[derive(Debug, Serialize)]
struct PlaceDocument {
    address: String,
    samples: u64,
}

#[derive(Debug, Serialize)]
struct LineDocument<'a> {
    file: &'a str,
    line: u32,
    text: Option<&'a str>,
    approximate: bool,
    waited: u64,
    reported: u64,
    object: Option<&'a str>,
    instructions: Vec<String>,
    cut: bool,
}

#[derive(Debug, Serialize)]
struct ObjectDocument<'a> {
    object: &'a str,
    name: Option<&'a str>,
    samples: u64,
    instructions: Vec<PlaceDocument>,
}

#[derive(Debug, Serialize)]
struct OtherDocument<'a> {
    function: &'a str,
    module: &'a str,
    address: String,
    samples: u64,
}

fn hex(address: u64) -> String {
    format!("{address:#x}")
}

fn place((address, samples): (u64, u64)) -> PlaceDocument {
    PlaceDocument { address: hex(address), samples }
}

impl<'a> AnnotationDocument<'a> {
    /// All that is known of `annotation`: cutoffs leave nothing out, they are told.
    pub(crate) fn of(annotation: &'a Annotation) -> Self {
        let sums = &annotation.sums;
        let without = |(reason, samples): (&Reason, &u64)| (reason.name(), *samples);
        let several = Some((ONE_OF_SEVERAL, sums.n_of_several)).filter(|(_, n)| *n != 0);
        let CodeCutoffs { min_percent, cumulative_percent, min_samples } = annotation.cutoffs;
        let part = |part: &std::ops::Range<u64>| PartDocument {
            start: hex(part.start),
            end: hex(part.end),
        };
        Self {
            schema: SCHEMA,
            function: &annotation.function,
            symbol: annotation.symbol.as_deref(),
            module: &annotation.module,
            parts: annotation.parts.iter().map(part).collect(),
            truncated: annotation.is_cut,
            total: TotalDocument {
                samples: annotation.n_samples(),
                waited: sums.n_waited,
                reported: sums.n_reported(),
                without_trigger: sums.without_trigger.iter().map(without).chain(several).collect(),
                waited_reported_elsewhere: sums.n_waited_reported_elsewhere,
                reported_waited_elsewhere: sums.n_reported_waited_elsewhere,
                samples_of_session: sums.n_of_session,
                samples_held: sums.n_held,
                samples_not_held: sums.n_not_held,
            },
            cutoffs: CutoffDocument {
                percent: min_percent,
                cumulative: cumulative_percent,
                minimum: min_samples,
            },
            files: files(annotation),
            instructions: instructions(annotation),
            lines: lines(annotation),
            objects: objects(annotation),
            others: others(annotation),
        }
    }
}

fn files(annotation: &Annotation) -> Vec<FileDocument<'_>> {
    annotation
        .files
        .iter()
        .map(|file| FileDocument {
            path: &file.path,
            not_shown: file.text.as_ref().err().map(|why| why.0.as_str()),
        })
        .collect()
}

fn instructions(annotation: &Annotation) -> Vec<InstructionDocument<'_>> {
    let (mut shown, mut out_of_order, mut is_out) = (BTreeSet::new(), BTreeSet::new(), false);
    for row in code_rows(annotation) {
        match row {
            CodeRow::Statement(statement) => is_out = statement.is_out_of_order,
            CodeRow::Instruction(it) => {
                shown.insert(it.listed.at);
                if is_out {
                    out_of_order.insert(it.listed.at);
                }
            }
            _ => {}
        }
    }
    let document = |it| {
        let it: &AnnotatedInstruction = it;
        let is_out_of_order = out_of_order.contains(&it.listed.at);
        instruction(annotation, it, is_out_of_order, !shown.contains(&it.listed.at))
    };
    annotation.instructions.iter().map(document).collect()
}

fn instruction<'a>(
    annotation: &'a Annotation,
    it: &'a AnnotatedInstruction,
    out_of_order: bool,
    cut: bool,
) -> InstructionDocument<'a> {
    let listed = &it.listed;
    let operand = it.operand();
    let line = it.line;
    let chain = |line: &'a SourceLine| ChainDocument {
        function: line.function.as_deref(),
        file: line.path.as_deref(),
        line: line.line,
    };
    InstructionDocument {
        address: hex(listed.at.0),
        bytes: listed.bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        text: &listed.text,
        refers_to: listed.refers_to.as_ref().map(|(to, _)| hex(to.0)),
        refers_to_name: listed.refers_to.as_ref().and_then(|(_, name)| name.as_deref()),
        file: line.and_then(|line| annotation.files.get(line.file)).map(|file| &*file.path),
        line: line.map(|line| line.line),
        approximate: line.is_none_or(|line| line.is_approximate),
        statement: listed.is_statement,
        out_of_order,
        inlined: listed.lines.iter().map(chain).collect(),
        access: operand.map(|operand| operand.access),
        size: operand.map(|operand| operand.size).filter(|size| *size != 0),
        operand: operand
            .and_then(|operand| operand.object.as_ref().ok())
            .map(|object| &*object.descriptor),
        operand_reason: operand
            .and_then(|operand| operand.object.as_ref().err())
            .map(|it| it.name()),
        object: it.sums.objects.first().map(|(object, _)| &**object),
        objects: it
            .sums
            .objects
            .iter()
            .map(|(object, samples)| CountDocument {
                object,
                name: annotation.names.in_source(object),
                samples: *samples,
            })
            .collect(),
        sums: sums(annotation, it),
        cut,
    }
}

fn sums<'a>(annotation: &'a Annotation, it: &AnnotatedInstruction) -> SumsDocument<'a> {
    let of = &it.sums;
    let periods = annotation.events.iter().zip(&of.periods).filter(|(_, period)| **period != 0);
    let reported_at = of.reported_at.iter().map(|(at, samples)| place((at.0, *samples)));
    SumsDocument {
        waited: of.samples,
        reported: it.reported,
        reported_at: reported_at.collect(),
        loads: of.loads,
        stores: of.stores,
        not_memory: of.not_memory,
        frequency: of.by_frequency,
        latency: of.latency,
        period: periods.map(|(event, period)| (event.as_str(), *period)).collect(),
    }
}

fn lines<'a>(annotation: &'a Annotation) -> Vec<LineDocument<'a>> {
    let shown: BTreeSet<(usize, u32)> = line_rows(annotation)
        .into_iter()
        .filter_map(|row| match row {
            LineRow::Line(line) => Some((line.file, line.line)),
            LineRow::File { .. } | LineRow::Gap => None,
        })
        .collect();
    let document = |row: SourceRow<'a>| {
        let file = annotation.files.get(row.file)?;
        Some(LineDocument {
            file: &file.path,
            line: row.line,
            text: row.text,
            approximate: row.is_approximate,
            waited: row.waited,
            reported: row.reported,
            object: row.object.map(|(object, _)| &**object),
            instructions: row.instructions.iter().map(|it| hex(it.listed.at.0)).collect(),
            cut: !shown.contains(&(row.file, row.line)),
        })
    };
    source_lines(annotation).into_iter().filter_map(document).collect()
}

fn objects(annotation: &Annotation) -> Vec<ObjectDocument<'_>> {
    let objects = annotation.objects.iter().map(|it| ObjectDocument {
        object: &it.object,
        name: annotation.names.in_source(&it.object),
        samples: it.samples,
        instructions: it.instructions.iter().copied().map(place).collect(),
    });
    objects.collect()
}

fn others(annotation: &Annotation) -> Vec<OtherDocument<'_>> {
    let others = annotation.others.iter().map(|it| OtherDocument {
        function: &it.name,
        module: &it.module,
        address: hex(it.at.0),
        samples: it.samples,
    });
    others.collect()
}
