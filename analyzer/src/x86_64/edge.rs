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
}

impl Entrances {
    /// Tells whether there is any.
    #[must_use]
    pub fn is_any(self) -> bool {
        self != Self::default()
    }
}
