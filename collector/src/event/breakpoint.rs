//! Breakpoints in perf's spelling: `mem:ADDRESS[/LENGTH][:ACCESS]`.

use super::term::number;
use super::wanted::Wanted;
use crate::error::EventParseError;
use perf_event_open_sys::bindings as abi;

/// Accesses that a breakpoint watches for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    ReadWrite,
}

impl Access {
    pub(super) const fn bits(self) -> u32 {
        match self {
            // x86 refuses a breakpoint on reads only (arch_build_bp_info()).
            Self::Read | Self::ReadWrite => abi::HW_BREAKPOINT_RW,
            Self::Write => abi::HW_BREAKPOINT_W,
        }
    }
}

/// `ADDRESS[/LENGTH][:ACCESS][:MODIFIERS]`, and the modifiers.
pub(super) fn breakpoint<'a>(
    text: &str,
    rest: &'a str,
) -> Result<(Wanted, &'a str), EventParseError> {
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
    let (first, after) = rest.split_once(':').unwrap_or((rest, ""));
    let (access, modifiers) = match first {
        "r" => (Access::Read, after),
        "w" => (Access::Write, after),
        "rw" | "wr" => (Access::ReadWrite, after),
        _ if first.contains('x') => return Err(EventParseError::Execution(text.to_owned())),
        _ => (Access::ReadWrite, rest),
    };
    Ok((Wanted::Breakpoint { address, len_bytes, access }, modifiers))
}
