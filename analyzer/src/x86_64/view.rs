//! The instructions around a jump, as a search backwards sees them.

use crate::x86_64::edge::{Entrances, Predecessor};
use crate::x86_64::sweep::Sweep;
use dataspace_proto::address::Svma;
use iced_x86::{Instruction, Mnemonic, OpKind};

/// Flow of a function, as far as it is known so far. Indices are those of the sweep.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) sweep: &'a Sweep<'a>,
    /// True for each instruction that is reached.
    pub(super) is_reached: &'a [bool],
    pub(super) entrances: &'a [Entrances],
    /// To where, and from where; sorted for whoever asks for predecessors.
    pub(super) edges: &'a [(u32, Predecessor)],
    /// Instructions after calls, each with its call; sorted.
    pub(super) returns: &'a [(u32, u32)],
    /// Addresses of labels that stand in data.
    pub(super) labels: &'a [Svma],
}

impl<'a> View<'a> {
    pub(super) fn predecessors(&self, index: u32) -> &'a [(u32, Predecessor)] {
        at(self.edges, index)
    }

    pub(super) fn calls_before(&self, index: u32) -> &'a [(u32, u32)] {
        at(self.returns, index)
    }

    pub(super) fn instruction(&self, index: u32) -> &'a Instruction {
        &self.sweep.instructions[index as usize]
    }

    pub(crate) fn reached(&self) -> impl Iterator<Item = &Instruction> {
        let all = self.sweep.instructions.iter().zip(self.is_reached);
        all.filter(|(_, is_reached)| **is_reached).map(|(instruction, _)| instruction)
    }
}

/// The pairs of one instruction, of pairs that are sorted.
fn at<T>(pairs: &[(u32, T)], index: u32) -> &[(u32, T)] {
    let start = pairs.partition_point(|(to, _)| *to < index);
    let len = pairs[start..].partition_point(|(to, _)| *to == index);
    &pairs[start..start + len]
}

/// A number that `mov` loads or stores whole.
pub(super) fn immediate(instruction: &Instruction) -> Option<u64> {
    if instruction.mnemonic() != Mnemonic::Mov {
        return None;
    }
    match instruction.op1_kind() {
        OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 => {
            Some(instruction.immediate(1)).filter(|number| *number != 0)
        }
        _ => None,
    }
}
