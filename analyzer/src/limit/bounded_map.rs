//! Answers that are kept until there are too many of them.

use rustc_hash::FxHashMap;
use std::hash::Hash;

/// A map of answers that can be found out again: when it is full, all are given up for the next one.
#[derive(Debug)]
pub(crate) struct BoundedMap<K, V, const MAX: usize>(FxHashMap<K, V>);

impl<K, V, const MAX: usize> Default for BoundedMap<K, V, MAX> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<K: Eq + Hash, V: Clone, const MAX: usize> BoundedMap<K, V, MAX> {
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.0.get(key).cloned()
    }

    pub(crate) fn keep(&mut self, key: K, answer: V) -> V {
        if self.0.len() >= MAX {
            self.0.clear();
        }
        self.0.insert(key, answer.clone());
        answer
    }
}
