//! Addresses: where in an object, a frame or the file something is, as far as it is known.

use super::arm::Arms;
use super::doubt::{Doubt, Doubts, Standing};
use super::extent::{
    array_around, has_part, place_at_end, place_in, steps_in_array, steps_in_open_array,
    without_end,
};
use super::offset::{Offset, distances};
use super::value::Frame;
use crate::dwarf::debug_info::DebugInfo;
use crate::elf::data_symbol::DataPlace;
use crate::limit;
use crate::types::layout::{Layout, Member, ScalarKind, Shape};
use dataspace_proto::address::Svma;
use std::sync::Arc;
/// An address, counted from an origin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Address {
    pub(crate) origin: Origin,
    pub(crate) offset: Offset,
    pub(crate) name: Option<PointerName>,
    pub(crate) doubts: Doubts,
    pub(crate) standing: Standing,
}

/// Origin that an address is counted from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// The file's address 0.
    Static,
    /// The thread's pointer, from which its own variables are counted.
    Thread,
    /// A place in the function's frame.
    Frame(Frame),
    /// The beginning of an object of this type, which may be one of many side by side.
    Object(Arc<Layout>),
    /// The object that one of several pointers points at: which one, accesses tell.
    Arms(Arc<Arms>),
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Static, Self::Static) | (Self::Thread, Self::Thread) => true,
            (Self::Frame(first), Self::Frame(second)) => first == second,
            (Self::Object(first), Self::Object(second)) => is_same_type(first, second),
            (Self::Arms(first), Self::Arms(second)) => first == second,
            _ => false,
        }
    }
}

/// Tells whether two layouts are of one type; arrays of it are what a pointer to it points at as well.
pub(crate) fn is_same_type(first: &Arc<Layout>, second: &Arc<Layout>) -> bool {
    Arc::ptr_eq(first, second)
        || first.innermost_element().fingerprint == second.innermost_element().fingerprint
}

/// Name of a pointer: what is behind it and has no name of its own is named after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PointerName {
    /// The variable that holds it.
    Variable(Arc<str>),
    /// The member that holds it: so many bytes into an object of this type.
    Member(Arc<Layout>, u64),
}

impl Address {
    pub(crate) fn object(layout: Arc<Layout>, offset: i64, name: Option<PointerName>) -> Self {
        Self { name, ..Self::of(Origin::Object(layout), Offset::exact(offset)) }
    }

    pub(crate) const fn of(origin: Origin, offset: Offset) -> Self {
        Self { origin, offset, name: None, doubts: Doubts::NONE, standing: Standing::Own }
    }

    /// Tells whether this is not certain of it.
    pub(crate) const fn has(&self, doubt: Doubt) -> bool {
        self.doubts.has(doubt)
    }

    /// The same, with another doubt.
    pub(crate) fn doubted(self, doubt: Doubt) -> Self {
        Self { doubts: self.doubts.with(doubt), ..self }
    }

    /// Points at bytes or at nothing known, as which C passes anything on, or at one of several things.
    pub(crate) fn is_erased(&self) -> bool {
        match &self.origin {
            Origin::Object(layout) => is_erased(layout),
            Origin::Arms(_) => true,
            Origin::Static | Origin::Thread | Origin::Frame(_) => false,
        }
    }

    /// Points at nothing known. Nobody accesses that: who says characters of the same address says more.
    pub(crate) fn is_void(&self) -> bool {
        let Origin::Object(layout) = &self.origin else { return false };
        matches!(layout.innermost_element().shape, Shape::Scalar(ScalarKind::Opaque))
    }

    /// Moves the address; whole elements do not count.
    pub(crate) fn shifted(mut self, by: i64) -> Self {
        self.offset = self.moved(by);
        self.note_move(by);
        self.normal()
    }

