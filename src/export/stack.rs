//! A snapshot as stacks: `<Total>`, the objects around an object, the object, and the function that
//! accessed it.

use crate::arrangement::{Namesakes, with_program};
use crate::config::Names;
use crate::session::findings::Findings;
use crate::text::visible;
use dataspace_analyzer::session::report::FunctionLine;
use dataspace_proto::sample_line::Scope;
use dataspace_proto::snapshot::{ObjectLine, Snapshot};
use std::borrow::Cow;
use std::collections::HashMap;

/// Maximum depth of nested objects; layouts end before that.
const MAX_DEPTH: usize = 256;

/// Sums over samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Values {
    pub(super) samples: u64,
    pub(super) loads: u64,
    pub(super) stores: u64,
    pub(super) latency: u64,
    /// In the order of [`event_names`].
    pub(super) events: Vec<u64>,
}

impl Values {
    fn of_object(line: &ObjectLine, events: &[&str]) -> Self {
        let all = &line.metrics.all;
        let sum = |name: &&str| all.events.get(*name).copied().unwrap_or(0);
        Self {
            samples: all.samples,
            loads: all.loads,
            stores: all.stores,
            latency: all.latency.unwrap_or(0),
            events: events.iter().map(sum).collect(),
        }
    }

    fn of_function(line: &FunctionLine, snapshot: &Snapshot, events: &[&str]) -> Self {
        let mut sums = vec![0; events.len()];
        for (event, period) in snapshot.events.iter().zip(&line.events) {
            if let Some(idx) = events.iter().position(|name| *name == event.name) {
                sums[idx] = u64::wrapping_add(sums[idx], *period);
            }
        }
        let FunctionLine { samples, loads, stores, latency, .. } = *line;
        Self { samples, loads, stores, latency, events: sums }
    }

    /// Adds what `other` has. Sums wrap, as where they were made.
    pub(super) fn add(&mut self, other: &Self) {
        self.each(other, u64::wrapping_add);
    }

    fn subtract(&mut self, other: &Self) {
        self.each(other, u64::saturating_sub);
    }

    fn each(&mut self, other: &Self, join: fn(u64, u64) -> u64) {
        for (left, right) in [
            (&mut self.samples, other.samples),
            (&mut self.loads, other.loads),
            (&mut self.stores, other.stores),
            (&mut self.latency, other.latency),
        ] {
            *left = join(*left, right);
        }
        for (left, right) in self.events.iter_mut().zip(&other.events) {
            *left = join(*left, *right);
        }
    }

    pub(super) fn is_nothing(&self) -> bool {
        *self == Self { events: vec![0; self.events.len()], ..Self::default() }
    }
}

/// The stack to which those are charged that a bounded profile has no room for.
pub(super) const LEFT_OUT: [StackFrame<'static>; 2] =
    [StackFrame::Object("<Total>", None), StackFrame::Object("<Left out>", None)];

/// One frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum StackFrame<'a> {
    /// An object; with its program where several have one of this name.
    Object(&'a str, Option<&'a str>),
    Function(&'a Scope),
}

impl<'a> StackFrame<'a> {
    /// Minimum length of its name, in bytes.
    pub(super) fn min_bytes(self) -> usize {
        match self {
            Self::Object(object, _) => object.len(),
            Self::Function(scope) => scope.function.as_ref().map_or(0, |function| function.len()),
        }
    }

    /// Its name; what a terminal would obey is written out.
    pub(super) fn name(self) -> Cow<'a, str> {
        match self {
            Self::Object(object, program) => with_program(object, program),
            Self::Function(scope) => match &scope.function {
                Some(function) => visible(function),
                None => {
                    let file = scope.object.rsplit('/').next().unwrap_or_default();
                    Cow::Owned(format!("[{}]", visible(file)))
                }
            },
        }
    }
}

/// The events of a snapshot, each once, in its order.
pub(super) fn event_names(snapshot: &Snapshot) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for event in &snapshot.events {
        if !names.contains(&event.name.as_str()) {
            names.push(&event.name);
        }
    }
    names
}

