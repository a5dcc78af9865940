//! The memory that one instruction touches, and its address from sampled registers.

use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::memory::Access;
use dataspace_proto::register::{Register as Sampled, Registers};
use iced_x86::{
    Instruction, InstructionInfoFactory, OpAccess, OpKind, Register, UsedMemory, UsedRegister,
};

/// What part of an instruction an access belongs to.
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
    /// The thread's own base, which no sample holds.
    Thread,
}

/// How a register that an address needs stands in registers sampled after the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// As before.
    Intact,
    /// Changed by a known distance: the value before is the sampled one minus this.
    Moved(i64),
    /// Moved by this up or down, by the direction flag.
    MovedByDirection(i64),
    /// Overwritten.
    Lost,
}

/// One register of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRegister {
    /// Which, 64 bits wide; `None` for one that is not sampled, as a vector of indices.
    pub register: Option<Sampled>,
    /// Its DWARF number, where it has one.
    pub dwarf: Option<u16>,
    /// What the instruction itself does to it.
    pub recovery: Recovery,
    /// The address uses only its low 32 bits.
    pub is_32_bit: bool,
}

/// One memory access of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAccess {
    /// Reads, writes or both.
    pub access: Access,
    /// Bytes; 0 where it is not fixed.
    pub size: u32,
    /// What part of the instruction it is.
    pub role: Role,
    /// Base register.
    pub base: Option<AddressRegister>,
    /// Index register.
    pub index: Option<AddressRegister>,
    /// What the index is multiplied by.
    pub scale: u8,
    /// Displacement; for RIP-relative operands the address in the file's terms.
    pub displacement: i64,
    /// Segment.
    pub segment: SegmentBase,
    /// RIP-relative: `displacement` is an [`Svma`].
    pub is_ip_relative: bool,
}

/// Which state of the registers a sample holds, relative to the trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterState {
    /// Before it.
    Before,
    /// Just after it.
    After,
}

/// An address cannot be computed: a register it needs was overwritten or is in no sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterLoss;

impl MemoryAccess {
    /// The static address, if no register is in it.
    #[must_use]
    pub fn static_address(&self) -> Option<Svma> {
        let is_static =
            self.base.is_none() && self.index.is_none() && self.segment == SegmentBase::Flat;
        is_static.then_some(Svma(self.displacement.cast_unsigned()))
    }

    /// The effective address (SDM volume 1, section 3.7.5) from sampled registers. `bias` is what
    /// the loader added to the file's addresses.
    ///
    /// # Errors
    /// [`RegisterLoss`], as it says.
    pub fn effective_address(
        &self,
        registers: &Registers,
        state: RegisterState,
        bias: u64,
    ) -> Result<Avma, RegisterLoss> {
        if self.segment == SegmentBase::Thread {
            return Err(RegisterLoss);
        }
        let value = |part: &Option<AddressRegister>| match part {
            Some(part) => part.value(registers, state),
            None => Ok(0),
        };
        let sum = value(&self.base)?
            .wrapping_add(value(&self.index)?.wrapping_mul(u64::from(self.scale)))
            .wrapping_add_signed(self.displacement);
        let is_32_bit = [self.base, self.index].iter().flatten().any(|part| part.is_32_bit);
        let sum = if is_32_bit { sum & 0xffff_ffff } else { sum };
        Ok(Avma(if self.is_ip_relative { sum.wrapping_add(bias) } else { sum }))
    }
}

impl AddressRegister {
    /// Its value before the instruction.
    ///
    /// # Errors
    /// Where the instruction overwrote it or it is in no sample.
    pub fn value(&self, registers: &Registers, state: RegisterState) -> Result<u64, RegisterLoss> {
        const DIRECTION: u64 = 1 << 10;
        let register = self.register.ok_or(RegisterLoss)?;
        let sampled = registers.get(register).ok_or(RegisterLoss)?;
        if state == RegisterState::Before {
            return Ok(sampled);
        }
        match self.recovery {
            Recovery::Intact => Ok(sampled),
            Recovery::Moved(by) => Ok(sampled.wrapping_add_signed(by.wrapping_neg())),
            Recovery::MovedByDirection(by) => {
                let flags = registers.get(Sampled::Rflags).unwrap_or(0);
                let by = if flags & DIRECTION == 0 { by } else { by.wrapping_neg() };
                Ok(sampled.wrapping_add_signed(by.wrapping_neg()))
            }
            Recovery::Lost => Err(RegisterLoss),
        }
    }
}

