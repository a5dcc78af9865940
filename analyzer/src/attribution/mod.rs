//! From a sample to the data object that its trigger touched.

pub(crate) mod access;
pub(crate) mod choice;
pub(crate) mod claim;
pub(crate) mod code_place;
pub(crate) mod decision;
pub(crate) mod entry;
pub(crate) mod frequency;
pub(crate) mod name_table;
pub mod recent_site;
pub(crate) mod resumption;
pub(crate) mod search;
pub(crate) mod site_table;
pub(crate) mod value_change;
pub(crate) mod verdict;
pub(crate) mod vote;
pub(crate) mod witness;
pub mod world;
