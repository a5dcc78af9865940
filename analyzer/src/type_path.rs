//! The type path: from an operand's registers, over what the debug information says is in them,
//! to the type that the access lands in.

use crate::containment::{self, Finer};
use crate::descriptor::{self, Root};
use crate::dwarf::DebugInfo;
use crate::dwarf::frame::CfaRule;
use crate::dwarf::location::{Base, Place};
use crate::dwarf::scope::{CodeScope, VisibleVariable};
use crate::layout::{Layout, ScalarKind, Shape};
use crate::site::{Answer, IndexedAnswer, OwnedRoot, TypeAnswer};
use crate::x86_64::access::{AddressRegister, MemoryAccess, Role, SegmentBase};
use dataspace_proto::reason::Reason;
use std::sync::Arc;

/// DWARF numbers of the registers that hold a frame's address.
const DWARF_RBP: u16 = 6;
const DWARF_RSP: u16 = 7;

/// What one instruction's operands are looked up in.
pub(crate) struct TypePath<'a> {
    pub(crate) debug: &'a mut DebugInfo,
    pub(crate) scope: &'a CodeScope,
    pub(crate) cfa: Option<CfaRule>,
}

impl TypePath<'_> {
    /// What `access` lands in.
    pub(crate) fn answer(&mut self, access: &MemoryAccess) -> TypeAnswer {
        if access.role == Role::StackSlot {
            return stack();
        }
        if access.address.segment != SegmentBase::Flat {
            return TypeAnswer::Unknown(Reason::RegisterLoss);
        }
        if let Some(answer) = self.static_answer(access) {
            return answer;
        }
        let mut reason = Reason::Undetermined;
        for (pointer, index) in base_and_index(access) {
            let is_frame = pointer.dwarf.is_some_and(|number| is_frame_register(number, self.cfa));
            if is_frame && let Some(answer) = self.frame_answer(access, &pointer, index) {
                return answer;
            }
            match self.pointer_answer(access, &pointer, index) {
                TypeAnswer::Unknown(Reason::Undetermined) => {}
                TypeAnswer::Unknown(why) => reason = why,
                known => return known,
            }
            if let Some(answer) = self.frame_answer(access, &pointer, index) {
                return answer;
            }
        }
        TypeAnswer::Unknown(reason)
    }

    /// A variable at an address that the instruction itself holds.
    fn static_answer(&mut self, access: &MemoryAccess) -> Option<TypeAnswer> {
        if access.address.base.is_some() {
            return None;
        }
        let address = dataspace_proto::address::Svma(access.address.displacement.cast_unsigned());
        let Some(variable) = self.debug.variable_at(address).variable else {
            return Some(TypeAnswer::Unknown(Reason::Unidentified));
        };
        let offset = address.offset_from(variable.start)?;
        if let Some(register) = access.address.index {
            let index = Index { register, scale: access.address.scale };
            let root = OwnedRoot::Variable(Arc::clone(&variable.name));
            return Some(index.answer(&variable.layout, offset.cast_signed(), root));
        }
        Some(named(&variable.layout, Root::Variable(&variable.name), offset, access))
    }

    /// A variable in the frame, or `<Stack>` for what of the frame no variable covers.
    fn frame_answer(
        &mut self,
        access: &MemoryAccess,
        base: &AddressRegister,
        index: Option<Index>,
    ) -> Option<TypeAnswer> {
        let register = base.dwarf?;
        let slots: Vec<(&VisibleVariable, i64)> = self
            .scope
            .variables
            .iter()
            .filter_map(|variable| match variable.place {
                Place::Memory { base, offset } => {
                    let (from, offset) = CfaRule::rebase(self.cfa, base, offset)?;
                    (from == register).then_some((variable, offset))
                }
                _ => None,
            })
            .collect();
        for (variable, start) in slots {
            let layout = self.debug.layout(variable.type_die);
            let Some(into) = access.address.displacement.checked_sub(start) else { continue };
            let Ok(offset) = u64::try_from(into) else { continue };
            if offset >= layout.size || !is_own_place(&layout, register, self.cfa) {
                continue;
            }
            if let Some(index) = index {
                let root = OwnedRoot::Variable(Arc::clone(&variable.name));
                return Some(index.answer(&layout, into, root));
            }
            return Some(named(&layout, Root::Variable(&variable.name), offset, access));
        }
        let is_frame = is_frame_register(register, self.cfa);
        (is_frame && index.is_none() && self.scope.function_name.is_some()).then(stack)
    }

    /// What a typed pointer in `base` points at.
    fn pointer_answer(
        &mut self,
        access: &MemoryAccess,
        base: &AddressRegister,
        index: Option<Index>,
    ) -> TypeAnswer {
        let mut reason = Reason::Undetermined;
        let Some(register) = base.dwarf else { return TypeAnswer::Unknown(reason) };
        let scope = self.scope;
        let mut known: Option<View> = None;
        for variable in &scope.variables {
            let moved = match variable.place {
                Place::Register(held) if held == register => 0,
                Place::Value { base: Base::Register(held), offset } if held == register => offset,
                _ => continue,
            };
            let Some(target) = self.debug.pointee(variable.type_die) else { continue };
            let layout = self.debug.layout(target);
            let displacement = access.address.displacement.wrapping_sub(moved);
            let pointed = Pointed { layout: &layout, name: &variable.name, displacement };
            match pointed.answer(access, index) {
                TypeAnswer::Unknown(why) => reason = why,
                answer => {
                    let is_byte = is_byte(&layout);
                    let view = View { answer, depth: variable.depth, is_byte };
                    known = Some(match known {
                        Some(inner) => inner.or(view),
                        None => view,
                    });
                }
            }
        }
        known.map_or(TypeAnswer::Unknown(reason), |view| view.answer)
    }
}

