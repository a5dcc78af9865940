//! Real programs, compiled by the test, and a session over them with samples made by hand.

pub(crate) mod allocation;
pub(crate) mod parts;
pub(crate) mod program;
pub(crate) mod session;
