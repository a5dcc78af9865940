//! Types and data objects: layouts, the way to a part, and how objects are spelled.

pub mod bit_range;
pub(crate) mod containment;
pub mod descent;
pub mod descriptor;
pub mod die;
pub mod layout;
pub mod value_kind;
