//! The bytes of `perf_event_attr` for each measurement on each kind of machine.
//!
//! Numbers are those of the vendors' event lists (`skylake`, `sapphirerapids`, `alderlake`, `amdzen3`, `amdzen4`, `amdzen5` in
//! Linux `tools/perf/pmu-events/arch/x86`), written out: event select and unit mask as one word, counter mask in bits 24 to
//! 31, bits 32 to 35 for AMD's codes above 255.

use super::*;
use crate::event::attr::{self, Binding, KernelFeatures};
use crate::event::counted::CountPlan;
use crate::sys::attr_bytes::as_bytes;
use crate::system::machine::fixture::Fixture;
use crate::system::tracefs::Tracefs;

fn plan(machine: &str, request: &MeasureRequest) -> Result<Measurement, Error> {
    Measurement::plan(request, &Fixture::new(machine).machine())
}

fn usual(machine: &str, measure: Measure) -> Measurement {
    plan(machine, &MeasureRequest::new(measure)).unwrap_or_else(|e| panic!("{machine}: {e}"))
}

/// Word `at` of the attr: type and size, config, period, `sample_type`, `read_format`, flags, …
fn word(attr: &attr::perf_event_attr, at: usize) -> u64 {
    u64::from_ne_bytes(as_bytes(attr)[at * 8..at * 8 + 8].try_into().unwrap())
}

const TYPE: usize = 0;
const CONFIG: usize = 1;
const PERIOD: usize = 2;
const SAMPLE_TYPE: usize = 3;
const FLAGS: usize = 5;
const CONFIG1: usize = 7;

/// Type, config, `config1` and `precise_ip` of what is sampled.
fn sampled(machine: &str, measurement: &Measurement) -> Vec<(u64, u64, u64, u64)> {
    let (machine, tracefs) = (Fixture::new(machine), Tracefs::new("/nonexistent".as_ref()));
    let mut attrs = Vec::new();
    for event in &measurement.sampled {
        let selector = EventSelector::parse(event).unwrap();
        let plans = selector.plan(Some(measurement.sampling), &machine.machine(), &tracefs);
        for plan in plans.unwrap_or_else(|error| panic!("{event}: {error}")) {
            let attr = attr::sampled(&plan.source, Binding::default(), KernelFeatures::default());
            let Sampling::Period(period) = plan.source.sampling else { panic!("a period") };
            assert_eq!(word(&attr, PERIOD), period);
            let precise_ip = word(&attr, FLAGS) >> 15 & 3;
            let kind = word(&attr, TYPE) & 0xffff_ffff;
            attrs.push((kind, word(&attr, CONFIG), word(&attr, CONFIG1), precise_ip));
        }
    }
    attrs
}

/// Name, type and config of what is counted, by group.
fn counted(machine: &str, measurement: &Measurement) -> Vec<Vec<(String, u64, u64)>> {
    let (machine, tracefs) = (Fixture::new(machine), Tracefs::new("/nonexistent".as_ref()));
    let binding = Binding { inherit: true, ..Binding::default() };
    let plans = CountPlan::all(&measurement.counted, &machine.machine(), &tracefs);
    let of = |plan: &CountPlan| {
        assert_eq!(plan.lacks, None);
        let of_event = |event: &crate::event::counted::CountedEvent| {
            let attr = attr::counted(&event.source, binding, KernelFeatures::default());
            // It counts, takes no samples, and is inherited.
            assert_eq!((word(&attr, PERIOD), word(&attr, SAMPLE_TYPE)), (0, 0));
            assert_eq!(word(&attr, FLAGS) >> 15 & 3, 0, "precise");
            assert_eq!(word(&attr, FLAGS) >> 1 & 1, 1, "inherited");
            (event.name.clone(), word(&attr, TYPE) & 0xffff_ffff, word(&attr, CONFIG))
        };
        plan.events.iter().map(of_event).collect()
    };
    plans.iter().map(of).collect()
}

#[track_caller]
fn check(
    machine: &str,
    measure: Measure,
    samples: &[(u64, u64, u64, u64)],
    counts: &[&[(&str, u64, u64)]],
) {
    let measurement = usual(machine, measure);
    assert_eq!(sampled(machine, &measurement), samples, "{machine} {measure:?}");
    let expected: Vec<Vec<_>> = counts
        .iter()
        .map(|group| {
            group.iter().map(|(name, kind, config)| ((*name).to_owned(), *kind, *config)).collect()
        })
        .collect();
    assert_eq!(counted(machine, &measurement), expected, "{machine} {measure:?}");
}

