//! The type path: from an operand's registers, over what data flow and debug information say is in
//! them, to the type that the access lands in.

use crate::code::image::CodeImage;
use crate::dataflow::{
    Address, Carried, Congruence, Content, Dataflow, Doubt, Offset, Origin, PointerName, Slot, gcd,
};
use crate::dwarf::code::frame::CfaRule;
use crate::dwarf::debug_info::DebugInfo;
use crate::index::pointed;
use crate::index::site::{
    IndexedAnswer, LiveObject, OwnedRoot, PlacedObject, TypeAnswer, VariableRole,
};
use crate::known::{go, hashbrown};
use crate::types::data_object::{self, Root};
use crate::types::layout::{AggregateKind, Layout, ScalarKind, Shape};
use crate::types::value_kind::ValueKind;
use crate::x86_64::abi::{FRAME_POINTER, STACK_POINTER};
use crate::x86_64::access::{self, AddressRegister, MemoryAccess, Role, SegmentBase};
use crate::x86_64::image_bytes::ImageBytes as _;
use dataspace_proto::address::Svma;
use dataspace_proto::reason::Reason;
use std::sync::Arc;

/// Sources in which one instruction's operands are looked up.
pub(crate) struct TypePath<'a> {
    pub(crate) debug: &'a mut DebugInfo,
    pub(crate) image: &'a CodeImage,
    pub(crate) flow: &'a mut Dataflow,
    pub(crate) svma: Svma,
    /// Of the last answer: the part of a variable at the address.
    pub(crate) variable: VariableRole,
    /// Of the last answer: something counts in the object.
    pub(crate) is_counted: bool,
}

/// An operand's address: what is certain of it, and the register that counts in it.
struct Target {
    address: Address,
    index: Option<Index>,
}

impl<'a> TypePath<'a> {
    /// Answers what `access` lands in.
    pub(crate) fn answer(&mut self, access: &MemoryAccess) -> TypeAnswer {
        if access.role == Role::StackSlot {
            return stack();
        }
        match access.address.segment {
            SegmentBase::Flat => {}
            SegmentBase::Thread => return self.segment_answer(access),
            SegmentBase::Other => return TypeAnswer::Unknown(Reason::RegisterLoss),
        }
        if access.is_repeated {
            return self.repeated_answer(access);
        }
        match self.flow_answer(access) {
            TypeAnswer::Unknown(reason) => {
                self.is_counted = false;
                self.said_answer(access).unwrap_or(TypeAnswer::Unknown(reason))
            }
            answer => answer,
        }
    }

    /// Answers what a repeated instruction works on: it may be anywhere in it.
    fn repeated_answer(&mut self, access: &MemoryAccess) -> TypeAnswer {
        let target = match self.target(access) {
            Ok(target) => target,
            Err(reason) => return TypeAnswer::Unknown(reason),
        };
        match &target.address.origin {
            Origin::Object(layout) if layout.innermost().is_aggregate() => {
                let element = layout.innermost_element();
                let size = u32::try_from(element.size).unwrap_or(0);
                let root = owned_root(target.address.name.as_ref());
                named(&element, root.borrow(), 0, &MemoryAccess { size, ..*access })
            }
            Origin::Object(_) => self.flow_answer(access),
            _ => TypeAnswer::Unknown(Reason::Undetermined),
        }
    }

