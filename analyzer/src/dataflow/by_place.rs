//! Numbers that are kept by a run of instructions and a place in it.

use super::value::{Frame, Place, Slot};
use crate::limit;
use crate::x86_64::abi::N_GENERAL_REGISTERS;
use rustc_hash::FxHashMap;

/// In place of a number: there is none.
const NONE: u32 = u32::MAX;

/// Numbers by run and place. Registers, which nearly all are about, are found without hashing; most others are places in
/// the frame, which take little room by run and offset.
#[derive(Debug, Default)]
pub(super) struct ByPlace {
    registers: Vec<u32>,
    slots: FxHashMap<(u32, i32), u32>,
    others: FxHashMap<(u32, Place), u32>,
}

impl ByPlace {
    pub(super) fn new(n_runs: usize) -> Self {
        let n_runs = if n_runs > limit::MAX_DENSE_RUNS { 0 } else { n_runs };
        Self { registers: vec![NONE; n_runs * N_GENERAL_REGISTERS], ..Self::default() }
    }

    pub(super) fn get(&self, run: u32, place: Place) -> Option<u32> {
        if let Some(known) = at(run, place).and_then(|at| self.registers.get(at)) {
            return (*known != NONE).then_some(*known);
        }
        match slot_key(run, place) {
            Some(key) => self.slots.get(&key).copied(),
            None => self.others.get(&(run, place)).copied(),
        }
    }

    pub(super) fn insert(&mut self, run: u32, place: Place, number: u32) {
        if let Some(known) = at(run, place).and_then(|at| self.registers.get_mut(at)) {
            *known = number;
        } else if let Some(key) = slot_key(run, place) {
            self.slots.insert(key, number);
        } else {
            self.others.insert((run, place), number);
        }
    }

    /// All that is there.
    pub(super) fn iter(&self) -> impl Iterator<Item = ((u32, Place), u32)> {
        let registers = self.registers.iter().enumerate().filter(|(_, number)| **number != NONE);
        let registers = registers.map(|(at, number)| {
            let place = Place::Register((at % N_GENERAL_REGISTERS) as u8);
            (((at / N_GENERAL_REGISTERS) as u32, place), *number)
        });
        let slots = self.slots.iter().map(|((run, offset), number)| {
            let slot = Slot { frame: Frame::Cfa, offset: (*offset).into() };
            ((*run, Place::Slot(slot)), *number)
        });
        registers.chain(slots).chain(self.others.iter().map(|(place, number)| (*place, *number)))
    }
}

/// Finds the index of a register's number in the table, if that has room for it.
fn at(run: u32, place: Place) -> Option<usize> {
    match place {
        Place::Register(register) if usize::from(register) < N_GENERAL_REGISTERS => {
            Some(run as usize * N_GENERAL_REGISTERS + usize::from(register))
        }
        _ => None,
    }
}

/// The run and the offset of a place in the frame, where that is counted from the CFA and not too far from it.
fn slot_key(run: u32, place: Place) -> Option<(u32, i32)> {
    let Place::Slot(Slot { frame: Frame::Cfa, offset }) = place else { return None };
    Some((run, offset.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_a_number_of_its_own() {
        for n_runs in [3, limit::MAX_DENSE_RUNS + 1] {
            let mut numbers = ByPlace::new(n_runs);
            let slot = |frame, offset| Place::Slot(Slot { frame, offset });
            let far = i64::from(i32::MIN) - 8;
            let slots =
                [(Frame::Cfa, -8), (Frame::Cfa, 8), (Frame::Cfa, far), (Frame::Register(6), -8)]
                    .map(|(frame, offset)| slot(frame, offset));
            let registers = [0, 1, 15, 16, 255].map(Place::Register);
            let places =
                [Place::Lane { register: 0, lane: 0 }].into_iter().chain(slots).chain(registers);
            let all = (0..3).flat_map(|run| places.clone().map(move |place| (run, place)));
            let mut expected: Vec<((u32, Place), u32)> = all.zip(0..).collect();
            for ((run, place), number) in &expected {
                assert_eq!(numbers.get(*run, *place), None);
                numbers.insert(*run, *place, *number);
            }
            let mut found: Vec<_> = numbers.iter().collect();
            found.sort_by_key(|(_, number)| *number);
            assert_eq!(found, expected);
            expected.iter_mut().for_each(|(_, number)| *number += 1);
            for ((run, place), number) in &expected {
                numbers.insert(*run, *place, *number);
                assert_eq!(numbers.get(*run, *place), Some(*number));
            }
        }
    }
}
