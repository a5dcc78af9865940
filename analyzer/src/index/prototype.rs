//! Prototypes: what functions take, and what a pointer to functions says that they take.

use crate::dataflow::{Content, Origin};
use crate::elf::data_symbol::DataPlace;
use crate::index::load_object::LoadObjectIndex;
use crate::types::die::DieRef;
use crate::types::layout::{Layout, ScalarKind, Shape};
use crate::types::value_kind::ValueKind;
use crate::x86_64::abi::{ARGUMENTS, POINTER_BYTES, dwarf_number};
use crate::x86_64::access::{AddressOperand, SegmentBase};
use crate::x86_64::pointer::CodePointer;
use dataspace_proto::address::Svma;
use std::sync::Arc;

/// The types of a function's parameters, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Prototype {
    parameters: Vec<Parameter>,
}

/// A parameter, as far as casts between functions keep it.
#[derive(Clone, Debug, PartialEq)]
enum Parameter {
    /// A pointer to a structure of this type.
    Pointer(Arc<Layout>),
    /// A pointer to bytes or anything.
    AnyPointer,
    /// A number of so many bytes.
    Number(u64),
    /// Anything else.
    Other,
}

impl Prototype {
    /// Tells whether a pointer to functions with the prototype `pointer` may hold one with this prototype: one that takes
    /// as many, and each pointer as one to the same, to what begins with that, or is begun by it.
    pub(crate) fn may_be_called_as(&self, pointer: &Self) -> bool {
        let mut pairs = self.parameters.iter().zip(&pointer.parameters);
        // Older C declares nothing of what is taken.
        self.parameters.is_empty()
            || pointer.parameters.is_empty()
            || self.parameters.len() == pointer.parameters.len()
                && pairs.all(|(taken, passed)| taken.may_be(passed))
    }
}

impl Parameter {
    fn may_be(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Pointer(one), Self::Pointer(other)) => {
                begins_with(one, other) || begins_with(other, one)
            }
            (Self::Number(one), Self::Number(other)) => one == other,
            (Self::Pointer(_) | Self::AnyPointer, Self::Number(n_bytes))
            | (Self::Number(n_bytes), Self::Pointer(_) | Self::AnyPointer) => {
                *n_bytes == u64::from(POINTER_BYTES)
            }
            _ => true,
        }
    }
}

/// Tells whether a structure begins with another one, or is it.
fn begins_with(whole: &Layout, part: &Layout) -> bool {
    if whole.name == part.name {
        return true;
    }
    match &whole.shape {
        Shape::Aggregate { members, .. } => {
            let mut first = members.iter().filter(|it| it.byte_range().0 == 0);
            first.any(|member| begins_with(&member.layout, part))
        }
        Shape::Array { element, .. } => begins_with(element, part),
        Shape::Scalar(_) => false,
    }
}

impl LoadObjectIndex {
    /// The prototype of the function that begins at `start`, if it is called as it is declared.
    pub(crate) fn prototype_at(&mut self, start: Svma) -> Option<Arc<Prototype>> {
        let debug = self.debug.as_mut()?;
        let function = debug.function_entered_at(start)?;
        if let Some(taken) = debug.parameters_at_entry(function, start) {
            // A variant of it that takes all that is declared is called as that.
            let registers = taken.iter().map(|(register, _)| *register);
            let is_whole = registers.eq(ARGUMENTS.into_iter().map(u16::from).take(taken.len()));
            if !is_whole || debug.parameter_types(function).len() != taken.len() {
                return None;
            }
        }
        self.prototype(function)
    }

    /// The prototype of the functions that the pointer of the call or jump at `svma` may lead to.
    pub(crate) fn pointed_prototype(
        &mut self,
        svma: Svma,
        pointer: CodePointer,
    ) -> Option<Arc<Prototype>> {
        let function = match pointer {
            CodePointer::Register(register) => {
                let (function, _) = self.pointed_object(svma, dwarf_number(register), 0)?;
                function.die?
            }
            CodePointer::Memory(operand) => self.function_in_memory(svma, &operand)?,
        };
        self.prototype(function)
    }

