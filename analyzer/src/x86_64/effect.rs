//! Effects of one instruction on the general registers and status flags, in a form that can be
//! stepped back over without the instruction.

use super::abi;
use super::access::{self, AddressOperand, SegmentBase};
use super::arithmetic::Operation;
use super::flags::Condition;
use super::state::State;
use dataspace_proto::register::Register;
use iced_x86::{
    Code, Instruction, InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register as Iced, RflagsBits, UsedRegister,
};

/// A register or the part of one that an operand names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterPart {
    /// The whole register.
    pub register: Register,
    /// The second byte: AH, BH, CH, DH.
    pub is_high: bool,
    /// 8, 16, 32 or 64.
    pub width_bits: u32,
}

impl RegisterPart {
    /// All 64 bits.
    #[must_use]
    pub const fn whole(register: Register) -> Self {
        Self { register, is_high: false, width_bits: 64 }
    }

    /// The part that iced's register is; `None` for one that is no general register.
    #[must_use]
    pub(super) fn of(register: Iced) -> Option<Self> {
        if !register.is_gpr() {
            return None;
        }
        let is_high = matches!(register, Iced::AH | Iced::BH | Iced::CH | Iced::DH);
        let width_bits = register.size() as u32 * 8;
        let register = abi::sampled_register(register.full_register())?;
        Some(Self { register, is_high, width_bits })
    }

    /// Its lowest bit.
    #[must_use]
    pub const fn shift(self) -> u32 {
        if self.is_high { 8 } else { 0 }
    }

    /// Its bits.
    #[must_use]
    pub const fn mask(self) -> u64 {
        (u64::MAX >> (64 - self.width_bits)) << self.shift()
    }

    /// The bits that a write to it changes (SDM volume 1, section 3.4.1.1).
    #[must_use]
    pub const fn written_mask(self) -> u64 {
        if self.width_bits == 32 { u64::MAX } else { self.mask() }
    }
}

/// The second operand of an arithmetic instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A constant.
    Immediate(u64),
    /// A register.
    Register(RegisterPart),
    /// Memory, or anything else that no sample holds.
    Memory,
}

/// One arithmetic instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arithmetic {
    /// Its operation.
    pub operation: Operation,
    /// First operand and result; `None` for memory.
    pub to: Option<RegisterPart>,
    /// Second operand.
    pub with: Operand,
    /// Width of both.
    pub width_bits: u32,
    /// Flags that it changes, in iced's bits.
    pub modified: u32,
}

/// One thing that an instruction did. The effects of an instruction are in the order in which they
/// are undone.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "`to` is what was written, `from` what was read, of which width")]
pub enum Effect {
    /// A value that is not followed.
    Overwritten(RegisterPart),
    /// The same, and perhaps nothing was written.
    Unfollowed(RegisterPart),
    /// A constant.
    Constant { to: RegisterPart, value: u64 },
    /// Zero, by `xor` or `sub` of a register with itself.
    Zeroed { to: RegisterPart, modified: u32 },
    /// A register's value.
    Copied { to: RegisterPart, from: RegisterPart },
    /// A value of fewer bits, from a register or memory.
    Extended { to: RegisterPart, from: Option<RegisterPart>, from_width: u32, is_signed: bool },
    /// The sign of a register in every bit.
    SignSpread { to: RegisterPart, from: RegisterPart },
    /// The address of a memory operand.
    AddressOf { to: RegisterPart, address: AddressOperand },
    /// Arithmetic.
    Arithmetic(Arithmetic),
    /// Flags changed in a way that is not followed, in iced's bits.
    Flags { modified: u32 },
    /// The direction flag was set or cleared.
    Direction,
    /// Moved by a constant.
    Moved { register: Register, by: i64 },
    /// Moved by this up or down, by the direction flag.
    Stepped { register: Register, size: u32 },
    /// 0 or 1, by the flags.
    ConditionSet { to: RegisterPart, condition: Condition },
    /// Another value if the flags say so.
    ConditionMoved { to: RegisterPart, from: Option<RegisterPart>, condition: Condition },
    /// Two registers swapped.
    Exchanged(RegisterPart, RegisterPart),
    /// `leave`.
    FrameLeft,
    /// `mov %fs:0,%reg`: the thread's own storage begins with its own address (psABI, TLS).
    ThreadBaseRead { to: RegisterPart },
    /// Memory was touched here, so that the address was a user's.
    Touched(AddressOperand),
}

/// The registers that effects write to, a bit each by their numbers.
#[must_use]
pub fn written(effects: &[Effect]) -> u32 {
    let is_written = |register: &&Register| effects.iter().any(|effect| effect.writes(**register));
    Register::ALL.iter().filter(is_written).fold(0, |written, it| written | 1 << *it as u32)
}

