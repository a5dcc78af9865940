//! The code of one function with the sums of a measurement.

use super::question::{Measured, text};
use super::sums::SampleSums;
use super::view::{DetailRows, MeasureView};
use crate::annotation::cutoff::CodeCutoffs;
use crate::annotation::model::{AnnotatedInstruction, Annotation};
use crate::annotation::row::{CodeRow, code_rows, source_lines};
use crate::annotation::subject::CodeSearch;
use crate::arrangement::ObjectNames;
use crate::session::inspection::Inspector;
use dataspace_analyzer::history::store::HistoryView;
use dataspace_analyzer::query::code_sums::{CodeReckoning, SampledFunction};
use dataspace_analyzer::query::selection::SampleFilter;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Bytes of a line of the instruction cache.
const CACHE_LINE_BYTES: u64 = 64;

/// Sums by load object and address in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampledCode(HashMap<String, BTreeMap<u64, SampleSums>>);

impl SampledCode {
    /// Of a table of instructions.
    pub(crate) fn of(instructions: &[Measured]) -> Self {
        let mut code = Self::default();
        for row in instructions {
            let Some(place) = row.key.first().and_then(text) else { continue };
            let Some((module, at)) = place.rsplit_once("+0x") else { continue };
            let Ok(at) = u64::from_str_radix(at, 16) else { continue };
            code.0.entry(module.to_owned()).or_default().entry(at).or_default().add(&row.sums);
        }
        code
    }

    fn within(&self, module: &str, start: u64, end: u64) -> SampleSums {
        let mut sum = SampleSums::default();
        let of_module = self.0.get(module).into_iter();
        of_module.flat_map(|it| it.range(start..end)).for_each(|(_, sums)| sum.add(sums));
        sum
    }
}

/// Kind of a row of code.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DetailKind {
    /// From here on lines are of this file.
    File(String),
    /// From here on lines are of this function, which was put in line.
    Inlined(Option<String>),
    /// A statement, or a line of its source.
    Statement {
        /// The line.
        line: u32,
        /// Some of its instructions need not be of this line alone.
        is_approximate: bool,
        /// It has come before in the source than what stands above it.
        is_out_of_order: bool,
        /// Source around it, without code of its own.
        is_context: bool,
    },
    /// An instruction.
    Instruction {
        /// The column of its line; 0 where it is not told.
        column: u16,
        /// Its distance from the function's beginning.
        offset: i64,
        /// It has a line.
        has_line: bool,
        /// The line need not be its own alone.
        is_approximate: bool,
    },
    /// A line of the instruction cache begins.
    CacheLine {
        /// Its address.
        start: u64,
        /// Reason that not all of it is this function's.
        crosses: Option<&'static str>,
    },
    /// Code is left out.
    Gap(usize),
}

/// A row of code.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DetailRow {
    /// Its kind.
    pub(crate) kind: DetailKind,
    /// Text of the source, or of the instruction.
    pub(crate) text: String,
    /// The data object that it touches.
    pub(crate) object: Option<String>,
    /// Its sums.
    pub(crate) sums: SampleSums,
}

/// A function's code.
#[derive(Clone, Debug)]
pub(crate) struct FunctionDetail {
    /// The path of its load object.
    pub(crate) module: String,
    /// Its name.
    pub(crate) function: String,
    /// Its first address there.
    pub(crate) start: u64,
    /// The file of its source.
    pub(crate) file: Option<String>,
    /// The sums of the samples at its instructions.
    pub(crate) total: SampleSums,
    /// The number that shares of its rows are of.
    pub(crate) whole: u64,
    /// Samples that were reported in it and are at none of its instructions: those without a trigger, or with one elsewhere.
    pub(crate) n_elsewhere: u64,
    /// Other functions of the same name, whose code is not shown.
    pub(crate) n_namesakes: usize,
    /// Its rows.
    pub(crate) rows: Vec<DetailRow>,
}

/// A search for the code of functions.
pub(crate) struct DetailSearch<'a> {
    /// The samples.
    pub(crate) history: &'a HistoryView,
    /// Those that count.
    pub(crate) filter: Option<&'a SampleFilter>,
    /// The functions in which those were.
    pub(crate) sampled: &'a [SampledFunction],
    /// The index that is asked about code.
    pub(crate) inspector: &'a mut Inspector,
    /// Sums of instructions.
    pub(crate) code: &'a SampledCode,
    /// Presentation.
    pub(crate) view: &'a MeasureView,
    /// Names of objects.
    pub(crate) names: &'a ObjectNames,
    /// The fetching of code is measured.
    pub(crate) is_of_code: bool,
}

