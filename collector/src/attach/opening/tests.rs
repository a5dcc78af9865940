//! The order of fallbacks, with the errnos of kernels that are not at hand.

use super::*;
use crate::event::EventSelector;
use crate::sys::attr_bytes::as_bytes;
use crate::sys::open;
use crate::system::machine::fixture::Fixture;
use crate::system::tracefs::Tracefs;
use perf_event_open_sys::bindings as abi;
use rustix::fd::AsFd as _;

const BINDING: Binding = Binding { inherit: true, enable_on_exec: false, is_cpu_wide: false };
const FEATURES: KernelFeatures =
    KernelFeatures { lost: true, build_id: true, ksymbol: false, cgroup: false, namespaces: false };

/// One call, as far as fallbacks change it; the numbers are those of `perf_event.h`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Call {
    config: u64,
    precise_ip: u64,
    weight: Weight,
    has_physical: bool,
    has_page_size: bool,
    exclude_user: bool,
    exclude_kernel: bool,
    is_filtered: bool,
    has_leader: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    None,
    Plain,
    Struct,
}

fn call(attr: &perf_event_attr, has_leader: bool) -> Call {
    let bytes = as_bytes(attr);
    let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    let (sample_type, flags) = (word(24), word(40));
    Call {
        config: word(8),
        precise_ip: flags >> 15 & 3,
        weight: match sample_type & (1 << 14 | 1 << 24) {
            0 => Weight::None,
            0x4000 => Weight::Plain,
            _ => Weight::Struct,
        },
        has_physical: sample_type & 1 << 19 != 0,
        has_page_size: sample_type & 1 << 22 != 0,
        exclude_user: flags & 1 << 4 != 0,
        exclude_kernel: flags & 1 << 5 != 0,
        is_filtered: word(64) & 1 != 0,
        has_leader,
    }
}

/// A kernel that says no for as long as it has a reason to.
struct Kernel<'a> {
    refuses: &'a dyn Fn(&Call) -> Option<Errno>,
    calls: Vec<Call>,
}

impl Kernel<'_> {
    fn open(&mut self, plan: &mut EventPlan) -> Result<Opened<u64>, Errno> {
        let mut one = |attr: &perf_event_attr, has_leader| {
            let call = call(attr, has_leader);
            let refused = (self.refuses)(&call);
            self.calls.push(call.clone());
            refused.map_or(Ok(call.config), Err)
        };
        open_with(plan, BINDING, FEATURES, |attr, leader| {
            let leader = leader.map(|leader| one(leader, false)).transpose()?;
            Ok(Opened { event: one(attr, leader.is_some())?, leader })
        })
    }
}

fn plan(machine: &str, text: &str) -> EventPlan {
    let fixture = Fixture::new(machine);
    let selector = EventSelector::parse(text).unwrap();
    selector.plan(None, &fixture.machine(), &Tracefs::new(fixture.root())).unwrap().remove(0)
}

fn opened<'a>(
    plan: &mut EventPlan,
    refuses: &'a dyn Fn(&Call) -> Option<Errno>,
) -> (Result<Opened<u64>, Errno>, Vec<Call>) {
    let mut kernel = Kernel { refuses, calls: Vec::new() };
    let result = kernel.open(plan);
    (result, kernel.calls)
}

/// One or the other.
fn errno_if(condition: bool, errno: Errno) -> Option<Errno> {
    condition.then_some(errno)
}

#[test]
fn precision_goes_down_one_by_one_and_is_kept() {
    // Golden Cove's loads cannot be on counter 0, where distributed precision (3) is.
    let mut plan = plan("granite_rapids", "loads");
    let (result, calls) = opened(&mut plan, &|call| errno_if(call.precise_ip > 2, Errno::INVAL));
    assert!(result.is_ok());
    assert_eq!(calls.iter().map(|call| call.precise_ip).collect::<Vec<_>>(), [3, 2]);
    assert!(plan.is_settled && plan.warnings.is_empty(), "both are exact: {:?}", plan.warnings);
    assert_eq!(plan.event.skid, SkidModel::Exact);
    let (_, calls) = opened(&mut plan, &|_| None);
    assert_eq!(calls.iter().map(|call| call.precise_ip).collect::<Vec<_>>(), [2], "settled");
}

