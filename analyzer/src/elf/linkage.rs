//! The loader's work on a load object's tables: addresses by symbol, copies of variables, and
//! where thread-local variables are.

use crate::bytes::file::FileBytes;
use crate::elf::image::{ElfImage, entries};
use crate::limit;
use dataspace_proto::address::Svma;
use object::LittleEndian;
use object::elf::{self, Rela64, Sym64};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The contents of one slot when the program runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinkageSlot {
    /// The address of this symbol.
    Address(Arc<str>),
    /// The address of the function that the one at this address chooses (`R_X86_64_IRELATIVE`).
    Chosen(Svma),
    /// The distance of a thread-local variable from the thread's base (`R_X86_64_TPOFF64`).
    ThreadDistance(ThreadTarget),
    /// A load object and an offset in its block, as `__tls_get_addr` takes them
    /// (`R_X86_64_DTPMOD64`).
    ThreadIndex(ThreadTarget),
}

/// The thread-local variable that a slot is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ThreadTarget {
    /// At this offset in the load object's own block; certainly, unless another load object can
    /// define a symbol of the name too.
    Own { offset: u64, is_certain: bool },
    /// This symbol of another load object.
    Other(Arc<str>),
}

/// The slots of one load object.
#[derive(Debug, Default)]
pub(crate) struct LinkageTable {
    by_place: Vec<(Svma, LinkageSlot)>,
    /// Variables of libraries that the program has its own copy of, by place (`R_X86_64_COPY`).
    pub(crate) copied: FxHashMap<Svma, Arc<str>>,
}

impl LinkageTable {
    pub(crate) fn load(image: &ElfImage, file: &dyn FileBytes) -> Self {
        let symbols = DynamicSymbols::load(image, file);
        let mut table = Self::default();
        let word = |at: Svma| {
            let (offset, _) = image.offset_of_svma(at).filter(|(_, left)| *left >= 8)?;
            let mut bytes = [0; 8];
            file.read_exact_at(offset.0, &mut bytes).ok()?;
            Some(u64::from_le_bytes(bytes))
        };
        for name in [".rela.dyn", ".rela.plt"] {
            for entry in entries(&image.section_bytes(file, name)) {
                if table.by_place.len() < limit::MAX_LINKAGE_SLOTS {
                    table.add(entry, &symbols, &word);
                }
            }
        }
        table.by_place.sort_by_key(|(place, _)| *place);
        table
    }

    /// Tells whether a slot is for a function of one of these names.
    pub(crate) fn has_any(&self, names: &[Arc<str>]) -> bool {
        let is_one =
            |slot: &LinkageSlot| matches!(slot, LinkageSlot::Address(name) if names.contains(name));
        !names.is_empty() && self.by_place.iter().any(|(_, slot)| is_one(slot))
    }

    /// The purpose of the slot that holds the byte at `svma`.
    pub(crate) fn at(&self, svma: Svma) -> Option<&LinkageSlot> {
        let next = self.by_place.partition_point(|(place, _)| *place <= svma);
        let (place, slot) = self.by_place.get(next.checked_sub(1)?)?;
        let len_bytes = if matches!(slot, LinkageSlot::ThreadIndex(_)) { 16 } else { 8 };
        svma.offset_from(*place).is_some_and(|into| into < len_bytes).then_some(slot)
    }

    fn add(
        &mut self,
        entry: &Rela64<LittleEndian>,
        symbols: &DynamicSymbols,
        word: &dyn Fn(Svma) -> Option<u64>,
    ) {
        let endian = LittleEndian;
        let place = Svma(entry.r_offset.get(endian));
        let addend = entry.r_addend.get(endian);
        let symbol = entry.r_sym(endian, false);
        let name = || symbols.name(symbols.get(symbol)?);
        let target = |own: Option<u64>| match symbols.thread_offset(symbol) {
            Some(offset) => {
                let offset = offset.wrapping_add_signed(addend);
                Some(ThreadTarget::Own { offset, is_certain: false })
            }
            None if symbol == 0 => own.map(|offset| ThreadTarget::Own { offset, is_certain: true }),
            None => name().map(ThreadTarget::Other),
        };
        let slot = match entry.r_type(endian, false) {
            elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT => name().map(LinkageSlot::Address),
            elf::R_X86_64_IRELATIVE => Some(LinkageSlot::Chosen(Svma(addend.cast_unsigned()))),
            elf::R_X86_64_TPOFF64 => {
                target(Some(addend.cast_unsigned())).map(LinkageSlot::ThreadDistance)
            }
            // Without a symbol the linker has written the offset; for a whole block it is 0.
            elf::R_X86_64_DTPMOD64 => {
                let own = place.0.checked_add(8).and_then(|next| word(Svma(next)));
                target(own).map(LinkageSlot::ThreadIndex)
            }
            elf::R_X86_64_COPY => {
                if self.copied.len() < limit::MAX_LINKAGE_SLOTS {
                    self.copied.extend(name().map(|name| (place, name)));
                }
                None
            }
            _ => None,
        };
        self.by_place.extend(slot.map(|slot| (place, slot)));
    }
}

/// The dynamic symbols.
pub(crate) struct DynamicSymbols {
    entries: Arc<[u8]>,
    names: Arc<[u8]>,
}

impl DynamicSymbols {
    pub(crate) fn load(image: &ElfImage, file: &dyn FileBytes) -> Self {
        let read = |name| image.section_bytes(file, name);
        Self { entries: read(".dynsym"), names: read(".dynstr") }
    }

    pub(crate) fn all(&self) -> &[Sym64<LittleEndian>] {
        entries(&self.entries)
    }

    fn get(&self, idx: u32) -> Option<&Sym64<LittleEndian>> {
        self.all().get(usize::try_from(idx).ok().filter(|idx| *idx != 0)?)
    }

    pub(crate) fn name(&self, symbol: &Sym64<LittleEndian>) -> Option<Arc<str>> {
        let start = usize::try_from(symbol.st_name.get(LittleEndian)).ok()?;
        let bytes = self.names.get(start..)?;
        let bytes = &bytes[..bytes.len().min(limit::MAX_NAME_BYTES)];
        let end = bytes.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&bytes[..end]).into())
    }

    /// The offset in its block of a thread-local variable that this load object defines.
    fn thread_offset(&self, idx: u32) -> Option<u64> {
        let symbol = self.get(idx)?;
        let is_defined = symbol.st_shndx.get(LittleEndian) != elf::SHN_UNDEF;
        is_defined.then(|| symbol.st_value.get(LittleEndian))
    }
}
