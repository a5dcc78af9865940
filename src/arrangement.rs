//! Arrangement of objects in a list: their order, their depth and their labels.

use crate::column::Scale;
use crate::config::{Names, Selection};
use crate::selection::{Selected, WantedObjects, select};
use crate::text::{ratio, visible};
use dataspace_proto::snapshot::{Metrics, ObjectKind, ObjectLine, Snapshot};
use dataspace_proto::window::Window;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Depth from which on rows are closed at first.
const OPEN_DEPTH: usize = 1;

/// Key that a list is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SortKey {
    /// Samples in the window, most first.
    #[default]
    Samples,
    /// Time on a CPU, most first.
    Time,
    /// Samples that load, most first.
    Loads,
    /// Samples that store, most first.
    Stores,
    /// Average latency, highest first.
    Latency,
    /// The name, in the order of the alphabet.
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
    /// Members below their aggregate, with only their own part of the name; without `<Total>` and `<Scalars>`, which would
    /// hide what is in them.
    pub(crate) is_tree: bool,
    /// The spelling of the objects.
    pub(crate) names: Names,
    /// The names and the number of the objects.
    pub(crate) selection: Selection,
    /// The rows of the tree that are open.
    pub(crate) folds: Folds,
}

/// The rows of a tree of which the parts are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Folds {
    /// All are, but for those that were closed.
    is_all_open: bool,
    /// Objects that somebody opened or closed, against what they would be.
    turned: HashSet<u32>,
}

impl Folds {
    fn is_open(&self, object: u32, depth: usize) -> bool {
        (self.is_all_open || depth < OPEN_DEPTH) != self.turned.contains(&object)
    }

    /// Opens or closes a row at a depth.
    pub(crate) fn set(&mut self, object: u32, depth: usize, is_open: bool) {
        if self.is_open(object, depth) != is_open && !self.turned.remove(&object) {
            self.turned.insert(object);
        }
    }

    /// Opens all rows; all but the outermost are closed where they were open already.
    pub(crate) fn turn_all(&mut self) {
        self.is_all_open = !(self.is_all_open && self.turned.is_empty());
        self.turned.clear();
    }
}

/// State of a row whose object has parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fold {
    /// It has none.
    #[default]
    Leaf,
    /// They are listed below it.
    Open,
    /// They are not shown.
    Closed,
}

/// One line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Index into the snapshot's objects.
    pub(crate) object_idx: usize,
    /// Number of objects that it is inside of, in a tree.
    pub(crate) depth: usize,
    /// The name, or its last part; safe to print.
    pub(crate) label: String,
    /// True where it is here only because something below it matches the filter.
    pub(crate) is_context: bool,
    /// State of its parts: listed or not.
    pub(crate) fold: Fold,
}

/// The rows, and how many objects the limit cut off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    /// `<Total>` first in a list, whatever the order.
    pub(crate) rows: Vec<Row>,
    /// Objects that match and are not in `rows`.
    pub(crate) n_cut: usize,
}

impl SortKey {
    /// Every key, in the order in which one goes through them.
    pub(crate) const ALL: [SortKey; 6] = [
        SortKey::Samples,
        SortKey::Time,
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

/// Names that several objects have: types of one name of several programs.
#[derive(Debug)]
pub(crate) struct Namesakes<'a> {
    names: Names,
    shared: HashSet<&'a str>,
}

impl<'a> Namesakes<'a> {
    /// Those among `objects`, in the spelling of `names`.
    pub(crate) fn among(objects: &'a [ObjectLine], names: Names) -> Self {
        let mut seen = HashSet::new();
        let spelled = objects.iter().map(|object| &**names.of(object));
        Self { names, shared: spelled.filter(|it| !seen.insert(*it)).collect() }
    }

