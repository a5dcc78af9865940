//! In which units a variable may begin at an address: those in whose bytes the address stands behind the
//! operation that says so. That is seen without reading any entry.

use crate::dwarf::unit::reader::Reader;
use crate::elf::data_symbol::{DataPlace, DataSymbols, Storage};
use crate::limit;
use crate::types::die::UnitIdx;
use dataspace_proto::address::Svma;
use gimli::Reader as _;

/// Places and the units that speak of them.
#[derive(Debug, Default)]
pub(crate) struct AddressHints {
    found: Vec<(DataPlace, UnitIdx)>,
    /// All units before this one were looked through.
    pub(super) next: UnitIdx,
    pub(super) is_complete: bool,
    /// Some unit says addresses in another way, or there are too many.
    pub(super) is_useless: bool,
}

/// Bytes of a unit that are looked through at once.
const PIECE_BYTES: usize = 1 << 14;

/// An operation with an address, or with an offset in the thread's block and the operation that makes it one.
const OPERATION_BYTES: usize = 10;

/// The places that variables can be at.
#[derive(Clone, Copy, Debug)]
pub(super) struct VariableExtent {
    /// First address and end of the file's segments.
    pub(super) fixed: (Svma, Svma),
    /// Length of the thread's block.
    pub(super) thread_bytes: u64,
}

impl AddressHints {
    /// Looks through the entries of a unit for places in `extent`.
    pub(super) fn add(&mut self, unit: UnitIdx, mut entries: Reader, extent: VariableExtent) {
        let mut places: Vec<DataPlace> = Vec::new();
        let mut piece = Vec::with_capacity(PIECE_BYTES + OPERATION_BYTES);
        while !entries.is_empty() {
            // An operation may reach over the end of a piece.
            let n_kept = piece.len().min(OPERATION_BYTES - 1);
            piece.drain(..piece.len() - n_kept);
            piece.resize(n_kept + entries.len().min(PIECE_BYTES), 0);
            if entries.read_slice(&mut piece[n_kept..]).is_err() {
                break;
            }
            if entries.is_empty() {
                // Behind the last address may be nothing.
                piece.push(0);
            }
            places.extend(places_in(&piece, extent));
        }
        places.sort_unstable();
        places.dedup();
        self.found.extend(places.into_iter().map(|place| (place, unit)));
        self.is_useless |= self.found.len() > limit::MAX_STATIC_VARIABLES;
    }

    /// Notes that all units were looked through.
    pub(super) fn complete(&mut self) {
        self.found.sort_unstable();
        self.found.shrink_to_fit();
        self.is_complete = true;
    }

    /// The units that may say what is at a place; what ends before by its symbol is left out.
    pub(super) fn units(&self, place: DataPlace, symbols: &DataSymbols) -> Vec<UnitIdx> {
        let is_around = |start| symbols.end_from(start).is_none_or(|end| place.at < end);
        let near = self.before(place).filter(|same| is_around(same[0].0));
        // A large variable may begin further away.
        let symbol = symbols.at(place).map(|symbol| self.at(symbol.start));
        let mut units: Vec<UnitIdx> = near.chain(symbol).flatten().map(|(_, unit)| *unit).collect();
        units.sort_unstable();
        units.dedup();
        units
    }

    /// From where to where nothing else can be around a place at which the units say that there is nothing.
    pub(super) fn bounds(&self, place: DataPlace, symbols: &DataSymbols) -> (Svma, Svma) {
        let ends = self.before(place).filter_map(|same| symbols.end_from(same[0].0));
        let start = ends.filter(|end| *end <= place.at).max();
        let behind = self.found.partition_point(|(start, _)| *start <= place);
        let next = self.found.get(behind).filter(|(next, _)| next.storage == place.storage);
        (start.unwrap_or(Svma(0)), next.map_or(Svma(u64::MAX), |(next, _)| next.at))
    }

    /// Those that speak of each of the nearest places up to this one.
    fn before(&self, place: DataPlace) -> impl Iterator<Item = &[(DataPlace, UnitIdx)]> {
        let mut behind = self.found.partition_point(|(start, _)| *start <= place);
        let near = std::iter::from_fn(move || {
            let (last, _) = self.found[..behind].last()?;
            let same = self.at(*last);
            behind -= same.len();
            (last.storage == place.storage).then_some(same)
        });
        near.take(limit::MAX_OVERLAPPING_VARIABLES)
    }

