//! `dataspace doctor --calibrate`: how far this machine's samples skid.

use crate::calibration::{self, document, table};
use crate::config::CalibrationOptions;
use crate::interrupt::Interrupt;
use dataspace_proto::snapshot::EventLine;
use std::io::{IsTerminal, Write, stderr, stdout};
use std::time::Duration;

/// Runs the command.
pub(super) fn run(options: &CalibrationOptions) -> anyhow::Result<()> {
    let interrupt = Interrupt::listen()?;
    let mut progress = CalibrationProgress::new(options.duration, stderr().is_terminal());
    let calibration = calibration::run(options, &interrupt, &mut |event, elapsed| {
        progress.tell(event, elapsed, &mut stderr().lock());
    });
    progress.end(&mut stderr().lock());
    let calibration = calibration?;
    let mut out = stdout().lock();
    if options.is_json {
        document::write_line(&calibration, &mut out)?;
    } else {
        table::render(&calibration, options.has_color, &mut out)?;
    }
    out.flush()?;
    Ok(())
}

/// Progress on standard error: once, or on a terminal each second, on one line.
struct CalibrationProgress {
    duration: Duration,
    is_terminal: bool,
    told: Option<u64>,
    width: usize,
}

impl CalibrationProgress {
    const fn new(duration: Duration, is_terminal: bool) -> Self {
        Self { duration, is_terminal, told: None, width: 0 }
    }

    fn tell(&mut self, event: &EventLine, elapsed: Duration, out: &mut dyn Write) {
        let whole = elapsed.min(self.duration).as_secs();
        let is_due = if self.is_terminal { self.told != Some(whole) } else { self.told.is_none() };
        if !is_due {
            return;
        }
        self.told = Some(whole);
        let seconds = self.duration.as_secs_f64();
        // Nobody may be reading standard error; the table is what was asked for.
        if self.is_terminal {
            let line = format!("calibrating {}: {whole} of {seconds} s", event.name);
            let _ = write!(out, "\r{line}");
            self.width = line.len();
        } else {
            let _ = writeln!(out, "calibrating {} for {seconds} s", event.name);
        }
        let _ = out.flush();
    }

    /// Takes the line away again.
    fn end(&mut self, out: &mut dyn Write) {
        if self.width > 0 {
            let _ = write!(out, "\r{:1$}\r", "", self.width);
            let _ = out.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::event::{EventClass, SkidModel};

    fn said(is_terminal: bool) -> String {
        let (skid, name) = (SkidModel::AfterOne, "cpu-clock".to_owned());
        let event =
            EventLine { name, kind: EventClass::Clock, skid, period: None, frequency_hz: None };
        let mut progress = CalibrationProgress::new(Duration::from_secs(2), is_terminal);
        let mut out = Vec::new();
        for elapsed_ms in [0, 20, 999, 1001, 2010] {
            progress.tell(&event, Duration::from_millis(elapsed_ms), &mut out);
        }
        progress.end(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn progress_is_one_line_and_on_a_terminal_goes_away_again() {
        assert_eq!(said(false), "calibrating cpu-clock for 2 s\n");
        let lines = [0, 1, 2].map(|s| format!("\rcalibrating cpu-clock: {s} of 2 s")).concat();
        assert_eq!(said(true), format!("{lines}\r{}\r", " ".repeat(31)));
    }
}
