//! Bytes that are tested for a kind: a small number, or the low bits of one, as no character is.

use super::function::FunctionCode;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// Kinds are counted from one: 0 ends texts, 9, 10 and 13 are in them.
const KINDS: std::ops::RangeInclusive<u64> = 1..=8;

/// Bits that tell a kind, at most.
const MAX_MASK: u64 = 15;

/// Instructions from the load of a byte to the test.
const MAX_BETWEEN: usize = 6;

impl FunctionCode {
    /// Tells whether the byte that the instruction at `index` reads is tested for a kind, there or just after.
    pub(crate) fn tests_kind(&self, index: usize) -> bool {
        let Some(here) = self.instruction(index) else { return false };
        if let Some(is_kind) = tested(here) {
            return is_kind && here.op0_kind() == OpKind::Memory;
        }
        if !matches!(here.mnemonic(), Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx) {
            return false;
        }
        // The registers that have it.
        let mut holders = vec![here.op0_register().full_register()];
        for at in index + 1..=index + MAX_BETWEEN {
            let next = self.instruction(at).filter(|_| self.is_after_one(at));
            let Some(next) = next else { return false };
            let to = next.op0_register().full_register();
            let is_held = |register: Register| holders.contains(&register.full_register());
            match tested(next) {
                Some(is_kind) if is_held(to) => return is_kind,
                _ if next.mnemonic() == Mnemonic::Mov && is_held(next.op1_register()) => {
                    holders.push(to);
                }
                _ if !matches!(next.mnemonic(), Mnemonic::Cmp | Mnemonic::Test) => {
                    holders.retain(|holder| *holder != to);
                }
                _ => {}
            }
        }
        false
    }
}

/// Tells whether an instruction tests for a kind; `None` where it tests nothing by a number.
fn tested(instruction: &Instruction) -> Option<bool> {
    let number = instruction.try_immediate(1).ok()?;
    match instruction.mnemonic() {
        Mnemonic::Cmp | Mnemonic::Sub => Some(KINDS.contains(&number)),
        Mnemonic::And | Mnemonic::Test => Some((1..=MAX_MASK).contains(&number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86_64::image_bytes::NoBytes;
    use dataspace_proto::address::Svma;

    #[test]
    fn kinds_are_small_numbers_and_low_bits() {
        let tests = |code: &[&[u8]]| {
            let code = [&code.concat(), &[0xc3][..]].concat();
            FunctionCode::decode(Svma(0x1000), &code, &NoBytes).tests_kind(0)
        };
        // movzbl -1(%rdi),%eax
        let load: &[u8] = &[0x0f, 0xb6, 0x47, 0xff];
        assert!(tests(&[load, &[0x83, 0xe0, 0x07]]), "and $7,%eax");
        assert!(tests(&[load, &[0x3c, 0x02]]), "cmp $2,%al");
        assert!(tests(&[load, &[0x89, 0xc1], &[0x31, 0xc0], &[0x83, 0xe1, 0x07]]), "mov %eax,%ecx");
        assert!(tests(&[&[0x80, 0x7f, 0xff, 0x01]]), "cmpb $1,-1(%rdi)");
        assert!(!tests(&[load, &[0x3c, b'z']]));
        assert!(!tests(&[load, &[0x3c, b'\n']]));
        assert!(!tests(&[load, &[0x31, 0xc0], &[0x3c, 0x02]]), "another value");
        assert!(!tests(&[&[0x80, 0x7f, 0xff, b'z']]));
        assert!(!tests(&[load]));
    }
}
