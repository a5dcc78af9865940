//! The parts of an ELF file that attribution needs: segments, sections, symbols, build-id.

use crate::bytes::bounded_file::HeaderBytes;
use crate::bytes::file::{FileBytes, FileError, read_shared};
use crate::elf::data_symbol::DataSymbols;
use crate::elf::packing::{OLD_COMPRESSED, UnpackBudget};
use crate::elf::thread_block::ThreadBlock;
use crate::known::compiler::COLD;
use crate::known::noreturn::is_name;
use crate::limit;
use dataspace_proto::address::{FileOffset, Svma};
use dataspace_proto::reason::Reason;
use object::read::elf::{ElfFile64, ProgramHeader as _};
use object::{Object, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A `PT_LOAD` segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its beginning in the file.
    pub file_offset: FileOffset,
    /// Number of bytes of the file that it covers.
    pub file_bytes: u64,
    /// The address that the headers give it.
    pub start: Svma,
    /// Its length in memory.
    pub memory_bytes: u64,
    /// True if code can run there.
    pub is_executable: bool,
}

/// A section's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// Its address in memory; 0 for what is not loaded.
    pub start: Svma,
    /// Its length in the file, compressed where it is.
    pub file_bytes: u64,
    /// Its place in the file.
    pub file_offset: FileOffset,
    /// True if its bytes must be decompressed.
    pub is_compressed: bool,
    /// True if it holds code.
    pub is_executable: bool,
    /// Length of each entry, in a table of entries.
    pub entry_bytes: u64,
    /// True if the program can write to it.
    pub is_writable: bool,
    /// True if it is in memory.
    pub is_loaded: bool,
    /// True if it holds nothing but strings of bytes that the linker merged.
    pub is_strings: bool,
    /// True if the program has a meaning for what is in it; the rest is for linkers and loaders.
    pub is_of_program: bool,
    /// True if it is a table of symbols, of their names or of relocations.
    pub is_table: bool,
}

/// A function's symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionSymbol {
    /// First address.
    pub start: Svma,
    /// Length; 0 where the symbol does not tell, as in hand-written assembly.
    pub len_bytes: u64,
    /// The name as in the symbol table.
    pub name: Arc<str>,
}

/// The headers and tables of an ELF file, as far as they were read.
#[derive(Clone, Debug, Default)]
pub struct ElfImage {
    /// `PT_LOAD` segments by address.
    pub segments: Vec<Segment>,
    /// Sections in file order.
    pub sections: Vec<Section>,
    /// Function symbols by address.
    pub functions: Vec<FunctionSymbol>,
    /// The parts of those functions that have several, as indices into `functions`.
    split: FxHashMap<Arc<str>, Vec<usize>>,
    /// True if it is loaded where its addresses say (`ET_EXEC`).
    pub is_at_fixed_addresses: bool,
    /// Pointers in data that the loader makes point at functions that never return, by address.
    pub noreturn_slots: Vec<u64>,
    /// Symbols of variables.
    pub data: Arc<DataSymbols>,
    /// The block of thread-local variables.
    pub thread: Option<ThreadBlock>,
    /// The GNU build-id.
    pub build_id: Option<Vec<u8>>,
    /// File name and CRC of `.gnu_debuglink`.
    pub debug_link: Option<(Vec<u8>, u32)>,
}

