//! The page that a browser shows: its files, and a report that is one file.

pub(crate) mod embedded;
pub(crate) mod file;
pub(crate) mod single;
