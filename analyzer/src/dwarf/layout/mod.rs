//! Types as layouts: aggregates, arrays, expressions; what holds what, and what lies behind pointers.

pub(crate) mod aggregate;
pub(crate) mod array;
pub(crate) mod container;
pub(crate) mod definition;
pub(crate) mod derivation;
pub(crate) mod element;
pub(crate) mod expression;
pub(crate) mod holding;
pub mod kept;
pub(crate) mod leading_header;
pub mod listing;
pub mod made;
