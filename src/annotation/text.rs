//! Annotated code as text.

use super::cutoff::CodeCutoffs;
use super::model::{AnnotatedInstruction, Annotation};
use super::row::{CodeRow, LineRow, SourceRow, StatementRow, code_rows, line_rows};
use crate::header::{Segment, Tone};
use crate::table::Printer;
use crate::text::{percent, visible};
use dataspace_analyzer::query::code_sums::CodeSums;
use dataspace_proto::memory::Access;
use std::io::{self, Write};
use std::sync::Arc;

/// Columns of the text of an instruction: what is longer moves its object.
const TEXT_WIDTH: usize = 46;

/// Columns of an address.
const ADDRESS_WIDTH: usize = 8;

/// Instructions of an object that are named below the code.
const MAX_INSTRUCTIONS_OF_OBJECT: usize = 4;

/// Functions of the same name that are named.
const MAX_OTHERS: usize = 6;

/// Sort of the rows that are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CodeView {
    /// Instructions, with their statements.
    #[default]
    Instructions,
    /// Source lines alone.
    Lines,
}

/// Writes the annotated code: header, rows, then what it rests on.
///
/// # Errors
/// Those of `out`.
pub(crate) fn render(
    annotation: &Annotation,
    view: CodeView,
    has_color: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut text = CodeText { printer: Printer { out, has_color }, annotation };
    text.head()?;
    match view {
        CodeView::Instructions => text.instructions()?,
        CodeView::Lines => text.lines()?,
    }
    text.objects()?;
    text.foot(view)?;
    text.printer.out.flush()
}

struct CodeText<'a> {
    printer: Printer<'a>,
    annotation: &'a Annotation,
}

