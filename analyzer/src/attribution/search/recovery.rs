//! Registers that a trigger has overwritten itself, by the code before it: what put the value there, and of what.

use super::{Search, WalkBack};
use crate::limit;
use crate::x86_64::access::AddressOperand;
use crate::x86_64::memory_effect::MemoryEffect;
use crate::x86_64::state::State;
use crate::x86_64::trail::Node;
use dataspace_proto::register::Register;

impl Search {
    /// The registers before the access of `node` to `address`, where `state` lacks some that the code before it tells.
    pub(super) fn recovered(
        &mut self,
        walk: &WalkBack<'_>,
        node: &Node,
        address: &AddressOperand,
        state: &State,
    ) -> Option<State> {
        if state.effective_address(address).is_ok() {
            return None;
        }
        let mut told = *state;
        for part in [address.base, address.index].into_iter().flatten() {
            let register = part.register?;
            if state.get(register).is_none() {
                let value = self.value_before(walk, node, state, register, 0)?;
                told.assume_value(register, value).ok()?;
            }
        }
        Some(told)
    }

    /// The value of a register before `node`, at which the others were `state`: the same by all ways that led there.
    fn value_before(
        &mut self,
        walk: &WalkBack<'_>,
        node: &Node,
        state: &State,
        register: Register,
        depth: u32,
    ) -> Option<u64> {
        if node.is_end || node.entrances.is_any() || depth >= limit::LOOKBACK {
            return None;
        }
        let mut only = None;
        for way in &node.ways {
            self.n_steps_left = self.n_steps_left.checked_sub(1)?;
            let from = walk.past.trail.nodes.get(usize::from(way.from))?;
            let mut before = *state;
            let is_led_here =
                way.leap.as_ref().is_none_or(|leap| leap.assume(&mut before, node.svma).is_ok());
            if !is_led_here || walk.undo(from, way, &mut before).is_err() {
                continue;
            }
            let mut writes = from.effects.iter().filter(|effect| effect.writes(register));
            let value = match (writes.next(), writes.next()) {
                (None, _) => match before.get(register) {
                    Some(value) => value,
                    None => self.value_before(walk, from, &before, register, depth + 1)?,
                },
                (Some(effect), None) => {
                    let loaded = || value_loaded(walk, from, &before, register);
                    let made = before.made(effect).or_else(loaded);
                    match (made, effect.added(&before)) {
                        (Some(value), _) => value,
                        // `add $8,%rax`: what was it before?
                        (None, Some(added)) => self
                            .value_before(walk, from, &before, register, depth + 1)?
                            .wrapping_add(added),
                        (None, None) => return None,
                    }
                }
                (Some(_), Some(_)) => return None,
            };
            if only.is_some_and(|only| only != value) {
                return None;
            }
            only = Some(value);
        }
        only
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
