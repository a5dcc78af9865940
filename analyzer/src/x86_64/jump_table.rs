//! Targets of an indirect jump: through the table, label or pointer that its operand comes from.
//!
//! gcc, clang and rustc make a `switch` of `lea table(%rip),%a; movslq (%a,%i,4),%t; add %a,%t;
//! jmp *%t` (32-bit distances from the table) or, at fixed addresses, `jmp *table(,%i,8)` (64-bit
//! addresses). GNU C's labels as values are such a table of addresses, relocated by the loader in
//! what may be loaded anywhere, or distances from one label.

use super::definition::{Addend, Definitions, JumpOperand};
use super::exit::Exit;
use super::guard;
use super::table::Tables;
use crate::limit;
use crate::x86_64::image_bytes::ImageBytes;
use crate::x86_64::view::{View, immediate};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use rustc_hash::FxHashSet;
use std::rc::Rc;

/// Targets of an indirect jump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Targets {
    /// To these addresses, some of which may be outside the function.
    Known(Rc<[u64]>),
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
    tables: Tables<'a>,
    /// Instructions that read a jump's target from a table, with the table's address.
    pub(super) reads: Vec<(u32, u64)>,
    /// Some jump may have more targets than were found: it goes by something else than a table of distances from itself
    /// that was read as far as a guard lets it count.
    pub(super) is_in_doubt: bool,
}

impl<'a> Tracer<'a> {
    pub(super) fn new(view: View<'a>, image: &'a dyn ImageBytes) -> Self {
        let has_numbers = image.is_at_fixed_addresses();
        let references = view.reached().filter_map(|here| table_address(here, has_numbers));
        let tables = Tables::new(view.sweep, image, references);
        let definitions = Definitions::new(view);
        Self { view, image, definitions, tables, reads: Vec::new(), is_in_doubt: false }
    }

