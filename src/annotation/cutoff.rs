//! Cutoffs: which instructions and lines have too few samples to be shown.

/// Instructions above which all that have no samples are left out unless something else is asked for.
const MANY_INSTRUCTIONS: usize = 400;

/// Cutoffs as they are in force. Shares are of the function's samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CodeCutoffs {
    /// Least share of a row, in percent.
    pub(crate) min_percent: f64,
    /// Share that the rows make up together, most samples first, in percent.
    pub(crate) cumulative_percent: f64,
    /// Fewest samples of a row.
    pub(crate) min_samples: u64,
}

impl CodeCutoffs {
    /// None: all is shown.
    pub(crate) const NONE: Self =
        Self { min_percent: 0.0, cumulative_percent: 100.0, min_samples: 0 };

    /// The usual ones for a function of so many instructions.
    pub(crate) const fn usual(n_instructions: usize) -> Self {
        let min_samples = if n_instructions > MANY_INSTRUCTIONS { 1 } else { 0 };
        Self { min_samples, ..Self::NONE }
    }

    /// Tells whether they leave anything out.
    pub(crate) fn is_any(&self) -> bool {
        *self != Self::NONE
    }

    /// The rows that stay, of rows with so many samples out of `total`.
    pub(crate) fn kept(&self, samples: &[u64], total: u64) -> Vec<bool> {
        let mut order: Vec<usize> = (0..samples.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(samples[*at]));
        let mut kept = vec![false; samples.len()];
        let mut before = 0;
        for at in order {
            let own = samples[at];
            let is_over = before > 0 && percent(before, total) >= self.cumulative_percent;
            // What is short of 100 % by nothing but rows without samples is whole.
            let is_over = is_over && self.cumulative_percent < 100.0;
            if is_over || own < self.min_samples || percent(own, total) < self.min_percent {
                break;
            }
            kept[at] = true;
            before += own;
        }
        kept
    }
}

/// `part` of `total` in percent; 0 where there is no total.
#[allow(clippy::cast_precision_loss, reason = "shown with one digit after the point")]
pub(crate) fn percent(part: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { part as f64 / total as f64 * 100.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cutoff_leaves_out_what_it_says() {
        let check = |cutoffs: CodeCutoffs, expect: [bool; 5]| {
            assert_eq!(cutoffs.kept(&[10, 0, 60, 5, 25], 100), expect, "{cutoffs:?}");
        };
        let none = CodeCutoffs::NONE;
        check(none, [true; 5]);
        check(CodeCutoffs { min_percent: 10.0, ..none }, [true, false, true, false, true]);
        check(CodeCutoffs { min_samples: 11, ..none }, [false, false, true, false, true]);
        check(CodeCutoffs { min_samples: 1, ..none }, [true, false, true, true, true]);
        check(CodeCutoffs { cumulative_percent: 60.0, ..none }, [false, false, true, false, false]);
        check(CodeCutoffs { cumulative_percent: 61.0, ..none }, [false, false, true, false, true]);
        assert_eq!(none.kept(&[0, 0], 0), [true, true], "no samples at all");
    }
}