    /// File name of the program or library that touches an object, where others have the same name.
    pub(crate) fn program<'b>(&self, object: &'b ObjectLine) -> Option<&'b str> {
        let scope = object.scope.first();
        let scope = scope.filter(|_| self.shared.contains(&**self.names.of(object)))?;
        scope.object.rsplit('/').next()
    }

    /// The name of an object, with its program where that tells it apart; safe to print.
    fn label(&self, object: &ObjectLine) -> String {
        with_program(self.names.of(object), self.program(object)).into_owned()
    }
}

/// A name, with the program that tells it from its namesakes; safe to print.
pub(crate) fn with_program<'a>(name: &'a str, program: Option<&str>) -> Cow<'a, str> {
    match program {
        Some(program) => Cow::Owned(format!("{} · {}", visible(name), visible(program))),
        None => visible(name),
    }
}

/// Spelling of objects that are known by their descriptors.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectNames {
    how: Names,
    of_source: HashMap<Arc<str>, Arc<str>>,
}

impl ObjectNames {
    /// Those of `objects`, for people who want them in the spelling `how`.
    pub(crate) fn of(objects: &[ObjectLine], how: Names) -> Self {
        let named = objects.iter().filter(|object| !object.name.is_empty());
        let of_source =
            named.map(|object| (Arc::clone(&object.object), Arc::clone(&object.name))).collect();
        Self { how, of_source }
    }

    /// One more.
    pub(crate) fn add(&mut self, descriptor: &Arc<str>, name: &Arc<str>) {
        self.of_source.entry(Arc::clone(descriptor)).or_insert_with(|| Arc::clone(name));
    }

    /// The name in the source, where it is known.
    pub(crate) fn in_source(&self, descriptor: &str) -> Option<&str> {
        self.of_source.get(descriptor).map(|name| &**name)
    }

    /// The name for a person.
    pub(crate) fn spelled<'a>(&'a self, descriptor: &'a str) -> &'a str {
        match self.how {
            Names::Source => self.in_source(descriptor).unwrap_or(descriptor),
            Names::Descriptor => descriptor,
        }
    }
}

impl Arrangement {
    /// Lists the objects of `snapshot`.
    pub(crate) fn list(&self, snapshot: &Snapshot) -> Listing {
        let wanted = WantedObjects {
            selection: &self.selection,
            sampled_in: Some(self.window),
            has_total: !self.is_tree,
        };
        let Selected { listed, n_cut } = select(&snapshot.objects, wanted, |matches| {
            if self.is_tree { self.tree(snapshot, &matches) } else { self.flat(snapshot, matches) }
        });
        Listing { rows: listed, n_cut }
    }

    fn flat(&self, snapshot: &Snapshot, mut idxs: Vec<usize>) -> Vec<Row> {
        self.sort(snapshot, &mut idxs);
        let namesakes = Namesakes::among(&snapshot.objects, self.names);
        let row = |object_idx: usize| Row {
            object_idx,
            depth: 0,
            label: namesakes.label(&snapshot.objects[object_idx]),
            is_context: false,
            fold: Fold::Leaf,
        };
        idxs.into_iter().map(row).collect()
    }

    /// Depth first. A parent that does not match but has a descendant that does is kept as
    /// context; what hangs below no root (a parent that was cut off) becomes a root itself. An object with one part that
    /// has all of its samples is one row with it.
    fn tree(&self, snapshot: &Snapshot, matches: &[usize]) -> Vec<Row> {
        let mut family = Family::new(&snapshot.objects, matches);
        let namesakes = Namesakes::among(&snapshot.objects, self.names);
        for siblings in family.children.values_mut() {
            self.sort(snapshot, siblings);
        }
        let mut rows = Vec::with_capacity(matches.len());
        let mut stack: Vec<(usize, usize)> = Vec::new();
        push_reversed(&mut stack, family.children.get(&None), 0);
        while let Some((idx, depth)) = stack.pop() {
            let chain = family.chain(idx, self.window);
            let last = *chain.last().unwrap_or(&idx);
            let id = family.objects[last].id;
            let children = family.children.get(&Some(last));
            // What a filter found is to be seen.
            let is_open = !self.selection.filter.is_empty() || self.folds.is_open(id, depth);
            let fold = match children {
                None => Fold::Leaf,
                Some(_) if is_open => Fold::Open,
                Some(_) => Fold::Closed,
            };
            rows.push(Row {
                object_idx: last,
                depth,
                label: self.label(&family, &chain, &namesakes),
                is_context: !family.is_match[last],
                fold,
            });
            if fold == Fold::Open {
                push_reversed(&mut stack, children, depth + 1);
            }
        }
        rows
    }

