//! Processes: what is mapped, threads' own storage, code that is in no file.

pub(crate) mod cgroup_table;
pub(crate) mod made_code;
pub mod named_place;
pub(crate) mod recent;
pub(crate) mod segment;
pub mod table;
pub(crate) mod thread_storage;
