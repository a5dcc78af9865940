//! Number of entries of a jump table, from the comparison or mask that guards the jump.

use crate::limit;
use crate::x86_64::view::View;
use iced_x86::{
    ConditionCode, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

/// Finds how many entries the table can have that the instruction at `load` reads, counting in
/// `counter`; `None` where no guard tells.
///
/// Goes back while there is one way only: `cmp $n,%i; ja default` before it then holds here.
pub(super) fn n_entries(view: &View<'_>, load: u32, counter: Option<Register>) -> Option<u64> {
    let mut walk = GuardWalk {
        index: ValuePlace::register(counter?)?,
        bits: 64,
        branch: None,
        bound: None,
        factory: InstructionInfoFactory::new(),
    };
    let mut at = load;
    for _ in 0..limit::MAX_GUARD_DISTANCE {
        let known = view.entrances.get(at as usize).copied().unwrap_or_default();
        let [(_, before)] = view.predecessors(at) else { return None };
        if known.is_any() || !view.calls_before(at).is_empty() {
            return None;
        }
        at = before.from;
        match walk.back(view.instruction(at), before.is_taken) {
            GuardStep::Found(n_entries) => return Some(n_entries),
            GuardStep::On => {}
            GuardStep::Lost => return None,
        }
    }
    None
}

/// Returns the number of values that an `and` with a constant leaves: `x & 7` counts to eight.
fn masked(here: &Instruction) -> Option<u64> {
    number(here)?.checked_add(1).filter(|n| n.is_power_of_two())
}

/// The number that stands as the second operand.
fn number(here: &Instruction) -> Option<u64> {
    let is_number = here.op1_kind() != OpKind::Register && here.op1_kind() != OpKind::Memory;
    is_number.then(|| here.immediate(1))
}

/// Place of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValuePlace {
    /// In a register, by its whole.
    Register(Register),
    /// In memory at a distance from a register: a spilled variable.
    Memory(Register, u64),
}

impl ValuePlace {
    fn register(register: Register) -> Option<Self> {
        (register != Register::None).then(|| Self::Register(register.full_register()))
    }

    fn operand(here: &Instruction, operand: u32) -> Option<Self> {
        match here.op_kind(operand) {
            OpKind::Register => Self::register(here.op_register(operand)),
            OpKind::Memory if here.memory_index() == Register::None => {
                Some(Self::Memory(here.memory_base(), here.memory_displacement64()))
            }
            _ => None,
        }
    }

    /// Tells whether writing to `written` changes it.
    fn is_changed_by(self, written: Self) -> bool {
        match (self, written) {
            (Self::Memory(base, _), Self::Register(register)) => base == register,
            // What is stored through another register may go anywhere.
            (Self::Memory(ours, at), Self::Memory(base, to)) => ours != base || at == to,
            (ours, written) => ours == written,
        }
    }
}

enum GuardStep {
    On,
    Lost,
    Found(u64),
}

struct GuardWalk {
    /// Place of the number that counts in the table.
    index: ValuePlace,
    /// Its width in bits, as far as the way here shows.
    bits: u32,
    /// The condition that held of the comparison that comes next on the way back.
    branch: Option<ConditionCode>,
    /// The place that was compared, its width in bits, and the number of values that passed.
    bound: Option<(ValuePlace, u32, u64)>,
    factory: InstructionInfoFactory,
}

impl GuardWalk {
    /// Goes back over one instruction.
    fn back(&mut self, here: &Instruction, is_taken: bool) -> GuardStep {
        if here.condition_code() != ConditionCode::None && here.is_jcc_short_or_near() {
            let mut branch = *here;
            if !is_taken {
                branch.negate_condition_code();
            }
            self.branch = Some(branch.condition_code());
            return GuardStep::On;
        }
        if here.mnemonic() == Mnemonic::And
            && ValuePlace::operand(here, 0) == Some(self.index)
            && let Some(n_entries) = masked(here)
        {
            return GuardStep::Found(n_entries);
        }
        match here.mnemonic() {
            Mnemonic::Cmp | Mnemonic::Sub if self.branch.is_some() => self.compare(here),
            // The branch is by this one, which says nothing of the number.
            _ if here.rflags_modified() != 0 => self.branch = None,
            _ => {}
        }
        // `sub` compares what was there before it.
        if here.mnemonic() == Mnemonic::Cmp
            && let GuardStep::Found(n_entries) = self.decide()
        {
            return GuardStep::Found(n_entries);
        }
        if self.is_made_aside(here) || !self.before(here) {
            return GuardStep::Lost;
        }
        self.decide()
    }

    /// Takes in a comparison with a number whose outcome is known.
    fn compare(&mut self, here: &Instruction) {
        let Some(code) = self.branch.take() else { return };
        let Some(bits) = operand_bits(here) else { return };
        let mask = u64::MAX >> (64 - bits);
        let Some(number) = number(here).map(|number| number & mask) else { return };
        let passed = match code {
            ConditionCode::be => number.checked_add(1),
            ConditionCode::b => Some(number),
            _ => None,
        };
        if let Some((place, n_entries)) = ValuePlace::operand(here, 0).zip(passed) {
            self.bound = Some((place, bits, n_entries));
        }
    }

