//! Where an indirect jump leads: through the table, label or pointer that its operand comes from.
//!
//! gcc, clang and rustc make a `switch` of `lea table(%rip),%a; movslq (%a,%i,4),%t; add %a,%t;
//! jmp *%t` (32-bit distances from the table) or, at fixed addresses, `jmp *table(,%i,8)` (64-bit
//! addresses). GNU C's labels as values are such a table of addresses, relocated by the loader in
//! what may be loaded anywhere, or distances from one label.

use super::definition::{Addend, Definitions, Origin};
use super::exit::Exit;
use super::function::{Entrances, ImageBytes, Predecessor};
use super::guard;
use super::sweep::Sweep;
use crate::limit;
use dataspace_proto::address::Svma;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use rustc_hash::FxHashSet;

/// What is known of the flow so far. Indices are those of the sweep.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) sweep: &'a Sweep<'a>,
    /// Which instructions are reached.
    pub(super) is_reached: &'a [bool],
    pub(super) entrances: &'a [Entrances],
    /// To where, and from where; sorted.
    pub(super) edges: &'a [(u32, Predecessor)],
    /// What stands behind a call, and the call; sorted.
    pub(super) returns: &'a [(u32, u32)],
    /// Addresses of labels that stand in data.
    pub(super) labels: &'a [Svma],
}

impl<'a> View<'a> {
    pub(super) fn predecessors(&self, index: u32) -> &'a [(u32, Predecessor)] {
        let start = self.edges.partition_point(|(to, _)| *to < index);
        let len = self.edges[start..].partition_point(|(to, _)| *to == index);
        &self.edges[start..start + len]
    }

    pub(super) fn calls_before(&self, index: u32) -> &'a [(u32, u32)] {
        let start = self.returns.partition_point(|(to, _)| *to < index);
        let len = self.returns[start..].partition_point(|(to, _)| *to == index);
        &self.returns[start..start + len]
    }

    pub(super) fn instruction(&self, index: u32) -> &'a Instruction {
        &self.sweep.instructions[index as usize]
    }

    fn reached(&self) -> impl Iterator<Item = &Instruction> {
        let all = self.sweep.instructions.iter().zip(self.is_reached);
        all.filter(|(_, is_reached)| **is_reached).map(|(instruction, _)| instruction)
    }
}

/// Where an indirect jump leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Targets {
    /// To these addresses, some of which may be outside the function.
    Known(Vec<u64>),
    /// To another function: through a method table, a pointer or a linkage slot.
    Elsewhere,
    /// Not known.
    Unknown,
}

/// Traces the indirect jumps of one function.
pub(super) struct Tracer<'a> {
    view: View<'a>,
    image: &'a dyn ImageBytes,
    definitions: Definitions<'a>,
    /// Addresses in data that the function refers to: a table ends where another one begins.
    references: Vec<u64>,
}

impl<'a> Tracer<'a> {
    pub(super) fn new(view: View<'a>, image: &'a dyn ImageBytes) -> Self {
        let in_data = |address: &u64| !view.sweep.holds(*address);
        let has_numbers = image.is_at_fixed_addresses();
        let references = view.reached().filter_map(|here| table_address(here, has_numbers));
        let mut references: Vec<u64> = references.filter(in_data).collect();
        references.sort_unstable();
        references.dedup();
        Self { view, image, definitions: Definitions::new(view), references }
    }

    /// Traces `jumps`. With `with_all_tables` those that cannot be traced get the targets in every
    /// table of the function: one too many is possible and one too few is not.
    pub(super) fn resolve(&mut self, jumps: &[u32], with_all_tables: bool) -> Vec<(u32, Targets)> {
        let traced: Vec<(u32, Trace)> =
            jumps.iter().map(|jump| (*jump, self.trace(*jump))).collect();
        let needs = |kind: &Trace| traced.iter().any(|(_, trace)| trace == kind);
        let all = |is_needed: bool, table: fn(&Self) -> Vec<u64>| {
            if with_all_tables && is_needed { table(self) } else { Vec::new() }
        };
        let pointers = all(needs(&Trace::Pointer) || needs(&Trace::Lost), Self::all_pointers);
        let mut tables = all(needs(&Trace::Lost), Self::all_distances);
        tables.extend(&pointers);
        let settle = |trace| match trace {
            Trace::Known(targets) => Targets::Known(targets),
            Trace::Pointer if pointers.is_empty() => Targets::Elsewhere,
            Trace::Pointer => Targets::Known(pointers.clone()),
            Trace::Lost if tables.is_empty() => Targets::Unknown,
            Trace::Lost => Targets::Known(tables.clone()),
        };
        traced.into_iter().map(|(jump, trace)| (jump, settle(trace))).collect()
    }

