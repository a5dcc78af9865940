//! Event selectors, in perf's spelling, and what each one makes the kernel count.

pub(crate) mod attr;
mod breakpoint;
pub(crate) mod counted;
mod counter;
mod encoding;
pub(crate) mod meaning;
mod memory;
mod modifier;
mod name;
pub(crate) mod period;
mod plan;
mod term;
mod wanted;

use crate::error::EventParseError;
pub use counted::{CountedGroup, CountedSelector};
pub(crate) use plan::EventPlan;

use crate::error::Error;
use crate::event::attr::{EventSource, Source};
use crate::system::machine::Machine;
use crate::system::tracefs::Tracefs;
use breakpoint::Access;
use counter::CounterRequest;
use dataspace_proto::address::Avma;
use dataspace_proto::event::{Event, EventKind, Sampling};
use memory::{Accesses, Choice};
use modifier::{Modifiers, are_modifiers};
use perf_event_open_sys::bindings as abi;
use std::fmt;
use wanted::Wanted;

/// Samples a second of a clock that nobody asked for anything else: a prime, so that it does not
/// march in step with what the target does every millisecond.
pub const DEFAULT_CLOCK_HZ: u64 = 499;

/// The shortest period of a clock that the kernel keeps (`perf_swevent_start_hrtimer()` in Linux
/// `kernel/events/core.c`).
const MIN_CLOCK_PERIOD_NS: u64 = 10_000;

/// An event as a person asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSelector {
    text: String,
    wanted: Wanted,
    modifiers: Modifiers,
}

impl fmt::Display for EventSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl EventSelector {
    /// Reads one selector: `cpu-clock`, `page-faults:u`, `mem:0x1000/8:w`, `syscalls:sys_enter_read`,
    /// `mem`, `cycles:pp`, `r1cd:p`, `cpu/mem-loads,ldlat=30/P`.
    ///
    /// Whether the machine has such an event is only seen when it is opened.
    ///
    /// # Errors
    /// [`EventParseError`], which says what is known.
    pub fn parse(text: &str) -> Result<Self, EventParseError> {
        let (wanted, letters) = wanted(text)?;
        let modifiers = Modifiers::parse(text, letters, wanted.is_counter())?;
        Ok(Self { text: text.to_owned(), wanted, modifiers })
    }

    /// The best event that needs no hardware: time on a CPU.
    #[must_use]
    pub fn cpu_clock() -> Self {
        Self {
            text: "cpu-clock".to_owned(),
            wanted: Wanted::Clock { config: abi::PERF_COUNT_SW_CPU_CLOCK },
            modifiers: Modifiers::default(),
        }
    }

    /// Plans for this selector on `machine`, sampled as `asked` or as is sane for the event:
    /// one plan, or more where there are several kinds of core or of access.
    ///
    /// # Errors
    /// [`Error`] where the machine has no such event, or what describes it cannot be read.
    pub(crate) fn plan(
        &self,
        asked: Option<Sampling>,
        machine: &Machine,
        tracefs: &Tracefs,
    ) -> Result<Vec<EventPlan>, Error> {
        if matches!(asked, Some(Sampling::Period(0) | Sampling::FrequencyHz(0))) {
            return Err(Error::ZeroSampling);
        }
        let (text, modifiers) = (self.text.as_str(), self.modifiers);
        let counter = CounterRequest { text, modifiers, sampling: asked, machine };
        let (source, kind) = match &self.wanted {
            Wanted::Clock { config } | Wanted::Software { config } => {
                let config = u64::from(*config);
                (Source::Software(config), meaning::software_kind(config))
            }
            &Wanted::Breakpoint { address, len_bytes, access } => {
                let kind = EventKind::Breakpoint { address: Avma(address), len_bytes };
                let source = Source::Breakpoint {
                    address,
                    len_bytes: u64::from(len_bytes),
                    access: access.bits(),
                };
                (source, kind)
            }
            Wanted::Tracepoint { system, name } => {
                let id = tracefs.tracepoint_id(system, name)?;
                (Source::Tracepoint(id), EventKind::Tracepoint)
            }
            Wanted::Memory(accesses) => {
                let choice = accesses.choose(machine, modifiers)?;
                return self.chosen(&choice, asked, machine, tracefs);
            }
            Wanted::Generic(_) | Wanted::Cache(_) | Wanted::Raw(_) => {
                return counter.core_event(&self.wanted);
            }
            Wanted::Named(event) => return counter.named_event(event),
            Wanted::Pmu { pmu, terms } => return counter.terms(pmu, terms),
        };
        Ok(vec![self.software(source, kind, asked, machine)])
    }

