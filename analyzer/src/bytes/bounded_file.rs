//! A file's headers and symbols as a stream of which no more than a bounded part is read.

use crate::bytes::file::FileBytes;
use crate::limit;
use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Read, Result as IoResult, Seek, SeekFrom};

/// Bytes that are read at once: names of symbols are asked for one by one, and stand together.
const BLOCK_BYTES: u64 = 1 << 18;
/// Blocks kept: symbols, their names and the versions of both are read by turns.
const N_BLOCKS: usize = 4;

/// `Read + Seek` over [`FileBytes`] that gives up after [`limit::MAX_HEADER_BYTES`], so that no
/// header can ask for more.
pub(crate) struct BoundedFile<'a> {
    file: &'a dyn FileBytes,
    position: u64,
    left: u64,
    /// The blocks read last, the newest first, and where each begins.
    blocks: VecDeque<(u64, Vec<u8>)>,
}

impl<'a> BoundedFile<'a> {
    pub(crate) const fn new(file: &'a dyn FileBytes) -> Self {
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
