//! Measurements: which event is sampled for one, and which are counted beside it, on each kind of processor.

mod amd;
mod intel;
mod listed;

use crate::error::Error;
use crate::event::attr::Source;
use crate::event::{CountedGroup, CountedSelector, DEFAULT_CLOCK_HZ, EventSelector};
use crate::system::machine::{Machine, Vendor};
use crate::system::tracefs::Tracefs;
use dataspace_proto::event::Sampling;
use dataspace_proto::measure::{Measure, MeasureRequest, PrivilegeLevels};
use listed::{Listed, Sampled};
use rustix::io::Errno;
use std::path::Path;

/// Fields of PMUs that are the lowest latency of what is sampled.
const LATENCY_FIELDS: [&str; 2] = ["ldlat", "fetchlat"];

/// A measurement on a machine.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The events to sample, in perf's spelling.
    pub sampled: Vec<String>,
    /// Their rate.
    pub sampling: Sampling,
    /// The events to count.
    pub counted: Vec<CountedGroup>,
    /// Sentences for a person.
    pub notes: Vec<String>,
}

impl Measurement {
    /// The measurement that `request` means on `machine`.
    ///
    /// # Errors
    /// [`Error::NoSuchMeasurement`] where the machine has not what it takes, with what comes nearest; those of an event that
    /// was named.
    pub fn plan(request: &MeasureRequest, machine: &Machine) -> Result<Self, Error> {
        let levels = request.levels;
        let Listed { sampled, groups, notes } = listed(request, machine)?;
        let mut measurement =
            Self { sampled: Vec::new(), sampling: Sampling::Period(1), counted: Vec::new(), notes };
        measurement.sample(request, sampled, machine)?;
        for group in groups {
            let selector = |(name, event): &(&str, String)| {
                let text = with_levels(event, levels);
                Ok(CountedSelector {
                    name: (*name).to_owned(),
                    selector: EventSelector::parse(&text)?,
                })
            };
            measurement.counted.push(group.iter().map(selector).collect::<Result<_, Error>>()?);
        }
        Ok(measurement)
    }

    /// Samples what the machine has for it, or the event that was named in its place.
    fn sample(
        &mut self,
        request: &MeasureRequest,
        sampled: Sampled,
        machine: &Machine,
    ) -> Result<(), Error> {
        let events = match (&request.event, request.threshold) {
            (Some(event), Some(cycles)) => vec![bounded(event, cycles, request, machine)?],
            (Some(event), None) => vec![event.clone()],
            (None, _) => sampled.events,
        };
        // What cannot be read is told before anything is opened.
        for event in &events {
            EventSelector::parse(event)?;
        }
        self.sampled = events.iter().map(|event| with_levels(event, request.levels)).collect();
        self.sampling = Sampling::Period(request.rate.unwrap_or(sampled.period));
        Ok(())
    }
}

fn listed(request: &MeasureRequest, machine: &Machine) -> Result<Listed, Error> {
    let mut listed = match request.measure {
        Measure::Faults => faults(),
        Measure::Time => time(machine),
        hardware => of_hardware(request, machine, hardware)?,
    };
    if request.event.is_none() && request.threshold.is_some() && !listed.sampled.has_threshold {
        let name = request.measure.name();
        listed.notes.push(format!(
            "{name}: what is sampled here has no latency, and threshold means nothing"
        ));
    }
    Ok(listed)
}

/// Intel's loads by latency: event select and unit mask.
const LOAD_LATENCY: u64 = 0x1cd;

/// Tells whether the field of its PMU that is a latency bounds `event`: those bits of others mean something else.
fn has_latency(event: &str, machine: &Machine) -> Result<bool, Error> {
    let tracefs = Tracefs::new(Path::new("/"));
    let plans = EventSelector::parse(event)?.plan(Some(Sampling::Period(1)), machine, &tracefs)?;
    Ok(plans.iter().all(|plan| match plan.source.source {
        Source::Counter(counter) => plan.is_ibs || counter.config[0] & 0xffff == LOAD_LATENCY,
        _ => false,
    }))
}

