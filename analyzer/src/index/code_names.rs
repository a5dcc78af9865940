//! Reads the files in which runtimes name the code they make: perf maps and jitdumps. They grow while
//! they are read, and their writers are not to be trusted.
//!
//! Sources: `tools/perf/Documentation/jit-interface.txt` and `jitdump-specification.txt` in the Linux
//! tree.

use crate::bytes::file::{
    FileBytes, FileSource, LoadObjectIdx, LoadObjectKey, NamesFile, NamesFormat,
};
use crate::index::named_code::CodeTable;
use crate::limit;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// The load object that the scope of such code names.
const MADE_CODE: &str = "[jit]";
/// So much is read at a time. A line or a record's head is far shorter.
const PIECE_BYTES: usize = 256 << 10;
/// A line that is longer is none.
const MAX_LINE_BYTES: usize = 16 << 10;

/// `JITHEADER_MAGIC`, "JiTD" on a big-endian machine.
const DUMP_MAGIC: u32 = 0x4a69_5444;
/// magic, version, total_size, elf_mach, pad1, pid: 4 bytes each; timestamp, flags: 8 each.
const DUMP_HEADER_BYTES: usize = 40;
/// id, total_size: 4 bytes each; timestamp: 8.
const DUMP_PREFIX_BYTES: usize = 16;
const CODE_LOAD: u32 = 0;
const CODE_MOVE: u32 = 1;
/// Of a record so much is looked at: its fixed part and a name.
const MAX_DUMP_HEAD_BYTES: usize = 64 + limit::MAX_CODE_NAME_BYTES;

/// Names that the files gave so far.
#[derive(Debug, Default)]
pub(crate) struct CodeNames {
    readers: FxHashMap<LoadObjectIdx, CodeNameReader>,
    /// In the order in which they were first read.
    order: VecDeque<LoadObjectIdx>,
}

/// An answer: all names so far, and whether a limit cut off some.
#[derive(Clone, Debug)]
pub struct Names {
    /// The names.
    pub table: Arc<CodeTable>,
    /// There are more than are kept.
    pub is_cut: bool,
}

impl CodeNames {
    /// The names in the file of `key`, after a look at what was added; `None` if there is no file.
    pub(crate) fn read(
        &mut self,
        object: LoadObjectIdx,
        key: &LoadObjectKey,
        format: NamesFormat,
        source: &dyn FileSource,
    ) -> Option<Names> {
        // A file that is gone, as its process is, leaves the names that were read.
        if let Some(file) = source.code_names(key, format) {
            if !self.readers.contains_key(&object) {
                self.order.push_back(object);
                self.readers.insert(object, CodeNameReader::new(format));
            }
            self.readers.get_mut(&object)?.update(&file);
            self.make_room(object);
        }
        let reader = self.readers.get(&object)?;
        Some(Names { table: Arc::clone(&reader.table), is_cut: reader.is_cut })
    }

    fn make_room(&mut self, kept: LoadObjectIdx) {
        let mut n_bytes: usize = self.readers.values().map(|reader| reader.table.n_bytes()).sum();
        while n_bytes > limit::MAX_ALL_CODE_NAMES_BYTES
            || self.order.len() > limit::MAX_CODE_NAME_PROCESSES
        {
            let Some(oldest) = self.order.pop_front() else { return };
            if oldest == kept {
                self.order.push_back(kept);
                if self.order.len() == 1 {
                    return;
                }
            } else if let Some(reader) = self.readers.remove(&oldest) {
                n_bytes -= reader.table.n_bytes();
            }
        }
    }
}

/// One file, read as far as it was whole.
#[derive(Debug)]
struct CodeNameReader {
    format: NamesFormat,
    inode: u64,
    /// Offset of the next line or record.
    offset: u64,
    is_big_endian: bool,
    n_entries: u64,
    table: Arc<CodeTable>,
    object: Arc<str>,
    is_cut: bool,
    /// Behind damage nothing can be found.
    is_damaged: bool,
}