impl Effect {
    /// Tells whether it writes to a register, all of it or a part.
    #[must_use]
    pub fn writes(&self, register: Register) -> bool {
        match self {
            Self::Overwritten(to)
            | Self::Unfollowed(to)
            | Self::Constant { to, .. }
            | Self::Zeroed { to, .. }
            | Self::Copied { to, .. }
            | Self::Extended { to, .. }
            | Self::SignSpread { to, .. }
            | Self::AddressOf { to, .. }
            | Self::ConditionSet { to, .. }
            | Self::ConditionMoved { to, .. }
            | Self::ThreadBaseRead { to } => to.register == register,
            Self::Arithmetic(Arithmetic { operation, to, .. }) => {
                operation.writes() && to.is_some_and(|to| to.register == register)
            }
            Self::Moved { register: moved, .. } | Self::Stepped { register: moved, .. } => {
                *moved == register
            }
            Self::Exchanged(first, second) => {
                first.register == register || second.register == register
            }
            Self::FrameLeft => matches!(register, Register::Rsp | Register::Rbp),
            Self::Flags { .. } | Self::Direction | Self::Touched(_) => false,
        }
    }

    /// Tells whether it is that a part was overwritten with what is not followed.
    #[must_use]
    pub fn overwrites(&self, part: RegisterPart) -> bool {
        *self == Self::Overwritten(part)
    }

    /// The number that it adds to a register of 64 bits, where that is known of `before`, the state before it.
    #[must_use]
    pub fn added(&self, before: &State) -> Option<u64> {
        let Self::Arithmetic(Arithmetic { operation, to, with, width_bits: 64, .. }) = self else {
            return None;
        };
        let with = match with {
            Operand::Immediate(value) => *value,
            // `add %rax,%rax` doubles what is looked for.
            Operand::Register(part) if to.is_none_or(|to| to.register != part.register) => {
                before.get(part.register)?
            }
            Operand::Register(_) | Operand::Memory => return None,
        };
        match operation {
            Operation::Add | Operation::Inc => Some(with),
            Operation::Sub | Operation::Dec => Some(with.wrapping_neg()),
            _ => None,
        }
    }
}

/// Returns the effects of `instruction`, in the order of undoing.
#[must_use]
pub(super) fn effects(
    instruction: &Instruction,
    factory: &mut InstructionInfoFactory,
) -> Box<[Effect]> {
    let info = factory.info(instruction);
    let mut found = known(instruction, info).unwrap_or_else(|| unfollowed(instruction, info));
    found.extend(touched(instruction, info));
    found.into_boxed_slice()
}

/// The instructions whose effect is followed.
fn known(instruction: &Instruction, info: &InstructionInfo) -> Option<Vec<Effect>> {
    use Mnemonic as M;
    let (to, from) = (register(instruction, 0), register(instruction, 1));
    let modified = instruction.rflags_modified();
    Some(match instruction.mnemonic() {
        M::Mov => moved(instruction)?,
        M::Movzx | M::Movsx | M::Movsxd => vec![extended(instruction)?],
        M::Cbw => vec![extended_accumulator(16)],
        M::Cwde => vec![extended_accumulator(32)],
        M::Cdqe => vec![extended_accumulator(64)],
        M::Cwd => vec![sign_spread(16)],
        M::Cdq => vec![sign_spread(32)],
        M::Cqo => vec![sign_spread(64)],
        M::Lea => vec![address_of(instruction)?],
        M::Xor | M::Sub if to.is_some() && to == from => {
            vec![Effect::Zeroed { to: to?, modified }]
        }
        M::Xchg if to.is_some() && from.is_some() => vec![Effect::Exchanged(to?, from?)],
        M::Leave if instruction.code() == Code::Leaveq => vec![Effect::FrameLeft],
        M::Push | M::Pop => stack_move(instruction)?,
        M::Cld | M::Std => vec![Effect::Direction],
        M::Syscall | M::Sysenter | M::Int => {
            // The kernel answers in rax and may do as it likes with the two that the instruction
            // itself overwrites (psABI, appendix A.2.1).
            let lost = |register| Effect::Overwritten(RegisterPart::whole(register));
            let flags = Effect::Flags { modified: u32::MAX };
            vec![lost(Register::Rax), lost(Register::Rcx), lost(Register::R11), flags]
        }
        _ if instruction.is_string_instruction() => string(instruction, info),
        _ if Condition::of(instruction).is_some() => conditional(instruction)?,
        _ => vec![Effect::Arithmetic(arithmetic(instruction)?)],
    })
}

