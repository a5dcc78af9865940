//! `perf_event_attr` of the events that a session opens.

use crate::record::decode::{NATIVE, SampleLayout};
use crate::system::machine::N_CONFIG_WORDS;
use dataspace_proto::event::{Machine, Sampling};
use dataspace_proto::register::PERF_MASK;
use dataspace_proto::stack::N_STACK_BYTES;
use perf_event_open_sys::bindings as abi;
pub(crate) use perf_event_open_sys::bindings::perf_event_attr;

/// The ids that stand in every record, in front of samples and at the end of all others.
const ID_FIELDS: u64 = (abi::PERF_SAMPLE_IDENTIFIER
    | abi::PERF_SAMPLE_TID
    | abi::PERF_SAMPLE_TIME
    | abi::PERF_SAMPLE_CPU) as u64;

/// Fields of each sample. No `PERF_SAMPLE_PERIOD`: see [`EventSource::sampling`].
const SAMPLE_FIELDS: u64 =
    ID_FIELDS | (abi::PERF_SAMPLE_IP | abi::PERF_SAMPLE_ADDR | abi::PERF_SAMPLE_REGS_USER) as u64;

/// `PERF_REG_X86_XMM0` (Linux `arch/x86/include/uapi/asm/perf_regs.h`).
const FIRST_EXTENDED_REGISTER: u64 = 1 << 32;

/// The newer parts of the interface that the running kernel has, and gives us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelFeatures {
    /// `PERF_FORMAT_LOST` (6.0).
    pub(crate) lost: bool,
    /// `attr.build_id` (5.12).
    pub(crate) build_id: bool,
    /// `attr.namespaces` (4.12), which needs `CAP_PERFMON`.
    pub(crate) namespaces: bool,
    /// `attr.ksymbol` and `attr.bpf_event` (5.1).
    pub(crate) ksymbol: bool,
    /// `attr.cgroup` (5.7, with `CONFIG_CGROUP_PERF`).
    pub(crate) cgroup: bool,
}

impl KernelFeatures {
    /// The `read_format` of every sample event.
    pub(crate) const fn read_format(self) -> u64 {
        let base = abi::PERF_FORMAT_TOTAL_TIME_ENABLED
            | abi::PERF_FORMAT_TOTAL_TIME_RUNNING
            | abi::PERF_FORMAT_ID;
        (if self.lost { base | abi::PERF_FORMAT_LOST } else { base }) as u64
    }
}

/// Thing that the kernel is asked to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// `PERF_TYPE_SOFTWARE` with this config.
    Software(u64),
    /// Any event of a PMU, hardware's generic ones among them.
    Counter(Counter),
    /// `PERF_TYPE_TRACEPOINT` with this id.
    Tracepoint(u64),
    /// `PERF_TYPE_BREAKPOINT`.
    Breakpoint {
        /// First watched byte.
        address: u64,
        /// Number of them.
        len_bytes: u64,
        /// `HW_BREAKPOINT_*`.
        access: u32,
    },
}

/// An event of a PMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counter {
    /// The PMU's number, or `PERF_TYPE_HARDWARE`, `_HW_CACHE`, `_RAW`.
    pub(crate) kind: u32,
    /// `config`, `config1` … `config4`.
    pub(crate) config: [u64; N_CONFIG_WORDS],
    /// Distance of samples from the trigger: 0 (anywhere) to 3 (at it, and evenly spread).
    pub(crate) precise_ip: u8,
    /// The fields of each sample that tell of the access, for an event of memory.
    pub(crate) access: Option<AccessFields>,
    /// Samples carry the registers of AMD's IBS that tell of a fetch (`PERF_SAMPLE_RAW`).
    pub(crate) has_fetch: bool,
    /// `config` of the event that has to lead a group with this one: `mem-loads-aux`.
    pub(crate) leader: Option<u64>,
    /// The way to leave out levels that were not asked for.
    pub(crate) levels: Levels,
    /// True if a hypervisor's level was asked for (`:h`).
    pub(crate) has_hypervisor: bool,
}

/// Facts about a memory access that samples tell beside its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccessFields {
    /// Latencies: three figures (`PERF_SAMPLE_WEIGHT_STRUCT`, Linux 5.12) or one.
    pub(crate) has_weight_struct: bool,
    /// The size of the page (Linux 5.11).
    pub(crate) has_page_size: bool,
    /// The physical address, which takes the privilege to see the kernel.
    pub(crate) has_physical: bool,
}

