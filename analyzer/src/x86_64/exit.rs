//! Exits: where control goes when an instruction has run.

use dataspace_proto::address::Svma;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};

/// Way in which control leaves an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// To the next one.
    Next,
    /// To the next one or the one at this address.
    Branch(u64),
    /// To the one at this address.
    Jump(u64),
    /// To where a register or memory says.
    Indirect,
    /// To a function, at this address where it is written out, and from there to the next one.
    Call(Option<u64>),
    /// To the kernel or a hypervisor, and from there to the next one.
    System,
    /// To the caller.
    Return,
    /// Nowhere: it only faults.
    Never,
}

impl Exit {
    pub(super) fn of(instruction: &Instruction) -> Self {
        if instruction.is_invalid() {
            return Self::Never;
        }
        let target = matches!(
            instruction.op0_kind(),
            OpKind::NearBranch64 | OpKind::NearBranch32 | OpKind::NearBranch16
        )
        .then(|| instruction.near_branch_target());
        match instruction.flow_control() {
            FlowControl::Next if instruction.mnemonic() == Mnemonic::Hlt => Self::Never,
            FlowControl::Interrupt => match instruction.mnemonic() {
                // A breakpoint or trap in compiled code stops the program; `int $0x80` is a call
                // of the kernel.
                Mnemonic::Int => Self::Next,
                _ => Self::Never,
            },
            FlowControl::Next => Self::Next,
            FlowControl::ConditionalBranch => target.map_or(Self::Never, Self::Branch),
            // `xabort` and `xend` have no target; `xbegin` has that of its fallback.
            FlowControl::XbeginXabortXend => target.map_or(Self::Next, Self::Branch),
            FlowControl::UnconditionalBranch => target.map_or(Self::Never, Self::Jump),
            FlowControl::IndirectBranch => Self::Indirect,
            // iced-x86 counts `syscall`, `vmcall` and their like as calls.
            FlowControl::Call | FlowControl::IndirectCall => match instruction.mnemonic() {
                // The instruction behind is called: a way to read the instruction pointer.
                Mnemonic::Call if target == Some(instruction.next_ip()) => {
                    Self::Jump(instruction.next_ip())
                }
                Mnemonic::Call => Self::Call(target),
                _ => Self::System,
            },
            FlowControl::Return => Self::Return,
            FlowControl::Exception => Self::Never,
        }
    }

    /// Tells whether the instruction after it can run next, or after the callee.
    pub(super) fn goes_on(self) -> bool {
        matches!(self, Self::Next | Self::Branch(_) | Self::Call(_) | Self::System)
    }

    /// The address that is written out.
    pub(crate) fn target(self) -> Option<Svma> {
        match self {
            Self::Branch(target) | Self::Jump(target) | Self::Call(Some(target)) => {
                Some(Svma(target))
            }
            _ => None,
        }
    }
}

/// Target of a call or jump, as far as it is written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The code here.
    Code(Svma),
    /// The code that the pointer here leads to, which is data.
    Slot(Svma),
}

impl Destination {
    pub(super) fn of(instruction: &Instruction) -> Option<Self> {
        match Exit::of(instruction) {
            Exit::Jump(target) | Exit::Call(Some(target)) => Some(Self::Code(Svma(target))),
            Exit::Indirect | Exit::Call(None) => instruction
                .is_ip_rel_memory_operand()
                .then(|| Self::Slot(Svma(instruction.memory_displacement64()))),
            Exit::Next | Exit::Branch(_) | Exit::System | Exit::Return | Exit::Never => None,
        }
    }
}

/// Tells whether the instruction is what assemblers and linkers fill up with: no-operations, `int3`, and
/// zero bytes, which read as `add %al,(%rax)`.
pub(super) fn is_filler(instruction: &Instruction) -> bool {
    match instruction.mnemonic() {
        Mnemonic::Nop | Mnemonic::Int3 => true,
        Mnemonic::Xchg => instruction.op0_register() == instruction.op1_register(),
        _ => {
            instruction.code() == iced_x86::Code::Add_rm8_r8
                && instruction.len() == 2
                && instruction.memory_base() == Register::RAX
                && instruction.op1_register() == Register::AL
        }
    }
}
