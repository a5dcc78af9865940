//! One function, decoded once: its instructions, and for each what can have run just before it.

use super::abi::POINTER_BYTES;
use super::access;
use super::exit::{Destination, Exit};
use super::flow::Flow;
use super::pointer::CodePointer;
use super::vector;
use crate::limit;
use crate::x86_64::edge::{Entrances, Predecessor};
use crate::x86_64::image_bytes::ImageBytes;
use crate::x86_64::outline::{CodePart, Outline};
use dataspace_proto::address::Svma;
use dataspace_proto::reason::Reason;
use iced_x86::{Instruction, Mnemonic, OpKind};
use rustc_hash::FxHashSet;
use std::ops::Range;

/// A function's flow graph: the instructions of all its parts, and the ways from one to another.
#[derive(Debug)]
pub struct FunctionCode {
    /// By address. What does not decode is in it, so that boundaries are known.
    instructions: Box<[Instruction]>,
    /// Start of each instruction's predecessors in `predecessors`, and one end more.
    offsets: Vec<u32>,
    predecessors: Vec<Predecessor>,
    entrances: Vec<Entrances>,
    /// Instructions that read a jump's target from a table, with the table's address, in order.
    pub(super) table_reads: Vec<(u32, u64)>,
}

impl FunctionCode {
    /// Decodes `code`, the bytes from `start` on, as a function that is all there.
    #[must_use]
    pub fn decode(start: Svma, code: &[u8], image: &dyn ImageBytes) -> Self {
        let part = CodePart { start, code: code.to_vec(), is_entered: true };
        let outline = Outline { parts: vec![part], ..Outline::default() };
        Self::of(&outline, image).unwrap_or_else(|_| Self::assemble(Vec::new(), &[], Vec::new()))
    }

    /// The flow graph of the function with this outline.
    ///
    /// # Errors
    /// `over_budget` for more than [`limit::MAX_FUNCTION_INSTRUCTIONS`].
    pub fn of(outline: &Outline, image: &dyn ImageBytes) -> Result<Self, Reason> {
        Ok(Flow::new(outline, image).ok_or(Reason::OverBudget)?.graph())
    }

    /// Puts a graph together. `edges` (to, predecessor) are sorted.
    pub(super) fn assemble(
        instructions: Vec<Instruction>,
        edges: &[(u32, Predecessor)],
        mut entrances: Vec<Entrances>,
    ) -> Self {
        let mut offsets = Vec::with_capacity(instructions.len() + 1);
        let mut predecessors = Vec::with_capacity(edges.len());
        let mut edges = edges.iter().peekable();
        for (index, entrance) in entrances.iter_mut().enumerate() {
            offsets.push(predecessors.len() as u32);
            let is_here = |edge: &&(u32, Predecessor)| edge.0 as usize == index;
            let first = predecessors.len();
            while let Some((_, predecessor)) = edges.next_if(|edge| is_here(edge)) {
                predecessors.push(*predecessor);
            }
            let n = predecessors.len() - first;
            if n > limit::MAX_PREDECESSORS {
                // Those that touch memory first: of the others it is enough that there are some.
                let jumps = |it: &Predecessor| is_jump_alone(&instructions[it.from as usize]);
                predecessors[first..].sort_by_key(|it| jumps(it));
                let is_cut_among_jumps = jumps(&predecessors[first + limit::MAX_PREDECESSORS]);
                entrance.is_by_jumps = is_cut_among_jumps && !entrance.is_unknown;
                predecessors.truncate(first + limit::MAX_PREDECESSORS);
            }
            entrance.is_unknown |= n > limit::MAX_PREDECESSORS || n == 0 && !entrance.is_any();
        }
        offsets.push(predecessors.len() as u32);
        let instructions = instructions.into();
        Self { instructions, offsets, predecessors, entrances, table_reads: Vec::new() }
    }

    /// Returns the number of its instructions.
    #[must_use]
    pub fn n_instructions(&self) -> usize {
        self.instructions.len()
    }

    /// The index of the instruction that begins at `svma`; `None` between two.
    #[must_use]
    pub fn index_of(&self, svma: Svma) -> Option<usize> {
        self.instructions.binary_search_by_key(&svma.0, Instruction::ip).ok()
    }

    /// The index of the first instruction that begins at `svma` or behind it.
    #[must_use]
    pub fn first_from(&self, svma: Svma) -> usize {
        self.instructions.partition_point(|instruction| instruction.ip() < svma.0)
    }

    /// Returns the address of the instruction at `index`.
    #[must_use]
    pub fn svma(&self, index: usize) -> Option<Svma> {
        self.instructions.get(index).map(|instruction| Svma(instruction.ip()))
    }

