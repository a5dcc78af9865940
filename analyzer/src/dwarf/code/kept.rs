//! Functions and copying code that were worked out, kept until memory is short.

use crate::dwarf::variable::location::{VariablePart, VariablePlace};
use crate::limit::{self, BoundedMap};
use crate::types::die::{DieRef, UnitIdx};
use dataspace_proto::address::Svma;
use dataspace_proto::sample_line::Scope;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

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
    /// The places in `variables` of those that are in memory somewhere.
    pub(crate) in_memory: OnceLock<Box<[usize]>>,
}

impl FunctionScope {
    /// The variables that are seen at `svma` and are in memory, with their places there; those of inner scopes first.
    pub(crate) fn in_memory_at(&self, svma: Svma) -> Vec<(&LocatedVariable, VariablePart)> {
        let in_memory = self.in_memory.get_or_init(|| {
            let numbered = (0..).zip(&self.variables);
            numbered.filter(|(_, it)| it.is_in_memory()).map(|(number, _)| number).collect()
        });
        let variables = in_memory.iter().filter_map(|number| self.variables.get(*number));
        let visible = variables.filter_map(|variable| {
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
    pub(crate) depth: u32,
    /// The places of its parts, for each range of code.
    pub(crate) places: Box<[(Range<u64>, VariablePart)]>,
}

impl LocatedVariable {
    /// Tells whether it is in memory anywhere.
    fn is_in_memory(&self) -> bool {
        self.places.iter().any(|(_, part)| matches!(part.place, VariablePlace::Memory { .. }))
    }

    /// Its parts at one instruction.
    fn parts_at(&self, svma: Svma) -> impl Iterator<Item = VariablePart> {
        let here = self.places.iter().filter(move |(range, _)| range.contains(&svma.0));
        here.map(|(_, part)| *part)
    }
}
