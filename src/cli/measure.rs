//! `measure` as it is typed, and what it asks for.

use super::session::{QUESTION, TargetArgs, VIEW};
use super::value;
use super::view::{FormArgs, NamesArgs};
use crate::annotation::cutoff::CodeCutoffs;
use crate::config::{AnswerForm, DEFAULT_MAX_OVERHEAD, LiveOptions, Output, RecordingOptions};
use crate::exit::{Failure, Kind};
use crate::measure::view::{DetailRows, MeasureView, SortBy, ThreadChoice};
use clap::{ArgAction, Args, ValueEnum};
use dataspace_analyzer::index::code_listing::AssemblySyntax;
use dataspace_proto::measure::{Measure, MeasureRequest, PrivilegeLevels, Variation};
use std::path::PathBuf;
use std::time::Duration;

pub(super) const EXAMPLES: &str = "\
Examples:
  dataspace measure faults -- ./a.out              page faults: exact counts, and where they happen
  dataspace measure time -p 4711 --duration 10     time on a CPU of a running process
  dataspace measure dcache -- ./a.out              misses of the data cache, with their latency
  dataspace measure dtlb -s 20011 -u redis-server  a sample each 20,011 misses of the data TLB
  dataspace measure dcache -s ,,:threshold=128 -p 4711
  dataspace measure icache -i perf.data            a recording, of another machine too
  dataspace measure faults -r statement --context-lines 2 -- ./a.out
  dataspace measure time --json -- ./a.out | jq '.counts'

One run counts a group of events exactly and samples one with places. What the machine has not is said, and what
comes nearest (exit code 4); faults and time are to be had everywhere. -s takes what HP Caliper's does:
rate[,variation[,event[:threshold=n][:privilege-level-mask=user|kernel|all]]], of which any part may be left out;
the event is spelled as for --event of other commands.";

/// `measure`.
#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    /// Thing to measure.
    #[arg(value_name = "MEASURE", value_parser = value::measure,
        help = "Thing to measure: dcache, dtlb, icache, itlb, faults, time")]
    measure: Measure,
    /// A recording, where no target is named; `-` is standard input.
    #[arg(short, long, value_name = "FILE", conflicts_with = "target")]
    input: Option<PathBuf>,
    /// Look for a recording's load objects below DIR first, as `perf report --symfs` does.
    #[arg(long, value_name = "DIR", conflicts_with = "target")]
    symfs: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    /// Rate of samples, its variation (5%), the event: 10007,5%,cpu/mem-loads/P:threshold=64.
    #[arg(short, long = "sampling", value_name = "SPEC", value_parser = sampling, help_heading = super::session::EVENTS)]
    sampling: Option<SamplingSpec>,
    /// Sample less where sampling takes more than this share of the target's CPU time: 0.5%, 3%, off [default: 1%, but
    /// with a rate in -s every Nth fault].
    #[arg(long, value_name = "SHARE", value_parser = value::share, help_heading = super::session::EVENTS)]
    max_overhead: Option<value::Share>,
    /// Pages of each CPU's ring, a power of two [default: 512 KiB].
    #[arg(short = 'm', long, value_name = "PAGES", value_parser = value::pages, help_heading = super::session::EVENTS)]
    mmap_pages: Option<usize>,
    /// Show it on the screen while it runs, and the report when that is left.
    #[arg(long, conflicts_with_all = ["input", "json", "csv"], help_heading = VIEW)]
    live: bool,
    /// Stop after so long: 5, 0.5, 10s, 1m.
    #[arg(long, value_name = "SECS", value_parser = value::duration, help_heading = VIEW)]
    duration: Option<Duration>,
    /// Order of the rows [default: what is measured].
    #[arg(long, value_name = "KEY", default_value = "metric", hide_default_value = true, help_heading = VIEW)]
    sort_by: SortBy,
    /// Leave out of summaries what has less: percent of the whole, cumulative percent, samples.
    #[arg(long, value_name = "PERCENT[,CUMULATIVE[,MIN]]", value_parser = cutoffs, default_value = "0.1,100,1", help_heading = VIEW)]
    summary_cutoff: CodeCutoffs,
    /// Show no code of functions that have less.
    #[arg(long, value_name = "PERCENT[,CUMULATIVE[,MIN]]", value_parser = cutoffs, default_value = "1,95,5", help_heading = VIEW)]
    detail_cutoff: CodeCutoffs,
    /// Rows of the code of functions.
    #[arg(short = 'r', long, value_name = "ROWS", default_value = "all", help_heading = VIEW)]
    report_details: DetailRows,
    /// Show so many lines of source around statements, with -r statement.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1000), help_heading = VIEW)]
    context_lines: u32,
    /// Put functions below their load objects, or not.
    #[arg(long, value_name = "HOW", default_value = "none", help_heading = VIEW)]
    group_by: GroupBy,
    /// Repeat load modules, functions and code for each thread, or for one: sum-all, all, TID.
    #[arg(long, value_name = "WHICH", default_value = "sum-all", value_parser = thread, help_heading = VIEW)]
    thread: ThreadChoice,
    /// Show the eight buckets of latency.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, value_parser = truth, help_heading = VIEW)]
    latency_buckets: bool,
    /// Tell data objects apart by the load object of the code that touched them.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set, value_parser = truth, help_heading = VIEW)]
    per_module_data: bool,
    /// Look for sources below DIR first: the whole path, then ever less of it.
    #[arg(long, value_name = "DIR", help_heading = VIEW)]
    source: Option<PathBuf>,
    /// Write instructions as the manuals do, destination first.
    #[arg(long, help_heading = VIEW)]
    intel: bool,
    #[command(flatten)]
    names: NamesArgs,
    #[command(flatten)]
    form: FormArgs,
    /// Do not show a long report with $DATASPACE_PAGER, $PAGER or less.
    #[arg(long, help_heading = VIEW)]
    no_pager: bool,
    /// Count only samples for which the expression is true: 'function == "main"'.
    #[arg(long = "where", value_name = "EXPR", help_heading = QUESTION)]
    condition: Option<String>,
    /// Count only samples of this span: -30s..-10s before the end, 5s..10s after the beginning, -1m..
    #[arg(long, value_name = "FROM..TO", allow_hyphen_values = true, help_heading = QUESTION)]
    span: Option<String>,
    /// Keep the newest samples in so much memory [default: 64M, about a million samples; of a recording 256M].
    #[arg(long, value_name = "SIZE", value_parser = value::size, help_heading = QUESTION)]
    history: Option<u64>,
}

