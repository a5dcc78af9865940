//! Bytes that a worker made for clients, in a file that nobody can change any more: they are handed on by pieces, and
//! take no memory of this process, however many clients are slow to take them.

use bytes::Bytes;
use dataspace_proto::worker::{EVENT_TEXT, MAX_MADE_BYTES};
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Weak};

/// Bytes that go out at once.
const PIECE_BYTES: u64 = 64 << 10;

/// Seals after which nobody changes a file.
const SEALS: SealFlags =
    SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::WRITE).union(SealFlags::SEAL);

/// A part of such a file; each piece that is taken is taken off it.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    file: Arc<File>,
    start: u64,
    end: u64,
}

impl Sealed {
    /// A file in memory for a worker to write to: none of its own is taken, for any other file can hold who closes it.
    ///
    /// # Errors
    /// What the kernel said.
    pub(crate) fn blank() -> io::Result<OwnedFd> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        Ok(memfd_create("made", flags)?)
    }

    /// All of the [`blank`](Self::blank) file `fd`, as a worker has left it.
    ///
    /// # Errors
    /// Where it can still be written to, or is longer than they may be.
    pub(crate) fn seal(fd: OwnedFd) -> io::Result<Self> {
        fcntl_add_seals(&fd, SEALS)?;
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

    fn written(bytes: &[u8]) -> OwnedFd {
        let fd = Sealed::blank().unwrap();
        rustix::io::write(&fd, bytes).unwrap();
        fd
    }

    #[test]
    fn what_is_handed_on_changes_no_more() {
        let file = written(b"x");
        let of_worker = File::from(file.try_clone().unwrap());
        let sealed = Sealed::seal(file).unwrap();
        assert_eq!(sealed.len(), 1);
        assert!(of_worker.set_len(0).is_err() && of_worker.set_len(9).is_err());
        assert!(of_worker.write_at(b"y", 0).is_err());
        let long = Sealed::blank().unwrap();
        rustix::fs::ftruncate(&long, MAX_MADE_BYTES + 1000).unwrap();
        assert!(Sealed::seal(long).is_err());
    }

    #[test]
    fn pieces_make_the_whole() {
        let json: Vec<u8> = (0..150_000u32).map(|n| n as u8).collect();
        let event = [EVENT_TEXT.0, &json, EVENT_TEXT.1].concat();
        let sealed = Sealed::seal(written(&event)).unwrap();
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
        let short = Sealed::seal(written(b"x")).unwrap();
        assert_eq!(short.json().len(), 0);
    }
}
