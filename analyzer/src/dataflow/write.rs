//! Values that a place is set to in a run of instructions.

use super::value::ValueIdx;

/// Values that a place is set to in a run, each with its instruction, in order: mostly one.
#[derive(Debug)]
pub(super) enum Writes {
    One((u32, ValueIdx)),
    Several(Vec<(u32, ValueIdx)>),
}

impl Writes {
    pub(super) fn as_slice(&self) -> &[(u32, ValueIdx)] {
        match self {
            Self::One(write) => std::slice::from_ref(write),
            Self::Several(writes) => writes,
        }
    }

    /// Adds what the instruction at `at` sets it to, which is the last so far.
    pub(super) fn add(&mut self, at: u32, value: ValueIdx) {
        match self {
            Self::One((last, known)) if *last == at => *known = value,
            Self::One(first) => *self = Self::Several(vec![*first, (at, value)]),
            Self::Several(writes) => match writes.last_mut() {
                Some((last, known)) if *last == at => *known = value,
                _ => writes.push((at, value)),
            },
        }
    }
}