    /// Notes that whole elements were gone over, or that a pointer to a member goes to the same member
    /// of an element further on.
    fn note_move(&mut self, by: i64) {
        if let Origin::Object(layout) = &self.origin
            && let Ok(size @ 1..) = i64::try_from(layout.innermost().size)
            && !self.has(Doubt::Beyond)
        {
            // Further down lies what the object is a part of, as often as another one: `container_of`
            // goes back from a member, too.
            let is_whole = |distance: &i64| *distance > 0 && distance % size == 0;
            let is_other = is_whole(&by)
                || self.offset.starts().iter().any(is_whole) && !goes_on(layout, by.unsigned_abs());
            self.doubts = self.doubts.with_if(Doubt::Which, is_other);
        }
    }

    /// The place of a variable that the first of its offsets leads to.
    pub(crate) fn data_place(&self, debug: &DebugInfo) -> Option<DataPlace> {
        let start = *self.offset.starts().first()?;
        match self.origin {
            Origin::Static => Some(DataPlace::fixed(Svma(start.cast_unsigned()))),
            Origin::Thread => debug.thread_block()?.offset_of(start).map(DataPlace::thread),
            Origin::Frame(_) | Origin::Object(_) | Origin::Arms(_) => None,
        }
    }

    /// The address of an access so far from a pointer, which says nothing of where the pointer goes.
    pub(crate) fn displaced(mut self, by: i64) -> Self {
        if self.has(Doubt::Which) {
            return self.shifted(by);
        }
        self.offset = self.moved(by);
        self
    }

    /// The offset, moved. A step before the first element of an array that is gone over nothing is meant: what is before
    /// an element is another one, a step further on.
    fn moved(&self, by: i64) -> Offset {
        let step = self.offset.step;
        let Origin::Object(layout) = &self.origin else { return self.offset.clone().shifted(by) };
        if by >= 0 || step == 0 {
            return self.offset.clone().shifted(by);
        }
        let element = layout.innermost_element();
        self.offset.clone().map(|start| {
            let moved = start.wrapping_add(by);
            let from = u64::try_from(start).ok();
            let array = from.and_then(|from| array_around(&element, from, step));
            let is_before = array.is_some_and(|(array, _)| {
                let before = array.start.cast_signed().wrapping_sub(moved);
                u64::try_from(before).is_ok_and(|before| before != 0 && before <= step)
            });
            if is_before { moved.wrapping_add_unsigned(step) } else { moved }
        })
    }

    pub(crate) fn stepped(mut self, step: u64) -> Self {
        self.offset = self.offset.stepped(step);
        self.normal()
    }

    /// Leaves out whole elements: which one of many it is does not matter behind a pointer.
    pub(super) fn normal(mut self) -> Self {
        let Origin::Object(layout) = &self.origin else { return self };
        if self.has(Doubt::Beyond) {
            return self;
        }
        let element = layout.innermost_element();
        let Some(size) = i64::try_from(element.size).ok().filter(|size| *size > 0) else {
            return self;
        };
        let step = self.offset.step;
        let is_whole = step != 0 && step.is_multiple_of(size.unsigned_abs());
        if is_whole && !steps_in_open_array(&element, step) {
            self.offset.step = 0;
            self.doubts = self.doubts.with(Doubt::Which);
        }
        let is_scalar = !element.is_aggregate();
        // Of one object, below 0 may be the structure around, and behind the end as well, or the
        // array that ends it: -8 from a link may be its node's key.
        let is_many = self.has(Doubt::Which);
        self.offset = self.offset.map(|offset| match offset {
            0.. if element.holds(offset.unsigned_abs()) => offset,
            _ if is_scalar || is_many => offset.rem_euclid(size),
            _ => offset,
        });
        self
    }

