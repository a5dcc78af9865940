//! Cells: the places in which code keeps pointers to nothing known, or to functions.

use super::address::{Address, Origin, PointerName};
use super::content::Content;
use super::doubt::Doubt;
use super::offset::Offset;
use super::points_to::{Included, Inclusions, PointerCell};
use super::typing::Typing;
use super::value::Slot;
use crate::dwarf::debug_info::DebugInfo;
use crate::elf::data_symbol::DataPlace;
use crate::limit;
use crate::types::die::DieRef;
use crate::types::layout::{Layout, ScalarKind, Shape};
use dataspace_proto::address::Svma;
use std::sync::Arc;

/// Places in which a pointer is put, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(super) struct PutPlace {
    pub(super) cells: Vec<PointerCell>,
    /// Cells of all pointers that one which is kept there leads to.
    pub(super) arrays: Vec<PointerCell>,
    /// It may be elsewhere.
    pub(super) lost: Option<Lost>,
    /// It may be one of several things, by which it is seen.
    is_shared: bool,
}

/// Place that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// So many bytes from a pointer.
    At(i64),
    /// So many bytes from an object that is no element of an array of pointers.
    Beyond(i64),
    /// An element of something.
    Indexed,
    /// Before or after an object, in what is around it.
    Around,
}

impl PutPlace {
    pub(super) fn lost(lost: Lost) -> Self {
        Self { lost: Some(lost), ..Self::default() }
    }

    pub(super) fn cell(cell: PointerCell) -> Self {
        Self { cells: vec![cell], ..Self::default() }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.is_shared |= other.is_shared;
        self.cells.extend(other.cells);
        self.cells.dedup();
        self.arrays.extend(other.arrays);
        self.arrays.dedup();
        self.lost = self.lost.or(other.lost);
    }

    /// The only place that it is.
    fn certain(self) -> Option<PointerCell> {
        let is_certain = self.lost.is_none() && !self.is_shared && self.cells.len() == 1;
        self.cells.first().copied().filter(|_| is_certain)
    }
}

impl Typing<'_, '_> {
    /// The cell at an address, if that is certain.
    pub(super) fn cell_at(&mut self, address: &Content) -> Option<PointerCell> {
        let Content::Address(known) = self.static_constant(address) else { return None };
        if [Doubt::Beyond, Doubt::Whole, Doubt::Variable].into_iter().any(|it| known.has(it)) {
            return None;
        }
        self.places_of(&known).certain()
    }

    /// The places at an address that may be one of several.
    pub(super) fn put_place(&mut self, address: &Content) -> PutPlace {
        let Content::Address(address) = self.static_constant(address) else {
            return PutPlace::lost(Lost::Indexed);
        };
        self.places_of(&address)
    }

    fn places_of(&mut self, address: &Address) -> PutPlace {
        let mut place = PutPlace::default();
        for start in address.offset.starts() {
            place.add(self.place_from(address, *start));
        }
        place
    }

    fn place_from(&mut self, address: &Address, start: i64) -> PutPlace {
        match &address.origin {
            Origin::Object(layout) => {
                let element = layout.innermost_element();
                if element.is_aggregate() {
                    let is_one = !address.has(Doubt::Which);
                    if is_one && start < 0 {
                        return PutPlace::lost(Lost::Around);
                    }
                    let Ok(size @ 1..) = i64::try_from(element.size) else {
                        return PutPlace::lost(Lost::Around);
                    };
                    if !address.offset.step.is_multiple_of(element.size) {
                        return PutPlace::lost(Lost::Indexed);
                    }
                    let into = start.rem_euclid(size).unsigned_abs();
                    let mut place = self.around.debug.place_in(&element, into);
                    if is_one && start >= size {
                        // The next one, or what a larger type has there that begins with this one.
                        place.add(PutPlace::lost(Lost::Beyond(start)));
                    }
                    return place;
                }
                if let Some(PointerName::Member(holder, offset)) = &address.name {
                    let cell = self.around.debug.element_cell(holder, *offset, &element);
                    return cell.map_or(PutPlace::lost(Lost::At(start)), PutPlace::cell);
                }
                // Numbers and texts.
                match element.shape {
                    Shape::Scalar(ScalarKind::Number | ScalarKind::Float) => PutPlace::default(),
                    _ => PutPlace::lost(Lost::At(start)),
                }
            }
            Origin::Static | Origin::Thread => {
                let one = Address { offset: Offset::exact(start), ..address.clone() };
                let place = one.data_place(self.around.debug);
                match place {
                    Some(place) => self.around.debug.static_place(place),
                    None => PutPlace::lost(Lost::Indexed),
                }
            }
            Origin::Frame(frame) => self.frame_place(Slot { frame: *frame, offset: start }),
            Origin::Arms(_) => PutPlace::lost(Lost::At(start)),
        }
    }

