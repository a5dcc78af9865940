//! Faults that make a recording unreadable as a whole.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// A recording cannot be read.
///
/// Damage after a readable header is no error: what is whole is given, with a warning.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The operating system refused.
    #[error("cannot read {path} at byte {offset}")]
    Io {
        /// The recording.
        path: PathBuf,
        /// The part that was read.
        offset: u64,
        /// The reason.
        source: io::Error,
    },
    /// It ends inside the header.
    #[error("{path} ends at byte {len_bytes}, inside the header of a perf.data file")]
    TooShort {
        /// The recording.
        path: PathBuf,
        /// Its length.
        len_bytes: u64,
    },
    /// It begins with something else.
    #[error("{path} is not a perf.data file: it begins with {magic:#018x} at byte 0")]
    NotPerfData {
        /// The recording.
        path: PathBuf,
        /// Its first 8 bytes.
        magic: u64,
    },
    /// A field of the header has a value with which nothing after it can be found.
    #[error("{path}: the header's {field} at byte {offset} is {value:#x}")]
    Header {
        /// The recording.
        path: PathBuf,
        /// The field's name in `perf.data-file-format.txt`.
        field: &'static str,
        /// Its place.
        offset: u64,
        /// Its value.
        value: u64,
    },
    /// There is no event whose attributes are whole.
    #[error("{path}: no event is readable among {len_bytes} bytes of attributes at byte {offset}")]
    NoEvent {
        /// The recording.
        path: PathBuf,
        /// Begin of the attributes.
        offset: u64,
        /// Number of their bytes.
        len_bytes: u64,
    },
    /// It was given as a pipe, but its parts stand in another order than they are needed in.
    #[error(
        "{path} is a perf.data file with a header at both ends, which cannot be read from a pipe; \
         give its path, or record with 'perf record -o -'"
    )]
    NeedsSeek {
        /// The recording.
        path: PathBuf,
    },
    /// `perf record --threads` made a directory.
    #[error("{path} is a directory; recordings of 'perf record --threads' are not supported")]
    Directory {
        /// The recording.
        path: PathBuf,
    },
}
