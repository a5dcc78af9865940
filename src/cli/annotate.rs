//! `annotate` as it is typed, and what it asks for.

use super::session::{EVENTS, EventArgs, QUESTION, TargetArgs, VIEW};
use super::value;
use super::view::{FormArgs, NamesArgs};
use crate::annotation::cutoff::CodeCutoffs;
use crate::annotation::subject::CodeSubject;
use crate::annotation::text::CodeView;
use crate::config::{AnswerForm, LiveOptions, Names, Output, RecordingOptions};
use crate::exit::{Failure, Kind};
use clap::Args;
use dataspace_analyzer::index::code_listing::AssemblySyntax;
use std::path::PathBuf;
use std::time::Duration;

pub(super) const EXAMPLES: &str = "\
Examples:
  dataspace annotate walk                        of perf.data: code, with the objects that it touches
  dataspace annotate list.c:12 -i run.data       the function in which this line waits
  dataspace annotate walk --by-line              source lines alone
  dataspace annotate walk --min-share 0.5 --cutoff 95
  dataspace annotate walk --source ~/src/tool    sources are below this directory here
  dataspace annotate walk -p 4711 --duration 10
  dataspace annotate walk -- ./a.out
  dataspace annotate --where 'object == \"{structure:cell}.{long_int key}\"'   from an object to its code

W marks the instruction that waited, r the one that the kernel reported in its place. What stands in brackets is not
sampled: instruction and debug information say so. Without FUNCTION it is the one with the most samples.
A source is shown where both you and the target may read it.";

/// `annotate`.
#[derive(Debug, Args)]
pub(crate) struct AnnotateArgs {
    /// Function, with or without what is around it (`walk`, `list::walk`), or a line: FILE:LINE.
    #[arg(value_name = "FUNCTION|FILE:LINE")]
    pub(crate) subject: Option<String>,
    /// The recording, where no target is named; `-` is standard input [default: perf.data].
    #[arg(short, long, value_name = "FILE", conflicts_with = "target")]
    pub(crate) input: Option<PathBuf>,
    /// Look for load objects below DIR first, as `perf report --symfs` does.
    #[arg(long, value_name = "DIR", conflicts_with = "target")]
    pub(crate) symfs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    #[command(next_help_heading = EVENTS)]
    pub(crate) event: EventArgs,
    /// Look for sources below DIR first: the whole path, then ever less of it.
    #[arg(long, value_name = "DIR", help_heading = VIEW)]
    pub(crate) source: Option<PathBuf>,
    /// Show source lines without their instructions.
    #[arg(long, help_heading = VIEW)]
    pub(crate) by_line: bool,
    /// Write instructions as the manuals do, destination first.
    #[arg(long, help_heading = VIEW)]
    pub(crate) intel: bool,
    /// Leave out what has a smaller share of the function's samples, in percent.
    #[arg(long, value_name = "PERCENT", help_heading = VIEW, value_parser = percent)]
    pub(crate) min_share: Option<f64>,
    /// Show what makes up this share of the function's samples, the most first, in percent.
    #[arg(long, value_name = "PERCENT", help_heading = VIEW, value_parser = percent)]
    pub(crate) cutoff: Option<f64>,
    /// Leave out what has fewer samples [default: 0; 1 for a function of more than 400 instructions].
    #[arg(long, value_name = "N", help_heading = VIEW)]
    pub(crate) min_samples: Option<u64>,
    #[command(flatten)]
    names: NamesArgs,
    /// Stop after so long: 5, 0.5, 10s, 1m.
    #[arg(long, value_name = "SECS", value_parser = value::duration, help_heading = VIEW)]
    pub(crate) duration: Option<Duration>,
    #[command(flatten)]
    form: FormArgs,
    /// Do not show long code with $DATASPACE_PAGER, $PAGER or less.
    #[arg(long, help_heading = VIEW)]
    pub(crate) no_pager: bool,
    /// Count only samples for which the expression is true: 'access == "store"'.
    #[arg(long = "where", value_name = "EXPR", help_heading = QUESTION)]
    pub(crate) condition: Option<String>,
    /// Keep samples in so much memory [default: 64M, of a recording 256M].
    #[arg(long, value_name = "SIZE", value_parser = value::size, help_heading = QUESTION)]
    pub(crate) history: Option<u64>,
}

/// All that `annotate` is asked to show.
#[derive(Clone, Debug)]
pub(crate) struct AnnotateOptions {
    /// The code that is meant.
    pub(crate) subject: CodeSubject,
    /// A directory of sources.
    pub(crate) source: Option<PathBuf>,
    /// The rows.
    pub(crate) view: CodeView,
    /// Syntax in which instructions are written.
    pub(crate) syntax: AssemblySyntax,
    /// Spelling of the objects.
    pub(crate) names: Names,
    /// The cutoffs, where any was typed.
    pub(crate) cutoffs: Option<CodeCutoffs>,
    /// Time after which sampling ends.
    pub(crate) duration: Option<Duration>,
    /// Form of the output.
    pub(crate) form: AnswerForm,
    /// No pager.
    pub(crate) is_unpaged: bool,
    /// Expression of the samples that count.
    pub(crate) condition: Option<String>,
}

