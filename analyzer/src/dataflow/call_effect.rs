//! Registers over calls: those that a call may change, and those that a called function leaves alone though it need not.

use crate::x86_64::abi::CALLER_SAVED;
use crate::x86_64::register_use::{Registers, only};

/// Effects of a function's calls on registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallEffects {
    /// Registers that a called function need not keep.
    pub(crate) lost: Registers,
    /// Calls whose functions keep some of these, by the index of the instruction, in order.
    pub(crate) kept: Vec<(u32, Registers)>,
}

impl Default for CallEffects {
    /// As the ABI has it (psABI, figure 3.4).
    fn default() -> Self {
        let lost = CALLER_SAVED.iter().fold(0, |all, register| all | only(*register));
        Self { lost, kept: Vec::new() }
    }
}

impl CallEffects {
    /// Returns the registers that the call at an instruction may change.
    pub(crate) fn lost_by(&self, at: u32) -> Registers {
        let found = self.kept.binary_search_by_key(&at, |(at, _)| *at);
        let kept = found.ok().and_then(|found| self.kept.get(found));
        self.lost & !kept.map_or(0, |(_, kept)| *kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_loses_what_it_is_not_known_to_keep() {
        let effects = CallEffects { kept: vec![(3, only(8)), (7, only(9))], ..Default::default() };
        let lost =
            [2, 3, 7].map(|at| [8, 9, 3].map(|register| effects.lost_by(at) & only(register) != 0));
        assert_eq!(lost, [[true, true, false], [false, true, false], [true, false, false]]);
    }
}
