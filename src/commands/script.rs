//! `dataspace script`: the answer for each sample of a recording, as lines of JSON.

use super::fetch;
use crate::broker::{self, Terms};
use crate::cli::{Global, ScriptArgs};
use crate::diagnostic;
use crate::exit::{Failure, Kind};
use crate::interrupt::Interrupt;
use crate::session::OpenRecording;
use crate::text::visible;
use dataspace_proto::sample_line::SampleLine;
use serde::Serializer as _;
use serde::ser::SerializeMap as _;
use std::io::{BufWriter, Write, stderr, stdout};

/// Fields that have to be looked up in the trigger's file.
const SOURCE_FIELDS: [&str; 4] = ["symbol", "symbol_offset", "file", "line"];

/// Runs the command.
pub(super) fn run(args: ScriptArgs, global: &Global) -> anyhow::Result<()> {
    diagnostic::start(global.verbose, false);
    let ScriptArgs { recording, limit, fields, json: _ } = args;
    check(&fields)?;
    let is_fetched = recording.debuginfod;
    let recording = recording.resolve();
    if is_fetched {
        fetch::for_recording(&recording, global)?;
    }
    let recording = OpenRecording::open(&recording)?;
    let terms = Terms::of_files(recording.policy.clone());
    broker::split(global.sandbox, terms, || print(recording, limit, fields))
}

/// Tells whether lines have all these fields.
fn check(fields: &[String]) -> anyhow::Result<()> {
    let serde_json::Value::Object(line) = serde_json::to_value(SampleLine::default())? else {
        return Ok(());
    };
    let Some(unknown) = fields.iter().find(|field| !line.contains_key(*field)) else {
        return Ok(());
    };
    let known: Vec<&str> = line.keys().map(String::as_str).collect();
    let failure = Failure::new(Kind::Usage, format!("no field of a line: {}", visible(unknown)));
    Err(failure.with_remedy(format!("fields: {}", known.join(", "))).into())
}

fn print(
    recording: OpenRecording,
    limit: Option<usize>,
    fields: Vec<String>,
) -> anyhow::Result<()> {
    let interrupt = Interrupt::listen()?;
    let is_source = |field: &String| SOURCE_FIELDS.contains(&field.as_str());
    let has_sources = fields.is_empty() || fields.iter().any(is_source);
    let mut printer = LinePrinter {
        out: BufWriter::new(stdout().lock()),
        n_left: limit.unwrap_or(usize::MAX),
        fields,
        interrupt,
    };
    let read = recording.script(has_sources, &mut |line| printer.print(line));
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
    /// The fields to print; all of them where it is empty.
    fields: Vec<String>,
    interrupt: Interrupt,
}

impl<W: Write> LinePrinter<W> {
    fn print(&mut self, line: &SampleLine) -> anyhow::Result<()> {
        if self.interrupt.is_set() {
            return Err(Failure::new(Kind::Interrupted, "interrupted while reading").into());
        }
        if self.fields.is_empty() {
            serde_json::to_writer(&mut self.out, line)?;
        } else {
            self.print_fields(&serde_json::to_value(line)?)?;
        }
        self.out.write_all(b"\n")?;
        self.n_left -= 1;
        anyhow::ensure!(self.n_left > 0, "as many lines as were asked for");
        Ok(())
    }

    /// The fields that were asked for, in that order.
    fn print_fields(&mut self, line: &serde_json::Value) -> anyhow::Result<()> {
        let mut serializer = serde_json::Serializer::new(&mut self.out);
        let mut map = serializer.serialize_map(Some(self.fields.len()))?;
        for field in &self.fields {
            map.serialize_entry(field, &line[field])?;
        }
        map.end()?;
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
        let mut printer = LinePrinter {
            out: Vec::new(),
            n_left: 2,
            fields: Vec::new(),
            interrupt: Interrupt::default(),
        };
        printer.print(&line()).unwrap();
        printer.print(&line()).unwrap_err();
        assert_eq!(printer.n_left, 0);
        let text = String::from_utf8(printer.out).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(text.starts_with("{\"time_ns\":1,\"pid\":2,"), "{text}");
    }

    #[test]
    fn fields_come_in_the_order_that_was_asked_for() {
        let fields = ["period", "line", "ip"].map(str::to_owned);
        check(&fields).unwrap();
        let interrupt = Interrupt::default();
        let mut printer =
            LinePrinter { out: Vec::new(), n_left: 2, fields: fields.into(), interrupt };
        printer.print(&line()).unwrap();
        let text = String::from_utf8(printer.out).unwrap();
        assert_eq!(text, "{\"period\":4,\"line\":null,\"ip\":\"0x401000\"}\n");
        assert!(check(&["linne".to_owned()]).unwrap_err().to_string().contains("linne"));
    }
}
