//! The annotated code of one function: all that its rows are made of.

use super::cutoff::CodeCutoffs;
use super::subject::{CodeSearch, CodeSubject, FoundFunction, OtherFunction};
use crate::arrangement::ObjectNames;
use crate::config::Names;
use crate::exit::Failure;
use crate::file_source::{NoSource, SourceText};
use crate::session::findings::Findings;
use crate::session::inspection::Inspector;
use dataspace_analyzer::history::store::HistoryView;
use dataspace_analyzer::index::code_listing::{AssemblySyntax, ListedInstruction, ListedOperand};
use dataspace_analyzer::query::code_sums::{CodeReckoning, CodeSums, InstructionSums};
use dataspace_analyzer::query::selection::SampleFilter;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Files of which the source is read for one function: code that is put in line may come from many.
const MAX_FILES: usize = 64;

/// Objects that are listed below the code.
const MAX_OBJECTS: usize = 10;

/// A function with the samples of its instructions.
#[derive(Clone, Debug)]
pub(crate) struct Annotation {
    /// Its name.
    pub(crate) function: Arc<str>,
    /// Its symbol.
    pub(crate) symbol: Option<Arc<str>>,
    /// The path of its load object.
    pub(crate) module: String,
    /// Addresses of its parts in there.
    pub(crate) parts: Vec<Range<u64>>,
    /// True where it has more instructions than are listed.
    pub(crate) is_cut: bool,
    /// Its samples.
    pub(crate) sums: CodeSums,
    /// Names of the events.
    pub(crate) events: Vec<String>,
    /// Its instructions, in the order of their addresses.
    pub(crate) instructions: Vec<AnnotatedInstruction>,
    /// Its files: the function's own first.
    pub(crate) files: Vec<AnnotatedFile>,
    /// Data objects that it touches, most samples first.
    pub(crate) objects: Vec<TouchedObject>,
    /// Other functions that were meant, perhaps.
    pub(crate) others: Vec<OtherFunction>,
    /// The cutoffs in force.
    pub(crate) cutoffs: CodeCutoffs,
    /// Names of its objects.
    pub(crate) names: ObjectNames,
}

/// An instruction and its samples.
#[derive(Clone, Debug)]
pub(crate) struct AnnotatedInstruction {
    /// The instruction.
    pub(crate) listed: ListedInstruction,
    /// The samples that waited at it.
    pub(crate) sums: InstructionSums,
    /// The samples that were reported at it.
    pub(crate) reported: u64,
    /// Its line.
    pub(crate) line: Option<CodeLine>,
}

impl AnnotatedInstruction {
    /// The address after it.
    pub(crate) fn end(&self) -> u64 {
        self.listed.at.0.saturating_add(self.listed.bytes.len() as u64)
    }

    /// The data object that is shown beside it: the one with the most samples and its number, else what its operand says.
    /// Slots of the stack are named by samples alone: every call has one.
    pub(crate) fn object(&self) -> Option<(&Arc<str>, u64)> {
        if let Some((object, samples)) = self.sums.objects.first() {
            return Some((object, *samples));
        }
        let object = self.operand().filter(|it| it.is_written_out)?.object.as_ref().ok()?;
        Some((&object.descriptor, 0))
    }

    /// The operand that is shown: the first, which is the one that is written out if any is.
    pub(crate) fn operand(&self) -> Option<&ListedOperand> {
        self.listed.operands.first()
    }
}

/// The line of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodeLine {
    /// Number of its file.
    pub(crate) file: usize,
    /// The line.
    pub(crate) line: u32,
    /// The instruction need not be of this line alone: the compiler names none, so that it is that of the one before; or no
    /// statement begins there; or it is of a function that was put in line.
    pub(crate) is_approximate: bool,
}

/// A source file.
#[derive(Clone, Debug)]
pub(crate) struct AnnotatedFile {
    /// Its path, as the compiler recorded it.
    pub(crate) path: Arc<str>,
    /// Its text, or the reason that it is not shown.
    pub(crate) text: Result<Arc<SourceText>, NoSource>,
}

impl AnnotatedFile {
    /// The text of a line.
    pub(crate) fn line(&self, number: u32) -> Option<&str> {
        self.text.as_ref().ok()?.line(number)
    }
}

/// A data object that the function touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TouchedObject {
    /// Its descriptor.
    pub(crate) object: Arc<str>,
    /// Samples of the function on it.
    pub(crate) samples: u64,
    /// Addresses of the instructions, most samples first, and how many each has.
    pub(crate) instructions: Vec<(u64, u64)>,
}

impl Annotation {
    /// The code that is meant, with all of its instructions, and the samples of `history` that pass the filter.
    ///
    /// # Errors
    /// As [`CodeSearch::find`].
    pub(crate) fn find(
        (findings, history): (&Findings, &HistoryView),
        subject: &CodeSubject,
        filter: Option<&SampleFilter>,
        names: Names,
        inspector: &mut Inspector,
    ) -> Result<Self, Failure> {
        let syntax = AssemblySyntax::Att;
        let found = CodeSearch { history, filter, inspector, syntax }.find(subject)?;
        let mut reckoning = CodeReckoning::new(found.object, &found.listing.parts, filter);
        reckoning.add(history);
        let sums = reckoning.finish(history);
        let names = ObjectNames::of(&findings.snapshot.objects, names);
        let cutoffs = Some(CodeCutoffs::NONE);
        Ok(Self::new(found, sums, history.events(), inspector, cutoffs, names))
    }

