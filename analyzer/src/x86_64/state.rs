//! What is known of a thread's registers at one point of its past, and the step back over one
//! instruction.

use super::access::{Address, RegisterLoss, SegmentBase};
use super::effect::{Arithmetic, Effect, Operand, Part};
use super::flags::{Flag, FlagSet};
use dataspace_proto::address::Avma;
use dataspace_proto::register::{N_REGISTERS, Register, Registers};

/// What was assumed on the way back cannot have happened: the registers say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction;

/// Registers, as far as they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    values: [u64; N_REGISTERS],
    /// The bits of each value that are known; the others are 0.
    known: [u64; N_REGISTERS],
    flags: FlagSet,
    /// Whether string instructions move down, where it is known.
    is_downward: Option<bool>,
    /// What the loader added to the addresses of the code's load object.
    bias: u64,
    /// The base of the thread's own storage (FS), which no sample holds.
    thread_base: Option<u64>,
}

/// Lowest address that user code can touch: the kernel maps nothing below (`vm.mmap_min_addr` is
/// 65,536 by default, and one page where it was lowered).
const LOWEST_ADDRESS: u64 = 4096;

const DIRECTION: u64 = 1 << 10;

impl State {
    /// The registers of a sample.
    #[must_use]
    pub fn sampled(registers: &Registers, bias: u64, thread_base: Option<u64>) -> Self {
        let flags = registers.get(Register::Rflags);
        Self {
            values: *registers.values(),
            known: registers.masks(),
            flags: flags.map_or(FlagSet::ANY, FlagSet::of_rflags),
            is_downward: flags.map(|flags| flags & DIRECTION != 0),
            bias,
            thread_base,
        }
    }

    /// The status flags.
    #[must_use]
    pub const fn flags(&self) -> FlagSet {
        self.flags
    }

    /// The base of the thread's own storage.
    #[must_use]
    pub const fn thread_base(&self) -> Option<u64> {
        self.thread_base
    }

    /// The base of the thread's own storage, if an operand in it was at `avma`.
    #[must_use]
    pub fn thread_base_at(&self, address: &Address, avma: Avma) -> Option<u64> {
        let distance = self.thread_distance(address)?.ok()?;
        Some(avma.0.wrapping_add_signed(distance.wrapping_neg()))
    }

    /// How far an operand is from the base of the thread's own storage; `None` for one that is not
    /// counted from there.
    #[must_use]
    pub fn thread_distance(&self, address: &Address) -> Option<Result<i64, RegisterLoss>> {
        if address.segment != SegmentBase::Thread {
            return None;
        }
        let flat = Address { segment: SegmentBase::Flat, ..*address };
        Some(self.effective_address(&flat).map(|distance| distance.0.cast_signed()))
    }

    /// A register's value, if all of it is known.
    #[must_use]
    pub const fn get(&self, register: Register) -> Option<u64> {
        if self.known[register as usize] == u64::MAX {
            Some(self.values[register as usize])
        } else {
            None
        }
    }

    /// Assumes that the flags had one of these values.
    ///
    /// # Errors
    /// They cannot have.
    pub fn assume(&mut self, flags: FlagSet) -> Result<(), Contradiction> {
        self.flags = self.flags.and(flags);
        if self.flags.is_impossible() { Err(Contradiction) } else { Ok(()) }
    }

    /// Assumes a register's value.
    ///
    /// # Errors
    /// It cannot have had it.
    pub fn assume_value(&mut self, register: Register, value: u64) -> Result<(), Contradiction> {
        self.learn(Part::whole(register), value, u64::MAX)
    }

    /// The effective address (SDM volume 1, section 3.7.5).
    ///
    /// # Errors
    /// [`RegisterLoss`] where a part of it is not known.
    pub fn effective_address(&self, address: &Address) -> Result<Avma, RegisterLoss> {
        let base = match address.segment {
            SegmentBase::Flat if address.is_ip_relative => self.bias,
            SegmentBase::Flat => 0,
            SegmentBase::Thread => self.thread_base.ok_or(RegisterLoss)?,
            SegmentBase::Other => return Err(RegisterLoss),
        };
        let value = |part: Option<super::access::AddressRegister>| match part {
            None => Ok(0),
            Some(part) => part.value(self),
        };
        let sum = value(address.base)?
            .wrapping_add(value(address.index)?.wrapping_mul(u64::from(address.scale)))
            .wrapping_add_signed(address.displacement);
        let sum = if address.is_32_bit() { sum & 0xffff_ffff } else { sum };
        Ok(Avma(sum.wrapping_add(base)))
    }

