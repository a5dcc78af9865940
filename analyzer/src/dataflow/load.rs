//! Contents of what is read from memory, by the type of what lies there.

use super::address::{Address, Origin, PointerName};
use super::arm::{self, Arms, Use};
use super::content::{Content, static_address};
use super::doubt::{Doubt, Doubts};
use super::offset::Offset;
use super::points_to::PointerCell;
use super::typing::Typing;
use super::value::{Definition, Slot, Sum};
use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::layout::element;
use crate::elf::data_symbol::{DataPlace, Storage};
use crate::elf::linkage::{self, ThreadTarget};
use crate::known::coroutine;
use crate::types::layout::{AggregateKind, Layout, ScalarKind, Shape};
use crate::types::value_kind::ValueKind;
use crate::x86_64::abi::POINTER_BYTES;
use crate::x86_64::image_bytes::ImageBytes as _;
use dataspace_proto::address::Svma;
use std::sync::Arc;

impl Typing<'_, '_> {
    /// Finds the content of what is at an address.
    pub(super) fn loaded(&mut self, address: &Content, n_bytes: u8) -> Content {
        let address = self.static_constant(address);
        let address = match address {
            Content::Address(address) => address,
            Content::Bottom => return Content::Bottom,
            _ if n_bytes < POINTER_BYTES => return Content::NUMBER,
            _ => return Content::Unknown,
        };
        if n_bytes < POINTER_BYTES {
            return Content::NUMBER;
        }
        match &address.origin {
            Origin::Frame(frame) => {
                let slot = address.offset.starts().first().copied();
                let Some(offset) = slot else { return Content::Unknown };
                // The frame's variables keep their places but for a few that never have two: which code a
                // variable is visible in does not matter.
                let slot = Slot { frame: *frame, offset };
                let here = self.contents.frame.first(slot);
                let here = here.map(|(variable, into)| (Arc::clone(&variable.layout), into));
                here.map_or(Content::Unknown, |(layout, into)| self.member(&layout, into))
            }
            _ => self.kept_at(&address),
        }
    }

    /// Finds the content of a variable that is said to be at an address.
    pub(super) fn loaded_part(&mut self, sum: &Sum) -> Content {
        let (Some(base), None) = (sum.base, sum.index) else { return Content::Unknown };
        let parts = self.contents.parts.get(&self.graph.canonical(base));
        let found = parts.and_then(|parts| {
            let part = parts.iter().find_map(|part| Some((part, part.into(sum.displacement)?)));
            part.map(|(part, into)| (Arc::clone(&part.layout), into))
        });
        match found {
            Some((layout, into)) => self.member(&layout, into),
            None => Content::Unknown,
        }
    }

    fn loaded_from(&mut self, layout: &Arc<Layout>, address: &Address) -> Content {
        let Some(places) = address.places(POINTER_BYTES.into()) else {
            let (step, n_bytes) = (address.offset.step, POINTER_BYTES.into());
            let element = address.element_after(step, n_bytes, self.around.debug);
            let content = element.map(|it| self.content_of(&it, address.name.clone()));
            return content.unwrap_or(Content::Unknown);
        };
        let element = layout.innermost_element();
        let mut sum = Content::Bottom;
        for place in places {
            let member = if element.is_aggregate() {
                self.member(&element, place)
            } else {
                self.element(&element, address.name.as_ref())
            };
            sum = sum.join(member);
        }
        sum
    }

    /// The value of a scalar that a pointer with this name leads to.
    fn element(&mut self, element: &Arc<Layout>, name: Option<&PointerName>) -> Content {
        let known = self.content_of(element, name.cloned());
        let Some(PointerName::Member(holder, offset)) = name else { return known };
        self.told_or(known, |debug| debug.element_cell(holder, *offset, element))
    }

    /// The content of a cell: `known` by its type, unless that does not tell it and the code tells what is put there.
    pub(super) fn told_or(
        &mut self,
        known: Content,
        cell: impl FnOnce(&mut DebugInfo) -> Option<PointerCell>,
    ) -> Content {
        // Hardly any load object has been passed over.
        if self.around.points_to.is_empty() || !known.is_untold() {
            return known;
        }
        let cell = cell(self.around.debug);
        let told = cell.and_then(|cell| self.around.points_to.content(cell));
        told.cloned().unwrap_or(known)
    }

    fn loaded_from_arm(&mut self, arms: &Arms, address: &Address) -> Content {
        let access = Use { n_bytes: POINTER_BYTES.into(), kind: ValueKind::Unknown, step: 0 };
        match arms.chosen(address, access) {
            Some((layout, address)) => self.loaded_from(layout, &address),
            None => Content::Unknown,
        }
    }

    /// Finds the content of a variable, perhaps of the thread's own.
    fn loaded_place(&mut self, address: &Address) -> Content {
        let Some(place) = address.data_place(self.around.debug) else { return Content::Unknown };
        if place.storage == Storage::Static
            && address.offset.step == 0
            && let Some(target) = self.around.image.relocated(place.at)
            && self.around.debug.variable_in(place).variable.is_none()
        {
            // The table of addresses that the loader fills.
            return static_address(target);
        }
        self.loaded_variable(place)
    }

