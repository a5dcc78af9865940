//! Why a recording cannot be written.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a recording cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecorderError {
    /// The file's place is a directory, or has no name.
    #[error("{} is a directory, not a file to record to", path.display())]
    Directory {
        /// The place.
        path: PathBuf,
    },
    /// Another recorder writes there.
    #[error("{} is being written by another recorder", path.display())]
    InUse {
        /// The unfinished recording.
        path: PathBuf,
    },
    /// A system call on the file failed: no room, no permission, a limit on its size.
    #[error("{} cannot be {what}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done, as in "cannot be written".
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The recording broke off: what was written before is there.
    #[error("the first {n_bytes} bytes of the recording are in {} and can be read", part.display())]
    BrokenOff {
        /// What failed.
        source: Box<RecorderError>,
        /// The unfinished recording.
        part: PathBuf,
        /// How much of it is whole.
        n_bytes: u64,
    },
    /// The session ended without finishing its recording.
    #[error("the session ended before its recording was finished")]
    Unfinished,
}
