//! The worklist: a function's values are worked out again until they are at a fixed point.

use super::content::Content;
use super::graph::ValueGraph;
use super::typing::Typing;
use super::value::{Definition, ValueIdx};
use crate::limit;

/// Users of each value: the values made of it, which a change concerns.
#[derive(Debug, Default)]
pub(super) struct Users {
    /// Start of each value's users in `users`.
    starts: Vec<u32>,
    users: Vec<u32>,
}

impl Users {
    pub(super) fn of(graph: &ValueGraph) -> Self {
        let n = graph.definitions.len();
        let mut starts = vec![0_u32; n + 1];
        for_each_use(graph, |of, _| starts[of as usize + 1] += 1);
        for at in 0..n {
            starts[at + 1] += starts[at];
        }
        let mut users = vec![0; starts[n] as usize];
        let mut next = starts.clone();
        for_each_use(graph, |of, user| {
            users[next[of as usize] as usize] = user;
            next[of as usize] += 1;
        });
        Self { starts, users }
    }

    fn users_of(&self, value: u32) -> &[u32] {
        let at = value as usize;
        &self.users[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

/// Tells which value is made of which, in the order of the users; what is in a sum twice is told twice.
fn for_each_use(graph: &ValueGraph, mut note: impl FnMut(u32, u32)) {
    for value in (0..graph.definitions.len() as u32).map(ValueIdx) {
        if graph.canonical(value) == value {
            for_each_input(graph, value, |input| note(graph.canonical(input).0, value.0));
        }
    }
}

/// The values that one is made of.
pub(super) fn for_each_input(graph: &ValueGraph, value: ValueIdx, mut visit: impl FnMut(ValueIdx)) {
    match &graph.definitions[value.0 as usize] {
        Definition::Entry { .. } => graph.inputs(value).iter().copied().for_each(visit),
        Definition::Returned { at } => {
            graph.call_at(*at).and_then(|call| call.callee).into_iter().for_each(visit);
        }
        definition => definition.for_each_operand(&mut visit),
    }
}

/// The values of which one is one at a time: those that meet, or that it is chosen from; `None` for any other.
pub(super) fn alternatives(
    graph: &ValueGraph,
    value: ValueIdx,
) -> Option<impl Iterator<Item = ValueIdx>> {
    let value = graph.canonical(value);
    let (chosen, met) = match graph.definition(value)? {
        Definition::Entry { .. } => ([None; 2], graph.inputs(value)),
        Definition::Chosen { first, second } => ([Some(*first), Some(*second)], &[][..]),
        _ => return None,
    };
    Some(chosen.into_iter().flatten().chain(met.iter().copied()))
}

/// The values that are to be worked out again, a bit each: those made of others stand mostly after them.
struct Worklist(Vec<u64>);

impl Worklist {
    fn new(n: usize) -> Self {
        Self(vec![0; n.div_ceil(64)])
    }

    fn add(&mut self, value: u32) {
        if let Some(word) = self.0.get_mut(value as usize / 64) {
            *word |= 1 << (value % 64);
        }
    }

    /// Takes the first one out that is not before `from`.
    fn take_from(&mut self, from: u32) -> Option<u32> {
        let mut at = from as usize / 64;
        let mut word = *self.0.get(at)? & (u64::MAX << (from % 64));
        while word == 0 {
            at += 1;
            word = *self.0.get(at)?;
        }
        let bit = word.trailing_zeros();
        self.0[at] &= !(1 << bit);
        Some(at as u32 * 64 + bit)
    }
}

impl Typing<'_, '_> {
    /// Works values out from bottom to the fixed point. Facts that the debug information adds are no join, so
    /// that two of them may turn a value to and fro: what still changes after so many passes is top.
    pub(super) fn settle(&mut self) {
        let n = self.graph.definitions.len();
        self.contents.begin(n);
        let mut worklist = Worklist::new(n);
        for value in 0..n as u32 {
            if self.graph.canonical(ValueIdx(value)).0 == value {
                worklist.add(value);
            }
        }
        for pass in 0..2 * limit::MAX_TYPING_PASSES {
            let mut has_changed = false;
            let mut next = 0;
            while let Some(value) = worklist.take_from(next) {
                next = value + 1;
                let content = self.evaluate(ValueIdx(value));
                let known = self.contents.get(ValueIdx(value));
                if content == *known || *known == Content::Top {
                    continue;
                }
                has_changed = true;
                let is_late = pass >= limit::MAX_TYPING_PASSES;
                let content = if is_late { Content::Top } else { content };
                self.contents.set(ValueIdx(value), content);
                for user in self.users.users_of(value) {
                    worklist.add(*user);
                }
            }
            if !has_changed {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Worklist;

    #[test]
    fn what_is_due_is_taken_once_and_in_order() {
        let values = [0, 1, 63, 64, 65, 130, 199];
        for from in 0..200 {
            let mut due = Worklist::new(200);
            values.iter().for_each(|value| due.add(*value));
            let mut taken = Vec::new();
            while let Some(value) = due.take_from(from) {
                taken.push(value);
            }
            let expected: Vec<u32> = values.iter().copied().filter(|it| *it >= from).collect();
            assert_eq!(taken, expected, "from {from}");
        }
    }
}