impl ElfImage {
    /// Parses the headers and symbols of `file`.
    ///
    /// # Errors
    /// `unsupported_machine` for an ELF that is not x86-64, `object_missing` for what cannot be
    /// read, `unascertainable` for what is no whole ELF file.
    pub fn parse(file: &dyn FileBytes) -> Result<Self, Reason> {
        check_identification(file)?;
        let bytes = HeaderBytes::new(file);
        let elf = ElfFile64::<object::LittleEndian, _>::parse(&bytes)
            .map_err(|_| Reason::Unascertainable)?;
        if elf.architecture() != object::Architecture::X86_64 {
            return Err(Reason::UnsupportedMachine);
        }
        let mut image = Self {
            segments: segments(&elf),
            sections: sections(&elf),
            build_id: elf.build_id().ok().flatten().map(<[u8]>::to_vec),
            debug_link: elf.gnu_debuglink().ok().flatten().map(|(name, crc)| (name.to_vec(), crc)),
            functions: Vec::new(),
            split: FxHashMap::default(),
            is_at_fixed_addresses: elf.kind() == object::ObjectKind::Executable,
            noreturn_slots: noreturn_slots(&elf),
            data: Arc::new(DataSymbols::read(&elf)),
            thread: ThreadBlock::read(&elf),
        };
        image.set_functions(functions(&elf));
        Ok(image)
    }

    /// Takes the function symbols of a debug file where the file itself has none.
    pub fn set_functions(&mut self, functions: Vec<FunctionSymbol>) {
        let moved = functions.iter().filter(|function| function.name.contains(COLD));
        self.split = moved.map(|part| (whole_name(&part.name).into(), Vec::new())).collect();
        for (idx, function) in functions.iter().enumerate() {
            if let Some(parts) = self.split.get_mut(whole_name(&function.name)) {
                parts.push(idx);
            }
        }
        self.functions = functions;
    }

    /// Adds the data symbols of the debug file.
    pub fn extend_data(&mut self, symbols: Arc<DataSymbols>) {
        let own = Arc::make_mut(&mut self.data);
        own.extend(Arc::unwrap_or_clone(symbols));
    }

    /// The section called `name`.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The debug section called `name`, or what was called so when compressing it renamed it.
    #[must_use]
    pub fn debug_section(&self, name: &str) -> Option<&Section> {
        self.debug_sections(name).next()
    }

    /// All sections that [`Self::debug_section`] finds the first of.
    pub fn debug_sections(&self, name: &str) -> impl Iterator<Item = &Section> {
        let old_name = name.strip_prefix(".debug_").map(|rest| format!("{OLD_COMPRESSED}{rest}"));
        self.sections
            .iter()
            .filter(move |section| section.name == name || Some(&section.name) == old_name.as_ref())
    }

    /// The place in the file of the byte at `svma`; `None` outside what the file holds.
    #[must_use]
    pub fn offset_of_svma(&self, svma: Svma) -> Option<(FileOffset, u64)> {
        self.segments.iter().find_map(|segment| {
            let into = svma.offset_from(segment.start)?;
            let left = segment.file_bytes.checked_sub(into).filter(|left| *left != 0)?;
            Some((segment.file_offset.plus(into), left))
        })
    }

    /// Tells whether code can run at `svma`.
    #[must_use]
    pub fn is_code(&self, svma: Svma) -> bool {
        self.segments.iter().any(|segment| segment.is_executable && segment.holds(svma))
    }

    /// The section in memory at `svma`, as far as the file holds it.
    #[must_use]
    pub fn loaded_section(&self, svma: Svma) -> Option<&Section> {
        self.sections.iter().find(|section| section.is_loaded && section.holds(svma))
    }

    /// First address and end of the sections in memory that linkers fill.
    pub(crate) fn linker_sections(&self) -> impl Iterator<Item = (Svma, Svma)> {
        let sections = self.sections.iter().filter(|it| it.is_loaded && it.is_of_linker());
        sections.map(|it| (it.start, Svma(it.start.0.saturating_add(it.file_bytes))))
    }

    /// The section with code at `svma`.
    #[must_use]
    pub fn code_section(&self, svma: Svma) -> Option<&Section> {
        self.sections.iter().find(|section| section.is_executable && section.holds(svma))
    }

