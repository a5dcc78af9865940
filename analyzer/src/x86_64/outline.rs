//! A function before its code is looked at: its parts, and where it is known to be entered.

use dataspace_proto::address::Svma;

/// Parts of a function and the ways into it, as far as they are known before its code is looked at.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// The pieces of its code, which do not overlap.
    pub parts: Vec<CodePart>,
    /// Addresses inside the parts that are entered like a function: other symbols, targets of
    /// calls from elsewhere.
    pub entries: Vec<Svma>,
    /// Addresses at which the unwinder resumes.
    pub landing_pads: Vec<Svma>,
    /// Addresses to which code outside the parts jumps.
    pub jumped_to: Vec<Svma>,
    /// Addresses of its labels that stand in data.
    pub labels: Vec<Svma>,
    /// There may be ways in that are not in here: landing pads that could not be read, code that
    /// was not searched for jumps.
    pub has_more_ways_in: bool,
}

/// A piece of a function's code.
#[derive(Clone, Debug)]
pub struct CodePart {
    /// First address.
    pub start: Svma,
    /// Its bytes.
    pub code: Vec<u8>,
    /// True if it is entered at its start. What a compiler moved away (`name.cold`) is jumped to.
    pub is_entered: bool,
}
