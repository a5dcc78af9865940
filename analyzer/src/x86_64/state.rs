//! A thread's registers at one point of its past, as far as they are known.

mod memory;
mod undo;

use super::access::{AddressOperand, AddressRegister, RegisterLoss, SegmentBase};
use super::effect::RegisterPart;
use super::flags::FlagSet;
use super::sampled_stack::KeptCells;
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::register::{N_REGISTERS, Register, Registers};

/// Proof that what was assumed on the way back cannot have happened: the registers say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction;

/// Registers, as far as they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    values: [u64; N_REGISTERS],
    /// The bits of each value that are known; the others are 0.
    known: [u64; N_REGISTERS],
    flags: FlagSet,
    /// True if string instructions move down; `None` where it is not known.
    is_downward: Option<bool>,
    /// Number that the loader added to the addresses of the code's load object.
    bias: u64,
    /// The base of the thread's own storage (FS), which no sample holds.
    thread_base: Option<u64>,
    /// The cells of the sampled stack that hold what they held here.
    kept: KeptCells,
}

/// Lowest address that user code can touch: the kernel maps nothing below (`vm.mmap_min_addr` is
/// 65,536 by default, and one page where it was lowered).
const LOWEST_ADDRESS: u64 = 4096;

const DIRECTION: u64 = 1 << 10;

impl State {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        values: [0; N_REGISTERS],
        known: [0; N_REGISTERS],
        flags: FlagSet::ANY,
        is_downward: None,
        bias: 0,
        thread_base: None,
        kept: KeptCells::NONE,
    };

    /// The registers of a sample.
    #[must_use]
    pub fn sampled(registers: &Registers, bias: u64, thread_base: Option<u64>) -> Self {
        let mut state = Self::UNKNOWN;
        state.sample(registers, bias, thread_base);
        state
    }

    /// Makes it the registers of a sample, in its place: what has just been put together elsewhere would have to wait for
    /// itself when it is copied here.
    #[inline]
    pub fn sample(&mut self, registers: &Registers, bias: u64, thread_base: Option<u64>) {
        let flags = registers.get(Register::Rflags);
        self.values.copy_from_slice(registers.values());
        match registers.masks_of_some() {
            None => self.known.fill(u64::MAX),
            Some(masks) => self.known = masks,
        }
        self.flags = flags.map_or(FlagSet::ANY, FlagSet::of_rflags);
        self.is_downward = flags.map(|flags| flags & DIRECTION != 0);
        (self.bias, self.thread_base, self.kept) = (bias, thread_base, KeptCells::NONE);
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
    pub fn thread_base_at(&self, address: &AddressOperand, avma: Avma) -> Option<u64> {
        let distance = self.thread_distance(address)?.ok()?;
        Some(avma.0.wrapping_add_signed(distance.wrapping_neg()))
    }

    /// Computes the distance of an operand from the base of the thread's own storage; `None` for one that is not
    /// counted from there.
    #[must_use]
    pub fn thread_distance(&self, address: &AddressOperand) -> Option<Result<i64, RegisterLoss>> {
        if address.segment != SegmentBase::Thread {
            return None;
        }
        let flat = AddressOperand { segment: SegmentBase::Flat, ..*address };
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
        self.learn(RegisterPart::whole(register), value, u64::MAX)
    }

    /// The address in the process of the code at `svma`.
    #[must_use]
    pub const fn avma(&self, svma: Svma) -> Avma {
        Avma(svma.0.wrapping_add(self.bias))
    }

    /// The effective address (SDM volume 1, section 3.7.5).
    ///
    /// # Errors
    /// [`RegisterLoss`] where a part of it is not known.
    pub fn effective_address(&self, address: &AddressOperand) -> Result<Avma, RegisterLoss> {
        let base = match address.segment {
            SegmentBase::Flat if address.is_ip_relative => self.bias,
            SegmentBase::Flat => 0,
            SegmentBase::Thread => self.thread_base.ok_or(RegisterLoss)?,
            SegmentBase::Other => return Err(RegisterLoss),
        };
        let value = |part: Option<AddressRegister>| part.map_or(Ok(0), |part| part.value(self));
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
    pub fn assume_address(
        &mut self,
        address: &AddressOperand,
        avma: Avma,
    ) -> Result<bool, Contradiction> {
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
                self.scaled(RegisterPart::whole(register), sum.wrapping_sub(base), address.scale)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The same place with no register known.
    #[must_use]
    pub const fn without_registers(&self) -> Self {
        let Self { bias, thread_base, kept, .. } = *self;
        Self { bias, thread_base, kept, ..Self::UNKNOWN }
    }

    /// The known bits of a part, counted from its lowest.
    const fn bits(&self, part: RegisterPart) -> (u64, u64) {
        let (mask, shift) = (part.mask(), part.shift());
        let index = part.register as usize;
        ((self.values[index] & mask) >> shift, (self.known[index] & mask) >> shift)
    }

    /// A part's value, if all of it is known.
    fn part(&self, part: RegisterPart) -> Option<u64> {
        let (value, known) = self.bits(part);
        (known == part.mask() >> part.shift()).then_some(value)
    }

    const fn forget(&mut self, part: RegisterPart) {
        let mask = part.written_mask();
        self.values[part.register as usize] &= !mask;
        self.known[part.register as usize] &= !mask;
    }

    /// The part was written with what cannot be followed. Writing 32 bits clears the upper half
    /// (SDM volume 1, section 3.4.1.1).
    fn overwritten(&mut self, to: RegisterPart) -> Result<(), Contradiction> {
        let index = to.register as usize;
        let upper = to.written_mask() & !to.mask();
        if self.values[index] & self.known[index] & upper != 0 {
            return Err(Contradiction);
        }
        self.forget(to);
        Ok(())
    }

    /// The part must have this value, as far as it is known.
    const fn require(&self, part: RegisterPart, value: u64) -> Result<(), Contradiction> {
        let (found, known) = self.bits(part);
        if (found ^ value) & known == 0 { Ok(()) } else { Err(Contradiction) }
    }

    /// These bits of a part have these values.
    fn learn(&mut self, part: RegisterPart, value: u64, known: u64) -> Result<(), Contradiction> {
        let known = known & (part.mask() >> part.shift());
        let (found, is_known) = self.bits(part);
        if (found ^ value) & known & is_known != 0 {
            return Err(Contradiction);
        }
        self.values[part.register as usize] |= (value & known) << part.shift();
        self.known[part.register as usize] |= known << part.shift();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