    /// Finds the number of entries, if what was compared is the number that counts.
    fn decide(&self) -> GuardStep {
        match self.bound {
            // Compilers compare all of the number, or what they know to be all of it.
            Some((place, bits, n_entries)) if place == self.index && bits >= self.bits.min(32) => {
                GuardStep::Found(n_entries)
            }
            _ => GuardStep::On,
        }
    }

    /// Tells whether `here` writes the number other than as its first operand.
    fn is_made_aside(&mut self, here: &Instruction) -> bool {
        let (ValuePlace::Register(number) | ValuePlace::Memory(number, _)) = self.index;
        let is_pushed = here.mnemonic() == Mnemonic::Push && !self.is_in_memory();
        let is_write = |access| matches!(access, OpAccess::Write | OpAccess::ReadWrite);
        let used = self.factory.info(here).used_registers();
        let n_written = |register: Register| {
            let written = used.iter().filter(|used| is_write(used.access()));
            written.filter(|used| used.register().full_register() == register).count()
        };
        let is_first =
            here.op0_kind() == OpKind::Register && here.op0_register().full_register() == number;
        let is_named = is_first || here.mnemonic() == Mnemonic::Cdqe;
        (here.is_stack_instruction() && !is_pushed) || n_written(number) > usize::from(is_named)
    }

    /// Tells whether the number, or what was compared, was in memory, where a push may write.
    fn is_in_memory(&self) -> bool {
        let is_memory = |place: ValuePlace| matches!(place, ValuePlace::Memory(..));
        is_memory(self.index) || self.bound.is_some_and(|(place, ..)| is_memory(place))
    }

    /// Moves on to before `here`; `false` where the number was made there.
    fn before(&mut self, here: &Instruction) -> bool {
        let source = copied(here);
        if let Some((place, bits, n_entries)) = self.bound
            && let Some(written) = written(here)
            && place.is_changed_by(written)
        {
            // What was compared by `sub` is what was there before.
            let is_comparison = here.mnemonic() == Mnemonic::Sub;
            self.bound = match source {
                _ if is_comparison => self.bound,
                Some((source, _)) if written == place => Some((source, bits, n_entries)),
                _ => None,
            };
        }
        let Some(written) = written(here) else { return is_harmless(here) };
        if !self.index.is_changed_by(written) {
            return true;
        }
        match (source, scaled(here)) {
            (Some((source, bits)), _) if written == self.index => {
                self.index = source;
                self.bits = self.bits.min(bits);
                true
            }
            // gcc -O0 multiplies first: `lea 0(,%rax,4),%rdx`.
            (_, Some(counter)) if written == self.index => {
                self.index = counter;
                true
            }
            _ => false,
        }
    }
}

fn operand_bits(here: &Instruction) -> Option<u32> {
    let n_bytes = match here.op0_kind() {
        OpKind::Register => here.op0_register().size(),
        OpKind::Memory => here.memory_size().size(),
        _ => return None,
    };
    matches!(n_bytes, 1 | 2 | 4 | 8).then_some(n_bytes as u32 * 8)
}

/// Finds the place of the value that the instruction copies, and how many of its bits are copied.
fn copied(here: &Instruction) -> Option<(ValuePlace, u32)> {
    let source = || ValuePlace::operand(here, 1);
    // What a form reads from memory is as wide as what it reads from a register.
    let source_bits = || here.memory_size().size() as u32 * 8;
    match here.mnemonic() {
        Mnemonic::Mov if operand_bits(here)? >= 32 => Some((source()?, operand_bits(here)?)),
        Mnemonic::Movzx | Mnemonic::Movsxd | Mnemonic::Movsx => Some((source()?, source_bits())),
        Mnemonic::Cdqe => Some((ValuePlace::Register(Register::RAX), 32)),
        _ => None,
    }
}

fn scaled(here: &Instruction) -> Option<ValuePlace> {
    let is_product = here.mnemonic() == Mnemonic::Lea
        && here.memory_base() == Register::None
        && here.memory_displacement64() == 0
        && matches!(here.memory_index_scale(), 4 | 8);
    is_product.then(|| ValuePlace::register(here.memory_index())).flatten()
}

/// Finds the place that the instruction writes, where it is one of the few that stand between guard and jump.
fn written(here: &Instruction) -> Option<ValuePlace> {
    match here.mnemonic() {
        Mnemonic::Cdqe => Some(ValuePlace::Register(Register::RAX)),
        _ if is_harmless(here) => None,
        _ => ValuePlace::operand(here, 0),
    }
}

