//! Congruences: numbers that are known by what they leave over when they are divided.

use super::offset::gcd;

/// Numbers that are congruent to `rest` modulo `step`: a whole number of steps away from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Congruence {
    /// The modulus; 0 for none: it is `rest` itself.
    step: u64,
    /// The remainder: less than the step, and not below 0, where there is one.
    rest: i64,
}

impl Congruence {
    /// Of which nothing is known.
    pub(crate) const ANY: Self = Self { step: 1, rest: 0 };

    /// This number.
    pub(crate) const fn exact(number: i64) -> Self {
        Self { step: 0, rest: number }
    }

    /// Any number of steps away from `rest`. Steps so large that they wrap tell nothing.
    pub(crate) fn stepped(step: u64, rest: i64) -> Self {
        match i64::try_from(step) {
            Ok(0) => Self::exact(rest),
            Ok(whole) => Self { step, rest: rest.rem_euclid(whole) },
            Err(_) => Self::ANY,
        }
    }

    pub(crate) const fn step(self) -> u64 {
        self.step
    }

    pub(crate) const fn rest(self) -> i64 {
        self.rest
    }

    /// The only number, if there is one.
    pub(crate) fn only(self) -> Option<i64> {
        (self.step == 0).then_some(self.rest)
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self::stepped(gcd(self.step, other.step), self.rest.wrapping_add(other.rest))
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self::stepped(gcd(self.step, other.step), self.rest.wrapping_sub(other.rest))
    }

    pub(crate) fn times(self, by: i64) -> Self {
        if self.step == 0 {
            return Self::exact(self.rest.wrapping_mul(by));
        }
        match (self.step.checked_mul(by.unsigned_abs()), self.rest.checked_mul(by)) {
            (Some(step), Some(rest)) => Self::stepped(step, rest),
            _ => Self::ANY,
        }
    }

    /// The join: one of both. An index that begins at 0 and is 40 later, as in a loop over structures of
    /// 40 bytes, is congruent to 0 modulo 40.
    pub(crate) fn join(self, other: Self) -> Self {
        let apart = self.rest.abs_diff(other.rest);
        Self::stepped(gcd(gcd(self.step, other.step), apart), self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::Congruence;
    use proptest::prelude::*;

    /// A number of which some are known, and one of them.
    fn known() -> impl Strategy<Value = (Congruence, i64)> {
        (0..50u64, -100..100i64, -20..20i64).prop_map(|(step, rest, n_steps)| {
            (Congruence::stepped(step, rest), rest + step.cast_signed() * n_steps)
        })
    }

    fn is_one(number: Congruence, value: i64) -> bool {
        match number.only() {
            Some(only) => only == value,
            None => (value - number.rest()).rem_euclid(number.step().cast_signed()) == 0,
        }
    }

    proptest! {
        #[test]
        fn what_is_known_holds_for_what_is_counted(
            (first, one) in known(), (second, other) in known(), by in -10..10i64,
        ) {
            prop_assert!(is_one(first, one));
            prop_assert!(is_one(first.plus(second), one + other));
            prop_assert!(is_one(first.minus(second), one - other));
            prop_assert!(is_one(first.times(by), one * by));
            prop_assert!(is_one(first.join(second), one));
            prop_assert!(is_one(first.join(second), other));
        }
    }

    #[test]
    fn steps_are_kept() {
        let from_32_by_40 = Congruence::exact(32).join(Congruence::exact(72));
        assert_eq!((from_32_by_40.step(), from_32_by_40.rest()), (40, 32));
        assert_eq!(from_32_by_40.plus(Congruence::exact(40)), from_32_by_40);
        assert_eq!(from_32_by_40.minus(Congruence::exact(32)), Congruence::stepped(40, 0));
    }
}
