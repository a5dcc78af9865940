//! Loaded values that the code goes by afterwards: pointers, whatever is declared where they were.

use super::access::{self, SegmentBase};
use super::function::FunctionCode;
use crate::limit;
use dataspace_proto::address::Svma;
use iced_x86::{
    ConditionCode, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

/// Tells whether the pointer that the instruction at `at` loads is what memory is accessed by afterwards, on the way that is
/// run, or that is run unless it is null.
pub(crate) fn is_address(function: &FunctionCode, at: usize) -> bool {
    let Some(load) = function.instruction(at) else { return false };
    let is_load = load.mnemonic() == Mnemonic::Mov
        && load.op1_kind() == OpKind::Memory
        && load.op0_register().is_gpr64();
    is_load && leads_on(function, at, load.op0_register()).unwrap_or(false)
}

/// The same for a value that a register has after the instruction at `at`; `None` where that ends.
fn leads_on(function: &FunctionCode, at: usize, register: Register) -> Option<bool> {
    let mut factory = InstructionInfoFactory::new();
    let (mut before, mut next) = (at, at + 1);
    for _ in 0..limit::MAX_ADDRESS_STEPS {
        let here = function.instruction(next)?;
        if is_based_on(here, register) {
            return Some(true);
        }
        if is_written(here, register, &mut factory) {
            return None;
        }
        let last = std::mem::replace(&mut before, next);
        next = match here.flow_control() {
            FlowControl::Next => next + 1,
            FlowControl::UnconditionalBranch => function.index_of(target(here))?,
            FlowControl::ConditionalBranch => {
                let is_test = is_null_test(function.instruction(last)?, register);
                match here.condition_code() {
                    ConditionCode::e if is_test => next + 1,
                    ConditionCode::ne if is_test => function.index_of(target(here))?,
                    _ => return None,
                }
            }
            _ => return None,
        };
    }
    None
}

/// Tells whether an instruction accesses memory at a register, and no number may be in that: one may be added to another
/// register, or to a fixed address.
fn is_based_on(here: &Instruction, register: Register) -> bool {
    let is_alone = here.memory_index() == Register::None || here.memory_index_scale() > 1;
    let displacement = here.memory_displacement64().cast_signed();
    let is_near =
        (-limit::MAX_MEMBER_DISPLACEMENT..limit::MAX_MEMBER_DISPLACEMENT).contains(&displacement);
    let is_flat = access::operand(here).segment == SegmentBase::Flat;
    here.memory_base() == register
        && is_alone
        && is_near
        && is_flat
        && access::touches_operand(here)
}

fn target(branch: &Instruction) -> Svma {
    Svma(branch.near_branch_target())
}

fn is_null_test(here: &Instruction, register: Register) -> bool {
    here.mnemonic() == Mnemonic::Test
        && here.op0_register() == register
        && here.op1_register() == register
}

fn is_written(
    here: &Instruction,
    register: Register,
    factory: &mut InstructionInfoFactory,
) -> bool {
    let mut used = factory.info(here).used_registers().iter();
    used.any(|it| {
        it.register().full_register() == register
            && !matches!(it.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::None)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86_64::image_bytes::NoBytes;

    /// Tells whether `mov 8(%rdi),%rax` loads an address for the code after it.
    fn leads(after: &[u8]) -> bool {
        let code = [&[0x48, 0x8b, 0x47, 0x08], after, &[0xc3]].concat();
        is_address(&FunctionCode::decode(Svma(0x1000), &code, &NoBytes), 0)
    }

    #[test]
    fn what_is_accessed_through_a_loaded_value_tells_that_it_is_a_pointer() {
        assert!(leads(&[0x8b, 0x08]), "mov (%rax),%ecx");
        assert!(leads(&[0x48, 0x85, 0xc0, 0x74, 0x02, 0x8b, 0x08]), "unless it is null");
        assert!(leads(&[0x48, 0x85, 0xc0, 0x75, 0x01, 0xc3, 0x8b, 0x08]), "where it is not null");
        assert!(leads(&[0xeb, 0x01, 0x90, 0x8b, 0x08]), "after a jump");
        assert!(!leads(&[0x48, 0x8d, 0x48, 0x10]), "lea 16(%rax),%rcx");
        assert!(leads(&[0x8b, 0x0c, 0xf8]), "mov (%rax,%rdi,8),%ecx");
        assert!(!leads(&[0x8b, 0x0c, 0x38]), "mov (%rax,%rdi),%ecx: either is a number");
        assert!(!leads(&[0x8b, 0x88, 0, 0, 0x40, 0]), "mov table(%rax),%ecx");
        assert!(!leads(&[0x31, 0xc0, 0x8b, 0x08]), "it is written over");
        assert!(!leads(&[0x48, 0x83, 0xc0, 0x08, 0x8b, 0x08]), "it is another one");
        let tagged = [0xa8, 0x01, 0x75, 0x02, 0x8b, 0x08];
        assert!(!leads(&tagged), "test $1,%al; jne: a pointer on one of two ways");
        assert!(!leads(&[0xeb, 0xfe]), "a loop without end");
        assert!(!leads(&[0x64, 0x8b, 0x08]), "mov %fs:(%rax),%ecx");
        let jumped = [0xa8, 0x01, 0xeb, 0x03, 0x48, 0x85, 0xc0, 0x74, 0x02, 0x8b, 0x08];
        assert!(!leads(&jumped), "the null test was not run");
    }
}