    /// Answers what data flow says.
    fn flow_answer(&mut self, access: &MemoryAccess) -> TypeAnswer {
        let Target { mut address, index } = match self.target(access) {
            Ok(target) => target,
            Err(reason) => return TypeAnswer::Unknown(reason),
        };
        address.doubts = address.doubts.with_if(Doubt::Which, address.is_last_of_range());
        self.is_counted = address.is_counted(access.size.into());
        self.variable = match &address.origin {
            _ if address.has(Doubt::Variable) => VariableRole::PointedAt,
            Origin::Static | Origin::Thread if self.is_counted => VariableRole::Reached,
            _ => VariableRole::Joined,
        };
        match &address.origin {
            Origin::Static | Origin::Thread => self.variable_answer(access, address, index),
            Origin::Frame(frame) => {
                let Some(offset) = address.offset.starts().first() else { return stack() };
                let slot = Slot { frame: *frame, offset: *offset };
                self.frame_answer(access, slot, address.offset.step, index)
            }
            Origin::Object(layout) => {
                let answer = self.control_bytes(access, &address, index);
                let answer = answer.or_else(|| self.header_answer(access, &address));
                answer.unwrap_or_else(|| pointed::answer(access, layout, &address, index))
            }
            Origin::Arms(arms) => self.arm_answer(access, arms, &address, index),
        }
    }

    /// Answers what lies from where objects end on: the bytes that the pointer is declared to lead to.
    fn control_bytes(
        &mut self,
        access: &MemoryAccess,
        address: &Address,
        index: Option<Index>,
    ) -> Option<TypeAnswer> {
        let is_upwards = || address.offset.starts().iter().all(|start| *start >= 0);
        // An index may also count objects down; a group of sixteen control bytes is read at once.
        let is_counted_down = index.is_some() && access.size != hashbrown::GROUP_BYTES;
        if !address.has(Doubt::Beyond) || !is_upwards() || is_counted_down {
            return None;
        }
        let Some(PointerName::Member(holder, offset)) = &address.name else { return None };
        let holder = holder.innermost_element();
        let leaf = holder.descend_as(*offset, 8, ValueKind::Pointer)?.leaf;
        let declared = self.debug.layout(leaf.pointee?);
        let is_bytes = matches!(declared.shape, Shape::Scalar(ScalarKind::Byte));
        let root = owned_root(address.name.as_ref());
        is_bytes.then(|| named(&declared, root.borrow(), 0, access))
    }

    /// The bytes or scalars that the pointer of an access leads to, where that is a member. Where in them the access
    /// goes, and as what, is not known.
    pub(crate) fn bytes(&mut self, access: &MemoryAccess) -> Option<PlacedObject> {
        let Target { address, index } = self.plain_target(access)?;
        // What is counted otherwise are elements of a type that nothing tells, and before it may be a header.
        let is_by_bytes = address.offset.step == 1 || index.is_some_and(|it| it.counts_within(2));
        let is_before = address.offset.starts().iter().any(|start| *start < 0);
        if !is_by_bytes || is_before && index.is_none() {
            return None;
        }
        let (Origin::Object(layout), Some(PointerName::Member(..))) =
            (&address.origin, &address.name)
        else {
            return None;
        };
        let element = layout.innermost_element();
        let is_owned = match &element.shape {
            Shape::Scalar(kind) => *kind != ScalarKind::Opaque,
            Shape::Aggregate { kind, .. } => *kind == AggregateKind::Union,
            Shape::Array { .. } => false,
        };
        if !is_owned || address.has(Doubt::Owner) || address.has(Doubt::Beyond) {
            return None;
        }
        let root = owned_root(address.name.as_ref());
        let object = data_object::pointed(&element, root.borrow());
        Some(PlacedObject { object, offset: 0 })
    }

    /// Finds where a pointer to nothing known comes from that an access goes by.
    pub(crate) fn carried(&self, access: &MemoryAccess) -> Option<Carried> {
        let registers = [access.address.base, access.address.index];
        let mut registers = registers.into_iter().flatten().filter_map(|register| register.dwarf);
        registers.find_map(|number| self.flow.carried(self.svma, number))
    }

    /// The whole element that an access is to which goes on from a header.
    pub(crate) fn element_after(&mut self, access: &MemoryAccess) -> Option<PlacedObject> {
        let Target { address, index } = self.plain_target(access)?;
        let step = gcd(address.offset.step, index.map_or(0, Index::step));
        let element = address.element_after(step, access.size.into(), self.debug)?;
        let whole = element.descend_as(0, element.size, access.kind);
        let leaf = whole.as_ref().map_or(&*element, |path| path.leaf);
        if matches!(leaf.shape, Shape::Scalar(kind) if !access.kind.fits(kind)) {
            return None;
        }
        let root = owned_root(address.name.as_ref());
        named(&element, root.borrow(), 0, access).object()
    }

