//! The debug sections of a file: every one that is read, is read here.

use super::{Dwarf, Reader};
use crate::elf::{ElfImage, Section};
use crate::file::{FileBytes, FileError};
use crate::limit;
use gimli::{LittleEndian, Reader as _, SectionId};
use std::sync::Arc;

/// What sections are called in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// `.debug_info`, as linkers write it.
    Linked,
    /// `.debug_info.dwo`, which no linker touches.
    Split,
}

impl Naming {
    /// Whether `image` has entries under such names.
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
    pub(crate) fn read(self, image: &ElfImage, file: &dyn FileBytes, id: SectionId) -> Reader {
        if is_read(id) { self.section(image, file, id) } else { empty() }
    }

    /// The bytes of one section; empty where it is not there or cannot be read.
    pub(crate) fn section(self, image: &ElfImage, file: &dyn FileBytes, id: SectionId) -> Reader {
        let parts: Vec<&Section> =
            self.name_of(id).into_iter().flat_map(|name| image.debug_sections(name)).collect();
        let bytes = match parts.as_slice() {
            [] => return empty(),
            [section] => image.read_section(file, section),
            // Only assemblers leave several sections of one name.
            [section, ..] if self == Self::Linked => image.read_section(file, section),
            parts => joined(image, file, parts),
        };
        match bytes {
            Ok(bytes) => Reader::new(bytes, LittleEndian),
            Err(error) => {
                tracing::warn!(%error, "debug section left out");
                empty()
            }
        }
    }
}

/// The sections of one name as one. gcc gives each type unit of a `.dwo` file its own, and the
/// compilation unit the last: that goes first, so that offsets into its section stay right.
fn joined(
    image: &ElfImage,
    file: &dyn FileBytes,
    parts: &[&Section],
) -> Result<Arc<[u8]>, FileError> {
    let mut bytes = Vec::new();
    // Headers can make many sections of the same bytes.
    let mut n_bytes_left = file.len();
    for section in parts.iter().rev() {
        let Some(left) = n_bytes_left.checked_sub(section.file_bytes) else { break };
        n_bytes_left = left;
        bytes.extend_from_slice(&image.read_section(file, section)?);
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
pub(crate) fn load(image: &ElfImage, file: &dyn FileBytes, naming: Naming) -> Option<Loaded> {
    if !naming.has_entries(image) {
        return None;
    }
    let mut n_bytes = 0;
    let load = |id: SectionId| -> Result<Reader, gimli::Error> {
        let bytes = naming.read(image, file, id);
        n_bytes += bytes.len() as u64;
        Ok(bytes)
    };
    let mut dwarf = gimli::Dwarf::load(load).ok()?;
    // Units can share one table of abbreviations, which is read once then, not once for each.
    dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
    Some(Loaded { dwarf, n_bytes })
}

/// How many bytes of sections a [`load`] of `image` reads at most, before they are decompressed.
pub(crate) fn n_bytes(image: &ElfImage) -> u64 {
    let debug = image.sections.iter().filter(|section| section.name.contains("debug_"));
    debug.map(|section| section.file_bytes).fold(0, u64::saturating_add)
}

/// Bytes of no section.
pub(crate) fn empty() -> Reader {
    Reader::new(Arc::from([]), LittleEndian)
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
