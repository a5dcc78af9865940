//! Reasons why a recording cannot be written.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why a recording cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecorderError {
    /// The file's place is a directory, or has no name.
    #[error("{} is a directory, not a file to record to", path.display())]
    Directory {
        /// The place.
        path: PathBuf,
    },
    /// Nothing can be kept under the name that the file there would get.
    #[error(
        "{} would become {} when the recording is whole, which is a directory; -o names another \
         place", path.display(), old.display()
    )]
    OldIsDirectory {
        /// The file.
        path: PathBuf,
        /// The directory.
        old: PathBuf,
    },
    /// The file may not be replaced.
    #[error(
        "{} belongs to user {owner}, and in its directory (which is sticky) only they may replace \
         it; -o names another place", path.display()
    )]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// `EPERM`, as the kernel will say.
        source: io::Error,
    },
    /// The file with the name of an unfinished recording is none.
    #[error(
        "{} is no file, and a recording is called so until it is whole; -o names another place",
        path.display()
    )]
    NoFile {
        /// The thing in the way.
        path: PathBuf,
    },
    /// No file can be made there: no such directory, or no permission.
    #[error("{} cannot be created; -o names another place", path.display())]
    NotCreated {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Nobody opened the named pipe for reading.
    #[error("nobody reads {}", path.display())]
    NoReader {
        /// The pipe.
        path: PathBuf,
    },
    /// The unfinished recording has lost its name to another file.
    #[error("{} was renamed or replaced while it was written", path.display())]
    Moved {
        /// Its name.
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
        /// The step that failed, as in "cannot be written".
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// The recording broke off: what was written before is there.
    #[error("the first {n_bytes} bytes of the recording are in {} and can be read", part.display())]
    BrokenOff {
        /// The fault.
        source: Box<RecorderError>,
        /// The unfinished recording.
        part: PathBuf,
        /// Length of its whole part.
        n_bytes: u64,
    },
    /// The recording is whole and could not get its name.
    #[error("the recording is whole, and is called {}", part.display())]
    Unnamed {
        /// The fault.
        source: Box<RecorderError>,
        /// Its place.
        part: PathBuf,
    },
    /// The broker, who has the right to, could not give the recording its name.
    #[error("{reason}")]
    AtBroker {
        /// His words.
        reason: String,
    },
    /// The session ended without finishing its recording.
    #[error("the session ended before its recording was finished")]
    Unfinished,
}
