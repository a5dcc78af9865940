//! Which values are handed over by their address.

use super::{DebugInfo, UnitIdx};
use crate::layout::{Layout, ScalarKind, Shape};
use crate::limit;
use std::ops::Range;

/// Values that do not fit into two registers are returned in memory (psABI, 3.2.3; Rust keeps to that).
const REGISTERS_BYTES: u64 = 16;

impl DebugInfo {
    /// Whether a function returns a value of this type in memory whose address it gets as its
    /// first argument and gives back (psABI, 3.2.3).
    pub(crate) fn is_returned_in_memory(&mut self, layout: &Layout) -> bool {
        !matches!(layout.shape, Shape::Scalar(_))
            && (layout.size > REGISTERS_BYTES || self.has_no_value_of_its_own(layout))
    }

    /// Whether a function of `unit` gets the address of an argument of this type instead of the value.
    pub(crate) fn is_passed_by_address(&mut self, unit: UnitIdx, layout: &Layout) -> bool {
        if matches!(layout.shape, Shape::Scalar(_)) {
            return false;
        }
        let is_rust = self.unit(unit).is_some_and(|unit| unit.is_rust());
        is_rust && layout.size > REGISTERS_BYTES || self.has_no_value_of_its_own(layout)
    }

    /// Whether the debug information says that objects of the type are only passed by reference: C++
    /// classes with copy constructors or destructors of their own (Itanium C++ ABI, 3.1.2.3).
    fn has_no_value_of_its_own(&mut self, layout: &Layout) -> bool {
        let Some((_, entry)) = layout.die.and_then(|die| self.entry(die)) else { return false };
        let convention = entry.attr_value(gimli::DW_AT_calling_convention);
        matches!(
            convention,
            Some(gimli::AttributeValue::CallingConvention(gimli::DW_CC_pass_by_reference))
        )
    }
}

/// Which registers pass eight bytes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// A general register.
    General,
    /// A vector register.
    Vector,
}

impl DebugInfo {
    /// How a value of two words at most is passed by a function of `unit`; `None` where that is not
    /// known.
    pub(crate) fn words(&mut self, unit: UnitIdx, layout: &Layout) -> Option<Vec<Word>> {
        if layout.size > REGISTERS_BYTES {
            return None;
        }
        let is_rust = self.unit(unit).is_some_and(|unit| unit.is_rust());
        let starts = (0..layout.size).step_by(8);
        let words = starts.map(|start| Leaves::of(layout, start..start + 8)?.word(is_rust));
        words.collect()
    }
}

/// What there is in a word.
struct Leaves {
    word: Range<u64>,
    n_floats: usize,
    n_others: usize,
    n_visited: usize,
}

impl Leaves {
    fn of(layout: &Layout, word: Range<u64>) -> Option<Self> {
        let mut leaves = Self { word, n_floats: 0, n_others: 0, n_visited: 0 };
        leaves.visit(layout, 0).then_some(leaves)
    }

    /// By the classes of the psABI, 3.2.3. Rust passes two scalars in two registers, however small,
    /// and has no promise for more of them.
    fn word(&self, is_rust: bool) -> Option<Word> {
        match (self.n_floats, self.n_others) {
            (0, 1) => Some(Word::General),
            (0, 0) => None,
            _ if is_rust => None,
            (_, 0) => Some(Word::Vector),
            _ => Some(Word::General),
        }
    }

    /// False for what does not lie at a multiple of its size, which goes through memory, and for what
    /// has more parts than bytes would let it.
    fn visit(&mut self, layout: &Layout, at: u64) -> bool {
        let end = at.saturating_add(layout.size);
        if layout.size == 0 || at >= self.word.end || end <= self.word.start {
            return true;
        }
        self.n_visited += 1;
        if self.n_visited > limit::MAX_PASSED_PARTS {
            return false;
        }
        match &layout.shape {
            Shape::Scalar(ScalarKind::Float) => self.n_floats += 1,
            Shape::Scalar(ScalarKind::Opaque) => return false,
            Shape::Scalar(_) => self.n_others += 1,
            Shape::Aggregate { members, .. } => {
                return members.iter().all(|member| {
                    let start = at.saturating_add(member.offset);
                    self.visit(&member.layout, start)
                });
            }
            Shape::Array { element, .. } => {
                let step = usize::try_from(element.size.max(1)).unwrap_or(usize::MAX);
                let starts = (at..end.min(self.word.end)).step_by(step);
                return starts.into_iter().all(|start| self.visit(element, start));
            }
        }
        at.is_multiple_of(layout.size) && layout.size <= 8
    }
}
