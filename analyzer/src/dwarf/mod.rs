//! Debug information: what it says about code addresses, variables and types.

pub mod code;
pub mod debug_info;
pub(crate) mod declared;
pub mod layout;
#[cfg(test)]
pub(crate) mod sample;
pub mod unit;
pub mod variable;
