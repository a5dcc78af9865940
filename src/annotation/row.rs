//! Rows of annotated code, from top to bottom: what a table prints and a screen draws.

use super::model::{AnnotatedInstruction, Annotation};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bytes of a line of the instruction cache.
const CACHE_LINE_BYTES: u64 = 64;

/// Lines without code that are shown between two that have some.
const MAX_LINES_BETWEEN: u32 = 4;

/// A row of the view of instructions.
#[derive(Clone, Debug)]
pub(crate) enum CodeRow<'a> {
    /// From here on lines are of this file.
    File {
        /// Number of the file.
        file: usize,
    },
    /// From here on lines are of this function, which was put in line; `None`: of the function itself.
    Function {
        /// Its name.
        name: Option<&'a Arc<str>>,
    },
    /// Instructions of a statement follow.
    Statement(StatementRow<'a>),
    /// An instruction.
    Instruction(&'a AnnotatedInstruction),
    /// A line of the instruction cache begins (HP Caliper's `- - - -`).
    CacheLine {
        /// Its first address.
        start: u64,
        /// Bytes from the beginning of the instruction above, where it begins in the middle of that.
        into: u64,
    },
    /// Lines of the instruction cache are left out, or the code goes on elsewhere (`~ ~ ~ ~`).
    Gap {
        /// Instructions that are left out.
        n_instructions: usize,
    },
}

/// A statement, with the sums of its instructions that follow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatementRow<'a> {
    /// The line.
    pub(crate) line: u32,
    /// Some of its instructions need not be of this line alone (`~`).
    pub(crate) is_approximate: bool,
    /// A statement that stands after it in the source has come before (`*>`).
    pub(crate) is_out_of_order: bool,
    /// Its text, where it may be shown.
    pub(crate) text: Option<&'a str>,
    /// Samples that waited at its instructions that follow.
    pub(crate) waited: u64,
    /// Samples that were reported there.
    pub(crate) reported: u64,
}

/// The rows of a function's instructions, in the order of their addresses, with those that the cutoffs leave.
pub(crate) fn code_rows(annotation: &Annotation) -> Vec<CodeRow<'_>> {
    let kept = kept_lines(annotation);
    let is_kept = |instruction: &AnnotatedInstruction| {
        kept.as_ref().is_none_or(|kept| kept.contains(&cache_line(instruction.listed.at.0)))
    };
    let mut rows = Vec::new();
    let mut state = RowState::default();
    let mut n_left_out = 0;
    for (at, instruction) in annotation.instructions.iter().enumerate() {
        let is_new = state.is_new_statement(instruction);
        if !is_kept(instruction) {
            n_left_out += 1;
            // What comes after it is told anew.
            state.pass(instruction);
            continue;
        }
        let start = instruction.listed.at.0;
        let is_apart = state.end.is_some_and(|end| end != start);
        if n_left_out > 0 || is_apart {
            rows.push(CodeRow::Gap { n_instructions: n_left_out });
        }
        if state.end.is_none() || is_apart || n_left_out > 0 || start % CACHE_LINE_BYTES == 0 {
            rows.push(CodeRow::CacheLine { start: cache_line(start), into: 0 });
        }
        n_left_out = 0;
        if is_new || state.is_interrupted || is_apart {
            state.push_statement(annotation, at, &is_kept, &mut rows);
        }
        rows.push(CodeRow::Instruction(instruction));
        let end = instruction.end();
        let next_line = cache_line(end.saturating_sub(1));
        if next_line > start {
            rows.push(CodeRow::CacheLine { start: next_line, into: next_line - start });
        }
        state.end = Some(end);
        state.is_interrupted = false;
    }
    if n_left_out > 0 {
        rows.push(CodeRow::Gap { n_instructions: n_left_out });
    }
    rows
}

const fn cache_line(address: u64) -> u64 {
    address - address % CACHE_LINE_BYTES
}

