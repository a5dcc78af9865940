//! Status flags at one point of a program's past, as far as they are known: the set of their possible
//! values.

use iced_x86::{Instruction, RflagsBits};

/// The possible values of CF, PF, AF, ZF, SF and OF taken together: bit `v` of the set stands for
/// the six flags having value `v`, CF being bit 0 of `v`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlagSet(u64);

/// One status flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// CF.
    Carry,
    /// PF.
    Parity,
    /// AF.
    Adjust,
    /// ZF.
    Zero,
    /// SF.
    Sign,
    /// OF.
    Overflow,
}

impl Flag {
    const ALL: [Self; 6] =
        [Self::Carry, Self::Parity, Self::Adjust, Self::Zero, Self::Sign, Self::Overflow];

    /// The values in which this flag is set.
    const fn set(self) -> u64 {
        [
            0xaaaa_aaaa_aaaa_aaaa,
            0xcccc_cccc_cccc_cccc,
            0xf0f0_f0f0_f0f0_f0f0,
            0xff00_ff00_ff00_ff00,
            0xffff_0000_ffff_0000,
            0xffff_ffff_0000_0000,
        ][self as usize]
    }

    /// Its bit in RFLAGS (SDM volume 1, figure 3-8).
    pub(super) const fn rflags_bit(self) -> u32 {
        [0, 2, 4, 6, 7, 11][self as usize]
    }

    const fn iced_bit(self) -> u32 {
        [
            RflagsBits::CF,
            RflagsBits::PF,
            RflagsBits::AF,
            RflagsBits::ZF,
            RflagsBits::SF,
            RflagsBits::OF,
        ][self as usize]
    }
}

/// A condition that branches, `setcc` and `cmovcc` ask the flags for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the manual's own")]
pub enum Condition {
    Overflow,
    NoOverflow,
    Below,
    AboveOrEqual,
    Equal,
    NotEqual,
    BelowOrEqual,
    Above,
    Sign,
    NoSign,
    Parity,
    NoParity,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Greater,
}

impl Condition {
    /// All, by their code in the instructions that have one (SDM volume 1, appendix B).
    pub const ALL: [Self; 16] = [
        Self::Overflow,
        Self::NoOverflow,
        Self::Below,
        Self::AboveOrEqual,
        Self::Equal,
        Self::NotEqual,
        Self::BelowOrEqual,
        Self::Above,
        Self::Sign,
        Self::NoSign,
        Self::Parity,
        Self::NoParity,
        Self::Less,
        Self::GreaterOrEqual,
        Self::LessOrEqual,
        Self::Greater,
    ];

    /// The condition of an instruction.
    pub(super) fn of(instruction: &Instruction) -> Option<Self> {
        // 0 is for none.
        let code = (instruction.condition_code() as usize).checked_sub(1)?;
        Self::ALL.get(code).copied()
    }

    /// The values of the flags by which it holds.
    const fn taken_values(self) -> u64 {
        let carry = Flag::Carry.set();
        let zero = Flag::Zero.set();
        let less = Flag::Sign.set() ^ Flag::Overflow.set();
        let of_pair = match self {
            Self::Overflow | Self::NoOverflow => Flag::Overflow.set(),
            Self::Below | Self::AboveOrEqual => carry,
            Self::Equal | Self::NotEqual => zero,
            Self::BelowOrEqual | Self::Above => carry | zero,
            Self::Sign | Self::NoSign => Flag::Sign.set(),
            Self::Parity | Self::NoParity => Flag::Parity.set(),
            Self::Less | Self::GreaterOrEqual => less,
            Self::LessOrEqual | Self::Greater => zero | less,
        };
        // The second of each pair is the contrary of the first.
        if (self as usize).is_multiple_of(2) { of_pair } else { !of_pair }
    }
}

impl FlagSet {
    /// Nothing is known.
    pub const ANY: Self = Self(u64::MAX);

    /// The value in RFLAGS.
    #[must_use]
    pub fn of_rflags(rflags: u64) -> Self {
        Flag::ALL
            .into_iter()
            .fold(Self::ANY, |set, flag| set.with(flag, rflags >> flag.rflags_bit() & 1 != 0))
    }

    /// The values in which `flag` is as told.
    #[must_use]
    pub const fn with(self, flag: Flag, is_set: bool) -> Self {
        Self(self.0 & if is_set { flag.set() } else { !flag.set() })
    }

    /// The values in which a branch of this condition goes this way (SDM volume 1, appendix B).
    #[must_use]
    pub const fn given(self, condition: Condition, is_taken: bool) -> Self {
        let taken = condition.taken_values();
        Self(self.0 & if is_taken { taken } else { !taken })
    }

