//! Signatures: what the functions that are called take and return, as far as the debug information tells.

use super::address::{Address, Origin, PointerName};
use super::content::Content;
use super::points_to::PointerCell;
use super::typing::Typing;
use super::value::{Call, Definition, ValueIdx};
use crate::dwarf::code::passing::{Passing, Word};
use crate::elf::linkage::LinkageSlot;
use crate::known::language;
use crate::types::die::{DieRef, UnitIdx};
use crate::types::layout::{Layout, ScalarKind, Shape};
use crate::x86_64::abi::{ARGUMENTS, N_ARGUMENTS, POINTER_BYTES};
use dataspace_proto::address::Svma;
use std::sync::Arc;

/// Contents of the argument registers.
pub(super) type Parameters = Arc<[Content; N_ARGUMENTS]>;

impl Typing<'_, '_> {
    /// Finds the content that `call` leaves in the register of results.
    pub(super) fn returned(&mut self, call: &Call) -> Content {
        let Some(callee) = self.callee(call) else { return Content::Unknown };
        match self.result_of(callee) {
            Some((layout, Passing::Address)) => Content::Address(Address::object(layout, 0, None)),
            Some((layout, Passing::Value | Passing::Unknown)) => {
                let known = self.content_of(&layout, None);
                let target = self.direct_target(call);
                self.told_or(known, |_| target.map(PointerCell::Result))
            }
            None => Content::Unknown,
        }
    }

    /// Finds the type that a function returns, and how it is returned; `None` for nothing.
    pub(super) fn result_of(&mut self, function: DieRef) -> Option<(Arc<Layout>, Passing)> {
        let debug = &mut *self.around.debug;
        let result = debug.name_and_type(function).1.or_else(|| debug.first_result(function))?;
        let layout = self.around.debug.layout(result);
        let returning = self.around.debug.returning(function.unit, &layout);
        Some((layout, returning))
    }

    /// The entry of the function that is called.
    pub(super) fn callee(&mut self, call: &Call) -> Option<DieRef> {
        let code = self.around.function.code(call.at as usize)?;
        let target = self.direct_target(call);
        // The very function, if it is of this unit: what the call is said to be of may be what it was
        // made from.
        let own = self.around.scope.unit;
        if let Some(target) = target
            && self.around.debug.unit_of_code(target) == Some(own)
            && let Some(callee) = self.around.debug.function_entered_at(target)
        {
            return Some(callee);
        }
        let behind = Svma(code.end);
        let calls = &self.around.scope.calls;
        let first = calls.partition_point(|(at, _)| *at < behind);
        let said = calls.get(first).filter(|(at, _)| *at == behind).map(|(_, origin)| *origin);
        // Another unit is looked through only if it must be.
        said.or_else(|| match target {
            Some(target) => self.around.debug.function_entered_at(target),
            None => self.pointed_function(call),
        })
    }

    /// Finds the target of a direct call, or jump out of the function.
    pub(super) fn direct_target(&self, call: &Call) -> Option<Svma> {
        self.around.function.exit(call.at as usize).target()
    }

    /// The name of the function that a call leads to in another load object.
    pub(super) fn library_name(&self, call: &Call) -> Option<Arc<str>> {
        let image = self.around.image;
        let slot = match self.direct_target(call) {
            Some(target) => image.linkage_slot(target)?,
            None => match self.graph.definition(call.callee?)? {
                Definition::Loaded { address, .. } if address.is_static => {
                    Svma(address.displacement.cast_unsigned())
                }
                _ => return None,
            },
        };
        match image.linkage().at(slot)? {
            LinkageSlot::Address(name) => Some(Arc::clone(name)),
            _ => None,
        }
    }

    /// The type of the function that a value is the address of, or the declaration of the virtual one.
    fn pointed_function(&mut self, call: &Call) -> Option<DieRef> {
        let callee = call.callee?;
        if let Some((class, slot)) = self.virtual_slot(callee) {
            // The slot's own type is that of no function: it returns `int`, whatever that returns.
            return self.around.debug.virtual_function(class.die?, slot);
        }
        let Content::Address(address) = self.of(callee) else { return None };
        match &address.origin {
            Origin::Object(layout) if !layout.is_aggregate() => layout.die,
            _ => None,
        }
    }

    /// The slot that a function's address was read from, in the table of virtual functions that objects of a class
    /// begin with.
    fn virtual_slot(&self, callee: ValueIdx) -> Option<(Arc<Layout>, u64)> {
        let Definition::Loaded { address, .. } = self.graph.definition(callee)? else {
            return None;
        };
        let (table, None) = (address.base?, address.index) else { return None };
        let Content::Address(table) = self.of(table) else { return None };
        let Origin::Object(slots) = &table.origin else { return None };
        if &*slots.innermost().name != language::VIRTUAL_SLOT {
            return None;
        }
        let Some(PointerName::Member(object, at)) = &table.name else { return None };
        let class = beginning_at(object, *at)?;
        let slot = u64::try_from(address.displacement).ok()? / u64::from(POINTER_BYTES);
        Some((class, slot))
    }

