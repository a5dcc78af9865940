//! Name of a recorded event, what it counts and how far its samples skid.

use super::attr::Attr;
use crate::event::meaning;
use dataspace_proto::event::{Event, EventKind, Machine, Sampling, SkidModel};
use perf_event_open_sys::bindings as abi;
use std::fmt::Write;

/// Parts of names that count accesses to memory, in lower case.
const MEMORY_NAMES: [&str; 13] = [
    "mem-loads",
    "mem-stores",
    "mem-ldst",
    "ldlat",
    "load_latency",
    "ibs_op",
    "arm_spe",
    "all_loads",
    "all_stores",
    "mem_inst_retired",
    "mem_uops_retired",
    "mem_load_",
    "mem_trans_retired",
];

/// Parts of names that count fetches of code, in lower case.
const FETCH_NAMES: [&str; 2] = ["ibs_fetch", "frontend_retired"];

/// The event that has to be counted beside `mem-loads` on some machines, and samples nothing.
const AUXILIARY_NAME: &str = "mem-loads-aux";

/// Event select and unit mask of Intel's precise loads and stores, Nehalem to Panther Lake:
/// `mem-loads` (0x1cd, Nehalem 0x100b, Atom 0x5d0), `mem-stores` (0x2cd, Haswell to Ice Lake
/// 0x82d0, Atom 0x6d0), all loads (0x81d0). Source: `arch/x86/events/intel/core.c`.
const INTEL_MEMORY_CONFIGS: [u64; 7] = [0x1cd, 0x100b, 0x5d0, 0x2cd, 0x82d0, 0x6d0, 0x81d0];

/// Describes the event of `attr` on `machine`; `name` is what the recorder called it, `pmu` its PMU.
pub(super) fn describe(
    attr: &Attr,
    name: Option<&str>,
    pmu: Option<&str>,
    machine: Machine,
) -> Event {
    let name = name.map_or_else(|| derived_name(attr, pmu), ToOwned::to_owned);
    let kind = kind(attr, &name, pmu);
    Event {
        skid: skid(attr, kind, &name, pmu, machine),
        name,
        kind,
        sampling: match attr.sample_period {
            hz if attr.is_freq() => Sampling::FrequencyHz(hz),
            period => Sampling::Period(period),
        },
        includes_kernel: attr.includes_kernel(),
    }
}

/// The kind of event that `attr` counts, as far as attribution needs to know.
fn kind(attr: &Attr, name: &str, pmu: Option<&str>) -> EventKind {
    match attr.kind_of_type() {
        Some(kind) => kind,
        None if matches!(pmu, Some("kprobe" | "uprobe")) => EventKind::Tracepoint,
        None if counts_memory(attr, name, pmu) => EventKind::Memory,
        None if counts_fetches(attr, name, pmu) => EventKind::Fetch,
        None => EventKind::Other,
    }
}

/// Tells whether a hardware event counts accesses to memory. What its samples carry does not tell:
/// `perf record -d` asks for addresses whatever the event.
fn counts_memory(attr: &Attr, name: &str, pmu: Option<&str>) -> bool {
    if is_tagging_pmu(pmu) && pmu != Some(meaning::IBS_FETCH) {
        return true;
    }
    let name = name.to_ascii_lowercase();
    if name.contains(AUXILIARY_NAME) {
        return false;
    }
    let is_core = attr.kind == abi::PERF_TYPE_RAW || pmu.is_some_and(|pmu| pmu.starts_with("cpu"));
    let is_encoded =
        is_core && attr.precise_ip() > 0 && INTEL_MEMORY_CONFIGS.contains(&(attr.config & 0xffff));
    is_encoded || MEMORY_NAMES.iter().any(|part| name.contains(part))
}

/// Tells whether an event counts fetches of code.
fn counts_fetches(attr: &Attr, name: &str, pmu: Option<&str>) -> bool {
    let is_core = attr.kind == abi::PERF_TYPE_RAW || pmu.is_some_and(|pmu| pmu.starts_with("cpu"));
    let is_intel = is_core && attr.precise_ip() > 0 && meaning::is_fetch(attr.config, attr.config1);
    is_intel
        || pmu == Some(meaning::IBS_FETCH)
        || FETCH_NAMES.iter().any(|part| name.to_ascii_lowercase().contains(part))
}