/// What one variable makes of an access. Several can hold the same pointer, each of its own type.
struct View {
    answer: TypeAnswer,
    /// How many scopes are around the variable.
    depth: usize,
    /// It points at bytes, as which anything can be read.
    is_byte: bool,
}

impl View {
    /// This view or that of a variable in the same scope or an outer one: a cast makes the second
    /// name for the same pointer, and which of the two the code means is not told.
    fn or(self, outer: Self) -> Self {
        if self.is_byte != outer.is_byte {
            return if self.is_byte { outer } else { self };
        }
        if outer.depth < self.depth {
            return self;
        }
        let answer = match (&self.answer, &outer.answer) {
            (TypeAnswer::Object(a), TypeAnswer::Object(b)) => {
                match containment::finer(&a.object, &b.object) {
                    Some(Finer::Typed) => Some(self.answer.clone()),
                    Some(Finer::Located) => Some(outer.answer.clone()),
                    None => containment::finer(&b.object, &a.object).map(|_| self.answer.clone()),
                }
            }
            (TypeAnswer::Indexed(a), TypeAnswer::Indexed(b)) => {
                let is_same = a.layout.fingerprint == b.layout.fingerprint;
                is_same.then(|| self.answer.clone())
            }
            _ => None,
        };
        Self { answer: answer.unwrap_or(TypeAnswer::Unknown(Reason::Unidentified)), ..self }
    }
}

fn is_byte(layout: &Arc<Layout>) -> bool {
    layout.innermost_element().shape == Shape::Scalar(ScalarKind::Byte)
}

/// Whether the register with this DWARF number holds the frame's address.
fn is_frame_register(number: u16, cfa: Option<CfaRule>) -> bool {
    number == DWARF_RSP || number == DWARF_RBP && cfa.is_some_and(|cfa| cfa.register == DWARF_RBP)
}

/// Whether a variable that is said to be in memory at a register lives there. A scalar outside the
/// frame does not: gcc says of `t = p->next` that `t` is where `next` is.
pub(crate) fn is_own_place(layout: &Layout, register: u16, cfa: Option<CfaRule>) -> bool {
    layout.is_aggregate() || is_frame_register(register, cfa)
}

/// The register that counts in an address, and what it is multiplied by.
#[derive(Clone, Copy)]
struct Index {
    register: AddressRegister,
    scale: u8,
}

impl Index {
    fn answer(self, layout: &Arc<Layout>, displacement: i64, root: OwnedRoot) -> TypeAnswer {
        let layout = Arc::clone(layout);
        let (index, scale) = (self.register, self.scale);
        TypeAnswer::Indexed(Arc::new(IndexedAnswer { layout, displacement, index, scale, root }))
    }
}

/// Base and index, and the other way round where they are alike.
fn base_and_index(access: &MemoryAccess) -> impl Iterator<Item = (AddressRegister, Option<Index>)> {
    let index =
        access.address.index.map(|register| Index { register, scale: access.address.scale });
    let straight = access.address.base.map(|base| (base, index));
    let swapped = match (access.address.base, access.address.index) {
        (Some(register), Some(index)) if access.address.scale == 1 => {
            Some((index, Some(Index { register, scale: 1 })))
        }
        _ => None,
    };
    straight.into_iter().chain(swapped)
}

/// What a pointer of known type points at.
struct Pointed<'a> {
    layout: &'a Arc<Layout>,
    name: &'a Arc<str>,
    displacement: i64,
}

impl Pointed<'_> {
    fn answer(&self, access: &MemoryAccess, index: Option<Index>) -> TypeAnswer {
        let unknown = TypeAnswer::Unknown(Reason::Unidentified);
        let element = self.layout.innermost_element();
        let size = u64::from(access.size);
        if element.size == 0 {
            return unknown;
        }
        if let Shape::Scalar(kind) = element.shape {
            // Characters and void are what C calls any storage: a wider access tells nothing.
            let is_untyped = kind == ScalarKind::Byte && size > 1 || kind == ScalarKind::Opaque;
            let is_whole = self.displacement.rem_euclid(element.size.cast_signed()) == 0;
            if is_untyped || !is_whole && index.is_none() {
                return unknown;
            }
            return named(&element, Root::Pointer(self.name), 0, access);
        }
        if let Some(index) = index {
            // Which part it is only the index's value tells: `p->v[i - 1]` has the displacement of
            // what stands before `v`.
            let root = OwnedRoot::Pointer(Arc::clone(self.name));
            return index.answer(self.layout, self.displacement, root);
        }
        match u64::try_from(self.displacement) {
            Ok(offset) if self.layout.holds(offset.saturating_add(size.saturating_sub(1))) => {
                named(self.layout, Root::Pointer(self.name), offset, access)
            }
            _ => unknown,
        }
    }
}

fn named(layout: &Arc<Layout>, root: Root<'_>, offset: u64, access: &MemoryAccess) -> TypeAnswer {
    match descriptor::name(layout, root, offset, u64::from(access.size)) {
        Some((object, offset)) => TypeAnswer::Object(Arc::new(Answer { object, offset })),
        None => TypeAnswer::Unknown(Reason::Unidentified),
    }
}

fn stack() -> TypeAnswer {
    TypeAnswer::Object(Arc::new(Answer::stack()))
}
