//! A set of offsets from one place.

use crate::limit;

/// A set of offsets: one of `starts`, and from there any number of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offset {
    starts: [i64; limit::MAX_OFFSETS],
    n_starts: usize,
    /// 0 for no step.
    pub(crate) step: u64,
}

impl Offset {
    pub(crate) const fn exact(offset: i64) -> Self {
        let mut starts = [0; limit::MAX_OFFSETS];
        starts[0] = offset;
        Self { starts, n_starts: 1, step: 0 }
    }

    pub(crate) fn starts(&self) -> &[i64] {
        &self.starts[..self.n_starts]
    }

    /// The only offset, if there is one.
    pub(crate) fn only(&self) -> Option<i64> {
        match (self.starts(), self.step) {
            ([only], 0) => Some(*only),
            _ => None,
        }
    }

    pub(crate) fn shifted(mut self, by: i64) -> Self {
        for start in &mut self.starts[..self.n_starts] {
            *start = start.wrapping_add(by);
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
        let mut mapped = Self { n_starts: 0, ..self };
        for start in self.starts() {
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
        if self.starts().iter().any(is_reached) {
            return;
        }
        if let Some(free) = self.starts.get_mut(self.n_starts) {
            *free = start;
            self.n_starts += 1;
            return;
        }
        let first = self.starts[0];
        let distances = self.starts().iter().chain([&start]);
        let step = distances
            .fold(self.step, |step, other| gcd(step, other.wrapping_sub(first).unsigned_abs()));
        *self = Self { step, ..Self::exact(first) };
    }
}

/// The greatest common divisor; 0 is divided by all.
pub(crate) fn gcd(first: u64, second: u64) -> u64 {
    let (mut first, mut second) = (first, second);
    while second != 0 {
        (first, second) = (second, first % second);
    }
    first
}