    /// The places in the structures that the frame has at a slot: at different times perhaps several.
    pub(super) fn frame_place(&mut self, slot: Slot) -> PutPlace {
        let all = self.contents.frame.structures(slot);
        if all.is_empty() {
            return PutPlace::lost(Lost::Indexed);
        }
        let mut place = PutPlace::default();
        for (layout, into) in all {
            place.add(self.around.debug.place_in(&layout, into));
        }
        place
    }

    /// The cell that a value is the address of, rather than of the object that begins with it, if `is_slot` does not tell that
    /// it is one.
    pub(super) fn slot_at(&mut self, content: &Content, is_slot: bool) -> Vec<PointerCell> {
        let Content::Address(address) = self.static_constant(content) else { return Vec::new() };
        let is_object = match &address.origin {
            Origin::Object(layout) => {
                layout.innermost_element().is_aggregate()
                    && address.offset.starts().iter().all(|start| *start == 0)
            }
            Origin::Static | Origin::Thread => {
                let place = address.data_place(self.around.debug);
                let variable = place.and_then(|place| {
                    let variable = self.around.debug.variable_in(place).variable?;
                    (variable.start == place.at).then_some(variable)
                });
                variable.is_some_and(|it| it.layout.innermost_element().is_aggregate())
            }
            Origin::Frame(frame) => {
                let start = address.offset.starts().first().copied().unwrap_or(0);
                let slot = Slot { frame: *frame, offset: start };
                self.contents.frame.structures(slot).iter().all(|(_, into)| *into == 0)
            }
            Origin::Arms(_) => true,
        };
        if is_object && !is_slot {
            return Vec::new();
        }
        self.places_of(&address).cells
    }

    /// Tells whether a pointer is declared to lead to pointers to nothing known.
    pub(super) fn is_to_carriers(&mut self, declared: &Content) -> bool {
        match declared {
            Content::Address(Address { origin: Origin::Object(layout), .. }) => {
                let element = layout.innermost_element();
                self.around.debug.is_carrier(&element)
            }
            _ => false,
        }
    }
}

impl DebugInfo {
    /// The places at a place of static variables.
    pub(super) fn static_place(&mut self, place: DataPlace) -> PutPlace {
        let Some(variable) = self.variable_in(place).variable else {
            return PutPlace::lost(Lost::Indexed);
        };
        let element = variable.layout.innermost_element();
        let into = place.at.offset_from(variable.start).unwrap_or(0);
        if element.is_aggregate() {
            return self.place_in(&element, into.checked_rem(element.size).unwrap_or(0));
        }
        let start = DataPlace { at: variable.start, ..place };
        self.scalar_place(&element, into, PointerCell::Variable(start), None)
    }

    /// The places so many bytes inside an object, or any element of it: of a union those of all its arms.
    pub(super) fn place_in(&mut self, outer: &Arc<Layout>, offset: u64) -> PutPlace {
        let mut parts = Vec::new();
        parts_at(outer, offset, 0, &mut parts);
        let mut place = PutPlace { is_shared: parts.len() > 1, ..PutPlace::default() };
        if parts.is_empty() || parts.len() >= limit::MAX_SCALARS_AT_ONE_PLACE {
            return PutPlace::lost(Lost::At(offset.cast_signed()));
        }
        for part in parts {
            if part.into == 0 {
                let member = PointerCell::Member(part.holder, part.offset);
                let element = PointerCell::Element(part.holder, part.offset);
                place.add(self.scalar_place(&part.layout, part.from, member, Some(element)));
            } else {
                place.add(PutPlace::lost(Lost::At(offset.cast_signed())));
            }
        }
        place
    }