    /// Objects that other registers point at: one of them may be what is accessed.
    pub(crate) fn live_objects(&mut self) -> Vec<LiveObject> {
        let mut live = Vec::new();
        for number in 0..16 {
            let Some(register) = access::register_of_dwarf(number) else { continue };
            let Content::Address(address) = self.flow.register(self.svma, number) else { continue };
            let (Origin::Object(layout), Some(offset)) = (&address.origin, address.offset.only())
            else {
                continue;
            };
            let element = layout.innermost_element();
            let is_header = address.has(Doubt::Which) && *element.name == *go::BUCKET;
            if element.is_aggregate() && element.size != 0 && !is_header {
                live.push(LiveObject { register, offset, layout: element });
            }
        }
        live
    }

    /// The address of a written-out operand that is in no segment of its own.
    fn plain_target(&mut self, access: &MemoryAccess) -> Option<Target> {
        let is_plain = access.role == Role::Operand && access.address.segment == SegmentBase::Flat;
        is_plain.then(|| self.target(access))?.ok()
    }

    /// The address of an operand.
    fn target(&mut self, access: &MemoryAccess) -> Result<Target, Reason> {
        let operand = &access.address;
        let displacement = operand.displacement;
        let index = operand.index.map(|register| Index::of(register, operand.scale));
        let Some(base) = operand.base else {
            let svma = displacement;
            let address = Address::of(Origin::Static, Offset::exact(svma));
            // A number in an instruction is an address only where code has a fixed one.
            let is_address = operand.is_ip_relative || self.image.is_at_fixed_addresses();
            if let Some(index) = index
                && (!is_address || operand.scale == 1)
                && let Content::Address(address) = self.register(index.register)
            {
                return Ok(Target { address: address.displaced(displacement), index: None });
            }
            return Ok(Target { address, index });
        };
        let base_content = self.register(base);
        let Some(index) = index else {
            return match base_content {
                Content::Address(address) => {
                    Ok(Target { address: address.displaced(displacement), index: None })
                }
                other => self.counted_in_table(displacement, base, &other),
            };
        };
        let index_content = self.register(index.register);
        match numbered(base_content, index_content) {
            (Content::Address(_), Content::Address(_)) => Err(Reason::Unidentified),
            (Content::Address(address), other) => {
                counted(&address.displaced(displacement), &other, index)
            }
            (other, Content::Address(address)) if index.scale == 1 => {
                let index = Index::of(base, 1);
                counted(&address.displaced(displacement), &other, index)
            }
            (other, _) => {
                if self.is_variable(displacement) {
                    // Two numbers count in a table at a fixed address.
                    let offset = Offset::exact(displacement).stepped(1);
                    let address = Address::of(Origin::Static, offset);
                    return Ok(Target { address, index: None });
                }
                Err(reason(&other))
            }
        }
    }

    /// An array at a fixed address that the instruction holds, in which a register counts bytes.
    fn counted_in_table(
        &mut self,
        displacement: i64,
        register: AddressRegister,
        content: &Content,
    ) -> Result<Target, Reason> {
        if matches!(content, Content::Top | Content::Distance) || !self.is_variable(displacement) {
            return Err(reason(content));
        }
        let address = Address::of(Origin::Static, Offset::exact(displacement));
        Ok(Target { address, index: Some(Index::of(register, 1)) })
    }

    fn register(&mut self, register: AddressRegister) -> Content {
        let Some(number) = register.dwarf.filter(|_| !register.is_32_bit) else {
            return Content::Unknown;
        };
        match self.flow.register(self.svma, number) {
            Content::Constant(number) if self.is_variable(number) => {
                Content::Address(Address::of(Origin::Static, Offset::exact(number)))
            }
            content => content,
        }
    }

