//! The values of functions that were followed, kept while there is room: those asked for lately.

use crate::dataflow::{Argument, Dataflow};
use crate::limit::{self, BoundedMap};
use dataspace_proto::address::Svma;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Key of a function's values: its first instruction, and whether what its callers pass went
/// into them.
pub(crate) type FlowKey = (Svma, bool);

/// Cache of what was worked out of functions.
#[derive(Debug, Default)]
pub(crate) struct FlowCache {
    kept: FxHashMap<FlowKey, (u64, Box<Dataflow>)>,
    /// Oldest first. One whose number is not the kept one's was taken out since.
    order: VecDeque<(u64, FlowKey)>,
    n_bytes: usize,
    next: u64,
    /// Functions that have more values than are followed, which takes a second to see.
    pub(crate) too_large: BoundedMap<Svma, (), { limit::MAX_CACHED_ARGUMENTS }>,
    /// Arguments that the callers of functions pass.
    pub(crate) given: BoundedMap<Svma, Vec<Argument>, { limit::MAX_CACHED_ARGUMENTS }>,
}

impl FlowCache {
    /// Lends the values of a function.
    pub(crate) fn take(&mut self, key: FlowKey) -> Option<Box<Dataflow>> {
        let (_, flow) = self.kept.remove(&key)?;
        self.n_bytes -= flow.n_bytes();
        Some(flow)
    }

    /// Takes a function's values in, over those that were not asked for the longest.
    pub(crate) fn put(&mut self, key: FlowKey, flow: Box<Dataflow>) {
        self.take(key);
        self.n_bytes += flow.n_bytes();
        while self.n_bytes > limit::MAX_CACHED_FLOW_BYTES
            || self.order.len() > limit::MAX_CACHED_FLOWS
        {
            let Some((number, oldest)) = self.order.pop_front() else { break };
            if self.kept.get(&oldest).is_some_and(|(kept, _)| *kept == number) {
                self.take(oldest);
            }
        }
        self.next += 1;
        self.order.push_back((self.next, key));
        self.kept.insert(key, (self.next, flow));
    }
}