/// AMD IBS and Arm SPE tag an operation, and report that operation's own address.
fn is_tagging_pmu(pmu: Option<&str>) -> bool {
    pmu.is_some_and(|pmu| pmu.starts_with("ibs_") || pmu.starts_with("arm_spe"))
}

fn skid(
    attr: &Attr,
    kind: EventKind,
    name: &str,
    pmu: Option<&str>,
    machine: Machine,
) -> SkidModel {
    match kind {
        EventKind::Memory | EventKind::Fetch | EventKind::Other
            if attr.kind != abi::PERF_TYPE_SOFTWARE =>
        {
            let tags = is_tagging_pmu(pmu) || name.starts_with("ibs_");
            // What the levels of precision mean was found out on x86 alone.
            let precise_ip = if machine == Machine::X86_64 { attr.precise_ip() } else { 0 };
            meaning::counter_skid(precise_ip, tags)
        }
        _ => meaning::kernel_skid(kind),
    }
}

/// A name made from the attributes, as `perf record -e` would take it.
fn derived_name(attr: &Attr, pmu: Option<&str>) -> String {
    match attr.kind {
        abi::PERF_TYPE_HARDWARE => generic_name(&HARDWARE_NAMES, attr.config, "hardware"),
        abi::PERF_TYPE_SOFTWARE => generic_name(&SOFTWARE_NAMES, attr.config, "software"),
        abi::PERF_TYPE_TRACEPOINT => format!("tracepoint:{}", attr.config),
        abi::PERF_TYPE_HW_CACHE => cache_name(attr.config),
        abi::PERF_TYPE_BREAKPOINT => breakpoint_name(attr),
        abi::PERF_TYPE_RAW => core_name(pmu.unwrap_or("cpu"), attr.config),
        kind => match pmu {
            Some(pmu) if pmu.starts_with("cpu") => core_name(pmu, attr.config),
            Some(pmu) => format!("{pmu}/config={:#x}/", attr.config),
            None => format!("pmu-{kind}/config={:#x}/", attr.config),
        },
    }
}

/// `enum perf_hw_id`, as `perf list` names them.
const HARDWARE_NAMES: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

/// `enum perf_sw_ids`, as `perf list` names them.
const SOFTWARE_NAMES: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

/// The upper half of the config of a hardware event is the PMU's number on hybrid machines.
fn generic_name(names: &[&str], config: u64, class: &str) -> String {
    let index = usize::try_from(config & 0xffff_ffff).unwrap_or(usize::MAX);
    names.get(index).map_or_else(|| format!("{class}:{config:#x}"), |&name| name.to_owned())
}

fn cache_name(config: u64) -> String {
    const CACHES: [&str; 7] = ["L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"];
    const OPERATIONS: [&str; 3] = ["load", "store", "prefetch"];
    let part = |shift: u32| (config >> shift & 0xff) as usize;
    let (Some(cache), Some(operation)) = (CACHES.get(part(0)), OPERATIONS.get(part(8))) else {
        return format!("cache:{config:#x}");
    };
    match part(16) {
        0 => format!("{cache}-{operation}s"),
        _ => format!("{cache}-{operation}-misses"),
    }
}

/// `mem:ADDRESS/LENGTH:ACCESS`.
fn breakpoint_name(attr: &Attr) -> String {
    let mut name = format!("mem:{:#x}/{}:", attr.config1, attr.config2);
    let accesses =
        [(abi::HW_BREAKPOINT_R, 'r'), (abi::HW_BREAKPOINT_W, 'w'), (abi::HW_BREAKPOINT_X, 'x')];
    name.extend(
        accesses
            .iter()
            .filter(|(bit, _)| attr.breakpoint_type & bit != 0)
            .map(|(_, letter)| letter),
    );
    name
}