pub(super) fn register(instruction: &Instruction, operand: u32) -> Option<RegisterPart> {
    if operand >= instruction.op_count() || instruction.op_kind(operand) != OpKind::Register {
        return None;
    }
    RegisterPart::of(instruction.op_register(operand))
}

pub(super) fn is_memory(instruction: &Instruction, operand: u32) -> bool {
    operand < instruction.op_count() && instruction.op_kind(operand) == OpKind::Memory
}

fn moved(instruction: &Instruction) -> Option<Vec<Effect>> {
    if is_memory(instruction, 0) {
        return Some(Vec::new());
    }
    let to = register(instruction, 0)?;
    if let Some(from) = register(instruction, 1) {
        return Some(vec![Effect::Copied { to, from }]);
    }
    if let Ok(value) = instruction.try_immediate(1) {
        let value = value & (to.mask() >> to.shift());
        return Some(vec![Effect::Constant { to, value }]);
    }
    if !is_memory(instruction, 1) {
        return None;
    }
    let address = access::operand(instruction);
    let is_thread_base = address.is_thread_base() && to.width_bits == 64;
    Some(vec![if is_thread_base { Effect::ThreadBaseRead { to } } else { Effect::Overwritten(to) }])
}

/// The segment is not looked at: `lea` computes the offset in it (SDM volume 2).
fn address_of(instruction: &Instruction) -> Option<Effect> {
    let address = AddressOperand { segment: SegmentBase::Flat, ..access::operand(instruction) };
    Some(Effect::AddressOf { to: register(instruction, 0)?, address })
}

fn extended(instruction: &Instruction) -> Option<Effect> {
    let to = register(instruction, 0)?;
    let from = register(instruction, 1);
    let from_width = match from {
        Some(from) => from.width_bits,
        None => instruction.memory_size().size() as u32 * 8,
    };
    let is_signed = instruction.mnemonic() != Mnemonic::Movzx;
    (from_width != 0 && from_width <= to.width_bits).then_some(Effect::Extended {
        to,
        from,
        from_width,
        is_signed,
    })
}

fn accumulator(width_bits: u32) -> RegisterPart {
    RegisterPart { width_bits, ..RegisterPart::whole(Register::Rax) }
}

fn extended_accumulator(width_bits: u32) -> Effect {
    let from = accumulator(width_bits / 2);
    let to = accumulator(width_bits);
    Effect::Extended { to, from: Some(from), from_width: width_bits / 2, is_signed: true }
}

fn sign_spread(width_bits: u32) -> Effect {
    let to = RegisterPart { width_bits, ..RegisterPart::whole(Register::Rdx) };
    Effect::SignSpread { to, from: accumulator(width_bits) }
}

fn stack_move(instruction: &Instruction) -> Option<Vec<Effect>> {
    let by = i64::from(instruction.stack_pointer_increment());
    let stack = Effect::Moved { register: Register::Rsp, by };
    if instruction.mnemonic() == Mnemonic::Push {
        return Some(vec![stack]);
    }
    let to = register(instruction, 0);
    Some(match to {
        Some(to) if to.register == Register::Rsp => {
            vec![Effect::Unfollowed(RegisterPart::whole(Register::Rsp))]
        }
        Some(to) => vec![Effect::Overwritten(to), stack],
        None if is_memory(instruction, 0) => vec![stack],
        None => return None,
    })
}

fn string(instruction: &Instruction, info: &InstructionInfo) -> Vec<Effect> {
    let is_repeated = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    if is_repeated || is_narrow_string(instruction) {
        return unfollowed(instruction, info);
    }
    let size = instruction.memory_size().size() as u32;
    let mut effects = Vec::new();
    for used in info.used_registers().iter().filter(|used| is_written(used)) {
        match RegisterPart::of(used.register()) {
            Some(RegisterPart { register: register @ (Register::Rsi | Register::Rdi), .. }) => {
                effects.push(Effect::Stepped { register, size });
            }
            Some(part) => effects.push(Effect::Overwritten(part)),
            None => {}
        }
    }
    effects.push(Effect::Flags { modified: instruction.rflags_modified() });
    effects
}

/// Tells whether a string instruction counts in 32 bits, which no compiler makes it do.
pub(super) fn is_narrow_string(instruction: &Instruction) -> bool {
    (0..instruction.op_count()).any(|operand| {
        matches!(
            instruction.op_kind(operand),
            OpKind::MemorySegESI | OpKind::MemorySegEDI | OpKind::MemoryESEDI
        )
    })
}