    /// Traces `jumps`. With `with_all_tables` those that cannot be traced get the targets in every
    /// table of the function: one too many is possible and one too few is not.
    pub(super) fn resolve(&mut self, jumps: &[u32], with_all_tables: bool) -> Vec<(u32, Targets)> {
        let traced: Vec<(u32, Trace)> =
            jumps.iter().map(|jump| (*jump, self.trace(*jump))).collect();
        self.is_in_doubt |= traced.iter().any(|(_, trace)| !matches!(trace, Trace::Known(_)));
        let is_lost = traced.iter().any(|(_, trace)| *trace == Trace::Lost);
        let is_pointer = traced.iter().any(|(_, trace)| *trace == Trace::Pointer);
        let pointers = with_all_tables && (is_lost || is_pointer);
        let pointers = if pointers { self.all_pointers() } else { Vec::new() };
        let mut all = if with_all_tables && is_lost { self.all_distances() } else { Vec::new() };
        all.extend(&pointers);
        let (pointers, all): (Rc<[u64]>, Rc<[u64]>) = (pointers.into(), all.into());
        let is_exhausted = self.tables.is_exhausted();
        let settle = |trace| match trace {
            Trace::Known(targets) => Targets::Known(targets.into()),
            _ if is_exhausted => Targets::Unknown,
            Trace::Pointer if pointers.is_empty() => Targets::Elsewhere,
            Trace::Pointer => Targets::Known(Rc::clone(&pointers)),
            Trace::Lost if all.is_empty() => Targets::Unknown,
            Trace::Lost => Targets::Known(Rc::clone(&all)),
        };
        traced.into_iter().map(|(jump, trace)| (jump, settle(trace))).collect()
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

    /// Joins the targets to which the values of the jump's register lead.
    fn join(&mut self, origins: Vec<JumpOperand>) -> Trace {
        let mut targets = Vec::new();
        let mut is_pointer = false;
        for origin in origins {
            self.is_in_doubt |= !matches!(origin, JumpOperand::Sum { .. });
            let trace = match origin {
                JumpOperand::Address(address) if self.view.sweep.holds(address) => {
                    Trace::Known(vec![address])
                }
                JumpOperand::Load { at, n_bytes: 8 } => {
                    let load = *self.view.instruction(at);
                    self.through_pointer(at, &load)
                }
                JumpOperand::Sum { at, left, right } => self.through_distance(at, left, right),
                JumpOperand::Address(_) | JumpOperand::Outside => Trace::Pointer,
                JumpOperand::Load { .. } | JumpOperand::Lost => Trace::Lost,
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
        self.is_in_doubt = true;
        let place = load.memory_displacement64();
        let (base, index) = (load.memory_base(), load.memory_index());
        if load.segment_prefix() != Register::None {
            return Trace::Pointer;
        }
        if load.is_ip_rel_memory_operand() || base == Register::None && index == Register::None {
            return match self.tables.pointer(place) {
                Some(target) if self.view.sweep.holds(target) => Trace::Known(vec![target]),
                _ => Trace::Pointer,
            };
        }
        let mut targets = Vec::new();
        for (table, index) in self.tables_of(at, load) {
            let n_entries = self.n_entries(at, index);
            let found = self.tables.pointers(table, n_entries);
            if !found.is_empty() {
                self.reads.push((at, table));
            }
            targets.extend(found);
        }
        match (targets.is_empty(), self.tables.is_exhausted()) {
            (_, true) => Trace::Lost,
            (true, false) => Trace::Pointer,
            (false, false) => Trace::Known(targets),
        }
    }

    fn n_entries(&mut self, load: u32, counter: Option<Register>) -> Option<u64> {
        self.tables.charge(limit::MAX_GUARD_DISTANCE);
        guard::n_entries(&self.view, load, counter)
    }

    /// The tables that the operand of `load` may be in, and the register that counts in them.
    fn tables_of(&mut self, at: u32, load: &Instruction) -> Vec<(u64, Option<Register>)> {
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
        let address = |origin: &JumpOperand| match origin {
            JumpOperand::Address(address) => Some((address.wrapping_add(displacement), counter)),
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
            Addend::Number(anchor) => vec![JumpOperand::Address(anchor)],
            Addend::Memory => return Trace::Lost,
        };
        let sides = [self.definitions.origins(left, at), right];
        let is_load = |origin: &JumpOperand| matches!(origin, JumpOperand::Load { .. });
        let (loads, anchors) = match &sides {
            [loads, anchors] if !loads.is_empty() && loads.iter().all(is_load) => (loads, anchors),
            [anchors, loads] if !loads.is_empty() && loads.iter().all(is_load) => (loads, anchors),
            _ => return Trace::Lost,
        };
        let anchor = |origin: &JumpOperand| match origin {
            JumpOperand::Address(address) => Some(*address),
            _ => None,
        };
        let anchors: Vec<u64> =
            anchors.iter().map(anchor).collect::<Option<_>>().unwrap_or_default();
        let mut targets = Vec::new();
        for load in loads {
            let JumpOperand::Load { at, n_bytes } = *load else { continue };
            let instruction = *self.view.instruction(at);
            let tables = self.tables_of(at, &instruction);
            let is_spaced = instruction.memory_index_scale() as usize == n_bytes;
            self.is_in_doubt |= tables.is_empty() || anchors.is_empty() || !is_spaced;
            // Either is the other where only one is known: compilers count from the table.
            let counter = [instruction.memory_index()].into_iter().find(|r| *r != Register::None);
            let known = |address: &u64| (*address, counter);
            let tables =
                if tables.is_empty() { anchors.iter().map(known).collect() } else { tables };
            for (table, counter) in tables {
                let n_entries = self.n_entries(at, counter);
                let own = anchors.is_empty() || anchors.contains(&table);
                let from = if own { std::slice::from_ref(&table) } else { &anchors };
                for anchor in from {
                    let found = self.tables.distances(table, *anchor, n_bytes, n_entries);
                    self.is_in_doubt |= !own || n_entries != Some(found.len() as u64);
                    if !found.is_empty() {
                        self.reads.push((at, table));
                    }
                    targets.extend(found);
                }
            }
        }
        let is_whole = !targets.is_empty() && !self.tables.is_exhausted();
        if is_whole { Trace::Known(targets) } else { Trace::Lost }
    }

    /// Targets in all tables of distances that the function refers to.
    fn all_distances(&mut self) -> Vec<u64> {
        let references = self.tables.references().to_vec();
        let tables = references.into_iter();
        sorted(tables.flat_map(|table| self.tables.distances(table, table, 4, None)).collect())
    }

    /// Targets in all tables of pointers that the function refers to, and labels it takes the
    /// address of. A table that only a jump itself indexes is that jump's.
    fn all_pointers(&mut self) -> Vec<u64> {
        let has_numbers = self.image.is_at_fixed_addresses();
        let others = self.view.reached().filter(|here| Exit::of(here) != Exit::Indirect);
        let others = others.filter_map(|here| table_address(here, has_numbers));
        let others: FxHashSet<u64> = others.filter(|at| !self.view.sweep.holds(*at)).collect();
        let labels = labels(self.view, self.image);
        let mut targets = labels.clone();
        for table in others {
            targets.extend(self.tables.pointers(table, None));
            // Distances from a label are in a table elsewhere.
            for label in labels.iter().take(limit::MAX_ANCHORS) {
                targets.extend(self.tables.distances(table, *label, 4, None));
            }
        }
        sorted(targets)
    }
}

/// Result of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Trace {
    Known(Vec<u64>),
    /// A pointer that is in no table.
    Pointer,
    /// By arithmetic, or from where it cannot be followed.
    Lost,
}

fn sorted(mut targets: Vec<u64>) -> Vec<u64> {
    targets.sort_unstable();
    targets.dedup();
    targets
}

/// Labels whose address the function takes: an instruction begins there that is no entry of the function.
pub(super) fn labels(view: View<'_>, image: &dyn ImageBytes) -> Vec<u64> {
    let has_numbers = image.is_at_fixed_addresses();
    let taken = view.reached().filter_map(|here| formed_address(here, has_numbers));
    let taken = taken.chain(view.labels.iter().map(|label| label.0));
    let is_label = |address: &u64| {
        let index = view.sweep.index_of(*address);
        index.is_some_and(|index| {
            !view.entrances.get(index as usize).is_some_and(|known| known.is_entry)
        })
    };
    sorted(taken.filter(is_label).collect())
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
