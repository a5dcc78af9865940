//! Layouts and relations of types that were worked out, kept until memory is short.

use crate::dwarf::layout::holding::HolderIndex;
use crate::types::die::DieRef;
use crate::types::die::UnitIdx;
use crate::types::layout::Layout;
use gimli::UnitOffset;
use rustc_hash::FxHashMap;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Layouts made so far, by the entry of their type.
#[derive(Debug, Default)]
pub(crate) struct LayoutTable {
    pub(crate) known: FxHashMap<DieRef, Arc<Layout>>,
    /// Types being laid out: one that holds itself by value is damage.
    pub(crate) in_progress: FxHashSet<DieRef>,
    pub(super) n_members: usize,
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
#[derive(Debug, Default)]
pub(crate) struct DerivationTable {
    pub(crate) of_unit: FxHashMap<UnitIdx, Arc<[Derivation]>>,
}

/// The types that an aggregate names inside of itself.
#[derive(Debug, Default)]
pub(crate) struct InnerTypes {
    /// The arguments of its template.
    pub(crate) parameters: Vec<DieRef>,
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
    pub(crate) indices: FxHashMap<UnitIdx, Arc<HolderIndex>>,
    /// By the unit and the fingerprint of the type that is held.
    pub(crate) known: FxHashMap<(UnitIdx, u64), Arc<[Container]>>,
}