    /// Those that speak of just this place.
    fn at(&self, place: DataPlace) -> &[(DataPlace, UnitIdx)] {
        let first = self.found.partition_point(|(known, _)| *known < place);
        let n = self.found[first..].partition_point(|(known, _)| *known == place);
        &self.found[first..first + n]
    }
}

/// The places that the bytes speak of.
fn places_in(bytes: &[u8], extent: VariableExtent) -> impl Iterator<Item = DataPlace> {
    let (start, end) = extent.fixed;
    let starts = memchr::memchr2_iter(gimli::DW_OP_addr.0, gimli::DW_OP_const8u.0, bytes);
    let operations = starts.filter_map(|at| bytes.get(at..at + OPERATION_BYTES));
    operations.filter_map(move |operation| {
        let number = u64::from_le_bytes(*operation[1..].first_chunk()?);
        let is_of_thread = [gimli::DW_OP_form_tls_address.0, gimli::DW_OP_GNU_push_tls_address.0]
            .contains(&operation[OPERATION_BYTES - 1]);
        if is_of_thread && number < extent.thread_bytes {
            return Some(DataPlace { storage: Storage::Thread, at: Svma(number) });
        }
        let is_fixed = operation[0] == gimli::DW_OP_addr.0 && (start.0..end.0).contains(&number);
        is_fixed.then(|| DataPlace::fixed(Svma(number)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: VariableExtent =
        VariableExtent { fixed: (Svma(0x1000), Svma(0x9000)), thread_bytes: 0x40 };

    fn hints(bytes: &[u8]) -> Vec<DataPlace> {
        let mut hints = AddressHints::default();
        hints.add(7, Reader::of_bytes(bytes.into()), EXTENT);
        hints.complete();
        assert!(hints.found.iter().all(|(_, unit)| *unit == 7));
        hints.found.iter().map(|(place, _)| *place).collect()
    }

    fn operation(code: gimli::DwOp, number: u64) -> Vec<u8> {
        [&[code.0][..], &number.to_le_bytes()].concat()
    }

    #[test]
    fn an_address_is_found_wherever_pieces_end() {
        let address = operation(gimli::DW_OP_addr, 0x1234);
        for before in PIECE_BYTES - 2 * OPERATION_BYTES..PIECE_BYTES + OPERATION_BYTES {
            for behind in [0, 1, 30] {
                let bytes = [vec![0xff; before], address.clone(), vec![0xff; behind]].concat();
                assert_eq!(hints(&bytes), [DataPlace::fixed(Svma(0x1234))], "{before} {behind}");
            }
        }
    }

    #[test]
    fn an_offset_counts_only_in_front_of_what_makes_it_an_address() {
        let offset = operation(gimli::DW_OP_const8u, 0x20);
        for (behind, expected) in [
            (gimli::DW_OP_GNU_push_tls_address, Some(0x20)),
            (gimli::DW_OP_form_tls_address, Some(0x20)),
            (gimli::DW_OP_stack_value, None),
        ] {
            let found = hints(&[&offset[..], &[behind.0]].concat());
            assert_eq!(found, expected.map(DataPlace::thread).into_iter().collect::<Vec<_>>());
        }
        let elsewhere = operation(gimli::DW_OP_addr, 0x9000);
        assert_eq!(hints(&elsewhere), []);
    }

    #[test]
    fn all_that_may_begin_before_is_looked_through() {
        let mut hints = AddressHints::default();
        for (unit, address) in [(1, 0x1000), (2, 0x2000), (3, 0x3000)] {
            let bytes = operation(gimli::DW_OP_addr, address);
            hints.add(unit, Reader::of_bytes(bytes.into()), EXTENT);
        }
        hints.complete();
        let (place, symbols) = (DataPlace::fixed(Svma(0x2008)), DataSymbols::default());
        assert_eq!(hints.units(place, &symbols), [1, 2]);
        assert_eq!(hints.bounds(place, &symbols), (Svma(0), Svma(0x3000)));
        assert_eq!(hints.units(DataPlace::thread(0x2008), &symbols), [0; 0]);
    }
}
