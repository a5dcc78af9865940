//! The bytes of `perf_event_attr` for memory accesses, on every machine that is known.
//!
//! What is expected is put together from the offsets, bits and numbers of Linux
//! `include/uapi/linux/perf_event.h`, written out here, and from each machine's encodings as the
//! kernel names them; nothing of it comes from the structure that the attr is made with.
//!
//! Where this is not what `perf mem record` asks for, it is so on purpose:
//! - `ldlat` is what was asked for, not combined with the default of sysfs ([`Field::set`]);
//! - `mem-loads-aux` counts and is not sampled ([`attr::leader`]);
//! - a memory event is never imprecise, for it would tell neither address nor source
//!   (`CounterRequest::precision`), and begins at the precision that `caps/max_precise` names;
//! - registers and 256 bytes of stack come too, because the trigger is found with them, and time is
//!   CLOCK_MONOTONIC, as in all records;
//! - physical addresses and page sizes are asked for wherever they are to be had, not on request;
//! - hypervisors are left out on all PMUs that know them;
//! - there is no tracking in it: mappings have events and rings of their own.
//!
//! [`Field::set`]: crate::system::machine::Field::set

use super::*;
use crate::event::attr::{self, Binding, KernelFeatures};
use crate::sys::attr_bytes::as_bytes;
use crate::system::machine::fixture::Fixture;
use dataspace_proto::event::SkidModel;
use dataspace_proto::memory::Access;

/// `PERF_ATTR_SIZE_VER9`.
const SIZE: usize = 144;

/// `inherit`, `exclude_hv`, `freq`, `sample_id_all`, `use_clockid`: bits 1, 6, 10, 18, 25.
const USUAL: u64 = 1 << 1 | 1 << 6 | 1 << 10 | 1 << 18 | 1 << 25;
/// IBS takes no `exclude_hv`.
const IBS: u64 = USUAL & !(1 << 6);
/// `exclude_user` and `exclude_kernel`.
const NO_USER: u64 = 1 << 4;
const NO_KERNEL: u64 = 1 << 5;
/// `precise_ip` in bits 15 and 16.
const PRECISE: u64 = 3 << 15;

/// IP, TID, TIME, ADDR, CPU, PERIOD, REGS_USER, STACK_USER, IDENTIFIER, REGS_INTR.
const FIELDS: u64 =
    1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 7 | 1 << 8 | 1 << 12 | 1 << 13 | 1 << 16 | 1 << 18;
/// DATA_SRC, DATA_PAGE_SIZE, WEIGHT_STRUCT, and PHYS_ADDR for the privileged.
const ACCESS: u64 = 1 << 15 | 1 << 22 | 1 << 24;
const PHYSICAL: u64 = 1 << 19;

/// Fields in which one attr differs from another.
#[derive(Clone, Copy)]
struct Expected {
    kind: u32,
    config: [u64; 3],
    sample: u64,
    sample_type: u64,
    flags: u64,
}

impl Expected {
    /// A precise event of memory accesses at 4,000 samples a second.
    const fn memory(kind: u32, config: u64, config1: u64) -> Self {
        Self {
            kind,
            config: [config, config1, 0],
            sample: 4_000,
            sample_type: FIELDS | ACCESS | PHYSICAL,
            flags: USUAL | PRECISE,
        }
    }

    const fn ibs(config2: u64, flags: u64) -> Self {
        Self { config: [0, 0, config2], flags: IBS | flags, ..Self::memory(11, 0, 0) }
    }

    fn bytes(self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        let mut put = |offset: usize, value: &[u8]| {
            bytes[offset..offset + value.len()].copy_from_slice(value);
        };
        put(0, &self.kind.to_ne_bytes());
        put(4, &144u32.to_ne_bytes());
        put(8, &self.config[0].to_ne_bytes());
        put(16, &self.sample.to_ne_bytes());
        put(24, &self.sample_type.to_ne_bytes());
        // TOTAL_TIME_ENABLED, TOTAL_TIME_RUNNING, ID, LOST.
        put(32, &0x17u64.to_ne_bytes());
        put(40, &self.flags.to_ne_bytes());
        put(56, &self.config[1].to_ne_bytes());
        put(64, &self.config[2].to_ne_bytes());
        // sample_regs_user: ax to sp, ip, flags, r8 to r15.
        put(80, &0x00ff_03ffu64.to_ne_bytes());
        put(88, &256u32.to_ne_bytes());
        // clockid: CLOCK_MONOTONIC.
        put(92, &1i32.to_ne_bytes());
        put(96, &0x00ff_03ffu64.to_ne_bytes());
        bytes
    }
}

