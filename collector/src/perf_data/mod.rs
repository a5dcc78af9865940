//! Recordings in the format of `perf record`: written from a session, read in its place.

mod format;
pub mod read;
pub mod write;