/// Grouping of functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum GroupBy {
    /// By load object.
    #[value(alias = "executable")]
    Module,
    /// Not at all.
    #[default]
    None,
}

/// `-s` as it is typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SamplingSpec {
    rate: Option<u64>,
    variation: Option<Variation>,
    event: Option<String>,
    threshold: Option<u64>,
    levels: PrivilegeLevels,
}

/// Source of the samples of a measurement.
#[derive(Debug)]
pub(crate) enum MeasureSource {
    /// A session of our own, and how long it is.
    Live(Box<LiveOptions>, Option<Duration>),
    /// A recording.
    Recording(RecordingOptions),
}

/// All that `measure` is to do.
#[derive(Debug)]
pub(crate) struct MeasureOptions {
    /// Thing to measure, and how.
    pub(crate) request: MeasureRequest,
    /// Source of the samples.
    pub(crate) source: MeasureSource,
    /// Presentation.
    pub(crate) view: MeasureView,
    /// A directory of sources.
    pub(crate) sources: Option<PathBuf>,
    /// Form of the output.
    pub(crate) form: AnswerForm,
    /// No pager.
    pub(crate) is_unpaged: bool,
    /// Expression of the samples that count.
    pub(crate) condition: Option<String>,
    /// Span of the samples that count.
    pub(crate) span: Option<String>,
    /// It is shown on the screen while it runs.
    pub(crate) is_live: bool,
}

impl MeasureArgs {
    /// The options that were meant.
    ///
    /// # Errors
    /// When options contradict each other.
    pub(crate) fn resolve(self) -> Result<MeasureOptions, Failure> {
        let request = self.request();
        let view = MeasureView {
            sort: self.sort_by,
            summary: self.summary_cutoff,
            detail: self.detail_cutoff,
            rows: self.report_details,
            context_lines: self.context_lines,
            is_by_module: self.group_by == GroupBy::Module,
            threads: self.thread,
            has_buckets: self.latency_buckets,
            has_module_data: self.per_module_data,
            names: self.names.how,
            syntax: if self.intel { AssemblySyntax::Intel } else { AssemblySyntax::Att },
        };
        let has_rate = request.rate.is_some();
        let source = if let Some(input) = self.input {
            if self.duration.is_some() || self.sampling.is_some() {
                let what =
                    "sampling and a duration are those of a target, and a recording is named";
                return Err(Failure::new(Kind::Usage, what));
            }
            let recording =
                RecordingOptions::of_samples(Some(input), self.symfs, self.history, false);
            MeasureSource::Recording(recording)
        } else {
            let name = format!("measure {}", request.measure.name());
            let event = super::EventArgs {
                max_overhead: self.max_overhead.or_else(|| {
                    // Said, so that it holds for each fault too, unless a rate was typed.
                    (!has_rate).then_some(value::Share(Some(DEFAULT_MAX_OVERHEAD)))
                }),
                mmap_pages: self.mmap_pages,
                // A rate makes every Nth a sample.
                period: request.rate,
                ..super::EventArgs::default()
            };
            let output = if self.live { Output::Screen } else { Output::Table };
            let live = event.resolve(self.target.resolve(&name)?, output);
            let history_bytes = self.history.unwrap_or(live.history_bytes);
            let live = LiveOptions { history_bytes, measure: Some(request.clone()), ..live };
            MeasureSource::Live(Box::new(live), self.duration)
        };
        Ok(MeasureOptions {
            request,
            source,
            view,
            sources: self.source,
            form: self.form.resolve(),
            is_unpaged: self.no_pager,
            condition: self.condition,
            span: self.span,
            is_live: self.live,
        })
    }