const BINDING: Binding = Binding { inherit: true, enable_on_exec: false, is_cpu_wide: false };
const FEATURES: KernelFeatures =
    KernelFeatures { lost: true, build_id: true, ksymbol: false, cgroup: false, namespaces: false };

fn planned(fixture: &Fixture, text: &str) -> Result<Vec<EventPlan>, Error> {
    let tracefs = Tracefs::new(fixture.root());
    EventSelector::parse(text)?.plan(None, &fixture.machine(), &tracefs)
}

fn plans(name: &str, text: &str) -> Vec<EventPlan> {
    planned(&Fixture::new(name), text).unwrap_or_else(|error| panic!("{name} {text}: {error}"))
}

fn bytes(plan: &EventPlan) -> [u8; SIZE] {
    let attr = attr::sampled(&plan.source, BINDING, FEATURES);
    *as_bytes(&attr).first_chunk().unwrap()
}

#[track_caller]
fn check(machine: &str, text: &str, expected: &[Expected]) -> Vec<EventPlan> {
    let plans = plans(machine, text);
    assert_eq!(plans.len(), expected.len(), "{machine} {text}: {plans:#?}");
    for (plan, expected) in plans.iter().zip(expected) {
        let (is, should) = (bytes(plan), expected.bytes());
        let differs = (0..SIZE).step_by(8).filter(|&at| is[at..at + 8] != should[at..at + 8]);
        let words: Vec<_> =
            differs.map(|at| (at, hex(&is[at..at + 8]), hex(&should[at..at + 8]))).collect();
        assert!(words.is_empty(), "{machine} {}: offset, is, should: {words:x?}", plan.event.name);
    }
    plans
}

fn hex(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().unwrap())
}

/// Loads, stores and both: encoded as section 19.3 of the SDM and `intel_pmu_init()` have it.
#[test]
fn intel_by_generation() {
    let event = Expected::memory;
    for (machine, loads, stores) in [
        ("ivy_bridge", event(4, 0x1cd, 30), event(4, 0x2cd, 0)),
        ("skylake", event(4, 0x1cd, 30), event(4, 0x82d0, 0)),
        ("ice_lake", event(4, 0x1cd, 30), event(4, 0x82d0, 0)),
        ("sapphire_rapids", event(4, 0x1cd, 30), event(4, 0x2cd, 0)),
        ("granite_rapids", event(4, 0x1cd, 30), event(4, 0x2cd, 0)),
    ] {
        check(machine, "loads", &[loads]);
        check(machine, "stores", &[stores]);
        let both = check(machine, "mem", &[loads, stores]);
        assert!(both.iter().all(|plan| plan.cpus.is_none() && !plan.drops_non_memory));
        assert!(both.iter().all(|plan| plan.event.kind == EventKind::Memory));
        assert_eq!(both[0].event.name, "cpu/mem-loads,ldlat=30/P");
        assert_eq!(both[1].event.name, "cpu/mem-stores/P");
    }
}

#[test]
fn each_kind_of_core_has_events_of_its_own() {
    let event = Expected::memory;
    for (machine, core_cpus, atom_cpus) in
        [("alder_lake", 0..16, 16..24), ("lunar_lake", 0..4, 4..8)]
    {
        let loads = [event(4, 0x1cd, 30), event(10, 0x5d0, 30)];
        let stores = [event(4, 0x2cd, 0), event(10, 0x6d0, 0)];
        check(machine, "loads", &loads);
        check(machine, "stores", &stores);
        let both = check(machine, "mem", &[loads[0], stores[0], loads[1], stores[1]]);
        let cpus: Vec<_> = both.iter().map(|plan| plan.cpus.clone().unwrap()).collect();
        assert_eq!(cpus[0], core_cpus.collect::<Vec<_>>());
        assert_eq!(cpus[3], atom_cpus.collect::<Vec<_>>());
        assert_eq!(both[2].event.name, "cpu_atom/mem-loads,ldlat=30/P");
    }
}