    /// Finds the place in the element of an access of `n_bytes` at this address; several places where
    /// the address is not one. `None` where that cannot be told.
    pub(crate) fn places(&self, n_bytes: u64) -> Option<Vec<u64>> {
        let Origin::Object(layout) = &self.origin else { return None };
        let is_before = |start: &i64| *start < 0 && self.offset.step == 0;
        if self.has(Doubt::Beyond) && !self.offset.starts().iter().all(is_before) {
            return None;
        }
        let is_many = self.has(Doubt::Which) || self.has(Doubt::Beyond);
        let accessed = without_end(layout, &self.offset, is_many);
        let starts = accessed.as_deref().unwrap_or(self.offset.starts());
        // Several places may be of one element after the other.
        let apart = if self.offset.step == 0 { distances(starts) } else { 0 };
        let element = layout.innermost_element();
        let is_from_there = starts.iter().any(|start| holds(&element, *start));
        let at_end = |start: i64| {
            let start = start.try_into().ok().filter(|_| is_from_there)?;
            place_at_end(&element, start, apart)
        };
        let place = |start: &i64| {
            let of_one = || place_in(layout, *start, self.offset.step, n_bytes, is_many);
            at_end(*start).or_else(of_one)
        };
        starts.iter().map(place).collect()
    }

    /// Tells whether something counts in it, so that an access of `n_bytes` may be to one of several places.
    pub(crate) fn is_counted(&self, n_bytes: u64) -> bool {
        if self.offset.only().is_some() {
            return false;
        }
        let is_one = |places: Vec<u64>| places.windows(2).all(|two| two[0] == two[1]);
        self.offset.step != 0 || !self.places(n_bytes).is_some_and(is_one)
    }

    /// Tells whether it points outside the one object that it is known to be about.
    pub(crate) fn is_outside(&self) -> bool {
        let Origin::Object(layout) = &self.origin else { return false };
        let element = layout.innermost_element();
        let is_inside = |start: &i64| holds(&element, *start);
        element.is_aggregate() && !self.offset.starts().iter().all(is_inside)
    }

    /// Tells whether it is in the object before a pointer that ends a range: one in a structure with another
    /// pointer to such objects, of which it is no part.
    pub(crate) fn is_last_of_range(&self) -> bool {
        let (Origin::Object(layout), Some(PointerName::Member(holder, offset))) =
            (&self.origin, &self.name)
        else {
            return false;
        };
        let element = layout.innermost_element();
        let Some((holder, offset)) = holder_of_pointer(holder, *offset) else { return false };
        let Shape::Aggregate { members, .. } = &holder.shape else { return false };
        let Ok(size) = i64::try_from(element.size) else { return false };
        let is_before = |start: &i64| (-size..0).contains(start);
        let own = members.iter().find(|member| member.offset == offset);
        let own = own.and_then(|member| member.layout.pointee);
        let is_beside = |member: &Member| member.offset != offset && member.layout.pointee == own;
        own.is_some()
            && holder.fingerprint != element.fingerprint
            && element.is_aggregate()
            && members.iter().any(is_beside)
            && self.offset.starts().iter().all(is_before)
    }

    /// Tells whether the object at `inner` is a part of the one here.
    pub(crate) fn contains(&self, inner: &Self) -> bool {
        let (Origin::Object(outer), Origin::Object(part)) = (&self.origin, &inner.origin) else {
            return false;
        };
        let (around, inside) = (self.offset.starts(), inner.offset.starts());
        let element = outer.innermost_element();
        let Some(start) = around[0].checked_sub(inside[0]) else { return false };
        let part = part.innermost_element();
        let has = |start: i64| {
            u64::try_from(start)
                .is_ok_and(|start| element.holds(start) && has_part(&element, start, &part))
        };
        if self.offset.step != 0 && inner.offset.step == 0 && element.is_aggregate() {
            // An array's elements, one after the other.
            let in_array = |start: u64| steps_in_array(&element, start, self.offset.step);
            let is_each = |out: &i64| {
                let start = out.checked_sub(inside[0]);
                start.is_some_and(|start| has(start) && in_array(start.unsigned_abs()))
            };
            return inside.len() == 1 && around.iter().all(is_each);
        }
        if !element.is_aggregate() || self.offset.step != inner.offset.step {
            return false;
        }
        if inside.len() == 1 {
            // Each of several parts that are alike.
            return around.iter().all(|out| out.checked_sub(inside[0]).is_some_and(has));
        }
        let is_moved = around.len() == inside.len()
            && around.iter().zip(inside).all(|(out, into)| out.checked_sub(*into) == Some(start));
        is_moved && has(start)
    }
}

