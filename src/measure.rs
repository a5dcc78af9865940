//! A measurement as HP Caliper reports it: exact counts, and samples by process, thread, load module, function, statement,
//! instruction, data object and kind of memory.

pub(crate) mod column;
pub(crate) mod detail;
pub(crate) mod document;
pub(crate) mod question;
pub(crate) mod rate;
pub(crate) mod report;
pub(crate) mod scale;
pub(crate) mod sheet;
pub(crate) mod summary;
pub(crate) mod sums;
pub(crate) mod table;
pub(crate) mod view;

#[cfg(test)]
mod goldens;