#[test]
fn skylake() {
    let core: &[_] = &[("cycles", 4, 0x3c), ("instructions", 4, 0xc0)];
    check(
        "skylake",
        Measure::Dcache,
        &[(4, 0x1cd, 8, 3)],
        &[
            &[
                ("loads", 4, 0x81d0),
                ("l1d-load-misses", 4, 0x8d1),
                ("l2-load-misses", 4, 0x10d1),
                ("l3-load-misses", 4, 0x20d1),
            ],
            &[("stores", 4, 0x82d0)],
            core,
        ],
    );
    check(
        "skylake",
        Measure::Dtlb,
        &[(4, 0x11d0, 0, 3), (4, 0x12d0, 0, 3)],
        &[
            &[
                ("dtlb-load-walks", 4, 0xe08),
                ("dtlb-store-walks", 4, 0xe49),
                ("dtlb-load-l2-hits", 4, 0x2008),
                ("dtlb-load-walk-cycles", 4, 0x100_1008),
            ],
            &[("loads", 4, 0x81d0), ("stores", 4, 0x82d0)],
            core,
        ],
    );
    check(
        "skylake",
        Measure::Icache,
        &[(4, 0x1c6, 0x12, 3)],
        &[
            &[
                ("l1i-hits", 4, 0x183),
                ("l1i-misses", 4, 0x283),
                ("l2-code-reads", 4, 0xe424),
                ("l2-code-misses", 4, 0x2424),
            ],
            core,
        ],
    );
    check(
        "skylake",
        Measure::Itlb,
        &[(4, 0x1c6, 0x14, 3)],
        &[
            &[
                ("itlb-l2-hits", 4, 0x2085),
                ("itlb-walks", 4, 0xe85),
                ("itlb-walk-cycles", 4, 0x100_1085),
            ],
            core,
        ],
    );
}

#[test]
fn sapphire_rapids() {
    let core: &[_] = &[("cycles", 4, 0x3c), ("instructions", 4, 0xc0)];
    let sampled_of = |measure| sampled("sapphire_rapids", &usual("sapphire_rapids", measure));
    assert_eq!(sampled_of(Measure::Dcache), [(4, 0x1cd, 8, 3)]);
    check(
        "sapphire_rapids",
        Measure::Dtlb,
        &[(4, 0x11d0, 0, 3), (4, 0x12d0, 0, 3)],
        &[
            &[
                ("dtlb-load-walks", 4, 0xe12),
                ("dtlb-store-walks", 4, 0xe13),
                ("dtlb-load-l2-hits", 4, 0x2012),
                ("dtlb-load-walk-cycles", 4, 0x100_1012),
            ],
            &[("loads", 4, 0x81d0), ("stores", 4, 0x82d0)],
            core,
        ],
    );
    check(
        "sapphire_rapids",
        Measure::Icache,
        &[(4, 0x1c6, 0x12, 3)],
        &[
            &[
                ("l2-code-reads", 4, 0xe424),
                ("l2-code-misses", 4, 0x2424),
                ("l1i-stall-cycles", 4, 0x480),
                ("l1i-tag-stall-cycles", 4, 0x483),
            ],
            core,
        ],
    );
    check(
        "sapphire_rapids",
        Measure::Itlb,
        &[(4, 0x1c6, 0x14, 3)],
        &[
            &[
                ("itlb-l2-hits", 4, 0x2011),
                ("itlb-walks", 4, 0xe11),
                ("itlb-walk-cycles", 4, 0x100_1011),
            ],
            core,
        ],
    );
}

#[test]
fn latency_of_fetches_is_asked_for_as_each_generation_has_it() {
    let of = |machine: &str, cycles| {
        let threshold = Some(cycles);
        let request = MeasureRequest { threshold, ..MeasureRequest::new(Measure::Icache) };
        sampled(machine, &plan(machine, &request).unwrap())
    };
    // LATENCY_GE_16 of `skylake` and of `sapphirerapids`.
    assert_eq!(of("skylake", 16), [(4, 0x1c6, 0x40_1006, 3)]);
    assert_eq!(of("sapphire_rapids", 16), [(4, 0x1c6, 0x60_1006, 3)]);
    // LATENCY_GE_512, and the unit mask from Redwood Cove on.
    assert_eq!(of("granite_rapids", 512), [(4, 0x3c6, 0x62_0006, 3)]);
    let request = MeasureRequest { threshold: Some(128), ..MeasureRequest::new(Measure::Dcache) };
    let loads = sampled("skylake", &plan("skylake", &request).unwrap());
    assert_eq!(loads, [(4, 0x1cd, 128, 3)]);
}

