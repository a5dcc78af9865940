//! The supplementary file that several files share, as dwz makes it (DWARF 5 section 7.3.6; GNU's
//! `.gnu_debugaltlink` before).

use crate::bytes::file::{CompanionFiles, CompanionName, FileBytes};
use crate::bytes::page::PageCache;
use crate::dwarf::unit::reader::Dwarf;
use crate::dwarf::unit::section::{self, Naming, SectionFile};
use crate::dwarf::unit::source::ContainerIdx;
use crate::elf::image::ElfImage;
use crate::limit;
use gimli::Reader as _;
use std::sync::Arc;

/// The supplementary file of a load object.
#[derive(Debug, Default)]
pub(super) struct Supplementary {
    /// Its sections, while its units were not asked for.
    pub(super) unread: Option<Arc<Dwarf>>,
    pub(super) container: Option<ContainerIdx>,
}

/// The name of a supplementary file: its path, and what it is known by.
#[derive(Debug, PartialEq, Eq)]
struct SupplementaryLink {
    path: Vec<u8>,
    id: Vec<u8>,
    form: Form,
}

/// The form of the name, one of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `.gnu_debugaltlink`: the id is the other file's build-id.
    Gnu,
    /// `.debug_sup`: the id stands in the section of that name there.
    Standard,
}

/// The sections of the supplementary file that `image` names, if the right one is offered.
pub(crate) fn open(
    image: &ElfImage,
    file: &dyn FileBytes,
    pages: &Arc<PageCache>,
    companions: &dyn CompanionFiles,
) -> Option<Arc<Dwarf>> {
    let link = SupplementaryLink::of(image, file)?;
    let build_id = if link.form == Form::Gnu { link.id.clone() } else { Vec::new() };
    let name = CompanionName::Supplementary { path: link.path.as_slice().into(), build_id };
    for file in companions.open(&name) {
        let Ok(found) = ElfImage::parse(file.as_ref()) else { continue };
        if link.leads_to(&found, file.as_ref()) {
            // What it refers to itself is not followed: it stands alone (DWARF 5 section 7.3.6).
            let file = SectionFile::paged(Arc::from(file), Arc::clone(pages));
            let loaded = section::load(&found, &file, Naming::Linked)?;
            return Some(Arc::new(loaded.dwarf));
        }
    }
    tracing::warn!(path = %String::from_utf8_lossy(&link.path), "no such supplementary file");
    None
}

impl SupplementaryLink {
    fn of(image: &ElfImage, file: &dyn FileBytes) -> Option<Self> {
        if let Some(bytes) = small_section(image, file, ".gnu_debugaltlink") {
            let end = bytes.iter().position(|byte| *byte == 0)?;
            let (path, id) = (bytes[..end].to_vec(), bytes[end + 1..].to_vec());
            return Self { path, id, form: Form::Gnu }.usable();
        }
        let (is_supplementary, path, id) = identity(image, file)?;
        if is_supplementary {
            return None;
        }
        Self { path, id, form: Form::Standard }.usable()
    }

    /// A link without an id could lead to anything.
    fn usable(self) -> Option<Self> {
        let is_usable =
            !self.id.is_empty() && (1..limit::MAX_PATH_BYTES).contains(&self.path.len());
        is_usable.then_some(self)
    }

    fn leads_to(&self, found: &ElfImage, file: &dyn FileBytes) -> bool {
        match self.form {
            Form::Gnu => found.build_id.as_ref() == Some(&self.id),
            Form::Standard => identity(found, file)
                .is_some_and(|(is_supplementary, _, id)| is_supplementary && id == self.id),
        }
    }
}

/// The contents of `.debug_sup`: whether this is the supplementary file, the other's path, the id.
fn identity(image: &ElfImage, file: &dyn FileBytes) -> Option<(bool, Vec<u8>, Vec<u8>)> {
    let bytes = small_section(image, file, ".debug_sup")?;
    let mut reader = gimli::EndianSlice::new(&bytes, gimli::LittleEndian);
    if reader.read_u16().ok()? != 5 {
        return None;
    }
    let is_supplementary = reader.read_u8().ok()? == 1;
    let path = reader.read_null_terminated_slice().ok()?.to_vec();
    let n_bytes = usize::try_from(reader.read_uleb128().ok()?).ok()?;
    let id = reader.split(n_bytes).ok()?.to_vec();
    Some((is_supplementary, path, id))
}

/// A section that holds a path and an id and cannot be long.
fn small_section(image: &ElfImage, file: &dyn FileBytes, name: &str) -> Option<Arc<[u8]>> {
    let section = image.section(name)?;
    let is_small = section.file_bytes <= 2 * limit::MAX_PATH_BYTES as u64;
    is_small.then(|| image.read_section(file, section).ok()).flatten()
}