    /// The plan of an event that the kernel itself makes.
    fn software(
        &self,
        source: Source,
        kind: EventKind,
        asked: Option<Sampling>,
        machine: &Machine,
    ) -> EventPlan {
        let sampling = self.sampling(asked);
        let name = self.text.clone();
        let skid = meaning::kernel_skid(kind);
        let event = Event { name, kind, skid, sampling, includes_kernel: true };
        let source = EventSource {
            source,
            sampling,
            varies: false,
            exclude_user: self.modifiers.exclude_user,
            exclude_kernel: self.modifiers.exclude_kernel,
        };
        let warnings = self.warning(sampling).into_iter().chain(self.capped(asked, machine));
        let warnings = warnings.collect();
        EventPlan { warnings, ..EventPlan::new(event, source) }
    }

    /// The plans of the events that were chosen for memory accesses; the clock where there are none.
    fn chosen(
        &self,
        choice: &Choice,
        asked: Option<Sampling>,
        machine: &Machine,
        tracefs: &Tracefs,
    ) -> Result<Vec<EventPlan>, Error> {
        let (events, note) = match choice {
            Choice::Events(events, note) => (events, note.clone()),
            Choice::Nothing(why) => {
                if let Some(pmu) = machine.pmus().iter().find(|pmu| pmu.starts_with("arm_spe")) {
                    return Err(Error::TracePmu { event: self.text.clone(), pmu: pmu.clone() });
                }
                let levels = self.modifiers.levels().replace('h', "");
                let colon = if levels.is_empty() { "" } else { ":" };
                let clock = Self::parse(&format!("cpu-clock{colon}{levels}"))?;
                return clock.fallback(why, asked, machine, tracefs);
            }
        };
        let mut plans = Vec::new();
        for event in events {
            plans.extend(Self::parse(event)?.plan(asked, machine, tracefs)?);
        }
        if let Some(first) = plans.first_mut() {
            first.warnings.extend(note);
        }
        if let Wanted::Memory(accesses) = self.wanted {
            // What takes other operations too takes both kinds of accesses.
            for plan in plans.iter_mut().filter(|plan| plan.drops_non_memory) {
                plan.only = accesses.only();
            }
        }
        Ok(plans)
    }

    /// The plan of this event, which stands in for a better one, and says so.
    fn fallback(
        &self,
        why: &str,
        asked: Option<Sampling>,
        machine: &Machine,
        tracefs: &Tracefs,
    ) -> Result<Vec<EventPlan>, Error> {
        let mut plans = self.plan(asked, machine, tracefs)?;
        for plan in &mut plans {
            let name = &plan.event.name;
            plan.warnings.push(format!(
                "{why}: {name} is sampled instead, which tells where time goes, not which accesses \
                 miss"
            ));
        }
        Ok(plans)
    }

    /// A clock's frequency is a period to the kernel, which it then keeps; other events default to
    /// every occurrence, which is exact, and as rare as page faults or as few as was asked for.
    fn sampling(&self, asked: Option<Sampling>) -> Sampling {
        let Wanted::Clock { .. } = self.wanted else {
            return asked.unwrap_or(Sampling::Period(1));
        };
        let period_ns = match asked.unwrap_or(Sampling::FrequencyHz(DEFAULT_CLOCK_HZ)) {
            Sampling::Period(period_ns) => period_ns,
            Sampling::FrequencyHz(hz) => 1_000_000_000 / hz,
        };
        Sampling::Period(period_ns.max(MIN_CLOCK_PERIOD_NS))
    }