#[test]
fn alder_lake_counts_and_samples_on_both_kinds_of_core() {
    // cpu_core has number 4, cpu_atom 10.
    check(
        "alder_lake",
        Measure::Dcache,
        &[(4, 0x1cd, 8, 3), (10, 0x5d0, 8, 3)],
        &[
            &[
                ("loads", 4, 0x81d0),
                ("l1d-load-misses", 4, 0x8d1),
                ("l2-load-misses", 4, 0x10d1),
                ("l3-load-misses", 4, 0x20d1),
            ],
            &[
                ("loads", 10, 0x81d0),
                ("l1d-load-misses", 10, 0x8d1),
                ("l2-load-misses", 10, 0x10d1),
                ("l3-load-misses", 10, 0x80d1),
            ],
            &[("stores", 4, 0x82d0)],
            &[("stores", 10, 0x82d0)],
            &[("cycles", 4, 0x3c), ("instructions", 4, 0xc0)],
            &[("cycles", 10, 0x3c), ("instructions", 10, 0xc0)],
        ],
    );
    let dtlb = usual("alder_lake", Measure::Dtlb);
    let sampled_dtlb = sampled("alder_lake", &dtlb);
    assert_eq!(
        sampled_dtlb,
        [(4, 0x11d0, 0, 3), (4, 0x12d0, 0, 3), (10, 0x11d0, 0, 3), (10, 0x12d0, 0, 3)]
    );
    // Gracemont samples no fetches, and that is said.
    for measure in [Measure::Icache, Measure::Itlb] {
        let measurement = usual("alder_lake", measure);
        let frontend = if measure == Measure::Icache { 0x12 } else { 0x14 };
        assert_eq!(sampled("alder_lake", &measurement), [(4, 0x1c6, frontend, 3)]);
        let notes = measurement.notes.join(" ");
        assert!(notes.contains("cpu_atom: it has no precise event of fetches"), "{notes}");
    }
    let icache = counted("alder_lake", &usual("alder_lake", Measure::Icache));
    let small: Vec<_> = icache[1].iter().map(|(_, kind, config)| (*kind, *config)).collect();
    assert_eq!(small, [(10, 0x380), (10, 0x280)]);
}

#[test]
fn zen() {
    let core: &[_] = &[("cycles", 0, 0), ("instructions", 0, 1)];
    // IBS has no precision; its number is 11 for operations and 10 for fetches.
    check(
        "zen3",
        Measure::Dcache,
        &[(11, 0, 0, 0)],
        &[
            &[
                ("loads", 4, 0x129),
                ("l1d-accesses", 4, 0x729),
                ("l1d-misses", 4, 0x5f43),
                ("l2-misses", 4, 0x5e43),
                ("l3-misses", 4, 0x5c43),
            ],
            core,
        ],
    );
    for machine in ["zen4", "zen5"] {
        let misses = counted(machine, &usual(machine, Measure::Dcache));
        let configs: Vec<_> = misses[0].iter().map(|(_, _, config)| *config).collect();
        assert_eq!(configs, [0x129, 0x729, 0xff43, 0xde43, 0xdc43], "{machine}");
    }
    for machine in ["zen3", "zen4", "zen5"] {
        check(
            machine,
            Measure::Dtlb,
            &[(11, 0, 0, 0)],
            &[
                &[
                    ("l1d-accesses", 4, 0x729),
                    ("dtlb-misses", 4, 0xff45),
                    ("dtlb-walks", 4, 0xf045),
                ],
                core,
            ],
        );
        // rand_en is bit 57.
        check(
            machine,
            Measure::Icache,
            &[(10, 1 << 57, 0, 0)],
            &[
                &[
                    ("l1i-accesses", 4, 0x1_0000_1f8e),
                    ("l1i-misses", 4, 0x1_0000_188e),
                    ("l1i-fills-from-l2", 4, 0x82),
                    ("l1i-fills-from-beyond", 4, 0x83),
                ],
                core,
            ],
        );
        let (hits, walks) = if machine == "zen3" { (0xff94, 0xff85) } else { (0x794, 0xf85) };
        check(
            machine,
            Measure::Itlb,
            &[(10, 1 << 57, 0, 0)],
            &[&[("itlb-hits", 4, hits), ("itlb-l2-hits", 4, 0x84), ("itlb-walks", 4, walks)], core],
        );
    }
}

