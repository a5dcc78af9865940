//! One function, decoded once: where its instructions begin and which of them are jumped to.

use crate::limit;
use dataspace_proto::address::Svma;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use rustc_hash::FxHashMap;

/// A decoded function.
#[derive(Debug)]
pub struct FunctionCode {
    /// First address.
    pub start: Svma,
    /// End.
    pub end: Svma,
    instructions: Vec<Instruction>,
    /// The branches that jump to an instruction.
    sources: FxHashMap<u64, Vec<Instruction>>,
    /// It has an indirect jump whose targets are not all known.
    has_unknown_jumps: bool,
    /// Where the predecessors of each instruction begin in `predecessors`, and one end more.
    offsets: Vec<u32>,
    predecessors: Vec<Predecessor>,
    entrances: Vec<Entrances>,
}

/// An instruction that can have run just before another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// Its index.
    pub from: u32,
    /// By its jump; else it fell through.
    pub is_taken: bool,
}

/// Ways into an instruction from outside what the graph of its function shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entrances {
    /// The function, or a part of it, is entered here: a call or a jump elsewhere came before.
    pub is_entry: bool,
    /// It stands behind a call: the callee's `ret` came before. The call is no predecessor.
    pub is_return: bool,
    /// The unwinder jumps here.
    pub is_landing_pad: bool,
    /// An indirect jump whose targets are not all known may lead here, nothing that is known
    /// leads here, or more does than is weighed ([`limit::MAX_PREDECESSORS`]).
    pub is_unknown: bool,
}

/// Reads jump tables: the bytes at an address of the load object, as many as there are up to a
/// length.
pub trait ImageBytes {
    /// Up to `n_bytes` bytes at `svma`.
    fn bytes_at(&self, svma: Svma, n_bytes: usize) -> Option<Vec<u8>>;
}

impl FunctionCode {
    /// Decodes `code`, the bytes from `start` on.
    #[must_use]
    pub fn decode(start: Svma, code: &[u8], image: &dyn ImageBytes) -> Self {
        let decoder = Decoder::with_ip(64, code, start.0, DecoderOptions::NONE);
        let instructions: Vec<Instruction> = decoder.into_iter().collect();
        let mut function = Self {
            start,
            end: start.plus(code.len() as u64),
            instructions,
            sources: FxHashMap::default(),
            has_unknown_jumps: false,
            offsets: Vec::new(),
            predecessors: Vec::new(),
            entrances: Vec::new(),
        };
        function.find_sources(image);
        function.link();
        function
    }

    /// What can have run just before the instruction at `index`, in time.
    #[must_use]
    pub fn predecessors(&self, index: usize) -> &[Predecessor] {
        let at = |index: usize| self.offsets.get(index).map(|offset| *offset as usize);
        let range = at(index).zip(at(index.saturating_add(1)));
        range.and_then(|(start, end)| self.predecessors.get(start..end)).unwrap_or(&[])
    }

    /// Ways into the instruction at `index` from outside what this graph shows.
    #[must_use]
    pub fn entrances(&self, index: usize) -> Entrances {
        let nowhere = Entrances { is_unknown: true, ..Entrances::default() };
        self.entrances.get(index).copied().unwrap_or(nowhere)
    }