    fn request(&self) -> MeasureRequest {
        let usual = MeasureRequest::new(self.measure);
        let Some(spec) = self.sampling.clone() else { return usual };
        MeasureRequest {
            rate: spec.rate,
            variation: spec.variation.unwrap_or(usual.variation),
            event: spec.event,
            threshold: spec.threshold,
            levels: spec.levels,
            ..usual
        }
    }
}

fn truth(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Ok(true),
        "false" | "no" | "off" => Ok(false),
        _ => Err("true or false".to_owned()),
    }
}

fn thread(text: &str) -> Result<ThreadChoice, String> {
    match text {
        "sum-all" => Ok(ThreadChoice::SumAll),
        "all" => Ok(ThreadChoice::All),
        tid => value::task(tid)
            .map(ThreadChoice::One)
            .map_err(|_| "sum-all, all, or the number of a thread".to_owned()),
    }
}

/// `PERCENT[,CUMULATIVE[,MIN]]`; what is left out cuts nothing.
fn cutoffs(text: &str) -> Result<CodeCutoffs, String> {
    let wrong = || {
        "PERCENT[,CUMULATIVE[,MIN]]: two shares from 0 to 100, and a number of samples".to_owned()
    };
    let mut parts = text.split(',');
    let mut cutoffs = CodeCutoffs::NONE;
    let share = |part: &str| {
        let number: f64 = part.trim_end_matches('%').trim().parse().map_err(|_| wrong())?;
        if (0.0..=100.0).contains(&number) { Ok(number) } else { Err(wrong()) }
    };
    if let Some(part) = parts.next().filter(|part| !part.is_empty()) {
        cutoffs.min_percent = share(part)?;
    }
    if let Some(part) = parts.next().filter(|part| !part.is_empty()) {
        cutoffs.cumulative_percent = share(part)?;
    }
    if let Some(part) = parts.next().filter(|part| !part.is_empty()) {
        cutoffs.min_samples = part.trim().parse().map_err(|_| wrong())?;
    }
    if parts.next().is_some() { Err(wrong()) } else { Ok(cutoffs) }
}

/// `rate[,variation[,event[:threshold=n][:privilege-level-mask=user|kernel|all]]]`. The event may have commas of its own.
fn sampling(text: &str) -> Result<SamplingSpec, String> {
    let mut parts = text.splitn(3, ',');
    let mut spec = SamplingSpec::default();
    if let Some(rate) = parts.next().filter(|rate| !rate.is_empty()) {
        spec.rate = Some(self::rate(rate)?);
    }
    if let Some(variation) = parts.next().filter(|variation| !variation.is_empty()) {
        spec.variation = Some(self::variation(variation)?);
    }
    let mut event = parts.next().unwrap_or_default();
    while let Some((before, option)) = event.rsplit_once(':') {
        if let Some(number) = option.strip_prefix("threshold=") {
            let cycles = number.parse().ok().filter(|cycles| *cycles > 0);
            spec.threshold = Some(cycles.ok_or("threshold=N: core cycles")?);
        } else if let Some(mask) = option.strip_prefix("privilege-level-mask=") {
            spec.levels = match mask {
                "all" => PrivilegeLevels::All,
                "user" => PrivilegeLevels::User,
                "kernel" => PrivilegeLevels::Kernel,
                _ => return Err("privilege-level-mask=user|kernel|all".to_owned()),
            };
        } else {
            break;
        }
        event = before;
    }
    if !event.is_empty() {
        spec.event = Some(event.to_owned());
    }
    Ok(spec)
}

