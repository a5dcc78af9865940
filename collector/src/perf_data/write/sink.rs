//! Destination of a recording: a file that gets its name when it is whole, or a stream.

use super::part_file::{PartFile, RecordingName, io_error};
use crate::error::RecorderError;
use crate::record::ring::HEADER_BYTES;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// So much is written at once: system calls do not count any more, and memory does not yet.
const BUFFER_BYTES: usize = 1 << 20;

/// Interval at which a named pipe is looked at for a reader, and whether we still wait for one.
const GLANCE: Duration = Duration::from_millis(20);

/// Bytes on their way out.
pub(super) struct Sink {
    out: Out,
    buffer: Vec<u8>,
    n_flushed: u64,
}

enum Out {
    File(PartFile),
    Stream { stream: Box<dyn Write + Send>, name: PathBuf },
}

impl Sink {
    /// Begins the file that will be called `path`. What has that name now stays until the end; if
    /// it is no file but a named pipe or a device, it is written to as a stream. A pipe has to have
    /// a reader, who is waited for until `is_given_up`.
    pub(super) fn create(
        path: &Path,
        is_given_up: impl Fn() -> bool,
    ) -> Result<Self, RecorderError> {
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => Err(RecorderError::Directory { path: path.into() }),
            Ok(there) if !there.is_file() => {
                let is_pipe = there.file_type().is_fifo();
                let stream = if is_pipe { open_pipe(path, is_given_up) } else { open(path, 0) }?;
                Ok(Self::stream(Box::new(stream), path.into()))
            }
            _ if path.file_name().is_none() => Err(RecorderError::Directory { path: path.into() }),
            // The file that a link leads to gets the recording, not the link its place.
            Ok(_) if path.is_symlink() => {
                let file = fs::canonicalize(path);
                let file = file.map_err(|source| io_error(path, "opened", source))?;
                Ok(Self::new(Out::File(PartFile::create(&file)?)))
            }
            _ => Ok(Self::new(Out::File(PartFile::create(path)?))),
        }
    }

    /// Writes to `stream`, which errors call `name`.
    pub(super) fn stream(stream: Box<dyn Write + Send>, name: PathBuf) -> Self {
        Self::new(Out::Stream { stream, name })
    }

    fn new(out: Out) -> Self {
        Self { out, buffer: Vec::with_capacity(BUFFER_BYTES + (1 << 16)), n_flushed: 0 }
    }

    /// Tells whether what was written can be written over.
    pub(super) const fn is_file(&self) -> bool {
        self.file().is_some()
    }

    const fn file(&self) -> Option<&PartFile> {
        match &self.out {
            Out::File(file) => Some(file),
            Out::Stream { .. } => None,
        }
    }

    /// The bytes so far.
    pub(super) const fn n_bytes(&self) -> u64 {
        self.n_flushed + self.buffer.len() as u64
    }

    /// The bytes that are out of our hands.
    pub(super) const fn n_flushed(&self) -> u64 {
        self.n_flushed
    }

    /// Room for the next record, which is appended.
    pub(super) const fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    pub(super) const fn is_full(&self) -> bool {
        self.buffer.len() >= BUFFER_BYTES
    }

    /// Writes out what was appended, which is whole records. If that fails, what counts as written
    /// is whole records too.
    pub(super) fn flush(&mut self) -> Result<(), RecorderError> {
        let (n_written, written) = match &mut self.out {
            Out::File(file) => {
                let (n_written, written) = write_at(file.file(), &self.buffer, self.n_flushed);
                let is_whole = written.is_ok();
                let whole = if is_whole { n_written } else { n_whole(&self.buffer[..n_written]) };
                (whole, written)
            }
            Out::Stream { stream, .. } => {
                let written = stream.write_all(&self.buffer).and_then(|()| stream.flush());
                (self.buffer.len(), written)
            }
        };
        self.n_flushed += n_written as u64;
        self.buffer.drain(..n_written);
        written.map_err(|source| self.error(source))
    }

    /// Writes `bytes` at `offset`, over or after what is written out. A stream stays as it is.
    pub(super) fn patch(&self, offset: u64, bytes: &[u8]) -> Result<(), RecorderError> {
        let Some(file) = self.file() else { return Ok(()) };
        file.file().write_all_at(bytes, offset).map_err(|source| self.error(source))
    }

    fn error(&self, source: io::Error) -> RecorderError {
        let path = match &self.out {
            Out::File(file) => file.part(),
            Out::Stream { name, .. } => name,
        };
        io_error(path, "written", source)
    }

    /// All is written out, and is to be found under its name from now on. Gives the name that the
    /// file has now which had it before.
    pub(super) fn publish(&self) -> Result<Option<PathBuf>, RecorderError> {
        self.file().map_or(Ok(None), PartFile::publish)
    }

    /// Words on how the file began.
    pub(super) fn note(&self) -> Option<String> {
        self.file()?.note()
    }

    /// The names of the file, if it is one.
    pub(super) fn name(&self) -> Option<&RecordingName> {
        self.file().map(PartFile::name)
    }

    /// Place of the unfinished recording.
    pub(super) fn part(&self) -> Option<&Path> {
        self.file().map(PartFile::part)
    }

    /// Removes the file that was begun: nothing of worth is in it.
    pub(super) fn discard(&self) {
        if let Some(file) = self.file() {
            file.discard();
        }
    }
}

