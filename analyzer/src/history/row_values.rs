//! One field of the samples of a chunk, which takes no room while all have the same.

use crate::history::chunk::{CHUNK_ROWS, RUN_ROWS};
use std::ops::Deref;
use std::sync::Arc;

/// The values of one field, by row. Those after the last row of the chunk are any, or not there.
#[derive(Debug)]
pub(crate) struct RowValues<T> {
    /// One value everywhere, in memory that all chunks of a history share.
    same: Arc<[T]>,
    /// The values themselves, where not all are that one.
    own: Vec<T>,
}

impl<T: Copy + PartialEq> RowValues<T> {
    /// A field that has this value for now.
    pub(crate) fn all(value: T) -> Self {
        Self { same: vec![value; CHUNK_ROWS].into(), own: Vec::new() }
    }

    /// The same field of another chunk, of which nothing is known yet.
    pub(crate) fn like(other: &Self) -> Self {
        Self { same: Arc::clone(&other.same), own: Vec::new() }
    }

    /// Adds the values of the rows from `first` on, for which there is room.
    #[inline]
    pub(crate) fn extend(&mut self, first: usize, more: &[T]) {
        let same = self.same[0];
        if self.own.is_empty() {
            // Of a known number of values, most often, less has to be decided.
            let is_same = match <&[T; RUN_ROWS]>::try_from(more) {
                Ok(run) => are_all(run, same),
                Err(_) => are_all(more, same),
            };
            if is_same {
                return;
            }
            self.own.reserve_exact(CHUNK_ROWS);
            self.own.resize(first, same);
        }
        self.own.extend_from_slice(more);
    }

    /// Takes all values away, and keeps their room.
    pub(crate) fn clear(&mut self) {
        self.own.clear();
    }

    /// Bytes that it takes by itself.
    pub(crate) const fn bytes(&self) -> usize {
        self.own.capacity() * size_of::<T>()
    }
}

/// Tells whether all values are this one. Without a way out in the middle several are compared at once.
#[inline]
fn are_all<T: Copy + PartialEq>(values: &[T], one: T) -> bool {
    values.iter().fold(true, |are_same, value| are_same & (*value == one))
}

impl<T: Clone> Clone for RowValues<T> {
    fn clone(&self) -> Self {
        let mut own = Vec::new();
        if !self.own.is_empty() {
            // The newest samples will be added to it.
            own.reserve_exact(CHUNK_ROWS);
            own.extend_from_slice(&self.own);
        }
        Self { same: Arc::clone(&self.same), own }
    }
}

impl<T> Deref for RowValues<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        if self.own.is_empty() { &self.same } else { &self.own }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_takes_room_from_the_first_other_value_on() {
        let mut values = RowValues::all(7_u32);
        values.extend(0, &[7; 64]);
        assert_eq!((values.bytes(), values[63]), (0, 7));
        values.extend(64, &[7, 8]);
        assert_eq!(values.bytes(), CHUNK_ROWS * 4);
        assert_eq!(values[..66].iter().filter(|value| **value == 7).count(), 65);
        assert_eq!(values[65], 8);
        let copy = values.clone();
        values.clear();
        values.extend(0, &[7]);
        assert_eq!((values[0], values[65], copy[65]), (7, 7, 8), "as if it were new");
        values.extend(1, &[9]);
        assert_eq!(values[..2], [7, 9]);
        assert_eq!(RowValues::like(&copy)[0], 7);
    }
}
