//! A set of offsets from one place.

use crate::limit;

/// A set of offsets: one of `starts`, and from there any number of steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Offset {
    starts: Starts,
    /// 0 for no step.
    pub(crate) step: u64,
}

/// Nearly all addresses have one offset: the others are kept apart, so that values stay small.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Starts {
    One(i64),
    Several(Box<[i64]>),
}

impl Offset {
    pub(crate) const fn exact(offset: i64) -> Self {
        Self { starts: Starts::One(offset), step: 0 }
    }

    pub(crate) fn starts(&self) -> &[i64] {
        match &self.starts {
            Starts::One(start) => std::slice::from_ref(start),
            Starts::Several(starts) => starts,
        }
    }

    /// The only offset, if there is one.
    pub(crate) fn only(&self) -> Option<i64> {
        match (self.starts(), self.step) {
            ([only], 0) => Some(*only),
            _ => None,
        }
    }

    pub(crate) fn shifted(mut self, by: i64) -> Self {
        match &mut self.starts {
            Starts::One(start) => *start = start.wrapping_add(by),
            Starts::Several(starts) => {
                starts.iter_mut().for_each(|start| *start = start.wrapping_add(by));
            }
        }
        self
    }

    /// Any number of steps further or back.
    pub(crate) fn stepped(mut self, step: u64) -> Self {
        self.step = gcd(self.step, step);
        self
    }

    /// Each offset changed.
    pub(crate) fn map(self, change: impl Fn(i64) -> i64) -> Self {
        let (first, rest) = match &self.starts {
            Starts::One(only) => (only, &[][..]),
            Starts::Several(starts) => match starts.split_first() {
                Some(parts) => parts,
                None => return self,
            },
        };
        let mut mapped = Self { starts: Starts::One(change(*first)), step: self.step };
        for start in rest {
            mapped.add(change(*start));
        }
        mapped
    }

    pub(super) fn join(mut self, other: Self) -> Self {
        self.step = gcd(self.step, other.step);
        for start in other.starts() {
            self.add(*start);
        }
        self
    }

    /// Another start; where there are too many, the steps between them.
    fn add(&mut self, start: i64) {
        let is_reached = |known: &i64| {
            let distance = start.wrapping_sub(*known).unsigned_abs();
            distance == 0 || self.step != 0 && distance.is_multiple_of(self.step)
        };
        let starts = self.starts();
        if starts.iter().any(is_reached) {
            return;
        }
        if starts.len() < limit::MAX_OFFSETS {
            self.starts = Starts::Several(starts.iter().copied().chain([start]).collect());
            return;
        }
        let step = gcd(self.step, distances(&[starts, &[start]].concat()));
        *self = Self { step, ..Self::exact(starts[0]) };
    }
}

/// The greatest number that the distances of places are multiples of; 0 for one place.
pub(super) fn distances(places: &[i64]) -> u64 {
    let each = places.iter().map(|place| place.wrapping_sub(places[0]).unsigned_abs());
    each.fold(0, gcd)
}

/// The greatest common divisor; 0 is divided by all.
pub(crate) fn gcd(first: u64, second: u64) -> u64 {
    let (mut first, mut second) = (first, second);
    while second != 0 {
        (first, second) = (second, first % second);
    }
    first
}