/// Tells whether a layout is of bytes or of nothing known.
pub(crate) fn is_erased(layout: &Arc<Layout>) -> bool {
    let element = layout.innermost_element();
    matches!(element.shape, Shape::Scalar(ScalarKind::Byte | ScalarKind::Opaque))
}

/// Tells whether one of two addresses in an object is whole elements behind the other: the same member of
/// another element.
pub(super) fn is_element_apart(first: &Address, second: &Address) -> bool {
    let Origin::Object(layout) = &first.origin else { return false };
    let element = layout.innermost();
    let size = i64::try_from(element.size).unwrap_or(0);
    let is_apart = |one: &i64, other: &i64| {
        *one >= 0 && *other >= 0 && one != other && (one - other) % size == 0
    };
    let others = second.offset.starts();
    size > 0
        && element.is_aggregate()
        && first.offset.starts().iter().any(|one| others.iter().any(|other| is_apart(one, other)))
        && !goes_on(layout, distances(&[first.offset.starts(), others].concat()))
}

/// Tells whether steps of this size go on in an array of one that ends an object, not over whole objects.
fn goes_on(layout: &Layout, step: u64) -> bool {
    let object = layout.innermost();
    step.checked_rem(object.size).is_some_and(|rest| rest != 0)
        && object.array_of_one_at_end().is_some()
}

/// Tells whether a place of which it is not known that it is in an object lies there.
fn holds(layout: &Layout, place: i64) -> bool {
    u64::try_from(place).is_ok_and(|place| layout.holds(place))
}

/// The innermost structure around the pointer at `offset`, and where in it the pointer is.
pub(super) fn holder_of_pointer(outer: &Layout, offset: u64) -> Option<(&Layout, u64)> {
    let (mut holder, mut at) = (outer.innermost(), offset);
    for _ in 0..limit::MAX_TYPE_DEPTH {
        let Shape::Aggregate { members, .. } = &holder.shape else { return None };
        let member = members.iter().find(|member| {
            let (start, end) = member.byte_range();
            (start..end).contains(&at) && member.bits.is_none()
        })?;
        if matches!(member.layout.shape, Shape::Scalar(_)) {
            return (member.offset == at).then_some((holder, at));
        }
        (holder, at) = (member.layout.innermost(), at - member.offset);
        at = at.checked_rem(holder.size)?;
    }
    None
}

/// The one of two views of an address that says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    First,
    Second,
}

/// The better of two views of one address; `None` where they contradict each other.
pub(crate) fn either(first: &Address, second: &Address) -> Option<Better> {
    if first.origin == second.origin && first.offset == second.offset {
        let is_named = first.name.is_some() || second.name.is_none();
        return Some(if is_named { Better::First } else { Better::Second });
    }
    match (first.is_erased(), second.is_erased()) {
        (false, true) => return Some(Better::First),
        (true, false) => return Some(Better::Second),
        (true, true) if first.is_void() && !second.is_void() => return Some(Better::Second),
        (true, true) => return Some(Better::First),
        (false, false) => {}
    }
    if first.contains(second) {
        return Some(Better::First);
    }
    if second.contains(first) {
        return Some(Better::Second);
    }
    // One type: the view that is sure of the place.
    (first.origin == second.origin).then_some(())?;
    match (first.offset.only(), second.offset.only()) {
        (Some(_), None) => Some(Better::First),
        (None, Some(_)) => Some(Better::Second),
        _ => None,
    }
}