    fn function_in_memory(&mut self, svma: Svma, operand: &AddressOperand) -> Option<DieRef> {
        if operand.segment != SegmentBase::Flat {
            return None;
        }
        let (layout, offset) = match operand.static_address() {
            Some(place) => {
                let place = DataPlace::fixed(place);
                let variable = self.debug.as_mut()?.variable_in(place).variable?;
                let into = place.at.offset_from(variable.start)?;
                (Arc::clone(&variable.layout), into)
            }
            None => self.pointed_object(svma, operand.base?.dwarf?, operand.displacement)?,
        };
        let element = layout.innermost_element();
        let offset = offset.checked_rem(element.size)?;
        let leaf = element.descend_as(offset, POINTER_BYTES.into(), ValueKind::Pointer)?.leaf;
        let debug = self.debug.as_mut()?;
        debug.layout(leaf.pointee?).die
    }

    /// What a register, by its DWARF number, points at before the instruction at `svma`, and where in it.
    fn pointed_object(&mut self, svma: Svma, number: u16, by: i64) -> Option<(Arc<Layout>, u64)> {
        let flow = self.own_dataflow(svma)?;
        let content = flow.register(svma, number);
        self.keep_dataflow(svma, flow);
        let Content::Address(address) = content else { return None };
        let Origin::Object(layout) = &address.origin else { return None };
        let start = address.offset.only()?.checked_add(by)?;
        Some((Arc::clone(layout), u64::try_from(start).ok()?))
    }

    fn prototype(&mut self, function: DieRef) -> Option<Arc<Prototype>> {
        let debug = self.debug.as_mut()?;
        let types = debug.parameter_types(function);
        let mut parameters = Vec::with_capacity(types.len());
        for die in types {
            let layout = debug.layout(die);
            parameters.push(match (&layout.shape, layout.pointee) {
                (Shape::Scalar(ScalarKind::Pointer), Some(pointee)) => {
                    let target = debug.layout(pointee);
                    match target.shape {
                        Shape::Aggregate { .. } => Parameter::Pointer(target),
                        _ => Parameter::AnyPointer,
                    }
                }
                (Shape::Scalar(ScalarKind::Pointer), None) => Parameter::AnyPointer,
                (Shape::Scalar(ScalarKind::Number | ScalarKind::Byte), _) => {
                    Parameter::Number(layout.size)
                }
                _ => Parameter::Other,
            });
        }
        Some(Arc::new(Prototype { parameters }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::layout::{AggregateKind, Member};
    use crate::types::type_expression::{Keyword, TypeExpression};

    fn structure(name: &str, first: Option<Arc<Layout>>) -> Arc<Layout> {
        let keyword = Keyword::Structure;
        let expression = Arc::new(TypeExpression::Named { keyword, name: Some(name.into()) });
        let size = first.as_ref().map_or(8, |first| first.size + 8);
        let member = |layout| Member { name: "base".into(), offset: 0, bits: None, layout };
        let members = first.into_iter().map(member).collect();
        let shape = Shape::Aggregate { kind: AggregateKind::Structure, members };
        Arc::new(Layout::new(expression, name.into(), size, shape))
    }

    #[test]
    fn a_pointer_holds_what_takes_as_many_and_alike() {
        let object = structure("object", None);
        let (derived, other) = (structure("text", Some(object.clone())), structure("page", None));
        let takes = |parameters: &[Parameter]| Prototype { parameters: parameters.to_vec() };
        let to = |layout: &Arc<Layout>| Parameter::Pointer(layout.clone());
        let pointer = takes(&[to(&object), Parameter::Number(4)]);
        let may_be = |parameters: &[Parameter]| takes(parameters).may_be_called_as(&pointer);
        assert!(may_be(&[to(&object), Parameter::Number(4)]));
        assert!(may_be(&[to(&derived), Parameter::Number(4)]), "its first member is one");
        assert!(may_be(&[Parameter::AnyPointer, Parameter::Number(4)]));
        assert!(may_be(&[]), "nothing is declared");
        assert!(!may_be(&[to(&other), Parameter::Number(4)]));
        assert!(!may_be(&[to(&object)]));
        assert!(!may_be(&[to(&object), Parameter::Number(8)]));
        assert!(!may_be(&[to(&object), Parameter::AnyPointer]), "half of it would be missing");
    }
}