/// The memory accesses of `instruction`: written-out operands first. `lea`, `nop` and branches
/// without a memory operand have none.
#[must_use]
pub fn accesses(
    instruction: &Instruction,
    factory: &mut InstructionInfoFactory,
) -> Vec<MemoryAccess> {
    let info = factory.info(instruction);
    if is_prefetch(instruction) {
        let parts = AddressParts::of_operand(instruction);
        return vec![memory_access(instruction, &parts, info.used_registers(), Access::Prefetch)];
    }
    let mut found: Vec<MemoryAccess> = info
        .used_memory()
        .iter()
        .filter_map(|memory| {
            let access = access_kind(memory.access())?;
            Some(memory_access(instruction, &memory.into(), info.used_registers(), access))
        })
        .collect();
    found.sort_by_key(|access| access.role != Role::Operand);
    found
}

/// The parts of an address, whether from a used-memory list or from the operand itself.
struct AddressParts {
    segment: Register,
    base: Register,
    index: Register,
    scale: u32,
    displacement: u64,
    size: usize,
}

impl From<&UsedMemory> for AddressParts {
    fn from(memory: &UsedMemory) -> Self {
        Self {
            segment: memory.segment(),
            base: memory.base(),
            index: memory.index(),
            scale: memory.scale(),
            displacement: memory.displacement(),
            size: memory.memory_size().size(),
        }
    }
}

impl AddressParts {
    fn of_operand(instruction: &Instruction) -> Self {
        Self {
            segment: instruction.memory_segment(),
            base: instruction.memory_base(),
            index: instruction.memory_index(),
            scale: instruction.memory_index_scale(),
            displacement: instruction.memory_displacement64(),
            size: 0,
        }
    }
}

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

fn memory_access(
    instruction: &Instruction,
    parts: &AddressParts,
    used: &[UsedRegister],
    access: Access,
) -> MemoryAccess {
    let role = role(instruction, parts);
    let size = parts.size as u32;
    let is_ip_relative = role == Role::Operand && instruction.is_ip_rel_memory_operand();
    let part = |register: Register| {
        let is_real = register != Register::None && register.full_register() != Register::RIP;
        is_real.then(|| address_register(instruction, register, used, role, size))
    };
    let segment = match parts.segment {
        Register::FS | Register::GS => SegmentBase::Thread,
        _ => SegmentBase::Flat,
    };
    MemoryAccess {
        access,
        size,
        role,
        base: part(parts.base),
        index: part(parts.index),
        scale: parts.scale as u8,
        displacement: parts.displacement.cast_signed(),
        segment,
        is_ip_relative,
    }
}

fn role(instruction: &Instruction, memory: &AddressParts) -> Role {
    let kinds = (0..instruction.op_count()).map(|operand| instruction.op_kind(operand));
    for kind in kinds {
        match kind {
            OpKind::Memory => {
                let is_same = memory.base == instruction.memory_base()
                    && memory.index == instruction.memory_index();
                // `push 8(%rsp)` has both: its operand has the written-out displacement.
                let is_ip = instruction.is_ip_rel_memory_operand();
                if is_ip && memory.base == Register::None
                    || is_same && memory.displacement == instruction.memory_displacement64()
                    || memory.base.full_register() != Register::RSP
                {
                    return Role::Operand;
                }
            }
            OpKind::MemorySegSI
            | OpKind::MemorySegESI
            | OpKind::MemorySegRSI
            | OpKind::MemorySegDI
            | OpKind::MemorySegEDI
            | OpKind::MemorySegRDI
            | OpKind::MemoryESDI
            | OpKind::MemoryESEDI
            | OpKind::MemoryESRDI => return Role::String,
            _ => {}
        }
    }
    if instruction.is_stack_instruction() { Role::StackSlot } else { Role::Operand }
}

