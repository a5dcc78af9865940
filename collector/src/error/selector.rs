//! Reasons why an event selector cannot be read.

use thiserror::Error;

/// Events that are typed most.
const USUAL: [&str; 20] = [
    "mem",
    "loads",
    "stores",
    "cpu-clock",
    "task-clock",
    "page-faults",
    "minor-faults",
    "major-faults",
    "cycles",
    "cpu-cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "ref-cycles",
    "L1-dcache-load-misses",
    "LLC-load-misses",
    "LLC-store-misses",
    "dTLB-load-misses",
];

/// The part of a name that is compared with these: more than the longest one of them.
const MAX_COMPARED_CHARS: usize = 64;

/// The usual event that was meant by `name`; where none is spelled like it, all that may be named.
fn others(name: &str) -> String {
    let compared: String = name.chars().take(MAX_COMPARED_CHARS).collect();
    let most = (compared.chars().count() / 3).max(1);
    let nearest = USUAL.iter().map(|usual| (strsim::osa_distance(&compared, usual), usual)).min();
    match nearest {
        Some((slips, usual)) if slips <= most => format!("; did you mean {usual}?"),
        _ => ": known are mem, loads, stores, cpu-clock, task-clock, page-faults, minor-faults, major-faults, \
              mem:0xADDRESS[/LENGTH][:rw], mem:VARIABLE[:rw], SYSTEM:TRACEPOINT, the generic hardware events \
              (cycles, cache-misses, LLC-load-misses, …), raw ones (r1cd), and what \
              /sys/bus/event_source/devices describes: PMU/TERMS/, or an event's name"
            .to_owned(),
    }
}

/// Reason why a selector cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EventParseError {
    /// There is no event of that name.
    #[error("there is no event {name}{others}", name = .0, others = others(.0))]
    UnknownName(String),
    /// A modifier after the last colon or slash has no meaning here.
    #[error("{text} has the modifier {modifier}: known are {known}")]
    UnknownModifier {
        /// The selector.
        text: String,
        /// The letter.
        modifier: char,
        /// The letters that have a meaning for this event.
        known: &'static str,
    },
    /// More precision than there is.
    #[error("{0} asks for more precision than ppp (precise_ip 3)")]
    TooPrecise(String),
    /// The terms between slashes do not end.
    #[error("{0}: the terms of an event end with a slash, as in cpu/mem-loads,ldlat=30/")]
    OpenTerms(String),
    /// The value of a term is no number.
    #[error("{text}: the term {term} needs a number, as in ldlat=30 or umask=0x20")]
    BadTerm {
        /// The selector.
        text: String,
        /// The term as it was typed.
        term: String,
    },
    /// The PMU has no such term.
    #[error("{text}: {pmu} has no term {term}: known are {known}")]
    UnknownTerm {
        /// The selector.
        text: String,
        /// The PMU.
        pmu: String,
        /// The term.
        term: String,
        /// The terms that it knows.
        known: String,
    },
    /// The value does not fit the term's bits.
    #[error("{text}: {term}={value:#x} is more than the {max:#x} that its bits hold")]
    TermTooLarge {
        /// The selector.
        text: String,
        /// The term.
        term: String,
        /// The value that was asked for.
        value: u64,
        /// The most that fits.
        max: u64,
    },
    /// The event stands for terms that have to be given (`event=?` in sysfs).
    #[error("{text}: {event} needs {term}=NUMBER beside it")]
    MissingTerm {
        /// The selector.
        text: String,
        /// The event's name.
        event: String,
        /// The term.
        term: String,
    },
    /// The address of a breakpoint is no number.
    #[error(
        "{0} needs an address, as in mem:0x7ffd12345678/8:rw, or with -p PID the name of data, as in mem:stats.hits:w"
    )]
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
