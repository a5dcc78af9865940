//! Programs with debug information whose file is damaged somewhere: headers, debug sections, frame
//! descriptions, code.

use crate::fuzz::image::Image;
use crate::support::program::{Program, SegmentMapping, has_tool};
use crate::truth::step::Random;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

/// Damages of one file.
const MAX_DAMAGES: u64 = 48;

/// Bytes that one damage changes.
const MAX_DAMAGED_BYTES: u64 = 24;

/// Bytes of an ELF file's header (gABI, ELF header).
const HEADER_BYTES: u64 = 64;

/// A program as it was compiled.
pub(crate) struct Sound {
    program: Program,
    /// Where in the file what may be damaged is, and how long it is; the code at first.
    places: Vec<(u64, u64)>,
    pub(crate) mappings: Vec<SegmentMapping>,
    /// First address and bytes of functions.
    functions: Vec<(u64, Vec<u8>)>,
}

impl Sound {
    /// Programs of both languages and versions of DWARF, compressed and not.
    pub(crate) fn all() -> Vec<Self> {
        let mut programs: Vec<Program> = [
            ("hunt.c", "-O2 -gdwarf-5 -fno-pie -no-pie"),
            ("hunt.c", "-O1 -gdwarf-4 -fno-pie -no-pie -gz"),
            ("flow.c", "-O2 -gdwarf-5 -fno-pie -no-pie"),
            ("flow.c", "-O3 -gdwarf-4 -fno-pie -no-pie -fdebug-types-section"),
            ("shapes.c", "-O2 -gdwarf-5 -fno-pie -no-pie"),
        ]
        .map(|(name, flags)| Program::c(name, flags))
        .into();
        if has_tool("g++") {
            let flags = "-O2 -gdwarf-5 -fno-pie -no-pie";
            programs.push(Program::compile("g++", "unwound.cpp", flags));
        }
        programs.into_iter().map(Self::of).collect()
    }

    fn of(program: Program) -> Self {
        let elf = object::File::parse(&*program.bytes).unwrap();
        let place = |section: object::Section<'_, '_>| section.file_range();
        let mut places: Vec<(u64, u64)> =
            elf.section_by_name(".text").and_then(place).into_iter().collect();
        places.push((0, HEADER_BYTES));
        let is_read = |section: &object::Section<'_, '_>| {
            let name = section.name().unwrap_or_default();
            let others = [".eh_frame", ".gcc_except_table", ".symtab", ".rela.dyn", ".rodata"];
            name.starts_with(".debug") || name.starts_with(".zdebug") || others.contains(&name)
        };
        places.extend(elf.sections().filter(is_read).filter_map(place));
        // The table of sections stands at the end of the file.
        let behind = places.iter().map(|(start, n_bytes)| start + n_bytes).max().unwrap();
        places.push((behind, program.bytes.len() as u64 - behind));
        places.retain(|(_, n_bytes)| *n_bytes > MAX_DAMAGED_BYTES);
        let code = |symbol: object::Symbol<'_, '_>| {
            let section = elf.section_by_index(symbol.section_index()?).ok()?;
            let code = section.data_range(symbol.address(), symbol.size()).ok()??;
            Some((symbol.address(), code.to_vec()))
        };
        let is_function = |it: &object::Symbol<'_, '_>| it.kind() == object::SymbolKind::Text;
        let functions = elf.symbols().filter(is_function).filter_map(code);
        let functions = functions.filter(|(_, code)| !code.is_empty()).collect();
        let mappings = program.segment_mappings();
        Self { places, mappings, functions, program }
    }

    /// How many megabytes it has, one at least.
    pub(crate) fn megabytes(&self) -> f64 {
        (self.program.bytes.len() as f64 / 1e6).max(1.)
    }

    /// The file with damages.
    pub(crate) fn damaged(&self, random: &mut Random) -> Image {
        let mut bytes = self.program.bytes.clone();
        for _ in 0..=random.below(MAX_DAMAGES) {
            // The code is one place of twenty, and what the data flow is made of.
            let at = if random.below(4) == 0 { 0 } else { random.below(self.places.len() as u64) };
            let (start, n_bytes) = self.places[at as usize];
            let place = &mut bytes[start as usize..][..n_bytes as usize];
            damage(place, random);
        }
        if random.below(32) == 0 {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        Image { bytes, functions: self.functions.clone() }
    }
}

/// Changes some bytes of a section.
fn damage(place: &mut [u8], random: &mut Random) {
    let n_bytes = 1 + random.below(MAX_DAMAGED_BYTES) as usize;
    let last = (place.len() - n_bytes) as u64;
    let at = random.below(last + 1) as usize;
    let from = random.below(last + 1) as usize;
    let edge = [0, 1, 0x7f, 0x80, 0xff][random.below(5) as usize];
    let offset = random.below(place.len() as u64) as u32;
    match random.below(7) {
        // Another entry's bytes.
        0 => place.copy_within(from..from + n_bytes, at),
        1 => place[at..at + n_bytes].fill(edge),
        // A reference to anywhere in the same section, itself included.
        2 if n_bytes >= 4 => place[at..at + 4].copy_from_slice(&offset.to_le_bytes()),
        // The largest number there is, in LEB128.
        3 if n_bytes >= 10 => {
            place[at..at + 9].fill(0xff);
            place[at + 9] = 1;
        }
        4 => place[at] = random.below(256) as u8,
        5 => place[at] ^= 1 << random.below(8),
        _ => place[at..at + n_bytes].iter_mut().for_each(|it| *it = random.below(256) as u8),
    }
}