    /// Finds the content of each argument register for `call`, which is of `callee`. Each look back asks.
    pub(super) fn parameters(&mut self, call: &Call, callee: DieRef) -> Parameters {
        let key = (call.at, callee);
        if let Some(known) = self.parameters.get(&key) {
            return Arc::clone(known);
        }
        let entry = self.direct_target(call);
        let parameters = Arc::new(self.read_parameters(callee, entry));
        self.parameters.insert(key, Arc::clone(&parameters));
        parameters
    }

    /// The content that the function itself is declared to get in a register.
    pub(super) fn own_parameter(&mut self, register: u8) -> Content {
        let Some(own) = self.around.scope.die else { return Content::Unknown };
        // No call is there.
        let key = (u32::MAX, own);
        let parameters = match self.parameters.get(&key) {
            Some(known) => Arc::clone(known),
            None => {
                let entry = self.around.function.start();
                let read = Arc::new(self.read_parameters(own, entry));
                self.parameters.insert(key, Arc::clone(&read));
                read
            }
        };
        let place = ARGUMENTS.iter().position(|it| *it == register);
        place.map_or(Content::Unknown, |place| parameters[place].clone())
    }

    fn read_parameters(&mut self, callee: DieRef, entry: Option<Svma>) -> [Content; N_ARGUMENTS] {
        let mut contents = [const { Content::Unknown }; N_ARGUMENTS];
        if let Some(entry) = entry
            && let Some(known) = self.around.debug.parameters_at_entry(callee, entry)
        {
            for (register, type_die) in known {
                let layout = self.around.debug.layout(type_die);
                let is_it = |argument: &u8| u16::from(*argument) == register;
                if let Some(place) = ARGUMENTS.iter().position(is_it) {
                    contents[place] = self.content_of(&layout, None);
                }
            }
            return contents;
        }
        let (declared, _) = self.declared_registers(callee);
        for (content, declared) in contents.iter_mut().zip(declared) {
            *content = declared;
        }
        contents
    }

    /// Lists the contents of the argument registers that a function is declared to take, from the first; true if these are
    /// all.
    fn declared_registers(&mut self, callee: DieRef) -> (Vec<Content>, bool) {
        let mut declared = match self.result_of(callee) {
            Some((layout, Passing::Address)) => {
                vec![Content::Address(Address::object(layout, 0, None))]
            }
            Some((_, Passing::Unknown)) => return (Vec::new(), false),
            Some((_, Passing::Value)) | None => Vec::new(),
        };
        for type_die in self.around.debug.parameter_types(callee) {
            let layout = self.around.debug.layout(type_die);
            match self.passed_as(callee.unit, &layout) {
                Some(registers) if declared.len() + registers.len() <= N_ARGUMENTS => {
                    declared.extend(registers);
                }
                _ => return (declared, false),
            }
        }
        (declared, true)
    }

    /// Finds in how many argument registers, from the first, a call of `callee`, which is entered at `entry`, passes something;
    /// all of them if that is not known.
    pub(super) fn n_passed(&mut self, callee: Option<DieRef>, entry: Option<Svma>) -> usize {
        let known = callee.and_then(|callee| {
            let debug = &mut *self.around.debug;
            let is_variant =
                entry.is_some_and(|entry| debug.parameters_at_entry(callee, entry).is_some());
            // `f()` may be given anything in C before C23.
            let is_told = entry.is_some() || !debug.parameter_types(callee).is_empty();
            if is_variant || !is_told || debug.takes_more(callee) {
                return None;
            }
            let (declared, is_all) = self.declared_registers(callee);
            is_all.then_some(declared.len())
        });
        known.unwrap_or(N_ARGUMENTS)
    }

    /// Finds the contents of the general registers that an argument of this type is passed in; `None` where it is
    /// not known how it is passed.
    fn passed_as(&mut self, unit: UnitIdx, layout: &Arc<Layout>) -> Option<Vec<Content>> {
        match self.around.debug.passing(unit, layout) {
            Passing::Value => {}
            Passing::Address => {
                let address = Address::object(Arc::clone(layout), 0, None);
                return Some(vec![Content::Address(address)]);
            }
            Passing::Unknown => return None,
        }
        match (&layout.shape, layout.size) {
            (Shape::Scalar(ScalarKind::Float), _) => Some(Vec::new()),
            (Shape::Scalar(ScalarKind::Number), 1..=8)
            | (Shape::Scalar(ScalarKind::Pointer | ScalarKind::Byte), 0..=8) => {
                Some(vec![self.content_of(layout, None)])
            }
            (Shape::Scalar(_), _) => None,
            // Vectors.
            (Shape::Array { .. }, _) => Some(Vec::new()),
            (Shape::Aggregate { .. }, _) => {
                let words = self.around.debug.words(unit, layout)?;
                let general = (0..).zip(words).filter(|(_, word)| *word == Word::General);
                Some(general.map(|(at, _)| self.member(layout, 8 * at)).collect())
            }
        }
    }
}

/// The outermost class that begins at an offset of an object.
fn beginning_at(object: &Arc<Layout>, at: u64) -> Option<Arc<Layout>> {
    let element = object.innermost_element();
    if at == 0 {
        return Some(element);
    }
    let path = element.descend(at, POINTER_BYTES.into())?;
    let mut start = 0;
    for (_, part, member) in element.walk(&path.steps) {
        start += member.map_or(0, |member| member.offset);
        if start == at && part.is_aggregate() {
            return Some(Arc::clone(part));
        }
    }
    None
}
