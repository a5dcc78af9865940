//! Pointers that go through vector registers.

use super::transfer::Transfer;
use super::value::{Definition, Place, Sum, ValueIdx};
use crate::x86_64::abi::{N_VECTORS, POINTER_BYTES};
use crate::x86_64::action::{Action, N_LANES, Reading, Source, VectorAssignment};
use crate::x86_64::exit::Exit;

impl Transfer<'_> {
    /// Notes what an instruction leaves in the vector registers that it writes.
    pub(super) fn assign_vectors(&mut self, at: u32, action: &Action) {
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
        let is_loaded = made.iter().any(|it| matches!(it.lanes[0], Source::MemoryLane(_)));
        let memory = if is_loaded { self.lane_address(at, &action.reading) } else { None };
        for VectorAssignment { to, lanes } in made {
            let values = lanes.map(|source| match (source, memory) {
                (Source::MemoryLane(lane), Some(first)) => self.loaded_lane(first, lane),
                _ => self.value(at, source, None),
            });
            for (lane, value) in (0..N_LANES).zip(values) {
                self.graph.write(at, Place::Lane { register: to, lane }, value);
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
