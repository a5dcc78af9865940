//! Calibration: the skid of an event as it is on this machine, measured on loops whose slow access is
//! known.

pub(crate) mod document;
#[cfg(test)]
mod fixture;
mod slow_loop;
pub(crate) mod table;
mod tally;
mod verdict;
mod workload;

use crate::config::{CalibrationOptions, LiveOptions};
use crate::exit::{Failure, Kind};
use crate::interrupt::Interrupt;
use crate::session::raw::RawSession;
use anyhow::Context as _;
use dataspace_analyzer::session::report::event_line;
use dataspace_collector::target::TargetSpec;
use dataspace_collector::target::membership::CommFilter;
use dataspace_proto::accounting::{Collected, Lost};
use dataspace_proto::broker::CommandOutput;
use dataspace_proto::event::{Event, EventKind, Sampling};
use dataspace_proto::record::Record;
use dataspace_proto::snapshot::EventLine;
use dataspace_proto::window::WindowLengths;
use slow_loop::Access;
use std::time::{Duration, Instant};
use tally::{LoopTally, Tally};
use workload::Workload;

/// Samples a second where nobody asked for a rate: 20,000 in ten seconds, which cost the workload
/// 3 % of its time. A prime, as the default of sessions is.
const DEFAULT_HZ: u64 = 1999;

/// Result of a measurement.
#[derive(Clone, Debug)]
pub(crate) struct Calibration {
    /// The event, with the skid model that its samples are attributed with.
    event: EventLine,
    /// Time that the loops ran.
    elapsed_ns: u64,
    /// The kernel's own count, and what was lost.
    collected: Collected,
    /// Counts of the samples by place.
    tally: Tally,
    /// Warnings of the collector.
    warnings: Vec<String>,
}

impl Calibration {
    /// Difference of the counts: 0 when every sample is accounted for.
    fn imbalance(&self) -> i128 {
        let Tally { n_elsewhere, n_in_kernel, .. } = self.tally;
        let counted = self.tally.n_in_loops() + n_elsewhere + n_in_kernel + self.lost().total();
        i128::from(self.collected.kernel_samples) - i128::from(counted)
    }

    fn lost(&self) -> Lost {
        let Collected { ring_full, channel_full, undecodable, .. } = self.collected;
        Lost { ring_full, channel_full, undecodable }
    }
}

impl Tally {
    fn loops_of(&self, access: Access) -> impl Iterator<Item = &LoopTally> {
        self.loops.iter().filter(move |tally| tally.slow_loop.access == access)
    }
}

/// Measures until the time is over or somebody ends it. `progress` is told the event and the time
/// that has passed, many times a second.
///
/// # Errors
/// When nothing can be sampled, when this event's skid cannot be measured so, or when there is no
/// result.
pub(crate) fn run(
    options: &CalibrationOptions,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(&EventLine, Duration),
) -> anyhow::Result<Calibration> {
    let (mut workload, loops) = Workload::start()?;
    let session = open(workload.pid()?, options)?;
    let event = session.events().first().context("no event was opened")?;
    check_is_measurable(event)?;
    let event = event_line(event);
    let mut tally = Tally::new(loops);
    let mut warnings = Vec::new();
    workload.run()?;
    let began = Instant::now();
    let mut is_over = || {
        progress(&event, began.elapsed());
        began.elapsed() >= options.duration || interrupt.is_set()
    };
    let outcome = session.run(&mut is_over, &mut |record| match record {
        Record::Sample(sample) => tally.count(sample),
        Record::Warning(warning) => warnings.push(warning.to_string()),
        _ => {}
    })?;
    let elapsed = began.elapsed();
    if interrupt.is_set() && outcome.collected.kernel_samples == 0 {
        return Err(Failure::new(Kind::Interrupted, "interrupted before there was a sample").into());
    }
    if elapsed < options.duration && !interrupt.is_set() {
        warnings.push("the loops were ended early by somebody else".to_owned());
    }
    let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
    Ok(Calibration { event, elapsed_ns, collected: outcome.collected, tally, warnings })
}

/// Opens one event on process `pid`. Where the best of the machine is several, loads and stores or
/// one for each kind of core, the first is measured: their skids are not one.
fn open(pid: i32, options: &CalibrationOptions) -> anyhow::Result<RawSession> {
    let open = |events| {
        RawSession::open(&LiveOptions {
            target: TargetSpec::Pids(vec![pid]),
            comms: CommFilter::default(),
            // The period is to stay what is measured.
            max_overhead: None,
            keeps_counts: true,
            ring_pages: None,
            windows: WindowLengths::default(),
            history_bytes: 0,
            has_lines: false,
            events,
            sampling: Some(options.sampling.unwrap_or(Sampling::FrequencyHz(DEFAULT_HZ))),
            measure: None,
            command_output: CommandOutput::Discard,
            is_one_of_many: false,
            viewer: None,
        })
    };
    let session = open(options.event.iter().cloned().collect())?;
    match session.events() {
        [first, _, ..] => open(vec![first.name.clone()]),
        _ => Ok(session),
    }
}

/// The loops wait for memory: only events that come with time, or with accesses, meet that wait.
fn check_is_measurable(event: &Event) -> Result<(), Failure> {
    let why = match event.kind {
        EventKind::Clock | EventKind::Memory | EventKind::Fetch | EventKind::Other => {
            return Ok(());
        }
        EventKind::PageFault => "the kernel reports the very instruction that faulted",
        EventKind::Breakpoint { .. } => {
            "a debug register always reports the instruction behind the access, and the loops do \
             not touch that address"
        }
        EventKind::Tracepoint => "a tracepoint fires at one place in the kernel",
    };
    let what = format!("{} has no skid that the loops could measure: {why}", event.name);
    Err(Failure::new(Kind::Usage, what).with_remedy(
        "dataspace doctor --calibrate                  the best event of this machine\n\
         dataspace doctor --calibrate -e task-clock    another one that counts time",
    ))
}
