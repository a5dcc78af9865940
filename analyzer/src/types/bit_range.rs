//! Bits of an operand.

/// Some bits of an operand, counted from the lowest of its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitRange {
    /// The lowest.
    pub first: u32,
    /// Number of bits.
    pub width: u32,
}