/// PERF_SAMPLE_RAW is bit 10 (Linux `include/uapi/linux/perf_event.h`).
#[test]
fn fetches_of_amd_bring_their_registers_along() {
    let fixture = Fixture::new("zen4");
    let machine = fixture.machine();
    let tracefs = Tracefs::new("/nonexistent".as_ref());
    let plans = EventSelector::parse("ibs_fetch/rand_en=1/").unwrap();
    let plans = plans.plan(Some(Sampling::Period(0x2_0000)), &machine, &tracefs).unwrap();
    let attr = attr::sampled(&plans[0].source, Binding::default(), KernelFeatures::default());
    assert_eq!(word(&attr, SAMPLE_TYPE) >> 10 & 1, 1);
    // DATA_SRC, WEIGHT and WEIGHT_STRUCT, bits 15, 14 and 24, are of operations.
    assert_eq!(word(&attr, SAMPLE_TYPE) & (1 << 15 | 1 << 14 | 1 << 24), 0);
    assert_eq!(plans[0].event.kind, dataspace_proto::event::EventKind::Fetch);
    assert_eq!(plans[0].event.skid, dataspace_proto::event::SkidModel::Exact);
}

#[test]
fn without_a_pmu_faults_and_time_are_what_there_is() {
    let faults = usual("virtual", Measure::Faults);
    // PERF_COUNT_SW_PAGE_FAULTS_MIN and _MAJ are 5 and 6, PAGE_FAULTS is 2, TASK_CLOCK 1, CPU_CLOCK 0.
    assert_eq!(sampled("virtual", &faults), [(1, 5, 0, 0), (1, 6, 0, 0)]);
    assert_eq!(faults.sampling, Sampling::Period(1));
    let group = |names: &[(&str, u64)]| -> Vec<(String, u64, u64)> {
        names.iter().map(|(name, config)| ((*name).to_owned(), 1, *config)).collect()
    };
    let counts = counted("virtual", &faults);
    assert_eq!(
        counts,
        [
            group(&[("page-faults", 2), ("minor-faults", 5), ("major-faults", 6)]),
            group(&[("task-clock", 1)])
        ]
    );
    let time = usual("virtual", Measure::Time);
    assert_eq!(sampled("virtual", &time), [(1, 0, 0, 0)]);
    // CONTEXT_SWITCHES 3, CPU_MIGRATIONS 4.
    let others = group(&[("context-switches", 3), ("cpu-migrations", 4)]);
    let counts = counted("virtual", &time);
    assert_eq!(counts, [group(&[("task-clock", 1)]), others, group(&[("page-faults", 2)])]);
    for measure in [Measure::Dcache, Measure::Dtlb, Measure::Icache, Measure::Itlb] {
        let error = plan("virtual", &MeasureRequest::new(measure)).unwrap_err();
        assert_eq!(error.kind(), crate::error::ErrorKind::MachineCannot);
        let text = error.to_string();
        assert!(text.contains("no PMU") && text.contains("nearest"), "{text}");
    }
}

#[test]
fn what_only_the_kernel_does_is_not_counted_as_nothing() {
    let request =
        MeasureRequest { levels: PrivilegeLevels::User, ..MeasureRequest::new(Measure::Time) };
    let time = plan("virtual", &request).unwrap();
    let (machine, tracefs) = (Fixture::new("virtual"), Tracefs::new("/nonexistent".as_ref()));
    let plans = CountPlan::all(&time.counted, &machine.machine(), &tracefs);
    let refused: Vec<(&str, bool)> =
        plans.iter().map(|plan| (plan.events[0].name.as_str(), plan.is_refused())).collect();
    assert_eq!(
        refused,
        [("task-clock", false), ("context-switches", true), ("page-faults", false)]
    );
    // The same where the kernel's side turns out to be refused.
    let all = plan("virtual", &MeasureRequest::new(Measure::Time)).unwrap();
    let mut plans = CountPlan::all(&all.counted, &machine.machine(), &tracefs);
    assert!(plans.iter().all(|plan| !plan.is_refused()));
    assert!(plans.iter_mut().all(CountPlan::leave_kernel_out));
    assert!(plans[1].is_refused() && !plans[2].is_refused());
}

