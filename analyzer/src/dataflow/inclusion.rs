//! Inclusions: what a function puts into cells for pointers to nothing known, and what it takes out of them.

mod array;
mod call;

use super::address::{Address, Origin};
use super::content::Content;
use super::pointer_cell::{Lost, PutPlace};
use super::points_to::{Included, Inclusions, PointerCell};
use super::typing::Typing;
use super::value::{Definition, Slot, ValueIdx};
use super::worklist::alternatives;
use crate::types::layout::Layout;
use crate::x86_64::abi::ARGUMENTS;
use array::Uses;
use dataspace_proto::address::Svma;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// The work of collecting what one function puts where.
pub(super) struct Collector<'c, 'a, 'b> {
    typing: &'c mut Typing<'a, 'b>,
    /// Entry of the function.
    entry: Svma,
    found: &'c mut Inclusions,
    /// Values of which it was followed where they go.
    followed: FxHashSet<ValueIdx>,
    /// Of some value it is not known what it may be.
    is_lost: bool,
    /// Uses of values, once that was asked.
    uses: Option<Uses>,
}

impl<'c, 'a, 'b> Collector<'c, 'a, 'b> {
    pub(super) fn new(
        typing: &'c mut Typing<'a, 'b>,
        entry: Svma,
        found: &'c mut Inclusions,
    ) -> Self {
        let followed = FxHashSet::default();
        Self { typing, entry, found, followed, is_lost: false, uses: None }
    }

    /// Collects all of it.
    pub(super) fn collect(mut self) {
        for store in self.typing.graph.stores.clone() {
            let address = self.typing.operand_address(&store.address);
            let mut place = self.typing.put_place(&address);
            if let Some(base) = store.address.base {
                self.add_alternatives(base, store.address.displacement, &mut place);
            }
            if place.lost.is_some() {
                self.put_anywhere_in(store.value, &address);
            }
            if place.lost == Some(Lost::Indexed) && store.address.index.is_none() {
                place.lost = Some(Lost::At(store.address.displacement));
            }
            let declared = self.typing.kept_content(&address);
            self.put(store.value, &place, &declared);
        }
        self.found.is_cut |= self.takes_undeclared();
        self.put_into_frame();
        for (to, from) in self.typing.graph.copies.clone() {
            self.copy(to, from);
        }
        for call in self.typing.graph.calls.clone() {
            self.pass(&call);
        }
        self.give_back();
        self.merge_slots();
        self.leave();
    }

    /// The cell of what code that is not followed may put into objects of a type.
    fn exposed(&mut self, layout: &Arc<Layout>, is_deep: bool) -> PointerCell {
        self.typing.around.debug.exposed(layout, is_deep, self.found)
    }

    /// Adds the places at which a store may be as well, where what it goes by is one of several things, or is only taken for
    /// something by what is done with it.
    fn add_alternatives(&mut self, base: ValueIdx, displacement: i64, place: &mut PutPlace) {
        if self.typing.is_hinted(base) {
            place.add(PutPlace::lost(Lost::At(displacement)));
        }
        if alternatives(self.typing.graph, base).is_none() {
            return;
        }
        for it in self.included(base) {
            place.add(match it {
                Included::Object(object) => {
                    self.typing.put_place(&Content::Address(object.displaced(displacement)))
                }
                _ => PutPlace::lost(Lost::At(displacement)),
            });
        }
    }

    /// Lists what a value may be.
    fn included(&mut self, value: ValueIdx) -> Vec<Included> {
        match self.typing.included(self.entry, value, &mut self.followed) {
            Some(included) => included,
            None => {
                self.is_lost = true;
                vec![Included::Anything]
            }
        }
    }

