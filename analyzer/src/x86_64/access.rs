//! The memory that one instruction touches, and its address from sampled registers.

use super::abi::{dwarf_number, general_register, sampled_register};
use super::moved_value::MovedValue;
use super::state::State;
use crate::types::bit_range::BitRange;
use crate::types::value_kind::ValueKind;
use dataspace_proto::address::Svma;
use dataspace_proto::memory::Access;
use dataspace_proto::register::Register as Sampled;
use iced_x86::{
    Instruction, InstructionInfoFactory, MemorySize, OpAccess, OpKind, Register, UsedMemory,
};

/// Part of an instruction that an access belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A memory operand that is written out: `mov 8(%rdi),%rax`.
    Operand,
    /// The stack slot of `push`, `pop`, `call`, `ret`.
    StackSlot,
    /// The operands of a string instruction, in rsi and rdi.
    String,
}

/// The segment an address is in, where that changes the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentBase {
    /// Base 0.
    Flat,
    /// FS: the thread's own base, which no sample holds.
    Thread,
    /// GS, whose base no sample holds either.
    Other,
}

/// One register of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRegister {
    /// The register, 64 bits wide; `None` for one that is not sampled, as a vector of indices.
    pub register: Option<Sampled>,
    /// Its DWARF number, where it has one.
    pub dwarf: Option<u16>,
    /// The address uses only its low 32 bits.
    pub is_32_bit: bool,
}

/// Parts of an operand that its address is computed from (SDM volume 1, section 3.7.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressOperand {
    /// Base register.
    pub base: Option<AddressRegister>,
    /// Index register.
    pub index: Option<AddressRegister>,
    /// Factor that the index is multiplied by.
    pub scale: u8,
    /// Displacement; for RIP-relative operands the address in the file's terms.
    pub displacement: i64,
    /// Segment.
    pub segment: SegmentBase,
    /// RIP-relative: `displacement` is an [`Svma`].
    pub is_ip_relative: bool,
}

/// One memory access of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAccess {
    /// Reads, writes or both.
    pub access: Access,
    /// Bytes; 0 where it is not fixed.
    pub size: u32,
    /// Part of the instruction that it belongs to.
    pub role: Role,
    /// It is one of many that the instruction makes, each further on.
    pub is_repeated: bool,
    /// The sort of value, as far as the instruction tells.
    pub kind: ValueKind,
    /// The bits of it that are used, where masks and shifts around it tell.
    pub bits: Option<BitRange>,
    /// The register or constant that has the value too, afterwards.
    pub moved: Option<MovedValue>,
    /// The operand that its address is computed from.
    pub address: AddressOperand,
}

/// An address cannot be computed: a register it needs was overwritten or is in no sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterLoss;

impl AddressOperand {
    /// The static address, if no register is in it.
    #[must_use]
    pub fn static_address(&self) -> Option<Svma> {
        let is_static =
            self.base.is_none() && self.index.is_none() && self.segment == SegmentBase::Flat;
        is_static.then_some(Svma(self.displacement.cast_unsigned()))
    }

    /// Tells whether it is `%fs:0`, where the thread's own address is kept (psABI, TLS).
    pub(crate) fn is_thread_base(&self) -> bool {
        let has_register = self.base.is_some() || self.index.is_some() || self.is_ip_relative;
        self.segment == SegmentBase::Thread && !has_register && self.displacement == 0
    }

    /// Tells whether this register, if there is one, is part of it.
    pub(crate) fn has_any(&self, register: Option<Sampled>) -> bool {
        let mut parts = [self.base, self.index].into_iter().flatten();
        register.is_some() && parts.any(|part| part.register == register)
    }

    /// Tells whether it is computed in 32 bits.
    #[must_use]
    pub fn is_32_bit(&self) -> bool {
        [self.base, self.index].iter().flatten().any(|part| part.is_32_bit)
    }
}

impl AddressRegister {
    /// Its value in `state`.
    ///
    /// # Errors
    /// Where it is not known there.
    pub fn value(&self, state: &State) -> Result<u64, RegisterLoss> {
        self.register.and_then(|register| state.get(register)).ok_or(RegisterLoss)
    }
}

