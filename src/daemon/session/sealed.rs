//! Bytes that a worker made for clients, in a file that nobody can change any more: they are handed on by pieces, and
//! take no memory of this process, however many clients are slow to take them.

use bytes::Bytes;
use dataspace_proto::worker::{EVENT_TEXT, MAX_MADE_BYTES};
use rustix::fd::OwnedFd;
use rustix::fs::{SealFlags, fcntl_get_seals};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Weak};

/// Bytes that go out at once.
const PIECE_BYTES: u64 = 64 << 10;

/// Seals without which a file may change, or be none in memory: a read could wait for ever.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::WRITE);

/// A part of such a file; each piece that is taken is taken off it.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    file: Arc<File>,
    start: u64,
    end: u64,
}

impl Sealed {
    /// All of the file of `fd`, which comes from a worker.
    ///
    /// # Errors
    /// Where it is no such file, or longer than they may be.
    pub(crate) fn of(fd: OwnedFd) -> io::Result<Self> {
        if !fcntl_get_seals(&fd)?.contains(SEALS) {
            return Err(Errno::PERM.into());
        }
        let file = File::from(fd);
        let end = file.metadata()?.len();
        let most = MAX_MADE_BYTES + (EVENT_TEXT.0.len() + EVENT_TEXT.1.len()) as u64;
        if end > most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(Self { file: Arc::new(file), start: 0, end })
    }

    /// The JSON of a snapshot that is an event.
    pub(crate) fn json(&self) -> Self {
        let (before, after) = EVENT_TEXT;
        let start = (self.start + before.len() as u64).min(self.end);
        let end = self.end.saturating_sub(after.len() as u64).max(start);
        Self { file: Arc::clone(&self.file), start, end }
    }

    /// The whole file, while somebody has a part of it.
    pub(crate) fn whole(&self) -> Weak<File> {
        Arc::downgrade(&self.file)
    }

    /// Bytes that are left.
    pub(crate) const fn len(&self) -> u64 {
        self.end - self.start
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// What the kernel said.
    pub(crate) fn next_piece(&mut self) -> io::Result<Option<Bytes>> {
        let n_bytes = self.len().min(PIECE_BYTES);
        if n_bytes == 0 {
            return Ok(None);
        }
        let mut bytes = vec![0; n_bytes as usize];
        self.file.read_exact_at(&mut bytes, self.start)?;
        self.start += n_bytes;
        Ok(Some(bytes.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, fcntl_add_seals, memfd_create};

    fn memory_file(bytes: &[u8], seals: SealFlags) -> OwnedFd {
        let fd = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::io::write(&fd, bytes).unwrap();
        fcntl_add_seals(&fd, seals).unwrap();
        fd
    }

    #[test]
    fn only_what_cannot_change_is_handed_on() {
        assert!(Sealed::of(memory_file(b"x", SEALS)).is_ok());
        assert!(Sealed::of(memory_file(b"x", SealFlags::WRITE)).is_err());
        assert!(Sealed::of(tempfile::tempfile().unwrap().into()).is_err());
        assert!(Sealed::of(rustix::pipe::pipe().unwrap().0).is_err());
        let long = memfd_create("test", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&long, MAX_MADE_BYTES + 1000).unwrap();
        fcntl_add_seals(&long, SEALS).unwrap();
        assert!(Sealed::of(long).is_err());
    }

    #[test]
    fn pieces_make_the_whole() {
        let json: Vec<u8> = (0..150_000u32).map(|n| n as u8).collect();
        let event = [EVENT_TEXT.0, &json, EVENT_TEXT.1].concat();
        let sealed = Sealed::of(memory_file(&event, SEALS)).unwrap();
        let all = |mut part: Sealed| {
            let mut bytes = Vec::new();
            while let Some(piece) = part.next_piece().unwrap() {
                assert!(piece.len() as u64 <= PIECE_BYTES);
                bytes.extend_from_slice(&piece);
            }
            bytes
        };
        assert_eq!(all(sealed.clone()), event);
        assert_eq!(all(sealed.json()), json);
        let short = Sealed::of(memory_file(b"x", SEALS)).unwrap();
        assert_eq!(short.json().len(), 0);
    }
}
