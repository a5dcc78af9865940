//! What an instruction touches, worked out from the registers it began with and by nobody else.

use crate::truth::step::State;
use dataspace_proto::register::Register;
use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register as Operand, UsedMemory,
};

/// Whether an instruction touches memory, and how that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// It touches none.
    None,
    /// The stack, implied: push, pop, call, ret, leave.
    Stack,
    /// An operand that is written out, or a string's.
    Explicit,
}

/// The touch of an instruction.
pub(crate) fn touch(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Touch {
    // A prefetch is a hint: no counter of accesses is triggered by it.
    if is_prefetch(instruction) {
        return Touch::None;
    }
    let info = factory.info(instruction);
    if !info.used_memory().iter().any(is_access) {
        return Touch::None;
    }
    match explicit_operand(instruction) {
        Some(_) => Touch::Explicit,
        None => Touch::Stack,
    }
}

/// Whether it is a call or a return, which are counted apart.
pub(crate) fn is_call_or_return(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return
    )
}

/// Whether it is a prefetch, whose wait and address no truth is known of.
pub(crate) fn is_prefetch(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Prefetch
            | Mnemonic::Prefetchnta
            | Mnemonic::Prefetcht0
            | Mnemonic::Prefetcht1
            | Mnemonic::Prefetcht2
            | Mnemonic::Prefetchw
            | Mnemonic::Prefetchwt1
    )
}

fn is_access(memory: &UsedMemory) -> bool {
    !matches!(memory.access(), OpAccess::None | OpAccess::NoMemAccess)
}

fn explicit_operand(instruction: &Instruction) -> Option<u32> {
    let is_memory = |operand: &u32| {
        matches!(
            instruction.op_kind(*operand),
            OpKind::Memory
                | OpKind::MemorySegSI
                | OpKind::MemorySegESI
                | OpKind::MemorySegRSI
                | OpKind::MemorySegDI
                | OpKind::MemorySegEDI
                | OpKind::MemorySegRDI
                | OpKind::MemoryESDI
                | OpKind::MemoryESEDI
                | OpKind::MemoryESRDI
        )
    };
    (0..instruction.op_count()).find(is_memory)
}

/// Where the first written-out operand is, else the implied one. `None` for a gather, whose
/// addresses are in vector registers.
pub(crate) fn effective_address(
    instruction: &Instruction,
    state: &State,
    factory: &mut InstructionInfoFactory,
) -> Option<u64> {
    if let Some(operand) = explicit_operand(instruction) {
        return instruction.virtual_address(operand, 0, |register, _, _| value(state, register));
    }
    addresses(instruction, state, factory).first().copied()
}

/// Every address that the instruction touches.
pub(crate) fn addresses(
    instruction: &Instruction,
    state: &State,
    factory: &mut InstructionInfoFactory,
) -> Vec<u64> {
    let used = factory.info(instruction).used_memory().iter().filter(|memory| is_access(memory));
    used.filter_map(|memory| memory.virtual_address(0, |register, _, _| value(state, register)))
        .collect()
}

/// What a load of eight bytes must bring: its register, and the address.
pub(crate) fn plain_load(instruction: &Instruction, state: &State) -> Option<(Operand, u64)> {
    if instruction.code() != Code::Mov_r64_rm64 || instruction.op1_kind() != OpKind::Memory {
        return None;
    }
    let address = instruction.virtual_address(1, 0, |register, _, _| value(state, register))?;
    Some((instruction.op0_register(), address))
}

/// The value of a register that a sample carries, or of a segment's base.
pub(crate) fn value(state: &State, register: Operand) -> Option<u64> {
    let whole = match register.full_register() {
        Operand::RAX => state.get(Register::Rax),
        Operand::RBX => state.get(Register::Rbx),
        Operand::RCX => state.get(Register::Rcx),
        Operand::RDX => state.get(Register::Rdx),
        Operand::RSI => state.get(Register::Rsi),
        Operand::RDI => state.get(Register::Rdi),
        Operand::RBP => state.get(Register::Rbp),
        Operand::RSP => state.get(Register::Rsp),
        Operand::R8 => state.get(Register::R8),
        Operand::R9 => state.get(Register::R9),
        Operand::R10 => state.get(Register::R10),
        Operand::R11 => state.get(Register::R11),
        Operand::R12 => state.get(Register::R12),
        Operand::R13 => state.get(Register::R13),
        Operand::R14 => state.get(Register::R14),
        Operand::R15 => state.get(Register::R15),
        Operand::FS => state.fs_base(),
        Operand::CS | Operand::DS | Operand::ES | Operand::SS | Operand::GS => 0,
        _ => return None,
    };
    Some(match register.size() {
        1 => whole & 0xff,
        2 if register.is_gpr() => whole & 0xffff,
        4 => whole & 0xffff_ffff,
        _ => whole,
    })
}

/// Instructions that the hardware may make one of with a conditional branch behind them.
pub(crate) fn is_fusible(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Cmp
            | Mnemonic::Test
            | Mnemonic::Add
            | Mnemonic::Sub
            | Mnemonic::And
            | Mnemonic::Inc
            | Mnemonic::Dec
    )
}
