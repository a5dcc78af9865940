//! Addresses as newtypes, so that an address in a process is never taken for one in a file.

use std::fmt;
use std::num::NonZeroU64;

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl $name {
            /// This address moved up by `bytes`, wrapping at 2^64 as the CPU does.
            #[must_use]
            pub const fn plus(self, bytes: u64) -> Self {
                Self(self.0.wrapping_add(bytes))
            }

            /// The distance in bytes from `start` up to this address, if it is not below it.
            #[must_use]
            pub const fn offset_from(self, start: Self) -> Option<u64> {
                self.0.checked_sub(start.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }
    };
}

address! {
    /// An *actual* virtual memory address: where code or data is in a running process.
    Avma
}
address! {
    /// A *stated* virtual memory address: where a load object's own headers say code or data is,
    /// before the loader moved it.
    Svma
}
address! {
    /// A byte position in a file.
    FileOffset
}

impl Avma {
    /// Tells whether the address can be one of user space on x86-64 with four or five page-table
    /// levels: the upper, kernel half and the non-canonical hole cannot.
    ///
    /// Source: Linux `Documentation/arch/x86/x86_64/mm.rst` and `5level-paging.rst`.
    #[must_use]
    pub const fn is_user(self) -> bool {
        self.0 < 1 << 56
    }
}
/// A physical memory address; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PhysicalAddress(pub NonZeroU64);