/// Way in which a PMU leaves out user code, or the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Levels {
    /// By the `exclude_*` bits, in hardware.
    Bits,
    /// By the same bits, which the kernel only takes with these bits of `config2` (`swfilt` of AMD
    /// IBS): it samples all and keeps what was asked for.
    FilteredByKernel(u64),
    /// Not at all: the bits must be clear, and the reader drops what was not asked for.
    FilteredByReader,
}

/// A sampled event, as far as its attr goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventSource {
    pub(crate) source: Source,
    /// The period or the frequency. With a fixed period `PERF_SAMPLE_PERIOD` is not set: software
    /// events and breakpoints then ignore the period and sample every event
    /// (`perf_swevent_event()` in Linux `kernel/events/core.c`). With a frequency it is: right on
    /// hardware events, a guess on software ones.
    pub(crate) sampling: Sampling,
    /// Its period varies.
    pub(crate) varies: bool,
    pub(crate) exclude_user: bool,
    pub(crate) exclude_kernel: bool,
}

impl EventSource {
    /// Nothing that is ever opened.
    pub(crate) const NOTHING: Self = Self {
        source: Source::Software(abi::PERF_COUNT_SW_DUMMY as u64),
        sampling: Sampling::Period(1),
        varies: false,
        exclude_user: false,
        exclude_kernel: true,
    };

    const fn is_software(&self) -> bool {
        matches!(self.source, Source::Software(_))
    }

    /// Tells whether the registers of a sample may be other than those that the kernel has of the user: what
    /// hardware records is, and else the two are one wherever user code was interrupted.
    const fn has_own_registers(&self) -> bool {
        matches!(self.source, Source::Counter(_))
    }

    /// Tells whether samples say what they stand for though the period is fixed at first: it varies, and the event is one of
    /// hardware.
    pub(crate) const fn says_period(&self) -> bool {
        self.varies && matches!(self.source, Source::Counter(_))
    }

    /// Tells whether samples carry a piece of the user stack. A breakpoint tells the variable by itself, and
    /// what a tracepoint stands at is in the kernel.
    const fn has_stack(&self) -> bool {
        matches!(self.source, Source::Software(_) | Source::Counter(_))
    }

    /// Leaves out the levels that were not asked for, as the PMU does it.
    fn exclude(&self, attr: &mut perf_event_attr) {
        if let Source::Counter(Counter { levels, config, has_hypervisor, .. }) = self.source {
            // IBS knows no hypervisor's level (`perf_ibs_init()` in Linux
            // `arch/x86/events/amd/ibs.c`).
            attr.set_exclude_hv(u64::from(levels == Levels::Bits && !has_hypervisor));
            match levels {
                Levels::Bits => {}
                Levels::FilteredByKernel(_) if !self.exclude_user && !self.exclude_kernel => {}
                Levels::FilteredByKernel(filter) => {
                    attr.__bindgen_anon_4.config2 = config[2] | filter;
                }
                Levels::FilteredByReader => return,
            }
        }
        attr.set_exclude_user(u64::from(self.exclude_user));
        attr.set_exclude_kernel(u64::from(self.exclude_kernel));
    }
}

/// Binding of an event to its tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Binding {
    /// Threads and children born later are counted too.
    pub(crate) inherit: bool,
    /// Counting begins at the task's next exec, not at once.
    pub(crate) enable_on_exec: bool,
    /// It counts whole CPUs, which are idle at times: a clock is not to count that.
    pub(crate) is_cpu_wide: bool,
}

impl Binding {
    fn bind(self, attr: &mut perf_event_attr) {
        attr.set_disabled(u64::from(self.enable_on_exec));
        attr.set_inherit(u64::from(self.inherit));
        attr.set_enable_on_exec(u64::from(self.enable_on_exec));
    }
}

impl Counter {
    fn attr(&self) -> perf_event_attr {
        let [config, config1, config2, config3, config4] = self.config;
        let mut attr = base(self.kind, config);
        attr.__bindgen_anon_3.config1 = config1;
        attr.__bindgen_anon_4.config2 = config2;
        attr.config3 = config3;
        attr.config4 = config4;
        attr.set_precise_ip(u64::from(self.precise_ip));
        if let Some(access) = self.access {
            attr.sample_type |= access.sample_type();
        }
        if self.has_fetch {
            attr.sample_type |= u64::from(abi::PERF_SAMPLE_RAW);
        }
        attr
    }
}

