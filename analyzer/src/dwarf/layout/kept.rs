//! Layouts and relations of types that were worked out, kept until memory is short.

use crate::dwarf::layout::holding::HolderIndex;
use crate::dwarf::layout::leading_header::LeadingHeader;
use crate::limit::{self, BoundedMap};
use crate::types::die::{DieRef, UnitIdx};
use crate::types::layout::Layout;
use dataspace_proto::address::Svma;
use gimli::UnitOffset;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Layouts made so far, by the entry of their type.
#[derive(Debug, Default)]
pub(crate) struct LayoutTable {
    pub(crate) known: FxHashMap<DieRef, Arc<Layout>>,
    /// Types being laid out: one that holds itself by value is damage.
    pub(crate) in_progress: FxHashSet<DieRef>,
    pub(super) n_members: usize,
}

/// Classes by their methods, and their definitions as far as they were looked for.
#[derive(Debug)]
pub(crate) struct ClassDefinitions {
    /// By class, where some of its methods begin, those that make or end objects first.
    pub(super) methods: FxHashMap<Box<str>, Vec<Svma>>,
    pub(super) known: BoundedMap<Arc<str>, Option<DieRef>, { limit::MAX_DEFINITIONS }>,
    /// Bytes of units that may still be searched.
    pub(super) n_bytes_left: u64,
}

impl ClassDefinitions {
    /// Gives up what was found.
    pub(crate) fn forget(&mut self) {
        self.known = BoundedMap::default();
    }
}

impl Default for ClassDefinitions {
    fn default() -> Self {
        let n_bytes_left = limit::MAX_CLASS_SEARCH_BYTES;
        Self { methods: FxHashMap::default(), known: BoundedMap::default(), n_bytes_left }
    }
}

/// A class that begins with another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Derivation {
    /// The base at its beginning.
    pub(crate) base: UnitOffset,
    /// The class.
    pub(crate) derived: UnitOffset,
    /// The first type it is a template for.
    pub(crate) parameter: Option<UnitOffset>,
}

/// Derivations by unit, found when they are first asked for.
pub(crate) type DerivationTable =
    BoundedMap<UnitIdx, Arc<[Derivation]>, { limit::MAX_CACHED_UNITS }>;

/// The types that an aggregate names inside of itself.
#[derive(Debug, Default)]
pub(crate) struct InnerTypes {
    /// The types among the arguments of its template.
    pub(crate) parameters: Vec<DieRef>,
    /// Arguments of its template that are types, are none (`void`), or are several or templates themselves.
    pub(crate) n_parameters: usize,
    /// The types that its typedefs stand for.
    pub(crate) named: Vec<DieRef>,
}

/// An aggregate and where in it another one begins.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    pub(crate) layout: Arc<Layout>,
    pub(crate) offset: u64,
}

/// Containers found so far, and what they were found by.
#[derive(Debug, Default)]
pub(crate) struct ContainerTable {
    pub(crate) indices: BoundedMap<UnitIdx, Arc<HolderIndex>, { limit::MAX_CACHED_UNITS }>,
    /// By the unit, the structures that may be headers of what lies after them.
    pub(crate) headers: BoundedMap<UnitIdx, Arc<[LeadingHeader]>, { limit::MAX_CACHED_UNITS }>,
    /// By the unit and the fingerprint of the type that is held.
    pub(crate) known: BoundedMap<(UnitIdx, u64), Arc<[Container]>, { limit::MAX_KNOWN_CONTAINERS }>,
}
