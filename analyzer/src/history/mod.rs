//! The history: decided samples in columns, the newest as many as there is room for.

pub(crate) mod chunk;
pub(crate) mod data_name;
pub(crate) mod growing;
pub(crate) mod place;
pub(crate) mod row_values;
pub mod store;
pub(crate) mod task;
pub(crate) mod telling;
pub(crate) mod touched_data;
