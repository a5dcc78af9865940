//! The bytes of a recording, with a count of how far they were read.

use super::error::RecordingError;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Large enough that system calls do not count, small beside the rest of a session.
const BUFFER_LEN: usize = 256 << 10;

/// Bytes that can be read from any place: a file, or bytes in memory.
pub trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// The rest of a recording, from front to back.
pub(super) struct RecordingSource {
    reader: BufReader<Box<dyn Read + Send>>,
    path: PathBuf,
    offset: u64,
    /// End of the records, if that is known.
    end: Option<u64>,
    total_bytes: Option<u64>,
}

impl RecordingSource {
    /// Records begin at `offset`, which is where `reader` stands, and end at `end`.
    pub(super) fn new(
        reader: Box<dyn Read + Send>,
        path: PathBuf,
        offset: u64,
        end: Option<u64>,
        total_bytes: Option<u64>,
    ) -> Self {
        let reader = BufReader::with_capacity(BUFFER_LEN, reader);
        Self { reader, path, offset, end, total_bytes }
    }

    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) const fn total_bytes(&self) -> Option<u64> {
        self.total_bytes
    }

    /// Number of bytes that should still come, if that is known.
    pub(super) fn remaining(&self) -> Option<u64> {
        self.end.map(|end| end.saturating_sub(self.offset))
    }

    /// Puts the next `n` bytes, or what there is of them, in place of what `buffer` holds.
    ///
    /// `n` has to be bounded by its type or by a limit: so much may be allocated.
    pub(super) fn read(&mut self, buffer: &mut Vec<u8>, n: usize) -> Result<(), RecordingError> {
        buffer.clear();
        let limit = self.remaining().unwrap_or(u64::MAX).min(n as u64);
        let result = self.reader.by_ref().take(limit).read_to_end(buffer);
        self.offset = self.offset.saturating_add(buffer.len() as u64);
        result.map(|_| ()).map_err(|source| self.io_error(source))
    }

    /// Steps over `n` bytes, and tells how many there were.
    pub(super) fn skip(&mut self, n: u64) -> Result<u64, RecordingError> {
        let limit = self.remaining().unwrap_or(u64::MAX).min(n);
        let mut n_skipped = 0;
        while n_skipped < limit {
            let available = match self.reader.fill_buf() {
                Ok(bytes) => bytes.len(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.io_error(error)),
            };
            if available == 0 {
                break;
            }
            let step = available.min(usize::try_from(limit - n_skipped).unwrap_or(usize::MAX));
            self.reader.consume(step);
            n_skipped += step as u64;
            self.offset = self.offset.saturating_add(step as u64);
        }
        Ok(n_skipped)
    }

    fn io_error(&self, source: io::Error) -> RecordingError {
        RecordingError::Io { path: self.path.clone(), offset: self.offset, source }
    }
}

/// Reads at most `n` bytes from the front of a stream; fewer only at its end.
pub(super) fn read_front(
    reader: &mut dyn Read,
    offset: u64,
    n: u64,
    path: &Path,
) -> Result<Vec<u8>, RecordingError> {
    let mut bytes = Vec::new();
    match reader.take(n).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(source) => Err(RecordingError::Io { path: path.into(), offset, source }),
    }
}

/// Reads at most `n` bytes from `offset` on; fewer only at the end of the file.
///
/// Only what is there is allocated.
pub(super) fn read_at(
    file: &mut dyn ReadSeek,
    offset: u64,
    n: u64,
    path: &Path,
) -> Result<Vec<u8>, RecordingError> {
    let io_error = |source| RecordingError::Io { path: path.into(), offset, source };
    file.seek(SeekFrom::Start(offset)).map_err(io_error)?;
    read_front(file, offset, n, path)
}
