//! Requests for sessions, in the configuration or by a client, as options of a live session.

use crate::cli::value;
use crate::config::{DAEMON_HISTORY_BYTES, DEFAULT_MAX_OVERHEAD, LiveOptions};
use crate::session;
use dataspace_collector::target::TargetSpec;
use dataspace_collector::target::membership::CommFilter;
use dataspace_proto::api::SessionSpec;
use dataspace_proto::broker::CommandOutput;
use dataspace_proto::event::Sampling;
use dataspace_proto::measure::MeasureRequest;
use dataspace_proto::window::WindowLengths;
use std::collections::HashSet;

/// A session of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Planned {
    /// As it stands there.
    pub(crate) spec: SessionSpec,
    /// Sessions with their options.
    pub(crate) options: LiveOptions,
}

/// The options that `spec` asks for.
///
/// # Errors
/// The fault of `spec`.
pub(crate) fn options(spec: &SessionSpec) -> Result<LiveOptions, String> {
    check_name(spec.name.as_deref())?;
    const MAX_NAMED: usize = SessionSpec::MAX_NAMED;
    let n_named = [
        spec.pids.len(),
        spec.tids.len(),
        spec.comm.len(),
        spec.exclude_comm.len(),
        spec.events.len(),
    ];
    if n_named.iter().any(|n_named| *n_named > MAX_NAMED) {
        return Err(format!("a session names at most {MAX_NAMED} processes, names or events"));
    }
    let names =
        |names: &[String]| names.iter().map(|name| value::comm(name)).collect::<Result<_, _>>();
    let comms = CommFilter { include: names(&spec.comm)?, exclude: names(&spec.exclude_comm)? };
    let max_overhead = spec.max_overhead.as_deref().map(value::share).transpose()?;
    let history_bytes = spec.history.as_deref().map(value::size_or_none).transpose()?;
    session::check_events(&spec.events).map_err(|error| error.to_string())?;
    if spec.max_objects == Some(0) {
        return Err("max_objects is at least 1, which is <Total>".into());
    }
    Ok(LiveOptions {
        target: target(spec)?,
        comms,
        events: distinct(&spec.events),
        sampling: sampling(spec)?,
        measure: measured(spec)?,
        keeps_counts: max_overhead.is_none(),
        max_overhead: max_overhead.map_or(Some(DEFAULT_MAX_OVERHEAD), |share| share.0),
        ring_pages: spec.ring_pages.map(|n| value::pages(&n.to_string())).transpose()?,
        windows: spec.windows_s.unwrap_or_default(),
        history_bytes: history_bytes.unwrap_or(DAEMON_HISTORY_BYTES),
        has_lines: false,
        command_output: CommandOutput::Discard,
        is_one_of_many: true,
        viewer: None,
    })
}

/// The measurement that is asked for.
fn measured(spec: &SessionSpec) -> Result<Option<MeasureRequest>, String> {
    let Some(measure) = spec.measure else { return Ok(None) };
    if !spec.events.is_empty() || spec.frequency_hz.is_some() {
        return Err("measure says which events are sampled, and each how many: not with events or frequency_hz".into());
    }
    Ok(Some(MeasureRequest { rate: spec.period, ..MeasureRequest::new(measure) }))
}

/// Each event once: every one takes memory of the kernel, for each thread that the target will have.
fn distinct(events: &[String]) -> Vec<String> {
    let mut seen = HashSet::new();
    events.iter().filter(|event| seen.insert(*event)).cloned().collect()
}