/// IBS: a period in cycles, both kinds of access in one event, all levels unless filtered.
#[test]
fn amd_samples_operations() {
    for machine in ["zen2", "zen3", "zen4", "zen5"] {
        for text in ["mem", "loads", "stores", "ibs_op//"] {
            let plans = check(machine, text, &[Expected::ibs(0, 0)]);
            assert!(plans[0].drops_non_memory && !plans[0].drops_kernel);
            assert_eq!(plans[0].event.skid, SkidModel::Exact);
            assert_eq!(plans[0].event.kind, EventKind::Memory);
            assert_eq!(plans[0].warnings.len(), usize::from(["loads", "stores"].contains(&text)));
            let only = match text {
                "loads" => Some(Access::Load),
                "stores" => Some(Access::Store),
                _ => None,
            };
            assert_eq!(plans[0].only, only, "the other kind is dropped: {text}");
            // What the governor sets, as the hardware has it.
            let rounded = |period| plans[0].rounded(Sampling::Period(period));
            assert_eq!(rounded(100_007), Sampling::Period(100_000));
            assert_eq!(rounded(7), Sampling::Period(0x90));
        }
    }
}

/// `perf_ibs_init()`: exclude bits are EINVAL without `swfilt`.
#[test]
fn ibs_leaves_levels_out_only_where_the_kernel_filters() {
    for (machine, level, flags, is_filtered) in [
        ("zen3", "u", NO_KERNEL, false),
        ("zen3", "k", NO_USER, false),
        ("zen4", "u", NO_KERNEL, true),
        ("zen5", "k", NO_USER, true),
    ] {
        let expected = if is_filtered { Expected::ibs(1, flags) } else { Expected::ibs(0, 0) };
        let plans = check(machine, &format!("mem:{level}"), &[expected]);
        assert_eq!(plans[0].event.includes_kernel, level == "k");
        assert_eq!(plans[0].drops_kernel, !is_filtered && level == "u");
        assert_eq!(plans[0].drops_user, !is_filtered && level == "k");
    }
}

#[test]
fn ibs_takes_terms_where_its_formats_have_them() {
    let ibs = |config, config1| Expected { config: [config, config1, 0], ..Expected::ibs(0, 0) };
    check("zen5", "ibs_op/ldlat=128/", &[ibs(0, 128)]);
    check("zen4", "ibs_op/l3missonly=1/", &[ibs(1 << 16, 0)]);
    check("zen3", "ibs_op/cnt_ctl=1/", &[ibs(1 << 19, 0)]);
    // Periods are what the hardware makes of them: no low bits, and not below 0x90.
    let usual = Expected::ibs(0, 0);
    let fixed = Expected {
        sample_type: usual.sample_type & !(1 << 8),
        flags: usual.flags & !(1 << 10),
        ..usual
    };
    check("zen3", "ibs_op/period=100007/", &[Expected { sample: 100_000, ..fixed }]);
    check("zen3", "ibs_op/period=5/", &[Expected { sample: 0x90, ..fixed }]);
    let refused = |machine, text: &str| planned(&Fixture::new(machine), text).unwrap_err();
    assert!(refused("zen3", "ibs_op/ldlat=128/").to_string().contains("no term ldlat"));
    assert!(refused("zen3", "ibs_op/l3missonly=1/").to_string().contains("no term l3missonly"));
    assert!(refused("zen5", "ibs_op/ldlat=30/").to_string().contains("128 to 2048"));
}

/// `require_mem_loads_aux_event()`: Sapphire Rapids and Alder Lake's big cores. It only counts:
/// perf samples it as well, for nothing.
#[test]
fn loads_are_led_by_an_auxiliary_event_where_sysfs_names_one() {
    let leader = |machine, text: &str| {
        let plan = plans(machine, text).remove(0);
        attr::leader(&plan.source, BINDING, FEATURES)
            .map(|attr| *as_bytes(&attr).first_chunk::<SIZE>().unwrap())
    };
    let expected = Expected {
        sample: 0,
        // TID, TIME, CPU, IDENTIFIER, as every record has.
        sample_type: 1 << 1 | 1 << 2 | 1 << 7 | 1 << 16,
        flags: USUAL & !(1 << 10),
        ..Expected::memory(4, 0x8203, 0)
    };
    let mut bytes = expected.bytes();
    // Neither registers nor stack.
    bytes[80..92].fill(0);
    bytes[96..104].fill(0);
    for machine in ["sapphire_rapids", "alder_lake"] {
        assert_eq!(leader(machine, "loads"), Some(bytes), "{machine}");
        assert_eq!(leader(machine, "stores"), None, "{machine}");
    }
    let user = leader("sapphire_rapids", "loads:u").unwrap();
    assert_eq!(hex(&user[40..48]), USUAL & !(1 << 10) | NO_KERNEL);
    for machine in ["ivy_bridge", "skylake", "ice_lake", "granite_rapids", "lunar_lake"] {
        assert_eq!(leader(machine, "loads"), None, "{machine}");
    }
    let atom = &plans("alder_lake", "loads")[1];
    assert!(attr::leader(&atom.source, BINDING, FEATURES).is_none());
}

