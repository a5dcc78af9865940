//! Recordings of `perf record` and `perf mem record`, in file and in pipe mode.
//!
//! A recording is hostile input: nothing in it can make this reader panic, hang or allocate more
//! than what is there. What is damaged or missing is told in a [`Record::Warning`], and every
//! sample is in one of the counts of [`Recording::collected`].
//!
//! Source: `tools/perf/Documentation/perf.data-file-format.txt` in the Linux tree.

mod attr;
mod build_id;
mod decompress;
mod error;
mod event;
mod event_stream;
mod event_table;
mod feature;
mod group_count;
mod header;
mod home;
mod intake;
mod order;
mod preamble;
mod side_band;
mod source;
mod tally;
mod tracing_data;

pub use error::RecordingError;
pub use source::ReadSeek;

use crate::perf_data::format::header::{FILE_HEADER_BYTES, PIPE_HEADER_BYTES};
use crate::record::decode::Endian;
use dataspace_proto::accounting::Collected;
use dataspace_proto::record::Record;
use event_stream::EventStream;
use header::Mode;
use intake::Intake;
use source::RecordingSource;
use std::fmt;
use std::fs::File;
use std::io::{Read, SeekFrom};
use std::path::{Path, PathBuf};

/// A `perf.data` file or stream that is being read.
///
/// ```
/// use dataspace_collector::perf_data::read::Recording;
/// use std::io::Cursor;
///
/// // The header of a pipe, and nothing after it.
/// let bytes = b"PERFILE2\x10\0\0\0\0\0\0\0".to_vec();
/// let mut recording = Recording::from_reader(Box::new(Cursor::new(bytes)), "-".into())?;
/// while let Some(record) = recording.next_record()? {
///     println!("{record:?}");
/// }
/// assert_eq!(recording.collected().kernel_samples, 0);
/// # Ok::<(), dataspace_collector::perf_data::read::RecordingError>(())
/// ```
pub struct Recording {
    stream: EventStream,
    intake: Intake,
    is_read: bool,
    is_over: bool,
}

/// A recording of which nothing was read yet.
#[derive(Debug)]
pub struct RecordingFile {
    /// A file, a named pipe, or what is on standard input.
    pub file: File,
    /// Its name in errors.
    pub name: PathBuf,
}

impl RecordingFile {
    /// Opens the recording at `path`, which may also be a named pipe.
    ///
    /// # Errors
    /// [`RecordingError`], when it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let io_error = |source| RecordingError::Io { path: path.into(), offset: 0, source };
        Ok(Self { file: File::open(path).map_err(io_error)?, name: path.into() })
    }

    /// The same once more, if it is no pipe. The two share their position: one is read after the other.
    #[must_use]
    pub fn again(&self) -> Option<Self> {
        let is_file = self.file.metadata().is_ok_and(|metadata| metadata.is_file());
        let file = is_file.then(|| self.file.try_clone().ok()).flatten()?;
        Some(Self { file, name: self.name.clone() })
    }

    /// Reads what stands at its beginning.
    ///
    /// # Errors
    /// [`RecordingError`], when it cannot be read or holds nothing readable.
    pub fn read(self) -> Result<Recording, RecordingError> {
        let Self { file, name } = self;
        let io_error = |source| RecordingError::Io { path: name.clone(), offset: 0, source };
        let metadata = file.metadata().map_err(io_error)?;
        if metadata.is_dir() {
            return Err(RecordingError::Directory { path: name });
        }
        if metadata.is_file() {
            return Recording::from_seekable(Box::new(file), name);
        }
        Recording::from_reader(Box::new(file), name)
    }
}

