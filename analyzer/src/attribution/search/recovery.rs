//! Registers that a trigger has overwritten itself, by the code before it: what put the value there, and of what.

use super::points::PointIdx;
use super::{Search, WalkBack};
use crate::limit;
use crate::x86_64::access::AddressOperand;
use crate::x86_64::memory_effect::MemoryEffect;
use crate::x86_64::state::State;
use crate::x86_64::trail::Node;
use dataspace_proto::register::Register;

impl Search {
    /// The point before the access of `node` to `address`, where that at `before` lacks registers that the code before it
    /// tells.
    pub(super) fn recovered(
        &mut self,
        walk: &WalkBack<'_>,
        node: &Node,
        address: &AddressOperand,
        before: PointIdx,
    ) -> Option<PointIdx> {
        if self.points[before].effective_address(address).is_ok() {
            return None;
        }
        let told = self.points.copy(before);
        let is_told = [address.base, address.index].into_iter().flatten().all(|part| {
            let points = (before, told);
            part.register.is_some_and(|register| self.tell(walk, node, register, points).is_some())
        });
        if !is_told {
            self.points.drop_from(told);
        }
        is_told.then_some(told)
    }

    /// Finds out the value of a register before `node`, where it is not known there, and notes it at the point `told`.
    fn tell(
        &mut self,
        walk: &WalkBack<'_>,
        node: &Node,
        register: Register,
        (before, told): (PointIdx, PointIdx),
    ) -> Option<()> {
        if self.points[before].get(register).is_some() {
            return Some(());
        }
        let point = self.points.copy(before);
        let value = self.value_before(walk, node, point, register, 0);
        self.points.drop_from(point);
        self.points[told].assume_value(register, value?).ok()
    }

    /// The value of a register before `node`: the same by all ways that led there. Its point is used up.
    fn value_before(
        &mut self,
        walk: &WalkBack<'_>,
        node: &Node,
        point: PointIdx,
        register: Register,
        depth: u32,
    ) -> Option<u64> {
        if node.is_end || node.entrances.is_any() || depth >= limit::LOOKBACK {
            return None;
        }
        let mut only = None;
        for (way, n_further) in node.ways.iter().zip((0..node.ways.len()).rev()) {
            self.n_steps_left = self.n_steps_left.checked_sub(1)?;
            let from = walk.past.trail.nodes.get(usize::from(way.from))?;
            let at = if n_further == 0 { point } else { self.points.copy(point) };
            if walk.undo(from, (way, node.svma), &mut self.points[at]).is_ok() {
                let value = self.value_after(walk, from, at, register, depth)?;
                if only.is_some_and(|only| only != value) {
                    return None;
                }
                only = Some(value);
            }
            if n_further != 0 {
                self.points.drop_from(at);
            }
        }
        only
    }

    /// The value of a register after `node`, by what is known at the point before it, which is used up.
    fn value_after(
        &mut self,
        walk: &WalkBack<'_>,
        node: &Node,
        point: PointIdx,
        register: Register,
        depth: u32,
    ) -> Option<u64> {
        let before = &self.points[point];
        if node.written & 1 << register as u32 == 0 {
            return match before.get(register) {
                Some(value) => Some(value),
                None => self.value_before(walk, node, point, register, depth + 1),
            };
        }
        let mut writes = node.effects.iter().filter(|effect| effect.writes(register));
        let (Some(effect), None) = (writes.next(), writes.next()) else { return None };
        let loaded = || value_loaded(walk, node, before, register);
        if let Some(value) = before.made(effect).or_else(loaded) {
            return Some(value);
        }
        // `add $8,%rax`: what was it before?
        let added = effect.added(before)?;
        let value = self.value_before(walk, node, point, register, depth + 1)?;
        Some(value.wrapping_add(added))
    }
}

/// The value that `from` has loaded into a register from the sampled stack.
fn value_loaded(
    walk: &WalkBack<'_>,
    from: &Node,
    before: &State,
    register: Register,
) -> Option<u64> {
    from.memory.iter().find_map(|effect| match effect {
        MemoryEffect::Loaded { to, address } if to.register == register => {
            let at = before.effective_address(address).ok()?;
            // Of 64 bits only all are the register's value, and 32 clear the others.
            let is_whole = matches!(to.width_bits, 32 | 64)
                && from.effects.iter().any(|effect| effect.overwrites(*to));
            let value = walk.stack.value(before.kept(), at, to.width_bits / 8);
            value.filter(|_| is_whole)
        }
        _ => None,
    })
}