impl DetailSearch<'_> {
    /// The code of a function, with shares of `whole`; `None` where it cannot be read.
    pub(crate) fn detail(
        &mut self,
        module: &str,
        function: &str,
        whole: u64,
    ) -> Option<FunctionDetail> {
        let of_module = || self.sampled.iter().filter(|it| &*it.module == module);
        let found = of_module().find(|it| it.name.as_deref() == Some(function))?;
        // Sums are by path: of two files that had one, addresses mean nothing.
        if of_module().any(|it| it.object != found.object) {
            return None;
        }
        let places = found.addresses.iter().map(|(at, n)| (found.object, *at, *n)).collect();
        let mut search = CodeSearch {
            history: self.history,
            filter: self.filter,
            inspector: &mut *self.inspector,
            syntax: self.view.syntax,
        };
        let found = search.chosen(places, function).ok()?;
        let mut reckoning = CodeReckoning::new(found.object, &found.listing.parts, self.filter);
        reckoning.add(self.history);
        let sums = reckoning.finish(self.history);
        let n_elsewhere = sums.n_reported_waited_elsewhere + sums.n_without_trigger();
        let n_namesakes = found.others.len();
        let cutoffs = CodeCutoffs { min_samples: 1, ..CodeCutoffs::NONE };
        let events = self.history.events().to_vec();
        let annotation = Annotation::new(
            found,
            sums,
            &events,
            self.inspector,
            Some(cutoffs),
            self.names.clone(),
        );
        let rows = match self.view.rows {
            DetailRows::Statement => self.statements(&annotation),
            DetailRows::Instruction | DetailRows::All => self.instructions(&annotation),
        };
        let mut total = SampleSums::default();
        for part in &annotation.parts {
            total.add(&self.code.within(&annotation.module, part.start, part.end));
        }
        Some(FunctionDetail {
            module: annotation.module.clone(),
            function: function.to_owned(),
            start: origin(&annotation),
            file: annotation.files.first().map(|file| file.path.to_string()),
            n_elsewhere,
            n_namesakes,
            total,
            whole,
            rows,
        })
    }

    fn sums(&self, annotation: &Annotation, it: &AnnotatedInstruction) -> SampleSums {
        let start = it.listed.at.0;
        self.code.within(&annotation.module, start, it.end().max(start + 1))
    }

    fn instructions(&self, annotation: &Annotation) -> Vec<DetailRow> {
        let start = origin(annotation);
        let mut rows = Vec::new();
        for row in code_rows(annotation) {
            let plain = |kind: DetailKind, text: String| DetailRow {
                kind,
                text,
                object: None,
                sums: SampleSums::default(),
            };
            rows.push(match row {
                CodeRow::File { file } => {
                    let path = annotation.files.get(file).map(|file| file.path.to_string());
                    plain(DetailKind::File(path.unwrap_or_default()), String::new())
                }
                CodeRow::Function { name } => {
                    plain(DetailKind::Inlined(name.map(ToString::to_string)), String::new())
                }
                CodeRow::Statement(_) if self.view.rows == DetailRows::Instruction => continue,
                CodeRow::Statement(it) => plain(
                    DetailKind::Statement {
                        line: it.line,
                        is_approximate: it.is_approximate,
                        is_out_of_order: it.is_out_of_order,
                        is_context: false,
                    },
                    it.text.unwrap_or_default().to_owned(),
                ),
                CodeRow::Instruction(it) => DetailRow {
                    kind: DetailKind::Instruction {
                        column: it.listed.column,
                        offset: it.listed.at.0.wrapping_sub(start).cast_signed(),
                        has_line: it.line.is_some(),
                        is_approximate: it.line.is_some_and(|line| line.is_approximate),
                    },
                    text: crate::annotation::text::assembly(it),
                    object: it.object().map(|of| named(annotation, of)),
                    sums: self.sums(annotation, it),
                },
                CodeRow::CacheLine { start, .. } => {
                    let sums =
                        self.code.within(&annotation.module, start, start + CACHE_LINE_BYTES);
                    let kind = DetailKind::CacheLine { start, crosses: crosses(annotation, start) };
                    // Of data the line of the code tells nothing.
                    let sums = if self.is_of_code { sums } else { SampleSums::default() };
                    DetailRow { kind, text: String::new(), object: None, sums }
                }
                CodeRow::Gap { n_instructions } => {
                    plain(DetailKind::Gap(n_instructions), String::new())
                }
            });
        }
        sum_statements(&mut rows);
        rows
    }

    /// Statements that have samples, with the source around them.
    fn statements(&self, annotation: &Annotation) -> Vec<DetailRow> {
        let lines = source_lines(annotation);
        let with_sums: Vec<_> = lines
            .into_iter()
            .map(|line| {
                let mut sums = SampleSums::default();
                line.instructions.iter().for_each(|it| sums.add(&self.sums(annotation, it)));
                (line, sums)
            })
            .collect();
        let mut shown: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
        for (line, _) in with_sums.iter().filter(|(_, sums)| sums.samples != 0) {
            let around = self.view.context_lines;
            let lines = line.line.saturating_sub(around).max(1)..=line.line.saturating_add(around);
            shown.entry(line.file).or_default().extend(lines);
        }
        let by_line: HashMap<_, _> =
            with_sums.iter().map(|of| ((of.0.file, of.0.line), of)).collect();
        let mut rows = Vec::new();
        for (file, lines) in shown {
            let Some(known) = annotation.files.get(file) else { continue };
            let row = |kind, text: String, object, sums| DetailRow { kind, text, object, sums };
            let none = SampleSums::default;
            rows.push(row(DetailKind::File(known.path.to_string()), String::new(), None, none()));
            let mut last = None;
            for number in lines {
                let of_line = by_line.get(&(file, number)).copied();
                let text = known.line(number);
                if of_line.is_none() && text.is_none() {
                    continue;
                }
                if last.is_some_and(|last| number > last + 1) {
                    rows.push(row(DetailKind::Gap(0), String::new(), None, none()));
                }
                last = Some(number);
                let kind = DetailKind::Statement {
                    line: number,
                    is_approximate: of_line.is_some_and(|(it, _)| it.is_approximate),
                    is_out_of_order: false,
                    is_context: of_line.is_none(),
                };
                let object = of_line.and_then(|(it, _)| it.object);
                let object = object.map(|of| named(annotation, of));
                let sums = of_line.map_or_else(none, |(_, sums)| sums.clone());
                rows.push(row(kind, text.unwrap_or_default().to_owned(), object, sums));
            }
        }
        rows
    }
}