    /// Text that a chain of objects adds to the name of what is around it.
    fn label(&self, family: &Family<'_>, chain: &[usize], namesakes: &Namesakes<'_>) -> String {
        let (Some(&first), Some(&last)) = (chain.first(), chain.last()) else {
            return String::new();
        };
        let objects = family.objects;
        let label = match (self.names, family.parents[first]) {
            (_, None) => return namesakes.label(&objects[last]),
            (Names::Descriptor, Some(parent)) => {
                let whole = &objects[last].object;
                let own = whole.strip_prefix(&*objects[parent].object);
                own.filter(|own| !own.is_empty()).unwrap_or(whole).to_owned()
            }
            (Names::Source, Some(_)) => {
                let is_told = |idx: &&usize| **idx == last || !objects[**idx].is_elided;
                let part = |idx: &usize| {
                    let object = &objects[*idx];
                    &**object.part.as_ref().unwrap_or_else(|| self.names.of(object))
                };
                chain.iter().filter(is_told).map(part).collect()
            }
        };
        visible(label.trim_start()).into_owned()
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
            SortKey::Time => scale.time_ns(b_sums).cmp(&scale.time_ns(a_sums)),
            SortKey::Loads => b_sums.loads.cmp(&a_sums.loads),
            SortKey::Stores => b_sums.stores.cmp(&a_sums.stores),
            SortKey::Latency => {
                let of = |sums: &Metrics| ratio(sums.latency.unwrap_or(0), sums.samples);
                of(b_sums).total_cmp(&of(a_sums))
            }
            SortKey::Name => self.names.of(a).cmp(self.names.of(b)),
        }
    }
}

/// Objects that are listed, and what is inside of what.
struct Family<'a> {
    objects: &'a [ObjectLine],
    parents: Vec<Option<usize>>,
    children: HashMap<Option<usize>, Vec<usize>>,
    is_match: Vec<bool>,
}

impl<'a> Family<'a> {
    fn new(objects: &'a [ObjectLine], matches: &[usize]) -> Self {
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
        for idx in (0..objects.len()).filter(|&idx| is_kept[idx] && !is_heading(&objects[idx])) {
            children.entry(parents[idx]).or_default().push(idx);
        }
        Self { objects, parents, children, is_match }
    }

    /// An object, its only part, the only part of that, and so on, as long as each has all samples of the one before.
    fn chain(&self, first: usize, window: Window) -> Vec<usize> {
        let samples = |idx: usize| self.objects[idx].metrics.get(window).samples;
        let mut chain = vec![first];
        let mut last = first;
        while let Some([only]) = self.children.get(&Some(last)).map(Vec::as_slice)
            && samples(*only) == samples(last)
            && self.objects[*only].part.is_some()
            && self.objects[last].kind != ObjectKind::Artificial
        {
            chain.push(*only);
            last = *only;
        }
        chain
    }
}

/// Tells whether an object stands for all others of a kind: in a tree it would only hide them.
fn is_heading(object: &ObjectLine) -> bool {
    object.kind == ObjectKind::Total || &*object.object == "<Scalars>"
}

