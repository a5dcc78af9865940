//! The registers at the points of the walks back, each where it was put together: what has just been written in pieces would
//! have to wait for itself when it is copied.

use crate::x86_64::state::State;
use std::ops::{Index, IndexMut};

/// Number of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PointIdx(u32);

impl PointIdx {
    /// The sample itself, as long as no walk has gone on from there in its place.
    pub(super) const SAMPLE: Self = Self(0);
}

/// The registers at the points that are in use.
#[derive(Debug)]
pub(super) struct Points(Vec<State>);

impl Default for Points {
    fn default() -> Self {
        Self(vec![State::UNKNOWN])
    }
}

impl Points {
    /// Adds a point with these registers.
    pub(super) fn add(&mut self, state: State) -> PointIdx {
        let added = PointIdx(self.0.len() as u32);
        self.0.push(state);
        added
    }

    /// Adds a point with the registers of another.
    pub(super) fn copy(&mut self, of: PointIdx) -> PointIdx {
        let of = of.0 as usize;
        let copy = PointIdx(self.0.len() as u32);
        self.0.extend_from_within(of..=of);
        copy
    }

    /// Drops a point and those that were added after it; the sample itself stays.
    pub(super) fn drop_from(&mut self, first: PointIdx) {
        self.0.truncate((first.0 as usize).max(1));
    }
}

impl Index<PointIdx> for Points {
    type Output = State;

    fn index(&self, point: PointIdx) -> &State {
        &self.0[point.0 as usize]
    }
}

impl IndexMut<PointIdx> for Points {
    fn index_mut(&mut self, point: PointIdx) -> &mut State {
        &mut self.0[point.0 as usize]
    }
}
