//! Lists that only grow, and that other threads read while they do.

use std::sync::Arc;

/// Entries of one block.
const BLOCK_LEN: usize = 256;

/// A list that grows at its end. Full blocks are shared with every [`Frozen`] of it.
#[derive(Debug)]
pub(crate) struct Growing<T> {
    full: Vec<Arc<[T]>>,
    open: Vec<T>,
}

impl<T> Default for Growing<T> {
    fn default() -> Self {
        Self { full: Vec::new(), open: Vec::new() }
    }
}

impl<T: Clone> Growing<T> {
    /// Adds an entry; gives its number.
    pub(crate) fn push(&mut self, entry: T) -> u32 {
        let number = self.len() as u32;
        self.open.push(entry);
        if self.open.len() == BLOCK_LEN {
            self.full.push(std::mem::take(&mut self.open).into());
        }
        number
    }

    pub(crate) const fn len(&self) -> usize {
        self.full.len() * BLOCK_LEN + self.open.len()
    }

    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        let number = number as usize;
        match self.full.get(number / BLOCK_LEN) {
            Some(block) => block.get(number % BLOCK_LEN),
            None => self.open.get(number - self.full.len() * BLOCK_LEN),
        }
    }

    /// Changes an entry. Who has the list from before does not see it.
    pub(crate) fn change(&mut self, number: u32, change: impl FnOnce(&mut T)) {
        let number = number as usize;
        let entry = match self.full.get_mut(number / BLOCK_LEN) {
            Some(block) => Arc::make_mut(block).get_mut(number % BLOCK_LEN),
            None => self.open.get_mut(number - self.full.len() * BLOCK_LEN),
        };
        if let Some(entry) = entry {
            change(entry);
        }
    }

    /// The list as it is now.
    pub(crate) fn freeze(&self) -> Frozen<T> {
        let open = (!self.open.is_empty()).then(|| self.open.as_slice().into());
        Frozen { blocks: self.full.iter().cloned().chain(open).collect() }
    }
}

/// A list as it once was.
#[derive(Clone, Debug)]
pub(crate) struct Frozen<T> {
    blocks: Vec<Arc<[T]>>,
}

impl<T> Default for Frozen<T> {
    fn default() -> Self {
        Self { blocks: Vec::new() }
    }
}

impl<T> Frozen<T> {
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        let number = number as usize;
        self.blocks.get(number / BLOCK_LEN)?.get(number % BLOCK_LEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_frozen_has_what_was_there_and_nothing_of_what_came() {
        let mut growing = Growing::default();
        for number in 0..(BLOCK_LEN as u32 * 2 + 3) {
            assert_eq!(growing.push(number * 7), number);
            let frozen = growing.freeze();
            for known in [0, number / 2, number] {
                assert_eq!(frozen.get(known), Some(&(known * 7)));
            }
            assert_eq!(frozen.get(number + 1), None);
            growing.change(number / 2, |entry| *entry += 1);
            assert_eq!(growing.get(number / 2), Some(&(number / 2 * 7 + 1)));
            assert_eq!(frozen.get(number / 2), Some(&(number / 2 * 7)));
            growing.change(number / 2, |entry| *entry -= 1);
        }
    }
}
