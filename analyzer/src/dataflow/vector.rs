//! Pointers that go through vector registers.

use super::transfer::Transfer;
use super::value::{Definition, Depth, Place, Slot, Store, Sum, ValueIdx};
use crate::x86_64::abi::{N_VECTORS, POINTER_BYTES};
use crate::x86_64::action::{Action, N_LANES, Reading, Source, VectorAssignment};
use crate::x86_64::exit::Exit;

impl Transfer<'_> {
    /// Notes what an instruction, which read `loaded` from memory, leaves in the vector registers that it writes.
    pub(super) fn assign_vectors(&mut self, at: u32, action: &Action, loaded: Option<ValueIdx>) {
        if matches!(action.exit, Exit::Call(_)) {
            // All are the callee's to use (psABI, figure 3.4).
            for register in 0..N_VECTORS {
                for lane in 0..N_LANES {
                    self.graph.write(at, Place::Lane { register, lane }, self.graph.opaque());
                }
            }
            return;
        }
        let made = self.translator.vectors(at as usize);
        let is_loaded =
            made.iter().any(|it| it.lanes.iter().any(|it| matches!(it, Source::MemoryLane(_))));
        let memory = if is_loaded { self.lane_address(at, &action.reading) } else { None };
        let is_pointer = action.reading.operand.is_some_and(|operand| operand.is_pointer());
        for VectorAssignment { to, lanes } in made {
            let values = lanes.map(|source| match (source, memory) {
                (Source::MemoryLane(_), _) if is_pointer => loaded.unwrap_or(self.graph.opaque()),
                // Nothing is named by a zero.
                (Source::Constant(_), _) if self.depth == Depth::Named => self.graph.opaque(),
                (Source::MemoryLane(lane), Some(first)) => self.loaded_lane(first, lane),
                _ => self.value(at, source, None),
            });
            for (lane, value) in (0..N_LANES).zip(values) {
                self.graph.write(at, Place::Lane { register: to, lane }, value);
            }
        }
    }

    /// Notes what an instruction writes to memory of a vector register; false where it does not write one.
    pub(super) fn store_lanes(&mut self, at: u32, reading: &Reading) -> bool {
        let lanes = self.translator.lanes_stored(at as usize);
        if lanes.is_empty() || reading.operand.is_none() {
            return false;
        }
        self.store_each(at, reading, &lanes);
        true
    }

    /// Notes eight bytes after the other that an instruction writes to its operand.
    pub(super) fn store_each(&mut self, at: u32, reading: &Reading, sources: &[Source]) {
        let Some(operand) = reading.operand else { return };
        let first = self.operand_slot(at, &operand.address);
        let address = self.graph.operand(at, &operand.address);
        for (source, by) in sources.iter().zip((0..).step_by(POINTER_BYTES.into())) {
            let value = self.value(at, *source, None);
            match (first, address) {
                (Some(first), _) => {
                    let slot = Slot { offset: first.offset.wrapping_add(by), ..first };
                    self.keep(at, slot, POINTER_BYTES.into(), value);
                }
                // Hardly a vector that is computed holds a pointer.
                (None, Some(first))
                    if self.depth == Depth::Copied
                        || self.graph.canonical(value) != self.graph.opaque() =>
                {
                    let displacement = first.displacement.wrapping_add(by);
                    let address = Sum { displacement, ..first };
                    self.graph.stores.push(Store { address, value });
                }
                (None, _) => {}
            }
        }
    }

    /// The address of an operand outside the frame.
    fn lane_address(&mut self, at: u32, reading: &Reading) -> Option<Sum> {
        let address = reading.operand?.address;
        match self.operand_slot(at, &address) {
            Some(_) => None,
            None => self.graph.operand(at, &address),
        }
    }

    fn loaded_lane(&mut self, first: Sum, lane: u8) -> ValueIdx {
        let by = i64::from(POINTER_BYTES) * i64::from(lane);
        let address = Sum { displacement: first.displacement.wrapping_add(by), ..first };
        self.graph.define(Definition::Loaded { address, n_bytes: POINTER_BYTES })
    }
}
