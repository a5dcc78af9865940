//! `dataspace layout`: members of a type in the order of their offsets, with what was measured of them.

mod printer;

use super::{reading, top};
use crate::broker::{self, Terms};
use crate::cli::{Global, LayoutArgs};
use crate::config::{AnswerForm, LayoutOptions, LayoutSource, LiveOptions};
use crate::diagnostic;
use crate::exit::{Failure, Kind};
use crate::file_source::{FilePolicy, SystemFiles};
use crate::interrupt::Interrupt;
use crate::layout::render::LayoutStyle;
use crate::pager::Pager;
use crate::session::findings::Findings;
use crate::session::{self, OpenRecording};
use crate::table;
use crate::text::visible;
use anyhow::Context as _;
use dataspace_analyzer::bytes::file::LoadObjectKey;
use dataspace_analyzer::dwarf::layout::listing::{FoundLayout, LayoutWish};
use dataspace_analyzer::index::load_object::LoadObjectIndex;
use dataspace_analyzer::types::similar_name::distance;
use dataspace_analyzer::types::type_layout::TypeLayout;
use dataspace_analyzer::types::type_pattern::{TypePattern, own_part};
use dataspace_proto::address::Avma;
use dataspace_proto::reason::Reason;
use dataspace_proto::record::FileIdentity;
use printer::{Format, LayoutPrinter};
use std::io::{IsTerminal as _, Write as _, stderr, stdout};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Names that are proposed where none fits.
const MAX_PROPOSED: usize = 5;

/// Runs the command.
pub(super) fn run(args: LayoutArgs, global: &Global) -> anyhow::Result<()> {
    diagnostic::start(global.verbose, false);
    let LayoutOptions { name, program, source, form, is_every, is_paged } = args.resolve()?;
    let pattern = TypePattern::new(&name);
    if pattern.text().is_empty() {
        let failure = Failure::new(Kind::Usage, "no type is named");
        return Err(failure.with_remedy("dataspace layout 'struct order' PROGRAM").into());
    }
    let program = program.map(|program| regular_file(&program)).transpose()?;
    let is_terminal = stdout().is_terminal();
    let style = LayoutStyle {
        has_color: global.color.resolve(is_terminal),
        width: table::terminal_width(),
    };
    let work =
        Work { wish: LayoutWish { pattern, is_every }, program, format: Format { form, style } };
    // It is started before the sandbox, in which nothing can be.
    let _pager = (is_terminal && is_paged && form == AnswerForm::Text).then(Pager::start).flatten();
    match source {
        LayoutSource::None => {
            let terms = Terms::of_files(FilePolicy::default());
            broker::split(global.sandbox, terms, || work.show(None, &Interrupt::listen()?))
        }
        LayoutSource::Recording(options) => {
            let recording = OpenRecording::open(&options)?;
            let terms = Terms::of_files(recording.policy.clone());
            broker::split(global.sandbox, terms, || {
                let interrupt = Interrupt::listen()?;
                let source = recording.totals()?;
                reading::wait(&*source, &interrupt)?;
                work.show(Some(source.history(false)), &interrupt)
            })
        }
        LayoutSource::Live(options, duration) => {
            let terms = Terms::of_session(&options);
            broker::split(global.sandbox, terms, || {
                let interrupt = Interrupt::listen()?;
                let findings = sample(&options, duration, &interrupt)?;
                // Ctrl-C ended the sampling, and is not for what follows.
                work.show(Some(findings), &Interrupt::default())
            })
        }
    }
}

/// Samples a target until the time is over, it ends or somebody ends it.
fn sample(
    options: &LiveOptions,
    duration: Option<Duration>,
    interrupt: &Interrupt,
) -> anyhow::Result<Findings> {
    let source = session::start_live(options, &|| interrupt.is_set())?;
    if duration.is_none() && stderr().is_terminal() {
        // Nobody may be reading standard error.
        let _ = writeln!(stderr(), "sampling until it ends or Ctrl-C");
    }
    top::wait_for_end(&*source, duration, interrupt);
    top::stop(&*source, interrupt)?;
    Ok(source.history(false))
}

/// All that is to be shown.
struct Work {
    wish: LayoutWish,
    program: Option<PathBuf>,
    format: Format,
}

impl Work {
    /// Prints the layouts of the program, or else those that were sampled.
    fn show(self, findings: Option<Findings>, interrupt: &Interrupt) -> anyhow::Result<()> {
        match (&self.program, &findings) {
            (Some(program), _) => self.of_program(program, findings.as_ref(), interrupt),
            (None, Some(findings)) => self.of_session(findings, interrupt),
            (None, None) => Ok(()),
        }
    }

