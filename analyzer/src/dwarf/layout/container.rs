//! Containers: the types of a unit that hold another one inside of them, and where.

use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::layout::holding::HolderIndex;
use crate::dwarf::layout::kept::Container;
use crate::limit;
use crate::types::die::{DieRef, UnitIdx};
use crate::types::layout::{Layout, Shape};
use std::sync::Arc;

/// The search for what holds the type with one fingerprint.
struct HolderSearch {
    fingerprint: u64,
    found: Vec<Container>,
    n_parts: usize,
}

impl HolderSearch {
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
                // `container_of(link, struct cell, link)`: the link at offset 16 of a cell is what the
                // list's code points at.
                if member.layout.fingerprint == self.fingerprint {
                    self.note(container, offset);
                }
                parts.push((&member.layout, offset));
            }
        }
    }

    fn note(&mut self, container: &Arc<Layout>, offset: u64) {
        let is_known = self.found.iter().any(|known| {
            known.offset == offset && known.layout.fingerprint == container.fingerprint
        });
        if !is_known && self.found.len() < limit::MAX_CONTAINERS {
            self.found.push(Container { layout: Arc::clone(container), offset });
        }
    }
}

impl DebugInfo {
    /// The types that a unit defines and that have one like `part` inside of them. Only what may have
    /// it is laid out.
    pub(crate) fn containers_of(&mut self, unit: UnitIdx, part: &Layout) -> Arc<[Container]> {
        let key = (unit, part.fingerprint);
        if let Some(known) = self.containers.known.get(&key) {
            return known;
        }
        let mut search =
            HolderSearch { fingerprint: part.fingerprint, found: Vec::new(), n_parts: 0 };
        for offset in self.holder_index(unit).holders_of(part) {
            let layout = self.layout(DieRef { unit, offset });
            if layout.is_aggregate() {
                search.add(&layout);
            }
        }
        self.containers.known.keep(key, search.found.into())
    }

    fn holder_index(&mut self, unit_idx: UnitIdx) -> Arc<HolderIndex> {
        if let Some(known) = self.containers.indices.get(&unit_idx) {
            return known;
        }
        let unit = self.unit(unit_idx);
        let index = unit.map_or_else(HolderIndex::default, |unit| HolderIndex::of(&unit));
        self.containers.indices.keep(unit_idx, Arc::new(index))
    }
}
