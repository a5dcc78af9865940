//! The piece of the user stack that a sample carries.

use crate::address::Avma;

/// Bytes from the stack pointer upwards that are kept. The return address of a function that touches
/// memory for others (`memcpy`, `strlen`) is in the first 8; after an intermediate one that saves six
/// registers and has some locals, in the first 256. Every sample has room for them, so that none
/// allocates.
pub const N_STACK_BYTES: usize = 256;

/// The lowest bytes of a thread's stack.
#[derive(Clone, Copy)]
// In this order: whether there are any is known without the lines that hold them.
#[repr(C)]
pub struct StackPiece {
    n_bytes: u16,
    /// Those after `n_bytes` may be anything.
    bytes: [u8; N_STACK_BYTES],
}

impl Default for StackPiece {
    fn default() -> Self {
        Self { n_bytes: 0, bytes: [0; N_STACK_BYTES] }
    }
}

impl PartialEq for StackPiece {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for StackPiece {}

impl std::fmt::Debug for StackPiece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StackPiece").field("n_bytes", &self.n_bytes).finish_non_exhaustive()
    }
}

impl StackPiece {
    /// The first of `bytes`, which begin at the stack pointer.
    pub fn set(&mut self, bytes: &[u8]) {
        let n = bytes.len().min(N_STACK_BYTES);
        self.n_bytes = n as u16;
        self.bytes[..n].copy_from_slice(&bytes[..n]);
    }

    /// Forgets the bytes.
    pub const fn clear(&mut self) {
        self.n_bytes = 0;
    }

    /// The bytes that are there.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.n_bytes)).unwrap_or_default()
    }

    /// Tells whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.n_bytes == 0
    }

    /// The eight bytes at `at`, where the piece begins at `stack_pointer`; `None` outside of it.
    #[must_use]
    pub fn word(&self, stack_pointer: Avma, at: Avma) -> Option<u64> {
        let into = usize::try_from(at.0.checked_sub(stack_pointer.0)?).ok()?;
        self.bytes().get(into..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_inside_of_the_piece_only() {
        let mut piece = StackPiece::default();
        assert!(piece.is_empty());
        assert_eq!(piece.word(Avma(0x1000), Avma(0x1000)), None);
        let bytes: Vec<u8> = (0..20).collect();
        piece.set(&bytes);
        let word = |piece: &StackPiece, at| piece.word(Avma(0x1000), Avma(at));
        assert_eq!(word(&piece, 0x1000), Some(0x0706_0504_0302_0100));
        assert_eq!(word(&piece, 0x100c), Some(0x1312_1110_0f0e_0d0c));
        assert_eq!(
            (word(&piece, 0x100d), word(&piece, 0xfff), word(&piece, u64::MAX)),
            (None, None, None)
        );
        piece.set(&[1; 2 * N_STACK_BYTES]);
        assert_eq!(word(&piece, 0x1000 + N_STACK_BYTES as u64 - 8), Some(0x0101_0101_0101_0101));
        assert_eq!(word(&piece, 0x1000 + N_STACK_BYTES as u64 - 7), None);
    }
}
