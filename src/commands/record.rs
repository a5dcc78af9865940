//! `dataspace record`: a live session to a perf.data file, to look at later or elsewhere.

use crate::broker::{self, Terms};
use crate::cli::{Global, RecordArgs};
use crate::config::{LiveOptions, RecordOptions};
use crate::diagnostic;
use crate::exit::{Failure, Kind};
use crate::interrupt::Interrupt;
use crate::session::recording::{self, RecordingSession, RecordingStatus, Summary};
use crate::text::visible;
use anyhow::Context as _;
use dataspace_collector::perf_data::write::Recorder;
use serde_json::json;
use std::io::{IsTerminal, Write, stderr, stdout};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Interval at which the line on the terminal is renewed.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// Runs the command.
pub(super) fn run(args: RecordArgs, global: &Global) -> anyhow::Result<()> {
    let (live, options) = args.resolve()?;
    diagnostic::start(global.verbose, false);
    if options.file.is_none() && stdout().is_terminal() {
        let what = "standard output is a terminal, which shows no recording";
        let remedy = "dataspace record -o FILE …\ndataspace record -o - … | dataspace report -i -";
        return Err(Failure::new(Kind::Usage, what).with_remedy(remedy).into());
    }
    let interrupt = Interrupt::listen()?;
    outlive_file_limit()?;
    let recorder = recording::recorder(&live, &options, || interrupt.is_set());
    check_interrupt(&interrupt)?;
    let recorder = recorder?;
    let terms = Terms { recording: recorder.name(), ..Terms::of_session(&live) };
    broker::split(global.sandbox, terms, || write(&live, &options, recorder, &interrupt))
}

/// Records until it is over.
fn write(
    live: &LiveOptions,
    options: &RecordOptions,
    recorder: Recorder,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let session = RecordingSession::open(live, recorder);
    check_interrupt(interrupt)?;
    let session = session?;
    announce(&session, options);
    let end = options.duration.map(|duration| Instant::now() + duration);
    let mut progress = ProgressLine { is_shown: stderr().is_terminal(), next: Instant::now() };
    let mut is_armed = false;
    let summary = session.run(&|| interrupt.is_set(), |status| {
        progress.tell(status);
        if interrupt.is_set() && !is_armed {
            is_armed = true;
            // It only fails where there are no signals.
            let _ = interrupt.end_at_next();
        }
        interrupt.is_set() || end.is_some_and(|end| end <= Instant::now())
    });
    progress.wipe();
    tell(&summary?, options)
}

fn check_interrupt(interrupt: &Interrupt) -> Result<(), Failure> {
    match interrupt.is_set() {
        true => Err(Failure::new(Kind::Interrupted, "interrupted before sampling began")),
        false => Ok(()),
    }
}

/// At the limit of a file's size a write is to fail, which says so, not to end the process.
fn outlive_file_limit() -> anyhow::Result<()> {
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)))
        .map(|_| ())
        .context("setting up the handler of SIGXFSZ")
}

fn announce(session: &RecordingSession, options: &RecordOptions) {
    let events: Vec<&str> = session.events().iter().map(|event| event.name.as_str()).collect();
    let until = match options.duration {
        Some(duration) => format!("for {} s", duration.as_secs_f64()),
        None => "until it ends or Ctrl-C".to_owned(),
    };
    let target = visible(session.description());
    // Nobody may be reading standard error; the file is what was asked for.
    let _ = writeln!(stderr(), "recording {target} with {} {until}", events.join(", "));
}

/// Progress on one line of a terminal.
struct ProgressLine {
    is_shown: bool,
    next: Instant,
}

impl ProgressLine {
    fn tell(&mut self, status: &RecordingStatus) {
        let now = Instant::now();
        if self.is_shown && now >= self.next {
            self.next = now + PROGRESS_INTERVAL;
            let RecordingStatus { n_samples, n_bytes, collected } = status;
            let bytes = size(*n_bytes);
            let lost = match collected.ring_full + collected.undecodable {
                0 => String::new(),
                n_lost => format!(", {n_lost} lost"),
            };
            // A terminal that is gone is no reason to stop recording.
            let _ = write!(stderr(), "\r{n_samples} samples, {bytes}{lost}\x1b[K");
        }
    }

    fn wipe(&self) {
        if self.is_shown {
            // ECMA-48, erase in line.
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

fn tell(summary: &Summary, options: &RecordOptions) -> anyhow::Result<()> {
    let Summary { recorded, collected, warnings, note } = summary;
    for warning in warnings {
        let _ = writeln!(stderr(), "warning: {}", visible(warning));
    }
    if options.is_json {
        // What the kernel counted is what is in the file, what was lost, and what came after its
        // end; what is of no memory is in the file, and what is outside of the target in no sum.
        let object = json!({
            "schema": 1,
            "file": options.file.as_deref().map(Path::to_string_lossy),
            "previous": recorded.previous.as_deref().map(Path::to_string_lossy),
            "bytes": recorded.n_bytes,
            "kernel": collected.kernel_samples,
            "samples": recorded.n_samples,
            "lost": {
                "ring_full": collected.ring_full,
                "undecodable": collected.undecodable,
                "too_long": recorded.n_too_long,
            },
            "behind_end": recorded.n_behind_end,
            "not_memory": collected.not_memory,
            "outside": collected.outside,
            "throttled_ns": collected.throttled_ns,
            "is_full": recorded.is_full,
            "warnings": note.iter().chain(warnings).collect::<Vec<_>>(),
        });
        return super::json::write(&object, &mut stdout().lock());
    }
    let _ = writeln!(stderr(), "{}", last_line(summary, options));
    Ok(())
}

fn last_line(summary: &Summary, options: &RecordOptions) -> String {
    let recorded = &summary.recorded;
    let lost = match recorded.n_lost {
        0 => "none lost".to_owned(),
        n_lost => format!("{n_lost} lost"),
    };
    let file = match &options.file {
        Some(path) => visible(&path.to_string_lossy()).into_owned(),
        None => "standard output".to_owned(),
    };
    let why = if recorded.is_full { ", which is as large as asked for" } else { "" };
    let before = match &recorded.previous {
        Some(path) => format!("; the file before is {}", visible(&path.to_string_lossy())),
        None => String::new(),
    };
    let bytes = size(recorded.n_bytes);
    format!("{} samples, {lost}; {bytes} in {file}{why}{before}", recorded.n_samples)
}

/// A length for a person.
fn size(n_bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = n_bytes as f64;
    let mut unit = "bytes";
    for larger in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    if unit == "bytes" { format!("{n_bytes} bytes") } else { format!("{value:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_collector::perf_data::write::Recorded;
    use dataspace_proto::accounting::Collected;

    #[test]
    fn the_last_line_has_samples_losses_and_length() {
        let recorded = Recorded { n_samples: 7, n_bytes: 3 << 19, ..Recorded::default() };
        let (collected, warnings, note) = (Collected::default(), Vec::new(), None);
        let mut summary = Summary { recorded, collected, warnings, note };
        let file = Some("a\x1b.data".into());
        let options = RecordOptions { file, max_bytes: None, duration: None, is_json: false };
        let line = last_line(&summary, &options);
        assert!(line.starts_with("7 samples, none lost; 1.5 MiB in a"), "{line}");
        assert!(!line.contains('\x1b'), "{line}");
        summary.recorded = Recorded { n_lost: 2, is_full: true, n_bytes: 5, ..summary.recorded };
        let line = last_line(&summary, &RecordOptions { file: None, ..options });
        let expected =
            "7 samples, 2 lost; 5 bytes in standard output, which is as large as asked for";
        assert_eq!(line, expected);
    }
}
