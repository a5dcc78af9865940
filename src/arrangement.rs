//! Arrangement of objects in a list: their order, their depth and their labels.

use crate::column::Scale;
use crate::config::Selection;
use crate::selection::{Selected, WantedObjects, select};
use crate::text::{ratio, visible};
use dataspace_proto::snapshot::{ObjectKind, ObjectLine, Snapshot};
use dataspace_proto::window::Window;
use std::cmp::Ordering;
use std::collections::HashMap;

/// Key that a list is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SortKey {
    /// Samples in the window, most first.
    #[default]
    Samples,
    /// Samples a second in the window, most first.
    Rate,
    /// Samples that load, most first.
    Loads,
    /// Samples that store, most first.
    Stores,
    /// Average latency, highest first.
    Latency,
    /// The descriptor, in the order of the alphabet.
    Name,
}

/// Wishes for a list of a snapshot's objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrangement {
    /// The window that the numbers are of.
    pub(crate) window: Window,
    /// The key of the order.
    pub(crate) sort: SortKey,
    /// The other way round.
    pub(crate) is_inverted: bool,
    /// Members below their aggregate, with only their own part of the descriptor.
    pub(crate) is_tree: bool,
    /// The names and the number of the objects.
    pub(crate) selection: Selection,
}

/// One line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Index into the snapshot's objects.
    pub(crate) object_idx: usize,
    /// Number of objects that it is inside of, in a tree.
    pub(crate) depth: usize,
    /// The descriptor, or its last part; safe to print.
    pub(crate) label: String,
    /// True where it is here only because something below it matches the filter.
    pub(crate) is_context: bool,
}

/// The rows, and how many objects the limit cut off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    /// `<Total>` first, whatever the order.
    pub(crate) rows: Vec<Row>,
    /// Objects that match and are not in `rows`.
    pub(crate) n_cut: usize,
}

impl SortKey {
    /// Every key, in the order in which one goes through them.
    pub(crate) const ALL: [SortKey; 6] = [
        SortKey::Samples,
        SortKey::Rate,
        SortKey::Loads,
        SortKey::Stores,
        SortKey::Latency,
        SortKey::Name,
    ];

    /// The key `step` further on, round and round.
    pub(crate) fn after(self, step: isize) -> Self {
        let here = Self::ALL.iter().position(|key| *key == self).unwrap_or_default();
        let next = here.wrapping_add_signed(step + Self::ALL.len() as isize) % Self::ALL.len();
        Self::ALL[next]
    }
}

impl Arrangement {
    /// Lists the objects of `snapshot`.
    pub(crate) fn list(&self, snapshot: &Snapshot) -> Listing {
        let wanted = WantedObjects {
            selection: &self.selection,
            sampled_in: Some(self.window),
            has_total: true,
        };
        let Selected { listed, n_cut } = select(&snapshot.objects, wanted, |matches| {
            if self.is_tree { self.tree(snapshot, &matches) } else { self.flat(snapshot, matches) }
        });
        Listing { rows: listed, n_cut }
    }

    fn flat(&self, snapshot: &Snapshot, mut idxs: Vec<usize>) -> Vec<Row> {
        self.sort(snapshot, &mut idxs);
        let row = |object_idx: usize| Row {
            object_idx,
            depth: 0,
            label: visible(&snapshot.objects[object_idx].object).into_owned(),
            is_context: false,
        };
        idxs.into_iter().map(row).collect()
    }

    /// Depth first. A parent that does not match but has a descendant that does is kept as
    /// context; what hangs below no root (a parent that was cut off) becomes a root itself.
    fn tree(&self, snapshot: &Snapshot, matches: &[usize]) -> Vec<Row> {
        let objects = &snapshot.objects;
        let parents = parents(objects);
        let mut is_match = vec![false; objects.len()];
        matches.iter().for_each(|&idx| is_match[idx] = true);
        let mut is_kept = is_match.clone();
        for &idx in matches {
            let mut above = parents[idx];
            while let Some(parent) = above.filter(|&parent| !is_kept[parent]) {
                is_kept[parent] = true;
                above = parents[parent];
            }
        }
        let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        for idx in (0..objects.len()).filter(|&idx| is_kept[idx]) {
            children.entry(parents[idx]).or_default().push(idx);
        }
        for siblings in children.values_mut() {
            self.sort(snapshot, siblings);
        }
        let mut rows = Vec::with_capacity(is_kept.len());
        let mut stack: Vec<(usize, usize)> = Vec::new();
        push_reversed(&mut stack, children.remove(&None), 0);
        while let Some((idx, depth)) = stack.pop() {
            let parent = parents[idx].map(|parent| &*objects[parent].object);
            rows.push(Row {
                object_idx: idx,
                depth,
                label: own_part(&objects[idx].object, parent),
                is_context: !is_match[idx],
            });
            push_reversed(&mut stack, children.remove(&Some(idx)), depth + 1);
        }
        rows
    }

    fn sort(&self, snapshot: &Snapshot, idxs: &mut [usize]) {
        let scale = Scale::new(snapshot, self.window);
        let objects = &snapshot.objects;
        idxs.sort_by(|&a, &b| {
            let (a, b) = (&objects[a], &objects[b]);
            let is_total = |object: &ObjectLine| object.kind == ObjectKind::Total;
            let order = self.compare(a, b, &scale);
            let order = if self.is_inverted { order.reverse() } else { order };
            // Equal ones keep one order from one refresh to the next: by name, then by id.
            is_total(b)
                .cmp(&is_total(a))
                .then(order)
                .then_with(|| a.object.cmp(&b.object))
                .then(a.id.cmp(&b.id))
        });
    }

