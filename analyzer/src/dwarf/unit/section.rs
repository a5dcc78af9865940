//! The debug sections of a file: every one that is read, is read here.

use crate::bytes::file::{FileBytes, FileError, read_shared};
use crate::bytes::page::{PageCache, PagedSection};
use crate::dwarf::unit::reader::{Dwarf, Reader};
use crate::elf::image::{ElfImage, Section};
use crate::elf::packing::{Packing, UnpackBudget};
use crate::limit;
use gimli::SectionId;
use std::sync::Arc;

/// A file whose sections are read.
#[derive(Clone)]
pub(crate) struct SectionFile {
    bytes: Arc<dyn FileBytes>,
    /// The cache of its pages; `None` if its sections are read whole.
    pages: Option<Arc<PageCache>>,
    budget: Arc<UnpackBudget>,
}

impl SectionFile {
    /// A file that is read page by page, and stays open.
    pub(crate) fn paged(bytes: Arc<dyn FileBytes>, pages: Arc<PageCache>) -> Self {
        let budget = Arc::new(UnpackBudget::of(bytes.as_ref()));
        Self { bytes, pages: Some(pages), budget }
    }

    /// A file that is read at once and not kept open: there may be thousands of them.
    pub(crate) fn whole(bytes: Box<dyn FileBytes>) -> Self {
        let budget = Arc::new(UnpackBudget::of(bytes.as_ref()));
        Self { bytes: Arc::from(bytes), pages: None, budget }
    }

    /// All of its bytes.
    pub(crate) fn bytes(&self) -> &dyn FileBytes {
        self.bytes.as_ref()
    }

    /// One of its sections.
    ///
    /// # Errors
    /// Where it lies outside the file, does not decompress or is larger than the limit.
    pub(crate) fn section(&self, image: &ElfImage, section: &Section) -> Result<Reader, FileError> {
        let Some(pages) = self.pages.as_ref() else {
            return self.read(image, section).map(Reader::of_bytes);
        };
        let (offset, len) = image.place_of_section(self.bytes(), section)?;
        if section.packing() != Packing::Plain {
            return self.packed(section, offset, len);
        }
        let (bytes, pages) = (Arc::clone(&self.bytes), Arc::clone(pages));
        Ok(Reader::new(PagedSection::of_file(bytes, offset, len, pages)))
    }

    /// All bytes of a section.
    fn read(&self, image: &ElfImage, section: &Section) -> Result<Arc<[u8]>, FileError> {
        image.read_section_within(self.bytes(), section, &self.budget)
    }

    /// A section that is decompressed when it is first read: most of a library's never are.
    fn packed(&self, section: &Section, offset: u64, len: usize) -> Result<Reader, FileError> {
        let head = read_shared(self.bytes(), offset, len.min(PACKED_HEAD_BYTES))?;
        let n_bytes = section.unpacked_len(&head, &self.budget)?;
        let (file, section) = (Arc::clone(&self.bytes), section.clone());
        let unpack = move || {
            let packed = read_shared(file.as_ref(), offset, len)?;
            section.unpack(packed, |n| n == n_bytes && file.has_room(n))
        };
        Ok(Reader::new(PagedSection::packed(n_bytes, Box::new(unpack))))
    }
}

/// Both headers of compressed sections are within so many bytes.
const PACKED_HEAD_BYTES: usize = 24;

/// Names of sections in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// `.debug_info`, as linkers write it.
    Linked,
    /// `.debug_info.dwo`, which no linker touches.
    Split,
}

impl Naming {
    /// Tells whether `image` has entries under such names.
    pub(crate) fn has_entries(self, image: &ElfImage) -> bool {
        [SectionId::DebugInfo, SectionId::DebugTypes]
            .into_iter()
            .filter_map(|id| self.name_of(id))
            .any(|name| image.debug_section(name).is_some())
    }

    fn name_of(self, id: SectionId) -> Option<&'static str> {
        match self {
            Self::Linked => Some(id.name()),
            Self::Split => id.dwo_name(),
        }
    }

    /// The bytes of one section; empty where attribution does not need it.
    pub(crate) fn read(self, image: &ElfImage, file: &SectionFile, id: SectionId) -> Reader {
        if is_read(id) { self.section(image, file, id) } else { empty() }
    }

    /// The bytes of one section; empty where it is not there or cannot be read.
    pub(crate) fn section(self, image: &ElfImage, file: &SectionFile, id: SectionId) -> Reader {
        let parts: Vec<&Section> =
            self.name_of(id).into_iter().flat_map(|name| image.debug_sections(name)).collect();
        let reader = match parts.as_slice() {
            [] => return empty(),
            [section] => file.section(image, section),
            // Only assemblers leave several sections of one name.
            [section, ..] if self == Self::Linked => file.section(image, section),
            parts => joined(image, file, parts).map(Reader::of_bytes),
        };
        reader.unwrap_or_else(|error| {
            error.tell_left_out();
            empty()
        })
    }
}

/// The sections of one name as one. gcc gives each type unit of a `.dwo` file its own, and the
/// compilation unit the last: that goes first, so that offsets into its section stay right.
fn joined(
    image: &ElfImage,
    file: &SectionFile,
    parts: &[&Section],
) -> Result<Arc<[u8]>, FileError> {
    let mut bytes = Vec::new();
    // Headers can make many sections of the same bytes.
    let mut n_bytes_left = file.bytes().len();
    for section in parts.iter().rev() {
        let Some(left) = n_bytes_left.checked_sub(section.file_bytes) else { break };
        n_bytes_left = left;
        bytes.extend_from_slice(&file.read(image, section)?);
        if bytes.len() as u64 > limit::MAX_SECTION_BYTES {
            break;
        }
    }
    Ok(bytes.into())
}

/// Sections, and how many bytes of memory they take.
pub(crate) struct Loaded {
    pub(crate) dwarf: Dwarf,
    pub(crate) n_bytes: u64,
}

impl Loaded {
    /// Sections that are parts of others.
    pub(crate) const fn sharing(dwarf: Dwarf) -> Self {
        Self { dwarf, n_bytes: size_of::<Dwarf>() as u64 }
    }
}

/// All sections of `image` that attribution reads; `None` where there are no entries.
pub(crate) fn load(image: &ElfImage, file: &SectionFile, naming: Naming) -> Option<Loaded> {
    if !naming.has_entries(image) {
        return None;
    }
    let mut n_bytes = 0;
    let load = |id: SectionId| -> Result<Reader, gimli::Error> {
        let bytes = naming.read(image, file, id);
        n_bytes += bytes.n_bytes_in_memory() as u64;
        Ok(bytes)
    };
    let mut dwarf = gimli::Dwarf::load(load).ok()?;
    // Units can share one table of abbreviations, which is read once then, not once for each.
    dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
    Some(Loaded { dwarf, n_bytes })
}

/// Number of bytes of sections that a [`load`] of `image` reads at most, before they are decompressed.
pub(crate) fn n_bytes(image: &ElfImage) -> u64 {
    let debug = image.sections.iter().filter(|section| section.name.contains("debug_"));
    debug.map(|section| section.file_bytes).fold(0, u64::saturating_add)
}

/// Bytes of no section.
pub(crate) fn empty() -> Reader {
    Reader::of_bytes(Arc::from([]))
}

/// Macros and indices tell nothing that the entries do not.
fn is_read(id: SectionId) -> bool {
    !matches!(
        id,
        SectionId::DebugMacinfo
            | SectionId::DebugMacro
            | SectionId::DebugAranges
            | SectionId::DebugNames
    )
}
