//! The register values that a sample carries.

/// An x86-64 register that `perf_event` can sample.
///
/// The discriminants are our own dense order; [`Register::from_perf`] maps the kernel's
/// (`arch/x86/include/uapi/asm/perf_regs.h`), which has holes for the segment registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the registers' own")]
pub enum Register {
    Rax,
    Rbx,
    Rcx,
    Rdx,
    Rsi,
    Rdi,
    Rbp,
    Rsp,
    Rip,
    Rflags,
    R8,
    R9,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15,
}

/// Number of registers that [`Registers`] has room for.
pub const N_REGISTERS: usize = 18;

impl Register {
    /// Every register, in the order of the discriminants.
    pub const ALL: [Register; N_REGISTERS] = [
        Register::Rax,
        Register::Rbx,
        Register::Rcx,
        Register::Rdx,
        Register::Rsi,
        Register::Rdi,
        Register::Rbp,
        Register::Rsp,
        Register::Rip,
        Register::Rflags,
        Register::R8,
        Register::R9,
        Register::R10,
        Register::R11,
        Register::R12,
        Register::R13,
        Register::R14,
        Register::R15,
    ];

    /// The register at bit `bit` of the kernel's x86 register mask, if we keep it.
    #[must_use]
    pub const fn from_perf(bit: u32) -> Option<Register> {
        match bit {
            0..=9 => Some(Self::ALL[bit as usize]),
            // 10..=15 are CS SS DS ES FS GS; PERF_SAMPLE_REGS_INTR refuses the last four.
            16..=23 => Some(Self::ALL[bit as usize - 6]),
            _ => None,
        }
    }

    /// The kernel's bit of this register.
    #[must_use]
    pub const fn perf_bit(self) -> u32 {
        let index = self as u32;
        if index < 10 { index } else { index + 6 }
    }
}

/// The mask of every register we ask the kernel for: 16 general ones, IP and flags.
pub const PERF_MASK: u64 = 0x00ff_03ff;

/// Mode of the sampled task, from the ABI word in front of the registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RegisterAbi {
    /// No registers: a kernel thread, or none were asked for.
    #[default]
    None,
    /// A 32-bit task.
    Bits32,
    /// A 64-bit task.
    Bits64,
}

const ALL_PRESENT: u32 = (1 << N_REGISTERS) - 1;

/// Register values; each is there only if it was sampled.
#[derive(Clone, Copy, Default)]
pub struct Registers {
    /// Mode of the task.
    pub abi: RegisterAbi,
    present: u32,
    /// 0 where there is none; anything where there is none at all.
    values: [u64; N_REGISTERS],
}

impl std::fmt::Debug for Registers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let there = Register::ALL.iter().filter_map(|one| Some((one, self.get(*one)?)));
        f.debug_map().entry(&"abi", &self.abi).entries(there).finish()
    }
}

impl PartialEq for Registers {
    fn eq(&self, other: &Self) -> bool {
        (self.abi, self.present) == (other.abi, other.present) && self.values() == other.values()
    }
}

impl Eq for Registers {}

impl Registers {
    /// The value of `register`, if it was sampled.
    #[must_use]
    pub const fn get(&self, register: Register) -> Option<u64> {
        if self.present & (1 << register as u32) == 0 {
            return None;
        }
        Some(self.values[register as usize])
    }

    /// All values in the order of [`Register::ALL`], 0 for those that were not sampled.
    #[must_use]
    #[inline]
    pub const fn values(&self) -> &[u64; N_REGISTERS] {
        if self.present == 0 { &[0; N_REGISTERS] } else { &self.values }
    }

    /// For each register of [`Register::ALL`] a mask, all ones if it was sampled; `None` where all were.
    #[must_use]
    #[inline]
    pub fn masks_of_some(&self) -> Option<[u64; N_REGISTERS]> {
        (self.present != ALL_PRESENT).then(|| self.masks())
    }

    #[cold]
    fn masks(&self) -> [u64; N_REGISTERS] {
        std::array::from_fn(|index| 0u64.wrapping_sub(u64::from(self.present >> index & 1)))
    }

    /// Sets `register` to `value`.
    pub const fn set(&mut self, register: Register, value: u64) {
        if self.present == 0 {
            self.values = [0; N_REGISTERS];
        }
        self.present |= 1 << register as u32;
        self.values[register as usize] = value;
    }

    /// Sets all registers to `values`, which are in the order of [`Register::ALL`]: that of the kernel's mask
    /// [`PERF_MASK`].
    #[inline]
    pub fn set_all(&mut self, values: impl IntoIterator<Item = u64>) {
        self.present = ALL_PRESENT;
        for (slot, value) in self.values.iter_mut().zip(values) {
            *slot = value;
        }
    }

    /// Forgets all values.
    #[inline]
    pub const fn clear(&mut self) {
        (self.abi, self.present) = (RegisterAbi::None, 0);
    }

    /// Forgets the value of `register`.
    pub const fn forget(&mut self, register: Register) {
        self.present &= !(1 << register as u32);
        self.values[register as usize] = 0;
    }

    /// Tells whether there is no value at all.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.present == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perf_bits_round_trip_and_make_up_the_mask() {
        let mut mask = 0u64;
        for register in Register::ALL {
            assert_eq!(Register::from_perf(register.perf_bit()), Some(register));
            mask |= 1 << register.perf_bit();
        }
        assert_eq!(mask, PERF_MASK);
        assert_eq!(Register::from_perf(14), None, "FS is not sampled");
    }

    #[test]
    fn only_what_was_set_is_there() {
        let mut registers = Registers::default();
        registers.set(Register::R15, 7);
        assert_eq!(registers.get(Register::R15), Some(7));
        assert_eq!(registers.get(Register::Rax), None);
        let others = [Register::Rax, Register::R14].map(|other| registers.masks()[other as usize]);
        assert_eq!((registers.masks()[Register::R15 as usize], others), (u64::MAX, [0, 0]));
        registers.forget(Register::R15);
        assert!(registers.is_empty());
        let mut used = Registers::default();
        used.set_all([3; N_REGISTERS]);
        used.clear();
        assert_eq!((used, used.masks()), (Registers::default(), [0; N_REGISTERS]));
        used.set(Register::Rax, 7);
        assert_eq!(
            (used.get(Register::Rax), used.values()[1]),
            (Some(7), 0),
            "nothing old is left"
        );
        assert_eq!(registers.values(), &[0; N_REGISTERS]);
        Register::ALL.into_iter().for_each(|register| registers.set(register, 1));
        assert_eq!(registers.masks(), [u64::MAX; N_REGISTERS]);
        assert_eq!(registers.masks_of_some(), None);
        assert_eq!(used.masks_of_some(), Some(used.masks()));
        let mut at_once = Registers::default();
        at_once.set_all([1; N_REGISTERS]);
        assert_eq!(at_once, registers);
        at_once.clear();
        assert_eq!(at_once, Registers::default());
    }
}