    fn compare(&self, a: &ObjectLine, b: &ObjectLine, scale: &Scale) -> Ordering {
        let (a_sums, b_sums) = (a.metrics.get(self.window), b.metrics.get(self.window));
        match self.sort {
            SortKey::Samples => b_sums.samples.cmp(&a_sums.samples),
            SortKey::Rate => scale.rate(b_sums).total_cmp(&scale.rate(a_sums)),
            SortKey::Loads => b_sums.loads.cmp(&a_sums.loads),
            SortKey::Stores => b_sums.stores.cmp(&a_sums.stores),
            SortKey::Latency => ratio(b_sums.latency, b_sums.samples)
                .total_cmp(&ratio(a_sums.latency, a_sums.samples)),
            SortKey::Name => a.object.cmp(&b.object),
        }
    }
}

/// By object: the index of its parent below `<Total>`, which everything is inside of and which
/// would only push the tree to the right. A parent that is not there, or that is below the object
/// itself, is none.
fn parents(objects: &[ObjectLine]) -> Vec<Option<usize>> {
    let by_id: HashMap<u32, usize> =
        objects.iter().enumerate().map(|(idx, object)| (object.id, idx)).collect();
    let parent_of = |object: &ObjectLine| {
        let parent = *by_id.get(&object.parent_id?)?;
        (objects[parent].kind != ObjectKind::Total).then_some(parent)
    };
    let mut parents: Vec<Option<usize>> = objects.iter().map(parent_of).collect();
    for idx in 0..parents.len() {
        let mut n_steps = 0;
        let mut above = parents[idx];
        while let Some(parent) = above {
            n_steps += 1;
            if parent == idx || n_steps > parents.len() {
                parents[idx] = None;
                break;
            }
            above = parents[parent];
        }
    }
    parents
}

fn push_reversed(stack: &mut Vec<(usize, usize)>, siblings: Option<Vec<usize>>, depth: usize) {
    stack.extend(siblings.into_iter().flatten().rev().map(|idx| (idx, depth)));
}

/// The part that `object` adds to its parent's descriptor: `.{int x}` of `{structure:cell}.{int x}`.
fn own_part(object: &str, parent: Option<&str>) -> String {
    let own = parent.and_then(|parent| object.strip_prefix(parent)).filter(|own| !own.is_empty());
    visible(own.unwrap_or(object)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn labels(arrangement: &Arrangement) -> Vec<String> {
        let snapshot = fixture::running();
        let rows = arrangement.list(&snapshot).rows;
        rows.iter().map(|row| format!("{}{}", "  ".repeat(row.depth), row.label)).collect()
    }

    #[test]
    fn total_stays_first_whatever_the_order() {
        for sort in SortKey::ALL {
            for is_inverted in [false, true] {
                for is_tree in [false, true] {
                    let arrangement =
                        Arrangement { sort, is_inverted, is_tree, ..Default::default() };
                    assert_eq!(labels(&arrangement)[0], "<Total>", "{arrangement:?}");
                }
            }
        }
    }

    #[test]
    fn a_tree_puts_members_below_their_aggregate() {
        let arrangement = Arrangement { is_tree: true, ..Default::default() };
        let labels = labels(&arrangement);
        assert_eq!(
            labels[1..5],
            [
                "{structure:order}",
                "  .{pointer+structure:order next}",
                "  .{structure:pos_t pos}",
                "    .{int y}"
            ]
        );
    }

    #[test]
    fn a_filter_keeps_what_the_match_is_inside_of() {
        let selection = Selection { filter: "INT Y".into(), limit: None };
        let flat = Arrangement { selection: selection.clone(), ..Default::default() };
        assert_eq!(labels(&flat), ["<Total>", "{structure:order}.{structure:pos_t pos}.{int y}"]);
        let tree = Arrangement { selection, is_tree: true, ..Default::default() };
        assert_eq!(labels(&tree).len(), 4);
    }

    #[test]
    fn a_limit_says_how_much_it_cut() {
        let selection = Selection { limit: Some(3), filter: String::new() };
        let listing = Arrangement { selection, ..Default::default() }.list(&fixture::running());
        assert_eq!(listing.rows.len(), 3);
        assert!(listing.n_cut > 0);
    }

    #[test]
    fn parents_in_a_circle_lose_nothing() {
        let mut snapshot = fixture::running();
        let n_objects = snapshot.objects.len();
        for idx in 1..n_objects {
            snapshot.objects[idx].parent_id = Some(snapshot.objects[(idx + 1) % n_objects].id);
        }
        snapshot.objects[n_objects - 1].parent_id = Some(snapshot.objects[1].id);
        let arrangement = Arrangement { is_tree: true, ..Default::default() };
        let flat = Arrangement::default().list(&snapshot).rows.len();
        assert_eq!(arrangement.list(&snapshot).rows.len(), flat);
    }

    #[test]
    fn sort_keys_go_round() {
        assert_eq!(SortKey::Name.after(1), SortKey::Samples);
        assert_eq!(SortKey::Samples.after(-1), SortKey::Name);
    }
}
