//! One step back: from the state behind an instruction to the state before it, by its effects.

use super::{Contradiction, LOWEST_ADDRESS, State};
use crate::x86_64::access::{AddressOperand, AddressRegister};
use crate::x86_64::effect::{Arithmetic, Effect, Operand, RegisterPart};
use crate::x86_64::flags::{Condition, Flag, FlagSet};
use dataspace_proto::register::Register;

impl State {
    /// Steps back over what one instruction did: from the state after it to the state before it.
    ///
    /// # Errors
    /// The instruction cannot have left this state.
    pub fn undo(&mut self, effects: &[Effect]) -> Result<(), Contradiction> {
        effects.iter().try_for_each(|effect| self.undo_effect(effect))
    }

    /// The value that a register has after one effect, all of it, where that is made of what is known of this state, the one
    /// before it.
    #[must_use]
    pub fn made(&self, effect: &Effect) -> Option<u64> {
        let half = u64::from(u32::MAX);
        match *effect {
            Effect::Constant { to, value } => is_all_written(to).then_some(value),
            Effect::Zeroed { to, .. } => is_all_written(to).then_some(0),
            Effect::Copied { to, from } => match (to.width_bits, from.width_bits) {
                (64, 64) => self.get(from.register),
                (32, 32) => self.get(from.register).map(|value| value & half),
                _ => None,
            },
            Effect::Extended { to, from: Some(from), from_width, is_signed } => {
                let unused = u64::BITS - from_width;
                let value = self.get(from.register).filter(|_| !from.is_high)? << unused;
                let value = match is_signed {
                    true => (value.cast_signed() >> unused).cast_unsigned(),
                    false => value >> unused,
                };
                match to.width_bits {
                    64 => Some(value),
                    32 => Some(value & half),
                    _ => None,
                }
            }
            Effect::AddressOf { to, ref address } => {
                let sum = self.effective_address(address).ok()?.0;
                match to.width_bits {
                    64 => Some(sum),
                    32 => Some(sum & half),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn undo_effect(&mut self, effect: &Effect) -> Result<(), Contradiction> {
        match *effect {
            Effect::Overwritten(to) => self.overwritten(to)?,
            Effect::Unfollowed(to) => self.forget(to),
            Effect::Constant { to, value } => {
                self.require(to, value)?;
                self.overwritten(to)?;
            }
            Effect::Zeroed { to, modified } => self.zeroed(to, modified)?,
            Effect::Copied { to, from } => {
                let (value, known) = self.bits(to);
                self.overwritten(to)?;
                self.learn(from, value, known)?;
            }
            Effect::Extended { to, from, from_width, is_signed } => {
                self.extended(to, from, from_width, is_signed)?;
            }
            Effect::SignSpread { to, from } => self.sign_spread(to, from)?,
            Effect::AddressOf { to, ref address } => self.address_of(to, address)?,
            Effect::Arithmetic(ref arithmetic) => self.arithmetic(arithmetic)?,
            Effect::Flags { modified } => self.flags = self.flags.before_change(modified),
            Effect::Direction => self.is_downward = None,
            Effect::Moved { register, by } => self.moved(register, by),
            Effect::Stepped { register, size } => self.stepped(register, i64::from(size)),
            Effect::ConditionSet { to, condition } => self.condition_set(to, condition)?,
            Effect::ConditionMoved { to, from, condition } => {
                self.condition_moved(to, from, condition)?;
            }
            Effect::Exchanged(first, second) => self.exchanged(first, second)?,
            Effect::FrameLeft => self.frame_left()?,
            Effect::ThreadBaseRead { to } => self.thread_base_read(to)?,
            Effect::Touched(ref address) => match self.effective_address(address) {
                Ok(avma) if !avma.is_user() || avma.0 < LOWEST_ADDRESS => {
                    return Err(Contradiction);
                }
                _ => {}
            },
        }
        Ok(())
    }

    fn zeroed(&mut self, to: RegisterPart, modified: u32) -> Result<(), Contradiction> {
        self.require(to, 0)?;
        let zero = FlagSet::of_result(0, 64);
        self.assume(zero.with(Flag::Carry, false).with(Flag::Overflow, false))?;
        self.flags = self.flags.before_change(modified);
        self.overwritten(to)
    }

    fn stepped(&mut self, register: Register, by: i64) {
        match self.is_downward {
            Some(true) => self.moved(register, -by),
            Some(false) => self.moved(register, by),
            None => self.forget(RegisterPart::whole(register)),
        }
    }

    fn condition_set(
        &mut self,
        to: RegisterPart,
        condition: Condition,
    ) -> Result<(), Contradiction> {
        if let Some(value) = self.part(to) {
            if value > 1 {
                return Err(Contradiction);
            }
            self.assume(self.flags.given(condition, value == 1))?;
        }
        self.overwritten(to)
    }

    fn exchanged(
        &mut self,
        first: RegisterPart,
        second: RegisterPart,
    ) -> Result<(), Contradiction> {
        let (of_first, of_second) = (self.bits(first), self.bits(second));
        self.overwritten(first)?;
        self.overwritten(second)?;
        self.learn(first, of_second.0, of_second.1)?;
        self.learn(second, of_first.0, of_first.1)
    }

    fn frame_left(&mut self) -> Result<(), Contradiction> {
        let frame = self.get(Register::Rsp).map(|rsp| rsp.wrapping_sub(8));
        self.forget(RegisterPart::whole(Register::Rsp));
        self.forget(RegisterPart::whole(Register::Rbp));
        frame.map_or(Ok(()), |frame| self.assume_value(Register::Rbp, frame))
    }

    fn thread_base_read(&mut self, to: RegisterPart) -> Result<(), Contradiction> {
        if let Some(value) = self.part(to) {
            if self.thread_base.is_some_and(|known| known != value) {
                return Err(Contradiction);
            }
            self.thread_base = Some(value);
        }
        self.overwritten(to)
    }

    fn moved(&mut self, register: Register, by: i64) {
        match self.get(register) {
            Some(value) => {
                self.values[register as usize] = value.wrapping_add_signed(by.wrapping_neg());
            }
            None => self.forget(RegisterPart::whole(register)),
        }
    }

    fn extended(
        &mut self,
        to: RegisterPart,
        from: Option<RegisterPart>,
        from_width: u32,
        is_signed: bool,
    ) -> Result<(), Contradiction> {
        let (value, known) = self.bits(to);
        let low = u64::MAX >> (64 - from_width);
        let sign = if is_signed { 1 << (from_width - 1) } else { 0 };
        let upper = (to.mask() & !low | sign) & known;
        let is_clear = value & upper == 0;
        if !is_clear && (!is_signed || value & upper != upper) {
            return Err(Contradiction);
        }
        self.overwritten(to)?;
        from.map_or(Ok(()), |from| self.learn(from, value & low, known & low))
    }

    fn sign_spread(&mut self, to: RegisterPart, from: RegisterPart) -> Result<(), Contradiction> {
        let all = to.mask();
        let spread = self.part(to);
        if spread.is_some_and(|value| value != 0 && value != all) {
            return Err(Contradiction);
        }
        let is_negative = self.part(from).map(|value| value >> (from.width_bits - 1) & 1 != 0);
        if let (Some(value), Some(is_negative)) = (spread, is_negative)
            && (value != 0) != is_negative
        {
            return Err(Contradiction);
        }
        self.overwritten(to)
    }

    fn condition_moved(
        &mut self,
        to: RegisterPart,
        from: Option<RegisterPart>,
        condition: Condition,
    ) -> Result<(), Contradiction> {
        let (value, known) = self.bits(to);
        let source = from.and_then(|from| self.part(from));
        let is_other = self.part(to).zip(source).is_some_and(|(to, from)| to != from);
        if is_other {
            self.assume(self.flags.given(condition, false))?;
        }
        let decided = self.flags.decides(condition);
        self.overwritten(to)?;
        match (decided, from) {
            (Some(true), Some(from)) => self.learn(from, value, known),
            (Some(false), _) => self.learn(to, value, known),
            _ => Ok(()),
        }
    }

    /// `lea`: the sum is known, and of its parts perhaps all but one.
    fn address_of(
        &mut self,
        to: RegisterPart,
        address: &AddressOperand,
    ) -> Result<(), Contradiction> {
        let (value, known) = self.bits(to);
        let width = to.mask();
        self.overwritten(to)?;
        if address.is_32_bit() {
            return Ok(());
        }
        if let Ok(sum) = self.effective_address(address) {
            return if (sum.0 ^ value) & known == 0 { Ok(()) } else { Err(Contradiction) };
        }
        if known != width {
            return Ok(());
        }
        let register = |part: Option<AddressRegister>| part?.register;
        let (base, index) = (register(address.base), register(address.index));
        let rest = value.wrapping_add_signed(address.displacement.wrapping_neg());
        let in_width = |register| RegisterPart { register, ..to };
        match (base, index) {
            (Some(both), Some(index)) if both == index => {
                // An odd factor can be undone modulo 2^64, and so modulo 2^32.
                let factor = u64::from(address.scale) + 1;
                match inverse(factor) {
                    Some(inverse) => {
                        self.learn(in_width(both), rest.wrapping_mul(inverse) & width, width)
                    }
                    None => Ok(()),
                }
            }
            (Some(base), None) => self.learn(in_width(base), rest & width, width),
            (Some(base), Some(index)) => match (self.get(base), self.get(index)) {
                (None, Some(index)) => {
                    let base_value = rest.wrapping_sub(index.wrapping_mul(address.scale.into()));
                    self.learn(in_width(base), base_value & width, width)
                }
                (Some(base), None) => {
                    self.scaled(in_width(index), rest.wrapping_sub(base), address.scale)
                }
                _ => Ok(()),
            },
            (None, Some(index)) => self.scaled(in_width(index), rest, address.scale),
            (None, None) => Ok(()),
        }
    }

    /// The index that, scaled, gave `product`.
    pub(super) fn scaled(
        &mut self,
        index: RegisterPart,
        product: u64,
        scale: u8,
    ) -> Result<(), Contradiction> {
        if product & (u64::from(scale) - 1) != 0 {
            return Err(Contradiction);
        }
        let shift = scale.trailing_zeros();
        let known = index.mask() >> shift;
        self.learn(index, product >> shift & known, known)
    }

    fn arithmetic(&mut self, arithmetic: &Arithmetic) -> Result<(), Contradiction> {
        let Arithmetic { operation, to, with, width_bits, modified } = *arithmetic;
        let result = to.and_then(|to| self.part(to));
        let is_self = matches!((to, with), (Some(to), Operand::Register(with)) if to == with);
        let with = match with {
            Operand::Immediate(value) => Some(value),
            Operand::Register(part) if is_self && operation.keeps_equal() => self.part(part),
            Operand::Register(part) if to.is_none_or(|to| to.register != part.register) => {
                self.part(part)
            }
            Operand::Register(_) | Operand::Memory => None,
        };
        let before = if is_self && operation.keeps_equal() {
            result
        } else {
            result.and_then(|result| operation.before(result, with, width_bits))
        };
        self.assume(operation.flags(before, with, result, width_bits))?;
        self.flags = self.flags.before_change(modified);
        let Some(to) = to.filter(|_| operation.writes()) else { return Ok(()) };
        let (value, known) = self.bits(to);
        self.overwritten(to)?;
        let whole = to.mask() >> to.shift();
        match before {
            Some(before) => self.learn(to, before & whole, whole),
            None => {
                let part = operation.bits_before(value, known, with, width_bits)?;
                self.learn(to, part.0, part.1)
            }
        }
    }
}

/// Tells whether a write to a part leaves nothing of what was in the register.
const fn is_all_written(part: RegisterPart) -> bool {
    matches!(part.width_bits, 32 | 64)
}

/// The inverse of an odd number modulo 2^64.
fn inverse(odd: u64) -> Option<u64> {
    (!odd.is_multiple_of(2)).then(|| {
        // Newton's iteration doubles the number of right bits, from 3.
        (0..5).fold(odd, |inverse, _| {
            inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)))
        })
    })
}
