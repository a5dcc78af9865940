//! `dataspace script`: the answer for each sample of a recording, as lines of JSON.

use crate::broker::{self, Terms};
use crate::cli::{Global, ScriptArgs};
use crate::diagnostic;
use crate::exit::{Failure, Kind};
use crate::interrupt::Interrupt;
use crate::session::OpenRecording;
use crate::text::visible;
use dataspace_proto::sample_line::SampleLine;
use std::io::{BufWriter, Write, stderr, stdout};

/// Runs the command.
pub(super) fn run(args: ScriptArgs, global: &Global) -> anyhow::Result<()> {
    diagnostic::start(global.verbose, false);
    let limit = args.limit;
    let recording = OpenRecording::open(&args.recording.resolve())?;
    let terms = Terms::of_files(recording.policy.clone());
    broker::split(global.sandbox, terms, || print(recording, limit))
}

fn print(recording: OpenRecording, limit: Option<usize>) -> anyhow::Result<()> {
    let interrupt = Interrupt::listen()?;
    let mut printer = LinePrinter {
        out: BufWriter::new(stdout().lock()),
        n_left: limit.unwrap_or(usize::MAX),
        interrupt,
    };
    let read = recording.script(&mut |line| printer.print(line));
    printer.out.flush()?;
    match read {
        Ok(warnings) => {
            for warning in warnings {
                // The lines are what was asked for; nobody may be reading standard error.
                let _ = writeln!(stderr(), "warning: {}", visible(&warning));
            }
            Ok(())
        }
        // As many lines as were asked for: that ends the reading, and is no failure.
        Err(_) if printer.n_left == 0 => Ok(()),
        Err(error) => Err(error),
    }
}

struct LinePrinter<W: Write> {
    out: W,
    n_left: usize,
    interrupt: Interrupt,
}

impl<W: Write> LinePrinter<W> {
    fn print(&mut self, line: &SampleLine) -> anyhow::Result<()> {
        if self.interrupt.is_set() {
            return Err(Failure::new(Kind::Interrupted, "interrupted while reading").into());
        }
        serde_json::to_writer(&mut self.out, line)?;
        self.out.write_all(b"\n")?;
        self.n_left -= 1;
        anyhow::ensure!(self.n_left > 0, "as many lines as were asked for");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> SampleLine {
        SampleLine {
            time_ns: 1,
            pid: 2,
            tid: 3,
            cpu: Some(0),
            event: "cpu-clock".into(),
            period: 4,
            ip: 0x401_000,
            not_memory: true,
            ..SampleLine::default()
        }
    }

    #[test]
    fn a_limit_ends_the_reading_without_a_failure() {
        let mut printer =
            LinePrinter { out: Vec::new(), n_left: 2, interrupt: Interrupt::default() };
        printer.print(&line()).unwrap();
        printer.print(&line()).unwrap_err();
        assert_eq!(printer.n_left, 0);
        let text = String::from_utf8(printer.out).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(text.starts_with("{\"time_ns\":1,\"pid\":2,"), "{text}");
    }
}
