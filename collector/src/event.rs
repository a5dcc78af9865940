//! Event selectors, in perf's spelling, and what each one makes the kernel count.

use crate::error::Error;
use crate::sys::attr::{EventSource, Source};
use crate::tracefs::Tracefs;
use dataspace_proto::address::Avma;
use dataspace_proto::event::{Event, EventKind, Sampling, SkidModel};
use perf_event_open_sys::bindings as abi;
use std::fmt;
use thiserror::Error as ThisError;

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
    exclude_user: bool,
    exclude_kernel: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    Clock { config: u32 },
    PageFaults { config: u32 },
    Breakpoint { address: u64, len_bytes: u8, access: Access },
    Tracepoint { system: String, name: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    ReadWrite,
}

/// Why a selector cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[non_exhaustive]
pub enum EventParseError {
    /// There is no event of that name.
    #[error(
        "there is no event {0}: known are cpu-clock, task-clock, page-faults, minor-faults, \
         major-faults, mem:0xADDRESS[/LENGTH][:rw] and SYSTEM:TRACEPOINT"
    )]
    UnknownName(String),
    /// A modifier behind the last colon has no meaning here.
    #[error("{text} has the modifier {modifier}: known are u (user) and k (kernel)")]
    UnknownModifier {
        /// The selector.
        text: String,
        /// The letter.
        modifier: char,
    },
    /// The address of a breakpoint is no number.
    #[error("{0} needs an address, as in mem:0x7ffd12345678/8:rw")]
    BadAddress(String),
    /// The length of a breakpoint is not 1, 2, 4 or 8.
    #[error("{0} watches a length that no debug register can: 1, 2, 4 or 8 bytes")]
    BadLength(String),
    /// The address is not a multiple of the length.
    #[error(
        "{text} is misaligned: {address:#x} is not a multiple of {len_bytes}; a debug register \
         watches 1, 2, 4 or 8 bytes at such a multiple"
    )]
    Misaligned {
        /// The selector.
        text: String,
        /// The address.
        address: u64,
        /// The length.
        len_bytes: u8,
    },
    /// A breakpoint on execution.
    #[error("{0} watches execution, which accesses no data: r, w and rw are known")]
    Execution(String),
}

