//! `dataspace demo`: a bundled program in a child process, profiled live.

use super::own_setting::with_own_settings;
use super::top;
use crate::cli::{DemoArgs, Global};
use crate::config::Output;
use crate::demo;
use crate::diagnostic;
use crate::file_source::FilePolicy;
use crate::interrupt::Interrupt;
use crate::session;
use dataspace_collector::target::TargetSpec;
use dataspace_collector::target::membership::CommFilter;
use std::io::{IsTerminal, stdout};
use std::time::Duration;

/// Time that it samples where there is no screen to watch.
const DURATION: Duration = Duration::from_secs(5);

/// Runs the command.
pub(super) fn run(args: DemoArgs, global: &Global) -> anyhow::Result<()> {
    let view = args.view.resolve(global.color, stdout().is_terminal());
    diagnostic::start(global.verbose, view.output == Output::Screen);
    let mut view = with_own_settings(view)?;
    if view.output != Output::Screen {
        view.duration.get_or_insert(DURATION);
    }
    let interrupt = Interrupt::listen()?;
    let workload = demo::PROGRAM.start()?;
    let target = (TargetSpec::Pids(vec![workload.pid()?]), CommFilter::default());
    let live = args.windows.of(args.event.resolve(target, view.output));
    let source = session::start_live(&live, &|| interrupt.is_set())?;
    let files = FilePolicy { shows_sources: true, ..session::files_of(&live) };
    let shown = top::show(&*source, &view, Some(files), &interrupt);
    // The session has ended: it was not the workload's end that ended it.
    drop(workload);
    shown
}
