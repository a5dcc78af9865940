//! The bytes around a function that its code refers to.

use crate::x86_64::exit::Destination;
use dataspace_proto::address::Svma;

/// Bytes that the function's code refers to: jump tables, pointers, other functions.
pub trait ImageBytes {
    /// Up to `n_bytes` bytes at `svma`.
    fn bytes_at(&self, svma: Svma, n_bytes: usize) -> Option<Vec<u8>>;

    /// Returns the address that the loader writes to `svma` (`R_X86_64_RELATIVE`, psABI 4.4), if it does.
    fn relocated(&self, _svma: Svma) -> Option<Svma> {
        None
    }

    /// Tells whether the code is always loaded where its addresses say, so that numbers in it can be
    /// addresses.
    fn is_at_fixed_addresses(&self) -> bool {
        false
    }

    /// Tells whether a call never returns.
    fn is_noreturn(&self, _callee: Destination) -> bool {
        false
    }
}

/// An image without bytes, for code that has no tables.
#[cfg(test)]
pub(crate) struct NoBytes;

#[cfg(test)]
impl ImageBytes for NoBytes {
    fn bytes_at(&self, _: Svma, _: usize) -> Option<Vec<u8>> {
        None
    }
}