    /// Returns the address of the first instruction, by which what is known of a function is kept; `None` for bytes
    /// that are none.
    #[must_use]
    pub fn start(&self) -> Option<Svma> {
        self.code(0).map(|first| Svma(first.start))
    }

    /// From its first byte to its end, the instruction at `index`; `None` for bytes that are none.
    #[must_use]
    pub fn code(&self, index: usize) -> Option<Range<u64>> {
        self.instruction(index).map(|here| here.ip()..here.next_ip())
    }

    /// Returns the table from which the instruction at `index` reads where a jump leads.
    pub(crate) fn jump_table(&self, index: usize) -> Option<Svma> {
        let first = self.table_reads.partition_point(|(read, _)| (*read as usize) < index);
        let mut reads = self.table_reads[first..].iter().take_while(|it| it.0 as usize == index);
        // One that may be in two tables is in neither for certain.
        let (_, table) = reads.next().filter(|_| reads.next().is_none())?;
        Some(Svma(*table))
    }

    /// Tells where control goes from the instruction at `index`.
    pub(crate) fn exit(&self, index: usize) -> Exit {
        self.instruction(index).map_or(Exit::Never, Exit::of)
    }

    /// Returns the target of the call or jump at `index`, as far as it is written out.
    pub(crate) fn destination(&self, index: usize) -> Option<Destination> {
        Destination::of(self.instruction(index)?)
    }

    /// The jumps out of the function, each of which is a call in the last place; `None` where there
    /// are more than are looked at.
    pub(crate) fn jumps_out(&self) -> Option<Vec<Svma>> {
        let mut jumps = Vec::new();
        for at in 0..self.n_instructions() {
            let is_outside = |target| self.index_of(Svma(target)).is_none();
            let is_out = match self.exit(at) {
                Exit::Jump(target) => is_outside(target),
                // Where others lead, such as those of a `switch`, is not looked into.
                Exit::Indirect => self.destination(at).is_some(),
                Exit::Branch(target) if is_outside(target) => return None,
                _ => false,
            };
            if is_out && jumps.len() >= limit::MAX_JUMPS_OUT {
                return None;
            }
            jumps.extend(self.svma(at).filter(|_| is_out));
        }
        Some(jumps)
    }

    /// Tells whether it may put a pointer into memory, other than for itself. What is put into the frame others see where they
    /// get its address.
    pub(crate) fn puts_pointers(&self) -> bool {
        let is_of_frame = |here: &&Instruction| here.memory_base() == iced_x86::Register::RSP;
        let is_store = |here: &&Instruction| {
            here.op0_kind() == OpKind::Memory
                && !matches!(here.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Call)
                && here.memory_size().size() >= usize::from(POINTER_BYTES)
        };
        let takes_frame = |here: &Instruction| {
            here.op1_register() == iced_x86::Register::RSP
                || here.mnemonic() == Mnemonic::Lea && is_of_frame(&here)
        };
        let all = || self.instructions.iter();
        all().any(Instruction::is_string_instruction)
            || all().filter(is_store).any(|here| !is_of_frame(&here))
            || all().any(takes_frame)
    }

    /// Tells whether it writes vector registers to memory.
    pub(crate) fn stores_vectors(&self) -> bool {
        self.instructions.iter().any(|here| !vector::lanes_stored(here).is_empty())
    }

    /// Tells whether the instruction at `index` copies a string.
    pub(crate) fn copies_string(&self, index: usize) -> bool {
        let copies = [Mnemonic::Movsb, Mnemonic::Movsw, Mnemonic::Movsd, Mnemonic::Movsq];
        self.instruction(index)
            .is_some_and(|here| here.is_string_instruction() && copies.contains(&here.mnemonic()))
    }

    /// The address that the instruction at `index` makes: `lea`, or a number.
    pub(crate) fn names_address(&self, index: usize) -> Option<Svma> {
        let here = self.instruction(index)?;
        match here.mnemonic() {
            Mnemonic::Lea if here.is_ip_rel_memory_operand() => {
                Some(Svma(here.ip_rel_memory_address()))
            }
            Mnemonic::Mov | Mnemonic::Push => {
                let operand = here.op_count().checked_sub(1)?;
                here.try_immediate(operand).ok().map(Svma)
            }
            _ => None,
        }
    }

    /// Lists the indirect jumps that lead to other places of the function.
    pub(crate) fn leaps(&self) -> FxHashSet<u32> {
        let taken = self.predecessors.iter().filter(|from| from.is_taken).map(|it| it.from);
        taken.filter(|from| self.exit(*from as usize) == Exit::Indirect).collect()
    }

