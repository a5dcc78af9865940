//! Origins of a register's value: the instructions that wrote it last, on every way there.

use super::abi;
use crate::limit;
use crate::x86_64::view::{View, immediate};
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use rustc_hash::FxHashSet;

/// Value of a register, as far as a jump's target needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JumpOperand {
    /// This address.
    Address(u64),
    /// A value that the instruction read from memory, at full width or sign-extended.
    Load { at: u32, n_bytes: usize },
    /// The sum of a register, as it is before the instruction, and something else.
    Sum { at: u32, left: Register, right: Addend },
    /// A parameter, or what a function returned.
    Outside,
    /// Not known.
    Lost,
}

/// Value that is added to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addend {
    /// A register, as it is before the instruction.
    Register(Register),
    /// A number, which may be an address.
    Number(u64),
    /// A value in memory.
    Memory,
}

/// Looks for definitions, within a budget for the function.
pub(super) struct Definitions<'a> {
    view: View<'a>,
    factory: InstructionInfoFactory,
    n_steps_left: usize,
}

impl<'a> Definitions<'a> {
    pub(super) fn new(view: View<'a>) -> Self {
        let factory = InstructionInfoFactory::new();
        Self { view, factory, n_steps_left: limit::MAX_TRACE_STEPS }
    }

    /// Finds the origins of the value of `register` before the instruction at `at`.
    pub(super) fn origins(&mut self, register: Register, at: u32) -> Vec<JumpOperand> {
        let mut found = Vec::new();
        let mut seen = FxHashSet::default();
        let mut work = vec![(at, register.full_register())];
        while let Some((at, register)) = work.pop() {
            let is_too_much =
                seen.len() >= limit::MAX_TRACE_WIDTH || found.len() >= limit::MAX_ORIGINS;
            if is_too_much || self.n_steps_left == 0 {
                return vec![JumpOperand::Lost];
            }
            let known = self.view.entrances.get(at as usize).copied().unwrap_or_default();
            if known.is_landing_pad || known.is_unknown {
                return vec![JumpOperand::Lost];
            }
            let calls = self.view.calls_before(at);
            if known.is_entry || !calls.is_empty() && !is_kept(register) {
                add(JumpOperand::Outside, &mut found);
            }
            // A function keeps rbx, rbp and r12 to r15 (psABI 3.2.1).
            let calls = calls.iter().filter(|_| is_kept(register)).map(|(_, call)| *call);
            for call in calls {
                if seen.insert((call, register)) {
                    work.push((call, register));
                }
            }
            let view = self.view;
            for (_, before) in view.predecessors(at) {
                self.n_steps_left = self.n_steps_left.saturating_sub(1);
                if seen.insert((before.from, register)) {
                    self.step(before.from, register, &mut work, &mut found);
                }
            }
        }
        found
    }

    /// Looks at one instruction on the way back.
    fn step(
        &mut self,
        at: u32,
        register: Register,
        work: &mut Vec<(u32, Register)>,
        found: &mut Vec<JumpOperand>,
    ) {
        let here = *self.view.instruction(at);
        match self.write(&here, register) {
            OpAccess::None => work.push((at, register)),
            OpAccess::Write | OpAccess::ReadWrite => match definition(&here, at) {
                JumpDefinition::Copy(source) => work.push((at, source)),
                JumpDefinition::Choice(source) => work.extend([(at, register), (at, source)]),
                JumpDefinition::JumpOperand(origin) => add(origin, found),
            },
            _ => match definition(&here, at) {
                JumpDefinition::Choice(source) => work.extend([(at, register), (at, source)]),
                _ => add(JumpOperand::Lost, found),
            },
        }
    }

    /// Tells how the instruction writes the register; `None` if it does not.
    fn write(&mut self, instruction: &Instruction, register: Register) -> OpAccess {
        let used = self.factory.info(instruction).used_registers();
        let mut access = OpAccess::None;
        for used in used.iter().filter(|used| used.register().full_register() == register) {
            match used.access() {
                OpAccess::Write | OpAccess::ReadWrite if access == OpAccess::None => {
                    access = used.access();
                }
                OpAccess::CondWrite | OpAccess::ReadCondWrite => access = OpAccess::CondWrite,
                _ => {}
            }
        }
        access
    }
}

fn add(origin: JumpOperand, found: &mut Vec<JumpOperand>) {
    if !found.contains(&origin) {
        found.push(origin);
    }
}

enum JumpDefinition {
    /// The value of another register.
    Copy(Register),
    /// The value of another register, or the one before.
    Choice(Register),
    JumpOperand(JumpOperand),
}

/// Returns what an instruction writes to its first operand.
fn definition(here: &Instruction, at: u32) -> JumpDefinition {
    use Mnemonic as M;
    let (target, source) = (here.op0_register(), here.op1_register());
    let from_memory = here.op1_kind() == OpKind::Memory;
    let is_whole = target.size() == 8;
    let origin = match here.mnemonic() {
        // The sign of eax is spread over rax: the distance was loaded before.
        M::Cdqe => return JumpDefinition::Copy(Register::RAX),
        M::Movsxd if !from_memory => return JumpDefinition::Copy(source.full_register()),
        M::Movsxd => JumpOperand::Load { at, n_bytes: 4 },
        M::Mov if from_memory && target.size() >= 4 => {
            JumpOperand::Load { at, n_bytes: target.size() }
        }
        M::Mov if here.op1_kind() == OpKind::Register && target.size() >= 4 => {
            return JumpDefinition::Copy(source.full_register());
        }
        M::Mov => immediate(here).map_or(JumpOperand::Lost, JumpOperand::Address),
        M::Lea if here.is_ip_rel_memory_operand() => {
            JumpOperand::Address(here.memory_displacement64())
        }
        M::Lea if is_whole => sum_of_operand(here, at),
        M::Add if is_whole => {
            let right = match here.op1_kind() {
                OpKind::Register => Addend::Register(source),
                OpKind::Memory => Addend::Memory,
                _ => Addend::Number(here.immediate(1)),
            };
            JumpOperand::Sum { at, left: target, right }
        }
        _ if is_conditional_move(here) && !from_memory => {
            return JumpDefinition::Choice(source.full_register());
        }
        _ => JumpOperand::Lost,
    };
    JumpDefinition::JumpOperand(origin)
}

/// Returns the sum that `lea` forms, where it adds up two things.
fn sum_of_operand(here: &Instruction, at: u32) -> JumpOperand {
    let (left, index) = (here.memory_base(), here.memory_index());
    match (left, index, here.memory_displacement64()) {
        (Register::None, ..) => JumpOperand::Lost,
        (left, Register::None, number) => {
            JumpOperand::Sum { at, left, right: Addend::Number(number) }
        }
        (left, index, 0) if here.memory_index_scale() == 1 => {
            JumpOperand::Sum { at, left, right: Addend::Register(index) }
        }
        _ => JumpOperand::Lost,
    }
}

fn is_conditional_move(here: &Instruction) -> bool {
    use iced_x86::{ConditionCode, FlowControl};
    here.condition_code() != ConditionCode::None
        && here.flow_control() == FlowControl::Next
        && here.op_count() == 2
}

/// Tells whether a callee leaves the register as it was.
fn is_kept(register: Register) -> bool {
    abi::sampled_register(register).is_some_and(abi::is_callee_saved)
}