impl Recording {
    /// Opens the recording at `path`, which may also be a named pipe.
    ///
    /// # Errors
    /// [`RecordingError`], when it cannot be read or holds nothing readable.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        RecordingFile::open(path)?.read()
    }

    /// Reads a recording in pipe mode, from a socket for example. `name` is what errors call it.
    ///
    /// # Errors
    /// [`RecordingError::NeedsSeek`], when it is in file mode, whose tables stand after the
    /// samples; others when it holds nothing readable.
    pub fn from_reader(
        mut reader: Box<dyn Read + Send>,
        name: PathBuf,
    ) -> Result<Self, RecordingError> {
        let start = source::read_front(reader.as_mut(), 0, PIPE_HEADER_BYTES, &name)?;
        match header::mode(&start, &name)? {
            (endian, Mode::Pipe) => Ok(Self::in_pipe_mode(reader, name, endian, None)),
            (_, Mode::File { .. }) => Err(RecordingError::NeedsSeek { path: name }),
        }
    }

    /// Reads a recording in either mode from anything that can be read at any place.
    ///
    /// # Errors
    /// [`RecordingError`], when it cannot be read or holds nothing readable.
    pub fn from_seekable(
        mut file: Box<dyn ReadSeek>,
        name: PathBuf,
    ) -> Result<Self, RecordingError> {
        let io_error = |source| RecordingError::Io { path: name.clone(), offset: 0, source };
        let len_bytes = file.seek(SeekFrom::End(0)).map_err(io_error)?;
        let n = FILE_HEADER_BYTES;
        let start = source::read_at(file.as_mut(), 0, n, &name)?;
        match header::mode(&start, &name)? {
            (endian, Mode::Pipe) => {
                let offset = PIPE_HEADER_BYTES;
                file.seek(SeekFrom::Start(offset)).map_err(io_error)?;
                Ok(Self::in_pipe_mode(file, name, endian, Some(len_bytes)))
            }
            (endian, Mode::File { header_len }) => {
                let header = header::file_header(&start, endian, header_len, &name)?;
                let (source, intake) = preamble::read(file, &header, endian, len_bytes, name)?;
                Ok(Self::new(source, intake, endian))
            }
        }
    }

    fn in_pipe_mode(
        reader: Box<dyn Read + Send>,
        name: PathBuf,
        endian: Endian,
        len_bytes: Option<u64>,
    ) -> Self {
        let offset = PIPE_HEADER_BYTES;
        let source = RecordingSource::new(reader, name, offset, len_bytes, len_bytes);
        Self::new(source, Intake::new(endian), endian)
    }

    fn new(source: RecordingSource, intake: Intake, endian: Endian) -> Self {
        let stream = EventStream::new(source, endian);
        Self { stream, intake, is_read: false, is_over: false }
    }

    /// The next record in time order; `None` at the end.
    ///
    /// [`Record::Machine`] and every [`Record::Event`] come before the first sample of the event,
    /// and a [`Record::Collected`] comes last.
    ///
    /// # Errors
    /// [`RecordingError::Io`], after which there is nothing more.
    pub fn next_record(&mut self) -> Result<Option<Record>, RecordingError> {
        loop {
            if let Some(record) = self.intake.pop() {
                return Ok(Some(record));
            }
            if self.is_over {
                return Ok(None);
            }
            if self.is_read {
                self.is_over = true;
                return Ok(Some(Record::Collected(Box::new(self.collected()))));
            }
            self.read()?;
        }
    }

    /// Takes in one more record of the file.
    fn read(&mut self) -> Result<(), RecordingError> {
        match self.stream.next_record() {
            Ok(Some(record)) => self.intake.record(&record),
            Ok(None) => {
                self.is_read = true;
                self.intake.finish();
            }
            Err(error) => {
                self.is_read = true;
                self.intake.finish();
                return Err(error);
            }
        }
        for warning in self.stream.take_warnings() {
            self.intake.warn(warning);
        }
        Ok(())
    }

    /// Number of bytes that were read, and of all where that is known.
    #[must_use]
    pub fn progress(&self) -> (u64, Option<u64>) {
        let source = self.stream.source();
        (source.offset(), source.total_bytes())
    }

    /// Fates of all samples so far: `kernel_samples = delivered + ring_full + undecodable`.
    #[must_use]
    pub fn collected(&self) -> Collected {
        self.intake.collected()
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("progress", &self.progress())
            .field("collected", &self.collected())
            .finish_non_exhaustive()
    }
}