/// perf makes 31 of it: it combines the default of sysfs, 3, with what was typed, bit by bit.
#[test]
fn a_latency_that_was_asked_for_replaces_the_default() {
    let loads = |ldlat| [Expected::memory(4, 0x1cd, ldlat)];
    check("skylake", "cpu/mem-loads,ldlat=30/P", &loads(30));
    check("skylake", "cpu/ldlat=128,mem-loads/P", &loads(128));
    check("skylake", "cpu/mem-loads/P", &loads(3));
    // Without a modifier too: imprecise, they would tell neither address nor source.
    check("skylake", "mem-loads", &loads(3));
}

#[test]
fn events_are_spelled_as_for_perf() {
    let counter = |kind, config: u64, precise: u64| Expected {
        sample_type: FIELDS,
        flags: USUAL | precise << 15,
        ..Expected::memory(kind, config, 0)
    };
    let memory = |config, precise: u64| Expected {
        flags: USUAL | precise << 15,
        ..Expected::memory(4, config, 0)
    };
    let check = |text: &str, expected| check("skylake", text, &[expected]);
    check("cpu/event=0xd1,umask=0x20/pp", memory(0x20d1, 2));
    check("cpu/event=0xd1,umask=0x20/:pp", memory(0x20d1, 2));
    check("r20d1:ppp", memory(0x20d1, 3));
    check("r20d1", counter(4, 0x20d1, 0));
    check("r1cd:p", memory(0x1cd, 1));
    check("cpu/r1cd/p", memory(0x1cd, 1));
    check("cpu/config=0x3c,config1=7/", Expected { config: [0x3c, 7, 0], ..counter(4, 0x3c, 0) });
    check("cpu/event=0x3c,cmask=1,inv/", counter(4, 0x0180_003c, 0));
    check("cpu/event=0x3c,in_tx=1/", counter(4, 0x1_0000_003c, 0));
    check("cpu/cycles-ct/", counter(4, 0x3_0000_003c, 0));
    check("cycles", counter(0, 0, 0));
    check("cycles:P", counter(0, 0, 3));
    check("instructions:ppp", counter(0, 1, 3));
    check("cache-misses", counter(0, 3, 0));
    check("branch-misses", counter(0, 5, 0));
    check("L1-dcache-load-misses", counter(3, 0x1_0000, 0));
    check("LLC-stores", counter(3, 0x102, 0));
    check("dTLB-load-misses", counter(3, 0x1_0003, 0));
    check("node-prefetch-misses", counter(3, 0x1_0206, 0));
    check("branch-loads", counter(3, 0x5, 0));
    check("cpu-cycles", counter(0, 0, 0));
    check("cpu/cpu-cycles/", counter(4, 0x3c, 0));
    let user = Expected { flags: USUAL | NO_KERNEL, ..counter(0, 0, 0) };
    check("cycles:u", user);
    let hypervisor = Expected { flags: (USUAL | NO_KERNEL) & !(1 << 6), ..user };
    check("cycles:uh", hypervisor);
    let period = Expected {
        sample: 7,
        sample_type: FIELDS & !(1 << 8),
        flags: USUAL & !(1 << 10),
        ..counter(4, 0x3c, 0)
    };
    let named = check("cpu/event=0x3c,period=7,name=ticks/", period);
    assert_eq!(named[0].event.name, "ticks");
    check("cpu/event=0x3c,freq=99/", Expected { sample: 99, ..counter(4, 0x3c, 0) });
}