/// Source of the samples.
#[derive(Debug)]
pub(crate) enum CodeSamples {
    /// A session on running tasks.
    Live(Box<LiveOptions>),
    /// A recording.
    Recording(RecordingOptions),
}

impl AnnotateArgs {
    /// The cutoffs, where any was typed.
    fn cutoffs(&self) -> Option<CodeCutoffs> {
        let Self { min_share, cutoff, min_samples, .. } = self;
        let none = CodeCutoffs::NONE;
        let is_cut = min_share.is_some() || cutoff.is_some() || min_samples.is_some();
        is_cut.then_some(CodeCutoffs {
            min_percent: min_share.unwrap_or(none.min_percent),
            cumulative_percent: cutoff.unwrap_or(none.cumulative_percent),
            min_samples: min_samples.unwrap_or(none.min_samples),
        })
    }

    /// Options of the view, and the source of the samples.
    ///
    /// # Errors
    /// When options contradict each other.
    pub(crate) fn resolve(self) -> Result<(AnnotateOptions, CodeSamples), Failure> {
        let subject = match &self.subject {
            Some(text) => CodeSubject::parse(text),
            None => CodeSubject::Hottest,
        };
        let cutoffs = self.cutoffs();
        let has_lines = subject.has_line() || self.condition.is_some();
        let samples = if self.target.is_given() {
            let mut live =
                self.event.resolve(self.target.resolve("annotate FUNCTION")?, Output::Table);
            live.history_bytes = self.history.unwrap_or(live.history_bytes);
            live.has_lines = has_lines;
            CodeSamples::Live(Box::new(live))
        } else {
            if self.duration.is_some() || self.event.is_given() {
                let what = "events and a duration are those of a target, and none is named";
                let remedy = "dataspace annotate FUNCTION -p PID --duration 10";
                return Err(Failure::new(Kind::Usage, what).with_remedy(remedy));
            }
            CodeSamples::Recording(RecordingOptions::of_samples(
                self.input,
                self.symfs,
                self.history,
                has_lines,
            ))
        };
        let options = AnnotateOptions {
            subject,
            source: self.source,
            view: if self.by_line { CodeView::Lines } else { CodeView::Instructions },
            syntax: if self.intel { AssemblySyntax::Intel } else { AssemblySyntax::Att },
            names: self.names.how,
            cutoffs,
            duration: self.duration,
            form: self.form.resolve(),
            is_unpaged: self.no_pager,
            condition: self.condition,
        };
        Ok((options, samples))
    }
}

/// A share in percent, with or without the sign.
fn percent(text: &str) -> Result<f64, String> {
    let number: f64 =
        text.trim_end_matches('%').trim().parse().map_err(|_| "a number from 0 to 100")?;
    if (0.0..=100.0).contains(&number) {
        Ok(number)
    } else {
        Err("a number from 0 to 100".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Command};
    use super::*;
    use crate::config::{Input, RECORDING_HISTORY_BYTES};
    use clap::Parser;

    fn annotate(args: &[&str]) -> Result<(AnnotateOptions, CodeSamples), String> {
        let args = ["dataspace", "annotate"].iter().chain(args);
        let cli = Cli::try_parse_from(args).map_err(|error| error.to_string())?;
        let Command::Annotate(annotate) = cli.command else { return Err("another command".into()) };
        annotate.resolve().map_err(|failure| failure.to_string())
    }

    #[test]
    fn samples_are_of_a_recording_unless_a_target_is_named() {
        let (options, samples) = annotate(&["walk"]).unwrap();
        assert_eq!(options.subject, CodeSubject::Function("walk".to_owned()));
        assert_eq!(options.cutoffs, None);
        let CodeSamples::Recording(recording) = samples else { panic!("a recording") };
        assert_eq!(recording.input, Input::File("perf.data".into()));
        assert!(!recording.has_lines && recording.history_bytes == RECORDING_HISTORY_BYTES);
        let (options, samples) = annotate(&["a.c:7", "-p", "12", "--duration", "2"]).unwrap();
        assert_eq!(options.duration, Some(Duration::from_secs(2)));
        let CodeSamples::Live(live) = samples else { panic!("a target") };
        assert!(live.has_lines, "the line has to be found");
        let (_, samples) = annotate(&["walk", "--", "./a.out", "--json"]).unwrap();
        assert!(matches!(samples, CodeSamples::Live(_)));
        for wrong in [
            &["walk", "-i", "x", "-p", "1"][..],
            &["walk", "--duration", "2"],
            &["walk", "-e", "page-faults"],
            &["walk", "--cutoff", "101"],
            &["walk", "--min-share", "x"],
        ] {
            assert!(annotate(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(annotate(&[]).unwrap().0.subject, CodeSubject::Hottest);
    }

    #[test]
    fn cutoffs_are_those_that_were_typed() {
        let cutoffs = |args: &[&str]| annotate(args).unwrap().0.cutoffs.unwrap();
        let expect = CodeCutoffs { min_percent: 0.5, cumulative_percent: 95.0, min_samples: 3 };
        let args = ["f", "--min-share", "0.5%", "--cutoff", "95", "--min-samples", "3"];
        assert_eq!(cutoffs(&args), expect);
        assert_eq!(cutoffs(&["f", "--min-samples", "0"]), CodeCutoffs::NONE, "all is asked for");
    }
}
