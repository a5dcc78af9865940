//! A package of split units, `FILE.dwp`, with its indices by unit and by type (DWARF 5 section 7.3.5).

use crate::bytes::file::FileBytes;
use crate::bytes::page::PageCache;
use crate::dwarf::unit::reader::{Dwarf, Reader};
use crate::dwarf::unit::section::{Loaded, Naming, SectionFile, empty};
use crate::elf::image::ElfImage;
use crate::limit;
use crate::types::die::UnitIdx;
use gimli::{Reader as _, SectionId};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A unit of a package, by one of its two indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PackagedUnit {
    /// By its id.
    Code(u64),
    /// By its signature.
    Type(u64),
}

/// An open package.
#[derive(Debug)]
pub(super) struct Package {
    sections: gimli::DwarfPackage<Reader>,
    /// The units' rows in their indices.
    rows: FxHashMap<PackagedUnit, u32>,
    /// Results of earlier look-ups.
    pub(super) known: FxHashMap<PackagedUnit, Option<UnitIdx>>,
    /// Bytes that its rows may still claim: those of a sound package share little.
    n_bytes_left: u64,
}

impl Package {
    /// The package in `file`, if it holds the unit with `id`.
    pub(super) fn open(bytes: Arc<dyn FileBytes>, pages: Arc<PageCache>, id: u64) -> Option<Self> {
        let image = ElfImage::parse(bytes.as_ref()).ok()?;
        let n_file_bytes = bytes.len();
        let file = &SectionFile::paged(bytes, pages);
        let index = |id| Naming::Split.section(&image, file, id);
        let mut found = FxHashMap::default();
        add_rows(&index(SectionId::DebugCuIndex), PackagedUnit::Code, &mut found)?;
        found.get(&PackagedUnit::Code(id))?;
        let _ = add_rows(&index(SectionId::DebugTuIndex), PackagedUnit::Type, &mut found);
        let load = |id: SectionId| -> Result<Reader, gimli::Error> {
            Ok(Naming::Split.read(&image, file, id))
        };
        let sections = gimli::DwarfPackage::load(load, empty()).ok()?;
        Some(Self {
            sections,
            rows: found,
            known: FxHashMap::default(),
            n_bytes_left: n_file_bytes.saturating_mul(limit::MAX_PACKAGE_SHARING),
        })
    }

    /// The sections of a unit, taken off the budget; `None` where that is used up.
    pub(super) fn unit(&mut self, unit: PackagedUnit, main: &Dwarf) -> Option<Loaded> {
        let row = *self.rows.get(&unit)?;
        let index = match unit {
            PackagedUnit::Code(_) => &self.sections.cu_index,
            PackagedUnit::Type(_) => &self.sections.tu_index,
        };
        let parts = index.sections(row).ok()?;
        let claimed = parts.map(|part| u64::from(part.size)).sum();
        self.n_bytes_left = self.n_bytes_left.checked_sub(claimed)?;
        let found = match unit {
            PackagedUnit::Code(_) => self.sections.cu_sections(row, main),
            PackagedUnit::Type(_) => self.sections.tu_sections(row, main),
        };
        found.ok().map(Loaded::sharing)
    }
}

/// Adds the rows of an index. They are read once: looking one up in a hostile table takes as
/// many steps as it has slots.
fn add_rows(
    index: &Reader,
    unit: impl Fn(u64) -> PackagedUnit,
    rows: &mut FxHashMap<PackagedUnit, u32>,
) -> Option<()> {
    let mut header = index.clone();
    // Version (4 bytes in GNU's extension, 2 and padding in DWARF 5), columns, units, slots.
    header.skip(12).ok()?;
    let n_slots = header.read_u32().ok()? as usize;
    let mut ids = header.split(n_slots.checked_mul(8)?).ok()?;
    let mut numbers = header.split(n_slots.checked_mul(4)?).ok()?;
    for _ in 0..n_slots {
        let (id, row) = (ids.read_u64().ok()?, numbers.read_u32().ok()?);
        // Rows count from 1; 0 marks a free slot.
        if row != 0 {
            rows.entry(unit(id)).or_insert(row);
        }
    }
    Some(())
}