/// The cache lines of the instructions that the cutoffs leave; `None` where they leave all.
fn kept_lines(annotation: &Annotation) -> Option<BTreeSet<u64>> {
    if !annotation.cutoffs.is_any() {
        return None;
    }
    let samples: Vec<u64> = annotation.instructions.iter().map(|it| it.sums.samples).collect();
    let kept = annotation.cutoffs.kept(&samples, annotation.n_samples());
    let lines = annotation.instructions.iter().zip(kept).filter(|(_, is_kept)| *is_kept);
    Some(lines.map(|(it, _)| cache_line(it.listed.at.0)).collect())
}

/// The function and line that rows are of.
type Place<'a> = (Option<&'a Arc<str>>, usize, u32);

/// All that rows so far have told.
#[derive(Default)]
struct RowState<'a> {
    /// The address after the last row.
    end: Option<u64>,
    place: Option<Place<'a>>,
    /// The function and the file that were told last.
    function: Option<&'a Arc<str>>,
    file: Option<usize>,
    is_interrupted: bool,
    /// The last line of each function and file that has come.
    furthest: BTreeMap<(Option<&'a Arc<str>>, usize), u32>,
}

/// The function that was put in line which the instruction is of, its file and line.
fn place(instruction: &AnnotatedInstruction) -> Option<Place<'_>> {
    let line = instruction.line?;
    let lines = &instruction.listed.lines;
    let function = if lines.len() > 1 { lines[0].function.as_ref() } else { None };
    Some((function, line.file, line.line))
}

impl<'a> RowState<'a> {
    /// Tells whether an instruction is of another statement than the one before, whose place it keeps.
    fn is_new_statement(&mut self, instruction: &'a AnnotatedInstruction) -> bool {
        let here = place(instruction);
        let is_new = here.is_some() && here != self.place;
        self.place = here;
        is_new
    }

    /// Passes over an instruction that is not shown.
    fn pass(&mut self, instruction: &'a AnnotatedInstruction) {
        self.is_interrupted = true;
        if let Some((function, file, line)) = place(instruction) {
            self.come_to(function, file, line);
        }
    }

    /// Tells whether a line comes after one that stands behind it.
    fn come_to(&mut self, function: Option<&'a Arc<str>>, file: usize, line: u32) -> bool {
        let furthest = self.furthest.entry((function, file)).or_insert(line);
        let is_out_of_order = line < *furthest;
        *furthest = line.max(*furthest);
        is_out_of_order
    }

    /// Adds the statement of the instruction at `from`.
    fn push_statement(
        &mut self,
        annotation: &'a Annotation,
        from: usize,
        is_kept: &dyn Fn(&AnnotatedInstruction) -> bool,
        rows: &mut Vec<CodeRow<'a>>,
    ) {
        let Some((function, file, line)) = self.place else { return };
        if self.file != Some(file) {
            rows.push(CodeRow::File { file });
            self.file = Some(file);
        }
        if self.function != function {
            rows.push(CodeRow::Function { name: function });
            self.function = function;
        }
        let rest = &annotation.instructions[from..];
        let run = rest.iter().take_while(|it| place(it) == self.place && is_kept(it));
        let (mut waited, mut reported, mut is_approximate) = (0, 0, false);
        let mut end = None;
        for instruction in run {
            if end.is_some_and(|end| end != instruction.listed.at.0) {
                break;
            }
            waited += instruction.sums.samples;
            reported += instruction.reported;
            is_approximate |= instruction.line.is_some_and(|line| line.is_approximate);
            end = Some(instruction.end());
        }
        let is_out_of_order = self.come_to(function, file, line);
        let text = annotation.files.get(file).and_then(|file| file.line(line));
        rows.push(CodeRow::Statement(StatementRow {
            line,
            is_approximate,
            is_out_of_order,
            text,
            waited,
            reported,
        }));
    }
}

/// A row of the view of source lines.
#[derive(Clone, Debug)]
pub(crate) enum LineRow<'a> {
    /// From here on lines are of this file.
    File {
        /// Number of the file.
        file: usize,
    },
    /// A line.
    Line(SourceRow<'a>),
    /// Lines are left out.
    Gap,
}

