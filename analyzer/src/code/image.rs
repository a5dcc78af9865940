//! The file that was mapped, as far as its code refers to it.

use crate::bytes::file::FileBytes;
use crate::code::crossing::{Crossings, FunctionStarts};
use crate::code::noreturn::DeadEnds;
use crate::elf::data_symbol::DataPlace;
use crate::elf::image::{ElfImage, Segment};
use crate::elf::linkage::{LinkageSlot, LinkageTable};
use crate::elf::relocation::{self, CodePointers};
use crate::known::compiler::COLD;
use crate::limit;
use crate::x86_64::exit::Destination;
use crate::x86_64::image_bytes::ImageBytes;
use crate::x86_64::scan;
use dataspace_proto::address::Svma;
use rustc_hash::FxHashSet;
use std::cell::OnceCell;
use std::sync::Arc;

/// The bytes of a load object and what was worked out of them.
pub(crate) struct CodeImage {
    pub(crate) file: Arc<dyn FileBytes>,
    pub(crate) image: ElfImage,
    pointers: OnceCell<CodePointers>,
    /// Code, and where in the data a pointer to it lies; in order.
    held: OnceCell<Vec<(Svma, Svma)>>,
    places: OnceCell<[Arc<[Svma]>; 2]>,
    linkage: OnceCell<LinkageTable>,
    crossings: OnceCell<Option<Crossings>>,
    dead_ends: DeadEnds,
}

impl CodeImage {
    pub(crate) fn new(file: Arc<dyn FileBytes>, image: ElfImage) -> Self {
        let (pointers, linkage) = (OnceCell::new(), OnceCell::new());
        let (held, places, crossings) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        let dead_ends = DeadEnds::default();
        Self { file, image, pointers, held, places, linkage, crossings, dead_ends }
    }

    pub(crate) fn pointers(&self) -> &CodePointers {
        self.pointers.get_or_init(|| CodePointers::load(&self.image, self.file.as_ref()))
    }

    /// Returns what the loader writes into the tables of addresses.
    pub(crate) fn linkage(&self) -> &LinkageTable {
        self.linkage.get_or_init(|| LinkageTable::load(&self.image, self.file.as_ref()))
    }

    /// Jumps between functions, of which `described` begin where a frame description does; `None`
    /// where there is too much code to search.
    pub(crate) fn crossings(&self, described: impl Iterator<Item = u64>) -> Option<&Crossings> {
        self.crossings.get_or_init(|| self.search(described)).as_ref()
    }

    /// The beginnings of functions, in order; some are `described`, where a frame description begins.
    pub(crate) fn function_starts(&self, described: impl Iterator<Item = u64>) -> Vec<u64> {
        let named = self.image.functions.iter().map(|function| function.start.0);
        let mut starts: Vec<u64> = named.chain(described).collect();
        starts.sort_unstable();
        starts
    }

    /// The code, each part a start and a length in bytes.
    pub(crate) fn executable_ranges(&self) -> impl Iterator<Item = (Svma, u64)> {
        let segments = self.image.segments.iter().filter(|it| it.is_executable);
        segments.map(|it| (it.start, it.memory_bytes))
    }

    /// The length of all of it.
    pub(crate) fn executable_bytes(&self) -> u64 {
        self.executable_ranges().map(|(_, n_bytes)| n_bytes).fold(0, u64::saturating_add)
    }

    /// The place in data that the file has at an address, which may be what a thread's own begin with.
    pub(crate) fn data_place(&self, at: Svma) -> DataPlace {
        let block = self.image.sections.iter().find(|section| section.name == ".tdata");
        let into = block
            .and_then(|block| at.offset_from(block.start).filter(|into| *into < block.file_bytes));
        into.map_or(DataPlace::fixed(at), DataPlace::thread)
    }

    fn search(&self, described: impl Iterator<Item = u64>) -> Option<Crossings> {
        let functions = self.image.functions.iter();
        let named = functions.map(|function| (function.start.0, !function.name.contains(COLD)));
        let mut starts: FunctionStarts = named.collect();
        starts.sort_unstable();
        // A symbol tells more than a description of the same code.
        starts.dedup_by_key(|(start, _)| *start);
        starts.extend(described.map(|start| (start, true)));
        starts.extend(self.stubs().map(|start| (start.0, true)));
        starts.sort_by_key(|(start, _)| *start);
        starts.dedup_by_key(|(start, _)| *start);
        let text = self.image.sections.iter().filter(|section| section.is_executable);
        // Stubs of the linkage table jump by pointers only.
        let text = text.filter(|section| !section.name.starts_with(".plt"));
        let n_bytes = text.clone().map(|section| section.file_bytes).fold(0, u64::saturating_add);
        if n_bytes > limit::MAX_SEARCHED_BYTES {
            return None;
        }
        let mut crossings = Crossings::default();
        for section in text {
            let bytes = self.image.read_section(self.file.as_ref(), section).ok()?;
            crossings.search(section.start, &bytes, &starts);
        }
        Some(crossings.finish())
    }