    /// Tells whether a condition holds, where every possible value says the same.
    #[must_use]
    pub const fn decides(self, condition: Condition) -> Option<bool> {
        match (
            self.given(condition, true).is_impossible(),
            self.given(condition, false).is_impossible(),
        ) {
            (false, true) => Some(true),
            (true, false) => Some(false),
            _ => None,
        }
    }

    /// The set before an instruction that changed these flags (`RflagsBits` of iced) in a way that
    /// is not followed.
    #[must_use]
    pub fn before_change(self, changed: u32) -> Self {
        let mut set = self.0;
        for flag in Flag::ALL {
            if changed & flag.iced_bit() != 0 {
                let by = 1 << flag as u32;
                set |= (set & flag.set()) >> by | (set & !flag.set()) << by;
            }
        }
        Self(set)
    }

    /// The values that both sets have.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Tells whether no value is left: what was assumed on the way cannot have happened.
    #[must_use]
    pub const fn is_impossible(self) -> bool {
        self.0 == 0
    }

    /// The values that a result of `width_bits` leaves in ZF, SF and PF.
    #[must_use]
    pub const fn of_result(result: u64, width_bits: u32) -> Self {
        let result = result & (u64::MAX >> (64 - width_bits));
        Self::ANY
            .with(Flag::Zero, result == 0)
            .with(Flag::Sign, result >> (width_bits - 1) & 1 != 0)
            .with(Flag::Parity, (result as u8).count_ones().is_multiple_of(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_decides_every_condition_as_arithmetic_does() {
        let values = [0i64, 1, -1, 5, i64::MIN, i64::MAX];
        for (a, b) in values.iter().flat_map(|a| values.iter().map(move |b| (*a, *b))) {
            let (result, overflow) = a.overflowing_sub(b);
            let set = FlagSet::of_result(result.cast_unsigned(), 64)
                .with(Flag::Carry, a.cast_unsigned() < b.cast_unsigned())
                .with(Flag::Overflow, overflow);
            for (condition, holds) in [
                (Condition::Less, a < b),
                (Condition::LessOrEqual, a <= b),
                (Condition::Greater, a > b),
                (Condition::GreaterOrEqual, a >= b),
                (Condition::Below, a.cast_unsigned() < b.cast_unsigned()),
                (Condition::Above, a.cast_unsigned() > b.cast_unsigned()),
                (Condition::BelowOrEqual, a.cast_unsigned() <= b.cast_unsigned()),
                (Condition::AboveOrEqual, a.cast_unsigned() >= b.cast_unsigned()),
                (Condition::Equal, a == b),
                (Condition::NotEqual, a != b),
            ] {
                assert_eq!(set.decides(condition), Some(holds), "{a} {condition:?} {b}");
            }
        }
    }

    #[test]
    fn a_forgotten_flag_may_have_been_either_and_the_others_stay() {
        let carry_and_zero = FlagSet::of_rflags(1 | 1 << 6);
        let before = carry_and_zero.before_change(RflagsBits::ZF);
        assert_eq!(before.decides(Condition::Equal), None);
        assert_eq!(before.decides(Condition::Below), Some(true));
        assert!(before.given(Condition::AboveOrEqual, true).is_impossible());
    }

    /// SDM volume 1, appendix B.
    #[test]
    fn a_condition_holds_for_the_flags_that_the_manual_says() {
        for value in 0..64u64 {
            let is_set = |bit: u64| value >> bit & 1 != 0;
            let (cf, pf, zf, sf, of) = (is_set(0), is_set(1), is_set(3), is_set(4), is_set(5));
            let bits = [0, 2, 4, 6, 7, 11].into_iter().enumerate();
            let rflags = bits.fold(0, |all, (bit, to)| all | (value >> bit & 1) << to);
            for (code, otherwise, holds) in [
                (Condition::Overflow, Condition::NoOverflow, of),
                (Condition::Below, Condition::AboveOrEqual, cf),
                (Condition::Equal, Condition::NotEqual, zf),
                (Condition::BelowOrEqual, Condition::Above, cf || zf),
                (Condition::Sign, Condition::NoSign, sf),
                (Condition::Parity, Condition::NoParity, pf),
                (Condition::Less, Condition::GreaterOrEqual, sf != of),
                (Condition::LessOrEqual, Condition::Greater, zf || sf != of),
            ] {
                let set = FlagSet::of_rflags(rflags);
                assert_eq!(set.decides(code), Some(holds), "{code:?} of {rflags:#x}");
                assert_eq!(set.decides(otherwise), Some(!holds), "{otherwise:?} of {rflags:#x}");
            }
        }
    }
}