/// The other way: the request of a client's command line.
///
/// # Errors
/// The daemon cannot be asked for it.
pub(crate) fn of_options(options: &LiveOptions) -> Result<SessionSpec, String> {
    let mut spec = SessionSpec::default();
    match &options.target {
        TargetSpec::Pids(pids) => spec.pids.clone_from(pids),
        TargetSpec::Tids(tids) => spec.tids.clone_from(tids),
        TargetSpec::Unit(name) => spec.unit = Some(name.clone()),
        TargetSpec::Cgroup(path) => {
            let path = path.to_str().ok_or("the path of the control group is not UTF-8")?;
            spec.cgroup = Some(path.to_owned());
        }
        TargetSpec::All => spec.all = options.comms.include.is_empty(),
        TargetSpec::Command(_) => {
            return Err("the daemon attaches to what runs; it starts no commands".into());
        }
    }
    let text = |names: &[Box<[u8]>]| -> Result<Vec<String>, String> {
        let names = names.iter().map(|name| String::from_utf8(name.to_vec()));
        let names: Result<_, _> = names.collect();
        names.map_err(|_| "a process name is not UTF-8 in its first 15 bytes".to_owned())
    };
    spec.comm = text(&options.comms.include)?;
    spec.exclude_comm = text(&options.comms.exclude)?;
    spec.events.clone_from(&options.events);
    spec.measure = options.measure.as_ref().map(|request| request.measure);
    match options.sampling {
        Some(Sampling::Period(period)) => spec.period = Some(period),
        Some(Sampling::FrequencyHz(hz)) => spec.frequency_hz = Some(hz),
        None => {}
    }
    // Only where it was given: every Nth event stays a sample otherwise.
    if !options.keeps_counts {
        let share = options.max_overhead.map(|share| format!("{}%", share * 100.0));
        spec.max_overhead = Some(share.unwrap_or_else(|| "off".to_owned()));
    }
    spec.ring_pages = options.ring_pages;
    let history = Some(options.history_bytes).filter(|bytes| *bytes != DAEMON_HISTORY_BYTES);
    spec.history = history.map(|bytes| bytes.to_string());
    spec.windows_s = Some(options.windows).filter(|windows| *windows != WindowLengths::default());
    Ok(spec)
}

/// A number would be taken for that of another session, and a slash for the end of a path's part.
pub(crate) fn check_name(name: Option<&str>) -> Result<(), String> {
    const MAX_NAME_BYTES: usize = SessionSpec::MAX_NAME_BYTES;
    let Some(name) = name else { return Ok(()) };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._@:-".contains(c);
    let is_number = name.chars().all(|c| c.is_ascii_digit());
    if is_number || name.len() > MAX_NAME_BYTES || !name.chars().all(is_plain) {
        return Err(format!(
            "a session's name has up to {MAX_NAME_BYTES} letters, digits and . _ @ : -, and is no number"
        ));
    }
    Ok(())
}

fn target(spec: &SessionSpec) -> Result<TargetSpec, String> {
    let id = |ids: &[i32]| -> Result<Vec<i32>, String> {
        let mut ids: Vec<i32> = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        match ids.first() {
            Some(..=0) => Err("a process or thread has a number from 1 up".into()),
            _ => Ok(ids),
        }
    };
    let mut targets = Vec::new();
    if !spec.pids.is_empty() {
        targets.push(TargetSpec::Pids(id(&spec.pids)?));
    }
    if !spec.tids.is_empty() {
        targets.push(TargetSpec::Tids(id(&spec.tids)?));
    }
    targets.extend(spec.unit.clone().map(TargetSpec::Unit));
    targets.extend(spec.cgroup.clone().map(|path| TargetSpec::Cgroup(path.into())));
    if spec.all || (targets.is_empty() && !spec.comm.is_empty()) {
        targets.push(TargetSpec::All);
    }
    match (targets.pop(), targets.is_empty()) {
        (Some(target), true) => Ok(target),
        (None, _) => Err("no target: one of pids, tids, unit, cgroup, comm, all".into()),
        (Some(_), false) => {
            Err("a session has one target of pids, tids, unit, cgroup, all, which comm \
                                 and exclude_comm may narrow; or comm alone"
                .into())
        }
    }
}

fn sampling(spec: &SessionSpec) -> Result<Option<Sampling>, String> {
    match (spec.period, spec.frequency_hz) {
        (Some(0), _) | (_, Some(0)) => Err("a period or frequency is at least 1".into()),
        (Some(_), Some(_)) => Err("period and frequency_hz contradict each other".into()),
        (Some(period), None) => Ok(Some(Sampling::Period(period))),
        (None, Some(hz)) => Ok(Some(Sampling::FrequencyHz(hz))),
        (None, None) => Ok(None),
    }
}