    /// The stubs of the linkage tables, each of which is entered as a function.
    pub(crate) fn stubs(&self) -> impl Iterator<Item = Svma> {
        let sections = self.image.sections.iter();
        let tables = sections.filter(|it| it.is_executable && it.name.starts_with(".plt"));
        let stubs = tables.flat_map(|table| {
            // As `Evidence::linkage_stub` cuts them.
            let stub_bytes = table.entry_bytes.max(8);
            let n_stubs = (table.file_bytes / stub_bytes).min(limit::MAX_LINKAGE_SLOTS as u64);
            (0..n_stubs).map(move |n| table.start.plus(n.saturating_mul(stub_bytes)))
        });
        stubs.take(limit::MAX_LINKAGE_SLOTS)
    }

    /// The pointer that a stub of the linkage table at `svma` jumps through.
    pub(crate) fn linkage_slot(&self, svma: Svma) -> Option<Svma> {
        Some(self.linkage_jump(svma)?.1)
    }

    /// The jump of the stub of the linkage table at `svma`, and the pointer that it goes by.
    pub(crate) fn linkage_jump(&self, svma: Svma) -> Option<(Svma, Svma)> {
        scan::linkage_jump(svma, &self.bytes_at(svma, 16)?)
    }

    /// The slot of the stub of the linkage table at `svma`, which the loader fills. A function that jumps on by a pointer of
    /// its own looks like a stub.
    pub(crate) fn linkage_stub(&self, svma: Svma) -> Option<&LinkageSlot> {
        self.linkage().at(self.linkage_slot(svma)?)
    }

    /// Tells whether the code at `svma` is of the linkage table.
    pub(crate) fn is_linkage(&self, svma: Svma) -> bool {
        let section = self.image.loaded_section(svma);
        let is_of_table = section.is_some_and(|section| section.name.starts_with(".plt"));
        is_of_table || self.linkage_stub(svma).is_some()
    }

    /// The same, or the slot of a function that only jumps on by a pointer that the loader alone writes.
    pub(crate) fn loaded_slot(&self, svma: Svma) -> Option<Svma> {
        let slot = self.linkage_slot(svma)?;
        let is_loaded = self.linkage().at(slot).is_some() || self.loaded_pointer(slot).is_some();
        is_loaded.then_some(slot)
    }

    /// The places in its data where the file has a pointer to the code at `target`, in order.
    pub(crate) fn places_of(&self, target: Svma) -> Vec<Svma> {
        let held = self.held();
        let first = held.partition_point(|(held, _)| *held < target);
        let places = held[first..].iter().take_while(|(held, _)| *held == target);
        places.take(limit::MAX_PLACES_OF_POINTER).map(|(_, place)| *place).collect()
    }

    /// All code to which the file has a pointer in its data, with the place of that.
    fn held(&self) -> &[(Svma, Svma)] {
        self.held.get_or_init(|| self.find_held())
    }

    /// The same, if these are all, and at most `max`.
    pub(crate) fn all_held(&self, max: usize) -> Option<&[(Svma, Svma)]> {
        let held = self.held();
        let is_searched =
            !self.has_addresses_in_place() || self.is_data_searched() && !self.has_data_in_code();
        (is_searched && held.len() <= max).then_some(held)
    }

    /// Tells whether data lies where code does (`ld -z noseparate-code`).
    fn has_data_in_code(&self) -> bool {
        let mut code = self.image.segments.iter().filter(|segment| segment.is_executable);
        let is_data = |segment: &Segment| {
            let mut sections = self.image.sections.iter();
            sections.any(|it| it.name.starts_with(".rodata") && segment.holds(it.start))
        };
        code.any(is_data)
    }

    fn data_segments(&self) -> impl Iterator<Item = &Segment> {
        self.image.segments.iter().filter(|segment| !segment.is_executable)
    }

    /// Tells whether its data is little enough to be searched for addresses.
    pub(crate) fn is_data_searched(&self) -> bool {
        let n_bytes = self.data_segments().map(|segment| segment.file_bytes);
        n_bytes.fold(0, u64::saturating_add) <= limit::MAX_POINTER_DATA_BYTES
    }

    /// All pointers that the loader or the file puts in its data and that are not to code, each with its target if that is
    /// known; `None` where they are more than `max`.
    pub(crate) fn data_pointers(&self, max: usize) -> Option<Vec<(Svma, Option<Svma>)>> {
        let mut found = relocation::data_pointers(&self.image, self.file.as_ref(), max + 1);
        if self.has_addresses_in_place() {
            let is_data = |target: Svma| self.data_segments().any(|segment| segment.holds(target));
            let words = self.words(is_data).into_iter();
            found.extend(words.map(|(target, place)| (place, Some(target))));
        }
        (found.len() <= max).then_some(found)
    }

    /// Tells whether words of its data may be addresses of which no relocation tells: code at fixed addresses, and packed
    /// relocations (`DT_RELR`).
    fn has_addresses_in_place(&self) -> bool {
        let is_packed = || self.image.sections.iter().any(|section| section.name == ".relr.dyn");
        self.is_at_fixed_addresses() || is_packed()
    }

