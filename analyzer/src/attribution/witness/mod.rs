//! Those who may say which object an access is to; [`super::claim::Witness`] has their order.

pub(crate) mod caller;
pub(crate) mod instruction;
pub(crate) mod variable;
pub(crate) mod votes;

use crate::attribution::search::TriggerCandidate;
use crate::attribution::verdict::Located;
use crate::index::site::TypedAccess;
use dataspace_proto::address::Avma;
use dataspace_proto::sample_line::AddressSource;

/// An access, as each witness is asked about it.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) located: &'a Located<'a>,
    pub(crate) candidate: TriggerCandidate<'a>,
    pub(crate) typed: &'a TypedAccess,
    /// The data address, and who tells it.
    pub(crate) addr: Option<(Avma, AddressSource)>,
    /// The address that the operand computes to, if its registers are known.
    pub(crate) computed: Option<Avma>,
}

impl Asked<'_> {
    /// The data address.
    pub(crate) fn avma(&self) -> Option<Avma> {
        self.addr.map(|(avma, _)| avma)
    }

    /// Tells whether the operand's address is known and the sample tells no other one. The address of a fault
    /// may be the second page's start, of a breakpoint its own.
    pub(crate) fn is_at_operand(&self) -> bool {
        let is_sampled = |computed| self.located.sample.addr.is_none_or(|addr| addr == computed);
        self.computed.is_some_and(is_sampled)
    }
}