impl AccessFields {
    fn sample_type(self) -> u64 {
        let weight = if self.has_weight_struct {
            abi::PERF_SAMPLE_WEIGHT_STRUCT
        } else {
            abi::PERF_SAMPLE_WEIGHT
        };
        let mut fields = abi::PERF_SAMPLE_DATA_SRC | weight;
        if self.has_page_size {
            fields |= abi::PERF_SAMPLE_DATA_PAGE_SIZE;
        }
        if self.has_physical {
            fields |= abi::PERF_SAMPLE_PHYS_ADDR;
        }
        u64::from(fields)
    }
}

fn base(type_: u32, config: u64) -> perf_event_attr {
    let mut attr = perf_event_attr {
        type_,
        size: size_of::<perf_event_attr>() as u32,
        config,
        sample_type: ID_FIELDS,
        clockid: libc::CLOCK_MONOTONIC,
        ..perf_event_attr::default()
    };
    attr.set_use_clockid(1);
    attr.set_exclude_hv(1);
    attr.set_sample_id_all(1);
    attr
}

/// The attr of an event whose overflows are sampled. It counts from the start, or from exec.
///
/// Opening it disabled and letting all go at once would be tidier, but leaves threads unseen:
/// `PERF_EVENT_IOC_ENABLE` passes over a thread that is being cloned at that moment, and a thread
/// that is not enabled can trade its events with its parent's at a context switch
/// (`perf_event_context_sched_out()` in Linux `kernel/events/core.c`).
pub(crate) fn sampled(
    event: &EventSource,
    binding: Binding,
    features: KernelFeatures,
) -> perf_event_attr {
    let mut attr = match event.source {
        Source::Software(config) => base(abi::PERF_TYPE_SOFTWARE, config),
        Source::Counter(counter) => counter.attr(),
        Source::Tracepoint(id) => base(abi::PERF_TYPE_TRACEPOINT, id),
        Source::Breakpoint { address, len_bytes, access } => {
            let mut attr = base(abi::PERF_TYPE_BREAKPOINT, 0);
            attr.bp_type = access;
            attr.__bindgen_anon_3.bp_addr = address;
            attr.__bindgen_anon_4.bp_len = len_bytes;
            attr
        }
    };
    attr.sample_type |= SAMPLE_FIELDS;
    match event.sampling {
        Sampling::Period(period) => {
            attr.__bindgen_anon_1.sample_period = period;
            if event.says_period() {
                attr.sample_type |= u64::from(abi::PERF_SAMPLE_PERIOD);
            }
        }
        Sampling::FrequencyHz(hz) => {
            attr.set_freq(1);
            attr.__bindgen_anon_1.sample_freq = hz;
            attr.sample_type |= u64::from(abi::PERF_SAMPLE_PERIOD);
        }
    }
    if event.has_stack() {
        attr.sample_type |= u64::from(abi::PERF_SAMPLE_STACK_USER);
        attr.sample_stack_user = N_STACK_BYTES as u32;
    }
    attr.sample_regs_user = PERF_MASK;
    if event.has_own_registers() {
        attr.sample_type |= u64::from(abi::PERF_SAMPLE_REGS_INTR);
        attr.sample_regs_intr = PERF_MASK;
    }
    attr.read_format = features.read_format();
    event.exclude(&mut attr);
    attr.set_exclude_idle(u64::from(binding.is_cpu_wide && event.is_software()));
    binding.bind(&mut attr);
    attr
}

/// The attr of the same event as `event` that counts as much and takes no samples.
pub(crate) fn counted(
    event: &EventSource,
    binding: Binding,
    features: KernelFeatures,
) -> perf_event_attr {
    let mut attr = sampled(event, binding, features);
    attr.set_freq(0);
    attr.set_precise_ip(0);
    attr.__bindgen_anon_1.sample_period = 0;
    (attr.sample_type, attr.sample_stack_user) = (0, 0);
    (attr.sample_regs_intr, attr.sample_regs_user) = (0, 0);
    attr
}

/// The attr of the same event as `event` with nothing else asked of it, at all levels: PMUs without an
/// interrupt cannot leave one out either. With a `period` of 0 it counts and takes no samples.
pub(crate) fn bare(event: &EventSource, period: u64) -> perf_event_attr {
    let mut attr = counted(event, Binding::default(), KernelFeatures::default());
    attr.__bindgen_anon_1.sample_period = period;
    attr.set_exclude_kernel(0);
    attr.set_exclude_user(0);
    attr.set_exclude_hv(0);
    attr
}

