//! Plans for the events of PMUs: the cores' counters, AMD's IBS, and what else sysfs describes.

use super::encoding::Encoding;
use super::meaning::{self, counter_skid};
use super::modifier::{Modifiers, Precision};
use super::name;
use super::plan::EventPlan;
use super::term::Term;
use super::wanted::Wanted;
use crate::error::Error;
use crate::error::EventParseError;
use crate::event::attr::{AccessFields, Counter, EventSource, Levels, Source};
use crate::system::machine::{Machine, N_CONFIG_WORDS, Pmu, Vendor};
use dataspace_proto::event::{Event, EventKind, Sampling};
use perf_event_open_sys::bindings as abi;

/// Samples a second of a counter that nobody asked for anything else: what perf takes.
const DEFAULT_HZ: u64 = 4_000;

/// The highest `precise_ip` there is.
const MAX_PRECISE: u8 = 3;

/// The load latencies that IBS can filter by, in cycles (`perf_ibs_init()`).
const IBS_LATENCIES: std::ops::RangeInclusive<u64> = 128..=2_048;

/// PMUs that write a trace instead of samples.
const TRACE_PMUS: [&str; 5] = ["arm_spe", "intel_pt", "intel_bts", "cs_etm", "hisi_ptt"];

/// The kernel's own PMUs, and what their events are called.
const SOFTWARE_PMUS: [(&str, &str); 5] = [
    ("software", "cpu-clock, task-clock, page-faults"),
    ("tracepoint", "SYSTEM:NAME, as below /sys/kernel/tracing/events"),
    ("breakpoint", "mem:0xADDRESS/LENGTH:rw"),
    ("kprobe", "kprobes:NAME, after perf probe has made it"),
    ("uprobe", "uprobes:NAME, after perf probe has made it"),
];

/// Beginnings of the names that the kernel gives to events of processors' PMUs in sysfs
/// (`*_events_attrs` in Linux `arch/x86/events/intel/core.c`).
const KERNEL_NAMES: [&str; 8] =
    ["mem-loads", "mem-stores", "topdown-", "slots", "tx-", "el-", "cycles-t", "cycles-ct"];

/// Place of the number of a PMU in the config of a generic event (`PERF_PMU_TYPE_SHIFT`).
const PMU_SHIFT: u32 = 32;

/// Properties asked of every PMU that an event is planned on.
#[derive(Clone, Copy, Debug)]
pub(super) struct CounterRequest<'a> {
    pub(super) text: &'a str,
    pub(super) modifiers: Modifiers,
    pub(super) sampling: Option<Sampling>,
    pub(super) machine: &'a Machine,
}

/// An event as one PMU encodes it.
struct Coded<'a> {
    pmu: Option<&'a Pmu>,
    kind: u32,
    encoding: Encoding,
    /// As a person would ask for it on this PMU alone.
    name: String,
}