/// `cpu/event=0xcd,umask=0x1/`: Intel's and AMD's low byte, and the rest where there is any.
fn core_name(pmu: &str, config: u64) -> String {
    let mut name = format!("{pmu}/event={:#x},umask={:#x}", config & 0xff, config >> 8 & 0xff);
    if config >> 16 != 0 {
        // Writing to a string cannot fail.
        let _ = write!(name, ",config={config:#x}");
    }
    name.push('/');
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::decode::Endian;

    fn attr(kind: u32, config: u64, precise_ip: u64) -> Attr {
        let mut bytes = vec![0; 64];
        bytes[0..4].copy_from_slice(&kind.to_le_bytes());
        bytes[8..16].copy_from_slice(&config.to_le_bytes());
        bytes[40..48].copy_from_slice(&(precise_ip << 15).to_le_bytes());
        Attr::parse(&bytes, Endian::Little).unwrap().0
    }

    #[test]
    fn an_event_is_of_memory_by_what_it_counts() {
        let check = |attr: &Attr, name, pmu, kind, skid| {
            let event = describe(attr, name, pmu, Machine::X86_64);
            assert_eq!((event.kind, event.skid), (kind, skid), "{name:?} {pmu:?}");
        };
        let (raw, exact) = (abi::PERF_TYPE_RAW, SkidModel::Exact);
        let unknown = SkidModel::Unknown(8);
        check(&attr(raw, 0x1cd, 2), Some("cpu/mem-loads/pp"), None, EventKind::Memory, exact);
        check(&attr(raw, 0x82d0, 3), None, None, EventKind::Memory, exact);
        check(&attr(raw, 0x81d0, 1), None, None, EventKind::Memory, SkidModel::AfterOne);
        check(&attr(raw, 0x8203, 0), Some("mem-loads-aux"), None, EventKind::Other, unknown);
        check(&attr(raw, 0x1cd, 0), None, None, EventKind::Other, unknown);
        check(&attr(0, 0, 3), Some("cycles:P"), None, EventKind::Other, exact);
        check(&attr(11, 0, 0), Some("ibs_op//"), Some("ibs_op"), EventKind::Memory, exact);
        check(&attr(9, 0, 0), None, Some("arm_spe_0"), EventKind::Memory, exact);
        check(&attr(1, 0, 0), None, None, EventKind::Clock, SkidModel::AfterOne);
        check(&attr(1, 6, 0), None, None, EventKind::PageFault, exact);
        check(&attr(1, 3, 0), Some("all_loads"), None, EventKind::Other, unknown);
        check(&attr(2, 42, 0), None, None, EventKind::Tracepoint, exact);
        let elsewhere = describe(&attr(0, 0, 3), Some("cycles:P"), None, Machine::Other);
        assert_eq!(elsewhere.skid, unknown, "of other machines nothing is known");
    }

    #[test]
    fn a_name_is_made_from_the_attributes() {
        let check = |attr: &Attr, pmu, name| {
            assert_eq!(describe(attr, None, pmu, Machine::X86_64).name, name);
        };
        check(&attr(0, 4 << 32, 0), None, "cycles");
        check(&attr(1, 2, 0), None, "page-faults");
        check(&attr(2, 42, 0), None, "tracepoint:42");
        check(&attr(3, 0x1_0000, 0), None, "L1-dcache-load-misses");
        check(&attr(4, 0x1cd, 0), None, "cpu/event=0xcd,umask=0x1/");
        check(&attr(11, 0x10, 0), Some("ibs_op"), "ibs_op/config=0x10/");
        check(&attr(11, 0x10, 0), None, "pmu-11/config=0x10/");
        check(&attr(1, 99, 0), None, "software:0x63");
        let mut breakpoint = attr(abi::PERF_TYPE_BREAKPOINT, 0, 0);
        breakpoint.breakpoint_type = abi::HW_BREAKPOINT_RW;
        (breakpoint.config1, breakpoint.config2) = (0x601040, 8);
        check(&breakpoint, None, "mem:0x601040/8:rw");
    }
}
