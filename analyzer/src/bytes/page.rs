//! Sections that are read page by page when they are needed: a file of any size takes the same
//! memory.
//!
//! Files are read, never mapped: a profiled process may cut its own file short, and what is behind
//! the end of a mapped file ends the program that looks at it.

use crate::bytes::file::{FileBytes, FileError, read_shared};
use crate::limit;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A stretch of a section.
#[derive(Debug)]
pub(crate) struct Page {
    /// Its beginning in the section.
    start: usize,
    bytes: Arc<[u8]>,
}

impl Page {
    /// Its bytes from the offset `at` of the section on; none if that is elsewhere.
    #[inline]
    pub(crate) fn bytes_from(&self, at: usize) -> &[u8] {
        // An offset before the page wraps around to one far after it.
        self.bytes.get(at.wrapping_sub(self.start)..).unwrap_or(&[])
    }

    /// The byte at the offset `at` of the section.
    #[inline]
    pub(crate) fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at.wrapping_sub(self.start)).copied()
    }
}

/// A section of a file, or bytes in its place.
pub(crate) struct PagedSection {
    number: u64,
    len: usize,
    store: SectionStore,
}

enum SectionStore {
    Memory(Arc<Page>),
    /// Bytes that are compressed in the file: all of them are had at once, when one is needed.
    Packed {
        unpack: Box<Unpack>,
        page: OnceLock<Option<Arc<Page>>>,
    },
    File {
        file: Arc<dyn FileBytes>,
        /// Its beginning in the file.
        offset: u64,
        cache: Arc<PageCache>,
        /// A page could not be read. Then no other one is: what is there may be another file's.
        is_lost: AtomicBool,
    },
}

/// Gives the bytes of a section that is compressed.
pub(crate) type Unpack = dyn Fn() -> Result<Arc<[u8]>, FileError> + Send + Sync;

impl PagedSection {
    /// `len` bytes that `unpack` gives.
    pub(crate) fn packed(len: usize, unpack: Box<Unpack>) -> Self {
        Self { number: 0, len, store: SectionStore::Packed { unpack, page: OnceLock::new() } }
    }

    /// Bytes in memory.
    pub(crate) fn of_bytes(bytes: Arc<[u8]>) -> Self {
        let len = bytes.len();
        Self { number: 0, len, store: SectionStore::Memory(Arc::new(Page { start: 0, bytes })) }
    }

