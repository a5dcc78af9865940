//! Measurements on Intel's cores. Encodings: Linux `tools/perf/pmu-events/arch/x86/{skylake,sapphirerapids,alderlake}`, and
//! of Gracemont what intel/perfmon has besides (`alderlake_gracemont_core.json`, 1.29).

use super::listed::{Listed, Sampled};
use crate::system::machine::Pmu;
use dataspace_proto::measure::{Measure, MeasureRequest};

/// The load latency, in core cycles, from which on a load is taken for a miss: a hit of the first level takes 5.
const MISS_CYCLES: u64 = 8;

/// The longest latency of a fetch that `frontend` can ask for: it has 12 bits for it.
const MAX_FETCH_CYCLES: u64 = 0xfff;

/// Events from one sample to the next: a prime, and so many misses that sampling them costs little.
const PERIOD: u64 = 10_007;

/// Kind of core, by what the kernel says that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Core {
    /// Skylake to Tiger Lake.
    Skylake,
    /// Golden Cove: Sapphire Rapids, Alder Lake's big cores.
    GoldenCove,
    /// Redwood Cove and later: Granite Rapids, Meteor Lake's big cores.
    RedwoodCove,
    /// Gracemont and later: Alder Lake's small cores.
    Gracemont,
    /// Older than these.
    Old,
}

impl Core {
    fn of(pmu: &Pmu) -> Self {
        let stores = pmu.event("mem-stores").unwrap_or_default();
        match pmu.field("frontend") {
            Some(_) if stores.contains("event=0xd0") => Self::Skylake,
            // `require_mem_loads_aux_event()` is true of these only.
            Some(_) if pmu.event("mem-loads-aux").is_some() => Self::GoldenCove,
            Some(_) => Self::RedwoodCove,
            None if stores.contains("umask=0x6") => Self::Gracemont,
            None => Self::Old,
        }
    }

    /// Unit mask of `FRONTEND_RETIRED`.
    const fn frontend_umask(self) -> u64 {
        if matches!(self, Self::RedwoodCove) { 3 } else { 1 }
    }

    /// Slots without an instruction, in bits 20 to 22 of `frontend`, that make a cycle one of a latency: all that a core has.
    const fn bubbles(self) -> u64 {
        if matches!(self, Self::Skylake) { 4 } else { 6 }
    }
}

/// The event with this code and unit mask, as terms.
fn raw(pmu: &Pmu, event: u64, umask: u64) -> String {
    format!("{}/event={event:#x},umask={umask:#x}/", pmu.name)
}

/// The same, counted in cycles in which it is at least one.
fn cycles_of(pmu: &Pmu, event: u64, umask: u64) -> String {
    format!("{}/event={event:#x},umask={umask:#x},cmask=0x1/", pmu.name)
}

/// The events of a measurement on these cores, or why it cannot be had.
pub(super) fn listed(request: &MeasureRequest, pmus: &[Pmu]) -> Result<Listed, String> {
    let mut listed = Listed::default();
    let mut lacking = Vec::new();
    for pmu in pmus {
        let core = Core::of(pmu);
        match sampled(request, pmu, core) {
            Ok(sampled) => {
                listed.sampled.events.extend(sampled.events);
                listed.sampled.period = sampled.period;
                listed.sampled.has_threshold |= sampled.has_threshold;
            }
            Err(why) => lacking.push(format!("{}: {why}", pmu.name)),
        }
        for (place, group) in groups(request.measure, pmu, core).into_iter().enumerate() {
            // The same group of each kind of core is one: a thread is on one of them at a time.
            match listed.groups.get_mut(place) {
                Some(known) => known.extend(group),
                None => listed.groups.push(group),
            }
        }
    }
    if listed.sampled.events.is_empty() && request.event.is_none() {
        return Err(lacking.join("; "));
    }
    if !listed.sampled.events.is_empty() {
        let note = |why| format!("not sampled on all cores: {why}");
        listed.notes.extend(lacking.into_iter().map(note));
    }
    listed.notes.extend(note_of(request).map(str::to_owned));
    Ok(listed)
}

/// Note for a person on what Intel's processors sample.
const fn note_of(request: &MeasureRequest) -> Option<&'static str> {
    match request.measure {
        Measure::Icache if request.threshold.is_some() => Some(
            "threshold: fetches that took so long are sampled, whatever they waited for; of single ones no latency is told",
        ),
        Measure::Icache => Some(
            "the latency of single fetches is not told: threshold=N samples those of at least N cycles",
        ),
        Measure::Itlb => Some(
            "who resolved a miss is not told: -s ,,EVENT with frontend=0x15 samples those that the second level missed too",
        ),
        Measure::Dtlb => Some(
            "misses of both levels are sampled, which the page walker resolves; those that the second level had are counted",
        ),
        _ => None,
    }
}