    /// Those of them that are not seen to lead to where it is entered: where one does, functions may be in its table, and
    /// others of them too.
    pub(crate) fn leaps_inside(&self) -> FxHashSet<u32> {
        let mut inside = self.leaps();
        for entry in self.entered_at() {
            for from in self.predecessors(entry).iter().filter(|from| from.is_taken) {
                inside.remove(&from.from);
            }
        }
        inside
    }

    /// The instructions at which it is entered.
    pub(crate) fn entries(&self) -> Vec<Svma> {
        self.entered_at().filter_map(|at| self.svma(at)).collect()
    }

    fn entered_at(&self) -> impl Iterator<Item = usize> {
        (0..self.n_instructions()).filter(|at| self.entrances(*at).is_entry)
    }

    /// Tells whether it aligns its stack pointer, as for locals of 32 bytes: `and $-32,%rsp`.
    pub(crate) fn aligns_stack(&self) -> bool {
        let is_aligning = |it: &Instruction| {
            it.mnemonic() == Mnemonic::And && it.op0_register() == iced_x86::Register::RSP
        };
        self.instructions.iter().any(is_aligning)
    }

    /// Returns the pointer by which the call or jump at `index` goes.
    pub(crate) fn pointer(&self, index: usize) -> Option<CodePointer> {
        CodePointer::of(self.instruction(index)?)
    }

    /// The instruction at `index`; `None` for bytes that are none.
    pub(super) fn instruction(&self, index: usize) -> Option<&Instruction> {
        self.instructions.get(index).filter(|instruction| !instruction.is_invalid())
    }

    /// Returns the instructions that can have run just before the one at `index`, in time.
    #[must_use]
    pub fn predecessors(&self, index: usize) -> &[Predecessor] {
        let at = |index: usize| self.offsets.get(index).map(|offset| *offset as usize);
        let range = at(index).zip(at(index.saturating_add(1)));
        range.and_then(|(start, end)| self.predecessors.get(start..end)).unwrap_or(&[])
    }

    /// Tells whether only the instruction before it in memory leads to the one at `index`, and that by running.
    pub(crate) fn is_after_one(&self, index: usize) -> bool {
        let is_next = matches!(self.predecessors(index), [from] if from.from as usize + 1 == index);
        is_next && !self.entrances(index).is_any()
    }

    /// Ways into the instruction at `index` from outside what this graph shows.
    #[must_use]
    pub fn entrances(&self, index: usize) -> Entrances {
        self.entrances.get(index).copied().unwrap_or(Entrances::UNKNOWN)
    }
}

/// Tells whether an instruction is a jump or branch that touches no memory.
fn is_jump_alone(instruction: &Instruction) -> bool {
    let is_jump = matches!(Exit::of(instruction), Exit::Jump(_) | Exit::Branch(_) | Exit::Indirect);
    is_jump && !access::is_of_memory(instruction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86_64::image_bytes::NoBytes;

    #[test]
    fn of_many_jumps_those_are_dropped_that_touch_nothing() {
        const N_JUMPS: usize = limit::MAX_PREDECESSORS + 6;
        // So many times `je label`, then mov (%rdi),%eax; label: ret.
        let mut code = Vec::new();
        for left in (0..N_JUMPS).rev() {
            code.extend([0x0f, 0x84]);
            code.extend((6 * left as u32 + 2).to_le_bytes());
        }
        code.extend([0x8b, 0x07, 0xc3]);
        let function = FunctionCode::decode(Svma(0x1000), &code, &NoBytes);
        let label = N_JUMPS + 1;
        let ways_in = function.entrances(label);
        assert!(ways_in.is_unknown && ways_in.is_by_jumps, "{ways_in:?}");
        let kept = function.predecessors(label);
        let access = Predecessor { from: N_JUMPS as u32, is_taken: false };
        assert!(kept.len() == limit::MAX_PREDECESSORS && kept.contains(&access), "{kept:?}");
    }

    #[test]
    fn a_branch_out_of_the_function_is_not_one_of_its_calls() {
        let jumps_out =
            |code: &[u8]| FunctionCode::decode(Svma(0x1000), code, &NoBytes).jumps_out();
        // 1000: je 1007  1002: jmp 2000  1007: ret
        let inside = jumps_out(&[0x74, 0x05, 0xe9, 0xf9, 0x0f, 0, 0, 0xc3]);
        assert_eq!(inside, Some(vec![Svma(0x1002)]));
        // 1000: je 2000  1006: ret
        let outside = jumps_out(&[0x0f, 0x84, 0xfa, 0x0f, 0, 0, 0xc3]);
        assert_eq!(outside, None);
        assert_eq!(jumps_out(&[0xc3]), Some(Vec::new()));
    }
}
