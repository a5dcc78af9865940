//! Types and data objects: layouts, the way to a part, and how both are spelled.

pub mod bit_range;
pub(crate) mod containment;
pub mod data_object;
pub mod descent;
pub mod descriptor;
pub mod die;
pub mod gap;
pub mod layout;
pub mod part_name;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod scalar_notation;
pub mod similar_name;
pub mod source_name;
pub mod type_expression;
pub mod type_layout;
pub mod type_pattern;
pub mod value_kind;