#[test]
fn a_threshold_is_asked_of_the_event_that_was_named() {
    let with = |machine, measure, event: &str, cycles| {
        let (threshold, event) = (Some(cycles), Some(event.to_owned()));
        plan(machine, &MeasureRequest { threshold, event, ..MeasureRequest::new(measure) })
    };
    let loads = with("skylake", Measure::Dcache, "cpu/mem-loads/P", 64).unwrap();
    assert_eq!(sampled("skylake", &loads), [(4, 0x1cd, 64, 3)]);
    let operations = with("zen5", Measure::Dcache, "ibs_op//", 128).unwrap();
    assert_eq!(operations.sampled, ["ibs_op/ldlat=128/"]);
    // The bits of `ldlat` are others' `frontend`, or nothing.
    let frontend = "cpu/event=0xc6,umask=0x1,frontend=0x15/P";
    for event in ["mem-stores", "cpu/mem-stores/P", "cpu/event=0xd1,umask=0x8/P", frontend] {
        let none = with("skylake", Measure::Dcache, event, 64).unwrap_err().to_string();
        assert!(none.contains(&format!("{event} cannot be bounded")), "{none}");
    }
    let fetches = |cycles| {
        let threshold = Some(cycles);
        plan("skylake", &MeasureRequest { threshold, ..MeasureRequest::new(Measure::Icache) })
    };
    // `frontend`: bubbles in bits 20 to 22, the latency in bits 8 to 19.
    assert_eq!(sampled("skylake", &fetches(4_095).unwrap())[0].2, 0x4f_ff06);
    let long = fetches(4_096).unwrap_err().to_string();
    assert!(long.contains("4095 cycles at most"), "{long}");
}

#[test]
fn samples_of_a_counter_whose_period_varies_say_what_they_stand_for() {
    let (machine, tracefs) = (Fixture::new("skylake"), Tracefs::new("/nonexistent".as_ref()));
    let says_period = |event: &str| {
        let selector = EventSelector::parse(event).unwrap();
        let plans = selector.plan(Some(Sampling::Period(1_000)), &machine.machine(), &tracefs);
        let mut source = plans.unwrap()[0].source;
        source.varies = true;
        let attr = attr::sampled(&source, Binding::default(), KernelFeatures::default());
        // PERF_SAMPLE_PERIOD is bit 8.
        word(&attr, SAMPLE_TYPE) >> 8 & 1 == 1
    };
    assert!(says_period("cpu/mem-loads,ldlat=8/P") && says_period("cycles"));
    // With it a software event would ignore its period.
    assert!(!says_period("cpu-clock") && !says_period("page-faults"));
}

#[test]
fn what_older_processors_lack_is_said() {
    let error = plan("ivy_bridge", &MeasureRequest::new(Measure::Icache)).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("cpu: it has no precise event of fetches"), "{text}");
    let loads = usual("ivy_bridge", Measure::Dcache);
    assert_eq!(sampled("ivy_bridge", &loads)[0].1, 0x1cd);
}

#[test]
fn levels_are_asked_of_what_is_sampled_and_of_what_is_counted() {
    let with = |event: &str, levels| with_levels(event, levels);
    assert_eq!(with("page-faults", PrivilegeLevels::User), "page-faults:u");
    assert_eq!(with("page-faults", PrivilegeLevels::All), "page-faults");
    assert_eq!(with("page-faults:k", PrivilegeLevels::User), "page-faults:k", "it says its own");
    assert_eq!(with("cpu/mem-loads,ldlat=8/P", PrivilegeLevels::User), "cpu/mem-loads,ldlat=8/Pu");
    assert_eq!(with("cpu/event=0xd0/", PrivilegeLevels::Kernel), "cpu/event=0xd0/k");
    assert_eq!(with("ibs_op//", PrivilegeLevels::User), "ibs_op//u");
    let request = MeasureRequest {
        levels: PrivilegeLevels::User,
        event: Some("task-clock".to_owned()),
        rate: Some(1_000_000),
        ..MeasureRequest::new(Measure::Time)
    };
    let time = plan("virtual", &request).unwrap();
    assert_eq!(
        (time.sampled, time.sampling),
        (vec!["task-clock:u".into()], Sampling::Period(1_000_000))
    );
    assert!(time.counted.iter().flatten().all(|one| one.selector.to_string().ends_with(":u")));
    let wrong = MeasureRequest { event: Some("nonsense/".to_owned()), ..request };
    assert!(plan("virtual", &wrong).is_err());
}
