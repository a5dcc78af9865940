//! Functions and copying code that were worked out, kept until memory is short.

use crate::dwarf::variable::location::VariablePart;
use crate::limit::{self, BoundedMap};
use crate::types::die::{DieRef, UnitIdx};
use dataspace_proto::address::Svma;
use dataspace_proto::sample_line::Scope;
use std::ops::Range;
use std::sync::Arc;

/// The work of a function that only copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copies {
    pub(crate) is_store: bool,
    /// The type of the value.
    pub(crate) of: DieRef,
}

/// Code that was inlined from such a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyingCode {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) copies: Copies,
}

/// The copying code of functions, by their entries.
pub(crate) type CopyingCodes =
    BoundedMap<DieRef, Arc<[CopyingCode]>, { limit::MAX_CACHED_FUNCTIONS }>;

/// The function around an instruction.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodeScope {
    pub(crate) unit_name: Option<Arc<str>>,
    pub(crate) function_name: Option<Arc<str>>,
}

impl CodeScope {
    pub(crate) fn scope(&self, object: &Arc<str>) -> Scope {
        Scope {
            object: Arc::clone(object),
            unit: self.unit_name.clone(),
            function: self.function_name.clone(),
        }
    }
}

/// A function's variables and calls.
#[derive(Debug, Default)]
pub(crate) struct FunctionScope {
    pub(crate) unit: UnitIdx,
    pub(crate) unit_name: Option<Arc<str>>,
    pub(crate) function_name: Option<Arc<str>>,
    pub(crate) die: Option<DieRef>,
    /// Inner scopes after the outer ones around them.
    pub(crate) variables: Vec<LocatedVariable>,
    /// The functions that are called, by the address after the call.
    pub(crate) calls: Vec<(Svma, DieRef)>,
}

impl FunctionScope {
    /// The variables visible at `svma` and their places there, those of inner scopes first.
    pub(crate) fn visible_at(&self, svma: Svma) -> Vec<(&LocatedVariable, VariablePart)> {
        let visible = self.variables.iter().filter_map(|variable| {
            // What is in several parts has no place as a whole.
            let whole = variable.parts_at(svma).filter(|part| part.offset == 0).last();
            Some((variable, whole?))
        });
        let mut visible: Vec<_> = visible.collect();
        visible.sort_by_key(|(variable, _)| std::cmp::Reverse(variable.depth));
        visible
    }
}

/// A variable or parameter and where it is.
#[derive(Debug)]
pub(crate) struct LocatedVariable {
    pub(crate) name: Arc<str>,
    pub(crate) type_die: DieRef,
    /// Number of scopes around it: inner ones hide outer ones.
    pub(crate) depth: usize,
    /// The places of its parts, for each range of code.
    pub(crate) places: Vec<(Range<u64>, VariablePart)>,
}

impl LocatedVariable {
    /// Its parts at one instruction.
    fn parts_at(&self, svma: Svma) -> impl Iterator<Item = VariablePart> {
        let here = self.places.iter().filter(move |(range, _)| range.contains(&svma.0));
        here.map(|(_, part)| *part)
    }
}
