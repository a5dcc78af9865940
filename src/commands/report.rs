//! `dataspace report`: the totals of a recording.

use super::json;
use crate::cli::{Global, ReportArgs};
use crate::diagnostic;
use crate::exit::{Failure, Kind};
use crate::interrupt::Interrupt;
use crate::session::{self, Source};
use crate::table::{self, TableOptions};
use dataspace_proto::snapshot::Window;
use std::io::{IsTerminal, Write, stderr, stdout};
use std::time::{Duration, Instant};

/// Runs the command.
pub(super) fn run(args: ReportArgs, global: &Global) -> anyhow::Result<()> {
    diagnostic::start(global.verbose, false);
    let interrupt = Interrupt::listen()?;
    let source = session::read_recording(&args.recording.resolve())?;
    wait(&*source, &interrupt)?;
    let options = TableOptions {
        window: Window::All,
        selection: args.selection.resolve(),
        has_color: global.color.resolve(stdout().is_terminal()),
        width: table::terminal_width(),
    };
    print(&*source, args.json, &options, &mut stdout().lock())
}

fn wait(source: &dyn Source, interrupt: &Interrupt) -> anyhow::Result<()> {
    let mut progress = Progress { is_shown: stderr().is_terminal(), is_begun: false };
    while !source.is_finished() {
        interrupt.wait_until(Instant::now() + Duration::from_secs(1), || source.is_finished());
        if !source.is_finished() {
            progress.tell(source.snapshot().accounting.kernel);
        }
        if interrupt.is_set() {
            interrupt.end_at_next()?;
            source.stop();
            return Err(Failure::new(Kind::Interrupted, "interrupted while reading").into());
        }
    }
    Ok(())
}

/// How far a long reading is, on one line of a terminal that is wiped at the end.
struct Progress {
    is_shown: bool,
    is_begun: bool,
}

impl Progress {
    fn tell(&mut self, n_samples: u64) {
        if self.is_shown {
            self.is_begun = true;
            // A terminal that is gone is no reason to stop reading.
            let _ = write!(stderr(), "\rreading: {n_samples} samples");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_begun {
            // ECMA-48, erase in line.
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

fn print(
    source: &dyn Source,
    is_json: bool,
    options: &TableOptions,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let snapshot = source.snapshot();
    if is_json {
        return json::write_line(&snapshot, &options.selection, out);
    }
    table::render(&snapshot, options, out)?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit;
    use crate::fixture::{self, FakeSource};

    #[test]
    fn an_interrupted_reading_has_no_result() {
        let interrupt = Interrupt::default();
        interrupt.set();
        let error = wait(&FakeSource::new(fixture::running(), 9), &interrupt).unwrap_err();
        assert_eq!(exit::code(&error), exit::INTERRUPTED);
    }

    #[test]
    fn json_is_one_line_and_the_table_is_many() {
        let source = FakeSource::new(fixture::ended(), 0);
        let n_lines = |is_json: bool| {
            let mut out = Vec::new();
            print(&source, is_json, &TableOptions::default(), &mut out).unwrap();
            out.iter().filter(|&&byte| byte == b'\n').count()
        };
        assert_eq!(n_lines(true), 1);
        assert!(n_lines(false) > 10);
    }
}