fn open(path: &Path, flags: i32) -> Result<File, RecorderError> {
    let stream = OpenOptions::new().write(true).custom_flags(flags).open(path);
    stream.map_err(|source| io_error(path, "opened", source))
}

/// Opens a named pipe once it has a reader. The kernel would wait as well, but listen to nobody.
fn open_pipe(path: &Path, is_given_up: impl Fn() -> bool) -> Result<File, RecorderError> {
    let mut has_told = false;
    loop {
        match open(path, libc::O_NONBLOCK) {
            Err(RecorderError::Io { source, .. }) if source.raw_os_error() == Some(libc::ENXIO) => {
            }
            Err(error) => return Err(error),
            Ok(pipe) => {
                // From here on a full pipe is waited for.
                let flags = fcntl_getfl(&pipe)
                    .and_then(|was| fcntl_setfl(&pipe, was.difference(OFlags::NONBLOCK)));
                flags.map_err(|errno| io_error(path, "opened", errno.into()))?;
                return Ok(pipe);
            }
        }
        if is_given_up() {
            return Err(RecorderError::NoReader { path: path.into() });
        }
        if !std::mem::replace(&mut has_told, true) {
            tracing::warn!("{} is a named pipe that nobody reads yet: waiting", path.display());
        }
        thread::sleep(GLANCE);
    }
}

/// Number of bytes of the whole records at the front of `bytes`.
fn n_whole(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(size) = bytes.get(at + 6..at + HEADER_BYTES) {
        let size = usize::from(u16::from_ne_bytes([size[0], size[1]]));
        if size < HEADER_BYTES || at + size > bytes.len() {
            break;
        }
        at += size;
    }
    at
}

/// Number of bytes that could be written, and why no more.
fn write_at(file: &File, bytes: &[u8], offset: u64) -> (usize, io::Result<()>) {
    let mut n_written = 0;
    while n_written < bytes.len() {
        match file.write_at(&bytes[n_written..], offset + n_written as u64) {
            Ok(0) => return (n_written, Err(io::ErrorKind::WriteZero.into())),
            Ok(n) => n_written += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (n_written, Err(error)),
        }
    }
    (n_written, Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(path: &Path) -> Result<Sink, RecorderError> {
        Sink::create(path, || false)
    }

    fn written(sink: &mut Sink, bytes: &[u8]) {
        sink.buffer().extend_from_slice(bytes);
        sink.flush().unwrap();
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_whole_and_the_one_before_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("perf.data");
        fs::write(&path, b"before").unwrap();
        let mut sink = create(&path).unwrap();
        written(&mut sink, b"12345678");
        sink.buffer().extend_from_slice(b"behind");
        sink.patch(2, b"xx").unwrap();
        sink.patch(8, b"overwritten").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before");
        assert!(matches!(create(&path), Err(RecorderError::InUse { .. })));
        sink.flush().unwrap();
        assert_eq!(sink.publish().unwrap(), Some(dir.path().join("perf.data.old")));
        assert_eq!(fs::read(&path).unwrap(), b"12xx5678behinditten");
        assert_eq!(fs::read(dir.path().join("perf.data.old")).unwrap(), b"before");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn of_a_write_that_broke_off_whole_records_count() {
        let record = [9, 0, 0, 0, 0, 0, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let bytes = [record, record].concat();
        for (n_bytes, expected) in [(0, 0), (15, 0), (16, 16), (23, 16), (31, 16), (32, 32)] {
            assert_eq!(n_whole(&bytes[..n_bytes]), expected, "{n_bytes}");
        }
        assert_eq!(n_whole(&[0; 64]), 0, "a record without length ends nowhere");
    }

    #[test]
    fn places_that_cannot_be_written_are_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(create(dir.path()), Err(RecorderError::Directory { .. })));
        let nowhere = dir.path().join("no/such/file");
        assert!(matches!(create(&nowhere), Err(RecorderError::NotCreated { .. })));
        assert!(!create(Path::new("/dev/null")).unwrap().is_file());
    }

    #[test]
    fn a_pipe_without_a_reader_is_given_up_and_one_with_a_reader_is_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let n_asked = std::cell::Cell::new(0);
        let is_given_up = || n_asked.replace(n_asked.get() + 1) == 2;
        let given_up = Sink::create(&path, is_given_up);
        assert!(matches!(given_up, Err(RecorderError::NoReader { .. })));
        let reader = thread::spawn({
            let path = path.clone();
            move || fs::read(path).unwrap()
        });
        let mut sink = create(&path).unwrap();
        // More than a pipe holds: what is full is waited for.
        written(&mut sink, &[7; 1 << 20]);
        drop(sink);
        assert_eq!(reader.join().unwrap(), [7; 1 << 20]);
    }
}
