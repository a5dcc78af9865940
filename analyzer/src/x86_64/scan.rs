//! Linear scans: code of which no flow graph is made, read from its first byte to its last.

use super::abi::POINTER_BYTES;
use super::access::{self, AddressOperand};
use super::exit::Exit;
use super::pointer::CodePointer;
use dataspace_proto::address::Svma;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};

fn decoder(start: Svma, code: &[u8]) -> Decoder<'_> {
    Decoder::with_ip(64, code, start.0, DecoderOptions::NONE)
}

/// The branches, jumps and calls in `code` whose target is written out, and the jumps by pointers in memory
/// ([`Exit::Indirect`]), by where they are.
pub(crate) fn exits(start: Svma, code: &[u8]) -> impl Iterator<Item = (Svma, Exit)> {
    let mut decoder = decoder(start, code);
    let mut here = Instruction::default();
    std::iter::from_fn(move || {
        while decoder.can_decode() {
            decoder.decode_out(&mut here);
            let is_exit = match here.op0_kind() {
                OpKind::NearBranch64 => true,
                OpKind::Memory => here.flow_control() == FlowControl::IndirectBranch,
                _ => false,
            };
            if is_exit {
                return Some((Svma(here.ip()), Exit::of(&here)));
            }
        }
        None
    })
}

/// Tells whether `code` calls what is not written out, or the system.
pub(crate) fn leaves_to_unknown(start: Svma, code: &[u8]) -> bool {
    decoder(start, code)
        .into_iter()
        .any(|it| matches!(Exit::of(&it), Exit::Call(None) | Exit::System))
}

/// The operand of the jump by a pointer in memory at `svma`.
pub(crate) fn pointer_jump(svma: Svma, code: &[u8]) -> Option<AddressOperand> {
    match CodePointer::of(&decoder(svma, code).decode())? {
        CodePointer::Memory(operand) => Some(operand),
        CodePointer::Register(_) => None,
    }
}

/// The most that the bytes of one instruction are (SDM volume 2, section 2.3.11).
pub(crate) const MAX_INSTRUCTION_BYTES: usize = 15;

/// Of a move of a pointer from memory at `svma` the address after it, and the register by its DWARF number.
pub(crate) fn pointer_loaded(svma: Svma, code: &[u8]) -> Option<(Svma, u16)> {
    let here = decoder(svma, code).decode();
    let is_load = here.mnemonic() == Mnemonic::Mov && here.op1_kind() == OpKind::Memory;
    let is_pointer = here.memory_size().size() == usize::from(POINTER_BYTES);
    let register = access::address_register(here.op0_register()).filter(|_| is_load && is_pointer);
    Some((Svma(here.next_ip()), register?.dwarf?))
}

/// The instructions in `code` that refer to an address: with a static operand there, of which the access is told, or with
/// a number that may be one.
pub(crate) fn references(start: Svma, code: &[u8]) -> impl Iterator<Item = (Svma, Reference)> {
    let all = decoder(start, code).into_iter();
    all.flat_map(|here| {
        Reference::of(&here).into_iter().flatten().map(move |it| (Svma(here.ip()), it))
    })
}

/// An instruction's reference to a place in data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The place.
    pub(crate) to: Svma,
    /// The bytes from there on that it reads or writes.
    n_bytes: u64,
    /// The use that is made of it.
    pub(crate) use_: DataUse,
}

/// The use that an instruction makes of a place in data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataUse {
    /// It goes there, or reads it.
    Read,
    /// It puts the register with this DWARF number there.
    Put(u16),
    /// It puts this number there.
    PutNumber(Svma),
    /// Anything else: it forms its address, or writes it in another way.
    Other,
}