    /// Labels whose address the function takes.
    pub(super) fn labels(&self) -> Vec<u64> {
        let has_numbers = self.image.is_at_fixed_addresses();
        let taken = self.view.reached().filter_map(|here| formed_address(here, has_numbers));
        let taken = taken.chain(self.view.labels.iter().map(|label| label.0));
        let mut labels: Vec<u64> = taken.filter(|label| self.is_label(*label)).collect();
        labels.sort_unstable();
        labels.dedup();
        labels
    }

    /// Whether an instruction begins there that is no entry of the function.
    fn is_label(&self, address: u64) -> bool {
        let index = self.view.sweep.index_of(address);
        index.is_some_and(|index| {
            !self.view.entrances.get(index as usize).is_some_and(|known| known.is_entry)
        })
    }

    fn trace(&mut self, jump: u32) -> Trace {
        let here = *self.view.instruction(jump);
        match here.op0_kind() {
            OpKind::Memory => self.through_pointer(jump, &here),
            OpKind::Register => {
                let origins = self.definitions.origins(here.op0_register(), jump);
                self.join(origins)
            }
            _ => Trace::Pointer,
        }
    }

    /// Where the values of the jump's register lead, all together.
    fn join(&mut self, origins: Vec<Origin>) -> Trace {
        let mut targets = Vec::new();
        let mut is_pointer = false;
        for origin in origins {
            let trace = match origin {
                Origin::Address(address) if self.view.sweep.holds(address) => {
                    Trace::Known(vec![address])
                }
                Origin::Load { at, n_bytes: 8 } => {
                    let load = *self.view.instruction(at);
                    self.through_pointer(at, &load)
                }
                Origin::Sum { at, left, right } => self.through_distance(at, left, right),
                Origin::Address(_) | Origin::Outside => Trace::Pointer,
                Origin::Load { .. } | Origin::Lost => Trace::Lost,
            };
            match trace {
                Trace::Known(found) => targets.extend(found),
                Trace::Pointer => is_pointer = true,
                Trace::Lost => return Trace::Lost,
            }
        }
        // A pointer to elsewhere beside a table of its own adds nothing here.
        match (is_pointer, targets.is_empty()) {
            (true, true) => Trace::Pointer,
            (false, true) => Trace::Lost,
            (_, false) => Trace::Known(targets),
        }
    }

    /// Through the pointer that `at` reads.
    fn through_pointer(&mut self, at: u32, load: &Instruction) -> Trace {
        let place = load.memory_displacement64();
        let (base, index) = (load.memory_base(), load.memory_index());
        if load.segment_prefix() != Register::None {
            return Trace::Pointer;
        }
        if load.is_ip_rel_memory_operand() || base == Register::None && index == Register::None {
            return match self.pointer(place) {
                Some(target) if self.view.sweep.holds(target) => Trace::Known(vec![target]),
                _ => Trace::Pointer,
            };
        }
        let mut targets = Vec::new();
        for (table, index) in self.tables(at, load) {
            let n_entries = guard::n_entries(&self.view, at, index);
            targets.extend(self.read_pointers(table, n_entries));
        }
        if targets.is_empty() { Trace::Pointer } else { Trace::Known(targets) }
    }

    /// The tables that the operand of `load` may be in, and the register that counts in them.
    fn tables(&mut self, at: u32, load: &Instruction) -> Vec<(u64, Option<Register>)> {
        let displacement = load.memory_displacement64();
        let (base, index) = (load.memory_base(), load.memory_index());
        let counter = (index != Register::None).then_some(index);
        if base == Register::None {
            return vec![(displacement, counter)];
        }
        let mut tables = self.addresses(base, at, displacement, counter);
        // gcc -O0 counts in the base: `mov (%rdx,%rax,1)` with the table in rax.
        if tables.is_empty() && load.memory_index_scale() == 1 && index != Register::None {
            tables = self.addresses(index, at, displacement, Some(base));
        }
        tables
    }