    /// The places in a scalar, which is this cell if it is a pointer to nothing known, `from` bytes into an array of such.
    fn scalar_place(
        &mut self,
        scalar: &Arc<Layout>,
        from: u64,
        cell: PointerCell,
        element: Option<PointerCell>,
    ) -> PutPlace {
        if self.is_carrier(scalar) {
            return PutPlace::cell(cell);
        }
        match scalar.shape {
            // Anything may be made in bytes.
            Shape::Scalar(ScalarKind::Byte | ScalarKind::Opaque) => {
                PutPlace::lost(Lost::At(from.cast_signed()))
            }
            _ => {
                let arrays = element.filter(|_| self.leads_to_carriers(scalar));
                PutPlace { arrays: arrays.into_iter().collect(), ..PutPlace::default() }
            }
        }
    }

    /// The cell that a static variable's part is, if that is certain.
    pub(super) fn static_cell(&mut self, place: DataPlace) -> Option<PointerCell> {
        self.static_place(place).certain()
    }

    /// The cell so many bytes inside an object, or any element of it, if that is certain.
    pub(super) fn member_cell(&mut self, outer: &Arc<Layout>, offset: u64) -> Option<PointerCell> {
        self.place_in(outer, offset).certain()
    }

    /// Notes a pointer that lies in data from the beginning.
    pub(crate) fn put_initially(
        &mut self,
        place: DataPlace,
        included: &Included,
        found: &mut Inclusions,
    ) {
        let place = self.static_place(place);
        place.cells.iter().for_each(|cell| found.put(*cell, included.clone()));
        place.arrays.iter().for_each(|cell| found.put(*cell, Included::Anything));
        if place.cells.is_empty() && included.is_perhaps_code() {
            found.put(PointerCell::Outside, included.clone());
        }
    }

    /// The cell of all pointers that the one in an object leads to.
    pub(super) fn element_cell(
        &mut self,
        holder: &Arc<Layout>,
        offset: u64,
        element: &Layout,
    ) -> Option<PointerCell> {
        let place = self.place_in(holder, offset);
        let is_certain = !place.is_shared && place.lost.is_none() && self.is_carrier(element);
        place.arrays.first().copied().filter(|_| is_certain)
    }

    /// The cell of what code that is not followed may put into objects of a type, and into all that it may find from
    /// them if it is deep. Notes in which cells that is.
    pub(super) fn exposed(
        &mut self,
        layout: &Arc<Layout>,
        is_deep: bool,
        found: &mut Inclusions,
    ) -> PointerCell {
        let cell = |holder: &Layout, is_deep: bool| {
            let fingerprint = holder.fingerprint;
            PointerCell::Exposed { fingerprint, is_deep }
        };
        let first = layout.innermost_element();
        let exposed = cell(&first, is_deep);
        let mut due = vec![(first, is_deep)];
        while let Some((holder, is_deep)) = due.pop() {
            let here = cell(&holder, is_deep);
            if !found.described.insert(here) {
                continue;
            }
            if found.described.len() > limit::MAX_EXPOSED_TYPES {
                found.is_cut = true;
                break;
            }
            let mut goes_on = |inner: Arc<Layout>, is_deep: bool, found: &mut Inclusions| {
                found.put(cell(&inner, is_deep), Included::Cell(here));
                due.push((inner, is_deep));
            };
            if is_deep {
                goes_on(Arc::clone(&holder), false, found);
            }
            let Shape::Aggregate { members, .. } = &holder.shape else { continue };
            for member in members {
                let inner = member.layout.innermost_element();
                if inner.is_aggregate() {
                    goes_on(inner, is_deep, found);
                } else if is_deep {
                    let pointed = self.pointed_aggregate(&inner);
                    pointed.into_iter().for_each(|it| goes_on(it, true, found));
                } else if self.is_carrier(&inner) {
                    let member = PointerCell::Member(holder.geometry, member.offset);
                    found.put(member, Included::Cell(here));
                } else if self.leads_to_carriers(&inner) {
                    let elements = PointerCell::Element(holder.geometry, member.offset);
                    found.put(elements, Included::Cell(here));
                }
            }
        }
        exposed
    }

