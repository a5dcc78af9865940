//! A package of split units, `FILE.dwp`, with its indices by unit and by type (DWARF 5 section 7.3.5).

use crate::bytes::file::FileBytes;
use crate::bytes::page::PageCache;
use crate::dwarf::unit::reader::Dwarf;
use crate::dwarf::unit::reader::Reader;
use crate::dwarf::unit::section::{Loaded, Naming, SectionFile, empty};
use crate::elf::image::ElfImage;
use crate::limit;
use crate::types::die::UnitIdx;
use gimli::{Reader as _, SectionId};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// An open package.
#[derive(Debug)]
pub(super) struct Package {
    sections: gimli::DwarfPackage<Reader>,
    unit_rows: FxHashMap<u64, u32>,
    type_rows: FxHashMap<u64, u32>,
    /// Results of earlier look-ups, by id and by signature.
    pub(super) known_units: FxHashMap<u64, Option<UnitIdx>>,
    pub(super) known_types: FxHashMap<u64, Option<UnitIdx>>,
    /// Bytes that its rows may still claim: those of a sound package share little.
    n_bytes_left: u64,
}

impl Package {
    /// The package in `file`, if it holds the unit with `id`.
    pub(super) fn open(bytes: Arc<dyn FileBytes>, pages: Arc<PageCache>, id: u64) -> Option<Self> {
        let image = ElfImage::parse(bytes.as_ref()).ok()?;
        let n_file_bytes = bytes.len();
        let file = &SectionFile::paged(bytes, pages);
        let unit_rows = rows(&Naming::Split.section(&image, file, SectionId::DebugCuIndex))?;
        unit_rows.get(&id)?;
        let type_rows = rows(&Naming::Split.section(&image, file, SectionId::DebugTuIndex));
        let load = |id: SectionId| -> Result<Reader, gimli::Error> {
            Ok(Naming::Split.read(&image, file, id))
        };
        let sections = gimli::DwarfPackage::load(load, empty()).ok()?;
        Some(Self {
            sections,
            unit_rows,
            type_rows: type_rows.unwrap_or_default(),
            known_units: FxHashMap::default(),
            known_types: FxHashMap::default(),
            n_bytes_left: n_file_bytes.saturating_mul(limit::MAX_PACKAGE_SHARING),
        })
    }

    pub(super) fn unit_row(&self, id: u64) -> Option<u32> {
        self.unit_rows.get(&id).copied()
    }

    pub(super) fn type_row(&self, signature: u64) -> Option<u32> {
        self.type_rows.get(&signature).copied()
    }

    /// The sections of a unit.
    pub(super) fn unit(&mut self, row: u32, main: &Dwarf) -> Option<Loaded> {
        let parts = self.sections.cu_index.sections(row).ok()?;
        self.charge(parts.map(|part| u64::from(part.size)).sum())?;
        self.sections.cu_sections(row, main).ok().map(Loaded::sharing)
    }

    /// The sections of a type unit.
    pub(super) fn type_unit(&mut self, row: u32, main: &Dwarf) -> Option<Loaded> {
        let parts = self.sections.tu_index.sections(row).ok()?;
        self.charge(parts.map(|part| u64::from(part.size)).sum())?;
        self.sections.tu_sections(row, main).ok().map(Loaded::sharing)
    }

    /// Takes what a row claims off the budget; `None` where that is used up.
    fn charge(&mut self, claimed: u64) -> Option<()> {
        self.n_bytes_left = self.n_bytes_left.checked_sub(claimed)?;
        Some(())
    }
}

/// The rows of an index by id. They are read once: looking one up in a hostile table takes as
/// many steps as it has slots.
fn rows(index: &Reader) -> Option<FxHashMap<u64, u32>> {
    let mut header = index.clone();
    // Version (4 bytes in GNU's extension, 2 and padding in DWARF 5), columns, units, slots.
    header.skip(12).ok()?;
    let n_slots = header.read_u32().ok()? as usize;
    let mut ids = header.split(n_slots.checked_mul(8)?).ok()?;
    let mut numbers = header.split(n_slots.checked_mul(4)?).ok()?;
    let mut rows = FxHashMap::default();
    for _ in 0..n_slots {
        let (id, row) = (ids.read_u64().ok()?, numbers.read_u32().ok()?);
        // Rows count from 1; 0 marks a free slot.
        if row != 0 {
            rows.entry(id).or_insert(row);
        }
    }
    Some(rows)
}