    /// Words for a clock that cannot be sampled as often as was asked for.
    fn capped(&self, asked: Option<Sampling>, machine: &Machine) -> Option<String> {
        let Wanted::Clock { .. } = self.wanted else { return None };
        let (what, period_ns) = match asked? {
            Sampling::Period(ns) => (format!("a sample each {ns} ns"), ns),
            Sampling::FrequencyHz(hz) => {
                (format!("{hz} samples a second"), 1_000_000_000 / hz.max(1))
            }
        };
        let text = &self.text;
        if period_ns < MIN_CLOCK_PERIOD_NS {
            let hz = 1_000_000_000 / MIN_CLOCK_PERIOD_NS;
            return Some(format!(
                "{text}: {what} is more than the {hz} a second that the kernel's timer keeps, and \
                 it is sampled that often"
            ));
        }
        let max_hz = machine.max_sample_rate_hz?;
        (1_000_000_000 / period_ns > max_hz).then(|| {
            format!(
                "{text}: {what} is more than the {max_hz} a second of \
                 kernel.perf_event_max_sample_rate: the kernel stops the clock of a CPU that had \
                 its share, and the time is shown as throttled; sudo sysctl \
                 kernel.perf_event_max_sample_rate=NUMBER lifts that"
            )
        })
    }

    fn warning(&self, sampling: Sampling) -> Option<String> {
        let text = &self.text;
        if let Wanted::Breakpoint { access: Access::Read, .. } = self.wanted {
            return Some(format!(
                "{text}: this machine's debug registers cannot watch reads alone; writes are \
                 counted too"
            ));
        }
        // Measured: 5 samples of 147 page faults with periods that add up to 25,257.
        matches!(sampling, Sampling::FrequencyHz(_)).then(|| {
            format!(
                "{text}: sampled by frequency, its weights are the kernel's guesses at the next \
                 period, and far off in a short run; a period (-c) makes them exact"
            )
        })
    }
}

/// Plans of a session that was not told what to sample: memory accesses where the machine has a PMU for
/// them and `opens` says that the kernel lets us have it, else the clock.
///
/// `opens` tries a plan on a place of the caller's choice, and says why not.
///
/// # Errors
/// Those of planning the clock: none, in truth.
pub(crate) fn best(
    asked: Option<Sampling>,
    machine: &Machine,
    tracefs: &Tracefs,
    mut opens: impl FnMut(&mut EventPlan) -> Result<(), Error>,
) -> Result<Vec<EventPlan>, Error> {
    let memory = EventSelector {
        text: "mem".to_owned(),
        wanted: Wanted::Memory(Accesses::All),
        modifiers: Modifiers::default(),
    };
    let found = match Accesses::All.choose(machine, memory.modifiers) {
        Ok(Choice::Nothing(why)) => Err(why),
        Ok(choice) => memory.chosen(&choice, asked, machine, tracefs).map_err(|e| e.to_string()),
        // What sysfs says makes no sense: that is no reason to sample nothing.
        Err(error) => Err(error.to_string()),
    };
    let why = match found {
        Err(why) => why,
        Ok(mut plans) => match plans.iter_mut().try_for_each(&mut opens) {
            Ok(()) => return Ok(plans),
            Err(error) => error.to_string(),
        },
    };
    EventSelector::cpu_clock().fallback(&why, asked, machine, tracefs)
}

/// The events that sample memory accesses on `machine`, in perf's spelling; or why there are none.
///
/// # Errors
/// [`Error::Sysfs`] if what describes them makes no sense.
pub(crate) fn memory_events(machine: &Machine) -> Result<Result<Vec<String>, String>, Error> {
    Ok(match Accesses::All.choose(machine, Modifiers::default())? {
        Choice::Events(events, _) => Ok(events),
        Choice::Nothing(why) => Err(why),
    })
}