    /// Makes the predecessors of every instruction from the jumps found.
    fn link(&mut self) {
        let mut offsets = vec![0];
        let mut predecessors = Vec::new();
        let mut entrances = Vec::new();
        for (index, here) in self.instructions.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|before| self.instruction(before));
            let flow = before.map(Instruction::flow_control);
            let is_call = before.is_some_and(|before| {
                !matches!(before.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter)
            });
            let is_return =
                is_call && matches!(flow, Some(FlowControl::Call | FlowControl::IndirectCall));
            let falls_through = !is_return
                && !matches!(
                    flow,
                    None | Some(
                        FlowControl::UnconditionalBranch
                            | FlowControl::IndirectBranch
                            | FlowControl::Return
                            | FlowControl::Exception
                    )
                );
            let n_before = predecessors.len();
            if falls_through && !self.is_alignment(index - 1) {
                predecessors.push(Predecessor { from: index as u32 - 1, is_taken: false });
            }
            let jumps = self.jumps_to(Svma(here.ip()));
            let from = jumps.iter().filter_map(|jump| self.index_of(Svma(jump.ip())));
            predecessors.extend(from.map(|from| Predecessor { from: from as u32, is_taken: true }));
            let is_block = !falls_through || !jumps.is_empty();
            entrances.push(Entrances {
                is_entry: index == 0,
                is_return,
                is_landing_pad: false,
                is_unknown: self.has_unknown_jumps && is_block
                    || index != 0 && !is_return && predecessors.len() == n_before
                    || jumps.len() > limit::MAX_PREDECESSORS,
            });
            offsets.push(predecessors.len() as u32);
        }
        (self.offsets, self.predecessors, self.entrances) = (offsets, predecessors, entrances);
    }

    /// Whether the instruction at `index` only fills up to an alignment: no-operations behind a
    /// jump or return, which nothing reaches.
    fn is_alignment(&self, index: usize) -> bool {
        for at_index in (0..=index).rev() {
            let Some(instruction) = self.instruction(at_index) else { return false };
            match instruction.flow_control() {
                FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch
                | FlowControl::Return => return at_index != index,
                _ if !matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3) => {
                    return false;
                }
                _ if !self.jumps_to(Svma(instruction.ip())).is_empty() => return false,
                _ => {}
            }
        }
        false
    }

    /// How many instructions it has.
    #[must_use]
    pub fn n_instructions(&self) -> usize {
        self.instructions.len()
    }

    /// The index of the instruction that begins at `svma`; `None` between two.
    #[must_use]
    pub fn index_of(&self, svma: Svma) -> Option<usize> {
        self.instructions.binary_search_by_key(&svma.0, Instruction::ip).ok()
    }

    /// The instruction at `index`.
    #[must_use]
    pub fn instruction(&self, index: usize) -> Option<&Instruction> {
        self.instructions.get(index).filter(|instruction| !instruction.is_invalid())
    }

    /// The branches that jump to `svma`.
    #[must_use]
    pub fn jumps_to(&self, svma: Svma) -> &[Instruction] {
        self.sources.get(&svma.0).map_or(&[], Vec::as_slice)
    }

    /// Whether some indirect jump may reach any instruction.
    #[must_use]
    pub const fn has_unknown_jumps(&self) -> bool {
        self.has_unknown_jumps
    }

    /// Adds the branches of another part of the same function, which the compiler moved away: they
    /// lead back into the middle of this one.
    pub fn add_part(&mut self, start: Svma, code: &[u8]) {
        for instruction in Decoder::with_ip(64, code, start.0, DecoderOptions::NONE) {
            if instruction.op0_kind() == OpKind::NearBranch64
                && instruction.flow_control() != FlowControl::Call
            {
                self.add_source(instruction.near_branch_target(), instruction);
            }
        }
    }

    fn find_sources(&mut self, image: &dyn ImageBytes) {
        let mut indirect = Vec::new();
        for idx in 0..self.instructions.len() {
            let instruction = self.instructions[idx];
            match instruction.flow_control() {
                FlowControl::ConditionalBranch
                | FlowControl::UnconditionalBranch
                | FlowControl::XbeginXabortXend
                    if instruction.op0_kind() == OpKind::NearBranch64 =>
                {
                    self.add_source(instruction.near_branch_target(), instruction);
                }
                FlowControl::IndirectBranch => indirect.push(idx),
                _ => {}
            }
        }
        if indirect.is_empty() {
            return;
        }
        let tables = self.jump_tables(image);
        let has_labels = self.takes_own_addresses();
        for jump in indirect {
            // Which table belongs to which jump is not traced: each jump may use each table, so a
            // target too many is possible and one too few is not.
            for target in &tables {
                self.add_source(*target, self.instructions[jump]);
            }
            self.has_unknown_jumps |=
                if self.is_through_memory(jump) { has_labels } else { tables.is_empty() };
        }
    }

    fn add_source(&mut self, target: u64, source: Instruction) {
        if (self.start.0..self.end.0).contains(&target) {
            let sources = self.sources.entry(target).or_default();
            let is_known = sources.iter().any(|known| known.ip() == source.ip());
            if sources.len() <= limit::MAX_PREDECESSORS && !is_known {
                sources.push(source);
            }
        }
    }

    /// Whether an indirect jump reads its target from memory that is no table of its own: a PLT
    /// slot or a method table, which leads to another function, or a pointer to a label.
    fn is_through_memory(&self, jump: usize) -> bool {
        let instruction = &self.instructions[jump];
        let is_indexed = instruction.memory_index() != iced_x86::Register::None;
        instruction.op0_kind() == OpKind::Memory && !is_indexed
    }

    /// Whether the function takes the address of one of its labels.
    fn takes_own_addresses(&self) -> bool {
        self.instructions.iter().any(|instruction| {
            instruction.mnemonic() == iced_x86::Mnemonic::Lea
                && instruction.is_ip_rel_memory_operand()
                && (self.start.0 + 1..self.end.0).contains(&instruction.memory_displacement64())
        })
    }

    /// Targets in every jump table that the function refers to.
    ///
    /// gcc, clang and rustc address a table by `lea table(%rip),%reg` and store 32-bit distances
    /// from the table, or by `jmp *table(,%reg,8)` and store 64-bit addresses.
    fn jump_tables(&self, image: &dyn ImageBytes) -> Vec<u64> {
        let mut targets = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        for instruction in &self.instructions {
            let is_table_address = instruction.is_ip_rel_memory_operand()
                && instruction.mnemonic() == iced_x86::Mnemonic::Lea;
            let is_absolute = instruction.memory_base() == iced_x86::Register::None
                && instruction.memory_index() != iced_x86::Register::None
                && instruction.memory_index_scale() == 8;
            let table = instruction.memory_displacement64();
            if !(is_table_address || is_absolute) || !seen.insert((table, is_absolute)) {
                continue;
            }
            // The address of a label, for `goto *`.
            if self.index_of(Svma(table)).is_some() {
                targets.push(table);
                continue;
            }
            let is_own_code = (self.start.0..self.end.0).contains(&table);
            if table == 0 || is_own_code || targets.len() >= limit::MAX_JUMP_TABLE_ENTRIES {
                continue;
            }
            if is_absolute {
                self.read_absolute_table(Svma(table), image, &mut targets);
            } else {
                self.read_relative_table(Svma(table), image, &mut targets);
            }
        }
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    fn read_relative_table(&self, table: Svma, image: &dyn ImageBytes, targets: &mut Vec<u64>) {
        let Some(bytes) = image.bytes_at(table, limit::MAX_JUMP_TABLE_ENTRIES * 4) else { return };
        let distances = bytes.as_chunks::<4>().0.iter().map(|entry| i32::from_le_bytes(*entry));
        let absolute = distances.map(|far| table.0.wrapping_add_signed(i64::from(far)));
        targets.extend(self.own_targets(absolute));
    }

    fn read_absolute_table(&self, table: Svma, image: &dyn ImageBytes, targets: &mut Vec<u64>) {
        let Some(bytes) = image.bytes_at(table, limit::MAX_JUMP_TABLE_ENTRIES * 8) else { return };
        let absolute = bytes.as_chunks::<8>().0.iter().map(|entry| u64::from_le_bytes(*entry));
        targets.extend(self.own_targets(absolute));
    }

    /// A table has no length: it ends where an entry is no instruction of the function.
    fn own_targets(&self, entries: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
        entries.take_while(|target| self.index_of(Svma(*target)).is_some())
    }
}

