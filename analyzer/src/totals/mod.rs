//! Rolling totals by data object and by function.

pub(crate) mod function_table;
pub(crate) mod measured;
pub(crate) mod rolling;
pub(crate) mod sums;