    /// `len` bytes at `offset` of `file`.
    pub(crate) fn of_file(
        file: Arc<dyn FileBytes>,
        offset: u64,
        len: usize,
        cache: Arc<PageCache>,
    ) -> Self {
        let number = cache.next_number();
        let is_lost = AtomicBool::new(false);
        Self { number, len, store: SectionStore::File { file, offset, cache, is_lost } }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Tells it from the other sections in files.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Tells whether all of it is in memory.
    pub(crate) const fn is_in_memory(&self) -> bool {
        matches!(self.store, SectionStore::Memory(_))
    }

    /// The page that holds the byte at `at`; `None` where it cannot be read.
    pub(crate) fn page(&self, at: usize) -> Option<Arc<Page>> {
        let (file, offset, cache, is_lost) = match &self.store {
            SectionStore::Memory(page) => return Some(Arc::clone(page)),
            SectionStore::Packed { unpack, page } => {
                return page.get_or_init(|| unpacked(unpack, self.len)).clone();
            }
            SectionStore::File { file, offset, cache, is_lost } => (file, *offset, cache, is_lost),
        };
        let key = (self.number, at / cache.page_bytes);
        let spare = {
            let mut pages = cache.lock();
            if let Some(page) = pages.get(key) {
                return Some(page);
            }
            pages.spare.take()
        };
        if is_lost.load(Ordering::Relaxed) {
            return None;
        }
        let start = key.1 * cache.page_bytes;
        let n_bytes = self.len.checked_sub(start)?.min(cache.page_bytes);
        match read_over(spare, file.as_ref(), offset.saturating_add(start as u64), n_bytes) {
            Ok(bytes) => {
                let page = Arc::new(Page { start, bytes });
                cache.lock().insert(key, Arc::clone(&page), cache.max_pages);
                Some(page)
            }
            Err(error) => {
                is_lost.store(true, Ordering::Relaxed);
                if file.is_given_up() {
                    tracing::debug!(%error, "the rest of a debug section is not wanted any more");
                } else {
                    tracing::warn!(%error, "the rest of a debug section is left out");
                }
                None
            }
        }
    }
}

/// Reads bytes of a file into memory that nobody else has any more, if it is as much.
fn read_over(
    spare: Option<Arc<[u8]>>,
    file: &dyn FileBytes,
    offset: u64,
    n_bytes: usize,
) -> Result<Arc<[u8]>, FileError> {
    if let Some(mut bytes) = spare.filter(|spare| spare.len() == n_bytes)
        && let Some(buffer) = Arc::get_mut(&mut bytes)
    {
        file.read_exact_at(offset, buffer)?;
        return Ok(bytes);
    }
    read_shared(file, offset, n_bytes)
}

fn unpacked(unpack: &Unpack, len: usize) -> Option<Arc<Page>> {
    match unpack() {
        Ok(bytes) if bytes.len() == len => Some(Arc::new(Page { start: 0, bytes })),
        Ok(bytes) => {
            let n_bytes = bytes.len();
            tracing::warn!(n_bytes, len, "debug section left out: it has changed");
            None
        }
        Err(error) => {
            error.tell_left_out();
            None
        }
    }
}

impl std::fmt::Debug for PagedSection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { number, len, .. } = self;
        f.debug_struct("PagedSection")
            .field("number", number)
            .field("len", len)
            .finish_non_exhaustive()
    }
}

/// The pages that are in memory, of all files of one worker.
#[derive(Debug)]
pub(crate) struct PageCache {
    page_bytes: usize,
    max_pages: usize,
    pages: Mutex<Pages>,
}

impl Default for PageCache {
    fn default() -> Self {
        Self::new(limit::PAGE_BYTES, limit::MAX_CACHED_PAGE_BYTES / limit::PAGE_BYTES)
    }
}

impl PageCache {
    pub(crate) fn new(page_bytes: usize, max_pages: usize) -> Self {
        Self { page_bytes, max_pages, pages: Mutex::default() }
    }

    /// Gives all pages up.
    pub(crate) fn clear(&self) {
        let mut pages = self.lock();
        *pages = Pages { n_sections: pages.n_sections, ..Pages::default() };
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_number(&self) -> u64 {
        let mut pages = self.lock();
        pages.n_sections += 1;
        pages.n_sections
    }
}

/// Key of a page: the section's number, and the page's own in it.
type PageKey = (u64, usize);

#[derive(Debug, Default)]
struct Pages {
    slots: Vec<PageSlot>,
    slot_of: FxHashMap<PageKey, usize>,
    /// The slot that is looked at next for one to give up.
    hand: usize,
    n_sections: u64,
    /// The bytes of the page that was given up last, if nobody has it any more: to take new memory and
    /// clear it for each page took as long as to read it.
    spare: Option<Arc<[u8]>>,
}

#[derive(Debug)]
struct PageSlot {
    key: PageKey,
    page: Arc<Page>,
    /// True if it was asked for since the hand went by.
    is_used: bool,
}

impl Pages {
    fn get(&mut self, key: PageKey) -> Option<Arc<Page>> {
        let slot = self.slots.get_mut(*self.slot_of.get(&key)?)?;
        slot.is_used = true;
        Some(Arc::clone(&slot.page))
    }

