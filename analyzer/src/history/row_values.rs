//! One field of the samples of a chunk, which takes no room while all have the same.

use crate::history::chunk::CHUNK_ROWS;
use std::ops::Deref;
use std::sync::Arc;

/// The values of one field, by row. Those after the last row of the chunk are any.
#[derive(Clone, Debug)]
pub(crate) struct RowValues<T> {
    /// The values themselves, or none where all are `one`.
    own: Vec<T>,
    one: T,
    /// The one value everywhere, in memory that all chunks of a history share.
    same: Arc<[T; CHUNK_ROWS]>,
    /// No chunk is before this one: its first row tells what the one value is.
    is_first: bool,
}

impl<T: Copy + Default> Default for RowValues<T> {
    fn default() -> Self {
        let one = T::default();
        Self { own: Vec::new(), one, same: everywhere(one), is_first: true }
    }
}

impl<T: Copy + PartialEq> RowValues<T> {
    /// The same field of another chunk, of which nothing is known yet.
    pub(crate) fn like(other: &Self) -> Self {
        let Self { one, ref same, .. } = *other;
        Self { own: Vec::new(), one, same: Arc::clone(same), is_first: false }
    }

    /// Tells whether all rows have the one value.
    pub(crate) const fn is_one(&self) -> bool {
        self.own.is_empty()
    }

    /// The one value.
    pub(crate) const fn one(&self) -> T {
        self.one
    }

    /// Sets the value of a row.
    #[inline]
    pub(crate) fn set(&mut self, row: usize, value: T) {
        match self.own.get_mut(row) {
            Some(own) => *own = value,
            None if value == self.one => {}
            None => self.differ(row, value),
        }
    }

    /// Sets the value of a row that has another one than all before it.
    #[cold]
    #[inline(never)]
    fn differ(&mut self, row: usize, value: T) {
        if self.is_first && row == 0 {
            self.one = value;
            self.same = everywhere(value);
            return;
        }
        self.own.resize(CHUNK_ROWS, self.one);
        self.own[row] = value;
    }

    /// Takes all values away, and keeps their room; they will be such as those of `last`.
    pub(crate) fn renew(&mut self, last: &Self) {
        self.is_first = false;
        if last.own.is_empty() {
            self.own.clear();
        }
    }

    /// Bytes that it takes by itself.
    pub(crate) const fn bytes(&self) -> usize {
        self.own.capacity() * size_of::<T>()
    }
}

/// One value for each row.
// In line its room on the stack would be that of whoever keeps a sample.
#[cold]
#[inline(never)]
fn everywhere<T: Copy>(value: T) -> Arc<[T; CHUNK_ROWS]> {
    Arc::new([value; CHUNK_ROWS])
}

impl<T> Deref for RowValues<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        if self.own.is_empty() { &self.same[..] } else { &self.own }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_takes_room_from_the_first_other_value_on() {
        let mut values = RowValues::default();
        (0..64).for_each(|row| values.set(row, 7_u32));
        assert_eq!((values.bytes(), values[0], values[63]), (0, 7, 7));
        let mut next = RowValues::like(&values);
        next.set(0, 7);
        next.set(1, 8);
        next.set(2, 7);
        assert_eq!(next[..3], [7, 8, 7]);
        assert_eq!(next.bytes(), CHUNK_ROWS * 4);
        let copy = next.clone();
        next.renew(&values);
        (0..64).for_each(|row| next.set(row, 7));
        assert_eq!((next[1], copy[1], next.bytes()), (7, 8, CHUNK_ROWS * 4), "as if it were new");
        next.set(64, 9);
        next.renew(&copy);
        next.set(0, 5);
        assert_eq!((next[0], values[0]), (5, 7));
        values.renew(&copy);
        values.set(0, 3);
        assert_eq!(
            (values[0], values.bytes()),
            (3, CHUNK_ROWS * 4),
            "the one value stays what it is"
        );
    }

    #[test]
    fn the_first_row_may_have_any_value() {
        for one in [0_u32, 3] {
            let mut values = RowValues::default();
            (0..9).for_each(|row| values.set(row, one));
            assert_eq!((values.bytes(), values[8]), (0, one));
            values.set(9, 4);
            assert_eq!(values[8..10], [one, 4]);
        }
    }
}
