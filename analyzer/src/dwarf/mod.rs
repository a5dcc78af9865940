//! Debug information: what it says about code addresses, variables and types.

pub mod code;
pub mod debug_info;
pub mod layout;
pub(crate) mod prototype;
pub mod unit;
pub mod variable;