    /// The beginnings of the last function symbol that is at `svma` or before it, and of the next
    /// does.
    #[must_use]
    pub fn starts_around(&self, svma: Svma) -> (Option<&FunctionSymbol>, Option<Svma>) {
        let next = self.functions.partition_point(|function| function.start <= svma);
        let before = next.checked_sub(1).and_then(|before| self.functions.get(before));
        (before, self.functions.get(next).map(|function| function.start))
    }

    /// First address and end of all segments: what a data address must lie in to be static.
    #[must_use]
    pub fn extent(&self) -> Option<(Svma, Svma)> {
        let start = self.segments.iter().map(|segment| segment.start).min()?;
        let end = self.segments.iter().map(|s| s.start.0.saturating_add(s.memory_bytes)).max()?;
        Some((start, Svma(end)))
    }

    /// The function symbol whose range holds `svma`; where several overlap, the one that begins
    /// last.
    #[must_use]
    pub fn function_at(&self, svma: Svma) -> Option<&FunctionSymbol> {
        let end = self.functions.partition_point(|function| function.start <= svma);
        // Overlapping symbols nest only a little: aliases, `.cold` parts, local labels.
        self.functions[..end].iter().rev().take(16).find(|function| {
            svma.offset_from(function.start).is_some_and(|into| into < function.len_bytes)
        })
    }

    /// The other parts of the function that `svma` is in. gcc and clang move what seldom runs to a
    /// part called `name.cold`, and jump there and back.
    pub fn other_parts(&self, svma: Svma) -> impl Iterator<Item = &FunctionSymbol> {
        let own = self.function_at(svma);
        let parts = own.and_then(|own| self.split.get(whole_name(&own.name)));
        parts
            .into_iter()
            .flatten()
            .filter_map(|idx| self.functions.get(*idx))
            .filter(move |part| own.is_some_and(|own| own.start != part.start))
    }

    /// The place of a section's bytes in the file, as they are there.
    ///
    /// # Errors
    /// Where it lies outside the file, is mostly a hole or larger than
    /// [`limit::MAX_SECTION_BYTES`].
    pub(crate) fn place_of_section(
        &self,
        file: &dyn FileBytes,
        section: &Section,
    ) -> Result<(u64, usize), FileError> {
        let end = section.file_offset.0.checked_add(section.file_bytes);
        if end.is_none_or(|end| end > file.len()) {
            return Err(section.error("it lies outside the file"));
        }
        if section.file_bytes > limit::most_expanded(file.stored_bytes()) {
            return Err(section.error("it is mostly a hole"));
        }
        let n_bytes = usize::try_from(section.file_bytes).ok();
        let n_bytes = n_bytes.filter(|_| section.file_bytes <= limit::MAX_SECTION_BYTES);
        let n_bytes = n_bytes.ok_or_else(|| section.error("it is larger than the limit"))?;
        Ok((section.file_offset.0, n_bytes))
    }

    /// Reads, and where needed decompresses, a whole section.
    ///
    /// # Errors
    /// Where it lies outside the file, does not decompress or is larger than
    /// [`limit::MAX_SECTION_BYTES`].
    pub fn read_section(
        &self,
        file: &dyn FileBytes,
        section: &Section,
    ) -> Result<Arc<[u8]>, FileError> {
        self.read_section_within(file, section, &UnpackBudget::of(file))
    }

    /// The same for one of several sections that may come to so much.
    pub(crate) fn read_section_within(
        &self,
        file: &dyn FileBytes,
        section: &Section,
        budget: &UnpackBudget,
    ) -> Result<Arc<[u8]>, FileError> {
        let (offset, n_bytes) = self.place_of_section(file, section)?;
        let bytes = read_shared(file, offset, n_bytes)?;
        section.unpack(bytes, |n_bytes| budget.take(n_bytes) && file.has_room(n_bytes))
    }

    /// The bytes of the section of this name; none where there is no such section, or it cannot be read.
    pub(crate) fn section_bytes(&self, file: &dyn FileBytes, name: &str) -> Arc<[u8]> {
        let section = self.section(name);
        section.and_then(|section| self.read_section(file, section).ok()).unwrap_or_default()
    }

