//! Doubts: what an address does not tell for certain.

/// One thing that is not certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The object that it is in, of many of one type side by side: it goes over them.
    Which,
    /// The choice between this object and a variable, which a sample's address tells.
    Variable,
    /// The memory from there on: objects of this type end where it points at.
    Beyond,
    /// The object that it is a part of: one of several.
    Owner,
    /// The rest of the object after its first part, to which alone the pointer is declared: the object was
    /// found by accesses after that part.
    Whole,
}

/// Some of them. Where two ways meet, the doubts of both are left: the join of a lattice of sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Doubts(u8);

impl Doubts {
    /// No doubt at all.
    pub(crate) const NONE: Self = Self(0);

    pub(crate) const fn has(self, doubt: Doubt) -> bool {
        self.0 & 1 << doubt as u8 != 0
    }

    /// The same, and `doubt` if `is_so`.
    pub(crate) fn with_if(self, doubt: Doubt, is_so: bool) -> Self {
        Self(self.0 | u8::from(is_so) << doubt as u8)
    }

    pub(crate) fn with(self, doubt: Doubt) -> Self {
        self.with_if(doubt, true)
    }

    pub(crate) const fn without(self, doubt: Doubt) -> Self {
        Self(self.0 & !(1 << doubt as u8))
    }

    pub(crate) const fn join(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// On what an address is known. The later one goes before the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Standing {
    /// Only from what lies around it.
    Aside,
    /// From itself.
    Own,
}
