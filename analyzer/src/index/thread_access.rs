//! Accesses of thread-local variables through the tables that the loader fills: which variable it is
//! tells the slot that the address was formed with (ABI for thread-local storage, chapter 4).

use crate::code::image::CodeImage;
use crate::dataflow::Congruence;
use crate::dwarf::debug_info::DebugInfo;
use crate::elf::data_symbol::DataPlace;
use crate::elf::linkage::{LinkageSlot, ThreadTarget};
use crate::index::site::{IndexedAnswer, OwnedRoot, PlacedObject, TypeAnswer};
use crate::known::loader;
use crate::limit;
use crate::types::data_object::{self, Root};
use crate::x86_64::abi::{ARGUMENTS, CALLER_SAVED, RETURNED};
use crate::x86_64::access::{AddressOperand, MemoryAccess, Role, SegmentBase};
use crate::x86_64::action::{Action, Assignment, Expression, Source, Width};
use crate::x86_64::arithmetic::Operation;
use crate::x86_64::exit::{Destination, Exit};
use crate::x86_64::function::FunctionCode;
use crate::x86_64::translation::Translator;
use dataspace_proto::address::Svma;
use dataspace_proto::register::Register as Sampled;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Content of an operand's base register: the place of this offset in the load object's own block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadLink {
    /// The register.
    pub base: Sampled,
    /// The offset.
    pub offset: u64,
    /// It holds the distance from the thread's base, not the address.
    pub is_distance: bool,
    /// No other load object can have taken the variable's place.
    pub is_certain: bool,
}

impl ThreadLink {
    /// The variable that `access` lands in.
    pub(crate) fn answer(self, debug: &mut DebugInfo, access: &MemoryAccess) -> Option<TypeAnswer> {
        let displacement = access.address.displacement;
        let offset = self.offset.checked_add_signed(displacement)?;
        let variable = debug.variable_in(DataPlace::thread(offset)).variable?;
        let into = offset.checked_sub(variable.start.0)?;
        if let Some(index) = access.address.index {
            let root = OwnedRoot::Variable(Arc::clone(&variable.name));
            let from = (Arc::clone(&variable.layout), into.cast_signed());
            let index = (index, access.address.scale);
            let answer =
                IndexedAnswer::new(from, (index, Congruence::ANY), root, u64::from(access.size));
            return Some(TypeAnswer::Indexed(Arc::new(answer)));
        }
        let root = Root::Variable(&variable.name);
        let size = u64::from(access.size);
        let (object, offset) = data_object::name(&variable.layout, root, into, size)?;
        Some(TypeAnswer::Object(Arc::new(PlacedObject { object, offset })))
    }
}

/// Finds what the code before the access at `svma` tells of its base register.
pub(crate) fn link(
    function: &FunctionCode,
    code: &CodeImage,
    svma: Svma,
    access: &MemoryAccess,
) -> Option<ThreadLink> {
    let at = function.index_of(svma)?;
    let base = access.address.base?.register?;
    if access.role != Role::Operand || access.address.segment == SegmentBase::Other {
        return None;
    }
    let operand = function.reading(at)?.operand?.address.base?;
    if operand.register != Some(base) {
        return None;
    }
    let mut trace =
        ThreadTrace { function, code, translator: Translator::new(function), is_nested: false };
    let (target, is_distance) = trace.origin(u8::try_from(operand.dwarf?).ok()?, at)?;
    let ThreadTarget::Own { offset, is_certain } = target else { return None };
    // A distance is no address by itself.
    let is_used_so = is_distance == (access.address.segment == SegmentBase::Thread);
    is_used_so.then_some(ThreadLink { base, offset, is_distance, is_certain })
}

/// Value that a register was given.
#[derive(Clone, PartialEq, Eq)]
enum RegisterSource {
    /// The distance of a thread-local variable, or its address.
    Thread(ThreadTarget, bool),
    /// The value of another register before.
    Copy(u8),
    /// Anything else.
    Other,
}

struct ThreadTrace<'a> {
    function: &'a FunctionCode,
    code: &'a CodeImage,
    translator: Translator<'a>,
    /// The sum of a distance and the thread's address is looked into, which is no sum itself.
    is_nested: bool,
}

