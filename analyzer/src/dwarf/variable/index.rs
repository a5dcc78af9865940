//! The variables that were found so far, by place.

use crate::dwarf::unit::reader::Reader;
use crate::dwarf::variable::address_hint::AddressHints;
use crate::elf::data_symbol::{DataPlace, DataSymbols};
use crate::elf::thread_block::ThreadBlock;
use crate::limit::{self, BoundedMap};
use crate::types::die::{DieRef, UnitIdx};
use crate::types::layout::Layout;
use dataspace_proto::address::Svma;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A global, file-static, function-static or thread-local variable.
#[derive(Debug, PartialEq, Eq)]
pub struct StaticVariable {
    /// Its beginning: an address, or an offset in the thread's block.
    pub start: Svma,
    /// Its type.
    pub layout: Arc<Layout>,
    /// Its name, qualified.
    pub name: Arc<str>,
    /// The unit that defines it.
    pub unit: Option<Arc<str>>,
}

/// The range that the debug information has at a place: a variable, or a gap between two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableRange {
    /// From where this answer holds.
    pub start: Svma,
    /// To where.
    pub end: Svma,
    /// The variable, `None` in a gap.
    pub variable: Option<Arc<StaticVariable>>,
}

/// Further facts of a load object's data.
#[derive(Clone, Debug, Default)]
pub(crate) struct DataFacts {
    pub(crate) symbols: Arc<DataSymbols>,
    pub(crate) thread: Option<ThreadBlock>,
    /// Names of variables that the program has copies of while a library defines them.
    pub(crate) copied: FxHashSet<Arc<str>>,
    /// The addresses of these.
    pub(crate) copied_to: FxHashSet<Svma>,
    /// First address and end of the segments.
    pub(crate) extent: Option<(Svma, Svma)>,
    /// First address and end of the sections that linkers fill.
    pub(crate) of_linker: Vec<(Svma, Svma)>,
}

/// The variables that were found so far, by place.
#[derive(Debug, Default)]
pub(crate) struct VariableIndex {
    pub(crate) facts: DataFacts,
    pub(crate) hints: AddressHints,
    pub(crate) by_place: Vec<(DataPlace, DieRef)>,
    pub(crate) declared: FxHashMap<Arc<str>, DieRef>,
    /// Variables that were asked for.
    pub(crate) known: KnownVariables,
    /// Units that were looked through.
    pub(crate) is_walked: Vec<bool>,
    /// All units before this one were.
    pub(crate) next: UnitIdx,
    /// Bytes of units that one question may still look through.
    pub(crate) n_bytes_left: u64,
    /// The question needs more than that.
    pub(crate) is_unfinished: bool,
    /// The place of the last question that needed more.
    pub(crate) wanted: Option<DataPlace>,
}

type KnownVariables =
    BoundedMap<(Svma, DieRef), Option<Arc<StaticVariable>>, { limit::MAX_CACHED_VARIABLES }>;

impl VariableIndex {
    /// Notes how a unit says addresses: with those of a table, or in other files, they are not in its bytes.
    pub(crate) fn note_unit(&mut self, unit: &gimli::Unit<Reader>, is_skeleton: bool) {
        let is_plain = unit.addr_base.0 == 0 && unit.header.address_size() == 8;
        self.hints.is_useless |= is_skeleton || !is_plain;
    }

    /// Tells whether the units that define what is at a place are known by its address. A variable that is only
    /// declared, and copied here from a library, may be declared anywhere.
    pub(crate) fn has_hints(&self, place: DataPlace) -> bool {
        let symbol = || self.facts.symbols.at(place);
        !self.hints.is_useless
            && self.facts.extent.is_some()
            && (self.facts.copied_to.is_empty()
                || !symbol().is_some_and(|symbol| self.facts.copied_to.contains(&symbol.start.at)))
    }

    pub(crate) fn is_new(&self, unit: UnitIdx) -> bool {
        self.is_walked.get(unit as usize) == Some(&false)
    }
}