impl CodeNameReader {
    fn new(format: NamesFormat) -> Self {
        Self {
            format,
            inode: 0,
            offset: 0,
            is_big_endian: false,
            n_entries: 0,
            table: Arc::default(),
            object: MADE_CODE.into(),
            is_cut: false,
            is_damaged: false,
        }
    }

    /// Reads what was added since the last time. What cannot be read now may be the next time.
    fn update(&mut self, file: &NamesFile) {
        if file.inode != self.inode || file.bytes.len() < self.offset {
            *self = Self { inode: file.inode, ..Self::new(self.format) };
        }
        if self.is_damaged || self.is_cut || file.bytes.len() == self.offset {
            return;
        }
        match self.format {
            NamesFormat::PerfMap => self.lines(file.bytes.as_ref()),
            NamesFormat::JitDump => self.records(file.bytes.as_ref()),
        }
    }

    fn lines(&mut self, file: &dyn FileBytes) {
        let mut piece = vec![0; PIECE_BYTES];
        while !self.is_cut && self.offset < file.len() {
            if self.offset > limit::MAX_CODE_NAME_FILE_BYTES {
                self.is_cut = true;
                return;
            }
            let n =
                piece.len().min(usize::try_from(file.len() - self.offset).unwrap_or(usize::MAX));
            let bytes = &mut piece[..n];
            if file.read_exact_at(self.offset, bytes).is_err() {
                return;
            }
            let n_whole = match bytes.iter().rposition(|&byte| byte == b'\n') {
                Some(end) => end + 1,
                None if n >= MAX_LINE_BYTES => n,
                None => return, // the writer is not done with the line
            };
            for line in bytes[..n_whole].split(|&byte| byte == b'\n') {
                self.line(line);
            }
            self.offset += n_whole as u64;
        }
    }

    fn line(&mut self, line: &[u8]) {
        // What is no entry counts as one: it takes time too.
        if !self.is_full()
            && let Some((start, len_bytes, name)) = map_line(line)
        {
            Arc::make_mut(&mut self.table).insert(start, len_bytes, &self.object, name);
        }
    }

    /// Counts one entry more, and says whether it is one too many.
    fn is_full(&mut self) -> bool {
        self.n_entries += 1;
        self.is_cut |= self.n_entries > limit::MAX_CODE_NAME_ENTRIES
            || self.table.n_bytes() > limit::MAX_CODE_NAMES_BYTES;
        self.is_cut
    }

    fn records(&mut self, file: &dyn FileBytes) {
        if self.offset == 0 && self.dump_header(file).is_none() {
            return;
        }
        let mut window = Window::default();
        while !self.is_cut && !self.is_damaged {
            let Some(len) = self.record(file, &mut window) else { return };
            self.offset = self.offset.saturating_add(len);
        }
    }

    fn dump_header(&mut self, file: &dyn FileBytes) -> Option<()> {
        let mut header = [0; DUMP_HEADER_BYTES];
        file.read_exact_at(0, &mut header).ok()?;
        let magic: [u8; 4] = *header.first_chunk()?;
        self.is_big_endian = match () {
            () if u32::from_le_bytes(magic) == DUMP_MAGIC => false,
            () if u32::from_be_bytes(magic) == DUMP_MAGIC => true,
            () => {
                self.is_damaged = true;
                return None;
            }
        };
        let total = self.fields(&header[8..]).u32()?;
        if (total as usize) < DUMP_HEADER_BYTES {
            self.is_damaged = true;
            return None;
        }
        self.offset = u64::from(total);
        Some(())
    }

