//! A reader of sections: gimli's reader over pages.

use crate::bytes::page::{Page, PagedSection};
use crate::limit;
use gimli::{Error, LittleEndian, ReaderOffsetId, Result};
use std::borrow::Cow;
use std::sync::Arc;

/// A part of a section, and the page that was read last.
///
/// A copy has no page: what is kept of units (names, headers, tables of files) are copies, and must
/// not keep pages in memory. To find its page again takes a reader some 20 ns, once.
#[derive(Debug)]
pub(crate) struct Reader {
    section: Arc<PagedSection>,
    page: Option<Arc<Page>>,
    at: usize,
    end: usize,
}

impl Clone for Reader {
    #[inline]
    fn clone(&self) -> Self {
        Self { section: Arc::clone(&self.section), page: None, at: self.at, end: self.end }
    }
}

impl Reader {
    /// A reader of a whole section.
    pub(crate) fn new(section: PagedSection) -> Self {
        let end = section.len();
        Self { section: Arc::new(section), page: None, at: 0, end }
    }

    /// A reader of bytes in memory.
    pub(crate) fn of_bytes(bytes: Arc<[u8]>) -> Self {
        Self::new(PagedSection::of_bytes(bytes))
    }

    /// Number of bytes of memory that the section takes whether it is read or not.
    pub(crate) fn n_bytes_in_memory(&self) -> usize {
        if self.section.is_in_memory() { self.section.len() } else { 0 }
    }

    fn end_of_file(&self) -> Error {
        Error::UnexpectedEof(gimli::Reader::offset_id(self))
    }

    /// The part of `page` that is ahead.
    #[inline]
    fn ahead<'a>(&self, page: &'a Page) -> &'a [u8] {
        let bytes = page.bytes_from(self.at);
        &bytes[..bytes.len().min(self.end - self.at)]
    }

    /// The page at `at`, from the cache or the file.
    fn page_at(&self, at: usize) -> Result<Arc<Page>> {
        self.section.page(at).ok_or(Error::Io)
    }

    /// Looks at what is ahead on the page that is read next, at most `n_bytes`.
    pub(crate) fn with_ahead<T>(&self, n_bytes: usize, look: impl FnOnce(&[u8]) -> T) -> Result<T> {
        if self.at >= self.end {
            return Err(self.end_of_file());
        }
        let page = self.page_at(self.at)?;
        let bytes = self.ahead(&page);
        Ok(look(&bytes[..bytes.len().min(n_bytes)]))
    }

    /// The bytes that are ahead on the page that was read last.
    #[inline]
    pub(crate) fn on_page(&self) -> &[u8] {
        self.page.as_ref().map_or(&[], |page| self.ahead(page))
    }

    #[cold]
    fn turn_and_read(&mut self) -> Result<u8> {
        if self.at >= self.end {
            return Err(self.end_of_file());
        }
        let page = self.page_at(self.at)?;
        let byte = page.byte(self.at).ok_or(Error::Io)?;
        self.page = Some(page);
        self.at += 1;
        Ok(byte)
    }

    /// Reads what begins outside of the page or reaches over its end; there is enough.
    fn turn_and_fill(&mut self, mut buffer: &mut [u8]) -> Result<()> {
        while !buffer.is_empty() {
            let page = self.page_at(self.at)?;
            let bytes = self.ahead(&page);
            let n = bytes.len().min(buffer.len());
            if n == 0 {
                return Err(Error::Io);
            }
            let (filled, rest) = buffer.split_at_mut(n);
            filled.copy_from_slice(&bytes[..n]);
            buffer = rest;
            self.at += n;
            self.page = Some(page);
        }
        Ok(())
    }
}

impl gimli::Reader for Reader {
    type Endian = LittleEndian;
    type Offset = usize;

    #[inline]
    fn endian(&self) -> LittleEndian {
        LittleEndian
    }

    #[inline]
    fn len(&self) -> usize {
        self.end - self.at
    }

    #[inline]
    fn empty(&mut self) {
        self.end = self.at;
    }

    #[inline]
    fn truncate(&mut self, len: usize) -> Result<()> {
        if self.len() < len {
            return Err(self.end_of_file());
        }
        self.end = self.at + len;
        Ok(())
    }

    #[inline]
    fn offset_from(&self, base: &Self) -> usize {
        self.at.wrapping_sub(base.at)
    }

