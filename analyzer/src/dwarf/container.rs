//! Which types of a unit hold another one inside of them, and where.

use super::{DebugInfo, DieRef, UnitIdx};
use crate::layout::{Layout, Shape};
use crate::limit;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// An aggregate and where in it another one begins.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    pub(crate) layout: Arc<Layout>,
    pub(crate) offset: u64,
}

/// The containers of each type of one unit, by the type's fingerprint.
#[derive(Debug, Default)]
pub(crate) struct Containers {
    of: FxHashMap<u64, Vec<Container>>,
    n_parts: usize,
}

impl Containers {
    /// What holds the type with this fingerprint.
    pub(crate) fn of(&self, fingerprint: u64) -> &[Container] {
        self.of.get(&fingerprint).map_or(&[], |found| found)
    }

    fn add(&mut self, container: &Arc<Layout>) {
        let mut parts: Vec<(&Layout, u64)> = vec![(container, 0)];
        while let Some((part, start)) = parts.pop() {
            let Shape::Aggregate { members, .. } = &part.shape else { continue };
            for member in members.iter().filter(|member| member.layout.is_aggregate()) {
                self.n_parts += 1;
                if self.n_parts > limit::MAX_CONTAINED_PARTS {
                    return;
                }
                let offset = start.saturating_add(member.offset);
                let found = self.of.entry(member.layout.fingerprint).or_default();
                let is_known = found.iter().any(|known| {
                    known.offset == offset && known.layout.fingerprint == container.fingerprint
                });
                if !is_known && found.len() < limit::MAX_CONTAINERS {
                    found.push(Container { layout: Arc::clone(container), offset });
                }
                parts.push((&member.layout, offset));
            }
        }
    }
}

impl DebugInfo {
    /// The containers of the types that a unit defines. Worked out when they are first asked for.
    pub(crate) fn containers(&mut self, unit_idx: UnitIdx) -> Arc<Containers> {
        if let Some(known) = self.containers.get(&unit_idx) {
            return Arc::clone(known);
        }
        let mut containers = Containers::default();
        if let Some(unit) = self.unit(unit_idx) {
            for offset in unit.aggregates() {
                let layout = self.layout(DieRef { unit: unit_idx, offset });
                if layout.is_aggregate() {
                    containers.add(&layout);
                }
            }
        }
        containers.of.values_mut().for_each(Vec::shrink_to_fit);
        containers.of.shrink_to_fit();
        let containers = Arc::new(containers);
        if self.containers.len() >= limit::MAX_CACHED_UNITS {
            self.containers.clear();
        }
        self.containers.insert(unit_idx, Arc::clone(&containers));
        containers
    }
}