    fn addresses(
        &mut self,
        register: Register,
        at: u32,
        displacement: u64,
        counter: Option<Register>,
    ) -> Vec<(u64, Option<Register>)> {
        let origins = self.definitions.origins(register, at);
        let address = |origin: &Origin| match origin {
            Origin::Address(address) => Some((address.wrapping_add(displacement), counter)),
            _ => None,
        };
        // One origin that is not known spoils the rest.
        let tables: Option<Vec<_>> = origins.iter().map(address).collect();
        tables.unwrap_or_default()
    }

    /// By a distance read from a table, added to an address.
    fn through_distance(&mut self, at: u32, left: Register, right: Addend) -> Trace {
        let right = match right {
            Addend::Register(right) => self.definitions.origins(right, at),
            Addend::Number(anchor) => vec![Origin::Address(anchor)],
            Addend::Memory => return Trace::Lost,
        };
        let sides = [self.definitions.origins(left, at), right];
        let is_load = |origin: &Origin| matches!(origin, Origin::Load { .. });
        let (loads, anchors) = match &sides {
            [loads, anchors] if !loads.is_empty() && loads.iter().all(is_load) => (loads, anchors),
            [anchors, loads] if !loads.is_empty() && loads.iter().all(is_load) => (loads, anchors),
            _ => return Trace::Lost,
        };
        let anchor = |origin: &Origin| match origin {
            Origin::Address(address) => Some(*address),
            _ => None,
        };
        let anchors: Vec<u64> =
            anchors.iter().map(anchor).collect::<Option<_>>().unwrap_or_default();
        let mut targets = Vec::new();
        for load in loads {
            let Origin::Load { at, n_bytes } = *load else { continue };
            let instruction = *self.view.instruction(at);
            let tables = self.tables(at, &instruction);
            // Either is the other where only one is known: compilers count from the table.
            let counter = [instruction.memory_index()].into_iter().find(|r| *r != Register::None);
            let known = |address: &u64| (*address, counter);
            let tables =
                if tables.is_empty() { anchors.iter().map(known).collect() } else { tables };
            for (table, counter) in tables {
                let n_entries = guard::n_entries(&self.view, at, counter);
                let own = anchors.is_empty() || anchors.contains(&table);
                let from = if own { std::slice::from_ref(&table) } else { &anchors };
                for anchor in from {
                    targets.extend(self.read_distances(table, *anchor, n_bytes, n_entries));
                }
            }
        }
        if targets.is_empty() { Trace::Lost } else { Trace::Known(targets) }
    }

    /// How many entries a table can have: as the guard says, or up to the next one.
    fn len(&self, table: u64, entry_bytes: usize, n_entries: Option<u64>) -> usize {
        let next = self.references.partition_point(|reference| *reference <= table);
        let room = self.references.get(next).map(|next| (next - table) / entry_bytes as u64);
        let n = n_entries.or(room).and_then(|n| usize::try_from(n).ok());
        n.unwrap_or(usize::MAX).min(limit::MAX_JUMP_TABLE_ENTRIES)
    }

    fn read_distances(
        &self,
        table: u64,
        anchor: u64,
        n_bytes: usize,
        n_entries: Option<u64>,
    ) -> Vec<u64> {
        let len = self.len(table, n_bytes, n_entries);
        let bytes = self.image.bytes_at(Svma(table), len * n_bytes).unwrap_or_default();
        let distance = |entry: &[u8]| match entry.try_into() {
            Ok(entry) => i64::from(i32::from_le_bytes(entry)),
            Err(_) => entry.try_into().map_or(0, i64::from_le_bytes),
        };
        let entries = bytes.chunks_exact(n_bytes).map(distance);
        self.own(entries.map(|far| anchor.wrapping_add_signed(far)), n_entries.is_some())
    }