    #[inline]
    fn offset_id(&self) -> ReaderOffsetId {
        // No section is as long as the distance between two.
        ReaderOffsetId((self.section.number() << 40).wrapping_add(self.at as u64))
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        let offset = usize::try_from(id.0.wrapping_sub(self.offset_id().0)).ok()?;
        (offset <= self.len()).then_some(offset)
    }

    fn find(&self, byte: u8) -> Result<usize> {
        let mut ahead = self.clone();
        ahead.page.clone_from(&self.page);
        ahead.end = self.end.min(self.at.saturating_add(limit::MAX_STRING_BYTES));
        while ahead.at < ahead.end {
            let page = match ahead.page.take() {
                Some(page) if page.byte(ahead.at).is_some() => page,
                _ => ahead.page_at(ahead.at)?,
            };
            let bytes = ahead.ahead(&page);
            if let Some(found) = bytes.iter().position(|found| *found == byte) {
                return Ok(ahead.at + found - self.at);
            }
            ahead.at += bytes.len();
        }
        Err(self.end_of_file())
    }

    #[inline]
    fn skip(&mut self, len: usize) -> Result<()> {
        if self.len() < len {
            return Err(self.end_of_file());
        }
        self.at += len;
        Ok(())
    }

    #[inline]
    fn split(&mut self, len: usize) -> Result<Self> {
        let mut part = self.clone();
        part.truncate(len)?;
        self.at += len;
        Ok(part)
    }

    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        if let Some(page) = &self.page {
            let bytes = self.ahead(page);
            if bytes.len() == self.len() {
                return Ok(Cow::Borrowed(bytes));
            }
        }
        let mut bytes = vec![0; self.len()];
        self.clone().turn_and_fill(&mut bytes)?;
        Ok(Cow::Owned(bytes))
    }

    fn to_string(&self) -> Result<Cow<'_, str>> {
        match self.to_slice()? {
            Cow::Borrowed(bytes) => std::str::from_utf8(bytes).map(Cow::Borrowed).ok(),
            Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).ok(),
        }
        .ok_or(Error::BadUtf8)
    }

    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        Ok(match self.to_slice()? {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        })
    }

    #[inline]
    fn read_slice(&mut self, buffer: &mut [u8]) -> Result<()> {
        if self.len() < buffer.len() {
            return Err(self.end_of_file());
        }
        if let Some(page) = &self.page
            && let Some(bytes) = page.bytes_from(self.at).get(..buffer.len())
        {
            buffer.copy_from_slice(bytes);
            self.at += buffer.len();
            return Ok(());
        }
        self.turn_and_fill(buffer)
    }

    #[inline]
    fn read_u8(&mut self) -> Result<u8> {
        if self.at < self.end
            && let Some(page) = &self.page
            && let Some(byte) = page.byte(self.at)
        {
            self.at += 1;
            return Ok(byte);
        }
        self.turn_and_read()
    }
}

pub(crate) type Dwarf = gimli::Dwarf<Reader>;