    /// The loader's relocations, without those of the linkage table: in one section, or with `-z nocombreloc` in one for
    /// each that they are for.
    pub(crate) fn relocation_bytes(&self, file: &dyn FileBytes) -> Vec<u8> {
        let is_one = |it: &&Section| {
            it.is_loaded && it.name.starts_with(".rela.") && *it.name != *".rela.plt"
        };
        let read = |section: &Section| self.read_section(file, section).unwrap_or_default();
        self.sections.iter().filter(is_one).flat_map(|it| read(it).to_vec()).collect()
    }
}

impl Segment {
    /// Tells whether a byte in memory is in it.
    pub(crate) fn holds(&self, svma: Svma) -> bool {
        svma.offset_from(self.start).is_some_and(|into| into < self.memory_bytes)
    }
}

impl Section {
    fn holds(&self, svma: Svma) -> bool {
        svma.offset_from(self.start).is_some_and(|into| into < self.file_bytes)
    }

    /// Tells whether linkers fill it: no variable of the program is in it.
    pub(crate) fn is_of_linker(&self) -> bool {
        self.is_table || self.is_part_of(".got")
    }

    /// Tells whether only the loader writes to it: pointers in it lead where they led at the start.
    pub(crate) fn is_of_loader(&self) -> bool {
        self.is_part_of(".got") || self.is_part_of(".data.rel.ro")
    }

    /// Tells whether it is the section of this name, or one of those with a further word after it.
    fn is_part_of(&self, name: &str) -> bool {
        self.name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    pub(crate) fn error(&self, cause: &str) -> FileError {
        FileError {
            offset: self.file_offset.0,
            n_bytes: self.file_bytes,
            cause: format!("section {}: {cause}", self.name),
        }
    }
}

/// The entries of a table, as many as are whole.
pub(crate) fn entries<T: object::Pod>(bytes: &[u8]) -> &[T] {
    let n = bytes.len() / size_of::<T>();
    object::slice_from_bytes(bytes, n).map_or(&[], |(entries, _)| entries)
}

/// The name of the function that a part belongs to.
fn whole_name(name: &str) -> &str {
    name.find(COLD).map_or(name, |end| &name[..end])
}

/// `e_ident` and `e_machine` before a parser sees anything else.
fn check_identification(file: &dyn FileBytes) -> Result<(), Reason> {
    let mut head = [0; 20];
    if file.len() < head.len() as u64 {
        return Err(Reason::Unascertainable);
    }
    file.read_exact_at(0, &mut head).map_err(|_| Reason::ObjectMissing)?;
    let is_elf = head.starts_with(b"\x7fELF");
    // EI_CLASS = ELFCLASS64, EI_DATA = ELFDATA2LSB, e_machine = EM_X86_64.
    let is_x86_64 = head[4] == 2 && head[5] == 1 && head[18..20] == [62, 0];
    match (is_elf, is_x86_64) {
        (true, true) => Ok(()),
        (true, false) => Err(Reason::UnsupportedMachine),
        (false, _) => Err(Reason::Unascertainable),
    }
}

type Elf<'a, 'f> = ElfFile64<'a, object::LittleEndian, &'a HeaderBytes<'f>>;

fn segments(elf: &Elf<'_, '_>) -> Vec<Segment> {
    let endian = object::LittleEndian;
    let mut segments: Vec<Segment> = elf
        .elf_program_headers()
        .iter()
        .filter(|header| header.p_type(endian) == object::elf::PT_LOAD)
        .map(|header| Segment {
            file_offset: FileOffset(header.p_offset(endian)),
            file_bytes: header.p_filesz(endian),
            start: Svma(header.p_vaddr(endian)),
            memory_bytes: header.p_memsz(endian),
            is_executable: header.p_flags(endian).contains(object::elf::PF_X),
        })
        .collect();
    segments.sort_by_key(|segment| segment.start);
    segments
}

fn sections(elf: &Elf<'_, '_>) -> Vec<Section> {
    elf.sections()
        .take(limit::MAX_SECTIONS)
        .filter_map(|section| {
            let name = section.name().ok()?;
            let (file_offset, file_bytes) = section.file_range()?;
            let flags = match section.flags() {
                object::SectionFlags::Elf { sh_flags, .. } => sh_flags.0,
                _ => 0,
            };
            let header = section.elf_section_header();
            Some(Section {
                name: name.to_owned(),
                start: Svma(section.address()),
                file_bytes,
                file_offset: FileOffset(file_offset),
                is_compressed: flags & 0x800 != 0, // SHF_COMPRESSED
                is_executable: flags & 0x4 != 0,   // SHF_EXECINSTR
                is_writable: flags & 0x1 != 0,     // SHF_WRITE
                is_loaded: flags & 0x2 != 0,       // SHF_ALLOC
                // SHF_STRINGS. Linkers keep it where they put constants into the section as well:
                // then its entries have no one size.
                is_strings: flags & 0x20 != 0 && header.sh_entsize.get(object::LittleEndian) == 1,
                is_table: is_table(header.sh_type.get(object::LittleEndian)),
                is_of_program: header.sh_type.get(object::LittleEndian)
                    == object::elf::SHT_PROGBITS,
                entry_bytes: header.sh_entsize.get(object::LittleEndian),
            })
        })
        .collect()
}

fn is_table(kind: object::elf::SectionType) -> bool {
    use object::elf;
    matches!(
        kind,
        elf::SHT_DYNSYM
            | elf::SHT_SYMTAB
            | elf::SHT_STRTAB
            | elf::SHT_HASH
            | elf::SHT_GNU_HASH
            | elf::SHT_GNU_VERSYM
            | elf::SHT_GNU_VERNEED
            | elf::SHT_GNU_VERDEF
            | elf::SHT_REL
            | elf::SHT_RELA
    )
}

/// Hand-written code may leave the type of its functions out; its local labels are none.
fn is_function<'d>(symbol: &impl object::ObjectSymbol<'d>) -> bool {
    match symbol.kind() {
        object::SymbolKind::Text => true,
        object::SymbolKind::Unknown => symbol.is_global(),
        _ => false,
    }
}

