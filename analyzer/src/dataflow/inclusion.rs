//! Inclusions: what a function puts into cells for pointers to nothing known, and what it takes out of them.

use super::content::{Address, Content, Origin, PointerName};
use super::doubt::{Doubt, Doubts, Standing};
use super::points_to::{Carried, Included, Inclusions, PointerCall, PointerCell};
use super::typing::Typing;
use super::value::{Call, Definition, Slot, Sum, ValueIdx};
use crate::dwarf::debug_info::DebugInfo;
use crate::elf::data_symbol::DataPlace;
use crate::limit;
use crate::types::layout::{Layout, ScalarKind, Shape};
use crate::x86_64::abi::{ARGUMENTS, N_ARGUMENTS, POINTER_BYTES};
use crate::x86_64::image_bytes::ImageBytes as _;
use dataspace_proto::address::Svma;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Numbers that are no addresses, as which programs pass nothing, or a kind.
const NO_ADDRESSES: std::ops::Range<i64> = -4096..4096;

impl Typing<'_, '_> {
    /// Collects what the function puts where, which is entered at `entry`.
    pub(super) fn collect_inclusions(&mut self, entry: Svma, found: &mut Inclusions) {
        for definition in &self.graph.definitions {
            if let Some(function) = self.function_of(definition) {
                *found.taken.entry(function).or_default() += 1;
            }
        }
        for store in self.graph.stores.clone() {
            let address = self.operand_address(&store.address);
            let cells = self.cells_at(&address);
            self.put(entry, store.value, &cells, found);
        }
        for (slot, value) in self.graph.frame_stores.clone() {
            // A variable that is a pointer is followed by the graph.
            let cell = match self.contents.frame.widest(slot) {
                // An argument that is passed on the stack, or what the compiler keeps there.
                None if self
                    .graph
                    .definition(value)
                    .is_some_and(|it| self.function_of(it).is_some()) =>
                {
                    None
                }
                None => continue,
                Some((variable, into)) if variable.layout.is_aggregate() => {
                    let layout = Arc::clone(&variable.layout);
                    self.around.debug.member_cell(&layout, into)
                }
                Some((variable, _)) if matches!(variable.layout.shape, Shape::Array { .. }) => None,
                Some(_) => continue,
            };
            self.put(entry, value, cell.as_slice(), found);
        }
        for call in self.graph.calls.clone() {
            self.pass(entry, &call, found);
        }
        let own = self.around.scope.die;
        let result = own.and_then(|own| self.result_of(own));
        if result.is_some_and(|(layout, _)| self.around.debug.is_carrier(&layout)) {
            found.returning.insert(entry);
            for value in self.graph.returned.clone() {
                self.put(entry, value, &[PointerCell::Result(entry)], found);
            }
        }
    }

    /// Notes that a value is put into one of some cells, or somewhere that is not followed.
    fn put(&mut self, entry: Svma, value: ValueIdx, cells: &[PointerCell], found: &mut Inclusions) {
        let included = self.included(entry, value);
        for cell in cells {
            found.all.extend(included.iter().map(|it| (*cell, it.clone())));
        }
        if cells.is_empty() {
            found.escaped.extend(included.iter().filter_map(Included::function));
        }
    }

    /// Notes what a call passes.
    fn pass(&mut self, entry: Svma, call: &Call, found: &mut Inclusions) {
        let target = self.direct_target(call).filter(|target| self.is_entry(*target));
        let wanted = self.callee(call).map(|callee| self.parameters(call, callee));
        let mut passed = [const { Vec::new() }; N_ARGUMENTS];
        for (place, argument) in call.arguments.into_iter().enumerate() {
            let is_wanted = wanted.as_ref().is_none_or(|wanted| self.is_carried(&wanted[place]));
            let included = self.included(entry, argument);
            if is_wanted {
                passed[place] = included;
            } else {
                found.escaped.extend(included.iter().filter_map(Included::function));
            }
        }
        let by = match (target, call.callee) {
            (None, Some(callee)) => self.included(entry, callee),
            _ => Vec::new(),
        };
        if let Some(target) = target {
            for (register, included) in ARGUMENTS.into_iter().zip(passed) {
                let cell = PointerCell::Parameter(target, register);
                found.all.extend(included.into_iter().map(|it| (cell, it)));
            }
            return;
        }
        let is_followed = !by.is_empty()
            && by.iter().all(|by| matches!(by, Included::Cell(_) | Included::Function(_)));
        if !is_followed {
            let functions = passed.iter().flatten().filter_map(Included::function);
            found.escaped.extend(functions);
        }
        let passed = Arc::new(passed);
        for by in by {
            match by {
                Included::Cell(by) => {
                    found.calls.push(PointerCall { by, passed: Arc::clone(&passed) });
                }
                Included::Function(target) => {
                    for (register, included) in ARGUMENTS.into_iter().zip(passed.iter()) {
                        let cell = PointerCell::Parameter(target, register);
                        found.all.extend(included.iter().map(|it| (cell, it.clone())));
                    }
                }
                _ => {}
            }
        }
    }