impl<'a> ThreadTrace<'a> {
    /// Traces what `register`, by its DWARF number, holds before the instruction at `at`: which variable, and
    /// whether its distance. Every way there must give the same.
    fn origin(&mut self, register: u8, at: usize) -> Option<(ThreadTarget, bool)> {
        let mut found: Option<(ThreadTarget, bool)> = None;
        let mut seen = FxHashSet::default();
        let mut work = vec![(at, register)];
        while let Some((at, register)) = work.pop() {
            if !seen.insert((at, register)) {
                continue;
            }
            let entrances = self.function.entrances(at);
            let is_outside = entrances.is_entry || entrances.is_landing_pad || entrances.is_unknown;
            if is_outside || seen.len() > limit::MAX_LINK_STEPS {
                return None;
            }
            let returned = entrances.is_return.then(|| at.checked_sub(1));
            let before = self.function.predecessors(at).iter().map(|before| before.from as usize);
            for from in before.chain(returned.flatten()) {
                let given = match self.given(register, from)? {
                    // It writes another register.
                    None => {
                        work.push((from, register));
                        continue;
                    }
                    Some(RegisterSource::Copy(source)) => {
                        work.push((from, source));
                        continue;
                    }
                    Some(RegisterSource::Thread(target, is_distance)) => (target, is_distance),
                    Some(RegisterSource::Other) => return None,
                };
                if found.as_ref().is_some_and(|found| *found != given) {
                    return None;
                }
                found = Some(given);
            }
        }
        found
    }

    /// Finds what the instruction at `at` gives `register`: `Some(None)` if it leaves it as it is.
    #[allow(clippy::option_option, reason = "no instruction there, and none that writes it")]
    fn given(&mut self, register: u8, at: usize) -> Option<Option<RegisterSource>> {
        let action = self.translator.action(at)?;
        if matches!(action.exit, Exit::Call(_)) {
            if register == RETURNED {
                let target = self.index_argument(at);
                let given = target
                    .map_or(RegisterSource::Other, |target| RegisterSource::Thread(target, false));
                return Some(Some(given));
            }
            return Some(CALLER_SAVED.contains(&register).then_some(RegisterSource::Other));
        }
        let written = action.assignments.iter().find(|it| it.to == register);
        Some(written.map(|assignment| self.written(&action, assignment, at)))
    }

    fn written(&mut self, action: &Action, assignment: &Assignment, at: usize) -> RegisterSource {
        let register = assignment.to;
        let operand = action.reading.operand.map(|operand| operand.address);
        match assignment.value {
            _ if assignment.width != Width::Whole => RegisterSource::Other,
            Expression::Value(Source::Register(source)) => RegisterSource::Copy(source),
            Expression::Value(Source::Memory) => match self.slot(operand) {
                Some(LinkageSlot::ThreadDistance(target)) => {
                    RegisterSource::Thread(target.clone(), true)
                }
                _ => RegisterSource::Other,
            },
            // The thread's own address and the distance, in either order.
            Expression::Binary(Operation::Add, _, Source::Memory) => match self.slot(operand) {
                Some(LinkageSlot::ThreadDistance(target)) if self.is_thread_base(register, at) => {
                    let target = target.clone();
                    RegisterSource::Thread(target, false)
                }
                None if operand.is_some_and(|it| it.is_thread_base()) && !self.is_nested => {
                    self.is_nested = true;
                    let distance = self.origin(register, at);
                    self.is_nested = false;
                    match distance {
                        Some((target, true)) => RegisterSource::Thread(target, false),
                        _ => RegisterSource::Other,
                    }
                }
                _ => RegisterSource::Other,
            },
            _ => RegisterSource::Other,
        }
    }

    /// The only instruction that can have run before the one at `at`.
    fn before(&mut self, at: usize) -> Option<Action> {
        let [before] = self.function.predecessors(at) else { return None };
        let is_only = !self.function.entrances(at).is_any();
        self.translator.action(before.from as usize).filter(|_| is_only)
    }

    /// Tells whether the register was loaded with the thread's own address just before.
    fn is_thread_base(&mut self, register: u8, at: usize) -> bool {
        let is_it = |it: &Assignment| it.to == register && it.value == Expression::ThreadPointer;
        self.before(at).is_some_and(|before| before.assignments.iter().any(is_it))
    }

    /// The slot that an operand is.
    fn slot(&self, operand: Option<AddressOperand>) -> Option<&'a LinkageSlot> {
        let operand = operand.filter(|operand| operand.is_ip_relative)?;
        self.code.linkage().at(Svma(operand.displacement.cast_unsigned()))
    }

    /// Finds what `__tls_get_addr` is called with, if the call at `at` is of it.
    fn index_argument(&mut self, at: usize) -> Option<ThreadTarget> {
        let slot = match self.function.destination(at)? {
            Destination::Slot(slot) => slot,
            Destination::Code(start) => self.code.linkage_slot(start)?,
        };
        let is_it = matches!(self.code.linkage().at(slot),
            Some(LinkageSlot::Address(name)) if &**name == loader::TLS_GET_ADDR);
        let before = self.before(at).filter(|_| is_it)?;
        let argument = before.assignments.iter().find(|it| it.to == ARGUMENTS[0])?;
        let Expression::AddressOf(address) = argument.value else { return None };
        match self.slot(Some(address)) {
            Some(LinkageSlot::ThreadIndex(target)) => Some(target.clone()),
            _ => None,
        }
    }
}
