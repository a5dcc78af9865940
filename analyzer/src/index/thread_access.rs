//! Accesses of thread-local variables through the tables that the loader fills: which variable it is
//! tells the slot that the address was formed with (ABI for thread-local storage, chapter 4).

use crate::code::image::CodeImage;
use crate::dataflow::Number;
use crate::dwarf::debug_info::DebugInfo;
use crate::elf::data_symbol::DataPlace;
use crate::elf::linkage::{Slot, ThreadTarget};
use crate::index::site::{Answer, IndexedAnswer, OwnedRoot, TypeAnswer};
use crate::known::loader;
use crate::limit;
use crate::types::data_object::{self, Root};
use crate::x86_64::abi::is_callee_saved;
use crate::x86_64::access::{MemoryAccess, Role, SegmentBase, sampled_register};
use crate::x86_64::function::FunctionCode;
use dataspace_proto::address::Svma;
use dataspace_proto::register::Register as Sampled;
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// What an operand's base register holds: the place of this offset in the load object's own block.
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
                IndexedAnswer::new(from, (index, Number::ANY), root, u64::from(access.size));
            return Some(TypeAnswer::Indexed(Arc::new(answer)));
        }
        let root = Root::Variable(&variable.name);
        let size = u64::from(access.size);
        let (object, offset) = data_object::name(&variable.layout, root, into, size)?;
        Some(TypeAnswer::Object(Arc::new(Answer { object, offset })))
    }
}

/// What the code before the access at `svma` tells of its base register.
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
    let operand = function.instruction(at)?.memory_base().full_register();
    if sampled_register(operand) != Some(base) {
        return None;
    }
    let mut trace =
        Trace { function, code, factory: InstructionInfoFactory::new(), is_nested: false };
    let (target, is_distance) = trace.origin(operand, at)?;
    let ThreadTarget::Own { offset, is_certain } = target else { return None };
    // A distance is no address by itself.
    let is_used_so = is_distance == (access.address.segment == SegmentBase::Thread);
    is_used_so.then_some(ThreadLink { base, offset, is_distance, is_certain })
}

/// What a register was given.
#[derive(Clone, PartialEq, Eq)]
enum Given {
    /// The distance of a thread-local variable, or its address.
    Thread(ThreadTarget, bool),
    /// The value of another register before.
    Copy(Register),
    /// Anything else.
    Other,
}

struct Trace<'a> {
    function: &'a FunctionCode,
    code: &'a CodeImage,
    factory: InstructionInfoFactory,
    /// The sum of a distance and the thread's address is looked into, which is no sum itself.
    is_nested: bool,
}

impl Trace<'_> {
    /// What `register` holds before the instruction at `at`: which variable, and whether its
    /// distance. Every way there must give the same.
    fn origin(&mut self, register: Register, at: usize) -> Option<(ThreadTarget, bool)> {
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
                    Some(Given::Copy(source)) => {
                        work.push((from, source));
                        continue;
                    }
                    Some(Given::Thread(target, is_distance)) => (target, is_distance),
                    Some(Given::Other) => return None,
                };
                if found.as_ref().is_some_and(|found| *found != given) {
                    return None;
                }
                found = Some(given);
            }
        }
        found
    }

    /// What the instruction at `at` gives `register`: `Some(None)` if it leaves it as it is.
    #[allow(clippy::option_option, reason = "no instruction there, and none that writes it")]
    fn given(&mut self, register: Register, at: usize) -> Option<Option<Given>> {
        let function = self.function;
        let here = function.instruction(at)?;
        if here.mnemonic() == Mnemonic::Call {
            if register == Register::RAX {
                let target = self.index_argument(here, at);
                let given = target.map_or(Given::Other, |target| Given::Thread(target, false));
                return Some(Some(given));
            }
            let is_kept = sampled_register(register).is_some_and(is_callee_saved);
            return Some((!is_kept).then_some(Given::Other));
        }
        let used = self.factory.info(here).used_registers();
        let is_written = used.iter().any(|used| {
            let is_read = matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
            used.register().full_register() == register
                && !is_read
                && used.access() != OpAccess::None
        });
        Some(is_written.then(|| self.written(here, register, at)))
    }

    fn written(&mut self, here: &Instruction, register: Register, at: usize) -> Given {
        if here.op0_register() != register {
            return Given::Other;
        }
        let is_memory = here.op1_kind() == OpKind::Memory;
        match here.mnemonic() {
            Mnemonic::Mov if here.op1_kind() == OpKind::Register => {
                Given::Copy(here.op1_register().full_register())
            }
            Mnemonic::Mov if is_memory => match self.slot(here) {
                Some(Slot::ThreadDistance(target)) => Given::Thread(target.clone(), true),
                _ => Given::Other,
            },
            // The thread's own address and the distance, in either order.
            Mnemonic::Add if is_memory => match self.slot(here) {
                Some(Slot::ThreadDistance(target)) if self.is_thread_base(register, at) => {
                    Given::Thread(target.clone(), false)
                }
                None if is_own_address(here) && !self.is_nested => {
                    self.is_nested = true;
                    let distance = self.origin(register, at);
                    self.is_nested = false;
                    match distance {
                        Some((target, true)) => Given::Thread(target, false),
                        _ => Given::Other,
                    }
                }
                _ => Given::Other,
            },
            _ => Given::Other,
        }
    }

    /// Whether the register was loaded with the thread's own address just before.
    fn is_thread_base(&self, register: Register, at: usize) -> bool {
        let [before] = self.function.predecessors(at) else { return false };
        let here = self.function.instruction(before.from as usize);
        here.is_some_and(|here| {
            here.mnemonic() == Mnemonic::Mov
                && here.op0_register() == register
                && is_own_address(here)
                && !self.function.entrances(at).is_any()
        })
    }

    /// The slot that the instruction's operand is.
    fn slot(&self, here: &Instruction) -> Option<&Slot> {
        let is_slot = here.is_ip_rel_memory_operand();
        is_slot.then(|| self.code.linkage().at(Svma(here.memory_displacement64())))?
    }

    /// What `__tls_get_addr` is called with, if that is what the call is of.
    fn index_argument(&self, call: &Instruction, at: usize) -> Option<ThreadTarget> {
        let slot = match call.op0_kind() {
            OpKind::Memory if call.is_ip_rel_memory_operand() => call.memory_displacement64(),
            OpKind::NearBranch64 => self.code.linkage_slot(Svma(call.near_branch64()))?.0,
            _ => return None,
        };
        let is_it = matches!(self.code.linkage().at(Svma(slot)),
            Some(Slot::Address(name)) if &**name == loader::TLS_GET_ADDR);
        let [before] = self.function.predecessors(at) else { return None };
        let lea = self.function.instruction(before.from as usize)?;
        let is_argument = lea.mnemonic() == Mnemonic::Lea && lea.op0_register() == Register::RDI;
        if !is_it || !is_argument || self.function.entrances(at).is_any() {
            return None;
        }
        match self.slot(lea) {
            Some(Slot::ThreadIndex(target)) => Some(target.clone()),
            _ => None,
        }
    }
}

/// Whether the operand is `%fs:0`, where the thread's own address is kept.
fn is_own_address(here: &Instruction) -> bool {
    here.segment_prefix() == Register::FS
        && here.memory_base() == Register::None
        && here.memory_index() == Register::None
        && here.memory_displacement64() == 0
}