/// A source line with the sums of all its instructions.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourceRow<'a> {
    /// The file.
    pub(crate) file: usize,
    /// The line.
    pub(crate) line: u32,
    /// Its text, where it may be shown.
    pub(crate) text: Option<&'a str>,
    /// Its instructions; none for a line without code.
    pub(crate) instructions: Vec<&'a AnnotatedInstruction>,
    /// Samples that waited there.
    pub(crate) waited: u64,
    /// Samples that were reported there.
    pub(crate) reported: u64,
    /// Some of its instructions need not be of this line alone.
    pub(crate) is_approximate: bool,
    /// The data object of its samples that has most of them.
    pub(crate) object: Option<(&'a Arc<str>, u64)>,
}

/// The rows of a function's source lines, in the order of the files, with those that the cutoffs leave.
pub(crate) fn line_rows(annotation: &Annotation) -> Vec<LineRow<'_>> {
    let lines = source_lines(annotation);
    let samples: Vec<u64> = lines.iter().map(|line| line.waited).collect();
    let kept = annotation.cutoffs.kept(&samples, annotation.n_samples());
    let mut rows = Vec::new();
    let mut last: Option<(usize, u32)> = None;
    let mut is_gap = false;
    for (line, is_kept) in lines.into_iter().zip(kept) {
        if !is_kept {
            is_gap = true;
            continue;
        }
        let (file, number) = (line.file, line.line);
        match last {
            Some((known, before)) if known == file => {
                let n_between = number - before - 1;
                if is_gap || n_between > MAX_LINES_BETWEEN {
                    rows.push(LineRow::Gap);
                } else {
                    rows.extend((before + 1..number).map(|line| {
                        let text = annotation.files.get(file).and_then(|file| file.line(line));
                        LineRow::Line(SourceRow { file, line, text, ..SourceRow::default() })
                    }));
                }
            }
            _ => {
                rows.push(LineRow::File { file });
                if is_gap {
                    rows.push(LineRow::Gap);
                }
            }
        }
        is_gap = false;
        last = Some((file, number));
        rows.push(LineRow::Line(line));
    }
    if is_gap {
        rows.push(LineRow::Gap);
    }
    rows
}

