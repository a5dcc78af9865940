//! Liveness of values, by what is done with them: where ways meet, what is not used need not be one thing.

use super::content::Content;
use super::typing::Typing;
use super::value::{Definition, ValueIdx};
use super::worklist::for_each_input;

/// True for each value that is used, by its index.
pub(super) type Used = Vec<bool>;

impl Typing<'_, '_> {
    /// The values that are computed with, accessed through, stored, compared or passed, and those that
    /// come in where such begin. A register that a call does not take may hold anything there.
    pub(super) fn used_values(&mut self) -> Used {
        let graph = self.graph;
        let mut used = vec![false; graph.definitions.len()];
        let mut waiting: Vec<ValueIdx> = Vec::new();
        for value in (0..graph.definitions.len() as u32).map(ValueIdx) {
            let is_entry = matches!(graph.definitions[value.0 as usize], Definition::Entry { .. });
            if !is_entry && graph.canonical(value) == value {
                for_each_input(graph, value, |input| waiting.push(input));
            }
        }
        for store in &graph.stores {
            waiting.extend(
                [Some(store.value), store.address.base, store.address.index].iter().flatten(),
            );
        }
        waiting.extend(graph.accesses.iter().map(|(base, ..)| *base));
        waiting.extend(graph.compared.iter().flat_map(|(first, second)| [*first, *second]));
        if self.returns_something() {
            waiting.extend(&graph.returned);
        }
        for call in graph.calls.clone() {
            waiting.extend(call.callee);
            let Some(callee) = self.callee(&call) else { continue };
            let parameters = self.parameters(&call, callee);
            let passed = call.arguments.iter().zip(parameters.iter());
            let is_taken = |(_, parameter): &(&ValueIdx, &Content)| **parameter != Content::Unknown;
            waiting.extend(passed.filter(is_taken).map(|(argument, _)| *argument));
        }
        while let Some(value) = waiting.pop() {
            let value = graph.canonical(value);
            let Some(known) = used.get_mut(value.0 as usize) else { continue };
            if !std::mem::replace(known, true)
                && let Definition::Entry { .. } = graph.definitions[value.0 as usize]
            {
                waiting.extend(graph.inputs(value));
            }
        }
        used
    }

    /// Tells whether the function is not known to return nothing.
    fn returns_something(&mut self) -> bool {
        let own = self.around.scope.die;
        own.is_none_or(|own| self.around.debug.name_and_type(own).1.is_some())
    }
}