    const fn fields<'a>(&self, bytes: &'a [u8]) -> Fields<'a> {
        Fields { bytes, is_big_endian: self.is_big_endian }
    }

    /// Takes in the record at the offset; its length, if it is whole.
    fn record(&mut self, file: &dyn FileBytes, window: &mut Window) -> Option<u64> {
        let n_left = file.len().checked_sub(self.offset)?;
        let n = usize::try_from(n_left).unwrap_or(usize::MAX).min(MAX_DUMP_HEAD_BYTES);
        if n < DUMP_PREFIX_BYTES {
            return None;
        }
        let head = window.at(file, self.offset, n)?;
        let mut fields = self.fields(head);
        let (id, len) = (fields.u32()?, u64::from(fields.u32()?));
        fields.u64()?; // when
        if len < DUMP_PREFIX_BYTES as u64 {
            self.is_damaged = true;
            return None;
        }
        if len > n_left {
            return None; // the writer is not done with it
        }
        let inside = usize::try_from(len).unwrap_or(usize::MAX).min(head.len());
        let mut fields = self.fields(&head[DUMP_PREFIX_BYTES..inside]);
        let entry = entry(id, &mut fields);
        if self.is_full() {
            return None;
        }
        let table = Arc::make_mut(&mut self.table);
        match entry {
            Some(CodeNameRecord::Load { address, len_bytes, name }) => {
                table.insert(address, len_bytes, &self.object, name);
            }
            Some(CodeNameRecord::Move { from, to, len_bytes }) => {
                table.relocate(from, to, len_bytes);
            }
            None => {}
        }
        Some(len)
    }
}

/// `START SIZE NAME`, numbers in hexadecimal; a name may have blanks.
fn map_line(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut parts = line.splitn(3, |&byte| byte == b' ');
    let mut number = || {
        let digits = str::from_utf8(parts.next()?).ok()?;
        u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).ok()
    };
    let (start, len_bytes) = (number()?, number()?);
    let name = parts.next()?.trim_ascii();
    (!name.is_empty()).then_some((start, len_bytes, name))
}

/// Statement of a jitdump's record about names.
enum CodeNameRecord<'a> {
    Load { address: u64, len_bytes: u64, name: &'a [u8] },
    Move { from: u64, to: u64, len_bytes: u64 },
}

fn entry<'a>(id: u32, fields: &mut Fields<'a>) -> Option<CodeNameRecord<'a>> {
    if id != CODE_LOAD && id != CODE_MOVE {
        return None;
    }
    fields.u64()?; // process and thread
    fields.u64()?; // the address again
    if id == CODE_MOVE {
        let (from, to, len_bytes) = (fields.u64()?, fields.u64()?, fields.u64()?);
        return Some(CodeNameRecord::Move { from, to, len_bytes });
    }
    let (address, len_bytes) = (fields.u64()?, fields.u64()?);
    fields.u64()?; // which it is of all
    let name = fields.bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    Some(CodeNameRecord::Load { address, len_bytes, name })
}

/// Numbers of a dump, in its byte order.
struct Fields<'a> {
    bytes: &'a [u8],
    is_big_endian: bool,
}

impl Fields<'_> {
    fn u32(&mut self) -> Option<u32> {
        let (front, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        let read = if self.is_big_endian { u32::from_be_bytes } else { u32::from_le_bytes };
        Some(read(*front))
    }

    fn u64(&mut self) -> Option<u64> {
        let (front, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        let read = if self.is_big_endian { u64::from_be_bytes } else { u64::from_le_bytes };
        Some(read(*front))
    }
}

/// A piece of a file, so that small records are not read one by one. Code between two of them is
/// stepped over.
#[derive(Default)]
struct Window {
    bytes: Vec<u8>,
    offset: u64,
}

impl Window {
    fn at(&mut self, file: &dyn FileBytes, offset: u64, n: usize) -> Option<&[u8]> {
        let into = |window: &Self| usize::try_from(offset.checked_sub(window.offset)?).ok();
        let is_inside = into(self).is_some_and(|at| at.saturating_add(n) <= self.bytes.len());
        if !is_inside {
            let n_left = usize::try_from(file.len().checked_sub(offset)?).unwrap_or(usize::MAX);
            self.bytes.resize(PIECE_BYTES.min(n_left).max(n), 0);
            self.offset = offset;
            if file.read_exact_at(offset, &mut self.bytes).is_err() {
                self.bytes.clear();
                return None;
            }
        }
        let at = into(self)?;
        self.bytes.get(at..at + n)
    }
}

#[cfg(test)]
#[path = "code_names/tests.rs"]
mod tests;