/// `event` bounded by a latency: as its PMU spells that.
fn bounded(
    event: &str,
    cycles: u64,
    request: &MeasureRequest,
    machine: &Machine,
) -> Result<String, Error> {
    let parts = event.split_once('/').and_then(|(pmu, rest)| Some((pmu, rest.rsplit_once('/')?)));
    if let Some((pmu, (terms, modifiers))) = parts
        && machine.has_pmu(pmu)
        && has_latency(event, machine)?
    {
        let pmu = machine.pmu(pmu)?;
        let field = LATENCY_FIELDS.into_iter().find(|field| pmu.field(field).is_some());
        if let Some(field) = field {
            let comma = if terms.is_empty() { "" } else { "," };
            return Ok(format!("{}/{terms}{comma}{field}={cycles}/{modifiers}", pmu.name));
        }
    }
    Err(Error::NoSuchMeasurement {
        measure: request.measure.name(),
        why: format!("{event} cannot be bounded by a latency: threshold means nothing for it"),
        errno: Errno::NOENT,
        nearest: "without threshold it is sampled as it is",
    })
}

fn faults() -> Listed {
    let events = ["minor-faults", "major-faults"].map(str::to_owned).to_vec();
    let sampled = Sampled { events, period: 1, has_threshold: false };
    let group = ["page-faults", "minor-faults", "major-faults"];
    Listed {
        sampled,
        groups: vec![group.map(listed::same).to_vec(), vec![listed::same("task-clock")]],
        notes: Vec::new(),
    }
}

/// Time is counted by the kernel, and by the core where there are counters for it.
fn time(machine: &Machine) -> Listed {
    let events = vec!["cpu-clock".to_owned()];
    let sampled =
        Sampled { events, period: 1_000_000_000 / DEFAULT_CLOCK_HZ, has_threshold: false };
    let of_kernel = ["context-switches", "cpu-migrations"];
    let mut groups = vec![
        vec![listed::same("task-clock")],
        of_kernel.map(listed::same).to_vec(),
        vec![listed::same("page-faults")],
    ];
    if machine.core_pmus().is_ok_and(|pmus| !pmus.is_empty()) {
        groups.push(["cycles", "instructions"].map(listed::same).to_vec());
        groups.push(["branches", "branch-misses"].map(listed::same).to_vec());
    }
    Listed { sampled, groups, notes: Vec::new() }
}

fn of_hardware(
    request: &MeasureRequest,
    machine: &Machine,
    measure: Measure,
) -> Result<Listed, Error> {
    let none = |why: String| Error::NoSuchMeasurement {
        measure: measure.name(),
        why,
        errno: Errno::NOENT,
        nearest: nearest(measure),
    };
    let pmus = machine.core_pmus()?;
    let name = match machine.processor.name.as_str() {
        "" => "this processor",
        name => name,
    };
    if pmus.is_empty() {
        return Err(none(match machine.processor.is_virtual {
            true => "this virtual machine is given no PMU of the processor".to_owned(),
            false => format!("{name} has no PMU, or this kernel does not know it"),
        }));
    }
    let found = match machine.processor.vendor {
        Vendor::Intel => intel::listed(request, &pmus),
        Vendor::Amd => amd::listed(request, machine)?,
        Vendor::Arm | Vendor::Other => Err(format!("what {name} counts for it is not known here")),
    };
    found.map_err(none)
}

/// The measurement that tells the most of what another one would, on a machine without counters.
const fn nearest(measure: Measure) -> &'static str {
    match measure {
        Measure::Dtlb => {
            "dataspace measure faults tells first touches of pages; dataspace measure time where time goes"
        }
        _ => "dataspace measure time tells where time goes, and on which data",
    }
}

/// `event` with the levels that are measured, if it names none.
fn with_levels(event: &str, levels: PrivilegeLevels) -> String {
    let letter = match levels {
        PrivilegeLevels::All => return event.to_owned(),
        PrivilegeLevels::User => 'u',
        PrivilegeLevels::Kernel => 'k',
    };
    let modifiers = match (event.rsplit_once('/'), event.rsplit_once(':')) {
        (Some((_, modifiers)), _) => Some(modifiers.trim_start_matches(':')),
        (None, Some((_, modifiers))) => Some(modifiers),
        (None, None) => None,
    };
    match modifiers {
        Some(modifiers) if modifiers.contains(['u', 'k']) => event.to_owned(),
        Some(_) => format!("{event}{letter}"),
        None => format!("{event}:{letter}"),
    }
}

#[cfg(test)]
mod tests;
