//! Sums by object and function: which functions access which data objects, within a bound.

use crate::limit;
use crate::totals::rolling::ObjectIdx;
use crate::totals::sums::{Sums, place};
use dataspace_proto::event::EventIdx;
use dataspace_proto::sample_line::Scope;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Accesses of one function to one object itself, not to a part of it, since the session began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionLine {
    /// The object.
    pub object_id: u32,
    /// The function; `None` where it is not known, or one too many.
    pub scope: Option<Arc<Scope>>,
    /// Its samples.
    pub samples: u64,
    /// Those that read.
    pub loads: u64,
    /// Those that write.
    pub stores: u64,
    /// Sum of latencies in core cycles.
    pub latency: u64,
    /// Sums of periods, in the order of the snapshot's events; those that are missing are 0.
    pub events: Box<[u64]>,
}

/// Index of a function of a session; none where it is not known, or one too many.
type FunctionIdx = Option<u32>;

/// Sums of one function's samples that are charged to one object itself, not to a part of it.
#[derive(Debug, Default)]
struct FunctionSums {
    samples: u64,
    loads: u64,
    stores: u64,
    latency: u64,
    /// Periods by event.
    events: Vec<u64>,
}

/// All functions of a session, and what they access.
#[derive(Debug, Default)]
pub(crate) struct FunctionTable {
    functions: Vec<Arc<Scope>>,
    of_scope: FxHashMap<Arc<Scope>, u32>,
    sums: FxHashMap<(ObjectIdx, FunctionIdx), FunctionSums>,
}

impl FunctionTable {
    /// Adds what one event's samples in one function added to an object.
    pub(crate) fn add(
        &mut self,
        object: ObjectIdx,
        scope: Option<&Arc<Scope>>,
        (event, period): (EventIdx, u64),
        sums: &Sums,
    ) {
        let mut key = (object, scope.and_then(|scope| self.function(scope)));
        if self.sums.len() >= limit::MAX_FUNCTION_SUMS && !self.sums.contains_key(&key) {
            key.1 = None;
        }
        let sum = self.sums.entry(key).or_default();
        sum.samples = sum.samples.wrapping_add(sums.samples);
        sum.loads = sum.loads.wrapping_add(sums.loads);
        sum.stores = sum.stores.wrapping_add(sums.stores);
        sum.latency = sum.latency.wrapping_add(sums.latency);
        let events = place(&mut sum.events, usize::from(event.0), 0);
        *events = events.wrapping_add(period);
    }

    fn function(&mut self, scope: &Arc<Scope>) -> FunctionIdx {
        if let Some(known) = self.of_scope.get(scope) {
            return Some(*known);
        }
        if self.functions.len() >= limit::MAX_FUNCTIONS {
            return None;
        }
        let idx = self.functions.len() as u32;
        self.functions.push(Arc::clone(scope));
        self.of_scope.insert(Arc::clone(scope), idx);
        Some(idx)
    }

    /// As snapshots have them: by object, then by samples, most first.
    pub(crate) fn lines(&self) -> Arc<[FunctionLine]> {
        let line = |(&(object, function), sums): (&(ObjectIdx, FunctionIdx), &FunctionSums)| {
            let scope = function.and_then(|idx| self.functions.get(idx as usize));
            FunctionLine {
                object_id: object.0,
                scope: scope.map(Arc::clone),
                samples: sums.samples,
                loads: sums.loads,
                stores: sums.stores,
                latency: sums.latency,
                events: sums.events.as_slice().into(),
            }
        };
        let mut lines: Vec<FunctionLine> = self.sums.iter().map(line).collect();
        fn name(line: &FunctionLine) -> Option<&str> {
            line.scope.as_ref()?.function.as_deref()
        }
        // Equal ones by name, so that two snapshots of one state are alike.
        lines.sort_by(|one, other| {
            let key = |line: &FunctionLine| (line.object_id, std::cmp::Reverse(line.samples));
            key(one).cmp(&key(other)).then_with(|| name(one).cmp(&name(other)))
        });
        lines.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_above_the_bound_are_summed_without_a_name() {
        let mut table = FunctionTable::default();
        let sums = Sums { samples: 2, loads: 1, ..Sums::default() };
        let n_functions = limit::MAX_FUNCTIONS + 10;
        for idx in 0..n_functions {
            let scope = Scope { function: Some(format!("f{idx}").into()), ..Scope::default() };
            table.add(ObjectIdx(7), Some(&Arc::new(scope)), (EventIdx(1), 3), &sums);
        }
        let lines = table.lines();
        assert_eq!(lines.len(), limit::MAX_FUNCTIONS + 1);
        assert_eq!(lines.iter().map(|line| line.samples).sum::<u64>(), 2 * n_functions as u64);
        let rest = lines.iter().find(|line| line.scope.is_none()).unwrap();
        assert_eq!((rest.samples, rest.loads, &*rest.events), (20, 10, &[0, 30][..]));
    }

    #[test]
    fn pairs_above_the_bound_stay_with_their_object() {
        let mut table = FunctionTable::default();
        let sums = Sums { samples: 1, ..Sums::default() };
        let function =
            |name: &str| Arc::new(Scope { function: Some(name.into()), ..Scope::default() });
        let (first, second) = (function("first"), function("second"));
        for idx in 0..limit::MAX_FUNCTION_SUMS as u32 {
            table.add(ObjectIdx(idx), Some(&first), (EventIdx(0), 1), &sums);
        }
        for _ in 0..3 {
            table.add(ObjectIdx(5), Some(&second), (EventIdx(0), 1), &sums);
            table.add(ObjectIdx(5), Some(&first), (EventIdx(0), 1), &sums);
        }
        let lines = table.lines();
        let of_five: Vec<_> = lines.iter().filter(|line| line.object_id == 5).collect();
        assert_eq!((of_five[0].samples, of_five[0].scope.as_ref()), (4, Some(&first)));
        assert_eq!((of_five[1].samples, of_five[1].scope.as_ref()), (3, None));
    }
}