fn sampled(request: &MeasureRequest, pmu: &Pmu, core: Core) -> Result<Sampled, String> {
    let (name, period) = (&pmu.name, PERIOD);
    if pmu.cap("max_precise") == Some("0") {
        return Err("it takes no precise samples, as in most virtual machines".to_owned());
    }
    let one = |event: String| vec![event];
    Ok(match request.measure {
        Measure::Dcache => {
            if pmu.event("mem-loads").is_none() {
                return Err("it samples no loads by latency".to_owned());
            }
            let cycles = request.threshold.unwrap_or(MISS_CYCLES);
            let events = one(format!("{name}/mem-loads,ldlat={cycles}/P"));
            Sampled { events, period, has_threshold: true }
        }
        Measure::Dtlb => {
            if core == Core::Old {
                return Err("its precise TLB misses are not known here (before Skylake)".to_owned());
            }
            let misses = |umask| format!("{name}/event=0xd0,umask={umask:#x}/P");
            Sampled { events: vec![misses(0x11), misses(0x12)], period, has_threshold: false }
        }
        Measure::Icache => {
            // 0x12: a miss of the first-level instruction cache. 0x06: fetches by latency.
            if request.threshold.is_some_and(|cycles| cycles > MAX_FETCH_CYCLES) {
                return Err(format!("a threshold of fetches is {MAX_FETCH_CYCLES} cycles at most"));
            }
            let frontend = match request.threshold {
                Some(cycles) => core.bubbles() << 20 | cycles << 8 | 0x06,
                None => 0x12,
            };
            Sampled { events: one(fetches(pmu, core, frontend)?), period, has_threshold: true }
        }
        // 0x14: a miss of the first-level instruction TLB.
        Measure::Itlb => {
            Sampled { events: one(fetches(pmu, core, 0x14)?), period, has_threshold: false }
        }
        Measure::Faults | Measure::Time => Sampled::default(),
    })
}

/// `FRONTEND_RETIRED` for fetches that this value chooses.
fn fetches(pmu: &Pmu, core: Core, frontend: u64) -> Result<String, String> {
    if pmu.field("frontend").is_none() {
        return Err("it has no precise event of fetches".to_owned());
    }
    let umask = core.frontend_umask();
    Ok(format!("{}/event=0xc6,umask={umask:#x},frontend={frontend:#x}/P", pmu.name))
}

type Group = Vec<(&'static str, String)>;

fn groups(measure: Measure, pmu: &Pmu, core: Core) -> Vec<Group> {
    let name = &pmu.name;
    let of_core = vec![
        ("cycles", format!("{name}/event=0x3c,umask=0x0/")),
        ("instructions", format!("{name}/event=0xc0,umask=0x0/")),
    ];
    let own = match (measure, core) {
        (_, Core::Old) => vec![],
        (Measure::Dcache, _) => dcache(pmu, core),
        (Measure::Dtlb, _) => dtlb(pmu, core),
        (Measure::Icache, _) => icache(pmu, core),
        (Measure::Itlb, _) => itlb(pmu, core),
        (Measure::Faults | Measure::Time, _) => vec![],
    };
    own.into_iter().chain([of_core]).collect()
}

fn dcache(pmu: &Pmu, core: Core) -> Vec<Group> {
    let l3_misses = if core == Core::Gracemont { 0x80 } else { 0x20 };
    vec![
        vec![
            ("loads", raw(pmu, 0xd0, 0x81)),
            ("l1d-load-misses", raw(pmu, 0xd1, 0x08)),
            ("l2-load-misses", raw(pmu, 0xd1, 0x10)),
            ("l3-load-misses", raw(pmu, 0xd1, l3_misses)),
        ],
        vec![("stores", raw(pmu, 0xd0, 0x82))],
    ]
}

fn dtlb(pmu: &Pmu, core: Core) -> Vec<Group> {
    let accesses = vec![("loads", raw(pmu, 0xd0, 0x81)), ("stores", raw(pmu, 0xd0, 0x82))];
    let (of_loads, of_stores) = match core {
        Core::GoldenCove | Core::RedwoodCove => (0x12, 0x13),
        _ => (0x08, 0x49),
    };
    let mut walks = vec![
        ("dtlb-load-walks", raw(pmu, of_loads, 0x0e)),
        ("dtlb-store-walks", raw(pmu, of_stores, 0x0e)),
    ];
    if core != Core::Gracemont {
        walks.push(("dtlb-load-l2-hits", raw(pmu, of_loads, 0x20)));
        walks.push(("dtlb-load-walk-cycles", cycles_of(pmu, of_loads, 0x10)));
    }
    vec![walks, accesses]
}

fn icache(pmu: &Pmu, core: Core) -> Vec<Group> {
    vec![match core {
        Core::Gracemont => {
            vec![("l1i-accesses", raw(pmu, 0x80, 0x03)), ("l1i-misses", raw(pmu, 0x80, 0x02))]
        }
        Core::Skylake => vec![
            ("l1i-hits", raw(pmu, 0x83, 0x01)),
            ("l1i-misses", raw(pmu, 0x83, 0x02)),
            ("l2-code-reads", raw(pmu, 0x24, 0xe4)),
            ("l2-code-misses", raw(pmu, 0x24, 0x24)),
        ],
        _ => vec![
            ("l2-code-reads", raw(pmu, 0x24, 0xe4)),
            ("l2-code-misses", raw(pmu, 0x24, 0x24)),
            ("l1i-stall-cycles", raw(pmu, 0x80, 0x04)),
            ("l1i-tag-stall-cycles", raw(pmu, 0x83, 0x04)),
        ],
    }]
}

fn itlb(pmu: &Pmu, core: Core) -> Vec<Group> {
    vec![match core {
        Core::Gracemont => {
            vec![("itlb-walks-begun", raw(pmu, 0x85, 0x01)), ("itlb-walks", raw(pmu, 0x85, 0x0e))]
        }
        _ => {
            let code = if core == Core::Skylake { 0x85 } else { 0x11 };
            vec![
                ("itlb-l2-hits", raw(pmu, code, 0x20)),
                ("itlb-walks", raw(pmu, code, 0x0e)),
                ("itlb-walk-cycles", cycles_of(pmu, code, 0x10)),
            ]
        }
    }]
}
