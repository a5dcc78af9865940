//! Bits of an operand that the code uses: what masks and shifts around an access leave of it.

use super::function::FunctionCode;
use crate::limit;
use crate::types::bit_range::BitRange;
use iced_x86::{
    Code, ConditionCode, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register,
};

/// The bits of the written-out operand of the instruction at `at` that are looked at or changed, where
/// the code tells; `None` where it may be all of them.
pub(crate) fn used(function: &FunctionCode, at: usize) -> Option<BitRange> {
    let instruction = function.instruction(at)?;
    let n_bits = u32::try_from(instruction.memory_size().size()).ok()?.checked_mul(8)?;
    if !(8..=64).contains(&n_bits) {
        return None;
    }
    if instruction.op0_kind() == OpKind::Memory {
        let bits = in_place(instruction, function.instruction(at + 1), n_bits)?;
        return (bits.width < n_bits).then_some(bits);
    }
    let is_load = matches!(instruction.mnemonic(), Mnemonic::Mov | Mnemonic::Movzx)
        && instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() == OpKind::Memory;
    if !is_load {
        return None;
    }
    let register = instruction.op0_register().full_register();
    let loaded = Extract { register, low: 0, high: n_bits, shifted_up: 0 };
    let bits = loaded.follow(function, at, &mut InstructionInfoFactory::new())?;
    (bits.width < n_bits).then_some(bits)
}

/// The bits that an instruction with a number for its second operand uses of the memory.
fn in_place(
    instruction: &Instruction,
    next: Option<&Instruction>,
    n_bits: u32,
) -> Option<BitRange> {
    let all = u64::MAX >> (64 - n_bits);
    let number = instruction.try_immediate(1).ok()?;
    match instruction.mnemonic() {
        Mnemonic::Test | Mnemonic::Or | Mnemonic::Xor => run(number & all),
        Mnemonic::And => run(!number & all),
        // Whether any bit is set above the lowest ones.
        Mnemonic::Cmp if (number & all).wrapping_add(1).is_power_of_two() => {
            let condition = next?.condition_code();
            matches!(condition, ConditionCode::be | ConditionCode::a)
                .then(|| run(!number & all))
                .flatten()
        }
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc => {
            let first = u32::try_from(number % u64::from(n_bits)).ok()?;
            Some(BitRange { first, width: 1 })
        }
        _ => None,
    }
}

/// The bits of a mask, if they stand together.
const fn run(mask: u64) -> Option<BitRange> {
    let first = mask.trailing_zeros();
    if mask == 0 {
        return None;
    }
    let low = mask >> first;
    let is_run = low & low.wrapping_add(1) == 0;
    if is_run { Some(BitRange { first, width: low.count_ones() }) } else { None }
}

/// Rest of a loaded value in a register: its bits from `low` to `high`, the lowest first.
struct Extract {
    register: Register,
    low: u32,
    high: u32,
    /// Number of bits by which it stands too high, between two shifts.
    shifted_up: u32,
}

/// Effect of an instruction on the value that is followed.
#[derive(Debug, PartialEq, Eq)]
enum BitStep {
    /// Nothing, or it takes bits from it.
    Goes,
    /// Its end: what is left is used, or gone.
    Ends,
    /// Other bits are put beside those left: what is kept is not what is meant.
    Mixed,
}

impl Extract {
    /// Follows the value along the code that is run for certain.
    fn follow(
        mut self,
        function: &FunctionCode,
        at: usize,
        factory: &mut InstructionInfoFactory,
    ) -> Option<BitRange> {
        let loaded = function.instruction(at)?;
        let mut is_used = false;
        for next in at + 1..=at.saturating_add(limit::MAX_BIT_STEPS) {
            let only = match function.predecessors(next) {
                [only] => !only.is_taken && only.from as usize + 1 == next,
                _ => false,
            };
            let Some(instruction) = function.instruction(next).filter(|_| only) else {
                return self.range();
            };
            if is_written_back(loaded, instruction, factory) {
                return None;
            }
            if !is_used {
                match self.step(instruction, factory) {
                    BitStep::Goes => {}
                    BitStep::Ends => {
                        self.range()?;
                        is_used = true;
                    }
                    BitStep::Mixed => return None,
                }
            }
            if instruction.flow_control() != FlowControl::Next {
                return self.range();
            }
        }
        is_used.then(|| self.range()).flatten()
    }