    /// Tells whether a number is the address of a variable.
    fn is_variable(&mut self, number: i64) -> bool {
        let svma = Svma(number.cast_unsigned());
        self.image.is_at_fixed_addresses() && self.debug.variable_at(svma).variable.is_some()
    }

    /// A thread's own variable, at a distance from the thread's pointer that the instruction holds.
    fn segment_answer(&mut self, access: &MemoryAccess) -> TypeAnswer {
        let address = &access.address;
        let base = address.base.map(|register| Index::of(register, 1));
        let index = address.index.map(|register| Index::of(register, address.scale));
        let mut distance = Offset::exact(address.displacement);
        let mut counting = Vec::new();
        for term in [base, index].into_iter().flatten() {
            match self.register(term.register) {
                Content::Constant(number) => {
                    distance = distance.shifted(number.wrapping_mul(i64::from(term.scale)));
                }
                other => counting.push(Index { number: other.number(), ..term }),
            }
        }
        let index = match counting.as_slice() {
            [] => None,
            [index] => Some(*index),
            _ => return TypeAnswer::Unknown(Reason::Unidentified),
        };
        self.variable_answer(access, Address::of(Origin::Thread, distance), index)
    }

    /// The variable that the first of the offsets leads to.
    fn variable_answer(
        &mut self,
        access: &MemoryAccess,
        address: Address,
        index: Option<Index>,
    ) -> TypeAnswer {
        let unknown = TypeAnswer::Unknown(Reason::Unidentified);
        let Some(place) = address.data_place(self.debug) else { return unknown };
        let Some(variable) = self.debug.variable_in(place).variable else { return unknown };
        let Some(into) = place.at.offset_from(variable.start) else { return unknown };
        let variable = (&variable.layout, &variable.name);
        in_variable(variable, into, address.offset, index, access)
    }

    /// A variable in the frame, or `<Stack>` for what of the frame no variable covers.
    fn frame_answer(
        &self,
        access: &MemoryAccess,
        slot: Slot,
        step: u64,
        index: Option<Index>,
    ) -> TypeAnswer {
        let Some((variable, offset)) = self.flow.frame_variable(self.svma, slot) else {
            return if index.is_none() && step == 0 {
                stack()
            } else {
                TypeAnswer::Unknown(Reason::Undetermined)
            };
        };
        let variable = (&variable.layout, &variable.name);
        in_variable(variable, offset, Offset::exact(0).stepped(step), index, access)
    }
}

/// The part of a variable that the first of the offsets leads to, `into` bytes from its beginning, and the
/// others from there.
fn in_variable(
    (layout, name): (&Arc<Layout>, &Arc<str>),
    into: u64,
    offset: Offset,
    index: Option<Index>,
    access: &MemoryAccess,
) -> TypeAnswer {
    if let Some(index) = index {
        let root = OwnedRoot::Variable(Arc::clone(name));
        return index.answer(layout, into.cast_signed(), root, access);
    }
    let root = Root::Variable(name);
    if offset.only().is_some() {
        return named(layout, root, into, access);
    }
    let first = offset.starts().first().copied().unwrap_or_default();
    let offset = offset.shifted(into.cast_signed().wrapping_sub(first));
    let address = Address::of(Origin::Object(Arc::clone(layout)), offset);
    pointed::spread(layout, root, &address, access)
}

/// Returns the reason why a register's content is no answer.
const fn reason(content: &Content) -> Reason {
    match content {
        Content::Top | Content::Distance => Reason::Unidentified,
        _ => Reason::Undetermined,
    }
}

/// An address in which a register counts, of which `content` is known.
fn counted(address: &Address, content: &Content, index: Index) -> Result<Target, Reason> {
    let address = address.clone();
    Ok(match content {
        Content::Distance | Content::Top => return Err(Reason::Unidentified),
        Content::Constant(number) => {
            let by = number.wrapping_mul(i64::from(index.scale));
            Target { address: address.shifted(by), index: None }
        }
        other if address.offset.only().is_none() => {
            let counted = other.number().times(i64::from(index.scale));
            Target { address: address.shifted(counted.rest()).stepped(counted.step()), index: None }
        }
        other => {
            let number = other.number();
            Target { address, index: Some(Index { number, ..index }) }
        }
    })
}

