//! From what was typed to what the program needs.

use super::{DoctorArgs, EventArgs, RecordingArgs, TargetArgs, When, WindowsArgs};
use crate::config::{
    CalibrationOptions, DEFAULT_HISTORY_BYTES, DEFAULT_MAX_OVERHEAD, Input, LiveOptions, Output,
    RecordingOptions,
};
use crate::exit::{Failure, Kind};
use dataspace_collector::target::TargetSpec;
use dataspace_collector::target::membership::CommFilter;
use dataspace_proto::broker::CommandOutput;
use dataspace_proto::event::Sampling;
use dataspace_proto::window::WindowLengths;
use std::time::Duration;

/// A second and more for each loop of a calibration: over 2,000 samples.
const CALIBRATION: Duration = Duration::from_secs(10);

impl TargetArgs {
    /// Tells whether anybody was named.
    pub(crate) fn is_given(&self) -> bool {
        let Self { pids, tids, unit, cgroup, all, command, comms, excluded_comms } = self;
        let is_named = !(pids.is_empty() && tids.is_empty() && command.is_empty());
        let is_filtered = !(comms.is_empty() && excluded_comms.is_empty());
        is_named || unit.is_some() || cgroup.is_some() || *all || is_filtered
    }

    /// Target that `command` is to profile.
    ///
    /// # Errors
    /// When nobody was named: what to type.
    pub(crate) fn resolve(self, command: &str) -> Result<(TargetSpec, CommFilter), Failure> {
        let comms = CommFilter { include: self.comms, exclude: self.excluded_comms };
        let target = if !self.pids.is_empty() {
            TargetSpec::Pids(without_repeats(self.pids))
        } else if !self.tids.is_empty() {
            TargetSpec::Tids(without_repeats(self.tids))
        } else if !self.command.is_empty() {
            TargetSpec::Command(self.command)
        } else if let Some(unit) = self.unit {
            TargetSpec::Unit(unit)
        } else if let Some(path) = self.cgroup {
            TargetSpec::Cgroup(path)
        } else if self.all || !comms.include.is_empty() {
            TargetSpec::All
        } else {
            return Err(Failure::new(Kind::Usage, "no target given").with_remedy(typed(command)));
        };
        Ok((target, comms))
    }
}

/// Words to type to name a target of `command`. The daemon, which `attach` asks, starts nothing.
fn typed(command: &str) -> String {
    let typed = |arguments: &str| format!("dataspace {command} {arguments}");
    let mut lines = vec![
        (typed("-p PID"), "a running process, as `pgrep -n NAME` finds it"),
        (typed("-u NAME"), "a service of systemd"),
    ];
    if command != "attach" {
        lines.insert(1, (typed("-- COMMAND ARGS"), "a command to run"));
        lines.push(("dataspace demo".to_owned(), "a bundled program, to see it work"));
    }
    let width = lines.iter().map(|(typed, _)| typed.len()).max().unwrap_or(0);
    let lines = lines.iter().map(|(typed, what)| format!("{typed:width$}  {what}"));
    lines.collect::<Vec<_>>().join("\n")
}

impl EventArgs {
    /// The session that samples these events of `target`.
    pub(crate) fn resolve(self, target: (TargetSpec, CommFilter), output: Output) -> LiveOptions {
        let (target, comms) = target;
        LiveOptions {
            target,
            comms,
            sampling: self.sampling(),
            measure: None,
            keeps_counts: self.max_overhead.is_none(),
            max_overhead: self.max_overhead.map_or(Some(DEFAULT_MAX_OVERHEAD), |share| share.0),
            ring_pages: self.mmap_pages,
            windows: WindowLengths::default(),
            history_bytes: DEFAULT_HISTORY_BYTES,
            has_lines: false,
            events: self.names(),
            is_one_of_many: false,
            viewer: None,
            command_output: match output {
                Output::Screen => CommandOutput::Discard,
                _ => CommandOutput::Stderr,
            },
        }
    }
}

impl WindowsArgs {
    /// The lengths, where they were not typed the usual ones.
    pub(crate) fn resolve(self) -> WindowLengths {
        self.lengths.unwrap_or_default()
    }

    /// `live` with these windows.
    pub(crate) fn of(self, live: LiveOptions) -> LiveOptions {
        LiveOptions { windows: self.resolve(), ..live }
    }
}

impl EventArgs {
    /// Tells whether anything was said.
    pub(crate) fn is_given(&self) -> bool {
        let Self { events, period, frequency, max_overhead, mmap_pages } = self;
        let is_paced = period.is_some() || frequency.is_some();
        !events.is_empty() || is_paced || max_overhead.is_some() || mmap_pages.is_some()
    }