    /// Tells whether what a register of arguments is declared to get may be a pointer of which nothing is told, or to a
    /// function.
    fn is_carried(&self, parameter: &Content) -> bool {
        match parameter {
            Content::Unknown => true,
            Content::Address(address) => match &address.origin {
                Origin::Object(layout) => {
                    matches!(layout.innermost_element().shape, Shape::Scalar(ScalarKind::Opaque))
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Lists what a value may be.
    pub(super) fn included(&mut self, entry: Svma, value: ValueIdx) -> Vec<Included> {
        let (mut found, mut seen) = (Vec::new(), FxHashSet::default());
        let mut next = vec![value];
        while let Some(value) = next.pop() {
            let value = self.graph.canonical(value);
            if !seen.insert(value) {
                continue;
            }
            if seen.len() > limit::MAX_INCLUDED_VALUES {
                found.push(Included::Anything);
                break;
            }
            let included = self.one_included(entry, value, &mut next);
            if let Some(included) = included.filter(|it| !found.contains(it)) {
                found.push(included);
            }
        }
        found
    }

    /// Finds what a value is, unless it is one of those that are added to `next`, or no address.
    fn one_included(
        &mut self,
        entry: Svma,
        value: ValueIdx,
        next: &mut Vec<ValueIdx>,
    ) -> Option<Included> {
        let Some(definition) = self.graph.definition(value).copied() else {
            return Some(Included::Anything);
        };
        if let Some(function) = self.function_of(&definition) {
            return Some(Included::Function(function));
        }
        match self.static_constant(self.of(value)) {
            Content::Constant(number) if NO_ADDRESSES.contains(&number) => return None,
            Content::Address(address)
                if !address.is_erased() && !self.is_moved(&definition, &address) =>
            {
                return Some(self.object_included(&address));
            }
            Content::Address(address) if !address.is_erased() => {}
            Content::Unknown | Content::Bottom => {}
            Content::Address(address) if address.is_void() => {}
            // So few bits are no pointer.
            Content::Number(_) => {
                let is_narrow = matches!(
                    definition,
                    Definition::Narrowed { .. }
                        | Definition::Loaded { n_bytes: 0..POINTER_BYTES, .. }
                );
                return (!is_narrow).then_some(Included::Anything);
            }
            _ => return Some(Included::Anything),
        }
        match definition {
            Definition::Parameter { register } if ARGUMENTS.contains(&register) => {
                Some(Included::Cell(PointerCell::Parameter(entry, register)))
            }
            Definition::Reloaded { kept, .. } => {
                next.push(kept);
                None
            }
            Definition::Entry { .. } => {
                let inputs = self.graph.inputs(value);
                next.extend(inputs);
                inputs.is_empty().then_some(Included::Anything)
            }
            Definition::Chosen { first, second } => {
                next.extend([first, second]);
                None
            }
            Definition::Loaded { address, n_bytes: POINTER_BYTES } => {
                let address = self.operand_address(&address);
                Some(self.cell_at(&address).map_or(Included::Anything, Included::Cell))
            }
            Definition::Returned { at } => {
                let call = self.graph.call_at(at).copied();
                let target = call.and_then(|call| self.direct_target(&call));
                let target = target.filter(|target| self.is_entry(*target));
                Some(target.map_or(Included::Anything, |target| {
                    Included::Cell(PointerCell::Result(target))
                }))
            }
            _ => Some(Included::Anything),
        }
    }

    /// Lists the pointers to nothing known of which it may be found out what they lead to, with where they come from.
    pub(super) fn carried(&mut self) -> FxHashMap<ValueIdx, Carried> {
        let mut carried = FxHashMap::default();
        for value in (0..self.graph.definitions.len() as u32).map(ValueIdx) {
            if !self.of(value).is_untold() || self.graph.canonical(value) != value {
                continue;
            }
            // At which address the function is entered does not count.
            let included = self.included(Svma(0), value);
            let is_kept = |it: &Included| {
                matches!(it, Included::Cell(PointerCell::Member(..) | PointerCell::Variable(_)))
            };
            let is_passed =
                |it: &Included| matches!(it, Included::Cell(PointerCell::Parameter(..)));
            if included.iter().all(|it| is_kept(it) || is_passed(it)) {
                let has_kept = included.iter().any(is_kept);
                carried.insert(value, if has_kept { Carried::Kept } else { Carried::Passed });
            }
        }
        carried
    }

    /// Tells whether an address is whole objects further on than what it is made of, or comes from where that is told. What
    /// lies after one object is what an allocator hands out.
    fn is_moved(&self, definition: &Definition, address: &Address) -> bool {
        if !address.has(Doubt::Which) {
            return false;
        }
        match definition {
            Definition::Sum(Sum { base: Some(base), index: None, is_static: false, .. }) => {
                !matches!(self.of(*base), Content::Address(base) if base.has(Doubt::Which))
            }
            Definition::Entry { .. } | Definition::Chosen { .. } | Definition::Reloaded { .. } => {
                true
            }
            _ => false,
        }
    }

    fn object_included(&mut self, address: &Address) -> Included {
        let object = self.object_at(address);
        object.map_or(Included::Anything, Included::Object)
    }

    /// The object that an address leads into, by its type.
    fn object_at(&mut self, address: &Address) -> Option<Address> {
        let doubts = [Doubt::Beyond, Doubt::Owner, Doubt::Whole];
        if doubts.into_iter().any(|doubt| address.has(doubt)) || address.standing == Standing::Aside
        {
            return None;
        }
        let start = address.offset.only()?;
        let which = Doubts::NONE.with_if(Doubt::Which, address.has(Doubt::Which));
        let (layout, into) = match &address.origin {
            Origin::Object(layout) => (Arc::clone(layout), start),
            Origin::Arms(_) => return None,
            Origin::Static | Origin::Thread => {
                let place = address.data_place(self.around.debug)?;
                let object = self.around.debug.static_object(place)?;
                return Some(Address { doubts: which, ..object });
            }
            Origin::Frame(frame) => {
                let slot = Slot { frame: *frame, offset: start };
                let (variable, into) = self.contents.frame.first(slot)?;
                (Arc::clone(&variable.layout), into.cast_signed())
            }
        };
        Some(Address { doubts: which, ..object_in(&layout, u64::try_from(into).ok()?)? })
    }

    /// The function whose address a value is.
    fn function_of(&self, definition: &Definition) -> Option<Svma> {
        let target = match definition {
            Definition::StaticAddress(svma) => *svma,
            Definition::Constant(number) if self.around.image.is_at_fixed_addresses() => {
                Svma(number.cast_unsigned())
            }
            _ => return None,
        };
        self.is_entry(target).then_some(target)
    }

    /// Tells whether the code at an address is not of the linkage table.
    fn is_entry(&self, target: Svma) -> bool {
        let image = self.around.image;
        image.image.is_code(target) && image.linkage_slot(target).is_none()
    }

    /// The cells into which may be put what is put at an address: also of an object that lies beside the one it is known of.
    fn cells_at(&mut self, address: &Content) -> Vec<PointerCell> {
        if let Some(cell) = self.cell_at(address) {
            return vec![cell];
        }
        let Content::Address(Address { origin: Origin::Object(layout), offset, .. }) = address
        else {
            return Vec::new();
        };
        let element = layout.innermost_element();
        let Ok(size @ 1..) = i64::try_from(element.size) else { return Vec::new() };
        let starts = offset.starts().iter().map(|start| start.rem_euclid(size).unsigned_abs());
        let cells = starts.filter_map(|start| self.around.debug.member_cell(&element, start));
        cells.collect()
    }

    /// The cell at an address.
    pub(super) fn cell_at(&mut self, address: &Content) -> Option<PointerCell> {
        let Content::Address(address) = self.static_constant(address) else { return None };
        if address.has(Doubt::Beyond) || address.has(Doubt::Whole) {
            return None;
        }
        match &address.origin {
            Origin::Object(layout) => {
                let element = layout.innermost_element();
                if element.is_aggregate() {
                    let places = address.places(POINTER_BYTES.into())?;
                    let [place] = places[..] else { return None };
                    return self.around.debug.member_cell(&element, place);
                }
                let Some(PointerName::Member(holder, offset)) = &address.name else { return None };
                self.around.debug.element_cell(holder, *offset, &element)
            }
            Origin::Static | Origin::Thread => {
                let place = address.data_place(self.around.debug)?;
                self.around.debug.static_cell(place)
            }
            Origin::Frame(frame) => {
                let slot = Slot { frame: *frame, offset: *address.offset.starts().first()? };
                let (variable, into) = self.contents.frame.first(slot)?;
                let layout = Arc::clone(&variable.layout);
                layout.is_aggregate().then(|| self.around.debug.member_cell(&layout, into))?
            }
            Origin::Arms(_) => None,
        }
    }
}

impl DebugInfo {
    /// The object at a place in a static variable.
    pub(crate) fn static_object(&mut self, place: DataPlace) -> Option<Address> {
        let variable = self.variable_in(place).variable?;
        object_in(&variable.layout, place.at.offset_from(variable.start)?)
    }

    /// The cell of a static variable's part.
    pub(crate) fn static_cell(&mut self, place: DataPlace) -> Option<PointerCell> {
        let variable = self.variable_in(place).variable?;
        let into = place.at.offset_from(variable.start)?;
        let element = variable.layout.innermost_element();
        if element.is_aggregate() {
            return self.member_cell(&element, into.checked_rem(element.size)?);
        }
        let start = DataPlace { at: variable.start, ..place };
        self.is_carrier(&element).then_some(PointerCell::Variable(start))
    }

    /// The cell that lies so many bytes inside an object, or any element of it.
    pub(super) fn member_cell(&mut self, outer: &Arc<Layout>, offset: u64) -> Option<PointerCell> {
        let (cell, pointer) = pointer_in(outer, offset)?;
        self.is_carrier(&pointer).then_some(cell)
    }

    /// The cell of all pointers that the one in an object leads to.
    pub(super) fn element_cell(
        &mut self,
        holder: &Arc<Layout>,
        offset: u64,
        element: &Layout,
    ) -> Option<PointerCell> {
        let (cell, pointer) = pointer_in(holder, offset)?;
        let pointee = self.layout(pointer.pointee?);
        let is_it = pointee.innermost_element().fingerprint == element.fingerprint;
        (is_it && self.is_carrier(element)).then_some(cell)
    }

    /// Tells whether a type is that of a pointer to nothing known, or to a function.
    pub(crate) fn is_carrier(&mut self, pointer: &Layout) -> bool {
        if pointer.shape != Shape::Scalar(ScalarKind::Pointer) {
            return false;
        }
        match pointer.pointee {
            None => true,
            Some(pointee) => {
                let pointee = self.layout(pointee);
                pointee.shape == Shape::Scalar(ScalarKind::Opaque)
            }
        }
    }
}

/// The pointer at `offset` of an object, by the innermost structure around it and where in that it is; of an array all
/// are one.
fn pointer_in(outer: &Arc<Layout>, offset: u64) -> Option<(PointerCell, Arc<Layout>)> {
    let (mut holder, mut at) = (outer.innermost_element(), offset);
    for _ in 0..limit::MAX_TYPE_DEPTH {
        at = at.checked_rem(holder.size)?;
        let Shape::Aggregate { members, .. } = &holder.shape else { return None };
        let is_around = |start: u64, end: u64| (start..end).contains(&at);
        let member = members.iter().find(|member| {
            let (start, end) = member.byte_range();
            member.bits.is_none() && is_around(start, end)
        })?;
        let inner = member.layout.innermost_element();
        let into = (at - member.offset).checked_rem(inner.size)?;
        if matches!(inner.shape, Shape::Scalar(_)) {
            let cell = PointerCell::Member(holder.fingerprint, member.offset);
            return (into == 0).then_some((cell, inner));
        }
        (holder, at) = (inner, into);
    }
    None
}

/// The object that an address so many bytes inside a variable leads into, if it is not of bytes.
fn object_in(layout: &Arc<Layout>, into: u64) -> Option<Address> {
    let element = layout.innermost_element();
    let into = into.checked_rem(element.size)?;
    let object = Address::object(element, into.cast_signed(), None);
    (!object.is_erased()).then_some(object)
}