/// An image without bytes, for code that has no tables.
#[cfg(test)]
pub(crate) struct NoBytes;

#[cfg(test)]
impl ImageBytes for NoBytes {
    fn bytes_at(&self, _: Svma, _: usize) -> Option<Vec<u8>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Table(u64, Vec<u8>);

    impl ImageBytes for Table {
        fn bytes_at(&self, svma: Svma, _: usize) -> Option<Vec<u8>> {
            (svma.0 == self.0).then(|| self.1.clone())
        }
    }

    fn sources(function: &FunctionCode, svma: u64) -> Vec<u64> {
        function.jumps_to(Svma(svma)).iter().map(Instruction::ip).collect()
    }

    #[test]
    fn a_part_that_was_moved_away_jumps_back() {
        // 1000: mov (%rax),%rax   1003: mov (%rax),%rax   and far off 2000: jmp 1003
        let code = [0x48, 0x8b, 0x00, 0x48, 0x8b, 0x00];
        let mut function = FunctionCode::decode(Svma(0x1000), &code, &NoBytes);
        assert!(sources(&function, 0x1003).is_empty());
        function.add_part(Svma(0x2000), &[0xe9, 0xfe, 0xef, 0xff, 0xff]);
        assert_eq!(sources(&function, 0x1003), [0x2000]);
    }

    #[test]
    fn a_loop_head_knows_its_branch() {
        // 1000: mov (%rax),%rax   1003: sub $1,%rdx   1007: jne 1000   1009: ret
        let code = [0x48, 0x8b, 0x00, 0x48, 0x83, 0xea, 0x01, 0x75, 0xf7, 0xc3];
        let function = FunctionCode::decode(Svma(0x1000), &code, &NoBytes);
        assert_eq!(sources(&function, 0x1000), [0x1007]);
        assert!(function.jumps_to(Svma(0x1003)).is_empty());
        assert_eq!(function.index_of(Svma(0x1003)), Some(1));
        assert_eq!(function.index_of(Svma(0x1004)), None, "inside an instruction");
        let entry = Entrances { is_entry: true, ..Entrances::default() };
        assert_eq!(function.entrances(0), entry);
        assert_eq!(function.predecessors(0), [Predecessor { from: 2, is_taken: true }]);
        assert_eq!(function.predecessors(1), [Predecessor { from: 0, is_taken: false }]);
        assert_eq!(function.entrances(1), Entrances::default());
    }

    #[test]
    fn a_relative_jump_table_gives_its_targets() {
        // 1000: lea 0xff9(%rip),%rdx   1007: movslq (%rdx,%rax,4),%rax   100b: add %rdx,%rax
        // 100e: jmp *%rax   1010: ret   1011: nop   1012: ret
        let code = [
            0x48, 0x8d, 0x15, 0xf9, 0x0f, 0, 0, 0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0, 0xff,
            0xe0, 0xc3, 0x90, 0xc3,
        ];
        let entry = |target: i32| (target - 0x2000).to_le_bytes();
        let table = [entry(0x1010), entry(0x1012), entry(0x5000)].concat();
        let function = FunctionCode::decode(Svma(0x1000), &code, &Table(0x2000, table));
        assert_eq!(sources(&function, 0x1010), [0x100e]);
        assert_eq!(sources(&function, 0x1012), [0x100e]);
        assert!(function.jumps_to(Svma(0x1011)).is_empty());
        assert!(!function.has_unknown_jumps());
    }
}