#[test]
fn memory_events_stay_precise_and_others_need_not() {
    let imprecise = |errno: Errno| move |call: &Call| errno_if(call.precise_ip > 0, errno);
    let mut memory = plan("skylake", "loads");
    let (result, calls) = opened(&mut memory, &imprecise(Errno::OPNOTSUPP));
    assert_eq!(result.unwrap_err(), Errno::OPNOTSUPP);
    assert_eq!(calls.iter().map(|call| call.precise_ip).collect::<Vec<_>>(), [3, 2, 1]);
    assert!(!memory.is_settled);
    for errno in [Errno::OPNOTSUPP, Errno::INVAL, Errno::NOENT] {
        let mut cycles = plan("skylake", "cycles:P");
        let (result, calls) = opened(&mut cycles, &imprecise(errno));
        assert!(result.is_ok() && calls.len() == 4, "{errno}");
        assert_eq!(cycles.event.skid, SkidModel::Unknown(8));
        assert_eq!(cycles.warnings.len(), 1);
    }
    let mut one = plan("skylake", "cycles:P");
    let (result, _) = opened(&mut one, &|call| errno_if(call.precise_ip > 1, Errno::OPNOTSUPP));
    assert!(result.is_ok());
    assert_eq!(one.event.skid, SkidModel::AfterOne);
}

#[test]
fn a_precision_that_was_asked_for_is_had_or_not() {
    let mut plan = plan("skylake", "cycles:ppp");
    let (result, calls) = opened(&mut plan, &|call| errno_if(call.precise_ip > 2, Errno::INVAL));
    assert_eq!((result.unwrap_err(), calls.len()), (Errno::INVAL, 1));
}

#[test]
fn older_fields_are_tried_at_every_precision() {
    // Linux 5.4: neither weights in parts (5.12) nor page sizes (5.11).
    let mut plan = plan("skylake", "loads");
    let (result, calls) = opened(&mut plan, &|call| {
        errno_if(call.weight == Weight::Struct || call.has_page_size, Errno::INVAL)
    });
    assert!(result.is_ok());
    let tried: Vec<_> = calls
        .iter()
        .map(|call| (call.precise_ip, call.weight, call.has_page_size, call.has_physical))
        .collect();
    let mut expected = Vec::new();
    for weight in [Weight::Struct, Weight::Plain] {
        expected.extend([3, 2, 1].map(|precise| (precise, weight, true, true)));
    }
    expected.push((3, Weight::Plain, false, true));
    assert_eq!(tried, expected);
    assert_eq!(plan.warnings.len(), 2, "{:?}", plan.warnings);
    assert!(plan.warnings[0].contains("before 5.12"), "{:?}", plan.warnings);
}

#[test]
fn permission_takes_the_physical_address_then_the_kernel() {
    for errno in [Errno::ACCESS, Errno::PERM] {
        let mut some = plan("skylake", "loads");
        let (result, calls) = opened(&mut some, &|call| errno_if(call.has_physical, errno));
        assert!(result.is_ok() && calls.len() == 2);
        assert!(some.event.includes_kernel);
        let mut less = plan("skylake", "loads");
        let (result, calls) =
            opened(&mut less, &|call| errno_if(call.has_physical || !call.exclude_kernel, errno));
        assert!(result.is_ok() && calls.len() == 3);
        assert!(!less.event.includes_kernel && less.source.exclude_kernel);
        assert!(less.warnings.iter().any(|said| said.contains("without the kernel's side")));
    }
}

#[test]
fn a_refusal_to_the_end_leaves_the_plan_as_it_was() {
    let mut plan = plan("skylake", "loads");
    let before = plan.clone();
    let (result, _) = opened(&mut plan, &|_| Some(Errno::ACCESS));
    assert_eq!(result.unwrap_err(), Errno::ACCESS);
    assert_eq!((plan.source, plan.is_settled), (before.source, false));
    assert!(plan.event.includes_kernel && plan.warnings.is_empty());
    // A thread that is gone settles nothing either.
    let (result, calls) = opened(&mut plan, &|_| Some(Errno::SRCH));
    assert_eq!((result.unwrap_err(), calls.len()), (Errno::SRCH, 1));
    assert!(!plan.is_settled);
}

#[test]
fn what_fires_in_the_kernel_only_keeps_it() {
    let mut user = plan("skylake", "cycles:k");
    let (result, calls) = opened(&mut user, &|_| Some(Errno::ACCESS));
    assert!(result.is_err() && calls.len() == 1);
    let mut tracepoint = plan("skylake", "cpu-clock");
    tracepoint.source.source = Source::Tracepoint(1);
    let (result, calls) = opened(&mut tracepoint, &|_| Some(Errno::ACCESS));
    assert!(result.is_err() && calls.len() == 1);
}

#[test]
fn the_clock_loses_the_kernel_without_a_word() {
    let mut plan = plan("virtual", "cpu-clock");
    let (result, calls) = opened(&mut plan, &|call| errno_if(!call.exclude_kernel, Errno::ACCESS));
    assert!(result.is_ok() && calls.len() == 2);
    assert!(!plan.event.includes_kernel && plan.warnings.is_empty());
}