    /// The pointer to code that the file has at `place` in its data.
    fn pointer_at(&self, place: Svma) -> Option<Svma> {
        let in_file = self.pointers().at(place);
        in_file.or_else(|| self.code_word(place).filter(|_| self.is_at_fixed_addresses()))
    }

    /// The same, also where the loader adds to what is there.
    pub(crate) fn first_content(&self, place: Svma) -> Option<Svma> {
        self.pointers().at(place).or_else(|| self.code_word(place))
    }

    /// The word of the file at `place`, if it is an address of code.
    fn code_word(&self, place: Svma) -> Option<Svma> {
        let word = self.bytes_at(place, 8)?;
        let target = Svma(u64::from_le_bytes(word.try_into().ok()?));
        self.image.is_code(target).then_some(target)
    }

    /// The code that the pointer at `place` leads to, where only the loader writes.
    pub(crate) fn loaded_pointer(&self, place: Svma) -> Option<Svma> {
        self.pointer_at(place).filter(|_| self.is_loaded_once(place))
    }

    /// Tells whether only the loader writes at `place`.
    fn is_loaded_once(&self, place: Svma) -> bool {
        self.image.loaded_section(place).is_some_and(|section| {
            let names = [".got", ".data.rel.ro"];
            !section.is_writable || names.iter().any(|name| section.name.starts_with(name))
        })
    }

    /// Of `places`, which are sorted, those whose address data of the load object has, and those to which the loader writes
    /// what is not known.
    pub(crate) fn open_places(&self, places: &[Svma]) -> FxHashSet<Svma> {
        // The table of symbols is not data.
        let is_data = |at: Svma| {
            let section = self.image.loaded_section(at);
            section.is_some_and(|it| it.is_writable || it.name.starts_with(".rodata"))
        };
        let mut open = relocation::open_places(&self.image, self.file.as_ref(), places);
        let words = self.words(|target| places.binary_search(&target).is_ok());
        open.extend(words.into_iter().filter(|(_, at)| is_data(*at)).map(|(target, _)| target));
        open
    }

    /// The places in its data where the file has a pointer to code, and those of them where only the loader writes; in
    /// order.
    pub(crate) fn places_of_pointers(&self) -> [Arc<[Svma]>; 2] {
        let places = self.places.get_or_init(|| {
            let held = self.held();
            let mut all: Vec<Svma> = held.iter().map(|(_, place)| *place).collect();
            all.sort_unstable();
            let loaded: Vec<Svma> =
                all.iter().filter(|place| self.is_loaded_once(**place)).copied().collect();
            [all.into(), loaded.into()]
        });
        places.clone()
    }

    fn find_held(&self) -> Vec<(Svma, Svma)> {
        let mut held: Vec<(Svma, Svma)> = self.pointers().all().collect();
        if self.has_addresses_in_place() {
            // No relocation tells of such pointers: they are there.
            held.extend(self.words(|target| self.image.is_code(target)));
        }
        held.sort_unstable();
        held
    }

    /// The words of its data that may be such an address, each with its place.
    fn words(&self, is_asked: impl Fn(Svma) -> bool) -> Vec<(Svma, Svma)> {
        let mut found = Vec::new();
        let mut n_left = limit::MAX_POINTER_DATA_BYTES;
        // In a packed structure they lie anywhere, but the loader moves only aligned ones that no entry tells of.
        let step = if self.image.is_at_fixed_addresses { 1 } else { 8 };
        for segment in self.data_segments() {
            // A segment begins where its first section does: thread-local bytes need not be aligned.
            let before = segment.start.0.wrapping_neg() % 8;
            let start = segment.start.plus(before);
            let n_bytes = segment.file_bytes.saturating_sub(before).min(n_left);
            n_left -= n_bytes;
            let bytes = self.bytes_at(start, n_bytes as usize).unwrap_or_default();
            let words = bytes.windows(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes));
            let placed = words.zip(0..).step_by(step).filter(|(word, _)| *word != 0);
            let here = placed.map(|(word, into)| (Svma(word), start.plus(into)));
            found.extend(here.filter(|(target, _)| is_asked(*target)));
        }
        found
    }
}

impl ImageBytes for CodeImage {
    fn bytes_at(&self, svma: Svma, n_bytes: usize) -> Option<Vec<u8>> {
        let (offset, left) = self.image.offset_of_svma(svma)?;
        let in_file = self.file.len().saturating_sub(offset.0);
        let n = usize::try_from(left.min(in_file)).ok()?.min(n_bytes);
        let mut bytes = vec![0; n];
        self.file.read_exact_at(offset.0, &mut bytes).ok()?;
        Some(bytes)
    }

    fn relocated(&self, svma: Svma) -> Option<Svma> {
        self.pointers().at(svma)
    }

    fn is_at_fixed_addresses(&self) -> bool {
        self.image.is_at_fixed_addresses
    }

    fn is_noreturn(&self, callee: Destination) -> bool {
        self.dead_ends.has(callee, self)
    }
}
