//! Ways from one instruction to another, and into a function.

/// An instruction that can have run just before another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Predecessor {
    /// Its index.
    pub from: u32,
    /// By its jump; else it fell through.
    pub is_taken: bool,
}

/// Ways into an instruction from outside what the graph of its function shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entrances {
    /// The function, or a part of it, is entered here: a call or a jump elsewhere came before.
    pub is_entry: bool,
    /// It stands behind a call: the callee's `ret` came before. The call is no predecessor.
    pub is_return: bool,
    /// The unwinder jumps here.
    pub is_landing_pad: bool,
    /// An indirect jump whose targets are not all known may lead here, nothing that is known
    /// leads here, or more does than is weighed ([`crate::limit::MAX_PREDECESSORS`]).
    pub is_unknown: bool,
    /// All that is not known is which of many jumps led here, none of which touches memory: with [`Self::is_unknown`].
    pub is_by_jumps: bool,
}

#[allow(missing_docs, reason = "each is the one way in that it is named after")]
impl Entrances {
    pub const NONE: Self = Self {
        is_entry: false,
        is_return: false,
        is_landing_pad: false,
        is_unknown: false,
        is_by_jumps: false,
    };
    pub const ENTRY: Self = Self { is_entry: true, ..Self::NONE };
    pub const RETURN: Self = Self { is_return: true, ..Self::NONE };
    pub const LANDING_PAD: Self = Self { is_landing_pad: true, ..Self::NONE };
    pub const UNKNOWN: Self = Self { is_unknown: true, ..Self::NONE };

    /// Adds the ways in of another one.
    pub const fn include(&mut self, other: Self) {
        self.is_entry |= other.is_entry;
        self.is_return |= other.is_return;
        self.is_landing_pad |= other.is_landing_pad;
        self.is_by_jumps =
            (self.is_by_jumps || !self.is_unknown) && (other.is_by_jumps || !other.is_unknown);
        self.is_unknown |= other.is_unknown;
        self.is_by_jumps &= self.is_unknown;
    }

    /// Tells whether there is any.
    #[must_use]
    pub fn is_any(self) -> bool {
        self != Self::default()
    }
}