/// All lines that have code, in the order of files and lines.
pub(crate) fn source_lines(annotation: &Annotation) -> Vec<SourceRow<'_>> {
    let mut lines: BTreeMap<(usize, u32), SourceRow<'_>> = BTreeMap::new();
    for instruction in &annotation.instructions {
        let Some(at) = instruction.line else { continue };
        let line = lines.entry((at.file, at.line)).or_insert_with(|| SourceRow {
            file: at.file,
            line: at.line,
            text: annotation.files.get(at.file).and_then(|file| file.line(at.line)),
            ..SourceRow::default()
        });
        line.instructions.push(instruction);
        line.waited += instruction.sums.samples;
        line.reported += instruction.reported;
        line.is_approximate |= at.is_approximate;
    }
    let mut lines: Vec<SourceRow<'_>> = lines.into_values().collect();
    for line in &mut lines {
        let mut objects: BTreeMap<&Arc<str>, u64> = BTreeMap::new();
        for (object, samples) in line.instructions.iter().flat_map(|it| &it.sums.objects) {
            *objects.entry(object).or_default() += samples;
        }
        let most = objects.into_iter().max_by_key(|(_, samples)| *samples);
        let said = || line.instructions.iter().find_map(|it| it.object());
        line.object = most.or_else(said);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::cutoff::CodeCutoffs;
    use super::super::model::{AnnotatedFile, CodeLine};
    use super::*;
    use crate::arrangement::ObjectNames;
    use crate::file_source::SourceText;
    use dataspace_analyzer::index::code_listing::ListedInstruction;
    use dataspace_analyzer::query::code_sums::{CodeSums, InstructionSums};
    use dataspace_proto::address::Svma;

    /// Instructions of so many bytes each, with their line and their samples, one after the other from 0x1030 on.
    fn annotation(rows: &[(usize, u32, u64)], cutoffs: CodeCutoffs) -> Annotation {
        let mut at = 0x1030;
        let mut instructions = Vec::new();
        let mut sums = CodeSums::default();
        for (n_bytes, line, samples) in rows {
            let of = InstructionSums { samples: *samples, ..InstructionSums::default() };
            sums.n_waited += samples;
            instructions.push(AnnotatedInstruction {
                listed: ListedInstruction {
                    at: Svma(at),
                    bytes: vec![0x90; *n_bytes].into(),
                    text: "nop".into(),
                    refers_to: None,
                    lines: Vec::new().into(),
                    is_statement: true,
                    is_of_no_line: false,
                    column: 0,
                    operands: Vec::new(),
                },
                sums: of.clone(),
                reported: 0,
                line: Some(CodeLine { file: 0, line: *line, is_approximate: false }),
            });
            sums.waited.insert(Svma(at), of);
            at += *n_bytes as u64;
        }
        let whole = 0x1030..at;
        let lines = (1..=40).map(|line| format!("line {line}").into()).collect();
        let text = Ok(Arc::new(SourceText { lines }));
        Annotation {
            function: "f".into(),
            symbol: None,
            module: "/m".to_owned(),
            parts: vec![whole],
            is_cut: false,
            sums,
            events: Vec::new(),
            instructions,
            files: vec![AnnotatedFile { path: "/f.c".into(), text }],
            objects: Vec::new(),
            names: ObjectNames::default(),
            others: Vec::new(),
            cutoffs,
        }
    }

    /// The rows in a few signs.
    fn shown(annotation: &Annotation) -> Vec<String> {
        let short = |row: &CodeRow<'_>| match row {
            CodeRow::File { file } => format!("file {file}"),
            CodeRow::Function { name } => format!("function {name:?}"),
            CodeRow::Statement(it) => {
                let mark = if it.is_out_of_order { "*>" } else { ">" };
                format!("{mark}{} {}", it.text.unwrap_or_default(), it.waited)
            }
            CodeRow::Instruction(it) => format!("{:x}", it.listed.at.0),
            CodeRow::CacheLine { start, into } => format!("- {start:x}+{into}"),
            CodeRow::Gap { n_instructions } => format!("~ {n_instructions}"),
        };
        code_rows(annotation).iter().map(short).collect()
    }

    #[test]
    fn statements_stand_above_their_runs_and_lines_of_the_cache_where_they_begin() {
        let rows = [(8, 7, 1), (6, 7, 2), (4, 9, 0), (14, 7, 5), (32, 10, 0), (4, 10, 0)];
        let annotation = annotation(&rows, CodeCutoffs::NONE);
        let expect = [
            "- 1000+0",
            "file 0",
            ">line 7 3",
            "1030",
            "1038",
            ">line 9 0",
            "103e",
            "- 1040+2",
            "*>line 7 5",
            "1042",
            ">line 10 0",
            "1050",
            "1070",
        ];
        assert_eq!(shown(&annotation), expect);
    }

    #[test]
    fn cutoffs_leave_whole_lines_of_the_cache_out_and_say_so() {
        let rows = [(16, 1, 1), (64, 2, 9), (64, 3, 0), (64, 4, 0), (64, 5, 3), (8, 6, 0)];
        let cutoffs = CodeCutoffs { min_samples: 2, ..CodeCutoffs::NONE };
        let annotation = annotation(&rows, cutoffs);
        let expect = [
            "~ 1",
            "- 1040+0",
            "file 0",
            ">line 2 9",
            "1040",
            "~ 2",
            "- 1100+0",
            ">line 5 3",
            "1100",
            "~ 1",
        ];
        assert_eq!(shown(&annotation), expect);
    }

    #[test]
    fn source_lines_have_the_sums_of_all_their_instructions() {
        let rows = [(4, 3, 1), (4, 5, 2), (4, 3, 4), (4, 20, 0)];
        let annotation = annotation(&rows, CodeCutoffs::NONE);
        let short = |row: &LineRow<'_>| match row {
            LineRow::File { file } => format!("file {file}"),
            LineRow::Line(line) => {
                format!("{} {} {}", line.line, line.waited, line.instructions.len())
            }
            LineRow::Gap => "~".to_owned(),
        };
        let shown: Vec<String> = line_rows(&annotation).iter().map(short).collect();
        assert_eq!(shown, ["file 0", "3 5 2", "4 0 0", "5 2 1", "~", "20 0 1"]);
    }
}