/// Tells whether an instruction changes no number.
fn is_harmless(here: &Instruction) -> bool {
    matches!(
        here.mnemonic(),
        Mnemonic::Cmp
            | Mnemonic::Test
            | Mnemonic::Bt
            | Mnemonic::Nop
            | Mnemonic::Endbr64
            | Mnemonic::Push
    ) || here.is_jcc_short_or_near()
        || here.is_jmp_short_or_near()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    const JA: &[u8] = &[0x77, 0x10];

    /// Counts the entries that the instructions before a table's load tell, which counts in `counter`: the
    /// last of them first, and no branch was taken.
    fn told(counter: Register, back: &[&[u8]]) -> Option<u64> {
        let mut walk = GuardWalk {
            index: ValuePlace::Register(counter),
            bits: 64,
            branch: None,
            bound: None,
            factory: InstructionInfoFactory::new(),
        };
        for code in back {
            let here = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).decode();
            match walk.back(&here, false) {
                GuardStep::Found(n_entries) => return Some(n_entries),
                GuardStep::On => {}
                GuardStep::Lost => return None,
            }
        }
        None
    }

    #[test]
    fn a_comparison_guards_the_number_that_it_is_of() {
        let number: &[u8] = &[0x83, 0xff, 0x05]; // cmp $5,%edi
        assert_eq!(told(Register::RDI, &[JA, number]), Some(6));
        assert_eq!(told(Register::RSI, &[JA, number]), None);
        // mov %esi,%edx, and add %esi,%edi, between the two
        assert_eq!(told(Register::RDI, &[&[0x89, 0xf2], JA, number]), Some(6));
        assert_eq!(told(Register::RDI, &[&[0x01, 0xf7], JA, number]), None);
        // add %esi,%edx: the branch is by that
        assert_eq!(told(Register::RDI, &[JA, &[0x01, 0xf2], number]), None);
        // mov %edi,%edi: a copy of itself in 32 bits
        assert_eq!(told(Register::RDI, &[&[0x89, 0xff], JA, number]), Some(6));
        // mov 8(%rsp),%eax, cmpl $5,8(%rsp)
        let spilled: &[u8] = &[0x83, 0x7c, 0x24, 0x08, 0x05];
        assert_eq!(told(Register::RAX, &[&[0x8b, 0x44, 0x24, 0x08], JA, spilled]), Some(6));
    }

    #[test]
    fn a_comparison_of_some_bits_guards_a_number_of_no_more() {
        let byte: &[u8] = &[0x40, 0x80, 0xff, 0x05]; // cmp $5,%dil
        let half: &[u8] = &[0x66, 0x83, 0xff, 0x05]; // cmp $5,%di
        let (of_byte, of_half): (&[u8], &[u8]) = (&[0x40, 0x0f, 0xb6, 0xc7], &[0x0f, 0xb7, 0xc7]);
        // movzbl %dil,%eax, movzwl %di,%eax, mov %edi,%eax
        for (copy, by_byte, by_half) in
            [(of_byte, Some(6), Some(6)), (of_half, None, Some(6)), (&[0x89, 0xf8], None, None)]
        {
            assert_eq!(told(Register::RAX, &[copy, JA, byte]), by_byte, "{copy:x?}");
            assert_eq!(told(Register::RAX, &[copy, JA, half]), by_half, "{copy:x?}");
        }
    }

    #[test]
    fn a_register_that_is_saved_in_between_changes_no_number() {
        let half: &[u8] = &[0x66, 0x83, 0xf8, 0x09]; // cmp $9,%ax
        let (load, push): (&[u8], &[u8]) = (&[0x0f, 0xb7, 0x06], &[0x53]);
        // movzwl (%rsi),%eax and push %rbx, and with push %rax in place of that
        assert_eq!(told(Register::RAX, &[JA, half, push, load]), Some(10));
        assert_eq!(told(Register::RAX, &[JA, half, &[0x50], load]), Some(10));
        // movzwl 8(%rsp),%eax
        let spilled: &[u8] = &[0x66, 0x83, 0x7c, 0x24, 0x08, 0x09]; // cmpw $9,8(%rsp)
        let reload: &[u8] = &[0x0f, 0xb7, 0x44, 0x24, 0x08];
        assert_eq!(told(Register::RAX, &[JA, spilled, reload]), Some(10));
        assert_eq!(told(Register::RAX, &[JA, spilled, push, reload]), None, "another slot");
        assert_eq!(told(Register::RAX, &[reload, push, JA, spilled]), None, "another slot");
        // pop %rbx
        assert_eq!(told(Register::RAX, &[JA, half, &[0x5b], load]), None);
    }

    #[test]
    fn sub_compares_what_was_there_before_and_mov_takes_the_number_along() {
        let sub: &[u8] = &[0x83, 0xef, 0x05]; // sub $5,%edi
        // mov %edi,%eax before it, which is what counts
        assert_eq!(told(Register::RAX, &[JA, sub, &[0x89, 0xf8]]), Some(6));
        assert_eq!(told(Register::RDI, &[JA, sub]), None, "the difference");
        // mov %edi,%eax, cmp $5,%edi, mov %esi,%edi: the comparison is of what came from esi
        let back: [&[u8]; 4] = [JA, &[0x83, 0xff, 0x05], &[0x89, 0xf7], &[0x89, 0xf8]];
        assert_eq!(told(Register::RAX, &back), None);
        assert_eq!(told(Register::RSI, &back[..3]), Some(6));
    }
}
