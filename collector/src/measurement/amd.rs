//! Measurements on AMD's Zen cores, by IBS. Encodings of what is counted: Linux
//! `tools/perf/pmu-events/arch/x86/{amdzen3,amdzen4,amdzen5}`; unit masks of fills are the or of their sources.

use super::listed::{Listed, Sampled};
use crate::error::Error;
use crate::system::machine::{Machine, Processor};
use dataspace_proto::measure::{Measure, MeasureRequest};

/// Operations from one sample of IBS to the next: what perf takes.
const OP_PERIOD: u64 = 0x4_0000;

/// Fetches from one sample to the next.
const FETCH_PERIOD: u64 = 0x2_0000;

/// Generation of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Zen {
    /// Before Zen 3, or not known.
    Other,
    Three,
    /// Zen 4 and 5: these events are encoded alike.
    Four,
}

impl Zen {
    /// By family and model, as `mapfile.csv` of perf has them.
    const fn of(processor: &Processor) -> Self {
        match (processor.family, processor.model) {
            (0x19, 0x00..=0x0f | 0x20..=0x5f) => Self::Three,
            (0x19..=0x1a, _) => Self::Four,
            _ => Self::Other,
        }
    }
}

/// The events of a measurement on this machine, or why it cannot be had.
///
/// # Errors
/// [`Error::Sysfs`] where what the machine says of itself makes no sense.
pub(super) fn listed(
    request: &MeasureRequest,
    machine: &Machine,
) -> Result<Result<Listed, String>, Error> {
    let pmu = if request.measure.is_of_code() { "ibs_fetch" } else { "ibs_op" };
    let what = machine.processor.name.as_str();
    if !machine.has_pmu(pmu) && request.event.is_none() {
        let why = match machine.processor.is_virtual {
            true => format!("this virtual machine is given no {pmu}"),
            false => format!("{what} has no {pmu}, or this kernel does not know it"),
        };
        return Ok(Err(why));
    }
    let has_latency = |field: &str| -> Result<bool, Error> {
        Ok(machine.has_pmu(pmu) && machine.pmu(pmu)?.field(field).is_some())
    };
    let field = if request.measure.is_of_code() { "fetchlat" } else { "ldlat" };
    let has_threshold = request.measure.has_latency() && has_latency(field)?;
    let latency = match request.threshold {
        Some(cycles) if has_threshold => format!(",{field}={cycles}"),
        _ => String::new(),
    };
    let (event, period) = match request.measure.is_of_code() {
        // Without it IBS would march in step with a loop.
        true => (format!("ibs_fetch/rand_en=1{latency}/"), FETCH_PERIOD),
        false => (format!("ibs_op/{}/", latency.trim_start_matches(',')), OP_PERIOD),
    };
    let core = Zen::of(&machine.processor);
    let mut notes = Vec::new();
    if core == Zen::Other {
        notes.push(
            "which events this processor counts for it is not known here (before Zen 3)".to_owned(),
        );
    }
    let of_core = ["cycles", "instructions"].map(super::listed::same).to_vec();
    let groups = counted(request.measure, core).into_iter().chain([of_core]).collect();
    let sampled = Sampled { events: vec![event], period, has_threshold };
    Ok(Ok(Listed { sampled, groups, notes }))
}

fn counted(measure: Measure, core: Zen) -> Vec<Vec<(&'static str, String)>> {
    let raw = |code: u64, umask: u64| format!("cpu/event={code:#x},umask={umask:#x}/");
    let is_zen3 = core == Zen::Three;
    let either = |zen3: u64, zen4: u64| if is_zen3 { zen3 } else { zen4 };
    match (measure, core) {
        (_, Zen::Other) | (Measure::Faults | Measure::Time, _) => vec![],
        (Measure::Dcache, _) => vec![vec![
            ("loads", raw(0x29, 0x01)),
            ("l1d-accesses", raw(0x29, 0x07)),
            ("l1d-misses", raw(0x43, either(0x5f, 0xff))),
            ("l2-misses", raw(0x43, either(0x5e, 0xde))),
            ("l3-misses", raw(0x43, either(0x5c, 0xdc))),
        ]],
        (Measure::Dtlb, _) => vec![vec![
            ("l1d-accesses", raw(0x29, 0x07)),
            ("dtlb-misses", raw(0x45, 0xff)),
            ("dtlb-walks", raw(0x45, 0xf0)),
        ]],
        (Measure::Icache, _) => vec![vec![
            ("l1i-accesses", raw(0x18e, 0x1f)),
            ("l1i-misses", raw(0x18e, 0x18)),
            ("l1i-fills-from-l2", raw(0x82, 0)),
            ("l1i-fills-from-beyond", raw(0x83, 0)),
        ]],
        (Measure::Itlb, _) => vec![vec![
            ("itlb-hits", raw(0x94, either(0xff, 0x07))),
            ("itlb-l2-hits", raw(0x84, 0)),
            ("itlb-walks", raw(0x85, either(0xff, 0x0f))),
        ]],
    }
}