/// The number of the PMU stands in the upper half of the config (`PERF_PMU_TYPE_SHIFT`).
#[test]
fn a_generic_event_is_one_for_each_kind_of_core() {
    let counter = |kind, config| Expected {
        sample_type: FIELDS,
        flags: USUAL,
        ..Expected::memory(kind, config, 0)
    };
    let cycles = [counter(0, 4 << 32), counter(0, 10 << 32)];
    let plans = check("alder_lake", "cycles", &cycles);
    assert_eq!(plans[0].event.name, "cpu_core/cycles/");
    assert_eq!(plans[1].cpus, Some((16..24).collect()));
    check("alder_lake", "cpu_atom/cycles/", &cycles[1..]);
    check("alder_lake", "LLC-loads", &[counter(3, 4 << 32 | 2), counter(3, 10 << 32 | 2)]);
    check("alder_lake", "r3c", &[counter(4, 0x3c), counter(10, 0x3c)]);
    let loads = |kind, config| Expected::memory(kind, config, 3);
    check("alder_lake", "mem-loads:P", &[loads(4, 0x1cd), loads(10, 0x5d0)]);
    check("alder_lake", "cpu/mem-loads/P", &[loads(4, 0x1cd), loads(10, 0x5d0)]);
    // Bits 8 to 15 and 40 to 47 of Lunar Lake's umask.
    check("lunar_lake", "cpu_core/event=0x3c,umask=0x1ff/", &[counter(4, 0x100_0000_ff3c)]);
    // AMD's event select has bits 32 to 35.
    let amd = Expected { flags: USUAL, ..counter(4, 0x1_0000_2020) };
    check("zen4", "cpu/event=0x120,umask=0x20/", &[amd]);
}

/// `PERF_SAMPLE_PHYS_ADDR` needs what the kernel's samples need (`perf_event_open()`).
#[test]
fn the_unprivileged_ask_for_no_physical_address() {
    let fixture = Fixture::new("skylake");
    fixture.set("proc/self/status", "CapEff:\t0000000000000000");
    let plan = planned(&fixture, "loads").unwrap().remove(0);
    assert_eq!(hex(&bytes(&plan)[24..32]), FIELDS | ACCESS);
    fixture.set("proc/sys/kernel/perf_event_paranoid", "1");
    let plan = planned(&fixture, "loads").unwrap().remove(0);
    assert_eq!(hex(&bytes(&plan)[24..32]), FIELDS | ACCESS | PHYSICAL);
}

/// As perf, which lowers its default and refuses what was asked for.
#[test]
fn the_default_frequency_is_within_the_kernels_limit() {
    let fixture = Fixture::new("skylake");
    fixture.set("proc/sys/kernel/perf_event_max_sample_rate", "1000");
    let plan = planned(&fixture, "loads").unwrap().remove(0);
    assert_eq!(plan.event.sampling, Sampling::FrequencyHz(1_000));
}

#[test]
fn a_machine_without_a_memory_pmu_samples_the_clock_and_says_so() {
    let plans = plans("virtual", "mem:u");
    assert_eq!((plans.len(), plans[0].event.name.as_str()), (1, "cpu-clock:u"));
    assert!(!plans[0].event.includes_kernel);
    let said = plans[0].warnings.join("\n");
    assert!(said.contains("this virtual machine is given no PMU"), "{said}");
    // Nehalem had loads only.
    let fixture = Fixture::new("ivy_bridge");
    let events = "sys/bus/event_source/devices/cpu/events";
    std::fs::remove_file(fixture.root().join(events).join("mem-stores")).unwrap();
    let stores = planned(&fixture, "stores").unwrap();
    assert_eq!(stores[0].event.kind, EventKind::Clock);
    let both = planned(&fixture, "mem").unwrap();
    assert_eq!((both.len(), both[0].warnings.len()), (1, 1));
}

#[test]
fn traces_and_shared_counters_are_recognised_and_refused() {
    let refused = |machine, text: &str| {
        let error = planned(&Fixture::new(machine), text).unwrap_err();
        assert_eq!(error.kind(), crate::error::ErrorKind::MachineCannot, "{error}");
        error.to_string()
    };
    for text in ["mem", "loads", "arm_spe_0/load_filter=1/"] {
        let said = refused("aarch64_spe", text);
        assert!(said.contains("arm_spe_0") && said.contains("not decoded"), "{said}");
    }
    assert!(refused("skylake", "cas_count_read").contains("takes no samples"));
    assert!(refused("skylake", "uncore_imc_0/event=4/").contains("takes no samples"));
    assert!(refused("skylake", "ibs_op//").contains("no PMU ibs_op; it has breakpoint, cpu,"));
    assert!(refused("virtual", "cpu/event=1/").contains("no PMU cpu"));
}