    /// Joins a function's code with its samples, and reads its sources.
    pub(crate) fn new(
        found: FoundFunction,
        mut sums: CodeSums,
        events: &[String],
        inspector: &Inspector,
        cutoffs: Option<CodeCutoffs>,
        mut names: ObjectNames,
    ) -> Self {
        let FoundFunction { key, listing, others, .. } = found;
        let cutoffs = cutoffs.unwrap_or(CodeCutoffs::usual(listing.instructions.len()));
        let objects = touched_objects(&sums);
        let operands = listing.instructions.iter().flat_map(|it| &it.operands);
        operands
            .filter_map(|operand| operand.object.as_ref().ok())
            .for_each(|it| names.add(&it.descriptor, &it.name));
        let mut files = FileList::default();
        // The outermost line of any instruction is of the function's own file.
        let own = listing.instructions.iter().find_map(|it| it.lines.last()?.path.clone());
        if let Some(own) = own {
            files.number(&own);
        }
        let lines = code_lines(&listing.instructions, &mut files);
        let instructions = listing
            .instructions
            .into_iter()
            .zip(lines)
            .map(|(listed, line)| AnnotatedInstruction {
                sums: sums.waited.get(&listed.at).cloned().unwrap_or_default(),
                reported: sums.reported.get(&listed.at).copied().unwrap_or(0),
                listed,
                line,
            })
            .collect();
        // What is between instructions, as where the code was not the one that ran, is told with the accounts.
        sums.waited.retain(|_, of| of.samples != 0);
        let read = |path: Arc<str>| {
            let text = inspector.source(&key, &path).map(Arc::new);
            AnnotatedFile { path, text }
        };
        Self {
            function: listing.name.unwrap_or_else(|| "?".into()),
            symbol: listing.symbol,
            module: key.path_text().into_owned(),
            parts: listing.parts,
            is_cut: listing.is_cut,
            sums,
            events: events.to_vec(),
            instructions,
            files: files.paths.into_iter().map(read).collect(),
            objects,
            others,
            cutoffs,
            names,
        }
    }

    /// Samples of the function.
    pub(crate) fn n_samples(&self) -> u64 {
        self.sums.n_samples()
    }

    /// Samples that waited at instructions that are listed.
    pub(crate) fn n_listed(&self) -> u64 {
        self.instructions.iter().map(|it| it.sums.samples).sum()
    }

    /// The instruction with the most samples that waited.
    pub(crate) fn hottest(&self) -> Option<&AnnotatedInstruction> {
        let hottest = self.instructions.iter().max_by_key(|it| it.sums.samples)?;
        (hottest.sums.samples != 0).then_some(hottest)
    }
}

/// Paths of files, each with a number.
#[derive(Debug, Default)]
struct FileList {
    paths: Vec<Arc<str>>,
}

impl FileList {
    fn number(&mut self, path: &Arc<str>) -> Option<usize> {
        if let Some(known) = self.paths.iter().position(|known| known == path) {
            return Some(known);
        }
        if self.paths.len() >= MAX_FILES {
            return None;
        }
        self.paths.push(Arc::clone(path));
        Some(self.paths.len() - 1)
    }
}

/// The lines of instructions: the innermost, and that of the one before where the compiler names none.
fn code_lines(instructions: &[ListedInstruction], files: &mut FileList) -> Vec<Option<CodeLine>> {
    let mut lines: Vec<Option<CodeLine>> = Vec::with_capacity(instructions.len());
    let mut last_end = None;
    for instruction in instructions {
        let is_next = last_end == Some(instruction.at.0);
        last_end = Some(instruction.at.0.saturating_add(instruction.bytes.len() as u64));
        let own = instruction.lines.first().and_then(|innermost| {
            let file = files.number(innermost.path.as_ref()?)?;
            let is_approximate = !instruction.is_statement || instruction.lines.len() > 1;
            Some(CodeLine { file, line: innermost.line, is_approximate })
        });
        let before = lines.last().copied().flatten().filter(|_| is_next);
        let guessed = before.map(|before| CodeLine { is_approximate: true, ..before });
        lines.push(own.or(guessed));
    }
    lines
}

/// The objects of all instructions together.
fn touched_objects(sums: &CodeSums) -> Vec<TouchedObject> {
    let mut found: BTreeMap<&Arc<str>, Vec<(u64, u64)>> = BTreeMap::new();
    for (at, of) in &sums.waited {
        for (object, samples) in &of.objects {
            found.entry(object).or_default().push((at.0, *samples));
        }
    }
    let mut objects: Vec<TouchedObject> = found
        .into_iter()
        .map(|(object, mut instructions)| {
            instructions.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
            let samples = instructions.iter().map(|(_, samples)| samples).sum();
            TouchedObject { object: Arc::clone(object), samples, instructions }
        })
        .collect();
    objects.sort_by_key(|object| std::cmp::Reverse(object.samples));
    objects.truncate(MAX_OBJECTS);
    objects
}