    /// Tells whether the function uses arguments as pointers that it is not declared to get: then nothing that is declared
    /// counts (`-g1`).
    fn takes_undeclared(&mut self) -> bool {
        let own = self.typing.around.scope.die;
        let n_declared = self.typing.n_passed(own, self.typing.around.function.start());
        let graph = self.typing.graph;
        let stored = graph.stores.iter().flat_map(|store| [Some(store.value), store.address.base]);
        let touched = graph.accesses.iter().map(|(base, _)| *base);
        let mut used = touched.chain(stored.flatten());
        used.any(|value| match graph.definition(graph.canonical(value)) {
            Some(Definition::Parameter { register }) => {
                ARGUMENTS.iter().position(|it| it == register).is_some_and(|it| it >= n_declared)
            }
            _ => false,
        })
    }

    /// Notes that a value is put somewhere, where what is `declared` is kept.
    fn put(&mut self, value: ValueIdx, place: &PutPlace, declared: &Content) {
        let included = self.included(value);
        self.give_slot(value, place, declared);
        for cell in &place.cells {
            included.iter().for_each(|it| self.found.put(*cell, it.clone()));
        }
        if let Some(lost) = place.lost {
            let known = || included.iter().filter(|it| **it != Included::Anything);
            let astray: &[PointerCell] = match lost {
                Lost::At(displacement) => {
                    &[PointerCell::Astray(displacement), PointerCell::AstrayElement]
                }
                Lost::Beyond(displacement) => &[PointerCell::Astray(displacement)],
                Lost::Indexed => &[PointerCell::AstrayElement],
                Lost::Around => &[PointerCell::Around],
            };
            for cell in astray {
                known().for_each(|it| self.found.put(*cell, it.clone()));
            }
        }
        for elements in &place.arrays {
            if !self.is_own_array(value, *elements) {
                self.found.put(*elements, Included::Anything);
            }
        }
        if place.cells.is_empty() {
            self.lose(&included);
        }
    }

    /// Notes that a value is put into an object, and it is not told into which member.
    fn put_anywhere_in(&mut self, value: ValueIdx, address: &Content) {
        if let Some(layout) = self.typing.structure_at(address)
            && !self.included(value).is_empty()
        {
            let cell = self.exposed(&layout, false);
            self.found.put(cell, Included::Anything);
        }
    }

    /// Notes that values go where they are not followed.
    fn lose(&mut self, included: &[Included]) {
        for it in included.iter().filter(|it| it.is_perhaps_code()) {
            self.found.put(PointerCell::Outside, it.clone());
        }
    }

    /// Notes that the address of a cell goes where others may put something in, unless it goes there as the object that begins
    /// with it.
    fn give_slot(&mut self, value: ValueIdx, place: &PutPlace, declared: &Content) {
        if is_to_aggregate(declared) {
            return;
        }
        let content = self.typing.of(value).clone();
        let is_slot = self.typing.is_to_carriers(declared);
        for cell in self.typing.slot_at(&content, is_slot) {
            if !place.cells.contains(&cell) && !place.arrays.contains(&cell) {
                self.found.put(cell, Included::Anything);
            }
        }
    }

    /// Notes what is put into the frame. A variable that is a pointer is followed by the graph.
    fn put_into_frame(&mut self) {
        let reloaded = self.typing.graph.definitions.iter().filter_map(|it| match it {
            Definition::Reloaded { slot, .. } => Some(*slot),
            _ => None,
        });
        let reloaded: FxHashSet<Slot> = reloaded.collect();
        let given = self.given_frame();
        for (slot, value) in self.typing.graph.frame_stores.clone() {
            let n_before = given.partition_point(|start| *start <= slot);
            let start = n_before.checked_sub(1).map(|last| given[last]);
            let start = start.filter(|start| start.frame == slot.frame);
            let is_variable = self.typing.contents.frame.has(slot);
            let mut place = self.typing.frame_place(slot);
            if place.lost == Some(Lost::Indexed) {
                // What is not said to be a variable may be the rest of one whose address is given on.
                match start {
                    Some(start) if !is_variable || start == slot => {
                        place.lost = slot.offset.checked_sub(start.offset).map(Lost::At);
                    }
                    _ if is_variable || reloaded.contains(&slot) => {
                        place.lost = None;
                        if place.cells.is_empty() {
                            continue;
                        }
                    }
                    _ => {}
                }
            }
            self.put(value, &place, &Content::Unknown);
        }
    }

