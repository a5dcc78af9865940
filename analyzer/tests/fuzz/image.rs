//! A program's file with another text, and with other bounds of its functions.

use crate::fuzz::code::Maker;
use crate::support::program::{Program, SegmentMapping};
use crate::truth::step::Random;
use gimli::{LittleEndian, UnwindSection as _};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

/// The compiled program that is written over.
pub(crate) struct Original {
    program: Program,
    text: Place,
    /// Where in the file the addresses and lengths of function symbols are.
    symbols: Vec<u64>,
    /// Where in the file the places and lengths of frame descriptions are, and the address of the
    /// former.
    frames: Vec<(u64, u64)>,
    /// Addresses of constants, data and the text, which code may refer to.
    others: Vec<u64>,
    pub(crate) mappings: Vec<SegmentMapping>,
    functions: Vec<(u64, u64)>,
}

#[derive(Clone, Copy)]
struct Place {
    start: u64,
    file_offset: u64,
    n_bytes: u64,
}

/// A file.
pub(crate) struct Image {
    pub(crate) bytes: Vec<u8>,
    /// First address and bytes of what calls itself a function.
    pub(crate) functions: Vec<(u64, Vec<u8>)>,
}

impl Original {
    pub(crate) fn new() -> Self {
        // Addresses that do not change, so that a seed gives one case.
        let program = Program::c("blank.c", "-O1 -gdwarf-5 -fno-pie -no-pie");
        let elf = object::File::parse(&*program.bytes).unwrap();
        let place = |name: &str| {
            let section = elf.section_by_name(name).unwrap();
            let (file_offset, n_bytes) = section.file_range().unwrap_or((0, section.size()));
            Place { start: section.address(), file_offset, n_bytes }
        };
        let text = place(".text");
        let others = [".rodata", ".data", ".bss", ".text", ".eh_frame"].map(|it| place(it).start);
        let is_function = |symbol: &object::Symbol<'_, '_>| {
            symbol.kind() == object::SymbolKind::Text && symbol.section_index().is_some()
        };
        let symbols: Vec<_> = elf.symbols().filter(is_function).collect();
        let functions = symbols.iter().map(|symbol| (symbol.address(), symbol.size()));
        let functions = functions.filter(|(_, n_bytes)| *n_bytes != 0).collect();
        // 24 bytes each, the address and the length at their end (gABI, symbol table).
        let table = place(".symtab").file_offset;
        let symbols = symbols.iter().map(|it| table + it.index().0 as u64 * 24 + 8).collect();
        let frames = frames(place(".eh_frame"), &program.bytes);
        let mappings = program.segment_mappings();
        Self { text, symbols, frames, others: others.to_vec(), mappings, functions, program }
    }

    /// The file with another text. Half of them keep the bounds of their functions.
    pub(crate) fn damaged(&self, maker: &Maker, random: &mut Random) -> Image {
        let mut bytes = self.program.bytes.clone();
        let Place { start, file_offset, n_bytes } = self.text;
        let text = maker.make(random, (start, n_bytes as usize), &self.others);
        bytes[file_offset as usize..][..text.len()].copy_from_slice(&text);
        let mut bounds = self.functions.clone();
        if random.below(2) == 0 {
            bounds.clear();
            let mut put = |at: u64, value: &[u8]| {
                bytes[at as usize..][..value.len()].copy_from_slice(value);
            };
            for at in &self.symbols {
                let (start, n_bytes) = self.bounds(random);
                put(*at, &start.to_le_bytes());
                put(*at + 8, &n_bytes.to_le_bytes());
                bounds.push((start, n_bytes));
            }
            for (at, address) in &self.frames {
                let (start, n_bytes) = self.bounds(random);
                put(*at, &(start.wrapping_sub(*address) as u32).to_le_bytes());
                put(*at + 4, &(n_bytes as u32).to_le_bytes());
                bounds.push((start, n_bytes));
            }
        }
        let code = |(first, n_bytes): (u64, u64)| {
            let into = first.checked_sub(start)?;
            let rest = text.get(usize::try_from(into).ok()?..)?;
            let n_bytes = usize::try_from(n_bytes).ok()?.min(rest.len());
            (n_bytes != 0).then(|| (first, rest[..n_bytes].to_vec()))
        };
        Image { bytes, functions: bounds.into_iter().filter_map(code).collect() }
    }

    /// Bounds of a function, mostly inside the text.
    fn bounds(&self, random: &mut Random) -> (u64, u64) {
        let start = self.text.start + random.below(self.text.n_bytes);
        match random.below(12) {
            0 => (start, u64::MAX - random.below(1 << 40)),
            1 => (start, 0),
            2 => (random.below(u64::MAX), random.below(u64::MAX)),
            3 => (start, random.below(1 << 24)),
            _ => (start, 1 + random.below(self.text.n_bytes)),
        }
    }
}

/// The frame descriptions, which gcc gives four bytes for the distance to their code and four for
/// its length.
fn frames(place: Place, bytes: &[u8]) -> Vec<(u64, u64)> {
    let bytes = &bytes[place.file_offset as usize..][..place.n_bytes as usize];
    let section = gimli::EhFrame::new(bytes, LittleEndian);
    let bases = gimli::BaseAddresses::default().set_eh_frame(place.start);
    let mut found = Vec::new();
    let mut entries = section.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        if let gimli::CieOrFde::Fde(description) = entry {
            let into = description.offset() as u64 + 8;
            found.push((place.file_offset + into, place.start + into));
        }
    }
    found
}