    fn range(&self) -> Option<BitRange> {
        let width = self.high.checked_sub(self.low)?;
        (width != 0 && self.shifted_up == 0).then_some(BitRange { first: self.low, width })
    }

    fn step(&mut self, instruction: &Instruction, factory: &mut InstructionInfoFactory) -> BitStep {
        let of = |operand: u32| {
            (operand < instruction.op_count() && instruction.op_kind(operand) == OpKind::Register)
                .then(|| instruction.op_register(operand))
        };
        let is_ours = |register: Option<Register>| {
            register.is_some_and(|register| register.full_register() == self.register)
        };
        if is_ours(of(0)) && !is_high_byte(of(0)) {
            let width = of(0).map_or(0, |register| register.size() as u32 * 8);
            if let Some(step) = self.narrow(instruction, width, is_ours(of(1))) {
                return step;
            }
        }
        let used = factory.info(instruction).used_registers();
        let ours = used.iter().filter(|used| used.register().full_register() == self.register);
        let mut step = BitStep::Goes;
        for used in ours {
            let is_read = !matches!(used.access(), OpAccess::Write | OpAccess::CondWrite);
            let is_merge = matches!(
                instruction.mnemonic(),
                Mnemonic::Or | Mnemonic::Xor | Mnemonic::Add | Mnemonic::Lea
            );
            step = if is_read && is_merge { BitStep::Mixed } else { BitStep::Ends };
            if step == BitStep::Mixed {
                break;
            }
        }
        step
    }

    /// Takes bits from the value as an instruction on its own register does; `None` for others.
    fn narrow(&mut self, instruction: &Instruction, width: u32, is_self: bool) -> Option<BitStep> {
        let number = instruction.try_immediate(1).ok();
        // A shift by one has a form without a number in its bytes, but not in its operands.
        let by = number.map(|number| (number & u64::from(width.max(32) - 1)) as u32);
        match (instruction.mnemonic(), number, by) {
            (Mnemonic::And, Some(mask), _) if self.shifted_up == 0 => {
                let kept = run(mask & (u64::MAX >> (64 - width.clamp(8, 64))))?;
                if kept.first != 0 {
                    return Some(BitStep::Mixed);
                }
                self.high = self.high.min(self.low + kept.width);
            }
            (Mnemonic::Shl, _, Some(by)) if by < width && self.shifted_up == 0 => {
                self.high = self.high.min(self.low + width - by);
                self.shifted_up = by;
            }
            (Mnemonic::Shr | Mnemonic::Sar, _, Some(by)) if by < width && by >= self.shifted_up => {
                self.high = self.high.min(self.low + width - self.shifted_up);
                self.low += by - self.shifted_up;
                self.shifted_up = 0;
                if self.low >= self.high {
                    return Some(BitStep::Mixed);
                }
            }
            (Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd, ..)
                if is_self && !is_high_byte(Some(instruction.op1_register())) =>
            {
                let from = instruction.op1_register().size() as u32 * 8;
                self.high = self.high.min(self.low + from);
            }
            _ => return None,
        }
        Some(BitStep::Goes)
    }
}

const fn is_high_byte(register: Option<Register>) -> bool {
    matches!(register, Some(Register::AH | Register::BH | Register::CH | Register::DH))
}