/// Gives each stack, outermost frame first, with what is summed at its end alone: the sum over all
/// stacks is `<Total>`'s. What is of no known function, or of a part that is not listed, ends at its
/// object.
pub(super) fn each<'a>(
    findings: &'a Findings,
    events: &[&str],
    take: &mut dyn FnMut(&[StackFrame<'a>], &Values),
) {
    let Findings { snapshot, functions, .. } = findings;
    let objects = &snapshot.objects;
    let of_id: HashMap<u32, usize> =
        objects.iter().enumerate().map(|(idx, line)| (line.id, idx)).collect();
    let parent = |idx: usize| objects[idx].parent_id.and_then(|id| of_id.get(&id).copied());
    let mut own: Vec<Values> = objects.iter().map(|line| Values::of_object(line, events)).collect();
    for (idx, line) in objects.iter().enumerate() {
        if let Some(parent) = parent(idx) {
            own[parent].subtract(&Values::of_object(line, events));
        }
    }
    let namesakes = Namesakes::among(objects, Names::Descriptor);
    let stack_of = |idx: usize| {
        let mut frames = Vec::new();
        let mut next = Some(idx);
        while let Some(idx) = next.filter(|_| frames.len() < MAX_DEPTH) {
            let object = &objects[idx];
            frames.push(StackFrame::Object(&object.object, namesakes.program(object)));
            next = parent(idx);
        }
        frames.reverse();
        frames
    };
    // Where there is no room for all, it is the least that is left out.
    let mut functions: Vec<&FunctionLine> = functions.iter().collect();
    functions.sort_by_key(|line| std::cmp::Reverse(line.samples));
    for line in functions {
        let (Some(&idx), Some(scope)) = (of_id.get(&line.object_id), &line.scope) else { continue };
        let values = Values::of_function(line, snapshot, events);
        own[idx].subtract(&values);
        let mut frames = stack_of(idx);
        frames.push(StackFrame::Function(scope));
        take(&frames, &values);
    }
    for (idx, values) in own.iter().enumerate().filter(|(_, values)| !values.is_nothing()) {
        take(&stack_of(idx), values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn stacks(findings: &Findings) -> (BTreeMap<String, u64>, [u64; 4], Vec<u64>) {
        let events = event_names(&findings.snapshot);
        let (mut found, mut sums, mut periods) = (BTreeMap::new(), [0; 4], vec![0; events.len()]);
        each(findings, &events, &mut |frames, values| {
            let names: Vec<_> = frames.iter().map(|frame| frame.name()).collect();
            *found.entry(names.join(";")).or_default() += values.samples;
            let Values { samples, loads, stores, latency, .. } = *values;
            for (sum, value) in sums.iter_mut().zip([samples, loads, stores, latency]) {
                *sum += value;
            }
            for (sum, value) in periods.iter_mut().zip(&values.events) {
                *sum += value;
            }
        });
        (found, sums, periods)
    }

    #[test]
    fn stacks_add_up_to_the_total_whatever_is_left_out() {
        let whole = fixture::findings();
        let total = whole.snapshot.objects[0].metrics.all.clone();
        for n_objects in [whole.snapshot.objects.len(), 5, 2, 1] {
            let mut findings = whole.clone();
            Arc::make_mut(&mut findings.snapshot).objects.truncate(n_objects);
            let (found, [samples, loads, ..], periods) = stacks(&findings);
            assert_eq!((samples, loads), (total.samples, total.loads), "{n_objects}: {found:?}");
            assert_eq!(periods, [total.events["cpu-clock"], 0]);
        }
    }

    #[test]
    fn the_function_is_the_innermost_frame() {
        let (found, ..) = stacks(&fixture::findings());
        let y = "<Total>;{structure:order};{structure:order}.{structure:pos_t pos};\
                 {structure:order}.{structure:pos_t pos}.{int y}";
        assert_eq!(found[&format!("{y};match_orders")], 1_500);
        assert_eq!(found[&format!("{y};[libbook.so]")], 400);
        assert_eq!(found[y], 100, "of no known function");
        assert!(found.keys().all(|stack| !stack.contains('\x1b')));
    }
}