impl CodeText<'_> {
    fn say(&mut self, name: &str, text: String, tone: Tone) -> io::Result<()> {
        self.printer.line(name, &[Segment::new(text, tone)], "")
    }

    fn head(&mut self) -> io::Result<()> {
        let it = self.annotation;
        self.say("function", visible(&it.function).into_owned(), Tone::Strong)?;
        let parts: Vec<String> =
            it.parts.iter().map(|part| format!("{:#x}..{:#x}", part.start, part.end)).collect();
        let n_bytes: u64 = it.parts.iter().map(|part| part.end.saturating_sub(part.start)).sum();
        let code = format!(
            "{} {} ({n_bytes} bytes, {} instructions{})",
            visible(&it.module),
            parts.join(" "),
            it.instructions.len(),
            if it.is_cut { "; there are more than are listed" } else { "" }
        );
        self.say("code", code, Tone::Plain)?;
        if !it.others.is_empty() {
            let mut others: Vec<String> = Vec::new();
            for other in it.others.iter().take(MAX_OTHERS) {
                let (name, module) = (visible(&other.name), visible(&other.module));
                others.push(format!("{name} at {module}+{}: {} samples", other.at, other.samples));
            }
            let more = it.others.len() - others.len();
            if more > 0 {
                others.push(format!("and {more} more"));
            }
            let text = format!("this one has the most samples; also {}", others.join("; "));
            self.say("namesakes", text, Tone::Loss)?;
        }
        writeln!(self.printer.out)
    }

    fn share(&self, samples: u64) -> String {
        match samples {
            0 => String::new(),
            _ => percent(samples, self.annotation.n_samples()),
        }
    }

    fn instructions(&mut self) -> io::Result<()> {
        let title = format!(
            "{:>8} {:>8}    {:>ADDRESS_WIDTH$}  {:<TEXT_WIDTH$}  OBJECT",
            "WAITED", "REPORTED", "ADDRESS", ">STATEMENT, INSTRUCTION"
        );
        self.printer.toned(title, Tone::Strong)?;
        for row in code_rows(self.annotation) {
            match row {
                CodeRow::File { file } => self.file(file)?,
                CodeRow::Function { name } => {
                    let text = match name {
                        Some(name) => format!("put in line: {}", visible(name)),
                        None => format!("of {} itself", visible(&self.annotation.function)),
                    };
                    self.printer.toned(format!("{:21}{text}", ""), Tone::Faint)?;
                }
                CodeRow::Statement(statement) => self.statement(&statement)?,
                CodeRow::Instruction(instruction) => self.instruction(instruction)?,
                CodeRow::CacheLine { start, into } => {
                    let within = match into {
                        0 => String::new(),
                        into => format!("  {into} bytes into the instruction above"),
                    };
                    self.printer
                        .toned(format!("{:21}- - - - {start:x}{within}", ""), Tone::Faint)?;
                }
                CodeRow::Gap { n_instructions } => {
                    let left_out = match n_instructions {
                        0 => String::new(),
                        n => format!("  {n} instructions"),
                    };
                    self.printer.toned(format!("{:21}~ ~ ~ ~{left_out}", ""), Tone::Faint)?;
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, file: usize) -> io::Result<()> {
        let Some(file) = self.annotation.files.get(file) else { return Ok(()) };
        let why = match &file.text {
            Ok(_) => String::new(),
            Err(why) => format!("  (not shown: {}; --source DIR)", visible(&why.0)),
        };
        self.printer.toned(format!("{:21}{}{why}", "", visible(&file.path)), Tone::Faint)
    }

    /// A statement: the numbers of its instructions together are in brackets, as HP Caliper has them.
    fn statement(&mut self, row: &StatementRow<'_>) -> io::Result<()> {
        let bracketed = |samples: u64| match self.share(samples) {
            empty if empty.is_empty() => empty,
            share => format!("({share})"),
        };
        let line = format!("{}{}", if row.is_approximate { "~" } else { "" }, row.line);
        let mark = if row.is_out_of_order { "*>" } else { ">" };
        let text = format!(
            "{:>8} {:>8}    {line:>ADDRESS_WIDTH$} {mark:>2}{}",
            bracketed(row.waited),
            bracketed(row.reported),
            row.text.map(source).unwrap_or_default()
        );
        self.printer.toned(text.trim_end(), Tone::Plain)
    }

    fn instruction(&mut self, it: &AnnotatedInstruction) -> io::Result<()> {
        let mark = |is_so: bool, mark: char| if is_so { mark } else { ' ' };
        let object = self.object(it);
        let row = format!(
            "{:>8} {:>8} {}{} {:>ADDRESS_WIDTH$x}  {:<TEXT_WIDTH$}  {object}",
            self.share(it.sums.samples),
            self.share(it.reported),
            mark(it.sums.samples != 0, 'W'),
            mark(it.reported != 0, 'r'),
            it.listed.at.0,
            assembly(it),
        );
        let hottest = self.annotation.hottest().map(|hottest| hottest.listed.at);
        let is_hottest = hottest == Some(it.listed.at);
        self.printer.toned(row.trim_end(), if is_hottest { Tone::Strong } else { Tone::Plain })
    }

    fn lines(&mut self) -> io::Result<()> {
        let title = format!(
            "{:>8} {:>8}    {:>ADDRESS_WIDTH$}  {:<TEXT_WIDTH$}  OBJECT",
            "WAITED", "REPORTED", "LINE", ">SOURCE"
        );
        self.printer.toned(title, Tone::Strong)?;
        for row in line_rows(self.annotation) {
            match row {
                LineRow::File { file } => self.file(file)?,
                LineRow::Gap => self.printer.toned(format!("{:21}~ ~ ~ ~", ""), Tone::Faint)?,
                LineRow::Line(line) => self.source_line(&line)?,
            }
        }
        Ok(())
    }

    fn source_line(&mut self, row: &SourceRow<'_>) -> io::Result<()> {
        let line = format!("{}{}", if row.is_approximate { "~" } else { "" }, row.line);
        let mark = if row.instructions.is_empty() { " " } else { ">" };
        let object = row.object.map(|it| self.named(it, row.waited)).unwrap_or_default();
        let text = format!(
            "{:>8} {:>8}    {line:>ADDRESS_WIDTH$} {mark}{:<TEXT_WIDTH$}  {object}",
            self.share(row.waited),
            self.share(row.reported),
            row.text.map(source).unwrap_or_default(),
        );
        let tone = if row.instructions.is_empty() { Tone::Faint } else { Tone::Plain };
        self.printer.toned(text.trim_end(), tone)
    }

    /// The object beside an instruction: what its samples touched, else, in brackets, what its operand says.
    fn object(&self, it: &AnnotatedInstruction) -> String {
        let access = match it.operand().map(|operand| operand.access) {
            Some(Access::Load) => "R ",
            Some(Access::Store) => "W ",
            Some(Access::LoadStore) => "RW ",
            Some(Access::Prefetch) => "P ",
            None => "",
        };
        match it.object() {
            Some(object) => format!("{access}{}", self.named(object, it.sums.samples)),
            None => String::new(),
        }
    }

    fn named(&self, (object, samples): (&Arc<str>, u64), all: u64) -> String {
        let object = visible(self.annotation.names.spelled(object));
        match samples {
            0 => format!("[{object}]"),
            n if n == all => object.into_owned(),
            n => format!("{object} {}", percent(n, all)),
        }
    }

    /// The objects that the code touches, and the way back from one to all its code.
    fn objects(&mut self) -> io::Result<()> {
        let it = self.annotation;
        if it.objects.is_empty() {
            return Ok(());
        }
        writeln!(self.printer.out)?;
        self.printer
            .toned(format!("{:>8}  OBJECT, AND THE INSTRUCTIONS", "SAMPLES"), Tone::Strong)?;
        for object in &it.objects {
            let mut at: Vec<String> = Vec::new();
            for (address, samples) in object.instructions.iter().take(MAX_INSTRUCTIONS_OF_OBJECT) {
                at.push(format!("{address:x} ({samples})"));
            }
            if object.instructions.len() > at.len() {
                at.push("…".to_owned());
            }
            let name = visible(it.names.spelled(&object.object));
            writeln!(self.printer.out, "{:>8}  {name}  at {}", object.samples, at.join(" "))?;
        }
        Ok(())
    }

    /// The accounts: where each sample of the function is, and what is left out.
    fn foot(&mut self, view: CodeView) -> io::Result<()> {
        let it = self.annotation;
        let sums = &it.sums;
        writeln!(self.printer.out)?;
        let (n_samples, n_waited) = (it.n_samples(), sums.n_waited);
        if n_samples == 0 {
            self.printer.toned("no samples in it", Tone::Loss)?;
        } else {
            let without = sums.n_without_trigger();
            let why = reasons(sums);
            self.printer.toned(
                format!(
                    "samples {n_samples} = waited {n_waited} + without a trigger {without}{why}"
                ),
                Tone::Strong,
            )?;
            let n_here = n_waited - sums.n_waited_reported_elsewhere;
            let (n_reported, n_led) = (sums.n_reported(), sums.n_reported_waited_elsewhere);
            self.printer.toned(
                format!(
                    "reported {n_reported} = waited here {n_here} + without a trigger {without} + waited \
                     elsewhere {n_led}; {} waited here and were reported elsewhere",
                    sums.n_waited_reported_elsewhere
                ),
                Tone::Plain,
            )?;
            let n_between = n_waited - it.n_listed();
            if n_between > 0 {
                let text = format!("{n_between} samples waited at no instruction that is listed");
                self.printer.toned(text, Tone::Loss)?;
            }
        }
        let gone = match sums.n_not_held {
            0 => String::new(),
            gone => format!("; {gone} more are no longer in the history, or not decided yet"),
        };
        let share = percent(n_samples, sums.n_of_session);
        self.printer.toned(
            format!(
                "{share} of the {} samples that count, of {} held{gone}",
                sums.n_of_session, sums.n_held
            ),
            Tone::Plain,
        )?;
        self.printer.toned(cutoffs(&it.cutoffs, view), Tone::Plain)?;
        let marks = "W waited there, r was reported there, ~ approximate line, *> statement out of order, - - - - \
                     64 bytes of code, ~ ~ ~ ~ left out; R W an access that loads or stores";
        self.printer.toned(marks, Tone::Faint)
    }
}

/// ` (unresolvable 30, one of several instructions 4)`.
fn reasons(sums: &CodeSums) -> String {
    let named = sums.without_trigger.iter().map(|(reason, n)| (reason.name(), *n));
    let several = Some(("one of several instructions", sums.n_of_several));
    let all = named.chain(several).filter(|(_, n)| *n != 0);
    let shown: Vec<String> = all.map(|(name, samples)| format!("{name} {samples}")).collect();
    if shown.is_empty() { String::new() } else { format!(" ({})", shown.join(", ")) }
}

/// The cutoffs in force, as HP Caliper states them: percent, cumulative, minimum.
fn cutoffs(cutoffs: &CodeCutoffs, view: CodeView) -> String {
    let CodeCutoffs { min_percent, cumulative_percent, min_samples } = cutoffs;
    let what = match view {
        CodeView::Instructions => "64 bytes of code are shown where an instruction in them has",
        CodeView::Lines => "lines are shown that have",
    };
    format!(
        "cutoffs {min_percent} %, cumulative {cumulative_percent} %, minimum {min_samples}: {what} that share of \
         the samples, that many, and is among those that make up the cumulative share (--min-share, --cutoff, \
         --min-samples)"
    )
}

/// An instruction as it is shown: what it refers to stands after it.
pub(crate) fn assembly(it: &AnnotatedInstruction) -> String {
    let text = visible(&it.listed.text).into_owned();
    match &it.listed.refers_to {
        // An address relative to the next instruction is not the one that is meant.
        Some((to, Some(name))) if text.contains("rip") => {
            format!("{text} # {:x} <{}>", to.0, visible(name))
        }
        Some((to, None)) if text.contains("rip") => format!("{text} # {:x}", to.0),
        Some((_, Some(name))) => format!("{text} <{}>", visible(name)),
        _ => text,
    }
}

/// A source line as it is shown: tabs are eight columns.
fn source(line: &str) -> String {
    visible(&line.replace('\t', "        ")).into_owned()
}
