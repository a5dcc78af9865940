//! One field of the samples of a chunk, which takes no room while all have the same.

use crate::history::chunk::CHUNK_ROWS;
use std::ops::Deref;
use std::sync::Arc;

/// The values of one field, by row. Those after the last row of the chunk are any.
#[derive(Debug)]
pub(crate) struct RowValues<T> {
    /// One value everywhere, in memory that all chunks of a history share.
    same: Arc<[T; CHUNK_ROWS]>,
    /// Room of its own.
    own: Option<Box<[T; CHUNK_ROWS]>>,
    /// Not all have that value: they are in their own room.
    is_own: bool,
}

impl<T: Copy + Default + PartialEq> RowValues<T> {
    /// A field that has this value for now.
    pub(crate) fn all(value: T) -> Self {
        Self { same: Arc::from(filled(value)), own: None, is_own: false }
    }

    /// The same field of another chunk, of which nothing is known yet.
    pub(crate) fn like(other: &Self) -> Self {
        Self { same: Arc::clone(&other.same), own: None, is_own: false }
    }

    /// Adds the values of the rows from `first` on, for which there is room.
    #[inline]
    pub(crate) fn extend(&mut self, first: usize, more: &[T]) {
        let same = self.same[0];
        if !self.is_own {
            // Without a way out in the middle several are compared at once; the last one tells most often.
            let is_last_same = more.last().is_none_or(|last| *last == same);
            if is_last_same && more.iter().fold(true, |is_same, value| is_same & (*value == same)) {
                return;
            }
            self.own.get_or_insert_with(|| filled(T::default()))[..first].fill(same);
            self.is_own = true;
        }
        if let Some(own) = &mut self.own {
            own[first..first + more.len()].copy_from_slice(more);
        }
    }

    /// Takes all values away, and keeps their room.
    pub(crate) fn clear(&mut self) {
        self.is_own = false;
    }

    /// Bytes that it takes by itself.
    pub(crate) const fn bytes(&self) -> usize {
        if self.own.is_some() { CHUNK_ROWS * size_of::<T>() } else { 0 }
    }
}

impl<T: Clone> Clone for RowValues<T> {
    fn clone(&self) -> Self {
        let own = self.own.clone().filter(|_| self.is_own);
        Self { same: Arc::clone(&self.same), own, is_own: self.is_own }
    }
}

impl<T> Deref for RowValues<T> {
    type Target = [T; CHUNK_ROWS];

    #[inline]
    fn deref(&self) -> &Self::Target {
        match &self.own {
            Some(own) if self.is_own => own,
            _ => &self.same,
        }
    }
}

fn filled<T: Clone>(value: T) -> Box<[T; CHUNK_ROWS]> {
    let Ok(filled) = vec![value; CHUNK_ROWS].into_boxed_slice().try_into() else {
        unreachable!("it has as many rows as it was made with")
    };
    filled
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