fn address_register(
    instruction: &Instruction,
    register: Register,
    used: &[UsedRegister],
    role: Role,
    size: u32,
) -> AddressRegister {
    let full = register.full_register();
    let sampled = sampled_register(full);
    let stack_move = i64::from(instruction.stack_pointer_increment());
    let recovery = if !is_written(used, full) {
        Recovery::Intact
    } else if full == Register::RSP && instruction.is_stack_instruction() && stack_move != 0 {
        Recovery::Moved(stack_move)
    } else if role == Role::String {
        // Of a repeated one the last element is what a finished instruction touched last.
        Recovery::MovedByDirection(i64::from(size))
    } else {
        Recovery::Lost
    };
    AddressRegister {
        register: sampled,
        dwarf: sampled.map(dwarf_number),
        recovery,
        is_32_bit: register.is_gpr32(),
    }
}

fn is_written(used: &[UsedRegister], full: Register) -> bool {
    used.iter().any(|used| {
        used.register().full_register() == full
            && matches!(
                used.access(),
                OpAccess::Write
                    | OpAccess::CondWrite
                    | OpAccess::ReadWrite
                    | OpAccess::ReadCondWrite
            )
    })
}

/// The register with DWARF number `number`, as it stands around `instruction`: what a frame or a
/// variable is counted from.
#[must_use]
pub fn register_around(
    number: u16,
    instruction: &Instruction,
    factory: &mut InstructionInfoFactory,
) -> Option<AddressRegister> {
    let sampled = from_dwarf(number)?;
    let used = factory.info(instruction).used_registers();
    let is_lost = used.iter().any(|used| {
        sampled_register(used.register().full_register()) == Some(sampled)
            && is_written(std::slice::from_ref(used), used.register().full_register())
    });
    let recovery = if is_lost { Recovery::Lost } else { Recovery::Intact };
    Some(AddressRegister {
        register: Some(sampled),
        dwarf: Some(number),
        recovery,
        is_32_bit: false,
    })
}

fn sampled_register(register: Register) -> Option<Sampled> {
    Some(match register {
        Register::RAX => Sampled::Rax,
        Register::RBX => Sampled::Rbx,
        Register::RCX => Sampled::Rcx,
        Register::RDX => Sampled::Rdx,
        Register::RSI => Sampled::Rsi,
        Register::RDI => Sampled::Rdi,
        Register::RBP => Sampled::Rbp,
        Register::RSP => Sampled::Rsp,
        Register::R8 => Sampled::R8,
        Register::R9 => Sampled::R9,
        Register::R10 => Sampled::R10,
        Register::R11 => Sampled::R11,
        Register::R12 => Sampled::R12,
        Register::R13 => Sampled::R13,
        Register::R14 => Sampled::R14,
        Register::R15 => Sampled::R15,
        _ => return None,
    })
}

/// DWARF register numbers of x86-64 (psABI, figure 3.36).
const DWARF_ORDER: [Sampled; 16] = [
    Sampled::Rax,
    Sampled::Rdx,
    Sampled::Rcx,
    Sampled::Rbx,
    Sampled::Rsi,
    Sampled::Rdi,
    Sampled::Rbp,
    Sampled::Rsp,
    Sampled::R8,
    Sampled::R9,
    Sampled::R10,
    Sampled::R11,
    Sampled::R12,
    Sampled::R13,
    Sampled::R14,
    Sampled::R15,
];

fn dwarf_number(register: Sampled) -> u16 {
    let found = DWARF_ORDER.iter().position(|candidate| *candidate == register);
    // RIP and RFLAGS never address memory; 16 is the return address column.
    found.map_or(16, |number| number as u16)
}

