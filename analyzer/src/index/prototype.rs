//! Prototypes: the types of functions, and of what pointers to functions lead to, by the debug information.

use crate::dataflow::{Content, Origin};
use crate::elf::data_symbol::DataPlace;
use crate::index::function_type::{FunctionType, Parameter};
use crate::index::load_object::LoadObjectIndex;
use crate::limit;
use crate::types::die::DieRef;
use crate::types::layout::{Layout, ScalarKind, Shape};
use crate::types::value_kind::ValueKind;
use crate::x86_64::abi::{ARGUMENTS, POINTER_BYTES, dwarf_number};
use crate::x86_64::access::{AddressOperand, SegmentBase};
use crate::x86_64::pointer::CodePointer;
use dataspace_proto::address::Svma;
use std::sync::Arc;

impl LoadObjectIndex {
    /// The prototype of the function that begins at `start`, if it is called as it is declared.
    pub(crate) fn prototype_at(&mut self, start: Svma) -> Option<Arc<FunctionType>> {
        let debug = self.debug.as_mut()?;
        let function = debug.function_entered_at(start)?;
        if let Some(taken) = debug.parameters_at_entry(function, start) {
            // A variant of it that takes all that is declared is called as that.
            let registers = taken.iter().map(|(register, _)| *register);
            let is_whole = registers.eq(ARGUMENTS.into_iter().map(u16::from).take(taken.len()));
            let is_as_declared = is_whole && debug.parameter_types(function).len() == taken.len();
            // So is one that pointers lead to: compilers make variants for written calls alone.
            if !is_as_declared && self.is_pointed_to(start) != Some(true) {
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
    ) -> Option<Arc<FunctionType>> {
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

    /// The object that a register, by its DWARF number, points at before the instruction at `svma`, and the place in it.
    fn pointed_object(&mut self, svma: Svma, number: u16, by: i64) -> Option<(Arc<Layout>, u64)> {
        let flow = self.own_dataflow(svma)?;
        let content = flow.register(svma, number);
        self.keep_dataflow(svma, flow);
        let Content::Address(address) = content else { return None };
        let Origin::Object(layout) = &address.origin else { return None };
        let start = address.offset.only()?.checked_add(by)?;
        Some((Arc::clone(layout), u64::try_from(start).ok()?))
    }

    fn prototype(&mut self, function: DieRef) -> Option<Arc<FunctionType>> {
        let debug = self.debug.as_mut()?;
        let types = debug.parameter_types(function);
        if types.len() >= limit::MAX_PARAMETERS {
            return None;
        }
        let is_told = !types.is_empty() || debug.is_prototyped(function);
        let takes_more = !is_told || debug.takes_more(function);
        let mut parameters = Vec::with_capacity(types.len());
        for die in types {
            let layout = debug.layout(die);
            parameters.push(match (&layout.shape, layout.pointee) {
                (Shape::Scalar(ScalarKind::Pointer), Some(pointee)) => {
                    let target = debug.layout(pointee);
                    match target.shape {
                        Shape::Aggregate { .. } => Parameter::Pointer(target),
                        _ if debug.is_function(target.die) => Parameter::Code,
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
        Some(Arc::new(FunctionType { parameters, takes_more }))
    }
}