    fn read_pointers(&self, table: u64, n_entries: Option<u64>) -> Vec<u64> {
        let len = self.len(table, 8, n_entries);
        let bytes = self.image.bytes_at(Svma(table), len * 8).unwrap_or_default();
        let entries = bytes.as_chunks::<8>().0.iter().zip(0u64..).map(|(entry, idx)| {
            let relocated = self.image.relocated(Svma(table.wrapping_add(idx * 8)));
            relocated.map_or(u64::from_le_bytes(*entry), |svma| svma.0)
        });
        self.own(entries, n_entries.is_some())
    }

    /// Those entries that are in the function. A table whose length no guard tells ends where an
    /// entry is no instruction of the function.
    fn own(&self, entries: impl Iterator<Item = u64>, is_guarded: bool) -> Vec<u64> {
        if is_guarded {
            return entries.filter(|target| self.view.sweep.holds(*target)).collect();
        }
        entries.take_while(|target| self.view.sweep.index_of(*target).is_some()).collect()
    }

    fn pointer(&self, place: u64) -> Option<u64> {
        let relocated = self.image.relocated(Svma(place)).map(|svma| svma.0);
        relocated.or_else(|| {
            let bytes = self.image.bytes_at(Svma(place), 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        })
    }

    /// Targets in all tables of distances that the function refers to.
    fn all_distances(&self) -> Vec<u64> {
        let tables = self.references.iter();
        bounded(tables.map(|table| self.read_distances(*table, *table, 4, None)))
    }

    /// Targets in all tables of pointers that the function refers to, and labels it takes the
    /// address of. A table that only a jump itself indexes is that jump's.
    fn all_pointers(&self) -> Vec<u64> {
        let has_numbers = self.image.is_at_fixed_addresses();
        let others = self.view.reached().filter(|here| Exit::of(here) != Exit::Indirect);
        let tables = others.filter_map(|here| table_address(here, has_numbers));
        let tables: FxHashSet<u64> = tables.filter(|at| !self.view.sweep.holds(*at)).collect();
        let labels = self.labels();
        // Distances from a label are in a table elsewhere.
        let pairs = labels.iter().take(limit::MAX_ANCHORS);
        let pairs = pairs.flat_map(|label| tables.iter().map(move |table| (*table, *label)));
        let distances = pairs.map(|(table, label)| self.read_distances(table, label, 4, None));
        let pointers = tables.iter().map(|table| self.read_pointers(*table, None));
        bounded(pointers.chain(distances).chain([labels.clone()]))
    }
}

/// What a trace comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Trace {
    Known(Vec<u64>),
    /// A pointer that is in no table.
    Pointer,
    /// By arithmetic, or from where it cannot be followed.
    Lost,
}

fn bounded(tables: impl Iterator<Item = Vec<u64>>) -> Vec<u64> {
    let mut targets: Vec<u64> = tables.flatten().take(limit::MAX_INDIRECT_EDGES).collect();
    targets.sort_unstable();
    targets.dedup();
    targets
}

/// The address that an instruction forms or indexes. At fixed addresses that can be a number.
fn table_address(instruction: &Instruction, has_numbers: bool) -> Option<u64> {
    let operands = (0..instruction.op_count()).map(|n| instruction.op_kind(n));
    let is_indexed = instruction.memory_base() == Register::None
        && instruction.memory_index() != Register::None
        && operands.into_iter().any(|kind| kind == OpKind::Memory);
    let indexed = is_indexed.then(|| instruction.memory_displacement64());
    indexed.filter(|address| *address != 0).or_else(|| formed_address(instruction, has_numbers))
}

/// The address that an instruction forms.
fn formed_address(instruction: &Instruction, has_numbers: bool) -> Option<u64> {
    if instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand() {
        return Some(instruction.memory_displacement64());
    }
    if !has_numbers {
        return None;
    }
    match instruction.mnemonic() {
        // A distance is added to it: `lea label(%rax),%rax`, `add $label,%rax`.
        Mnemonic::Lea => Some(instruction.memory_displacement64()).filter(|number| *number != 0),
        Mnemonic::Add if instruction.op1_kind() == OpKind::Immediate32to64 => {
            Some(instruction.immediate(1))
        }
        _ => immediate(instruction),
    }
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