/// Tells whether an instruction writes to the operand that another one loaded.
fn is_written_back(
    loaded: &Instruction,
    instruction: &Instruction,
    factory: &mut InstructionInfoFactory,
) -> bool {
    if instruction.code() == Code::INVALID {
        return false;
    }
    let mut memory = factory.info(instruction).used_memory().iter();
    memory.any(|used| {
        used.base() == loaded.memory_base()
            && used.index() == loaded.memory_index()
            && used.displacement() == loaded.memory_displacement64()
            && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86_64::image_bytes::NoBytes;
    use dataspace_proto::address::Svma;

    /// The bits that code uses of what its first instruction touches.
    fn bits(code: &[u8]) -> Option<(u32, u32)> {
        let function = FunctionCode::decode(Svma(0x1000), code, &NoBytes);
        let used = used(&function, 0);
        used.map(|bits| (bits.first, bits.width))
    }

    #[test]
    fn numbers_in_the_instruction_tell_the_bits() {
        assert_eq!(bits(&[0xf6, 0x07, 0x07, 0xc3]), Some((0, 3))); // testb $7,(%rdi)
        assert_eq!(bits(&[0x80, 0x0f, 0x18, 0xc3]), Some((3, 2))); // orb $0x18,(%rdi)
        assert_eq!(bits(&[0x80, 0x27, 0xf8, 0xc3]), Some((0, 3))); // andb $-8,(%rdi)
        assert_eq!(bits(&[0x80, 0x0f, 0x05, 0xc3]), None); // orb $5,(%rdi)
        assert_eq!(bits(&[0xc6, 0x07, 0x07, 0xc3]), None); // movb $7,(%rdi)
        // cmpb $7,(%rdi); setbe %al
        assert_eq!(bits(&[0x80, 0x3f, 0x07, 0x0f, 0x96, 0xc0, 0xc3]), Some((3, 5)));
        // cmpb $7,(%rdi); sete %al
        assert_eq!(bits(&[0x80, 0x3f, 0x07, 0x0f, 0x94, 0xc0, 0xc3]), None);
        // btsl $9,(%rdi)
        assert_eq!(bits(&[0x0f, 0xba, 0x2f, 0x09, 0xc3]), Some((9, 1)));
    }

    #[test]
    fn masks_and_shifts_after_a_load_tell_the_bits() {
        let load = [0x0f, 0xb6, 0x07]; // movzbl (%rdi),%eax
        let after = |rest: &[u8]| bits(&[&load[..], rest].concat());
        assert_eq!(after(&[0x83, 0xe0, 0x07, 0xc3]), Some((0, 3))); // and $7,%eax
        // shr $3,%al; movzbl %al,%eax
        assert_eq!(after(&[0xc0, 0xe8, 0x03, 0x0f, 0xb6, 0xc0, 0xc3]), Some((3, 5)));
        // shr $2,%al; and $3,%eax
        assert_eq!(after(&[0xc0, 0xe8, 0x02, 0x83, 0xe0, 0x03, 0xc3]), Some((2, 2)));
        // shl $3,%al; sar $5,%al
        assert_eq!(after(&[0xc0, 0xe0, 0x03, 0xc0, 0xf8, 0x05, 0xc3]), Some((2, 3)));
        assert_eq!(after(&[0xc3]), None); // ret
        // shl $2,%eax, twice; shr $5,%eax: of the two only the first shift is followed
        assert_eq!(after(&[0xc1, 0xe0, 2, 0xc1, 0xe0, 2, 0xc1, 0xe8, 5, 0xc3]), None);
        // mov %eax,%edx; and $7,%eax: the copy may be of another field
        assert_eq!(after(&[0x89, 0xc2, 0x83, 0xe0, 0x07, 0xc3]), None);
    }

    #[test]
    fn bits_that_are_kept_beside_others_are_not_meant() {
        let load = [0x0f, 0xb6, 0x07]; // movzbl (%rdi),%eax
        let after = |rest: &[u8]| bits(&[&load[..], rest].concat());
        // and $7,%eax; or %esi,%eax; mov %al,(%rdi)
        assert_eq!(after(&[0x83, 0xe0, 0x07, 0x09, 0xf0, 0x88, 0x07, 0xc3]), None);
        // and $-8,%eax; or %esi,%eax; mov %al,(%rdi)
        assert_eq!(after(&[0x83, 0xe0, 0xf8, 0x09, 0xf0, 0x88, 0x07, 0xc3]), None);
        // and $7,%eax; lea (%rax,%rsi,8),%eax; mov %al,(%rdi)
        assert_eq!(after(&[0x83, 0xe0, 0x07, 0x8d, 0x04, 0xf0, 0x88, 0x07, 0xc3]), None);
    }

    #[test]
    fn only_what_is_written_to_the_same_place_is_written_back() {
        let load = [0x0f, 0xb6, 0x07, 0x83, 0xe0, 0x07]; // movzbl (%rdi),%eax; and $7,%eax
        let then = |rest: &[u8]| bits(&[&load[..], rest, &[0xc3]].concat());
        assert_eq!(then(&[0x88, 0x07]), None); // mov %al,(%rdi)
        assert_eq!(then(&[0x88, 0x47, 0x08]), Some((0, 3))); // mov %al,8(%rdi)
        assert_eq!(then(&[0x88, 0x06]), Some((0, 3))); // mov %al,(%rsi)
        assert_eq!(then(&[0x88, 0x04, 0x37]), Some((0, 3))); // mov %al,(%rdi,%rsi)
        assert_eq!(then(&[0x80, 0x3f, 0x00]), Some((0, 3))); // cmpb $0,(%rdi)
    }
}
