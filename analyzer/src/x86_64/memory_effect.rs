//! Reads and writes of one instruction, in a form that a sampled stack can be asked whether they happened.

use super::access::{self, AddressOperand, SegmentBase};
use super::effect::{RegisterPart, is_memory, register};
use crate::limit;
use dataspace_proto::memory::Access;
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic};

/// One value that an instruction read or wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryEffect {
    /// A register has what was read here. Its address is computed of registers that the instruction leaves as they are.
    Loaded {
        /// As many bits of it as were read.
        to: RegisterPart,
        /// The place that they were read from.
        address: AddressOperand,
    },
    /// This was written, at an address that is computed of the registers before the instruction.
    Stored {
        /// The value.
        value: StoredValue,
        /// Its size.
        n_bytes: u32,
        /// The place that it was written to.
        address: AddressOperand,
    },
    /// Something was written, and how much or where is not known.
    StoredAnywhere,
}

/// A value that an instruction wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredValue {
    /// The value of a register before the instruction.
    Register(RegisterPart),
    /// A constant.
    Immediate(u64),
    /// Any.
    Unknown,
}

/// The memory effects of `instruction`: what it reads before what it writes. Static addresses are left out, where no
/// stack is.
#[must_use]
pub(super) fn memory_effects(
    instruction: &Instruction,
    factory: &mut InstructionInfoFactory,
) -> Box<[MemoryEffect]> {
    if is_of_kernel(instruction) || writes_unsaid(instruction) {
        return Box::new([MemoryEffect::StoredAnywhere]);
    }
    if !access::is_of_memory(instruction) {
        return Box::default();
    }
    let accesses = access::accesses(instruction, factory);
    let written = accesses.iter().filter(|it| is_written(it.access));
    if written.clone().count() > limit::MAX_STORES {
        return loaded(instruction).into_iter().chain([MemoryEffect::StoredAnywhere]).collect();
    }
    let stored = written.filter_map(|it| {
        if it.size == 0 || it.is_repeated {
            return Some(MemoryEffect::StoredAnywhere);
        }
        let has_register = it.address.base.is_some() || it.address.index.is_some();
        let is_static = it.address.segment == SegmentBase::Flat && !has_register;
        let value = stored_value(instruction);
        let stored = MemoryEffect::Stored { value, n_bytes: it.size, address: it.address };
        (!is_static).then_some(stored)
    });
    loaded(instruction).into_iter().chain(stored).collect()
}

/// Tells whether the kernel runs in place of the instruction, and may write anywhere.
fn is_of_kernel(instruction: &Instruction) -> bool {
    let is_call = matches!(instruction.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter);
    let flow = instruction.flow_control();
    is_call || matches!(flow, FlowControl::Interrupt | FlowControl::XbeginXabortXend)
}

/// Tells whether the instruction writes to memory that its operands do not tell of, or tell of in part.
fn writes_unsaid(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    let by_cell = matches!(instruction.mnemonic(), M::Clzero | M::Tilestored);
    let by_padlock = matches!(
        instruction.mnemonic(),
        M::Xstore
            | M::Xcryptcbc
            | M::Xcryptcfb
            | M::Xcryptctr
            | M::Xcryptecb
            | M::Xcryptofb
            | M::Xsha1
            | M::Xsha256
    );
    by_cell || by_padlock
}

const fn is_written(access: Access) -> bool {
    matches!(access, Access::Store | Access::LoadStore)
}

/// The value that a move or a push writes.
fn stored_value(instruction: &Instruction) -> StoredValue {
    let operand = match instruction.mnemonic() {
        Mnemonic::Mov if is_memory(instruction, 0) => 1,
        Mnemonic::Push => 0,
        _ => return StoredValue::Unknown,
    };
    match (register(instruction, operand), instruction.try_immediate(operand)) {
        (Some(part), _) => StoredValue::Register(part),
        (None, Ok(value)) => StoredValue::Immediate(value),
        (None, Err(_)) => StoredValue::Unknown,
    }
}

/// The value that a move reads into a general register.
fn loaded(instruction: &Instruction) -> Option<MemoryEffect> {
    let mnemonic = instruction.mnemonic();
    let is_move =
        matches!(mnemonic, Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd);
    if !is_move || !is_memory(instruction, 1) {
        return None;
    }
    let to = register(instruction, 0)?;
    let address = access::operand(instruction);
    let is_kept = address.base.is_some() && !address.has_any(Some(to.register));
    let width_bits = instruction.memory_size().size() as u32 * 8;
    let is_whole = matches!(width_bits, 8 | 16 | 32 | 64) && width_bits <= to.width_bits;
    let to = RegisterPart { width_bits, ..to };
    (is_kept && is_whole && address.segment == SegmentBase::Flat)
        .then_some(MemoryEffect::Loaded { to, address })
}