    /// Notes what the function that is entered at `entry` shows to those who call it, and what it gets as a copy.
    pub(crate) fn expose_parameters(
        &mut self,
        function: DieRef,
        entry: Svma,
        found: &mut Inclusions,
    ) {
        let called = PointerCell::Called(entry);
        let mut types = self.parameter_types(function);
        types.extend(self.name_and_type(function).1);
        for type_die in types {
            let layout = self.layout(type_die);
            if layout.is_aggregate() {
                let copied = self.exposed(&layout, false, found);
                found.put(copied, Included::Anything);
            }
            let pointed = self.pointed_aggregate(&layout);
            let exposed = pointed.map(|pointed| self.exposed(&pointed, true, found));
            exposed.into_iter().for_each(|it| found.put(it, Included::Cell(called)));
        }
    }

    /// Notes that others may put something into a static variable.
    pub(crate) fn expose_variable(&mut self, place: DataPlace, found: &mut Inclusions) {
        let Some(variable) = self.variable_in(place).variable else { return };
        let element = variable.layout.innermost_element();
        if element.is_aggregate() {
            let cell = self.exposed(&element, true, found);
            found.put(cell, Included::Anything);
        } else {
            self.put_initially(place, &Included::Anything, found);
        }
        let pointed = self.pointed_aggregate(&element);
        let exposed = pointed.map(|pointed| self.exposed(&pointed, true, found));
        exposed.into_iter().for_each(|cell| found.put(cell, Included::Anything));
    }

    /// Notes that what a pointer at a place leads to is no variable: what its members begin with is not known.
    pub(crate) fn expose_unnamed(&mut self, place: DataPlace, found: &mut Inclusions) {
        let Some(variable) = self.variable_in(place).variable else { return };
        let into = place.at.offset_from(variable.start).unwrap_or(0);
        let element = variable.layout.innermost_element();
        let mut parts = Vec::new();
        parts_at(&element, into, 0, &mut parts);
        let pointer = parts.pop().map_or(element, |part| part.layout);
        let pointed = self.pointed_aggregate(&pointer);
        let exposed = pointed.map(|pointed| self.exposed(&pointed, false, found));
        exposed.into_iter().for_each(|cell| found.put(cell, Included::Anything));
    }

    /// The structure that a pointer leads to, perhaps by others.
    pub(super) fn pointed_aggregate(&mut self, pointer: &Layout) -> Option<Arc<Layout>> {
        let mut pointee = pointer.pointee?;
        for _ in 0..limit::MAX_TYPE_DEPTH {
            let layout = self.layout(pointee).innermost_element();
            if layout.is_aggregate() {
                return Some(layout);
            }
            pointee = layout.pointee?;
        }
        None
    }

    /// Tells whether a type is that of a pointer to such pointers.
    pub(crate) fn leads_to_carriers(&mut self, pointer: &Layout) -> bool {
        let Some(pointee) = pointer.pointee else { return false };
        let element = self.layout(pointee).innermost_element();
        self.is_carrier(&element)
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

/// A scalar in an object.
struct ScalarPart {
    /// The geometry of the innermost structure around it.
    holder: u64,
    /// Its place in that.
    offset: u64,
    /// The distance from its beginning, and from that of the first one of an array.
    into: u64,
    from: u64,
    layout: Arc<Layout>,
}

/// Finds the scalars at `offset` of an object; of an array all are one, and of a union each arm has one.
fn parts_at(outer: &Arc<Layout>, offset: u64, depth: usize, found: &mut Vec<ScalarPart>) {
    let holder = outer.innermost_element();
    let Some(at) = offset.checked_rem(holder.size) else { return };
    let Shape::Aggregate { members, .. } = &holder.shape else { return };
    for member in members {
        let (start, end) = member.byte_range();
        if !(start..end).contains(&at) || found.len() >= limit::MAX_SCALARS_AT_ONE_PLACE {
            continue;
        }
        let inner = member.layout.innermost_element();
        let from = at.saturating_sub(member.offset);
        let Some(into) = from.checked_rem(inner.size) else { continue };
        if !matches!(inner.shape, Shape::Scalar(_)) {
            if depth < limit::MAX_TYPE_DEPTH {
                parts_at(&inner, into, depth + 1, found);
            }
        } else {
            let (holder, offset) = (holder.geometry, member.offset);
            found.push(ScalarPart { holder, offset, into, from, layout: inner });
        }
    }
}