#[test]
fn the_leader_is_opened_first_and_added_where_the_kernel_misses_it() {
    let mut named = plan("sapphire_rapids", "loads");
    let (result, calls) = opened(&mut named, &|_| None);
    let opened_both = result.unwrap();
    assert_eq!((opened_both.leader, opened_both.event), (Some(0x8203), 0x1cd));
    assert_eq!(calls.iter().map(|call| call.has_leader).collect::<Vec<_>>(), [false, true]);
    // A raw one is not named: the kernel asks for the leader (ENODATA).
    let mut raw = plan("sapphire_rapids", "r1cd:pp");
    let (result, calls) =
        opened(&mut raw, &|call| errno_if(call.config == 0x1cd && !call.has_leader, Errno::NODATA));
    assert_eq!(result.unwrap().leader, Some(0x8203));
    let configs: Vec<_> = calls.iter().map(|call| call.config).collect();
    assert_eq!(configs, [0x1cd, 0x8203, 0x1cd]);
    assert!(raw.warnings[0].contains("mem-loads-aux"), "{:?}", raw.warnings);
    // Again with it, at once.
    let (_, calls) = opened(&mut raw, &|_| None);
    assert_eq!(calls.len(), 2);
}

#[test]
fn ibs_is_filtered_by_us_where_the_kernel_cannot() {
    let mut plan = plan("zen4", "mem:u");
    let (result, calls) = opened(&mut plan, &|call| errno_if(call.exclude_kernel, Errno::INVAL));
    assert!(result.is_ok());
    assert!(calls[0].is_filtered && calls[0].exclude_kernel);
    let last = calls.last().unwrap();
    assert!(!last.is_filtered && !last.exclude_kernel && last.precise_ip == 0);
    assert!(plan.drops_kernel && !plan.event.includes_kernel && plan.drops_non_memory);
    assert!(plan.warnings.iter().any(|said| said.contains("counted and dropped")));
}

#[test]
fn ibs_without_a_filter_is_not_asked_for_user_code_alone() {
    let mut old = plan("zen3", "mem");
    let (result, calls) = opened(&mut old, &|_| Some(Errno::ACCESS));
    assert_eq!(result.unwrap_err(), Errno::ACCESS);
    assert!(calls.iter().all(|call| !call.exclude_kernel));
    let mut new = plan("zen4", "mem");
    let (result, calls) = opened(&mut new, &|call| {
        errno_if(call.has_physical || !call.exclude_kernel, Errno::ACCESS)
    });
    assert!(result.is_ok());
    assert!(calls.last().unwrap().is_filtered, "user code alone takes the filter");
}

/// The numbers above are those of the header that the bindings were made from.
#[test]
fn bits_are_the_headers() {
    assert_eq!(abi::PERF_SAMPLE_WEIGHT, 1 << 14);
    assert_eq!(abi::PERF_SAMPLE_WEIGHT_STRUCT, 1 << 24);
    assert_eq!(abi::PERF_SAMPLE_PHYS_ADDR, 1 << 19);
    assert_eq!(abi::PERF_SAMPLE_DATA_PAGE_SIZE, 1 << 22);
}

/// Groups and all fields of an access, on the kernel that runs this: a software event takes them too.
/// Leader and member are of one PMU, as `mem-loads` and `mem-loads-aux` are.
#[test]
fn this_kernel_opens_counts_and_closes_a_group() {
    let mut plan = plan("virtual", "cpu-clock:u");
    plan.source.source = Source::Counter(Counter {
        kind: abi::PERF_TYPE_SOFTWARE,
        config: [u64::from(abi::PERF_COUNT_SW_TASK_CLOCK), 0, 0, 0, 0],
        precise_ip: 0,
        access: Some(AccessFields {
            has_weight_struct: true,
            has_page_size: true,
            has_physical: true,
        }),
        has_fetch: false,
        leader: Some(u64::from(abi::PERF_COUNT_SW_TASK_CLOCK)),
        levels: Levels::Bits,
        has_hypervisor: false,
    });
    let features = crate::attach::feature::kernel_features();
    let binding = Binding { inherit: true, ..Binding::default() };
    let place = EventPlace::Task { tid: 0, cpu: -1 };
    let opened = match open_planned(&mut plan, binding, features, place) {
        Ok(opened) => opened,
        Err(errno) => {
            eprintln!("skipped: no software event can be opened here: {errno}");
            return;
        }
    };
    assert!(plan.is_settled);
    // Work that the clocks see.
    let work: u64 = (0..1_000_000u64).map(std::hint::black_box).sum();
    assert_eq!(work, 499_999_500_000);
    let leader = opened.leader.expect("a group has a leader");
    let counts = |fd: &OwnedFd| open::read_counts(fd).unwrap().unwrap();
    let (first, second) = (counts(&leader), counts(&opened.event));
    assert!(first.running_ns > 0 && second.running_ns > 0, "both count: {first:?} {second:?}");
    assert!(second.value > 0);
    assert_ne!(open::id(leader.as_fd()).unwrap(), open::id(opened.event.as_fd()).unwrap());
    drop(leader);
    let (_, value) = (counts(&opened.event), counts(&opened.event).value);
    assert!(value >= second.value, "the event outlives its leader");
}