pub(crate) type Entry = gimli::DebuggingInformationEntry<Reader>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::page::{Memory, PageCache};
    use gimli::{EndianSlice, Format, Reader as _};
    use proptest::prelude::*;

    /// One thing that a unit's parser may do with a reader.
    #[derive(Clone, Debug)]
    enum Step {
        Bytes(usize),
        Number(u8),
        Unsigned,
        Signed,
        SkipNumber,
        String,
        Find(u8),
        Skip(usize),
        Split(usize),
        Truncate(usize),
        Copy,
        Length,
        Look,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0..40_usize).prop_map(Step::Bytes),
            (0..6_u8).prop_map(Step::Number),
            Just(Step::Unsigned),
            Just(Step::Signed),
            Just(Step::SkipNumber),
            Just(Step::String),
            any::<u8>().prop_map(Step::Find),
            (0..50_usize).prop_map(Step::Skip),
            (0..50_usize).prop_map(Step::Split),
            (0..400_usize).prop_map(Step::Truncate),
            Just(Step::Copy),
            Just(Step::Length),
            Just(Step::Look),
        ];
        prop::collection::vec(step, 0..60)
    }

    /// Bytes as sections have them: many are zero, and many begin numbers of several bytes.
    fn section() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![Just(0_u8), 0x80..=0xff_u8, any::<u8>()];
        prop::collection::vec(byte, 0..400)
    }

    /// Takes a step, and tells what came of it, errors without their place.
    fn take<R: gimli::Reader<Offset = usize>>(reader: &mut R, step: &Step) -> String {
        let told = match step {
            Step::Bytes(n) => {
                let mut bytes = vec![0; *n];
                reader.read_slice(&mut bytes).map(|()| format!("{bytes:?}"))
            }
            Step::Number(0) => reader.read_u8().map(|n| n.to_string()),
            Step::Number(1) => reader.read_u16().map(|n| n.to_string()),
            Step::Number(2) => reader.read_u32().map(|n| n.to_string()),
            Step::Number(3) => reader.read_i64().map(|n| n.to_string()),
            Step::Number(4) => reader.read_uint(3).map(|n| n.to_string()),
            Step::Number(_) => reader.read_offset(Format::Dwarf64).map(|n| n.to_string()),
            Step::Unsigned => reader.read_uleb128().map(|n| n.to_string()),
            Step::Signed => reader.read_sleb128().map(|n| n.to_string()),
            Step::SkipNumber => reader.skip_leb128().map(|()| String::new()),
            Step::String => reader.read_null_terminated_slice().and_then(|found| told(&found)),
            Step::Find(byte) => reader.find(*byte).map(|n| n.to_string()),
            Step::Skip(n) => reader.skip(*n).map(|()| String::new()),
            Step::Split(n) => reader.split(*n).and_then(|part| told(&part)),
            Step::Truncate(n) => reader.truncate(*n).map(|()| String::new()),
            Step::Copy => told(&reader.clone()),
            Step::Length => reader.read_initial_length().map(|length| format!("{length:?}")),
            Step::Look => told(reader),
        };
        match told {
            Ok(told) => format!("{told}, {} left", reader.len()),
            Err(Error::UnexpectedEof(id)) => {
                format!("end at {:?}, {} left", reader.lookup_offset_id(id), reader.len())
            }
            Err(error) => format!("{error:?}, {} left", reader.len()),
        }
    }

    fn told<R: gimli::Reader<Offset = usize>>(reader: &R) -> Result<String> {
        let text = reader.to_string().map(std::borrow::Cow::into_owned).ok();
        Ok(format!("{:?} {text:?} {:?}", reader.to_slice()?, reader.to_string_lossy()?))
    }

    proptest! {
        #[test]
        fn pages_read_like_one_slice(
            bytes in section(),
            before in 0..20_usize,
            page_bytes in 1..70_usize,
            max_pages in 1..5_usize,
            steps in steps(),
        ) {
            let pages = Arc::new(PageCache::new(page_bytes, max_pages));
            let file = [vec![0xaa; before], bytes.clone(), vec![0xbb; 9]].concat();
            let file = Arc::new(Memory(file));
            let section = PagedSection::of_file(file, before as u64, bytes.len(), pages);
            let whole = Reader::new(section);
            let whole_slice = EndianSlice::new(&bytes, LittleEndian);
            let (mut paged, mut slice) = (whole.clone(), whole_slice);
            let mut in_memory = Reader::of_bytes(bytes.as_slice().into());
            for step in &steps {
                let expected = take(&mut slice, step);
                prop_assert_eq!(take(&mut paged, step), expected.clone(), "{:?}", step);
                prop_assert_eq!(take(&mut in_memory, step), expected, "{:?} in memory", step);
                let (from, to) = (paged.offset_from(&whole), slice.offset_from(whole_slice));
                prop_assert_eq!(from, to);
            }
        }
    }

    #[test]
    fn a_copy_keeps_no_page() {
        let bytes: Vec<u8> = (0..100).collect();
        let pages = Arc::new(PageCache::new(10, 2));
        let file = Arc::new(Memory(bytes));
        let mut reader = Reader::new(PagedSection::of_file(file, 0, 100, pages));
        reader.read_u8().unwrap();
        assert!(reader.page.is_some());
        assert!(reader.clone().page.is_none());
        assert!(reader.split(20).unwrap().page.is_none());
    }

    #[test]
    fn a_string_without_an_end_is_not_looked_through_for_ever() {
        let section = vec![1; limit::MAX_STRING_BYTES + 1];
        let reader = Reader::of_bytes([section, vec![0]].concat().into());
        assert!(reader.find(0).is_err());
    }
}
