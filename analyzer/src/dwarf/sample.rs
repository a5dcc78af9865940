//! Debug information of programs that tests compile.

use crate::bytes::file::NoCompanions;
use crate::bytes::page::Memory;
use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::unit::section::SectionFile;
use crate::elf::image::ElfImage;
use crate::program::Program;
use crate::types::die::DieRef;
use std::sync::Arc;

pub(crate) fn info(program: &Program) -> DebugInfo {
    let file = Memory(program.bytes.clone());
    let image = ElfImage::parse(&file).unwrap();
    let pages = Arc::default();
    let file = SectionFile::paged(Arc::new(file), Arc::clone(&pages));
    DebugInfo::load(&image, &file, &pages, Box::new(NoCompanions)).unwrap()
}

/// The entries with one of these tags, in their order.
pub(crate) fn entries(info: &mut DebugInfo, tags: &[gimli::DwTag]) -> Vec<DieRef> {
    let mut found = Vec::new();
    for idx in info.sources.main_units() {
        let unit = info.unit(idx).unwrap();
        let header = unit.unit.header.clone();
        let mut entries = header.entries_raw(&unit.unit.abbreviations, None).unwrap();
        while !entries.is_empty() {
            let die = DieRef { unit: idx, offset: entries.next_offset() };
            let Some(abbreviation) = entries.read_abbreviation().unwrap() else { continue };
            entries.skip_attributes(abbreviation.attributes()).unwrap();
            if tags.contains(&abbreviation.tag()) {
                found.push(die);
            }
        }
    }
    found
}