/// The memory accesses of `instruction`: written-out operands first. `lea`, `nop` and branches
/// without a memory operand have none.
#[must_use]
pub(super) fn accesses(
    instruction: &Instruction,
    factory: &mut InstructionInfoFactory,
) -> Vec<MemoryAccess> {
    let info = factory.info(instruction);
    if is_prefetch(instruction) {
        let address = operand(instruction);
        return vec![MemoryAccess {
            access: Access::Prefetch,
            size: 0,
            role: Role::Operand,
            is_repeated: false,
            kind: ValueKind::Unknown,
            bits: None,
            moved: None,
            address,
        }];
    }
    let mut found: Vec<MemoryAccess> = info
        .used_memory()
        .iter()
        .filter_map(|memory| {
            let access = access_kind(memory.access())?;
            Some(memory_access(instruction, memory, access))
        })
        .collect();
    if is_bit_string(instruction) {
        for access in &mut found {
            access.address.index = Some(UNKNOWN_REGISTER);
        }
    }
    found.sort_by_key(|access| access.role != Role::Operand);
    found
}

/// A register whose value no sample gives.
const UNKNOWN_REGISTER: AddressRegister =
    AddressRegister { register: None, dwarf: None, is_32_bit: false };

/// Tells whether the operand is only the start of a string of bits, in which a register counts (SDM
/// volume 2, BT).
#[must_use]
pub(super) fn is_bit_string(instruction: &Instruction) -> bool {
    use iced_x86::Mnemonic as M;
    matches!(instruction.mnemonic(), M::Bt | M::Bts | M::Btr | M::Btc)
        && instruction.op1_kind() == OpKind::Register
}

/// Tells whether memory is touched at the written-out operand. `lea` only computes with it, `nopl 8(%rax)` fills
/// the room before a loop, and `prefetcht0 256(%rax)` asks for a line that may belong to whatever lies further on.
pub(super) fn touches_operand(instruction: &Instruction) -> bool {
    use iced_x86::Mnemonic as M;
    instruction.op_kinds().any(|kind| kind == OpKind::Memory)
        && !matches!(instruction.mnemonic(), M::Lea | M::Nop)
        && !is_prefetch(instruction)
}

/// The address of the written-out memory operand, whether it is touched or not.
#[must_use]
pub(super) fn operand(instruction: &Instruction) -> AddressOperand {
    AddressOperand {
        base: address_register(instruction.memory_base()),
        index: address_register(instruction.memory_index()),
        scale: instruction.memory_index_scale() as u8,
        displacement: instruction.memory_displacement64().cast_signed(),
        segment: segment(instruction.memory_segment()),
        is_ip_relative: instruction.is_ip_rel_memory_operand(),
    }
}

fn segment(register: Register) -> SegmentBase {
    match register {
        Register::FS => SegmentBase::Thread,
        Register::GS => SegmentBase::Other,
        _ => SegmentBase::Flat,
    }
}

/// Tells whether the instruction may touch memory.
pub(super) fn is_of_memory(instruction: &Instruction) -> bool {
    instruction.is_stack_instruction() || instruction.op_kinds().any(is_memory)
}

/// Tells whether the instruction locks what it touches in memory (SDM vol. 3A, 9.1.2), as an exchange does unasked.
pub(super) fn is_locked(instruction: &Instruction) -> bool {
    let is_exchange = instruction.mnemonic() == iced_x86::Mnemonic::Xchg;
    instruction.has_lock_prefix() || (is_exchange && instruction.op_kinds().any(is_memory))
}

