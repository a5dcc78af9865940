//! A file's headers and symbols, of which no more than a bounded part is read, and nothing reserved that the file
//! only claims to have.

use crate::bytes::file::FileBytes;
use crate::limit;
use object::{ReadCache, ReadRef};
use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Read, Result as IoResult, Seek, SeekFrom};
use std::ops::Range;

/// Bytes that are read at once: names of symbols are asked for one by one, and stand together.
const BLOCK_BYTES: u64 = 1 << 18;
/// Blocks kept: symbols, their names and the versions of both are read by turns.
const N_BLOCKS: usize = 4;

/// The bytes that a parser may read of a file. It is asked before anything is reserved: the cache reserves what a header
/// claims, and fills it with zeros, before it reads the first byte.
pub(crate) struct HeaderBytes<'f> {
    file: &'f dyn FileBytes,
    cache: ReadCache<BoundedFile<'f>>,
}

impl<'f> HeaderBytes<'f> {
    pub(crate) fn new(file: &'f dyn FileBytes) -> Self {
        Self { file, cache: ReadCache::new(BoundedFile::new(file)) }
    }

    /// Tells whether the file can have so many bytes, and there is room for them. Where it ends, the cache looks.
    fn is_plausible(&self, n_bytes: u64) -> bool {
        n_bytes <= limit::MAX_HEADER_BYTES
            && n_bytes <= limit::most_expanded(self.file.stored_bytes())
            && usize::try_from(n_bytes).is_ok_and(|n_bytes| self.file.has_room(n_bytes))
    }
}

impl<'a> ReadRef<'a> for &'a HeaderBytes<'_> {
    fn len(self) -> Result<u64, ()> {
        Ok(self.file.len())
    }

    fn read_bytes_at(self, offset: u64, n_bytes: u64) -> Result<&'a [u8], ()> {
        if !self.is_plausible(n_bytes) {
            return Err(());
        }
        (&self.cache).read_bytes_at(offset, n_bytes)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        (&self.cache).read_bytes_at_until(range, delimiter)
    }
}

/// `Read + Seek` over [`FileBytes`] that gives up after [`limit::MAX_HEADER_BYTES`], so that no
/// header can ask for more.
struct BoundedFile<'a> {
    file: &'a dyn FileBytes,
    position: u64,
    left: u64,
    /// The blocks read last, the newest first, and where each begins.
    blocks: VecDeque<(u64, Vec<u8>)>,
}

impl<'a> BoundedFile<'a> {
    const fn new(file: &'a dyn FileBytes) -> Self {
        Self { file, position: 0, left: limit::MAX_HEADER_BYTES, blocks: VecDeque::new() }
    }

    /// The bytes from `position` to the end of its block; read now if they are not at hand.
    fn block(&mut self) -> IoResult<&[u8]> {
        let start = self.position - self.position % BLOCK_BYTES;
        let mut idx = self.blocks.iter().position(|(at, _)| *at == start);
        if idx.is_none() {
            let n_bytes = self.file.len().saturating_sub(start).min(BLOCK_BYTES);
            let left = self.left.checked_sub(n_bytes);
            self.left = left.ok_or_else(|| Error::new(ErrorKind::FileTooLarge, "header limit"))?;
            let mut bytes = vec![0; usize::try_from(n_bytes).unwrap_or(0)];
            self.file.read_exact_at(start, &mut bytes).map_err(Error::other)?;
            self.blocks.truncate(N_BLOCKS - 1);
            self.blocks.push_front((start, bytes));
            idx = Some(0);
        }
        let into = usize::try_from(self.position - start).unwrap_or(usize::MAX);
        let block = idx.and_then(|idx| self.blocks.get(idx));
        Ok(block.and_then(|(_, bytes)| bytes.get(into..)).unwrap_or(&[]))
    }
}

impl Read for BoundedFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> IoResult<usize> {
        let block = self.block()?;
        let n = block.len().min(buffer.len());
        buffer[..n].copy_from_slice(&block[..n]);
        self.position += n as u64;
        Ok(n)
    }
}

impl Seek for BoundedFile<'_> {
    fn seek(&mut self, to: SeekFrom) -> IoResult<u64> {
        let target = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(delta) => self.file.len().checked_add_signed(delta),
            SeekFrom::Current(delta) => self.position.checked_add_signed(delta),
        };
        self.position = target.ok_or_else(|| Error::from(ErrorKind::InvalidInput))?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::file::FileError;

    /// A file of a gigabyte of which so much is stored, while there is room for so much.
    struct Sparse {
        stored_bytes: u64,
        room: usize,
    }

    impl FileBytes for Sparse {
        fn len(&self) -> u64 {
            1 << 30
        }

        fn read_exact_at(&self, _: u64, buffer: &mut [u8]) -> Result<(), FileError> {
            buffer.fill(7);
            Ok(())
        }

        fn stored_bytes(&self) -> u64 {
            self.stored_bytes
        }

        fn has_room(&self, n_bytes: usize) -> bool {
            n_bytes <= self.room
        }
    }

    #[test]
    fn what_is_claimed_is_neither_reserved_nor_read_where_it_cannot_be_there() {
        let whole = Sparse { stored_bytes: 1 << 30, room: usize::MAX };
        let is_read = |file: &Sparse, offset: u64, n_bytes: u64| {
            let bytes = HeaderBytes::new(file);
            let read = (&bytes).read_bytes_at(offset, n_bytes);
            assert!(read.is_ok_and(|read| read.len() as u64 == n_bytes) == read.is_ok());
            read.is_ok()
        };
        assert!(is_read(&whole, 0, 4 << 20) && is_read(&whole, (1 << 30) - 4, 4));
        assert!(!is_read(&whole, (1 << 30) - 4, 5), "after its end");
        assert!(!is_read(&whole, u64::MAX, 2));
        assert!(!is_read(&whole, 0, limit::MAX_HEADER_BYTES + 1));
        let sparse = Sparse { stored_bytes: 4096, room: usize::MAX };
        let most = limit::most_expanded(4096);
        assert!(is_read(&sparse, 0, most) && !is_read(&sparse, 0, most + 1), "a hole");
        let short = Sparse { stored_bytes: 1 << 30, room: 1 << 20 };
        assert!(is_read(&short, 0, 1 << 20) && !is_read(&short, 0, (1 << 20) + 1), "no room");
    }
}
