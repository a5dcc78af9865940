//! Linear scans: code of which no flow graph is made, read from its first byte to its last.

use super::exit::Exit;
use dataspace_proto::address::Svma;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};

fn decoder(start: Svma, code: &[u8]) -> Decoder<'_> {
    Decoder::with_ip(64, code, start.0, DecoderOptions::NONE)
}

/// The branches, jumps and calls in `code` whose target is written out, by where they are.
pub(crate) fn direct_exits(start: Svma, code: &[u8]) -> impl Iterator<Item = (Svma, Exit)> {
    let mut decoder = decoder(start, code);
    let mut here = Instruction::default();
    std::iter::from_fn(move || {
        while decoder.can_decode() {
            decoder.decode_out(&mut here);
            if here.op0_kind() == OpKind::NearBranch64 {
                return Some((Svma(here.ip()), Exit::of(&here)));
            }
        }
        None
    })
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