/// Takes the one of two addends for a number that comes from a union of pointers and other things, where the other one is
/// an address for certain.
fn numbered(base: Content, index: Content) -> (Content, Content) {
    let is_certain = |content: &Content| match content {
        Content::Address(address) => Some(!matches!(address.origin, Origin::Arms(_))),
        _ => None,
    };
    match (is_certain(&base), is_certain(&index)) {
        (Some(true), Some(false)) => (base, Content::Unknown),
        (Some(false), Some(true)) => (Content::Unknown, index),
        _ => (base, index),
    }
}

/// Tells whether a variable that is said to be in memory at a register lives there. A scalar outside the
/// frame does not: gcc says of `t = p->next` that `t` is where `next` is.
pub(crate) fn is_own_place(layout: &Layout, register: u16, cfa: Option<CfaRule>) -> bool {
    layout.is_aggregate() || is_frame_register(register, cfa)
}

/// Tells whether the register with this DWARF number holds the frame's address.
fn is_frame_register(number: u16, cfa: Option<CfaRule>) -> bool {
    number == STACK_POINTER
        || number == FRAME_POINTER && cfa.is_some_and(|cfa| cfa.register == FRAME_POINTER)
}

/// The register that counts in an address, and what it is multiplied by.
#[derive(Clone, Copy)]
pub(crate) struct Index {
    register: AddressRegister,
    scale: u8,
    /// The register's content, as far as it is known.
    number: Congruence,
}

impl Index {
    const fn of(register: AddressRegister, scale: u8) -> Self {
        Self { register, scale, number: Congruence::ANY }
    }

    /// Bytes that it counts by.
    pub(crate) fn step(self) -> u64 {
        self.number.times(i64::from(self.scale)).step()
    }

    /// Tells whether it goes over objects of this many bytes, or parts of them.
    pub(crate) fn counts_within(self, n_bytes: u64) -> bool {
        !self.step().is_multiple_of(n_bytes)
    }

    pub(crate) fn answer(
        self,
        layout: &Arc<Layout>,
        displacement: i64,
        root: OwnedRoot,
        access: &MemoryAccess,
    ) -> TypeAnswer {
        let index = ((self.register, self.scale), self.number);
        let from = (Arc::clone(layout), displacement);
        let size = u64::from(access.size);
        TypeAnswer::Indexed(Arc::new(IndexedAnswer::new(from, index, root, size)))
    }
}

/// Names what is behind a pointer after it.
pub(crate) fn owned_root(name: Option<&PointerName>) -> OwnedRoot {
    match name {
        None => OwnedRoot::Pointer("".into()),
        Some(PointerName::Variable(name)) => OwnedRoot::Pointer(Arc::clone(name)),
        Some(PointerName::Member(layout, offset)) => {
            match data_object::pointer_member(layout, *offset) {
                Some(member) => OwnedRoot::Member(Arc::new(member)),
                None => OwnedRoot::Pointer("".into()),
            }
        }
    }
}

pub(crate) fn named(
    layout: &Arc<Layout>,
    root: Root<'_>,
    offset: u64,
    access: &MemoryAccess,
) -> TypeAnswer {
    let of_bits = access.bits.and_then(|bits| data_object::name_bits(layout, root, offset, bits));
    let size = u64::from(access.size);
    match of_bits.or_else(|| data_object::name_as(layout, root, offset, size, access.kind)) {
        Some((object, offset)) => TypeAnswer::Object(Arc::new(PlacedObject { object, offset })),
        None => TypeAnswer::Unknown(Reason::Unidentified),
    }
}

fn stack() -> TypeAnswer {
    TypeAnswer::Object(Arc::new(PlacedObject::stack()))
}
