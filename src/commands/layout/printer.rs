//! Layouts printed as they are found, with what was measured of each.

use crate::commands::progress::ProgressText;
use crate::config::AnswerForm;
use crate::exit::{Failure, Kind};
use crate::interrupt::Interrupt;
use crate::layout::document::LayoutDocument;
use crate::layout::measure::{Measured, measure};
use crate::layout::render::{self, LayoutStyle};
use crate::layout::row;
use crate::session::findings::Findings;
use dataspace_analyzer::dwarf::layout::listing::FoundLayout;
use dataspace_analyzer::index::layout_search::LayoutEvent;
use dataspace_proto::query::Query;
use std::io::{BufWriter, StdoutLock, Write as _, stdout};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Time before progress is told.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time between two words on it.
const PROGRESS: Duration = Duration::from_millis(200);

/// Form of what is printed, and its style where a person reads it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    pub(super) form: AnswerForm,
    pub(super) style: LayoutStyle,
}

/// Prints layouts as they are found, and progress while none is.
pub(super) struct LayoutPrinter<'a> {
    out: BufWriter<StdoutLock<'static>>,
    format: Format,
    findings: Option<&'a Findings>,
    n_printed: usize,
    failed: Option<anyhow::Error>,
    progress: ProgressText,
    due: Instant,
    interrupt: Interrupt,
}

impl<'a> LayoutPrinter<'a> {
    pub(super) fn new(
        format: Format,
        findings: Option<&'a Findings>,
        interrupt: Interrupt,
    ) -> Self {
        Self {
            out: BufWriter::new(stdout().lock()),
            format,
            findings,
            n_printed: 0,
            failed: None,
            progress: ProgressText::new(),
            due: Instant::now() + PATIENCE,
            interrupt,
        }
    }

    /// Takes what a search found. What goes wrong breaks it off, and is told at the end.
    pub(super) fn take(&mut self, event: LayoutEvent) -> ControlFlow<()> {
        match event {
            LayoutEvent::Found(found) => self.print_found(&found),
            LayoutEvent::Unit(n_searched, n_units) => {
                if Instant::now() >= self.due {
                    self.due = Instant::now() + PROGRESS;
                    self.progress.tell(&format!("searching: unit {n_searched} of {n_units}"));
                }
                self.go_on()
            }
        }
    }

    /// Prints one.
    pub(super) fn print_found(&mut self, found: &FoundLayout) -> ControlFlow<()> {
        if let Err(error) = self.print(found) {
            self.failed = Some(error);
        }
        self.go_on()
    }

    fn go_on(&mut self) -> ControlFlow<()> {
        if self.interrupt.is_set() {
            let failure = Failure::new(Kind::Interrupted, "interrupted while searching");
            self.failed.get_or_insert_with(|| failure.into());
        }
        if self.failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn print(&mut self, found: &FoundLayout) -> anyhow::Result<()> {
        let Measured { figures, notes: of_samples } = match self.findings {
            Some(findings) => measure(findings, &found.layout, &Query::default())?,
            None => Measured::default(),
        };
        let rows = row::rows(&found.layout, figures.as_ref());
        let mut notes = notes(found);
        notes.extend(of_samples);
        let is_first = self.n_printed == 0;
        self.n_printed += 1;
        let document = || LayoutDocument::new(found, &rows, &notes);
        match self.format.form {
            AnswerForm::Json => {
                serde_json::to_writer(&mut self.out, &document())?;
                self.out.write_all(b"\n")?;
            }
            AnswerForm::Csv => document().write_csv(is_first, &mut self.out)?,
            AnswerForm::Text => {
                if !is_first {
                    writeln!(self.out)?;
                }
                render::write(found, &rows, &notes, self.format.style, &mut self.out)?;
            }
        }
        Ok(())
    }

    /// Ends the output.
    ///
    /// # Errors
    /// What broke it off.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        let failed = self.failed.take();
        self.out.flush()?;
        failed.map_or(Ok(()), Err)
    }
}

/// Sentences about a layout itself.
fn notes(found: &FoundLayout) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(alias) = &found.alias {
        notes.push(format!("{alias} is another name of it"));
    }
    if !found.virtual_bases.is_empty() {
        let names: Vec<&str> = found.virtual_bases.iter().map(|name| &**name).collect();
        notes.push(format!(
            "only a run tells where its virtual bases are, often in what is shown as padding: {}",
            names.join(", ")
        ));
    }
    if found.layout.truncated {
        notes.push("there are more members, or deeper ones, than can be shown".to_owned());
    }
    notes
}
