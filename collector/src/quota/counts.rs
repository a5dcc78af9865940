//! Counts of things by kind, where some kinds may have no more than so many: connections,
//! requests or threads, by user.

use std::collections::BTreeMap;

/// Counts by kind. One of which there is none takes no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts<K>(BTreeMap<K, usize>);

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> Counts<K> {
    /// None of any kind.
    #[must_use]
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> Counts<K> {
    /// Number of `kind`.
    #[must_use]
    pub fn of(&self, kind: &K) -> usize {
        self.0.get(kind).copied().unwrap_or(0)
    }

    /// Number of all.
    #[must_use]
    pub fn total(&self) -> usize {
        self.0.values().sum()
    }

    /// One more of `kind`.
    pub fn add(&mut self, kind: K) {
        *self.0.entry(kind).or_default() += 1;
    }

    /// One more of `kind`, if there are fewer than `most` of it, and fewer than `most_in_all`. Whether
    /// it was added.
    #[must_use]
    pub fn add_within(&mut self, kind: K, most: usize, most_in_all: usize) -> bool {
        let has_room = self.of(&kind) < most && self.total() < most_in_all;
        if has_room {
            self.add(kind);
        }
        has_room
    }

    /// One fewer of `kind`.
    pub fn remove(&mut self, kind: &K) {
        if let Some(n) = self.0.get_mut(kind) {
            *n -= 1;
            if *n == 0 {
                self.0.remove(kind);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_for_each_kind_and_for_all() {
        let mut counts = Counts::new();
        let added: Vec<bool> = (0..3).map(|_| counts.add_within('a', 2, 3)).collect();
        assert_eq!(added, [true, true, false]);
        assert!(counts.add_within('b', 2, 3) && !counts.add_within('b', 2, 3));
        counts.add('c');
        assert_eq!((counts.of(&'a'), counts.of(&'c'), counts.total()), (2, 1, 4));
    }

    #[test]
    fn nothing_is_kept_of_what_is_gone() {
        let mut counts = Counts::new();
        counts.add(7);
        counts.remove(&7);
        counts.remove(&7);
        assert_eq!(counts, Counts::new());
    }
}
