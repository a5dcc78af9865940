//! Addresses of its own code that the loader writes into a load object's data.

use crate::bytes::file::FileBytes;
use crate::elf::image::{ElfImage, entries};
use crate::limit;
use dataspace_proto::address::Svma;
use object::LittleEndian;
use object::elf::{R_X86_64_RELATIVE, Rela64};
use rustc_hash::FxHashSet;

/// The relative relocations of a load object that point at its code.
///
/// In what may be loaded anywhere, a table of addresses is zero in the file, and each address is
/// the addend of a relocation (psABI 4.4). `DT_RELR` keeps the address in the table itself.
#[derive(Debug, Default)]
pub(crate) struct CodePointers {
    /// The place that is written to, and the address; by place.
    by_place: Vec<(u64, u64)>,
    /// The addresses, in order.
    addresses: Vec<u64>,
}

impl CodePointers {
    pub(crate) fn load(image: &ElfImage, file: &dyn FileBytes) -> Self {
        let bytes = image.relocation_bytes(file);
        let is_code = |address: &u64| image.is_code(Svma(*address));
        let mut by_place: Vec<(u64, u64)> = entries::<Rela64<LittleEndian>>(&bytes)
            .iter()
            .filter(|entry| entry.r_type(LittleEndian, false) == R_X86_64_RELATIVE)
            .map(|e| (e.r_offset.get(LittleEndian), e.r_addend.get(LittleEndian).cast_unsigned()))
            .filter(|(_, address)| is_code(address))
            .take(limit::MAX_CODE_POINTERS)
            .collect();
        by_place.sort_unstable();
        let mut addresses: Vec<u64> = by_place.iter().map(|(_, address)| *address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        Self { by_place, addresses }
    }

    /// The address written at `place`.
    pub(crate) fn at(&self, place: Svma) -> Option<Svma> {
        let idx = self.by_place.binary_search_by_key(&place.0, |(place, _)| *place).ok()?;
        Some(Svma(self.by_place[idx].1))
    }

    /// All addresses, each with the place at which it is written.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Svma, Svma)> {
        self.by_place.iter().map(|(place, address)| (Svma(*address), Svma(*place)))
    }

    /// The addresses between two others, without the first.
    pub(crate) fn inside(&self, start: Svma, end: Svma) -> &[u64] {
        let from = self.addresses.partition_point(|address| *address <= start.0);
        let to = self.addresses.partition_point(|address| *address < end.0);
        self.addresses.get(from..to).unwrap_or(&[])
    }
}

/// The places in data where the loader writes an address, each with that if it is one of this load object's and not of its
/// code; at most `max`.
pub(crate) fn data_pointers(
    image: &ElfImage,
    file: &dyn FileBytes,
    max: usize,
) -> Vec<(Svma, Option<Svma>)> {
    let bytes = image.relocation_bytes(file);
    let written = entries::<Rela64<LittleEndian>>(&bytes).iter().filter_map(|entry| {
        let target = Svma(entry.r_addend.get(LittleEndian).cast_unsigned());
        let is_own = entry.r_type(LittleEndian, false) == R_X86_64_RELATIVE;
        let place = Svma(entry.r_offset.get(LittleEndian));
        (!is_own || !image.is_code(target)).then_some((place, is_own.then_some(target)))
    });
    written.take(max).collect()
}

/// Of `places`, which are sorted, those that a relocation writes the address of, and those to which one writes what is not
/// known.
pub(crate) fn open_places(
    image: &ElfImage,
    file: &dyn FileBytes,
    places: &[Svma],
) -> FxHashSet<Svma> {
    let bytes = image.relocation_bytes(file);
    let touched = entries::<Rela64<LittleEndian>>(&bytes).iter().flat_map(|entry| {
        let target = Svma(entry.r_addend.get(LittleEndian).cast_unsigned());
        let is_known = entry.r_type(LittleEndian, false) == R_X86_64_RELATIVE;
        let written = (!is_known).then(|| Svma(entry.r_offset.get(LittleEndian)));
        [Some(target), written].into_iter().flatten()
    });
    touched.filter(|place| places.binary_search(place).is_ok()).collect()
}
