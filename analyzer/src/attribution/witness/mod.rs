//! Those who may say which object an access is to; [`super::claim::Witness`] has their order.

pub(crate) mod caller;
pub(crate) mod instruction;
pub(crate) mod variable;
pub(crate) mod votes;
