//! Functions as those that call them see them: the registers that they change.

use crate::limit::{self, BoundedMap};
use crate::x86_64::register_use::Registers;
use dataspace_proto::address::Svma;
use std::sync::Arc;

/// A function as its callers see it.
#[derive(Debug)]
pub(crate) struct CalledCode {
    /// Registers that its own instructions change.
    pub(crate) changed: Registers,
    /// The functions that it calls, or goes on in.
    pub(crate) goes_to: Box<[Svma]>,
}

/// Functions that were looked at as others call them.
#[derive(Debug, Default)]
pub(crate) struct CalledFunctions {
    /// Their own code, where all of it is known.
    pub(crate) code: BoundedMap<Svma, Option<Arc<CalledCode>>, { limit::MAX_CACHED_ARGUMENTS }>,
    /// Registers that they may change, and how deep the calls below each were looked at.
    pub(crate) changed: BoundedMap<(Svma, usize), Registers, { limit::MAX_CACHED_ARGUMENTS }>,
}