/// Description of the target for a person, as long as nothing of it was found.
pub(super) fn describe(options: &LiveOptions) -> String {
    let numbers = |ids: &[i32]| ids.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
    let target = match &options.target {
        TargetSpec::Pids(pids) => Some(format!("process {}", numbers(pids))),
        TargetSpec::Tids(tids) => Some(format!("thread {}", numbers(tids))),
        TargetSpec::Unit(name) => Some(format!("unit {name}")),
        TargetSpec::Cgroup(path) => Some(format!("cgroup {}", path.display())),
        TargetSpec::All => None,
        TargetSpec::Command(_) => Some("a command".to_owned()),
    };
    options.comms.describe(target.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::measure::Measure;

    #[test]
    fn an_event_that_is_asked_for_many_times_is_one() {
        let ask = |events: &[&str]| {
            let events = events.iter().map(|event| (*event).to_owned()).collect();
            let spec = SessionSpec { pids: vec![1], events, ..SessionSpec::default() };
            options(&spec).unwrap().events
        };
        assert_eq!(ask(&["cpu-clock"; 300]), ["cpu-clock"]);
        assert_eq!(ask(&["page-faults", "cpu-clock", "page-faults"]), ["page-faults", "cpu-clock"]);
    }

    #[test]
    fn what_a_command_line_asks_for_comes_back() {
        let specs = [
            SessionSpec { pids: vec![7, 9], period: Some(3), ..SessionSpec::default() },
            SessionSpec { unit: Some("a".into()), frequency_hz: Some(9), ..SessionSpec::default() },
            SessionSpec { comm: vec!["redis".into()], ..SessionSpec::default() },
            SessionSpec { all: true, history: Some("4096".into()), ..SessionSpec::default() },
            SessionSpec { all: true, exclude_comm: vec!["x".into()], ..SessionSpec::default() },
            SessionSpec {
                cgroup: Some("/a".into()),
                ring_pages: Some(8),
                windows_s: vec![5, 300].try_into().ok(),
                ..SessionSpec::default()
            },
            SessionSpec {
                tids: vec![7],
                max_overhead: Some("off".into()),
                ..SessionSpec::default()
            },
            SessionSpec {
                pids: vec![7],
                measure: Some(Measure::Faults),
                period: Some(16),
                ..SessionSpec::default()
            },
            SessionSpec {
                all: true,
                max_overhead: Some("2%".into()),
                events: vec!["cpu-clock".into()],
                ..SessionSpec::default()
            },
        ];
        for spec in specs {
            assert_eq!(of_options(&options(&spec).unwrap()), Ok(spec));
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let all = || SessionSpec { all: true, ..SessionSpec::default() };
        let check = |spec: SessionSpec, says: &str| {
            let error = options(&spec).unwrap_err();
            assert!(error.contains(says), "{error}");
        };
        check(SessionSpec::default(), "no target");
        let (measure, events) = (Some(Measure::Time), vec!["cpu-clock".to_owned()]);
        check(SessionSpec { measure, events, ..all() }, "measure says");
        check(SessionSpec { pids: vec![0], ..SessionSpec::default() }, "from 1 up");
        check(SessionSpec { unit: Some("a".into()), ..all() }, "one target");
        check(SessionSpec { period: Some(1), frequency_hz: Some(1), ..all() }, "contradict");
        check(SessionSpec { period: Some(0), ..all() }, "at least 1");
        check(SessionSpec { name: Some("12".into()), ..all() }, "no number");
        check(SessionSpec { name: Some("a/b".into()), ..all() }, "letters");
        check(SessionSpec { ring_pages: Some(3), ..all() }, "power of two");
        check(SessionSpec { max_overhead: Some("200%".into()), ..all() }, "share");
        check(SessionSpec { max_objects: Some(0), ..all() }, "max_objects");
        check(SessionSpec { history: Some("much".into()), ..all() }, "a size");
        check(SessionSpec { pids: vec![1; 2000], ..SessionSpec::default() }, "at most");
    }

    #[test]
    fn a_description_names_the_filter_before_anything_is_attached() {
        let check = |spec: SessionSpec, expect: &str| {
            let options = options(&spec).unwrap();
            assert_eq!(describe(&options), expect);
        };
        let comm = vec!["redis-server".to_owned()];
        let unit = Some("y.service".to_owned());
        check(
            SessionSpec { comm: comm.clone(), ..SessionSpec::default() },
            "processes called redis-server",
        );
        check(
            SessionSpec { comm: comm.clone(), unit, ..SessionSpec::default() },
            "unit y.service, processes called redis-server",
        );
        check(
            SessionSpec { exclude_comm: comm, all: true, ..SessionSpec::default() },
            "the whole system without those called redis-server",
        );
    }
}
