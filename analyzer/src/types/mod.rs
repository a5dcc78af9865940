//! Types and data objects: layouts, the way to a part, and how both are spelled.

pub mod bit_range;
pub(crate) mod containment;
pub mod data_object;
pub mod descent;
pub mod descriptor;
pub mod die;
pub mod layout;
#[cfg(test)]
pub(crate) mod sample;
pub mod type_expression;
pub mod value_kind;