impl CounterRequest<'_> {
    /// Plans an event of the kernel's own lists, or a raw one: on a hybrid machine one for each kind
    /// of core, because each has its own encodings and its own CPUs.
    pub(super) fn core_event(&self, wanted: &Wanted) -> Result<Vec<EventPlan>, Error> {
        let (bare, letters) = self.text.split_once(':').unwrap_or((self.text, ""));
        let pmus = self.machine.core_pmus()?;
        // What is no `cpu` says which CPUs it is of.
        let hybrid: Vec<_> = pmus.iter().filter(|pmu| pmu.cpus.is_some()).collect();
        if hybrid.is_empty() {
            let pmu = pmus.first();
            return Ok(vec![self.plan(&coded(wanted, pmu, false, self.text.to_owned()))?]);
        }
        let on = |pmu: &&Pmu| {
            let name = format!("{}/{bare}/{letters}", pmu.name);
            self.plan(&coded(wanted, Some(pmu), true, name))
        };
        hybrid.iter().map(on).collect()
    }

    /// Plans an event that sysfs names, on every PMU that does.
    pub(super) fn named_event(&self, event: &str) -> Result<Vec<EventPlan>, Error> {
        let pmus = self.machine.pmus_with_event(event)?;
        if pmus.is_empty() {
            return Err(self.unnamed(event)?);
        }
        let (_, letters) = self.text.split_once(':').unwrap_or((self.text, ""));
        let terms = [Term::Word(event.to_owned())];
        let is_alone = pmus.len() == 1;
        let on = |pmu: &Pmu| {
            let name = match is_alone {
                true => self.text.to_owned(),
                false => format!("{}/{event}/{letters}", pmu.name),
            };
            self.pmu_event(pmu, &terms, name)
        };
        pmus.iter().map(on).collect()
    }

    /// Reason why no PMU here names the event: it has none such, or nobody has.
    fn unnamed(&self, event: &str) -> Result<Error, Error> {
        // A vendor's own name, of the tables that perf brings along, has a dot.
        let is_known = KERNEL_NAMES.iter().any(|prefix| event.starts_with(prefix));
        let cores = self.machine.core_pmus()?;
        let why = match cores.first() {
            None if is_known || event.contains('.') => {
                "it is an event of a processor's PMU, and this machine has none".to_owned()
            }
            Some(core) if is_known => {
                format!("this processor's PMU ({}) has no such event", core.name)
            }
            _ => return Ok(EventParseError::UnknownName(self.text.to_owned()).into()),
        };
        let (event, errno) = (self.text.to_owned(), rustix::io::Errno::NOENT);
        Ok(Error::NoSuchEvent { event, errno, why, remedy: "; try -e cpu-clock" })
    }

    /// Plans `PMU/TERMS/`.
    pub(super) fn terms(&self, pmu: &str, terms: &[Term]) -> Result<Vec<EventPlan>, Error> {
        if TRACE_PMUS.iter().any(|trace| pmu.starts_with(trace)) && self.machine.has_pmu(pmu) {
            let (event, pmu) = (self.text.to_owned(), pmu.to_owned());
            return Err(Error::TracePmu { event, pmu });
        }
        if let Some((pmu, instead)) = SOFTWARE_PMUS.iter().find(|(name, _)| *name == pmu) {
            return Err(Error::SoftwarePmu { event: self.text.to_owned(), pmu, instead });
        }
        if self.machine.has_pmu(pmu) {
            let pmu = self.machine.pmu(pmu)?;
            return Ok(vec![self.pmu_event(&pmu, terms, self.text.to_owned())?]);
        }
        // perf's name for the cores, whatever they are called.
        let cores = if pmu == "cpu" { self.machine.core_pmus()? } else { Vec::new() };
        if cores.is_empty() {
            let pmus = self.machine.pmus().join(", ");
            let (event, pmu) = (self.text.to_owned(), pmu.to_owned());
            return Err(Error::NoPmu { event, pmu, pmus });
        }
        let rest = self.text.strip_prefix(pmu).unwrap_or_default();
        let on = |core: &Pmu| self.pmu_event(core, terms, format!("{}{rest}", core.name));
        cores.iter().map(on).collect()
    }

    fn pmu_event(&self, pmu: &Pmu, terms: &[Term], name: String) -> Result<EventPlan, Error> {
        if pmu.is_shared {
            let (event, pmu) = (self.text.to_owned(), pmu.name.clone());
            return Err(Error::SharedPmu { event, pmu });
        }
        // `cpu_core/cycles/`: a generic event on one kind of core.
        if let [Term::Word(word)] = terms
            && pmu.event(word).is_none()
            && let Some(wanted @ (Wanted::Generic(_) | Wanted::Cache(_))) = name::known(word)
        {
            return self.plan(&coded(&wanted, Some(pmu), pmu.cpus.is_some(), name));
        }
        let encoding = Encoding::of(self.text, pmu, terms)?;
        self.plan(&Coded { pmu: Some(pmu), kind: pmu.kind, encoding, name })
    }

    fn plan(&self, coded: &Coded<'_>) -> Result<EventPlan, Error> {
        let Coded { pmu, kind, encoding, .. } = coded;
        let is_ibs = pmu.is_some_and(|pmu| pmu.name.starts_with("ibs_"));
        if is_ibs {
            self.check_ibs(encoding)?;
        }
        let event_kind = match (self.is_memory(coded), self.is_fetch(coded)) {
            (true, _) => EventKind::Memory,
            (_, true) => EventKind::Fetch,
            _ => EventKind::Other,
        };
        let is_memory = event_kind == EventKind::Memory;
        let (precise_ip, lowest) = if is_ibs { (0, 0) } else { self.precision(*pmu, is_memory) };
        let source = EventSource {
            source: Source::Counter(Counter {
                kind: *kind,
                config: encoding.words,
                precise_ip,
                access: is_memory.then(|| self.access()),
                has_fetch: is_ibs && event_kind == EventKind::Fetch,
                leader: leader(*pmu, encoding),
                levels: levels(*pmu),
                has_hypervisor: self.has_hypervisor(),
            }),
            sampling: self.sampling(encoding)?,
            varies: false,
            exclude_user: self.modifiers.exclude_user,
            exclude_kernel: self.modifiers.exclude_kernel,
        };
        let event = Event {
            name: encoding.name.clone().unwrap_or_else(|| coded.name.clone()),
            kind: event_kind,
            skid: counter_skid(u64::from(precise_ip), is_ibs),
            sampling: source.sampling,
            includes_kernel: true,
        };
        let plan = EventPlan {
            cpus: pmu.and_then(|pmu| pmu.cpus.clone()),
            drops_non_memory: is_ibs && is_memory,
            lowest_precise_ip: lowest,
            ..EventPlan::new(event, source)
        };
        Ok(if is_ibs || self.is_forwarded() { plan.by_ibs() } else { plan })
    }

    /// Precision at first, and at least.
    ///
    /// A memory event that is not precise has neither address nor data source, so it never is, and
    /// without a modifier is as precise as there is; perf opens it all the same.
    fn precision(&self, pmu: Option<&Pmu>, is_memory: bool) -> (u8, u8) {
        // `max_precise_show()` in Linux `arch/x86/events/core.c`; perf tries 3 regardless. It says 0
        // on AMD, where IBS takes over events that are to be precise.
        let cap = pmu.and_then(|pmu| pmu.cap("max_precise")?.parse().ok());
        let best = cap.filter(|&cap| cap > 0).unwrap_or(MAX_PRECISE).min(MAX_PRECISE);
        match self.modifiers.precision {
            Precision::Exactly(level) => (level, level),
            Precision::Unasked if !is_memory => (0, 0),
            Precision::Unasked | Precision::Best => (best, is_memory.into()),
        }
    }

    /// Tells whether not to leave out a hypervisor's level. AMD's counters know none, and IBS refuses to
    /// leave it out.
    fn has_hypervisor(&self) -> bool {
        self.modifiers.has_hypervisor || self.is_forwarded()
    }

    /// Tells whether IBS takes the event over, as it does with those of AMD's counters that are to be
    /// precise (`forward_event_to_ibs()`).
    fn is_forwarded(&self) -> bool {
        let is_precise = self.modifiers.precision != Precision::Unasked;
        is_precise && self.machine.processor.vendor == Vendor::Amd
    }

    /// Newer fields to ask for: the physical address only where the kernel shows its
    /// own addresses too (`PERF_SAMPLE_PHYS_ADDR` in `perf_event_open()`).
    const fn access(&self) -> AccessFields {
        AccessFields {
            has_weight_struct: true,
            has_page_size: true,
            has_physical: self.machine.allows_kernel(),
        }
    }

    fn sampling(&self, encoding: &Encoding) -> Result<Sampling, Error> {
        let max_hz = self.machine.max_sample_rate_hz.unwrap_or(DEFAULT_HZ);
        let default = Sampling::FrequencyHz(DEFAULT_HZ.min(max_hz.max(1)));
        match encoding.sampling.or(self.sampling).unwrap_or(default) {
            Sampling::Period(0) | Sampling::FrequencyHz(0) => Err(Error::ZeroSampling),
            sampling => Ok(sampling),
        }
    }

    fn check_ibs(&self, encoding: &Encoding) -> Result<(), Error> {
        let latency = encoding.words[1] & 0xfff;
        if latency != 0 && !IBS_LATENCIES.contains(&latency) {
            return Err(Error::LatencyOutOfRange {
                event: self.text.to_owned(),
                latency,
                min: *IBS_LATENCIES.start(),
                max: *IBS_LATENCIES.end(),
            });
        }
        Ok(())
    }

    /// Tells whether every sample is of a fetch of code.
    fn is_fetch(&self, coded: &Coded<'_>) -> bool {
        let Coded { pmu, kind, encoding, .. } = coded;
        let is_core =
            *kind == abi::PERF_TYPE_RAW || pmu.is_some_and(|pmu| pmu.name.starts_with("cpu"));
        let is_intel = self.machine.processor.vendor == Vendor::Intel;
        let is_ibs = pmu.is_some_and(|pmu| pmu.name == meaning::IBS_FETCH);
        is_ibs || (is_intel && is_core && meaning::is_fetch(encoding.words[0], encoding.words[1]))
    }

    /// Tells whether every sample is of a memory access, and tells its address.
    fn is_memory(&self, coded: &Coded<'_>) -> bool {
        let Coded { pmu, kind, encoding, .. } = coded;
        if pmu.is_some_and(|pmu| pmu.name == "ibs_op") {
            return true;
        }
        if matches!(encoding.alias.as_deref(), Some("mem-loads" | "mem-stores")) {
            return self.modifiers.precision != Precision::Exactly(0);
        }
        let processor = &self.machine.processor;
        let is_core = *kind == abi::PERF_TYPE_RAW || pmu.is_some_and(|pmu| pmu.cpus.is_some());
        let is_precise = self.modifiers.precision != Precision::Unasked;
        if processor.vendor != Vendor::Intel || !is_core || !is_precise {
            return false;
        }
        let (event, umask) = (encoding.words[0] & 0xff, encoding.words[0] >> 8 & 0xff);
        // The PEBS events with a data address (`intel_*_pebs_event_constraints` in Linux
        // `arch/x86/events/intel/ds.c`): load latency and stores, retired memory instructions, and
        // loads by where they hit.
        match (processor.is_nehalem(), event) {
            (true, 0x0b) => umask == 0x10,
            (false, 0xcd) => matches!(umask, 1 | 2),
            (false, 0xd0..=0xd4) => true,
            _ => false,
        }
    }
}

