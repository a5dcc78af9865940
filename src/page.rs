//! The page that a browser shows: its files, and a report that is one file.

pub(crate) mod embedded;
mod file;
pub(crate) mod served;
pub(crate) mod single;

pub(crate) use file::HEADERS;