    /// The variable of the thread's own whose distance from the thread's pointer the code read from a
    /// slot that the loader fills (ABI for thread-local storage, section 4.4.6).
    pub(super) fn thread_place(&self, sum: &Sum) -> Option<DataPlace> {
        let definition = |value| self.graph.definition(value).copied();
        let (base, index) = (sum.base?, sum.index?);
        if definition(base)? != Definition::ThreadPointer || sum.scale != 1 {
            return None;
        }
        let Definition::Loaded { address: slot, .. } = definition(index)? else { return None };
        if !slot.is_static || slot.base.is_some() || slot.index.is_some() {
            return None;
        }
        let slot = self.around.image.linkage().at(Svma(slot.displacement.cast_unsigned()))?;
        let linkage::LinkageSlot::ThreadDistance(ThreadTarget::Own { offset, is_certain: true }) =
            *slot
        else {
            return None;
        };
        Some(DataPlace::thread(offset.checked_add_signed(sum.displacement)?))
    }

    pub(super) fn loaded_variable(&mut self, place: DataPlace) -> Content {
        let Some(variable) = self.around.debug.variable_in(place).variable else {
            return Content::Unknown;
        };
        let Some(into) = place.at.offset_from(variable.start) else { return Content::Unknown };
        let layout = Arc::clone(&variable.layout);
        if layout.is_aggregate() || matches!(layout.shape, Shape::Array { .. }) {
            let known = self.member(&layout, into);
            // What is in a structure was asked for as its member.
            return match layout.innermost_element().is_aggregate() {
                true => known,
                false => self.told_or(known, |debug| debug.static_cell(place)),
            };
        }
        let name = PointerName::Variable(Arc::clone(&variable.name));
        let known = self.content_of(&layout, Some(name));
        self.told_or(known, |debug| debug.static_cell(place))
    }

    /// Finds what the eight bytes at an address are made to hold by their type.
    pub(super) fn kept_at(&mut self, address: &Address) -> Content {
        match &address.origin {
            Origin::Object(layout) => self.loaded_from(layout, address),
            Origin::Static | Origin::Thread => self.loaded_place(address),
            Origin::Arms(arms) => self.loaded_from_arm(arms, address),
            Origin::Frame(_) => Content::Unknown,
        }
    }

    /// The value of the eight bytes at `offset` of an object.
    pub(super) fn member(&mut self, layout: &Arc<Layout>, offset: u64) -> Content {
        let element = layout.innermost_element();
        let Some(offset) =
            (if element.holds(offset) { Some(offset) } else { offset.checked_rem(element.size) })
        else {
            return Content::Unknown;
        };
        let key = element.die.map(|die| (die, offset));
        if let Some(known) = key.and_then(|key| self.members.get(&key)) {
            return known.clone();
        }
        let content = self.read_member(&element, offset);
        if let Some(key) = key {
            self.members.insert(key, content.clone());
        }
        content
    }

    fn read_member(&mut self, element: &Arc<Layout>, offset: u64) -> Content {
        let Some(path) = element.descend_as(offset, POINTER_BYTES.into(), ValueKind::Pointer)
        else {
            return Content::Unknown;
        };
        let leaf = match (&path.leaf.shape, path.into) {
            (Shape::Scalar(_), 0) => path.leaf,
            (Shape::Aggregate { kind: AggregateKind::Union, .. }, into) => {
                return self.one_of(path.leaf, into);
            }
            _ => return Content::Unknown,
        };
        let name = PointerName::Member(Arc::clone(element), offset);
        if let Some(contents) = self.around.debug.contents(element, &path.steps) {
            return self.held(contents, name);
        }
        let (kind, pointee) = (leaf.shape == Shape::Scalar(ScalarKind::Number), leaf.pointee);
        let known = self.pointing_at(kind, pointee, Some(name));
        self.told_or(known, |debug| debug.member_cell(element, offset))
    }

    /// Finds the content of a pointer that lies `into` bytes inside a union of several.
    fn one_of(&mut self, union: &Layout, into: u64) -> Content {
        let pointers = arm::pointers(union, into);
        if pointers.is_empty() {
            return Content::Unknown;
        }
        let pointers = pointers.into_iter();
        let arms = pointers.map(|(name, pointee)| (name, self.around.debug.layout(pointee)));
        let origin = Origin::Arms(Arc::new(Arms::new(arms)));
        Content::Address(Address::of(origin, Offset::exact(0)))
    }

    /// Finds what a pointer leads to, by the container that it is a part of.
    fn held(&mut self, contents: element::PointerTarget, name: PointerName) -> Content {
        let (die, doubts, into) = match contents {
            element::PointerTarget::Elements(die) => (die, Doubts::NONE.with(Doubt::Which), 0),
            element::PointerTarget::Node(die) => (die, Doubts::NONE, 0),
            element::PointerTarget::Buckets(die) => (die, Doubts::NONE.with(Doubt::Beyond), 0),
            element::PointerTarget::Coroutine(die) => {
                (die, Doubts::NONE, -coroutine::PROMISE_OFFSET)
            }
        };
        let layout = self.around.debug.layout(die);
        let address = Address::object(layout, into, Some(name));
        Content::Address(Address { doubts, ..address })
    }

    /// The value of a variable of this type.
    pub(super) fn content_of(
        &mut self,
        layout: &Arc<Layout>,
        name: Option<PointerName>,
    ) -> Content {
        match layout.shape {
            Shape::Scalar(kind) => {
                self.pointing_at(kind == ScalarKind::Number, layout.pointee, name)
            }
            _ => self.member(layout, 0),
        }
    }

    fn pointing_at(
        &mut self,
        is_number: bool,
        pointee: Option<crate::types::die::DieRef>,
        name: Option<PointerName>,
    ) -> Content {
        match pointee {
            Some(pointee) => {
                let layout = self.around.debug.layout(pointee);
                Content::Address(Address::object(layout, 0, name))
            }
            None if is_number => Content::NUMBER,
            None => Content::Unknown,
        }
    }
}