/// Event that `text` asks for, and the letters of its modifiers.
fn wanted(text: &str) -> Result<(Wanted, &str), EventParseError> {
    if let Some(rest) = text.strip_prefix("mem:")
        && (rest.is_empty() || !are_modifiers(rest))
    {
        return breakpoint::breakpoint(text, rest);
    }
    if let Some((pmu, rest)) = text.split_once('/') {
        return in_slashes(text, pmu, rest);
    }
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    if let Some(wanted) = Accesses::named(name).map(Wanted::Memory).or_else(|| name::known(name)) {
        return Ok((wanted, rest));
    }
    if is_word(name) && are_modifiers(rest) {
        return Ok((Wanted::Named(name.to_owned()), rest));
    }
    tracepoint(text, name, rest)
}

/// `PMU/TERMS/MODIFIERS`, and the modifiers.
fn in_slashes<'a>(
    text: &str,
    pmu: &str,
    rest: &'a str,
) -> Result<(Wanted, &'a str), EventParseError> {
    // The name becomes a path.
    if !is_word(pmu) {
        return Err(EventParseError::UnknownName(text.to_owned()));
    }
    let (list, letters) =
        rest.split_once('/').ok_or_else(|| EventParseError::OpenTerms(text.to_owned()))?;
    let terms = term::terms(text, list)?;
    let letters = letters.strip_prefix(':').unwrap_or(letters);
    Ok((Wanted::Pmu { pmu: pmu.to_owned(), terms }, letters))
}

fn is_word(word: &str) -> bool {
    let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    !word.is_empty() && !word.starts_with('.') && word.bytes().all(is_of_word)
}

/// `SYSTEM:NAME[:MODIFIERS]`, and the modifiers.
fn tracepoint<'a>(
    text: &str,
    system: &str,
    rest: &'a str,
) -> Result<(Wanted, &'a str), EventParseError> {
    let (name, modifiers) = rest.split_once(':').unwrap_or((rest, ""));
    // The names become a path.
    if !is_word(system) || !is_word(name) {
        return Err(EventParseError::UnknownName(text.to_owned()));
    }
    Ok((Wanted::Tracepoint { system: system.to_owned(), name: name.to_owned() }, modifiers))
}

