//! From the reported IP back to the instructions that may have caused the sample.

use super::condition;
use super::function::FunctionCode;
use dataspace_proto::address::Svma;
use dataspace_proto::reason::Reason;
use dataspace_proto::register::{Register as Sampled, Registers};
use iced_x86::{ConditionCode, FlowControl, Instruction, InstructionInfoFactory, Mnemonic};

/// Where a sample's trigger is, relative to its IP (design section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Skid {
    /// At IP.
    Exact,
    /// Retired just before IP.
    AfterOne,
    /// At most so many instructions back.
    Within(u32),
    /// IP is where user code entered the kernel: behind `syscall`, or at the instruction that
    /// faulted or was interrupted.
    KernelEntry,
}

/// An instruction that may be the trigger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The instruction.
    pub instruction: Instruction,
    /// Which state the sampled registers are in, relative to it.
    pub is_before: bool,
    /// What the sampled flags must say for it to be possible.
    pub condition: Option<BranchCondition>,
}

/// A conditional branch that was or was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchCondition {
    /// Its condition.
    pub code: ConditionCode,
    /// Whether it must have been taken.
    pub is_taken: bool,
}

impl BranchCondition {
    /// Whether the sampled flags allow it; `true` where they do not decide.
    #[must_use]
    pub fn is_possible(self, registers: &Registers) -> bool {
        let flags = registers.get(Sampled::Rflags);
        let taken = flags.and_then(|flags| condition::is_taken(self.code, flags));
        taken.is_none_or(|taken| taken == self.is_taken)
    }
}

/// The possible triggers of a sample at `ip`: every one that the code allows.
///
/// # Errors
/// The reason why none can be told.
pub fn candidates(
    function: &FunctionCode,
    ip: Svma,
    skid: Skid,
    factory: &mut InstructionInfoFactory,
) -> Result<Vec<Candidate>, Reason> {
    let index = function.index_of(ip).ok_or(Reason::Unverifiable)?;
    match skid {
        Skid::Exact => Ok(vec![at(exact(function, index)?, true)]),
        Skid::KernelEntry => kernel_entry(function, index),
        Skid::AfterOne => after_one(function, index),
        Skid::Within(range) => within(function, index, range, factory),
    }
}

fn at(instruction: Instruction, is_before: bool) -> Candidate {
    Candidate { instruction, is_before, condition: None }
}

/// The instruction at `index`; of a macro-fused pair, whose sample is on the branch, the first
/// half, which has the memory operand.
fn exact(function: &FunctionCode, index: usize) -> Result<Instruction, Reason> {
    let here = *function.instruction(index).ok_or(Reason::Unverifiable)?;
    if here.flow_control() == FlowControl::ConditionalBranch
        && let Some(before) = only_fall_through(function, index)
        && let Some(before) = function.instruction(before)
        && is_fusible(before)
        && before.op_count() == 2
        && (before.op0_kind() == iced_x86::OpKind::Memory
            || before.op1_kind() == iced_x86::OpKind::Memory)
    {
        return Ok(*before);
    }
    Ok(here)
}

/// The instruction before the one at `index`, where that is the only way there.
fn only_fall_through(function: &FunctionCode, index: usize) -> Option<usize> {
    match function.predecessors(index) {
        [only] if !only.is_taken && !function.entrances(index).is_any() => Some(only.from as usize),
        _ => None,
    }
}