/// The address that offsets count from: the beginning of the largest part, for what is seldom executed may lie before it.
fn origin(annotation: &Annotation) -> u64 {
    let parts = annotation.parts.iter();
    parts.max_by_key(|part| part.end.saturating_sub(part.start)).map_or(0, |part| part.start)
}

/// The name of an object; in brackets where no sample touched it, and instruction and debug information say so.
fn named(annotation: &Annotation, (object, samples): (&Arc<str>, u64)) -> String {
    let name = annotation.names.spelled(object);
    if samples == 0 { format!("[{name}]") } else { name.to_owned() }
}

/// Gives each statement the sums of the instructions below it.
fn sum_statements(rows: &mut [DetailRow]) {
    let mut sum = SampleSums::default();
    for row in rows.iter_mut().rev() {
        match row.kind {
            DetailKind::Instruction { has_line: true, .. } => sum.add(&row.sums),
            DetailKind::Statement { .. } => row.sums = std::mem::take(&mut sum),
            DetailKind::Gap(_) => sum = SampleSums::default(),
            _ => {}
        }
    }
}

/// Reason that a line of the instruction cache is not of this function alone. HP Caliper gave all of it to the function of its first
/// byte.
fn crosses(annotation: &Annotation, start: u64) -> Option<&'static str> {
    let end = start + CACHE_LINE_BYTES;
    let part = annotation.parts.iter().find(|part| part.start < end && start < part.end)?;
    match (start < part.start, part.end < end) {
        (true, true) => Some("begins before the function and ends after it"),
        (true, false) => Some("begins before the function"),
        (false, true) => Some("ends after the function"),
        (false, false) => None,
    }
}