#[cfg(test)]
mod goldens;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    fn plan(text: &str, asked: Option<Sampling>) -> EventPlan {
        let nowhere = Path::new("/nonexistent");
        let (machine, tracefs) = (Machine::read(nowhere), Tracefs::new(nowhere));
        let mut plans =
            EventSelector::parse(text).unwrap().plan(asked, &machine, &tracefs).unwrap();
        assert_eq!(plans.len(), 1, "{text}");
        plans.remove(0)
    }

    #[test]
    fn modifiers_exclude_the_level_that_is_not_named() {
        let levels = |text| {
            let source = plan(text, None).source;
            (source.exclude_user, source.exclude_kernel)
        };
        assert_eq!(levels("cpu-clock"), (false, false));
        assert_eq!(levels("cpu-clock:u"), (false, true));
        assert_eq!(levels("task-clock:k"), (true, false));
        assert_eq!(levels("faults:uk"), (false, false));
        assert_eq!(levels("mem:0x1000/8:w:u"), (false, true));
        assert_eq!(levels("mem:0x1000:u"), (false, true));
    }

    #[test]
    fn breakpoints_are_read_as_perf_reads_them() {
        for (text, address, len_bytes, access) in [
            ("mem:0x1000", 0x1000, 4, abi::HW_BREAKPOINT_RW),
            ("mem:4096/8:w", 0x1000, 8, abi::HW_BREAKPOINT_W),
            ("mem:0x1001/1:rw:u", 0x1001, 1, abi::HW_BREAKPOINT_RW),
            ("mem:0x1002/2:r", 0x1002, 2, abi::HW_BREAKPOINT_RW),
        ] {
            let source = Source::Breakpoint { address, len_bytes, access };
            assert_eq!(plan(text, None).source.source, source, "{text}");
        }
        assert_eq!(plan("mem:0x1000:r", None).warnings.len(), 1);
        assert!(plan("mem:0x1000:rw", None).warnings.is_empty());
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_reason() {
        let error = |text| EventSelector::parse(text).unwrap_err();
        assert!(matches!(error("cycles:G"), EventParseError::UnknownModifier { .. }));
        assert!(matches!(error("cycles:pppp"), EventParseError::TooPrecise(_)));
        assert!(matches!(error("cpu/event=1"), EventParseError::OpenTerms(_)));
        assert!(matches!(error("cpu/event=x/"), EventParseError::BadTerm { .. }));
        assert!(matches!(error(""), EventParseError::UnknownName(_)));
        assert!(matches!(error("../x:y"), EventParseError::UnknownName(_)));
        assert!(matches!(error("cpu-clock:p"), EventParseError::UnknownModifier { .. }));
        assert!(matches!(error("mem:"), EventParseError::BadAddress(_)));
        assert!(matches!(error("mem:0x1000/3"), EventParseError::BadLength(_)));
        assert!(matches!(error("mem:0x1001/8"), EventParseError::Misaligned { .. }));
        assert!(matches!(error("mem:0x1000:x"), EventParseError::Execution(_)));
    }

    #[test]
    fn what_a_machine_without_a_pmu_has_not_is_no_mistake_of_the_users() {
        use crate::error::ErrorKind;
        let nowhere = Path::new("/nonexistent");
        let (machine, tracefs) = (Machine::read(nowhere), Tracefs::new(nowhere));
        let error =
            |text| EventSelector::parse(text).unwrap().plan(None, &machine, &tracefs).unwrap_err();
        for text in ["mem-loads", "mem-stores:p", "topdown-retiring", "mem_load_retired.l1_miss"] {
            let error = error(text);
            assert_eq!(error.kind(), ErrorKind::MachineCannot, "{error}");
            assert!(error.to_string().contains("this machine has none"), "{error}");
        }
        for text in ["cpu-clokc", "software/config=1/", "tracepoint/config=1/"] {
            let error = error(text);
            assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        }
        assert!(error("tracepoint/config=1/").to_string().contains("SYSTEM:NAME"));
    }

    #[test]
    fn a_clock_has_a_period_and_others_keep_what_was_asked() {
        let sampling = |text, asked| plan(text, asked).event.sampling;
        assert_eq!(sampling("cpu-clock", None), Sampling::Period(2_004_008));
        let hz = |hz| Some(Sampling::FrequencyHz(hz));
        assert_eq!(sampling("cpu-clock", hz(1_000)), Sampling::Period(1_000_000));
        assert_eq!(sampling("cpu-clock", hz(1_000_000)), Sampling::Period(10_000));
        assert_eq!(sampling("faults", hz(100)), Sampling::FrequencyHz(100));
        assert_eq!(sampling("faults", None), Sampling::Period(1));
        let (machine, tracefs) = (Machine::read(Path::new("/")), Tracefs::new(Path::new("/")));
        let zero = EventSelector::cpu_clock().plan(hz(0), &machine, &tracefs);
        assert!(matches!(zero, Err(Error::ZeroSampling)));
    }

    #[test]
    fn a_clock_that_cannot_be_as_fast_as_asked_for_says_how_fast_it_is() {
        let warnings = |asked| plan("cpu-clock", Some(asked)).warnings.join("");
        for asked in [Sampling::FrequencyHz(999_999_999), Sampling::Period(9_999)] {
            let said = warnings(asked);
            assert!(said.contains("100000 a second that the kernel's timer keeps"), "{said}");
        }
        for asked in [Sampling::FrequencyHz(100_000), Sampling::Period(10_000)] {
            assert_eq!(warnings(asked), "");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "(mem:)?\\PC{0,40}") {
            if let Ok(selector) = EventSelector::parse(&text) {
                prop_assert_eq!(selector.to_string(), text);
            }
        }
    }
}