/// `setcc` and `cmovcc`; a branch changes nothing.
fn conditional(instruction: &Instruction) -> Option<Vec<Effect>> {
    let condition = Condition::of(instruction)?;
    Some(match instruction.op_count() {
        1 if is_memory(instruction, 0) => Vec::new(),
        1 => match register(instruction, 0) {
            Some(to) => vec![Effect::ConditionSet { to, condition }],
            None if instruction.is_jcc_short_or_near() => Vec::new(),
            None => return None,
        },
        2 => {
            let (to, from) = (register(instruction, 0)?, register(instruction, 1));
            vec![Effect::ConditionMoved { to, from, condition }]
        }
        _ => return None,
    })
}

fn arithmetic(instruction: &Instruction) -> Option<Arithmetic> {
    let operation = Operation::of(instruction.mnemonic())?;
    let to = register(instruction, 0);
    if to.is_none() && !is_memory(instruction, 0) || instruction.op_count() > 2 {
        return None;
    }
    let width_bits = match to {
        Some(to) => to.width_bits,
        None => instruction.memory_size().size() as u32 * 8,
    };
    if !matches!(width_bits, 8 | 16 | 32 | 64) {
        return None;
    }
    let with = match instruction.op_count() {
        1 => Operand::Immediate(1),
        _ => match (register(instruction, 1), instruction.try_immediate(1)) {
            (Some(from), _) => Operand::Register(from),
            (None, Ok(value)) => Operand::Immediate(value & (u64::MAX >> (64 - width_bits))),
            (None, Err(_)) => Operand::Memory,
        },
    };
    // A count of 0 leaves the flags, and of more than the width counts are cut.
    let counts = 1..u64::from(width_bits);
    if operation.is_shift() && !matches!(with, Operand::Immediate(count) if counts.contains(&count))
    {
        return None;
    }
    let modified = instruction.rflags_modified();
    Some(Arithmetic { operation, to, with, width_bits, modified })
}

fn is_written(used: &UsedRegister) -> bool {
    matches!(
        used.access(),
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

/// Every register and flag that the instruction writes, as lost.
fn unfollowed(instruction: &Instruction, info: &InstructionInfo) -> Vec<Effect> {
    let mut effects = Vec::new();
    // `iret` pops the stack pointer itself.
    let stack_move = match instruction.mnemonic() {
        Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq => 0,
        _ => i64::from(instruction.stack_pointer_increment()),
    };
    if stack_move != 0 {
        effects.push(Effect::Moved { register: Register::Rsp, by: stack_move });
    }
    for used in info.used_registers().iter().filter(|used| is_written(used)) {
        let Some(part) = RegisterPart::of(used.register()) else { continue };
        effects.push(match (part.register, used.access()) {
            (Register::Rsp, _) if stack_move != 0 => continue,
            (_, OpAccess::Write | OpAccess::ReadWrite) => Effect::Overwritten(part),
            _ => Effect::Unfollowed(part),
        });
    }
    // By a multiple of its width and the carry: then OF stays on Intel's processors and not on AMD's.
    let is_through_carry = matches!(instruction.mnemonic(), Mnemonic::Rcl | Mnemonic::Rcr);
    let by_vendor = if is_through_carry { RflagsBits::CF | RflagsBits::OF } else { 0 };
    let modified = instruction.rflags_modified() | by_vendor;
    if modified != 0 {
        effects.push(Effect::Flags { modified });
    }
    // `popf`.
    if modified & RflagsBits::DF != 0 {
        effects.push(Effect::Direction);
    }
    effects
}

/// Moves that touch only the elements that a vector register picks, perhaps none.
const fn is_masked_by_vector(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Vmaskmovps
            | Mnemonic::Vmaskmovpd
            | Mnemonic::Vpmaskmovd
            | Mnemonic::Vpmaskmovq
            | Mnemonic::Maskmovq
            | Mnemonic::Maskmovdqu
            | Mnemonic::Vmaskmovdqu
    )
}

/// The written-out operands that were touched whatever the values.
fn touched(instruction: &Instruction, info: &InstructionInfo) -> Option<Effect> {
    let is_certain = info.used_memory().iter().any(|memory| {
        matches!(memory.access(), OpAccess::Read | OpAccess::Write | OpAccess::ReadWrite)
    });
    if !is_certain || instruction.has_op_mask() || !access::touches_operand(instruction) {
        return None;
    }
    // `bt %rax,(%rdi)` touches the bit that is rax bits away.
    if access::is_bit_string(instruction) || is_masked_by_vector(instruction.mnemonic()) {
        return None;
    }
    let address = access::operand(instruction);
    let has_register = address.base.is_some() || address.index.is_some();
    (has_register && address.segment == SegmentBase::Flat).then_some(Effect::Touched(address))
}
