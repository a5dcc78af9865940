//! Where a recording goes: a file that gets its name when it is whole, or a stream.

use super::error::RecorderError;
use crate::ring::HEADER_BYTES;
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// So much is written at once: system calls do not count any more, and memory does not yet.
const BUFFER_BYTES: usize = 1 << 20;

/// Only for the user's own eyes, as `perf` has it: samples hold registers and parts of the stack.
const MODE: u32 = 0o600;

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

/// A file that is not whole yet.
struct PartFile {
    file: File,
    part: PathBuf,
    path: PathBuf,
}

impl Sink {
    /// Begins the file that will be called `path`. What has that name now stays until the end; if
    /// it is no file but a named pipe or a device, it is written to as a stream.
    pub(super) fn create(path: &Path) -> Result<Self, RecorderError> {
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => Err(RecorderError::Directory { path: path.into() }),
            Ok(there) if !there.is_file() => {
                let stream = OpenOptions::new().write(true).open(path);
                let stream = stream.map_err(|source| io_error(path, "opened", source))?;
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

    /// Whether what was written can be written over.
    pub(super) const fn is_file(&self) -> bool {
        matches!(self.out, Out::File(_))
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
                let (n_written, written) = write_at(&file.file, &self.buffer, self.n_flushed);
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

    /// Writes `bytes` at `offset`, over or behind what is written out. A stream stays as it is.
    pub(super) fn patch(&self, offset: u64, bytes: &[u8]) -> Result<(), RecorderError> {
        match &self.out {
            Out::File(file) => {
                file.file.write_all_at(bytes, offset).map_err(|source| self.error(source))
            }
            Out::Stream { .. } => Ok(()),
        }
    }

    fn error(&self, source: io::Error) -> RecorderError {
        let path = match &self.out {
            Out::File(file) => &file.part,
            Out::Stream { name, .. } => name,
        };
        io_error(path, "written", source)
    }

    /// All is written, and is to be found under its name from now on.
    pub(super) fn finish(&mut self) -> Result<(), RecorderError> {
        self.flush()?;
        match &self.out {
            Out::File(file) => file.publish(),
            Out::Stream { .. } => Ok(()),
        }
    }

    /// Where the unfinished recording is.
    pub(super) fn part(&self) -> Option<&Path> {
        match &self.out {
            Out::File(file) => Some(&file.part),
            Out::Stream { .. } => None,
        }
    }

    /// Removes the file that was begun: nothing of worth is in it.
    pub(super) fn discard(&self) {
        if let Out::File(file) = &self.out
            && let Err(error) = fs::remove_file(&file.part)
        {
            tracing::warn!(%error, path = %file.part.display(), "the file stays");
        }
    }
}

/// How many bytes the whole records at the front of `bytes` have.
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

/// How many bytes could be written, and why no more.
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

impl PartFile {
    fn create(path: &Path) -> Result<Self, RecorderError> {
        let part = with_suffix(path, ".part");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(MODE);
        let mut opened = options.open(&part);
        if opened.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
            put_aside(&part)?;
            opened = options.open(&part);
        }
        let file = opened.map_err(|source| io_error(&part, "created", source))?;
        lock(&file, &part)?;
        Ok(Self { file, part, path: path.into() })
    }

    /// Gives the file its name; what had it gets `.old` at its end, as with `perf record`. At no
    /// time is there no file of that name, if there was one.
    fn publish(&self) -> Result<(), RecorderError> {
        self.file.sync_all().map_err(|source| io_error(&self.part, "synchronised", source))?;
        if self.path.symlink_metadata().is_ok() {
            keep_old(&self.path)?;
        }
        fs::rename(&self.part, &self.path)
            .map_err(|source| io_error(&self.part, "renamed", source))?;
        let dir = self.path.parent().filter(|dir| !dir.as_os_str().is_empty());
        let dir = dir.unwrap_or(Path::new("."));
        // The name is not safe from a loss of power before its directory is. Some file systems
        // cannot do that, and a directory need not be readable.
        if let Err(error) = File::open(dir).and_then(|dir| dir.sync_all()) {
            tracing::debug!(%error, "the directory is not synchronised");
        }
        Ok(())
    }
}

/// Another recorder's file is left alone; that of one which was killed is kept, under another name.
fn put_aside(part: &Path) -> Result<(), RecorderError> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let there = options.open(part).map_err(|source| io_error(part, "opened", source))?;
    lock(&there, part)?;
    let aside = with_suffix(part, ".old");
    tracing::warn!(
        "{} is left from a recorder that was killed; it is now called {}",
        part.display(),
        aside.display()
    );
    fs::rename(part, aside).map_err(|source| io_error(part, "renamed", source))
}

/// Until the file is closed, which the end of the process does at the latest.
fn lock(file: &File, path: &Path) -> Result<(), RecorderError> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => Err(RecorderError::InUse { path: path.into() }),
        Err(errno) => {
            // Some network file systems have no locks.
            tracing::debug!(%errno, path = %path.display(), "no lock");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

fn keep_old(path: &Path) -> Result<(), RecorderError> {
    let old = with_suffix(path, ".old");
    let second = with_suffix(path, ".old.part");
    let _ = fs::remove_file(&second);
    // A second name first, so that the first one can be taken over; where a file system has no
    // hard links it is without a file for a moment.
    let renamed = match fs::hard_link(path, &second) {
        Ok(()) => fs::rename(&second, &old),
        Err(_) => fs::rename(path, &old),
    };
    renamed.map_err(|source| io_error(path, "kept under another name", source))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

fn io_error(path: &Path, what: &'static str, source: io::Error) -> RecorderError {
    RecorderError::Io { path: path.into(), what, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(sink: &mut Sink, bytes: &[u8]) {
        sink.buffer().extend_from_slice(bytes);
        sink.flush().unwrap();
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_whole_and_the_one_before_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("perf.data");
        fs::write(&path, b"before").unwrap();
        let mut sink = Sink::create(&path).unwrap();
        written(&mut sink, b"12345678");
        sink.buffer().extend_from_slice(b"behind");
        sink.patch(2, b"xx").unwrap();
        sink.patch(8, b"overwritten").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before");
        assert!(matches!(Sink::create(&path), Err(RecorderError::InUse { .. })));
        sink.finish().unwrap();
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
    fn what_a_killed_recorder_left_is_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(dir.path().join("a.part"), b"left").unwrap();
        let sink = Sink::create(&path).unwrap();
        assert_eq!(fs::read(dir.path().join("a.part.old")).unwrap(), b"left");
        sink.discard();
        assert!(!dir.path().join("a.part").exists());
    }

    #[test]
    fn places_that_cannot_be_written_are_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(Sink::create(dir.path()), Err(RecorderError::Directory { .. })));
        let nowhere = dir.path().join("no/such/file");
        assert!(matches!(Sink::create(&nowhere), Err(RecorderError::Io { what: "created", .. })));
        assert!(!Sink::create(Path::new("/dev/null")).unwrap().is_file());
    }
}