/// Instructions that fuse with a conditional branch behind them (SDM optimization manual, 2.6.2.1).
fn is_fusible(instruction: &Instruction) -> bool {
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

fn kernel_entry(function: &FunctionCode, index: usize) -> Result<Vec<Candidate>, Reason> {
    let before = index.checked_sub(1).and_then(|before| function.instruction(before));
    let is_call = |instruction: &Instruction| {
        matches!(instruction.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Int)
    };
    if before.is_some_and(is_call) {
        return Err(Reason::Kernel);
    }
    Ok(vec![at(*function.instruction(index).ok_or(Reason::Unverifiable)?, true)])
}

/// What may have retired just before the instruction at `index`.
fn after_one(function: &FunctionCode, index: usize) -> Result<Vec<Candidate>, Reason> {
    let here = function.instruction(index).ok_or(Reason::Unverifiable)?;
    let entrances = function.entrances(index);
    let predecessors = function.predecessors(index);
    if entrances.is_entry || entrances.is_return && predecessors.is_empty() {
        return Err(Reason::Blocked);
    }
    if entrances.is_any() {
        return Err(Reason::Unresolvable);
    }
    let mut found = Vec::new();
    for predecessor in predecessors {
        let from = function.instruction(predecessor.from as usize).ok_or(Reason::Unverifiable)?;
        let condition = branch(from, predecessor.is_taken);
        found.push(Candidate { condition, ..at(*from, false) });
    }
    // A repeated string instruction is interrupted between its elements, at its own address.
    if is_repeated(here) {
        found.push(at(*here, true));
    }
    Ok(found)
}

fn is_repeated(instruction: &Instruction) -> bool {
    instruction.is_string_instruction()
        && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
}

fn branch(instruction: &Instruction, is_taken: bool) -> Option<BranchCondition> {
    let code = instruction.condition_code();
    (code != ConditionCode::None).then_some(BranchCondition { code, is_taken })
}

/// Walks back over straight-line code to the first instruction that touches memory.
fn within(
    function: &FunctionCode,
    index: usize,
    range: u32,
    factory: &mut InstructionInfoFactory,
) -> Result<Vec<Candidate>, Reason> {
    let mut at_index = index;
    for _ in 0..range {
        let entrances = function.entrances(at_index);
        if entrances.is_entry || entrances.is_return {
            return Err(Reason::Blocked);
        }
        let before = only_fall_through(function, at_index).ok_or(Reason::Unresolvable)?;
        let instruction = function.instruction(before).ok_or(Reason::Unverifiable)?;
        if !matches!(instruction.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch)
        {
            return Err(Reason::Blocked);
        }
        let accesses = super::access::accesses(instruction, factory);
        if accesses.iter().any(|access| access.role != super::access::Role::StackSlot) {
            return Ok(vec![at(*instruction, false)]);
        }
        at_index = before;
    }
    Err(Reason::Incomplete)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86_64::function::NoBytes;

    fn triggers(code: &[u8], ip: u64, skid: Skid) -> Result<Vec<u64>, Reason> {
        let function = FunctionCode::decode(Svma(0x1000), code, &NoBytes);
        let mut factory = InstructionInfoFactory::new();
        let found = candidates(&function, Svma(ip), skid, &mut factory)?;
        Ok(found.iter().map(|candidate| candidate.instruction.ip()).collect())
    }

    /// 1000: mov (%rax),%rax   1003: sub $1,%rdx   1007: jne 1000   1009: ret
    const CHASE: [u8; 10] = [0x48, 0x8b, 0x00, 0x48, 0x83, 0xea, 0x01, 0x75, 0xf7, 0xc3];

    #[test]
    fn straight_line_code_steps_back_one_instruction() {
        assert_eq!(triggers(&CHASE, 0x1003, Skid::AfterOne), Ok(vec![0x1000]));
        assert_eq!(triggers(&CHASE, 0x1003, Skid::Exact), Ok(vec![0x1003]));
        assert_eq!(triggers(&CHASE, 0x1009, Skid::Within(8)), Ok(vec![0x1000]));
        assert_eq!(triggers(&CHASE, 0x1009, Skid::Within(2)), Err(Reason::Incomplete));
    }

    #[test]
    fn entry_and_the_middle_of_an_instruction_have_their_reasons() {
        assert_eq!(triggers(&CHASE, 0x1000, Skid::AfterOne), Err(Reason::Blocked));
        assert_eq!(triggers(&CHASE, 0x1004, Skid::AfterOne), Err(Reason::Unverifiable));
    }

    #[test]
    fn a_branch_target_has_its_jumps_as_candidates() {
        // 1000: nop  1001: mov (%rax),%rax  1004: jne 1001  1006: ret
        let code = [0x90, 0x48, 0x8b, 0x00, 0x75, 0xfb, 0xc3];
        assert_eq!(triggers(&code, 0x1001, Skid::AfterOne), Ok(vec![0x1000, 0x1004]));
    }

    #[test]
    fn alignment_behind_a_jump_is_no_predecessor() {
        // 1000: jmp 1005  1002: nopl (%rax)  1005: mov (%rax),%rax  1008: jne 1005
        let code = [0xeb, 0x03, 0x0f, 0x1f, 0x00, 0x48, 0x8b, 0x00, 0x75, 0xfb];
        assert_eq!(triggers(&code, 0x1005, Skid::AfterOne), Ok(vec![0x1000, 0x1008]));
    }

    #[test]
    fn after_a_call_the_callee_is_blamed_for_nothing() {
        // 1000: call 2000  1005: ret
        let code = [0xe8, 0xfb, 0x0f, 0, 0, 0xc3];
        assert_eq!(triggers(&code, 0x1005, Skid::AfterOne), Err(Reason::Blocked));
    }

    #[test]
    fn a_fused_compare_owns_the_sample_on_its_branch() {
        // 1000: cmp %rax,(%rdi)  1003: jb 1000  1005: ret
        let code = [0x48, 0x39, 0x07, 0x72, 0xfb, 0xc3];
        assert_eq!(triggers(&code, 0x1003, Skid::Exact), Ok(vec![0x1000]));
        assert_eq!(triggers(&code, 0x1003, Skid::AfterOne), Ok(vec![0x1000]));
    }

    #[test]
    fn behind_a_system_call_the_time_is_the_kernels() {
        // 1000: syscall  1002: mov (%rdi),%rax
        let code = [0x0f, 0x05, 0x48, 0x8b, 0x07];
        assert_eq!(triggers(&code, 0x1002, Skid::KernelEntry), Err(Reason::Kernel));
        assert_eq!(triggers(&code, 0x1000, Skid::KernelEntry), Ok(vec![0x1000]));
    }
}
