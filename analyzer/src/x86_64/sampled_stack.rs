//! The lowest bytes of a thread's stack at the moment of a sample, and which of them an earlier moment had too.

use dataspace_proto::address::Avma;
use dataspace_proto::stack::N_STACK_BYTES;

/// Bytes that are kept or lost together.
const CELL_BYTES: usize = 4;

/// The sampled bytes from the stack pointer upwards, taken at the same moment as the registers.
#[derive(Clone, Copy, Debug)]
pub struct SampledStack<'a> {
    begin: Avma,
    bytes: &'a [u8],
}

/// The cells of a sampled stack that hold what they held at an earlier moment: a bit for each, the lowest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptCells(u64);

// Each cell has a bit.
const _: () = assert!(N_STACK_BYTES / CELL_BYTES <= u64::BITS as usize);

impl SampledStack<'_> {
    /// No byte.
    pub const NONE: Self = SampledStack { begin: Avma(0), bytes: &[] };

    /// Tells whether there is no byte.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// All cells, at the moment of the sample.
    #[must_use]
    pub fn cells(&self) -> KeptCells {
        match self.bytes.len() / CELL_BYTES {
            0 => KeptCells::default(),
            n_cells => KeptCells(u64::MAX >> (u64::BITS as usize - n_cells)),
        }
    }

    /// The value of at most eight bytes at `at`, if all of them were kept.
    #[must_use]
    pub fn value(&self, kept: KeptCells, at: Avma, n_bytes: u32) -> Option<u64> {
        let from = usize::try_from(at.0.wrapping_sub(self.begin.0)).ok()?;
        let to = from.checked_add(usize::try_from(n_bytes).ok()?)?;
        let bytes = self.bytes.get(from..to)?;
        let cells = self.touched(at, n_bytes);
        let mut word = [0; size_of::<u64>()];
        word.get_mut(..bytes.len())?.copy_from_slice(bytes);
        (kept.0 & cells == cells).then(|| u64::from_le_bytes(word))
    }

    /// The cells that an access of `n_bytes` at `at` touches: a bit for each.
    fn touched(&self, at: Avma, n_bytes: u32) -> u64 {
        let from = at.0.wrapping_sub(self.begin.0).cast_signed();
        let to = from.saturating_add(n_bytes.into());
        let end = (self.bytes.len() / CELL_BYTES * CELL_BYTES) as i64;
        if to <= 0 || from >= end || n_bytes == 0 {
            return 0;
        }
        let cell = CELL_BYTES as i64;
        let (first, last) = (from.max(0) / cell, (to.min(end) - 1) / cell);
        (u64::MAX >> (i64::from(u64::BITS) - 1 - (last - first))) << first
    }

    /// The cells of `kept` that a write to these bytes leaves as they are.
    #[must_use]
    pub fn beside(&self, kept: KeptCells, at: Avma, n_bytes: u32) -> KeptCells {
        KeptCells(kept.0 & !self.touched(at, n_bytes))
    }
}

impl<'a> SampledStack<'a> {
    /// The bytes from `begin` on, as many whole cells as a sample has.
    #[must_use]
    pub fn new(begin: Avma, bytes: &'a [u8]) -> Self {
        let n = bytes.len().min(N_STACK_BYTES) / CELL_BYTES * CELL_BYTES;
        Self { begin, bytes: bytes.get(..n).unwrap_or_default() }
    }
}

impl KeptCells {
    /// No cell is known to hold what it held.
    pub const NONE: Self = Self(0);

    /// Tells whether no cell is kept.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_where_all_their_bytes_are_kept() {
        let bytes: Vec<u8> = (0..=255).collect();
        let begin = Avma(0x7ff0_0000_1000);
        let at = |offset: i64| Avma(begin.0.wrapping_add_signed(offset));
        let stack = SampledStack::new(begin, &bytes);
        let all = stack.cells();
        assert_eq!(stack.value(all, at(0), 8), Some(0x0706_0504_0302_0100));
        assert_eq!(stack.value(all, at(255), 1), Some(255));
        assert_eq!((stack.value(all, at(-1), 1), stack.value(all, at(252), 8)), (None, None));
        // A write to one byte of a cell loses four.
        let kept = stack.beside(all, at(9), 1);
        let values = [4, 8, 10, 12].map(|offset| stack.value(kept, at(offset), 2));
        assert_eq!(values, [Some(0x0504), None, None, Some(0x0d0c)]);
        // One that begins below the stack pointer or ends above the piece, too.
        let kept = stack.beside(stack.beside(all, at(-4), 5), at(250), 64);
        let values = [0, 4, 244, 248].map(|offset| stack.value(kept, at(offset), 4));
        assert_eq!(values, [None, Some(0x0706_0504), Some(0xf7f6_f5f4), None]);
        // One that is elsewhere, or of everything.
        assert_eq!(stack.beside(all, at(-64), 64), all);
        assert_eq!(stack.beside(all, at(256), 64), all);
        assert!(stack.beside(all, at(-8), 4096).is_empty());
        assert!(SampledStack::NONE.cells().is_empty());
    }

    #[test]
    fn a_piece_of_a_few_bytes_has_whole_cells_only() {
        let stack = SampledStack::new(Avma(0x1000), &[1, 2, 3, 4, 5, 6]);
        let all = stack.cells();
        assert_eq!(stack.value(all, Avma(0x1000), 4), Some(0x0403_0201));
        assert!(stack.beside(all, Avma(0x1003), 1).is_empty());
    }
}
