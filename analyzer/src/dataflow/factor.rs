//! Factors: which multiple of another value a value is, by shifts, differences and sums of the other one.

use super::graph::ValueGraph;
use super::value::{Definition, Sum, ValueIdx};
use crate::limit;

impl ValueGraph {
    /// The value that `value` is a multiple of, and which: `8·x − x` is 7 times `x`. Of anything else
    /// itself, once.
    pub(super) fn factor(&self, value: ValueIdx) -> (ValueIdx, i64) {
        self.factor_within(self.canonical(value), limit::MAX_FACTORS)
    }

    fn factor_within(&self, value: ValueIdx, n_left: usize) -> (ValueIdx, i64) {
        self.product(value, n_left).unwrap_or((value, 1))
    }

    fn product(&self, value: ValueIdx, n_left: usize) -> Option<(ValueIdx, i64)> {
        let n_left = n_left.checked_sub(1)?;
        let of = |value: ValueIdx| self.factor_within(self.canonical(value), n_left);
        match self.definitions.get(value.0 as usize) {
            Some(Definition::Product { of: factor, by }) => {
                let (root, times) = of(*factor);
                times.checked_mul(by.cast_signed()).map(|times| (root, times))
            }
            Some(Definition::Difference { left, right }) => {
                let ((root, times), (other, less)) = (of(*left), of(*right));
                times.checked_sub(less).filter(|_| root == other).map(|times| (root, times))
            }
            Some(Definition::Sum(sum)) if sum.displacement == 0 && !sum.is_static => {
                sum_factor(sum, of)
            }
            _ => None,
        }
    }
}

fn sum_factor(sum: &Sum, of: impl Fn(ValueIdx) -> (ValueIdx, i64)) -> Option<(ValueIdx, i64)> {
    let (root, times) = of(sum.index?);
    let times = times.checked_mul(i64::from(sum.scale))?;
    let Some(base) = sum.base else { return Some((root, times)) };
    let (other, more) = of(base);
    times.checked_add(more).filter(|_| root == other).map(|times| (root, times))
}
