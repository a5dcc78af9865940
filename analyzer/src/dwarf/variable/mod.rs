//! Variables: where they are, and which one is at a place.

pub(crate) mod address_hint;
pub mod index;
pub mod location;
pub(crate) mod register_sum;
pub mod static_variable;
pub(crate) mod walk;