/// An event that is named or raw, on `pmu`: with its number where it is one of several kinds.
fn coded<'a>(wanted: &Wanted, pmu: Option<&'a Pmu>, is_hybrid: bool, name: String) -> Coded<'a> {
    let number = pmu.map_or(0, |pmu| u64::from(pmu.kind));
    let extended = if is_hybrid { number << PMU_SHIFT } else { 0 };
    let (kind, config) = match *wanted {
        Wanted::Generic(id) => (abi::PERF_TYPE_HARDWARE, id | extended),
        Wanted::Cache(config) => (abi::PERF_TYPE_HW_CACHE, config | extended),
        Wanted::Raw(config) if is_hybrid => (number as u32, config),
        Wanted::Raw(config) => (abi::PERF_TYPE_RAW, config),
        _ => (abi::PERF_TYPE_HARDWARE, 0),
    };
    let mut words = [0; N_CONFIG_WORDS];
    words[0] = config;
    Coded { pmu, kind, encoding: Encoding { words, ..Encoding::default() }, name }
}

/// The event that the kernel wants in front of `mem-loads` on Sapphire Rapids and Alder Lake
/// (`require_mem_loads_aux_event()` in Linux `arch/x86/events/intel/core.c`): it names it in sysfs
/// where it does.
fn leader(pmu: Option<&Pmu>, encoding: &Encoding) -> Option<u64> {
    let pmu = pmu.filter(|_| encoding.alias.as_deref() == Some("mem-loads"))?;
    pmu.event("mem-loads-aux")?;
    let terms = [Term::Word("mem-loads-aux".to_owned())];
    Encoding::of("mem-loads-aux", pmu, &terms).ok().map(|encoding| encoding.words[0])
}

/// Way in which the PMU leaves out levels. IBS knows none: newer kernels filter by themselves when told to
/// (`swfilt`), with older ones we do.
fn levels(pmu: Option<&Pmu>) -> Levels {
    let Some(pmu) = pmu.filter(|pmu| pmu.name.starts_with("ibs_")) else { return Levels::Bits };
    let mut words = [0; N_CONFIG_WORDS];
    match pmu.field("swfilt") {
        Some(field) if field.set(1, &mut words) => Levels::FilteredByKernel(words[2]),
        _ => Levels::FilteredByReader,
    }
}