/// By object: the index of its parent, if that is none of which everything is inside of and which would only push the
/// tree to the right. A parent that is not there, or that is below the object
/// itself, is none.
pub(crate) fn parents(objects: &[ObjectLine]) -> Vec<Option<usize>> {
    let by_id: HashMap<u32, usize> =
        objects.iter().enumerate().map(|(idx, object)| (object.id, idx)).collect();
    let parent_of = |object: &ObjectLine| {
        let parent = *by_id.get(&object.parent_id?)?;
        (!is_heading(&objects[parent])).then_some(parent)
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

/// Pairs of an object and what it is in, by their indices, so that what is in an object comes before it: sums that are
/// handed on in this order are whole.
pub(crate) fn descendants_first(objects: &[ObjectLine]) -> Vec<(usize, usize)> {
    let by_id: HashMap<u32, usize> =
        objects.iter().enumerate().map(|(idx, object)| (object.id, idx)).collect();
    let parent = |idx: usize| by_id.get(&objects[idx].parent_id?).copied();
    let depth = |idx: usize| {
        std::iter::successors(parent(idx), |above| parent(*above)).take(objects.len()).count()
    };
    let mut order: Vec<(usize, usize)> = (0..objects.len()).map(|idx| (depth(idx), idx)).collect();
    order.sort_unstable_by_key(|(depth, _)| std::cmp::Reverse(*depth));
    order.into_iter().filter_map(|(_, idx)| Some((idx, parent(idx)?))).collect()
}

fn push_reversed(stack: &mut Vec<(usize, usize)>, siblings: Option<&Vec<usize>>, depth: usize) {
    stack.extend(siblings.into_iter().flatten().rev().map(|&idx| (idx, depth)));
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
    fn total_stays_first_in_a_list_whatever_the_order() {
        for sort in SortKey::ALL {
            for is_inverted in [false, true] {
                let arrangement = Arrangement { sort, is_inverted, ..Default::default() };
                assert_eq!(labels(&arrangement)[0], "<Total>", "{arrangement:?}");
            }
        }
    }

    #[test]
    fn a_tree_puts_members_below_their_aggregate() {
        let names = Names::Descriptor;
        let arrangement = Arrangement { is_tree: true, names, ..Default::default() };
        assert_eq!(
            labels(&arrangement)[..5],
            [
                "{structure:order}",
                "  .{pointer+structure:order next}",
                "  .{structure:pos_t pos}.{int y}",
                "  .{long_int price}",
                "{structure:particle}.{double x}",
            ]
        );
    }

    #[test]
    fn a_filter_keeps_what_the_match_is_inside_of() {
        let selection = Selection { filter: "INT Y".into(), limit: None };
        let flat = Arrangement { selection: selection.clone(), ..Default::default() };
        assert_eq!(labels(&flat), ["<Total>", "order.pos.y"]);
        let tree = Arrangement { selection, is_tree: true, ..Default::default() };
        assert_eq!(labels(&tree), ["order", "  .pos.y"]);
    }

    #[test]
    fn parts_of_a_library_are_left_out_of_a_joined_row() {
        let mut snapshot = fixture::running();
        let objects = &mut snapshot.objects;
        let pos = objects.iter_mut().find(|object| object.part.as_deref() == Some(".pos")).unwrap();
        pos.is_elided = true;
        let arrangement = Arrangement { is_tree: true, ..Default::default() };
        let rows = arrangement.list(&snapshot).rows;
        assert_eq!(rows[2].label, ".y");
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
        let mut arrangement = Arrangement { is_tree: true, ..Default::default() };
        arrangement.folds.turn_all();
        let flat = Arrangement::default().list(&snapshot).rows.len();
        // Two headings, and one that is in a row with its only part.
        assert_eq!(arrangement.list(&snapshot).rows.len(), flat - 3);
    }

    #[test]
    fn sort_keys_go_round() {
        assert_eq!(SortKey::Name.after(1), SortKey::Samples);
        assert_eq!(SortKey::Samples.after(-1), SortKey::Name);
    }
}