fn functions(elf: &Elf<'_, '_>) -> Vec<FunctionSymbol> {
    let mut functions: Vec<FunctionSymbol> = elf
        .symbols()
        .chain(elf.dynamic_symbols())
        .filter(|symbol| is_function(symbol) && symbol.is_definition())
        .take(limit::MAX_SYMBOLS)
        .filter_map(|symbol| {
            let name = symbol.name().ok()?;
            Some(FunctionSymbol {
                start: Svma(symbol.address()),
                len_bytes: symbol.size(),
                name: crate::bytes::name::bounded_name(name).into(),
            })
        })
        .collect();
    functions.sort_by_key(|function| (function.start, function.len_bytes));
    functions.dedup_by(|a, b| a.start == b.start && a.len_bytes == b.len_bytes);
    functions
}

/// Addresses of slots that hold pointers to functions which never return.
pub(crate) fn noreturn_slots<'d>(elf: &impl Object<'d>) -> Vec<u64> {
    let (Some(table), Some(relocations)) = (elf.dynamic_symbol_table(), elf.dynamic_relocations())
    else {
        return Vec::new();
    };
    let mut slots: Vec<u64> = relocations
        .take(limit::MAX_SYMBOLS)
        .filter_map(|(slot, relocation)| {
            let object::RelocationTarget::Symbol(idx) = relocation.target() else { return None };
            let name = table.symbol_by_index(idx).ok()?.name().ok()?;
            is_name(name).then_some(slot)
        })
        .collect();
    slots.sort_unstable();
    slots
}
