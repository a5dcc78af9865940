//! From a sample to the data object that its trigger touched.

pub(crate) mod access;
pub(crate) mod address_path;
pub(crate) mod agreement;
pub(crate) mod caller;
pub(crate) mod choice;
pub(crate) mod code_place;
pub(crate) mod name_table;
pub mod recent_site;
pub(crate) mod resumption;
pub(crate) mod search;
pub(crate) mod site_table;
pub(crate) mod vote;
pub(crate) mod voted_object;
pub mod world;