    fn sampling(&self) -> Option<Sampling> {
        match (self.period, self.frequency) {
            (Some(period), _) => Some(Sampling::Period(period)),
            (None, Some(hz)) => Some(Sampling::FrequencyHz(hz)),
            (None, None) => None,
        }
    }

    fn names(self) -> Vec<String> {
        self.events.into_iter().flat_map(|list| list.0).collect()
    }
}

impl DoctorArgs {
    /// Options of the calibration, if that was asked for.
    ///
    /// # Errors
    /// When events are named with nothing to measure, or more than one.
    pub(crate) fn resolve(self, has_color: bool) -> Result<Option<CalibrationOptions>, Failure> {
        let sampling = self.event.sampling();
        let mut events = self.event.names();
        let is_usual = sampling.is_none() && events.is_empty();
        let usage = |what: &str| {
            let remedy = "dataspace doctor --calibrate -e cpu-clock -F 1999";
            Err(Failure::new(Kind::Usage, what).with_remedy(remedy))
        };
        match (self.calibrate, events.len()) {
            (false, _) if is_usual => Ok(None),
            (false, _) => usage("events, periods and rates go with --calibrate"),
            (true, 0 | 1) => Ok(Some(CalibrationOptions {
                event: events.pop(),
                sampling,
                duration: self.duration.unwrap_or(CALIBRATION),
                is_json: self.json,
                has_color,
            })),
            (true, _) => usage("one event is calibrated at a time"),
        }
    }
}

impl RecordingArgs {
    /// Recording to read, and how to attribute its samples.
    pub(crate) fn resolve(self) -> RecordingOptions {
        RecordingOptions {
            input: Input::at(self.input),
            symfs: self.symfs,
            skid: self.skid,
            paths: self.paths,
            windows: WindowLengths::default(),
            history_bytes: 0,
            has_lines: false,
        }
    }
}

impl When {
    /// Tells whether to use colour on standard output. See <https://no-color.org>: any non-empty value
    /// of `NO_COLOR` means no, unless the command line asks for it.
    pub(crate) fn resolve(self, is_terminal: bool) -> bool {
        let is_unwanted = || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        match self {
            When::Always => true,
            When::Never => false,
            When::Auto => is_terminal && !is_unwanted() && !is_dumb(),
        }
    }
}

