//! `layout` as it is typed, and what it asks for.

use super::session::{EventArgs, TARGETS, TargetArgs, VIEW};
use super::value;
use super::view::FormArgs;
use crate::config::{LayoutOptions, LayoutSource, Output, RecordingOptions};
use crate::exit::{Failure, Kind};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

pub(super) const EXAMPLES: &str = "\
Examples:
  dataspace layout order ./server            all members, holes and padding, from the debug information alone
  dataspace layout 'std::map<*>' ./server    a glob: * is any text, ? one character
  dataspace layout PyObject /usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0 --json
  dataspace layout order -p 4711 --duration 10           with what was sampled
  dataspace layout order ./server -p 4711 --duration 10  also where no sample touched the type
  dataspace layout '*' -i perf.data          every type that was sampled, most samples first

There is one layout for each that is different: a name may stand for two structures in two units. A
bit-field's offset is that of the byte with its first bit, its size that of its declared type. The marks
are those of data_layout, with cache lines of 64 bytes: / begins a line, \\ ends it, < is one, | is
inside, X crosses a border and would fit, # is larger. FIRST is the share of the waits for a member's
line in which it was the member that was touched first: the wait is for the line, so that moving the
member to another line moves the wait, too.";

/// `layout`.
#[derive(Debug, Args)]
pub(crate) struct LayoutArgs {
    /// The type: its name with its name spaces, as the program writes it, or a glob.
    #[arg(value_name = "TYPE")]
    name: String,
    /// The program or library whose debug information has it.
    #[arg(value_name = "PROGRAM")]
    program: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    /// Show what was sampled in this recording; `-` is standard input.
    #[arg(short, long, value_name = "FILE", group = "target", help_heading = TARGETS)]
    input: Option<PathBuf>,
    /// Look for the recording's load objects below DIR first.
    #[arg(long, value_name = "DIR", requires = "input", help_heading = TARGETS)]
    symfs: Option<PathBuf>,
    #[command(flatten)]
    event: EventArgs,
    #[command(flatten)]
    form: FormArgs,
    /// Print every description of a type, also those that are alike.
    #[arg(long, help_heading = VIEW)]
    every: bool,
    /// Do not show long layouts with $DATASPACE_PAGER, $PAGER or less.
    #[arg(long, help_heading = VIEW)]
    no_pager: bool,
    /// Stop after so long: 5, 0.5, 10s, 1m.
    #[arg(long, value_name = "SECS", value_parser = value::duration, help_heading = VIEW)]
    duration: Option<Duration>,
    /// Keep the newest samples in so much memory [default: 64M, about a million samples; of a recording 256M].
    #[arg(long, value_name = "SIZE", value_parser = value::size, help_heading = VIEW)]
    history: Option<u64>,
}

impl LayoutArgs {
    /// Options of the command.
    ///
    /// # Errors
    /// Where nothing is named that could have a layout.
    pub(crate) fn resolve(self) -> Result<LayoutOptions, Failure> {
        let source = if let Some(input) = self.input {
            let (symfs, history) = (self.symfs, self.history);
            let recording = RecordingOptions::of_samples(Some(input), symfs, history, false);
            LayoutSource::Recording(Box::new(recording))
        } else if self.target.is_given() {
            let mut live = self.event.resolve(self.target.resolve("layout")?, Output::Table);
            live.history_bytes = self.history.unwrap_or(live.history_bytes);
            LayoutSource::Live(Box::new(live), self.duration)
        } else if self.event.is_given() || self.duration.is_some() || self.history.is_some() {
            let what = "events, a duration and a history are of a target, and none is named";
            let remedy = "dataspace layout TYPE -p PID --duration 10";
            return Err(Failure::new(Kind::Usage, what).with_remedy(remedy));
        } else if self.program.is_some() {
            LayoutSource::None
        } else {
            let remedy = "dataspace layout TYPE PROGRAM    from the debug information of a program\n\
                          dataspace layout TYPE -p PID     with what is sampled of a process\n\
                          dataspace layout TYPE -i FILE    with what a recording has";
            return Err(Failure::new(Kind::Usage, "no program is named").with_remedy(remedy));
        };
        let Self { name, program, form, every, no_pager, .. } = self;
        Ok(LayoutOptions {
            name,
            program,
            source,
            form: form.resolve(),
            is_every: every,
            is_paged: !no_pager,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Command};
    use super::*;
    use crate::config::Input;
    use clap::Parser;

    fn layout(args: &[&str]) -> Result<LayoutOptions, String> {
        let args = ["dataspace", "layout"].iter().chain(args);
        let cli = Cli::try_parse_from(args).map_err(|error| error.to_string())?;
        let Command::Layout(layout) = cli.command else { return Err("another command".into()) };
        layout.resolve().map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_layout_is_of_a_program_a_process_or_a_recording() {
        let options = layout(&["order", "./a"]).unwrap();
        assert!(matches!(options.source, LayoutSource::None));
        assert_eq!((&*options.name, options.program), ("order", Some("./a".into())));
        let options = layout(&["order", "-p", "1", "--duration", "2"]).unwrap();
        assert!(matches!(options.source, LayoutSource::Live(_, Some(_))));
        let options = layout(&["order", "-i", "-"]).unwrap();
        let LayoutSource::Recording(recording) = options.source else { panic!("a recording") };
        assert_eq!(recording.input, Input::Stdin);
        let options = layout(&["order", "./a", "--", "./a", "1"]).unwrap();
        assert!(matches!(options.source, LayoutSource::Live(_, None)));
        for wrong in [&["order"][..], &["order", "a", "--duration", "1"], &["o", "-i", "f", "-p1"]]
        {
            assert!(layout(wrong).is_err(), "{wrong:?}");
        }
    }
}
