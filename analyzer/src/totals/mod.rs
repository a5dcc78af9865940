//! Rolling totals by data object and by function.

pub(crate) mod function_table;
pub(crate) mod rolling;
pub(crate) mod sums;
pub(crate) mod type_layout;