    /// Assumes that a memory operand was at `avma`: whether that told the register that was not
    /// known of its address.
    ///
    /// # Errors
    /// It cannot have been there.
    pub fn assume_address(&mut self, address: &Address, avma: Avma) -> Result<bool, Contradiction> {
        let is_plain = address.segment == SegmentBase::Flat && !address.is_32_bit();
        let sum = avma.0.wrapping_add_signed(address.displacement.wrapping_neg());
        if !is_plain {
            return Ok(false);
        }
        match (address.base, address.index) {
            (Some(base), index) if index.is_none_or(|index| index.value(self).is_ok()) => {
                let index = index.map_or(0, |index| index.value(self).unwrap_or(0));
                let base_value = sum.wrapping_sub(index.wrapping_mul(u64::from(address.scale)));
                let Some(register) = base.register else { return Ok(false) };
                self.assume_value(register, base_value)?;
            }
            (base, Some(index)) if base.is_none_or(|base| base.value(self).is_ok()) => {
                let base = base.map_or(0, |base| base.value(self).unwrap_or(0));
                let Some(register) = index.register else { return Ok(false) };
                self.scaled(Part::whole(register), sum.wrapping_sub(base), address.scale)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The same place with no register known.
    #[must_use]
    pub const fn without_registers(&self) -> Self {
        Self {
            values: [0; N_REGISTERS],
            known: [0; N_REGISTERS],
            flags: FlagSet::ANY,
            is_downward: None,
            ..*self
        }
    }

    /// Steps back over what one instruction did: from the state after it to the state before it.
    ///
    /// # Errors
    /// The instruction cannot have left this state.
    pub fn undo(&mut self, effects: &[Effect]) -> Result<(), Contradiction> {
        effects.iter().try_for_each(|effect| self.undo_effect(effect))
    }

    fn undo_effect(&mut self, effect: &Effect) -> Result<(), Contradiction> {
        match *effect {
            Effect::Overwritten(to) => self.overwritten(to),
            Effect::Unfollowed(to) => {
                self.forget(to);
                Ok(())
            }
            Effect::Constant { to, value, is_address } => {
                let value = if is_address { value.wrapping_add(self.bias) } else { value };
                self.require(to, value)?;
                self.overwritten(to)
            }
            Effect::Zeroed { to, modified } => {
                self.require(to, 0)?;
                let zero = FlagSet::of_result(0, 64);
                self.assume(zero.with(Flag::Carry, false).with(Flag::Overflow, false))?;
                self.flags = self.flags.before_change(modified);
                self.overwritten(to)
            }
            Effect::Copied { to, from } => {
                let (value, known) = self.bits(to);
                self.overwritten(to)?;
                self.learn(from, value, known)
            }
            Effect::Extended { to, from, from_width, is_signed } => {
                self.extended(to, from, from_width, is_signed)
            }
            Effect::SignSpread { to, from } => self.sign_spread(to, from),
            Effect::AddressOf { to, ref address } => self.address_of(to, address),
            Effect::Arithmetic(ref arithmetic) => self.arithmetic(arithmetic),
            Effect::Flags { modified } => {
                self.flags = self.flags.before_change(modified);
                Ok(())
            }
            Effect::Direction => {
                self.is_downward = None;
                Ok(())
            }
            Effect::Moved { register, by } => {
                self.moved(register, by);
                Ok(())
            }
            Effect::Stepped { register, size } => {
                let by = i64::from(size);
                match self.is_downward {
                    Some(true) => self.moved(register, -by),
                    Some(false) => self.moved(register, by),
                    None => self.forget(Part::whole(register)),
                }
                Ok(())
            }
            Effect::ConditionSet { to, code } => {
                if let Some(value) = self.part(to) {
                    if value > 1 {
                        return Err(Contradiction);
                    }
                    self.assume(self.flags.given(code, value == 1))?;
                }
                self.overwritten(to)
            }
            Effect::ConditionMoved { to, from, code } => self.condition_moved(to, from, code),
            Effect::Exchanged(first, second) => {
                let (of_first, of_second) = (self.bits(first), self.bits(second));
                self.overwritten(first)?;
                self.overwritten(second)?;
                self.learn(first, of_second.0, of_second.1)?;
                self.learn(second, of_first.0, of_first.1)
            }
            Effect::FrameLeft => {
                let frame = self.get(Register::Rsp).map(|rsp| rsp.wrapping_sub(8));
                self.forget(Part::whole(Register::Rsp));
                self.forget(Part::whole(Register::Rbp));
                frame.map_or(Ok(()), |frame| self.assume_value(Register::Rbp, frame))
            }
            Effect::ThreadBaseRead { to } => {
                if let Some(value) = self.part(to) {
                    if self.thread_base.is_some_and(|known| known != value) {
                        return Err(Contradiction);
                    }
                    self.thread_base = Some(value);
                }
                self.overwritten(to)
            }
            Effect::Touched(ref address) => match self.effective_address(address) {
                Ok(avma) if !avma.is_user() || avma.0 < LOWEST_ADDRESS => Err(Contradiction),
                _ => Ok(()),
            },
        }
    }

    /// The known bits of a part, counted from its lowest.
    const fn bits(&self, part: Part) -> (u64, u64) {
        let (mask, shift) = (part.mask(), part.shift());
        let index = part.register as usize;
        ((self.values[index] & mask) >> shift, (self.known[index] & mask) >> shift)
    }

    /// A part's value, if all of it is known.
    fn part(&self, part: Part) -> Option<u64> {
        let (value, known) = self.bits(part);
        (known == part.mask() >> part.shift()).then_some(value)
    }

    const fn forget(&mut self, part: Part) {
        let mask = part.written_mask();
        self.values[part.register as usize] &= !mask;
        self.known[part.register as usize] &= !mask;
    }

    /// The part was written with what cannot be followed. Writing 32 bits clears the upper half
    /// (SDM volume 1, section 3.4.1.1).
    fn overwritten(&mut self, to: Part) -> Result<(), Contradiction> {
        let index = to.register as usize;
        let upper = to.written_mask() & !to.mask();
        if self.values[index] & self.known[index] & upper != 0 {
            return Err(Contradiction);
        }
        self.forget(to);
        Ok(())
    }

    /// The part must have this value, as far as it is known.
    const fn require(&self, part: Part, value: u64) -> Result<(), Contradiction> {
        let (found, known) = self.bits(part);
        if (found ^ value) & known == 0 { Ok(()) } else { Err(Contradiction) }
    }

    /// These bits of a part have these values.
    fn learn(&mut self, part: Part, value: u64, known: u64) -> Result<(), Contradiction> {
        let known = known & (part.mask() >> part.shift());
        let (found, is_known) = self.bits(part);
        if (found ^ value) & known & is_known != 0 {
            return Err(Contradiction);
        }
        self.values[part.register as usize] |= (value & known) << part.shift();
        self.known[part.register as usize] |= known << part.shift();
        Ok(())
    }

    fn moved(&mut self, register: Register, by: i64) {
        match self.get(register) {
            Some(value) => {
                self.values[register as usize] = value.wrapping_add_signed(by.wrapping_neg());
            }
            None => self.forget(Part::whole(register)),
        }
    }

    fn extended(
        &mut self,
        to: Part,
        from: Option<Part>,
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

    fn sign_spread(&mut self, to: Part, from: Part) -> Result<(), Contradiction> {
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
        to: Part,
        from: Option<Part>,
        code: iced_x86::ConditionCode,
    ) -> Result<(), Contradiction> {
        let (value, known) = self.bits(to);
        let source = from.and_then(|from| self.part(from));
        let is_other = self.part(to).zip(source).is_some_and(|(to, from)| to != from);
        if is_other {
            self.assume(self.flags.given(code, false))?;
        }
        let decided = self.flags.decides(code);
        self.overwritten(to)?;
        match (decided, from) {
            (Some(true), Some(from)) => self.learn(from, value, known),
            (Some(false), _) => self.learn(to, value, known),
            _ => Ok(()),
        }
    }

    /// `lea`: the sum is known, and of its parts perhaps all but one.
    fn address_of(&mut self, to: Part, address: &Address) -> Result<(), Contradiction> {
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
        let register = |part: Option<super::access::AddressRegister>| part?.register;
        let (base, index) = (register(address.base), register(address.index));
        let rest = value.wrapping_add_signed(address.displacement.wrapping_neg());
        let in_width = |register| Part { register, ..to };
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
    fn scaled(&mut self, index: Part, product: u64, scale: u8) -> Result<(), Contradiction> {
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

/// The inverse of an odd number modulo 2^64.
fn inverse(odd: u64) -> Option<u64> {
    (!odd.is_multiple_of(2)).then(|| {
        // Newton's iteration doubles the number of right bits, from 3.
        (0..5).fold(odd, |inverse, _| {
            inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)))
        })
    })
}