    /// The places in the frame whose address is put somewhere, in order.
    fn given_frame(&self) -> Vec<Slot> {
        let graph = self.typing.graph;
        let stored = graph.stores.iter().map(|store| store.value);
        let kept = graph.frame_stores.iter().map(|(_, value)| *value);
        let passed = graph.calls.iter().flat_map(|call| call.arguments);
        let given = stored.chain(kept).chain(passed).filter_map(|value| {
            match graph.definition(graph.canonical(value)) {
                Some(Definition::FrameAddress(slot)) => Some(*slot),
                _ => None,
            }
        });
        let mut given: Vec<Slot> = given.collect();
        given.sort_unstable();
        given.dedup();
        given
    }

    /// Notes the cells of which one is chosen where it is not told any more which.
    fn merge_slots(&mut self) {
        for value in (0..self.typing.graph.definitions.len() as u32).map(ValueIdx) {
            if self.typing.graph.canonical(value) != value {
                continue;
            }
            let Some(inputs) = alternatives(self.typing.graph, value) else { continue };
            let merged = self.typing.of(value).clone();
            let known = self.typing.put_place(&merged).cells;
            for input in inputs {
                let content = self.typing.of(input).clone();
                let cells = self.typing.slot_at(&content, false).into_iter();
                cells
                    .filter(|cell| !known.contains(cell))
                    .for_each(|cell| self.found.put(cell, Included::Anything));
            }
        }
    }

    /// Notes the functions whose address goes where it was not followed.
    fn leave(&mut self) {
        for value in (0..self.typing.graph.definitions.len() as u32).map(ValueIdx) {
            let canonical = self.typing.graph.canonical(value);
            let Some(definition) = self.typing.graph.definition(canonical) else { continue };
            let function = self.typing.function_of(definition);
            let is_source = matches!(
                definition,
                Definition::Loaded { .. }
                    | Definition::Parameter { .. }
                    | Definition::Returned { .. }
            );
            if let Some(function) =
                function.filter(|_| self.is_lost || !self.followed.contains(&canonical))
            {
                self.found.put(PointerCell::Outside, Included::Function(function));
            } else if self.is_lost && is_source {
                let included = self.included(canonical);
                self.lose(&included);
            }
        }
    }
}

impl Typing<'_, '_> {
    /// The content that is declared for what is kept at an address.
    fn kept_content(&mut self, address: &Content) -> Content {
        match self.static_constant(address) {
            Content::Address(address) => self.kept_at(&address),
            _ => Content::Unknown,
        }
    }

    /// The type of the structure that a pointer leads into.
    fn structure_at(&mut self, content: &Content) -> Option<Arc<Layout>> {
        self.object_layout(content).filter(|layout| layout.is_aggregate())
    }

    /// The type of the object that a pointer leads into.
    fn object_layout(&mut self, content: &Content) -> Option<Arc<Layout>> {
        let Content::Address(address) = self.static_constant(content) else { return None };
        let layout = match &address.origin {
            Origin::Object(layout) => Arc::clone(layout),
            Origin::Static | Origin::Thread => {
                let place = address.data_place(self.around.debug)?;
                Arc::clone(&self.around.debug.variable_in(place).variable?.layout)
            }
            Origin::Frame(frame) => {
                let slot = Slot { frame: *frame, offset: address.offset.only()? };
                let mut here = self.contents.frame.structures(slot);
                here.pop().filter(|_| here.is_empty())?.0
            }
            Origin::Arms(_) => return None,
        };
        Some(layout.innermost_element())
    }
}

/// Tells whether a pointer is declared to lead to a structure.
fn is_to_aggregate(declared: &Content) -> bool {
    match declared {
        Content::Address(Address { origin: Origin::Object(layout), .. }) => {
            layout.innermost_element().is_aggregate()
        }
        _ => false,
    }
}
