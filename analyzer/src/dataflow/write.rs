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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_instruction_sets_last_counts() {
        let write = |(at, value)| (at, ValueIdx(value));
        let mut writes = Writes::One(write((3, 1)));
        for (added, expected) in [
            ((3, 2), vec![(3, 2)]),
            ((5, 3), vec![(3, 2), (5, 3)]),
            ((5, 4), vec![(3, 2), (5, 4)]),
            ((8, 4), vec![(3, 2), (5, 4), (8, 4)]),
        ] {
            writes.add(added.0, ValueIdx(added.1));
            assert_eq!(writes.as_slice(), expected.into_iter().map(write).collect::<Vec<_>>());
        }
    }
}