/// The same without the kernel, and such that `EOPNOTSUPP` tells that the PMU itself accepts it.
///
/// `perf_try_init_event()` in Linux `kernel/events/core.c` asks the PMU first, then refuses registers that the PMU
/// does not know with `EOPNOTSUPP`, then what leaves out the kernel with `EINVAL` where the PMU cannot (Linux 6.18;
/// older kernels say `EINVAL` for both).
pub(crate) fn bare_of_user(event: &EventSource, period: u64) -> perf_event_attr {
    let mut attr = bare(event, period);
    attr.set_exclude_kernel(1);
    attr.sample_regs_user = FIRST_EXTENDED_REGISTER;
    attr
}

/// The attr of the event that has to lead the group of `event`; `None` where it stands alone.
///
/// It counts and samples nothing: the kernel only asks that it be there (`intel_pmu_hw_config()` in
/// Linux `arch/x86/events/intel/core.c`). perf samples it too, which doubles the interrupts.
///
/// It is opened enabled, as all events are. A member of another PMU would wait for the next context
/// switch then (measured on Linux 6.18); both being of one PMU, the group is scheduled anew at once
/// (`__perf_install_in_context()` in Linux `kernel/events/core.c`).
pub(crate) fn leader(
    event: &EventSource,
    binding: Binding,
    features: KernelFeatures,
) -> Option<perf_event_attr> {
    let Source::Counter(Counter { kind, leader: Some(config), .. }) = event.source else {
        return None;
    };
    let mut attr = base(kind, config);
    attr.read_format = features.read_format();
    event.exclude(&mut attr);
    binding.bind(&mut attr);
    Some(attr)
}

/// The attr of the event that carries mappings, names, births and deaths, and counts nothing.
/// `inherit` is for events on threads.
pub(crate) fn side_band(features: KernelFeatures, inherit: bool) -> perf_event_attr {
    let mut attr = mark();
    attr.set_mmap(1);
    attr.set_mmap2(1);
    // Data mappings too: an address of a sample may lie in any of them.
    attr.set_mmap_data(1);
    attr.set_build_id(u64::from(features.build_id));
    attr.set_comm(1);
    attr.set_comm_exec(1);
    attr.set_task(1);
    attr.set_inherit(u64::from(inherit));
    attr.set_namespaces(u64::from(features.namespaces));
    attr
}

/// The attr of the event that carries what the kernel tells of itself: its new code, and control
/// groups. Only events on a CPU and no task get it (`is_sb_event()` in Linux `kernel/events/core.c`).
pub(crate) fn machine_side_band(features: KernelFeatures) -> perf_event_attr {
    let mut attr = mark();
    attr.set_ksymbol(u64::from(features.ksymbol));
    attr.set_cgroup(u64::from(features.cgroup));
    attr
}

/// The attr of the event that owns a ring: it never fires, and outlives every target.
///
/// The kernel takes the wake-up mark of a ring from the event that mapped it.
pub(crate) fn ring_owner(watermark_bytes: u32) -> perf_event_attr {
    let mut attr = mark();
    attr.set_disabled(1);
    attr.set_watermark(1);
    attr.__bindgen_anon_2.wakeup_watermark = watermark_bytes;
    attr
}

/// An event that counts nothing, by which to see that the kernel takes a task's events away.
pub(crate) fn mark() -> perf_event_attr {
    let mut attr = base(abi::PERF_TYPE_SOFTWARE, u64::from(abi::PERF_COUNT_SW_DUMMY));
    attr.set_exclude_kernel(1);
    attr
}

/// Things that events count here.
pub(crate) const MACHINE: Machine =
    if cfg!(target_arch = "x86_64") { Machine::X86_64 } else { Machine::Other };

/// The layout of the records of an event with this attr.
pub(crate) fn layout(attr: &perf_event_attr) -> SampleLayout {
    SampleLayout {
        sample_type: attr.sample_type,
        read_format: attr.read_format,
        branch_sample_type: attr.branch_sample_type,
        user_registers: attr.sample_regs_user,
        interrupt_registers: attr.sample_regs_intr,
        is_precise: attr.precise_ip() != 0,
        // Nothing else is asked for that has raw bytes.
        has_fetch: attr.sample_type & u64::from(abi::PERF_SAMPLE_RAW) != 0,
        sample_id_all: true,
        endian: NATIVE,
        machine: MACHINE,
    }
}