impl fmt::Display for EventSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl EventSelector {
    /// Reads one selector: `cpu-clock`, `page-faults:u`, `mem:0x1000/8:w`, `syscalls:sys_enter_read`.
    ///
    /// # Errors
    /// [`EventParseError`], which says what is known.
    pub fn parse(text: &str) -> Result<Self, EventParseError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let (wanted, modifiers) = match name {
            "mem" => breakpoint(text, rest)?,
            _ => match software(name) {
                Some(wanted) => (wanted, rest),
                None => tracepoint(text, name, rest)?,
            },
        };
        let mut selector =
            Self { text: text.to_owned(), wanted, exclude_user: false, exclude_kernel: false };
        selector.modify(modifiers)?;
        Ok(selector)
    }

    /// The best event that needs no hardware: time on a CPU.
    #[must_use]
    pub fn cpu_clock() -> Self {
        Self {
            text: "cpu-clock".to_owned(),
            wanted: Wanted::Clock { config: abi::PERF_COUNT_SW_CPU_CLOCK },
            exclude_user: false,
            exclude_kernel: false,
        }
    }

    /// perf's rule: once one level is named, the others are out.
    fn modify(&mut self, modifiers: &str) -> Result<(), EventParseError> {
        let (mut user, mut kernel) = (false, false);
        for modifier in modifiers.chars() {
            match modifier {
                'u' => user = true,
                'k' => kernel = true,
                _ => {
                    let text = self.text.clone();
                    return Err(EventParseError::UnknownModifier { text, modifier });
                }
            }
        }
        if user || kernel {
            (self.exclude_user, self.exclude_kernel) = (!user, !kernel);
        }
        Ok(())
    }

    /// What to open for this selector, sampled as `asked` or as is sane for the event.
    pub(crate) fn plan(
        &self,
        asked: Option<Sampling>,
        tracefs: &Tracefs,
    ) -> Result<EventPlan, Error> {
        if matches!(asked, Some(Sampling::Period(0) | Sampling::FrequencyHz(0))) {
            return Err(Error::ZeroSampling);
        }
        let (source, kind, skid) = match &self.wanted {
            Wanted::Clock { config } => {
                (Source::Software(u64::from(*config)), EventKind::Clock, SkidModel::AfterOne)
            }
            Wanted::PageFaults { config } => {
                (Source::Software(u64::from(*config)), EventKind::PageFault, SkidModel::Exact)
            }
            &Wanted::Breakpoint { address, len_bytes, access } => {
                let kind = EventKind::Breakpoint { address: Avma(address), len_bytes };
                let source = Source::Breakpoint {
                    address,
                    len_bytes: u64::from(len_bytes),
                    access: access.bits(),
                };
                (source, kind, SkidModel::AfterOne)
            }
            Wanted::Tracepoint { system, name } => {
                let id = tracefs.tracepoint_id(system, name)?;
                (Source::Tracepoint(id), EventKind::Tracepoint, SkidModel::Exact)
            }
        };
        let sampling = self.sampling(asked);
        Ok(EventPlan {
            event: Event {
                name: self.text.clone(),
                kind,
                skid,
                sampling,
                includes_kernel: !self.exclude_kernel,
            },
            source: EventSource {
                source,
                sampling,
                exclude_user: self.exclude_user,
                exclude_kernel: self.exclude_kernel,
            },
            warning: self.warning(sampling),
        })
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

/// What is opened for a selector.
#[derive(Clone, Debug)]
pub(crate) struct EventPlan {
    /// As the analyzer is told.
    pub(crate) event: Event,
    /// As the kernel is told.
    pub(crate) source: EventSource,
    /// What a person should know.
    pub(crate) warning: Option<String>,
}

impl Access {
    const fn bits(self) -> u32 {
        match self {
            // x86 refuses a breakpoint on reads only (arch_build_bp_info()).
            Self::Read | Self::ReadWrite => abi::HW_BREAKPOINT_RW,
            Self::Write => abi::HW_BREAKPOINT_W,
        }
    }
}

fn software(name: &str) -> Option<Wanted> {
    Some(match name {
        "cpu-clock" => Wanted::Clock { config: abi::PERF_COUNT_SW_CPU_CLOCK },
        "task-clock" => Wanted::Clock { config: abi::PERF_COUNT_SW_TASK_CLOCK },
        "page-faults" | "faults" => Wanted::PageFaults { config: abi::PERF_COUNT_SW_PAGE_FAULTS },
        "minor-faults" => Wanted::PageFaults { config: abi::PERF_COUNT_SW_PAGE_FAULTS_MIN },
        "major-faults" => Wanted::PageFaults { config: abi::PERF_COUNT_SW_PAGE_FAULTS_MAJ },
        _ => return None,
    })
}

/// `ADDRESS[/LENGTH][:ACCESS][:MODIFIERS]`, and the modifiers.
fn breakpoint<'a>(text: &str, rest: &'a str) -> Result<(Wanted, &'a str), EventParseError> {
    let (place, rest) = rest.split_once(':').unwrap_or((rest, ""));
    let (address, len_bytes) = place.split_once('/').unwrap_or((place, "4"));
    let address = number(address).ok_or_else(|| EventParseError::BadAddress(text.to_owned()))?;
    let len_bytes = match number(len_bytes) {
        Some(len_bytes @ (1 | 2 | 4 | 8)) => len_bytes as u8,
        _ => return Err(EventParseError::BadLength(text.to_owned())),
    };
    if address % u64::from(len_bytes) != 0 {
        return Err(EventParseError::Misaligned { text: text.to_owned(), address, len_bytes });
    }
    let (first, behind) = rest.split_once(':').unwrap_or((rest, ""));
    let (access, modifiers) = match first {
        "r" => (Access::Read, behind),
        "w" => (Access::Write, behind),
        "rw" | "wr" => (Access::ReadWrite, behind),
        _ if first.contains('x') => return Err(EventParseError::Execution(text.to_owned())),
        _ => (Access::ReadWrite, rest),
    };
    Ok((Wanted::Breakpoint { address, len_bytes, access }, modifiers))
}

/// `SYSTEM:NAME[:MODIFIERS]`, and the modifiers.
fn tracepoint<'a>(
    text: &str,
    system: &str,
    rest: &'a str,
) -> Result<(Wanted, &'a str), EventParseError> {
    let (name, modifiers) = rest.split_once(':').unwrap_or((rest, ""));
    let is_word = |word: &str| {
        !word.is_empty()
            && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    };
    // The names become a path.
    if !is_word(system) || !is_word(name) {
        return Err(EventParseError::UnknownName(text.to_owned()));
    }
    Ok((Wanted::Tracepoint { system: system.to_owned(), name: name.to_owned() }, modifiers))
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    fn plan(text: &str, asked: Option<Sampling>) -> EventPlan {
        let tracefs = Tracefs::new(Path::new("/nonexistent"));
        EventSelector::parse(text).unwrap().plan(asked, &tracefs).unwrap()
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
        assert!(plan("mem:0x1000:r", None).warning.is_some());
        assert!(plan("mem:0x1000:rw", None).warning.is_none());
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_reason() {
        let error = |text| EventSelector::parse(text).unwrap_err();
        assert!(matches!(error("cycles"), EventParseError::UnknownName(_)));
        assert!(matches!(error(""), EventParseError::UnknownName(_)));
        assert!(matches!(error("../x:y"), EventParseError::UnknownName(_)));
        assert!(matches!(error("cpu-clock:p"), EventParseError::UnknownModifier { .. }));
        assert!(matches!(error("mem:"), EventParseError::BadAddress(_)));
        assert!(matches!(error("mem:0x1000/3"), EventParseError::BadLength(_)));
        assert!(matches!(error("mem:0x1001/8"), EventParseError::Misaligned { .. }));
        assert!(matches!(error("mem:0x1000:x"), EventParseError::Execution(_)));
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
        let zero = EventSelector::cpu_clock().plan(hz(0), &Tracefs::new(Path::new("/")));
        assert!(matches!(zero, Err(Error::ZeroSampling)));
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