/// The register with DWARF number `number`.
#[must_use]
pub fn from_dwarf(number: u16) -> Option<Sampled> {
    DWARF_ORDER.get(usize::from(number)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn first(code: &[u8]) -> Vec<MemoryAccess> {
        let instruction = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).decode();
        accesses(&instruction, &mut InstructionInfoFactory::new())
    }

    fn registers(values: &[(Sampled, u64)]) -> Registers {
        let mut registers = Registers::default();
        for (register, value) in values {
            registers.set(*register, *value);
        }
        registers
    }

    #[test]
    fn a_load_over_its_own_base_loses_the_address_only_afterwards() {
        let access = first(&[0x48, 0x8b, 0x40, 0x10])[0]; // mov 0x10(%rax),%rax
        assert_eq!((access.access, access.size, access.role), (Access::Load, 8, Role::Operand));
        let sampled = registers(&[(Sampled::Rax, 0x5000)]);
        let address = |state| access.effective_address(&sampled, state, 0);
        assert_eq!(address(RegisterState::Before), Ok(Avma(0x5010)));
        assert_eq!(address(RegisterState::After), Err(RegisterLoss));
    }

    #[test]
    fn scaled_index_and_read_modify_write() {
        let access = first(&[0x48, 0x83, 0x44, 0xcf, 0x08, 0x01])[0]; // addq $1,8(%rdi,%rcx,8)
        assert_eq!(access.access, Access::LoadStore);
        let sampled = registers(&[(Sampled::Rdi, 0x5000), (Sampled::Rcx, 3)]);
        assert_eq!(access.effective_address(&sampled, RegisterState::After, 0), Ok(Avma(0x5020)));
    }

    #[test]
    fn a_push_is_undone() {
        let access = first(&[0x50])[0]; // push %rax
        assert_eq!((access.role, access.access), (Role::StackSlot, Access::Store));
        let after = registers(&[(Sampled::Rsp, 0x7ff8)]);
        assert_eq!(access.effective_address(&after, RegisterState::After, 0), Ok(Avma(0x7ff8)));
        let access = first(&[0x58])[0]; // pop %rax
        assert_eq!((access.role, access.access), (Role::StackSlot, Access::Load));
        let after = registers(&[(Sampled::Rsp, 0x8000)]);
        assert_eq!(access.effective_address(&after, RegisterState::After, 0), Ok(Avma(0x7ff8)));
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
        let access = first(&[0x8b, 0x05, 0x00, 0x10, 0x00, 0x00])[0]; // mov 0x1000(%rip),%eax
        assert_eq!(access.static_address(), Some(Svma(0x2006)));
        let address =
            access.effective_address(&Registers::default(), RegisterState::After, 0x10_0000);
        assert_eq!(address, Ok(Avma(0x10_2006)));
    }

    #[test]
    fn thread_local_operands_have_no_address() {
        let access = first(&[0x64, 0x8b, 0x04, 0x25, 0xfc, 0xff, 0xff, 0xff])[0]; // mov %fs:-4,%eax
        assert_eq!(access.segment, SegmentBase::Thread);
        assert_eq!(access.static_address(), None);
    }

    #[test]
    fn lea_and_nop_touch_nothing() {
        assert!(first(&[0x48, 0x8d, 0x40, 0x10]).is_empty()); // lea 0x10(%rax),%rax
        assert!(first(&[0x0f, 0x1f, 0x40, 0x00]).is_empty()); // nopl 0(%rax)
        assert_eq!(first(&[0x0f, 0x18, 0x08])[0].access, Access::Prefetch); // prefetcht0 (%rax)
    }

    #[test]
    fn a_string_store_is_undone_by_its_width() {
        let access = first(&[0x48, 0xab])[0]; // stos %rax,(%rdi)
        assert_eq!(access.role, Role::String);
        let after = registers(&[(Sampled::Rdi, 0x5008)]);
        assert_eq!(access.effective_address(&after, RegisterState::After, 0), Ok(Avma(0x5000)));
    }
}
