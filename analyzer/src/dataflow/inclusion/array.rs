//! Arrays of pointers: memory of which it is known all that is put there.

use super::Collector;
use crate::dataflow::graph::ValueGraph;
use crate::dataflow::points_to::PointerCell;
use crate::dataflow::value::{Call, Definition, Sum, ValueIdx};
use crate::dataflow::worklist::{alternatives, for_each_input};
use crate::known::borrower;
use crate::limit;
use rustc_hash::{FxHashMap, FxHashSet};

impl Collector<'_, '_, '_> {
    /// Tells whether a value is memory that was allocated and is put here only, or a pointer into the same elements.
    pub(super) fn is_own_array(&mut self, value: ValueIdx, elements: PointerCell) -> bool {
        let (mut next, mut seen) = (vec![value], FxHashSet::default());
        while let Some(value) = next.pop() {
            let value = self.typing.graph.canonical(value);
            if !seen.insert(value) {
                continue;
            }
            let Some(definition) = self.typing.graph.definition(value).copied() else {
                return false;
            };
            if let Some(alternatives) = alternatives(self.typing.graph, value) {
                let mut alternatives = alternatives.peekable();
                if alternatives.peek().is_none() || seen.len() > limit::MAX_INCLUDED_VALUES {
                    return false;
                }
                next.extend(alternatives);
                continue;
            }
            let is_own = match definition {
                Definition::Reloaded { kept, .. } => {
                    next.push(kept);
                    true
                }
                Definition::Sum(Sum { base: Some(base), is_static: false, .. }) => {
                    next.push(base);
                    true
                }
                Definition::Constant(0) => true,
                Definition::Loaded { address, .. } => {
                    let address = self.typing.operand_address(&address);
                    self.typing.put_place(&address).arrays == [elements]
                }
                Definition::Returned { at } => {
                    let call = self.typing.graph.call_at(at).copied();
                    call.is_some_and(|call| self.is_own_memory(value, &call, elements))
                }
                _ => false,
            };
            if !is_own || seen.len() > limit::MAX_INCLUDED_VALUES {
                return false;
            }
        }
        true
    }

    /// Tells whether a call returns memory that nobody else knows, or that these elements were in before, and it is put into
    /// one place and used for nothing else.
    fn is_own_memory(&mut self, value: ValueIdx, call: &Call, elements: PointerCell) -> bool {
        let Some(name) = self.typing.library_name(call) else { return false };
        if borrower::resizes(&name) {
            let resized = self.typing.graph.canonical(call.arguments[0]);
            let from = match self.typing.graph.definition(resized).copied() {
                Some(Definition::Constant(0)) => vec![elements],
                Some(Definition::Loaded { address, .. }) => {
                    let address = self.typing.operand_address(&address);
                    self.typing.put_place(&address).arrays
                }
                _ => Vec::new(),
            };
            return from == [elements] && self.is_put_once(value);
        }
        borrower::allocates(&name) && self.is_put_once(value)
    }

    /// Tells whether a value is put into memory once, and nothing else is done with it.
    fn is_put_once(&mut self, value: ValueIdx) -> bool {
        let graph = self.typing.graph;
        let uses = self.uses.get_or_insert_with(|| Uses::of(graph));
        !uses.others.contains(&value) && uses.n_stored.get(&value) == Some(&1)
    }
}

/// Uses of values.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// Number of times that each is put into memory outside the frame.
    n_stored: FxHashMap<ValueIdx, usize>,
    /// Values that are used otherwise.
    others: FxHashSet<ValueIdx>,
}

impl Uses {
    fn of(graph: &ValueGraph) -> Self {
        let mut uses = Self::default();
        let mut note = |value: ValueIdx| uses.others.insert(graph.canonical(value));
        for value in (0..graph.definitions.len() as u32).map(ValueIdx) {
            if graph.canonical(value) == value {
                for_each_input(graph, value, |input| {
                    note(input);
                });
            }
        }
        let addresses = graph.stores.iter().flat_map(|it| [it.address.base, it.address.index]);
        let framed = graph.frame_stores.iter().map(|(_, value)| *value);
        let passed = graph.calls.iter().flat_map(|call| call.arguments);
        for value in addresses.flatten().chain(framed).chain(passed) {
            note(value);
        }
        for store in &graph.stores {
            *uses.n_stored.entry(graph.canonical(store.value)).or_default() += 1;
        }
        uses
    }
}