impl Reference {
    fn of(here: &Instruction) -> [Option<Self>; 2] {
        let number = (1..here.op_count()).find_map(|operand| here.try_immediate(operand).ok());
        let other = |to| Self { to: Svma(to), n_bytes: 0, use_: DataUse::Other };
        if !here.op_kinds().any(|kind| kind == OpKind::Memory) {
            return [number.map(other), None];
        }
        let operand = access::operand(here);
        let Some(to) = operand.static_address() else {
            // What is counted from an address begins there.
            return [number.map(other), Some(other(operand.displacement.cast_unsigned()))];
        };
        let is_word = here.memory_size().size() == usize::from(POINTER_BYTES);
        let use_ = match here.mnemonic() {
            Mnemonic::Mov if here.op1_kind() == OpKind::Memory => DataUse::Read,
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push => DataUse::Read,
            Mnemonic::Call | Mnemonic::Jmp => DataUse::Read,
            Mnemonic::Mov if is_word => match (here.op1_kind(), number) {
                (OpKind::Register, _) => {
                    let register = access::address_register(here.op1_register());
                    register.and_then(|it| it.dwarf).map_or(DataUse::Other, DataUse::Put)
                }
                (_, Some(number)) => DataUse::PutNumber(Svma(number)),
                _ => DataUse::Other,
            },
            _ => DataUse::Other,
        };
        let n_bytes = here.memory_size().size() as u64;
        [number.map(other), Some(Self { to, n_bytes, use_ })]
    }

    /// Tells whether the address is formed, or a number like it, and nothing there touched.
    pub(crate) fn is_address(&self) -> bool {
        self.use_ == DataUse::Other && self.n_bytes == 0
    }

    /// Tells whether the pointer at `place` is what it refers to, or a part of that.
    pub(crate) fn reaches(&self, place: Svma) -> bool {
        let end = place.0.saturating_add(POINTER_BYTES.into());
        let is_from = (place.0..end).contains(&self.to.0);
        is_from || self.to < place && self.to.0.saturating_add(self.n_bytes) > place.0
    }
}

/// The jump of a stub of a linkage table, and the pointer that it goes by.
pub(crate) fn linkage_jump(start: Svma, code: &[u8]) -> Option<(Svma, Svma)> {
    let mut stub = decoder(start, code).into_iter().take(2);
    let jump = stub.find(|here| here.flow_control() != FlowControl::Next)?;
    let is_slot =
        jump.flow_control() == FlowControl::IndirectBranch && jump.is_ip_rel_memory_operand();
    is_slot.then(|| (Svma(jump.ip()), Svma(jump.memory_displacement64())))
}

/// The numbers that `code` puts into registers or memory, up to bytes that do not decode. Where code has
/// fixed addresses, some of them are addresses.
pub(crate) fn addresses(start: Svma, code: &[u8]) -> impl Iterator<Item = Svma> {
    let valid = decoder(start, code).into_iter().take_while(|here| !here.is_invalid());
    valid.filter_map(|here| match here.mnemonic() {
        Mnemonic::Lea if here.is_ip_rel_memory_operand() => {
            Some(Svma(here.memory_displacement64()))
        }
        Mnemonic::Mov if here.op_count() == 2 => here.try_immediate(1).ok().map(Svma),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_refers_to_a_pointer_is_told_from_what_changes_it() {
        // At 1000, each with the place 2000 as its operand or number, or near it:
        let code = [
            &[0x48, 0x8b, 0x05, 0xf9, 0x0f, 0, 0][..], // mov 2000(%rip),%rax
            &[0x48, 0x89, 0x05, 0xf2, 0x0f, 0, 0],     // mov %rax,2000(%rip)
            &[0x48, 0x8d, 0x0d, 0xeb, 0x0f, 0, 0],     // lea 2000(%rip),%rcx
            &[0x0f, 0x11, 0x05, 0xdc, 0x0f, 0, 0],     // movups %xmm0,1ff8(%rip)
            &[0xff, 0x25, 0xde, 0x0f, 0, 0],           // jmp *2000(%rip)
            &[0x48, 0xc7, 0x05, 0xd3, 0x0f, 0, 0, 0, 0x30, 0, 0], // movq $0x3000,2000(%rip)
            &[0x48, 0x89, 0x05, 0xc4, 0x0f, 0, 0],     // mov %rax,1ff8(%rip)
            &[0xbf, 0, 0x20, 0, 0],                    // mov $0x2000,%edi
        ]
        .concat();
        let found = references(Svma(0x1000), &code);
        let reaching = found.filter(|(_, reference)| reference.reaches(Svma(0x2000)));
        let told: Vec<(u64, DataUse)> = reaching.map(|(at, it)| (at.0, it.use_)).collect();
        let expected = [
            (0x1000, DataUse::Read),
            (0x1007, DataUse::Put(0)),
            (0x100e, DataUse::Other),
            (0x1015, DataUse::Other),
            (0x101c, DataUse::Read),
            (0x1022, DataUse::PutNumber(Svma(0x3000))),
            (0x1034, DataUse::Other),
        ];
        assert_eq!(told, expected);
    }
}