fn without_repeats(mut ids: Vec<i32>) -> Vec<i32> {
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Command};
    use super::*;
    use crate::cli::ViewArgs;
    use crate::config::TopOptions;
    use clap::{CommandFactory, Parser};
    use dataspace_proto::window::Window;
    use std::ffi::OsString;

    fn top(args: &[&str]) -> Result<(LiveOptions, TopOptions), String> {
        let args = ["dataspace", "top"].iter().chain(args);
        let cli = Cli::try_parse_from(args).map_err(|error| error.to_string())?;
        let Command::Top(top) = cli.command else { return Err("another command".into()) };
        let view = top.view.resolve(cli.global.color, true);
        let target = top.target.resolve("top").map_err(|failure| failure.to_string())?;
        Ok((top.windows.of(top.event.resolve(target, view.output)), view))
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn targets_are_processes_threads_or_a_command() {
        let check = |args: &[&str], expect: TargetSpec| {
            assert_eq!(top(args).unwrap().0.target, expect, "{args:?}");
        };
        check(&["-p", "12,13"], TargetSpec::Pids(vec![12, 13]));
        check(&["-p13", "--pid", "12", "-p", "13"], TargetSpec::Pids(vec![12, 13]));
        check(&["-t", "7"], TargetSpec::Tids(vec![7]));
        let command = ["./a", "-p", "--", "--json"].map(OsString::from).to_vec();
        check(&["--", "./a", "-p", "--", "--json"], TargetSpec::Command(command));
        check(&["-u", "redis"], TargetSpec::Unit("redis".into()));
        check(&["--cgroup", "/a"], TargetSpec::Cgroup("/a".into()));
        check(&["-a"], TargetSpec::All);
        check(&["--comm", "redis"], TargetSpec::All);
        check(&["-p", "12", "--comm", "redis"], TargetSpec::Pids(vec![12]));
        let comms = top(&["-a", "--comm", "a,b", "--exclude-comm", "c"]).unwrap().0.comms;
        assert_eq!((comms.include.len(), comms.exclude), (2, vec![b"c"[..].into()]));
        assert!(top(&["--exclude-comm", "c"]).is_err(), "of what?");
        for wrong in [
            &["-p", "0"][..],
            &["-a", "-p", "1"],
            &["-a", "-u", "x"],
            &["-p", "x"],
            &["-p", "1", "-t", "1"],
            &["-p", "1", "--", "a"],
        ] {
            assert!(top(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(top(&[]).unwrap_err(), "no target given");
        let typed = typed("record");
        assert!(typed.starts_with("dataspace record -p PID") && !typed.contains(" top"), "{typed}");
        assert!(typed.contains("record -- COMMAND ARGS") && typed.contains("demo"), "{typed}");
        let typed = super::typed("attach");
        assert_eq!(typed.lines().count(), 2, "{typed}");
        assert!(!typed.contains("COMMAND") && !typed.contains("demo"), "{typed}");
    }

    #[test]
    fn events_and_rates_reach_the_session() {
        let args = ["-e", "mem:0x404028/8:rw,cpu-clock", "-e", "page-faults", "-c", "1", "-p", "1"];
        let live = top(&args).unwrap().0;
        assert_eq!(live.events, ["mem:0x404028/8:rw", "cpu-clock", "page-faults"]);
        assert_eq!(live.sampling, Some(Sampling::Period(1)));
        assert_eq!(live.command_output, CommandOutput::Discard);
        assert_eq!(top(&["-F", "99", "-p1"]).unwrap().0.sampling, Some(Sampling::FrequencyHz(99)));
        assert!(top(&["-F", "99", "-c", "1", "-p1"]).is_err(), "they contradict each other");
        assert!(top(&["-F", "0", "-p1"]).is_err() && top(&["-c", "0", "-p1"]).is_err());
    }

    #[test]
    fn one_event_is_calibrated_and_only_where_that_is_asked_for() {
        let doctor = |args: &[&str]| {
            let args = ["dataspace", "doctor"].iter().chain(args);
            let cli = Cli::try_parse_from(args).map_err(|error| error.to_string())?;
            let Command::Doctor(doctor) = cli.command else { return Err("another command".into()) };
            doctor.resolve(false).map_err(|failure| failure.to_string())
        };
        assert_eq!((doctor(&[]), doctor(&["--json"])), (Ok(None), Ok(None)));
        let options = doctor(&["--calibrate"]).unwrap().unwrap();
        assert_eq!((options.event, options.sampling, options.is_json), (None, None, false));
        assert_eq!(options.duration, Duration::from_secs(10));
        let args = ["--calibrate", "-e", "task-clock", "-F99", "--duration", "2", "--json"];
        let options = doctor(&args).unwrap().unwrap();
        assert_eq!(options.event.as_deref(), Some("task-clock"));
        assert_eq!(options.sampling, Some(Sampling::FrequencyHz(99)));
        assert!(options.is_json && options.duration == Duration::from_secs(2));
        for wrong in [
            &["-e", "cpu-clock"][..],
            &["-F99"],
            &["--json", "-e", "cpu-clock"],
            &["--duration", "1"],
            &["--calibrate", "-e", "cpu-clock,faults"],
        ] {
            assert!(doctor(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_output_follows_the_flags_and_then_the_terminal() {
        let output = |args: &[&str]| top(args).unwrap().1.output;
        assert_eq!(output(&["-p1"]), Output::Screen);
        assert_eq!(output(&["-p1", "--json"]), Output::Json);
        assert_eq!(output(&["-p1", "--once"]), Output::Table);
        assert_eq!(output(&["-p1", "--once", "--json"]), Output::JsonOnce);
        assert_eq!(ViewArgs::default().resolve(When::Auto, false).output, Output::Table);
        assert_eq!(ViewArgs::default().resolve(When::Auto, false).window, Some(Window::All));
        assert_eq!(top(&["-p1"]).unwrap().1.window, None);
        assert_eq!(top(&["-p1", "--window", "60s"]).unwrap().1.window, Some(Window::Last(60)));
    }

    #[test]
    fn a_session_has_the_windows_that_were_typed() {
        let windows = |args: &[&str]| top(args).map(|(live, _)| live.windows.seconds().to_vec());
        assert_eq!(windows(&["-p1"]), Ok(vec![60, 10, 1]));
        assert_eq!(windows(&["-p1", "--windows", "5,300,60"]), Ok(vec![300, 60, 5]));
        for wrong in ["", "0", "301", "5,5", "1,2,3,4,5", "1.5", "1m", "-1"] {
            assert!(windows(&["-p1", "--windows", wrong]).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_dash_is_standard_input() {
        let args = ["dataspace", "script", "-i", "-", "--skid", "0", "--paths", "type"];
        let Command::Script(script) = Cli::try_parse_from(args).unwrap().command else {
            unreachable!("script was typed")
        };
        let recording = script.recording.resolve();
        assert_eq!(recording.input, Input::Stdin);
        assert_eq!(recording.paths, crate::config::Paths::Type);
    }
}