/// Events from one sample to the next; of a clock a time: 1ms, 500us.
fn rate(text: &str) -> Result<u64, String> {
    let wrong =
        || "a rate is a number of events, or for a clock a time: 10007, 1ms, 500us".to_owned();
    let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let (number, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))
        .unwrap_or((text, 1_u64));
    let number: u64 = number.trim().parse().map_err(|_| wrong())?;
    number.checked_mul(factor).filter(|rate| *rate > 0).ok_or_else(wrong)
}

fn variation(text: &str) -> Result<Variation, String> {
    let wrong = || "a variation is a share of the rate, or a number of events: 5%, 1000".to_owned();
    match text.strip_suffix('%') {
        Some(share) => {
            let share: f64 = share.trim().parse().map_err(|_| wrong())?;
            if !(0.0..=100.0).contains(&share) {
                return Err(wrong());
            }
            Ok(Variation::PerMille((share * 10.0).round() as u16))
        }
        None => text.trim().parse().map(Variation::Events).map_err(|_| wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Command};
    use super::*;
    use clap::Parser;

    fn resolved(args: &[&str]) -> Result<MeasureOptions, String> {
        let args = ["dataspace", "measure"].iter().chain(args);
        let cli = Cli::try_parse_from(args).map_err(|error| error.to_string())?;
        let Command::Measure(measure) = cli.command else { return Err("another command".into()) };
        measure.resolve().map_err(|failure| failure.to_string())
    }

    #[test]
    fn sampling_is_spelled_as_hp_caliper_spells_it() {
        let of = |text: &str| sampling(text).unwrap();
        let spec = SamplingSpec::default();
        assert_eq!(of("10007"), SamplingSpec { rate: Some(10_007), ..spec.clone() });
        assert_eq!(of("1ms"), SamplingSpec { rate: Some(1_000_000), ..spec.clone() });
        let half = Some(Variation::PerMille(25));
        assert_eq!(of(",2.5%"), SamplingSpec { variation: half, ..spec.clone() });
        let events = Some(Variation::Events(500));
        let rate = Some(100);
        assert_eq!(of("100,500"), SamplingSpec { rate, variation: events, ..spec.clone() });
        let whole = of(
            "7,5%,cpu/event=0xc6,umask=0x1,frontend=0x15/P:threshold=16:privilege-level-mask=user",
        );
        assert_eq!(whole.event.as_deref(), Some("cpu/event=0xc6,umask=0x1,frontend=0x15/P"));
        assert_eq!((whole.threshold, whole.levels), (Some(16), PrivilegeLevels::User));
        let bare = of(",,:threshold=64");
        assert_eq!((bare.event, bare.threshold), (None, Some(64)));
        let levels = of(",,:privilege-level-mask=kernel");
        assert_eq!((levels.event, levels.levels), (None, PrivilegeLevels::Kernel));
        assert_eq!(of(",,page-faults:u").event.as_deref(), Some("page-faults:u"));
        assert_eq!(of(""), spec);
        for wrong in ["x", "0", "1,x", "1,101%", ",,a:threshold=x", ",,a:privilege-level-mask=root"]
        {
            assert!(sampling(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_target_or_a_recording_is_measured() {
        let faults = resolved(&["faults", "-p", "12", "--duration", "2"]).unwrap();
        let MeasureSource::Live(live, duration) = faults.source else { panic!("a target") };
        assert_eq!(duration, Some(Duration::from_secs(2)));
        assert_eq!(live.measure, Some(MeasureRequest::new(Measure::Faults)));
        assert!(!live.keeps_counts && live.max_overhead == Some(DEFAULT_MAX_OVERHEAD));
        let each = resolved(&["faults", "-s", "1", "--", "./a"]).unwrap();
        let MeasureSource::Live(live, _) = each.source else { panic!("a target") };
        assert!(live.keeps_counts, "every fault is asked for");
        let recording = resolved(&["dtlb", "-i", "x"]).unwrap();
        assert!(matches!(recording.source, MeasureSource::Recording(_)));
        for wrong in [
            &["tlb", "-p", "1"][..],
            &["faults"],
            &["faults", "-i", "x", "-p", "1"],
            &["faults", "-i", "x", "-s", "5"],
            &["faults", "-p", "1", "--thread", "x"],
            &["faults", "-p", "1", "--summary-cutoff", "1,2,3,4"],
            &["faults", "-p", "1", "--latency-buckets", "perhaps"],
        ] {
            assert!(resolved(wrong).is_err(), "{wrong:?}");
        }
        let options = resolved(&["time", "-p", "1", "--detail-cutoff", ",90", "--thread", "all"]);
        let view = options.unwrap().view;
        assert_eq!(view.detail, CodeCutoffs { cumulative_percent: 90.0, ..CodeCutoffs::NONE });
        assert_eq!(view.threads, ThreadChoice::All);
    }
}