    fn of_program(
        &self,
        program: &Path,
        findings: Option<&Findings>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let key = LoadObjectKey {
            path: program.as_os_str().as_bytes().into(),
            identity: FileIdentity::None,
            pid: -1,
            range: (Avma(0), Avma(0)),
            mount_namespace: 0,
        };
        let files = SystemFiles::new(FilePolicy::default());
        let opened = LoadObjectIndex::open(&key, &files);
        let mut index = opened.map_err(|reason| not_opened(program, reason))?;
        if index.facts().segments.is_empty() {
            let what =
                format!("{} is not linked yet: names in it have no place", program.display());
            let remedy = "dataspace layout TYPE PROGRAM   the program that it is linked into";
            return Err(Failure::new(Kind::Failed, what).with_remedy(remedy).into());
        }
        let mut printer = LayoutPrinter::new(self.format, findings, interrupt.clone());
        let end = index.search_layouts(self.wish.clone(), &mut |event| printer.take(event));
        printer.end()?;
        let Some(end) = end else { return Err(not_described(program).into()) };
        if end.n_found == 0 {
            let place = program.display().to_string();
            return Err(not_found(self.wish.pattern.text(), &place, &end.proposals).into());
        }
        if end.is_cut {
            let _ = writeln!(stderr(), "warning: there are more than {} layouts", end.n_found);
        }
        Ok(())
    }

    /// Prints those of the outermost types that samples touched, most samples first.
    fn of_session(&self, findings: &Findings, interrupt: &Interrupt) -> anyhow::Result<()> {
        let mut printer = LayoutPrinter::new(self.format, Some(findings), interrupt.clone());
        let mut others = Vec::new();
        let mut n_found = 0;
        for object in &findings.snapshot.objects {
            let Some(layout) = findings.layouts.get(&object.id) else { continue };
            let found = of_type(layout);
            if !self.wish.pattern.matches(&found.name) {
                others.push(found.name);
                continue;
            }
            n_found += 1;
            if printer.print_found(&found).is_break() {
                break;
            }
        }
        printer.end()?;
        if n_found > 0 {
            return Ok(());
        }
        let n_samples = findings.snapshot.accounting.kernel;
        let place = format!("the types that {n_samples} samples touched");
        let text = self.wish.pattern.text();
        Err(not_found(text, &place, &like(text, &others)).into())
    }
}

/// A sampled type as if it had been found by its name.
fn of_type(layout: &TypeLayout) -> FoundLayout {
    let name = layout
        .type_name
        .split_once(':')
        .filter(|(keyword, _)| ["structure", "class", "union"].contains(keyword));
    FoundLayout {
        name: name.map_or(&*layout.type_name, |(_, name)| name).into(),
        alias: None,
        unit: None,
        entry: None,
        virtual_bases: Box::default(),
        layout: layout.clone(),
    }
}

/// Names near to `text`; where none is, those with the most samples.
fn like(text: &str, names: &[Arc<str>]) -> Vec<Arc<str>> {
    let own = own_part(text.trim_matches(['*', '?']));
    let is_near = |name: &&Arc<str>| {
        distance(own, own_part(name), 2).is_some() || (!own.is_empty() && name.contains(own))
    };
    let near: Vec<Arc<str>> = names.iter().filter(is_near).take(MAX_PROPOSED).cloned().collect();
    if near.is_empty() { names.iter().take(MAX_PROPOSED).cloned().collect() } else { near }
}

/// The absolute path of a file that can be read as a program.
fn regular_file(path: &Path) -> anyhow::Result<PathBuf> {
    let shown = path.display();
    let whole = path.canonicalize().with_context(|| format!("cannot read {shown}"))?;
    if !whole.is_file() {
        let what = format!("{shown} is no regular file");
        let remedy = "dataspace layout TYPE PROGRAM   a program or library with debug information";
        return Err(Failure::new(Kind::Usage, what).with_remedy(remedy).into());
    }
    Ok(whole)
}

fn not_opened(program: &Path, reason: Reason) -> Failure {
    let shown = program.display();
    let what = match reason {
        Reason::ObjectMissing => {
            format!("{shown} is no ELF program or library, or may not be read")
        }
        Reason::UnsupportedMachine => format!("{shown} is no program for x86-64"),
        Reason::OverBudget => format!("{shown} is larger than can be read"),
        _ => format!("{shown} is no ELF program or library that can be read"),
    };
    let remedy = "dataspace layout TYPE PROGRAM   a program or library with debug information";
    Failure::new(Kind::Failed, what).with_remedy(remedy)
}

fn not_described(program: &Path) -> Failure {
    let what = format!("there is no debug information of {}", program.display());
    Failure::new(Kind::Failed, what).with_remedy(
        "compile it with -g, or install the package with its debug information (-dbgsym, -dbg, -debuginfo)",
    )
}

fn not_found(text: &str, place: &str, proposals: &[Arc<str>]) -> Failure {
    let what = format!("no structure, class or union called {} in {place}", visible(text));
    let failure = Failure::new(Kind::Failed, what);
    if proposals.is_empty() {
        let remedy = format!("dataspace layout '*{text}*' …   those with that in their names");
        return failure.with_remedy(remedy);
    }
    failure.with_remedy(format!("did you mean: {}", proposals.join("   ")))
}
