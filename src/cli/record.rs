//! `record` as it is typed, and what it asks for.

use super::session::{EVENTS, EventArgs, TargetArgs};
use super::value;
use crate::config::{LiveOptions, Output, RecordOptions};
use crate::exit::{Failure, Kind};
use clap::Args;
use dataspace_proto::broker::CommandOutput;
use std::path::PathBuf;
use std::time::Duration;

pub(super) const EXAMPLES: &str = "\
Examples:
  dataspace record -p 4711                       until it ends or Ctrl-C, to perf.data
  dataspace record -o run.data -- ./server --port 1
  dataspace record --duration 10 --max-size 1G -p 4711
  dataspace record -e page-faults -- ./a.out && dataspace report -i perf.data
  dataspace record -o - -- ./a.out | ssh elsewhere dataspace report -i -

The file is one of perf's: `perf report`, `perf script` and `dataspace report` read it. It is called
FILE.part until it is whole, and can be read even if this program is killed; a FILE that is there
becomes FILE.old, in the place of an older one. A FILE.part that a killed recorder left is put aside
as FILE.part.old. With -o - it goes to standard output in pipe mode; the reader of a named pipe is
waited for.";

const OUTPUT: &str = "Recording";

/// `record`.
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    #[command(next_help_heading = EVENTS)]
    event: EventArgs,
    /// The file to write; `-` is standard output, in pipe mode.
    #[arg(short, long, value_name = "FILE", default_value = "perf.data", help_heading = OUTPUT)]
    output: PathBuf,
    /// Stop before the file is longer than SIZE, its tables included: 100M, 2G. What is known before
    /// the first sample (mappings, names) is written however long it is.
    #[arg(long, value_name = "SIZE", value_parser = value::size, help_heading = OUTPUT)]
    max_size: Option<u64>,
    /// Stop after so long: 5, 0.5, 10s, 1m.
    #[arg(long, value_name = "SECS", value_parser = value::duration, help_heading = OUTPUT)]
    duration: Option<Duration>,
    /// Print one JSON object at the end: samples, losses, length.
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
}

impl RecordArgs {
    /// Options of the session and of the recording.
    ///
    /// # Errors
    /// When no target is named, or two things would go to standard output.
    pub(crate) fn resolve(self) -> Result<(LiveOptions, RecordOptions), Failure> {
        let is_stream = self.output.as_os_str() == "-";
        if is_stream && self.json {
            let what = "the recording and the JSON object would both go to standard output";
            let remedy = "dataspace record --json -o FILE …";
            return Err(Failure::new(Kind::Usage, what).with_remedy(remedy));
        }
        let target = self.target.resolve("record")?;
        let mut live = self.event.resolve(target, Output::Table);
        live.command_output =
            if is_stream || self.json { CommandOutput::Stderr } else { CommandOutput::Inherit };
        let record = RecordOptions {
            file: (!is_stream).then_some(self.output),
            max_bytes: self.max_size,
            duration: self.duration,
            is_json: self.json,
        };
        Ok((live, record))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Command};
    use super::*;
    use clap::Parser;

    fn record(args: &[&str]) -> Result<(LiveOptions, RecordOptions), String> {
        let args = ["dataspace", "record"].iter().chain(args);
        let cli = Cli::try_parse_from(args).map_err(|error| error.to_string())?;
        let Command::Record(record) = cli.command else { return Err("another command".into()) };
        record.resolve().map_err(|failure| failure.to_string())
    }

    #[test]
    fn the_output_is_a_file_unless_a_dash_says_otherwise() {
        let (live, options) = record(&["-p", "1"]).unwrap();
        assert_eq!(options.file.as_deref(), Some("perf.data".as_ref()));
        assert_eq!(live.command_output, CommandOutput::Inherit);
        let (live, options) = record(&["-o", "-", "--", "a"]).unwrap();
        assert_eq!((options.file, live.command_output), (None, CommandOutput::Stderr));
        assert!(record(&["-o", "-", "--json", "-p1"]).is_err());
        assert!(record(&["-o", "x"]).is_err(), "there is no target");
        let (_, options) = record(&["--max-size", "1M", "--duration", "2", "-p1"]).unwrap();
        assert_eq!(options.max_bytes, Some(1 << 20));
        assert_eq!(options.duration, Some(Duration::from_secs(2)));
    }
}