#[test]
fn what_the_machine_has_not_got_is_said() {
    let error = planned(&Fixture::new("zen4"), "mem-loads").unwrap_err();
    assert_eq!(error.kind(), crate::error::ErrorKind::MachineCannot);
    assert!(error.to_string().contains("this processor's PMU (cpu) has no such event"), "{error}");
    let error = |text: &str| planned(&Fixture::new("skylake"), text).unwrap_err().to_string();
    assert!(error("mem-load").contains("there is no event mem-load: known are mem, loads,"));
    assert_eq!(error("page-fault"), "there is no event page-fault; did you mean page-faults?");
    assert_eq!(error("cpuclock"), "there is no event cpuclock; did you mean cpu-clock?");
    assert!(error("cpu/evnt=1/").contains("no term evnt: known are any, cmask, edge, event"));
    assert!(error("cpu/umask=0x100/").contains("umask=0x100 is more than the 0xff"));
    let fixture = Fixture::new("skylake");
    fixture.set("sys/bus/event_source/devices/cpu/events/odd", "event=?");
    let odd = |text: &str| planned(&fixture, text);
    assert!(odd("cpu/odd/").unwrap_err().to_string().contains("needs event=NUMBER"));
    assert!(odd("cpu/odd,event=3/").is_ok());
    fixture.set("sys/bus/event_source/devices/cpu/events/odd", "bogus=1");
    let said = odd("cpu/odd/").unwrap_err().to_string();
    assert!(said.contains("cpu/events/odd makes no sense"), "{said}");
}

#[test]
fn the_best_event_is_the_memory_pmus_where_it_opens() {
    let best = |machine, opens: bool| {
        let fixture = Fixture::new(machine);
        let (machine, tracefs) = (fixture.machine(), Tracefs::new(fixture.root()));
        let opened = |_: &mut EventPlan| if opens { Ok(()) } else { Err(Error::ZeroSampling) };
        super::best(None, &machine, &tracefs, opened).unwrap()
    };
    let names = |plans: &[EventPlan]| -> Vec<String> {
        plans.iter().map(|plan| plan.event.name.clone()).collect()
    };
    let intel = best("skylake", true);
    assert_eq!(names(&intel), ["cpu/mem-loads,ldlat=30/P", "cpu/mem-stores/P"]);
    assert!(intel.iter().all(|plan| plan.warnings.is_empty()));
    assert_eq!(names(&best("zen4", true)), ["ibs_op//"]);
    for (machine, opens) in [("skylake", false), ("virtual", true), ("aarch64_spe", true)] {
        let clock = best(machine, opens);
        assert_eq!(names(&clock), ["cpu-clock"], "{machine}");
        assert!(clock[0].warnings[0].contains("cpu-clock is sampled instead"), "{machine}");
    }
}

#[test]
fn whatever_sysfs_holds_and_people_type_no_plan_panics() {
    use proptest::test_runner::{Config, TestRunner};
    let fixture = Fixture::new("alder_lake");
    let devices = "sys/bus/event_source/devices/cpu_core";
    let texts = (
        "(config[0-9]?:)?[0-9,:-]{0,20}",
        "[a-z]{0,6}(=[0-9a-fx?]{0,20})?(,[a-z]{0,6}=[0-9]{0,3})?",
        "(cpu|cpu_core|mem-loads|mem)?/?[a-z0-9=,_-]{0,20}/?:?[ukhpPG]{0,4}",
    );
    let mut runner = TestRunner::new(Config { cases: 200, ..Config::default() });
    let result = runner.run(&texts, |(format, event, text)| {
        fixture.set(&format!("{devices}/format/event"), &format);
        fixture.set(&format!("{devices}/events/mem-loads"), &event);
        let _ = planned(&fixture, &text);
        let _ = planned(&fixture, "mem");
        Ok(())
    });
    result.unwrap();
}