    /// Takes in a page in place of one that was not asked for lately. A new page counts as used when
    /// it is asked for again, so that a walk over all units leaves in place what others need.
    fn insert(&mut self, key: PageKey, page: Arc<Page>, max_pages: usize) {
        let slot = PageSlot { key, page, is_used: false };
        if self.slots.len() < max_pages {
            self.slot_of.insert(key, self.slots.len());
            self.slots.push(slot);
            return;
        }
        while let Some(candidate) = self.slots.get_mut(self.hand)
            && candidate.is_used
        {
            candidate.is_used = false;
            self.hand = (self.hand + 1) % max_pages;
        }
        if let Some(given_up) = self.slots.get_mut(self.hand) {
            self.slot_of.remove(&given_up.key);
            let old = std::mem::replace(given_up, slot);
            self.spare = Arc::into_inner(old.page).map(|page| page.bytes);
            self.slot_of.insert(key, self.hand);
            self.hand = (self.hand + 1) % max_pages;
        }
    }
}

/// A file in memory.
#[cfg(test)]
pub(crate) struct Memory(pub(crate) Vec<u8>);

#[cfg(test)]
impl FileBytes for Memory {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(
        &self,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<(), crate::bytes::file::FileError> {
        let n_bytes = buffer.len() as u64;
        let bytes =
            usize::try_from(offset).ok().and_then(|at| self.0.get(at..)?.get(..buffer.len()));
        let cause = "end of file".to_owned();
        buffer.copy_from_slice(bytes.ok_or(crate::bytes::file::FileError {
            offset,
            n_bytes,
            cause,
        })?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::file::FileError;
    use proptest::prelude::*;
    use std::sync::atomic::AtomicUsize;

    proptest! {
        #[test]
        fn the_cache_never_passes_its_cap(
            max_pages in 1..8_usize,
            asked in prop::collection::vec((0..3_usize, 0..200_usize), 0..200),
        ) {
            let pages = Arc::new(PageCache::new(10, max_pages));
            let file = Arc::new(Memory((0..=199).collect()));
            let section = |offset| {
                PagedSection::of_file(file.clone(), offset, 150, Arc::clone(&pages))
            };
            let sections = [section(0), section(20), section(50)];
            for (which, at) in asked {
                let page = sections[which].page(at);
                let expected = (at < 150).then_some([0, 20, 50][which] + at as u8);
                prop_assert_eq!(page.and_then(|page| page.byte(at)), expected);
                let pages = pages.lock();
                prop_assert!(pages.slots.len() <= max_pages);
                prop_assert_eq!(pages.slots.len(), pages.slot_of.len());
                for (key, slot) in &pages.slot_of {
                    prop_assert_eq!(pages.slots[*slot].key, *key);
                }
            }
        }
    }

    #[test]
    fn what_is_asked_for_again_outlives_a_walk() {
        let pages = Arc::new(PageCache::new(10, 4));
        let file = Arc::new(Counted { n_reads: AtomicUsize::new(0), n_left: usize::MAX });
        let section = PagedSection::of_file(file.clone(), 0, 1000, pages);
        let n_reads = || file.n_reads.load(Ordering::Relaxed);
        for at in (0..1000).step_by(10) {
            section.page(0).unwrap();
            section.page(at).unwrap();
        }
        assert_eq!(n_reads(), 100, "each page once");
    }

    /// A file that can be read a number of times.
    struct Counted {
        n_reads: AtomicUsize,
        n_left: usize,
    }

    impl FileBytes for Counted {
        fn len(&self) -> u64 {
            1 << 20
        }

        fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), FileError> {
            if self.n_reads.fetch_add(1, Ordering::Relaxed) >= self.n_left {
                let (n_bytes, cause) = (buffer.len() as u64, "it was cut short".to_owned());
                return Err(FileError { offset, n_bytes, cause });
            }
            Ok(())
        }
    }

    #[test]
    fn nothing_is_read_behind_a_failure() {
        let pages = Arc::new(PageCache::new(10, 4));
        let file = Arc::new(Counted { n_reads: AtomicUsize::new(0), n_left: 1 });
        let section = PagedSection::of_file(file.clone(), 0, 100, pages);
        assert!(section.page(5).is_some());
        assert!(section.page(50).is_none());
        assert!(section.page(60).is_none());
        assert!(section.page(6).is_some(), "it was read before");
        assert_eq!(file.n_reads.load(Ordering::Relaxed), 2);
    }
}