/// Tells whether an operand is in memory, written out or implied.
const fn is_memory(kind: OpKind) -> bool {
    matches!(
        kind,
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
}

/// Tells whether the instruction only asks for a line.
fn is_prefetch(instruction: &Instruction) -> bool {
    use iced_x86::Mnemonic as M;
    matches!(
        instruction.mnemonic(),
        M::Prefetch
            | M::Prefetchnta
            | M::Prefetcht0
            | M::Prefetcht1
            | M::Prefetcht2
            | M::Prefetchw
            | M::Prefetchwt1
    )
}

fn access_kind(access: OpAccess) -> Option<Access> {
    match access {
        OpAccess::Read | OpAccess::CondRead => Some(Access::Load),
        OpAccess::Write | OpAccess::CondWrite => Some(Access::Store),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => Some(Access::LoadStore),
        OpAccess::None | OpAccess::NoMemAccess => None,
    }
}

fn memory_access(instruction: &Instruction, memory: &UsedMemory, access: Access) -> MemoryAccess {
    let role = role(instruction, memory);
    let is_ip_relative = role == Role::Operand && instruction.is_ip_rel_memory_operand();
    let address = AddressOperand {
        base: address_register(memory.base()),
        index: address_register(memory.index()),
        scale: memory.scale() as u8,
        displacement: memory.displacement().cast_signed(),
        segment: segment(memory.segment()),
        is_ip_relative,
    };
    let kind = value_kind(memory.memory_size());
    let moved = if role == Role::Operand { MovedValue::of(instruction) } else { None };
    MemoryAccess {
        access,
        size: memory.memory_size().size() as u32,
        role,
        is_repeated: role == Role::String
            && (instruction.has_rep_prefix() || instruction.has_repne_prefix()),
        kind,
        bits: None,
        moved,
        address,
    }
}

/// Vectors of numbers are what copies are made with; a single one is what it says.
pub(super) const fn value_kind(size: MemorySize) -> ValueKind {
    match size {
        MemorySize::Float32 | MemorySize::Float64 => ValueKind::Float,
        _ => ValueKind::Unknown,
    }
}

fn role(instruction: &Instruction, memory: &UsedMemory) -> Role {
    let kinds = (0..instruction.op_count()).map(|operand| instruction.op_kind(operand));
    for kind in kinds {
        match kind {
            OpKind::Memory => {
                let is_same = memory.base() == instruction.memory_base()
                    && memory.index() == instruction.memory_index();
                // `push 8(%rsp)` has both: its operand has the written-out displacement.
                let is_ip = instruction.is_ip_rel_memory_operand();
                if is_ip && memory.base() == Register::None
                    || is_same && memory.displacement() == instruction.memory_displacement64()
                    || memory.base().full_register() != Register::RSP
                {
                    return Role::Operand;
                }
            }
            kind if (OpKind::MemorySegSI..=OpKind::MemoryESRDI).contains(&kind) => {
                return Role::String;
            }
            _ => {}
        }
    }
    if instruction.is_stack_instruction() { Role::StackSlot } else { Role::Operand }
}

pub(super) fn address_register(register: Register) -> Option<AddressRegister> {
    let full = register.full_register();
    if full == Register::None || full == Register::RIP {
        return None;
    }
    // `xlat` counts with AL alone.
    let sampled = sampled_register(full).filter(|_| register.is_gpr32() || register.is_gpr64());
    let dwarf = sampled.map(dwarf_number);
    Some(AddressRegister { register: sampled, dwarf, is_32_bit: register.is_gpr32() })
}

/// The register with DWARF number `number`: what a frame or a variable is counted from.
#[must_use]
pub fn register_of_dwarf(number: u16) -> Option<AddressRegister> {
    let register = general_register(number)?;
    Some(AddressRegister { register: Some(register), dwarf: Some(number), is_32_bit: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86_64::effect;
    use dataspace_proto::address::Avma;
    use dataspace_proto::register::Registers;
    use iced_x86::{Decoder, DecoderOptions};

    fn decode(code: &[u8]) -> Instruction {
        Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).decode()
    }

    fn first(code: &[u8]) -> Vec<MemoryAccess> {
        accesses(&decode(code), &mut InstructionInfoFactory::new())
    }

    fn state(values: &[(Sampled, u64)]) -> State {
        let mut registers = Registers::default();
        for (register, value) in values {
            registers.set(*register, *value);
        }
        State::sampled(&registers, 0x10_0000, None)
    }

    /// The address that the first access of `code` had, from the registers after it.
    fn undone(code: &[u8], after: &[(Sampled, u64)]) -> Result<Avma, RegisterLoss> {
        let mut state = state(after);
        let effects = effect::effects(&decode(code), &mut InstructionInfoFactory::new());
        state.undo(&effects).expect("the instruction can have left this");
        state.effective_address(&first(code)[0].address)
    }

    #[test]
    fn a_load_over_its_own_base_loses_the_address_only_afterwards() {
        let code = [0x48, 0x8b, 0x40, 0x10]; // mov 0x10(%rax),%rax
        let access = first(&code)[0];
        assert_eq!((access.access, access.size, access.role), (Access::Load, 8, Role::Operand));
        let values = [(Sampled::Rax, 0x5000)];
        assert_eq!(state(&values).effective_address(&access.address), Ok(Avma(0x5010)));
        assert_eq!(undone(&code, &values), Err(RegisterLoss));
    }

    #[test]
    fn scaled_index_and_read_modify_write() {
        let code = [0x48, 0x83, 0x44, 0xcf, 0x08, 0x01]; // addq $1,8(%rdi,%rcx,8)
        assert_eq!(first(&code)[0].access, Access::LoadStore);
        let values = [(Sampled::Rdi, 0x5000), (Sampled::Rcx, 3)];
        assert_eq!(undone(&code, &values), Ok(Avma(0x5020)));
    }

    #[test]
    fn a_push_is_undone() {
        let access = first(&[0x50])[0]; // push %rax
        assert_eq!((access.role, access.access), (Role::StackSlot, Access::Store));
        assert_eq!(undone(&[0x50], &[(Sampled::Rsp, 0x7ff8)]), Ok(Avma(0x7ff8)));
        let access = first(&[0x58])[0]; // pop %rax
        assert_eq!((access.role, access.access), (Role::StackSlot, Access::Load));
        assert_eq!(undone(&[0x58], &[(Sampled::Rsp, 0x8000)]), Ok(Avma(0x7ff8)));
    }

    #[test]
    fn push_of_memory_has_its_operand_first() {
        let found = first(&[0xff, 0x74, 0x24, 0x08]); // pushq 8(%rsp)
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].role, found[0].access), (Role::Operand, Access::Load));
        assert_eq!((found[1].role, found[1].access), (Role::StackSlot, Access::Store));
    }

    #[test]
    fn rip_relative_operands_are_static_and_biased() {
        let code = [0x8b, 0x05, 0x00, 0x10, 0x00, 0x00]; // mov 0x1000(%rip),%eax
        assert_eq!(first(&code)[0].address.static_address(), Some(Svma(0x2006)));
        assert_eq!(undone(&code, &[]), Ok(Avma(0x10_2006)));
    }

    #[test]
    fn thread_local_operands_need_the_threads_base() {
        let access = first(&[0x64, 0x8b, 0x04, 0x25, 0xfc, 0xff, 0xff, 0xff])[0]; // mov %fs:-4,%eax
        assert_eq!(access.address.segment, SegmentBase::Thread);
        assert_eq!(access.address.static_address(), None);
        let registers = Registers::default();
        let address = |base| State::sampled(&registers, 0, base).effective_address(&access.address);
        assert_eq!(address(None), Err(RegisterLoss));
        assert_eq!(address(Some(0x7000_0000_1000)), Ok(Avma(0x7000_0000_0ffc)));
    }

    #[test]
    fn lea_and_nop_touch_nothing() {
        assert!(first(&[0x48, 0x8d, 0x40, 0x10]).is_empty()); // lea 0x10(%rax),%rax
        assert!(first(&[0x0f, 0x1f, 0x40, 0x00]).is_empty()); // nopl 0(%rax)
        assert_eq!(first(&[0x0f, 0x18, 0x08])[0].access, Access::Prefetch); // prefetcht0 (%rax)
    }

    #[test]
    fn a_bit_in_a_string_of_bits_is_where_the_register_says() {
        let code = [0x48, 0x0f, 0xa3, 0x07]; // bt %rax,(%rdi)
        assert_eq!(
            undone(&code, &[(Sampled::Rdi, 0x5000), (Sampled::Rax, 512)]),
            Err(RegisterLoss)
        );
        let code = [0x48, 0x0f, 0xba, 0x27, 0x05]; // bt $5,(%rdi)
        assert_eq!(undone(&code, &[(Sampled::Rdi, 0x5000)]), Ok(Avma(0x5000)));
    }

    #[test]
    fn a_string_store_is_undone_by_its_width() {
        let code = [0x48, 0xab]; // stos %rax,(%rdi)
        assert_eq!(first(&code)[0].role, Role::String);
        let after = [(Sampled::Rdi, 0x5008), (Sampled::Rflags, 2)];
        assert_eq!(undone(&code, &after), Ok(Avma(0x5000)));
    }

    #[test]
    fn only_a_string_instruction_with_a_prefix_is_repeated() {
        let is_repeated = |code: &[u8]| first(code).iter().map(|it| it.is_repeated).collect();
        let expected: [(&[u8], Vec<bool>); 4] = [
            (&[0xa4], vec![false, false]),            // movsb
            (&[0xf3, 0xa4], vec![true, true]),        // rep movsb
            (&[0xf2, 0xae], vec![true]),              // repne scasb
            (&[0xf3, 0x0f, 0x10, 0x07], vec![false]), // movss (%rdi),%xmm0
        ];
        for (code, repeated) in expected {
            let found: Vec<bool> = is_repeated(code);
            assert_eq!(found, repeated, "{code:x?}");
        }
    }

    #[test]
    fn only_operands_without_a_register_or_segment_are_static() {
        let at = |code: &[u8]| first(code)[0].address.static_address();
        assert_eq!(at(&[0x8b, 0x04, 0x25, 0x00, 0x20, 0, 0]), Some(Svma(0x2000))); // mov 0x2000,%eax
        assert_eq!(at(&[0x8b, 0x40, 0x10]), None); // mov 0x10(%rax),%eax
        assert_eq!(at(&[0x8b, 0x04, 0xcd, 0x00, 0x20, 0, 0]), None); // mov 0x2000(,%rcx,8),%eax
        assert_eq!(at(&[0x65, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0]), None); // mov %gs:0x28,%eax
    }
}
