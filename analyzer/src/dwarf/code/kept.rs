//! Functions and copying code that were worked out, kept until memory is short.

use crate::dwarf::variable::location::VariablePart;
use crate::dwarf::variable::location::VariablePlace;
use crate::types::die::DieRef;
use crate::types::die::UnitIdx;
use dataspace_proto::address::Svma;
use dataspace_proto::sample_line::Scope;
use rustc_hash::FxHashMap;
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
pub(crate) type CopyingCodes = FxHashMap<DieRef, Arc<[CopyingCode]>>;

/// A variable or parameter at one instruction.
#[derive(Clone, Debug)]
pub(crate) struct VisibleVariable {
    pub(crate) name: Arc<str>,
    pub(crate) type_die: DieRef,
    pub(crate) place: VariablePlace,
    /// Number of its bytes that are there, unless all are.
    pub(crate) n_bytes: Option<u64>,
    /// Number of scopes around it: inner ones hide outer ones.
    pub(crate) depth: usize,
}

/// The function around an instruction and what is visible there.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodeScope {
    pub(crate) unit_name: Option<Arc<str>>,
    pub(crate) function_name: Option<Arc<str>>,
    /// Innermost scope first.
    pub(crate) variables: Vec<VisibleVariable>,
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
    /// The variables visible at `svma`, and their places there.
    pub(crate) fn at(&self, svma: Svma) -> CodeScope {
        let mut scope = CodeScope {
            unit_name: self.unit_name.clone(),
            function_name: self.function_name.clone(),
            variables: Vec::new(),
        };
        for variable in &self.variables {
            // What is in several parts has no place as a whole.
            let whole = variable.parts_at(svma).filter(|part| part.offset == 0).last();
            let Some(part) = whole else { continue };
            let is_aside = matches!(part.place, VariablePlace::Entry(_));
            if !is_aside {
                scope.variables.push(VisibleVariable {
                    name: Arc::clone(&variable.name),
                    type_die: variable.type_die,
                    place: part.place,
                    n_bytes: part.n_bytes,
                    depth: variable.depth,
                });
            }
        }
        scope.variables.sort_by_key(|variable| std::cmp::Reverse(variable.depth));
        scope
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
