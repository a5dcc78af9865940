//! Data symbols of an ELF file: name and extent of variables that debug information may not know.

use crate::elf::symbol_name::SymbolName;
use crate::known::mangling;
use crate::limit;
use dataspace_proto::address::Svma;
use object::{Object, ObjectSymbol, SymbolKind};
use std::cmp::Reverse;
use std::sync::Arc;

/// The part of a load object's data that an address counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Storage {
    /// There once for a process: addresses are those of the file.
    Static,
    /// Each thread has its own: addresses are offsets in the load object's block of it.
    Thread,
}

/// A place in a load object's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DataPlace {
    /// In which data.
    pub storage: Storage,
    /// The address or offset.
    pub at: Svma,
}

impl DataPlace {
    /// An address of the file.
    #[must_use]
    pub const fn fixed(at: Svma) -> Self {
        Self { storage: Storage::Static, at }
    }

    /// An offset in the load object's block of a thread's storage.
    #[must_use]
    pub const fn thread(offset: u64) -> Self {
        Self { storage: Storage::Thread, at: Svma(offset) }
    }
}

/// A symbol of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSymbol {
    /// The variable's beginning.
    pub start: DataPlace,
    /// Its length.
    pub len_bytes: u64,
    /// The name as in the symbol table, without a version.
    pub name: Arc<str>,
}

/// All data symbols of a load object, by place.
#[derive(Clone, Debug, Default)]
pub struct DataSymbols {
    by_place: Vec<DataSymbol>,
}

impl DataSymbols {
    /// Reads the tables of `elf`.
    pub(crate) fn read<'d>(elf: &impl Object<'d>) -> Self {
        let symbols = elf.symbols().chain(elf.dynamic_symbols()).filter_map(|symbol| read(&symbol));
        let mut read = Self { by_place: symbols.take(limit::MAX_SYMBOLS).collect() };
        read.sort();
        read
    }

    /// Adds those of the separate debug file.
    pub(crate) fn extend(&mut self, other: Self) {
        self.by_place.extend(other.by_place);
        self.sort();
    }

    fn sort(&mut self) {
        // Of several names of one variable the one that a program would use comes first.
        self.by_place.sort_unstable_by(|a, b| {
            let key = |symbol: &DataSymbol| (symbol.start, Reverse(symbol.len_bytes));
            key(a).cmp(&key(b)).then_with(|| rank(&a.name).cmp(&rank(&b.name)))
        });
        self.by_place.dedup_by(|next, kept| {
            next.start == kept.start && (next.len_bytes == kept.len_bytes || next.name == kept.name)
        });
    }

    /// The symbol whose extent holds `place`; of several the one that begins last, of these the
    /// shortest.
    #[must_use]
    pub fn at(&self, place: DataPlace) -> Option<&DataSymbol> {
        let next = self.by_place.partition_point(|symbol| symbol.start <= place);
        let before = self.by_place[..next].iter().rev().take(limit::MAX_OVERLAPPING_VARIABLES);
        before.into_iter().find(|symbol| {
            let into = place.at.offset_from(symbol.start.at);
            symbol.start.storage == place.storage && into.is_some_and(|it| it < symbol.len_bytes)
        })
    }

    /// Variables of this qualified name, or the last part of whose name it is.
    pub(crate) fn named(&self, name: &str) -> impl Iterator<Item = &DataSymbol> {
        let last = name.rsplit("::").next().unwrap_or(name).to_owned();
        let name = name.to_owned();
        // A mangled name has the words of the name in it.
        let may_be = self.by_place.iter().filter(move |symbol| symbol.name.contains(&*last));
        may_be.filter(move |symbol| {
            matches!(SymbolName::of(&symbol.name), SymbolName::Variable(known) if is_named(&known, &name))
        })
    }

    /// The end of the longest symbol that begins at `start`.
    pub(crate) fn end_from(&self, start: DataPlace) -> Option<Svma> {
        let first = self.by_place.partition_point(|symbol| symbol.start < start);
        let symbol = self.by_place.get(first).filter(|symbol| symbol.start == start)?;
        Some(Svma(start.at.0.saturating_add(symbol.len_bytes)))
    }

    /// The nearest places on both sides of `place` where a symbol begins or ends.
    #[must_use]
    pub fn gap_around(&self, place: DataPlace) -> (Svma, Svma) {
        let next = self.by_place.partition_point(|symbol| symbol.start <= place);
        let is_near = |symbol: &&DataSymbol| symbol.start.storage == place.storage;
        let before = self.by_place[..next].iter().rev().take(limit::MAX_OVERLAPPING_VARIABLES);
        let edges = before.take_while(is_near).flat_map(|symbol| {
            [symbol.start.at, Svma(symbol.start.at.0.saturating_add(symbol.len_bytes))]
        });
        let start = edges.clone().filter(|edge| *edge <= place.at).max();
        let next_start = self.by_place.get(next).filter(is_near).map(|symbol| symbol.start.at);
        let end = edges.filter(|edge| *edge > place.at).chain(next_start).min();
        (start.unwrap_or(Svma(0)), end.unwrap_or(Svma(u64::MAX)))
    }
}

/// Tells whether a variable of the qualified name `known` is meant by `name`.
fn is_named(known: &str, name: &str) -> bool {
    let before = known.strip_suffix(name);
    before.is_some_and(|before| before.is_empty() || before.ends_with("::"))
}

fn read<'d>(symbol: &impl ObjectSymbol<'d>) -> Option<DataSymbol> {
    let storage = match symbol.kind() {
        SymbolKind::Data => Storage::Static,
        SymbolKind::Tls => Storage::Thread,
        _ => return None,
    };
    if symbol.is_undefined() || symbol.size() == 0 {
        return None;
    }
    let name = symbol.name().ok()?;
    // Versions: `stdout@@GLIBC_2.2.5`.
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    let start = DataPlace { storage, at: Svma(symbol.address()) };
    let name = crate::bytes::name::bounded_name(name).into();
    Some(DataSymbol { start, len_bytes: symbol.size(), name })
}

/// Names that are reserved for the implementation come after those of programs; mangled names
/// are of programs.
fn rank(name: &str) -> (bool, usize, &str) {
    (name.starts_with('_') && !mangling::is_mangled(name), name.len(), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(at: u64, len_bytes: u64, name: &str) -> DataSymbol {
        DataSymbol { start: DataPlace::fixed(Svma(at)), len_bytes, name: name.into() }
    }

    #[test]
    fn the_name_that_programs_use_goes_before_its_aliases() {
        let mut symbols = DataSymbols {
            by_place: vec![
                symbol(8, 8, "__environ"),
                symbol(8, 8, "_environ"),
                symbol(8, 8, "environ"),
                symbol(32, 4, "last"),
            ],
        };
        symbols.sort();
        let at = |at| symbols.at(DataPlace::fixed(Svma(at))).map(|symbol| &*symbol.name);
        assert_eq!((at(7), at(8), at(15), at(16)), (None, Some("environ"), Some("environ"), None));
        assert_eq!(symbols.at(DataPlace::thread(8)), None, "another storage");
        assert_eq!(symbols.gap_around(DataPlace::fixed(Svma(12))), (Svma(8), Svma(16)));
        assert_eq!(symbols.gap_around(DataPlace::fixed(Svma(20))), (Svma(16), Svma(32)));
        assert_eq!(symbols.gap_around(DataPlace::fixed(Svma(40))), (Svma(36), Svma(u64::MAX)));
    }
}
