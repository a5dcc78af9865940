//! The type path: from an operand's registers, over what the debug information says is in them,
//! to the type that the access lands in.

use crate::descriptor::{self, DataObject, Root};
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
        if access.segment == SegmentBase::Thread {
            return TypeAnswer::Unknown(Reason::RegisterLoss);
        }
        if let Some(answer) = self.static_answer(access) {
            return answer;
        }
        let mut reason = Reason::Undetermined;
        for (pointer, index) in base_and_index(access) {
            if let Some(answer) = self.frame_answer(access, &pointer, index) {
                return answer;
            }
            match self.pointer_answer(access, &pointer, index) {
                TypeAnswer::Unknown(Reason::Undetermined) => {}
                TypeAnswer::Unknown(why) => reason = why,
                known => return known,
            }
        }
        TypeAnswer::Unknown(reason)
    }

    /// A variable at an address that the instruction itself holds.
    fn static_answer(&mut self, access: &MemoryAccess) -> Option<TypeAnswer> {
        if access.base.is_some() {
            return None;
        }
        let address = dataspace_proto::address::Svma(access.displacement.cast_unsigned());
        let Some(variable) = self.debug.variable_at(address).variable else {
            return Some(TypeAnswer::Unknown(Reason::Unidentified));
        };
        let offset = address.offset_from(variable.start)?;
        if let Some(register) = access.index {
            let index = Index { register, scale: access.scale };
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
            let Some(into) = access.displacement.checked_sub(start) else { continue };
            let Ok(offset) = u64::try_from(into) else { continue };
            if offset >= layout.size {
                continue;
            }
            if let Some(index) = index {
                let root = OwnedRoot::Variable(Arc::clone(&variable.name));
                return Some(index.answer(&layout, into, root));
            }
            return Some(named(&layout, Root::Variable(&variable.name), offset, access));
        }
        let is_frame_register = register == DWARF_RSP
            || register == DWARF_RBP && self.cfa.is_some_and(|cfa| cfa.register == DWARF_RBP);
        (is_frame_register && index.is_none() && self.scope.function_name.is_some()).then(stack)
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
        for variable in &scope.variables {
            let moved = match variable.place {
                Place::Register(held) if held == register => 0,
                Place::Value { base: Base::Register(held), offset } if held == register => offset,
                _ => continue,
            };
            let Some(target) = self.debug.pointee(variable.type_die) else { continue };
            let layout = self.debug.layout(target);
            let displacement = access.displacement.wrapping_sub(moved);
            let pointed = Pointed { layout: &layout, name: &variable.name, displacement };
            let answer = pointed.answer(access, index);
            match answer {
                TypeAnswer::Unknown(why) => reason = why,
                known => return known,
            }
        }
        TypeAnswer::Unknown(reason)
    }
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
    let index = access.index.map(|register| Index { register, scale: access.scale });
    let straight = access.base.map(|base| (base, index));
    let swapped = match (access.base, access.index) {
        (Some(register), Some(index)) if access.scale == 1 => {
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
            return self.indexed(access, index);
        }
        match u64::try_from(self.displacement) {
            Ok(offset) if self.layout.holds(offset.saturating_add(size.saturating_sub(1))) => {
                named(self.layout, Root::Pointer(self.name), offset, access)
            }
            _ => unknown,
        }
    }

    /// A scaled index: into a member array where one of that stride is at the displacement, else
    /// over elements, which the index's value decides.
    fn indexed(&self, access: &MemoryAccess, index: Index) -> TypeAnswer {
        if let Ok(offset) = u64::try_from(self.displacement)
            && let Some(path) = self.layout.descend(offset, u64::from(access.size))
            && path.steps.contains(&crate::layout::Step::Element)
            && path.leaf.size == u64::from(index.scale)
        {
            return named(self.layout, Root::Pointer(self.name), offset, access);
        }
        index.answer(self.layout, self.displacement, OwnedRoot::Pointer(Arc::clone(self.name)))
    }
}

fn named(layout: &Arc<Layout>, root: Root<'_>, offset: u64, access: &MemoryAccess) -> TypeAnswer {
    match descriptor::name(layout, root, offset, u64::from(access.size)) {
        Some((object, offset)) => TypeAnswer::Object(Arc::new(Answer { object, offset })),
        None => TypeAnswer::Unknown(Reason::Unidentified),
    }
}

fn stack() -> TypeAnswer {
    TypeAnswer::Object(Arc::new(Answer { object: DataObject::stack(), offset: 0 }))
}
