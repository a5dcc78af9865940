//! By which names other load objects call the functions of one: its dynamic symbols, and those of
//! which a function chooses at load time what they mean (`STT_GNU_IFUNC`).

use crate::code::image::CodeImage;
use crate::dataflow::Derived;
use crate::dwarf::code::frame::FrameTable;
use crate::elf::linkage::{DynamicSymbols, LinkageSlot};
use crate::limit;
use crate::x86_64::abi::N_ARGUMENTS;
use crate::x86_64::function::FunctionCode;
use crate::x86_64::image_bytes::ImageBytes as _;
use crate::x86_64::scan;
use dataspace_proto::address::Svma;
use object::LittleEndian;
use object::elf;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Entries of a function: where it is entered, and by which names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entries {
    /// The addresses.
    pub starts: Vec<Svma>,
    /// The names.
    pub names: Vec<Arc<str>>,
    /// Functions of the same load object that jump to it in the end.
    pub detours: Vec<Detour>,
}

/// A function that ends with a jump to another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Detour {
    /// Addresses at which it is entered.
    pub starts: Vec<Svma>,
    /// By which names.
    pub names: Vec<Arc<str>>,
    /// Sums of its own arguments that it passes.
    pub(crate) passed: [Derived; N_ARGUMENTS],
}

/// The names of a load object's functions, by where they begin.
#[derive(Debug, Default)]
pub(crate) struct EntryNames {
    of: FxHashMap<Svma, Vec<Arc<str>>>,
    /// Variables that other load objects find by name.
    variables: FxHashSet<Svma>,
    /// Stubs of the linkage table by the functions that the loader may have them jump to.
    stubs: FxHashMap<Svma, Vec<Svma>>,
}

impl EntryNames {
    pub(crate) fn load(code: &CodeImage, frames: &FrameTable) -> Self {
        let mut names = Self { stubs: stubs(code, frames), ..Self::default() };
        let symbols = DynamicSymbols::load(&code.image, code.file.as_ref());
        let mut resolved: FxHashMap<Svma, Vec<Svma>> = FxHashMap::default();
        for symbol in symbols.all().iter().take(limit::MAX_SYMBOLS) {
            if symbol.st_shndx.get(LittleEndian) == elf::SHN_UNDEF {
                continue;
            }
            let at = Svma(symbol.st_value.get(LittleEndian));
            let name = || symbols.name(symbol);
            match symbol.st_type() {
                elf::STT_FUNC => names.add(at, name()),
                // Of assembly without `.type`.
                elf::STT_NOTYPE if code.image.is_code(at) => names.add(at, name()),
                elf::STT_GNU_IFUNC => {
                    let choices = resolved.entry(at).or_insert_with(|| choices(code, frames, at));
                    for choice in choices {
                        names.add(*choice, name());
                    }
                }
                elf::STT_OBJECT => {
                    names.variables.insert(at);
                }
                _ => {}
            }
        }
        names
    }

    /// Tells whether other load objects find the variable at `place` by a name.
    pub(crate) fn is_exported(&self, place: Svma) -> bool {
        self.variables.contains(&place)
    }

    /// Those variables.
    pub(crate) fn exported(&self) -> impl Iterator<Item = Svma> {
        self.variables.iter().copied()
    }

    /// The stubs that may jump to `start`.
    pub(crate) fn stubs(&self, start: Svma) -> &[Svma] {
        self.stubs.get(&start).map_or(&[], |stubs| stubs)
    }

    /// The beginning of the function of this name.
    pub(crate) fn start_of(&self, name: &Arc<str>) -> Option<Svma> {
        self.of.iter().find(|(_, names)| names.contains(name)).map(|(start, _)| *start)
    }

    /// The names of the function at `start`.
    pub(crate) fn at(&self, start: Svma) -> &[Arc<str>] {
        self.of.get(&start).map_or(&[], |names| names)
    }

    fn add(&mut self, at: Svma, name: Option<Arc<str>>) {
        let known = self.of.entry(at).or_default();
        // One that cannot be read is a name all the same.
        let name = name.unwrap_or_default();
        if known.len() < limit::MAX_ENTRY_NAMES && !known.contains(&name) {
            known.push(name);
        }
    }

    /// Finds where `function` is entered, and by which names.
    pub(crate) fn of(&self, function: &FunctionCode) -> Entries {
        let mut entries = Entries::default();
        for at in 0..function.n_instructions() {
            let Some(code) = function.code(at) else { continue };
            if !function.entrances(at).is_entry || entries.starts.len() >= limit::MAX_ENTRIES {
                continue;
            }
            let start = Svma(code.start);
            entries.starts.push(start);
            entries.names.extend(self.of.get(&start).into_iter().flatten().cloned());
        }
        entries.names.sort_unstable();
        entries.names.dedup();
        entries
    }
}

fn stubs(code: &CodeImage, frames: &FrameTable) -> FxHashMap<Svma, Vec<Svma>> {
    let mut found: FxHashMap<Svma, Vec<Svma>> = FxHashMap::default();
    for stub in code.stubs() {
        if let Some(LinkageSlot::Chosen(resolver)) = code.linkage_stub(stub) {
            for choice in choices(code, frames, *resolver) {
                found.entry(choice).or_default().push(stub);
            }
        }
    }
    found
}

/// The functions of which the one at `resolver` returns an address: what it forms an address of.
pub(crate) fn choices(code: &CodeImage, frames: &FrameTable, resolver: Svma) -> Vec<Svma> {
    /// Those of glibc's C library are shorter.
    const MAX_RESOLVER_BYTES: u64 = 1024;
    let range = frames.function_range(resolver).filter(|(start, _)| *start == resolver);
    let n_bytes = range.and_then(|(start, end)| end.offset_from(start)).unwrap_or(0);
    let n_bytes = usize::try_from(n_bytes.min(MAX_RESOLVER_BYTES)).unwrap_or(0);
    let bytes = code.bytes_at(resolver, n_bytes).unwrap_or_default();
    let mut found = Vec::new();
    for choice in scan::addresses(resolver, &bytes) {
        if found.len() >= limit::MAX_ENTRIES {
            break;
        }
        if code.image.is_code(choice) && !found.contains(&choice) {
            found.push(choice);
        }
    }
    found
}
