//! The ways in which functions get and give values: in registers, in memory, or by their address.

use crate::dwarf::debug_info::DebugInfo;
use crate::limit;
use crate::types::die::UnitIdx;
use crate::types::layout::{Layout, Member, ScalarKind, Shape};
use std::ops::Range;

/// Most bytes that are returned in registers, not in memory (psABI, 3.2.3; Rust returns as C does).
const REGISTERS_BYTES: u64 = 16;

/// Bytes of the vectors that are returned in one register though they are larger.
const WIDE_VECTORS_BYTES: [u64; 2] = [32, 64];

/// The way in which a value is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passing {
    /// As it is, in registers or on the stack.
    Value,
    /// In memory whose address is passed: of a result, as the first argument, and given back.
    Address,
    /// The debug information does not tell.
    Unknown,
}

impl DebugInfo {
    /// The way in which a function of `unit` returns a value of this type (psABI, 3.2.3).
    pub(crate) fn returning(&mut self, unit: UnitIdx, layout: &Layout) -> Passing {
        let is_large = layout.size > REGISTERS_BYTES;
        match &layout.shape {
            _ if self.is_go(unit) => Passing::Unknown,
            Shape::Scalar(_) => Passing::Value,
            // Only vectors are arrays that C returns.
            Shape::Array { .. } => match (self.is_rust(unit), is_large) {
                (true, true) => Passing::Address,
                (true, false) => Passing::Unknown,
                (false, _) => Passing::Value,
            },
            Shape::Aggregate { .. } if is_large => {
                let is_vector = may_be_vector(layout) && !self.is_rust(unit);
                if is_vector { Passing::Unknown } else { Passing::Address }
            }
            Shape::Aggregate { .. } => self.convention(layout),
        }
    }

    /// The way in which a function of `unit` gets an argument of this type.
    pub(crate) fn passing(&mut self, unit: UnitIdx, layout: &Layout) -> Passing {
        let is_large = layout.size > REGISTERS_BYTES;
        match &layout.shape {
            // Go has registers of its own for arguments.
            _ if self.is_go(unit) => Passing::Unknown,
            Shape::Scalar(_) => Passing::Value,
            // By its address, but of `extern "C"`, which is not told from others.
            _ if self.is_rust(unit) && is_large => Passing::Unknown,
            Shape::Array { .. } if self.is_rust(unit) => Passing::Unknown,
            Shape::Array { .. } => Passing::Value,
            Shape::Aggregate { .. } => self.convention(layout),
        }
    }

    /// Tells whether objects of a type are only passed by reference: C++ classes with copy constructors or
    /// destructors of their own (Itanium C++ ABI, 3.1.2.3). gcc does not say so.
    fn convention(&mut self, layout: &Layout) -> Passing {
        let Some((unit, entry)) = layout.die.and_then(|die| self.entry(die)) else {
            return Passing::Unknown;
        };
        match entry.attr_value(gimli::DW_AT_calling_convention) {
            Some(gimli::AttributeValue::CallingConvention(gimli::DW_CC_pass_by_reference)) => {
                Passing::Address
            }
            Some(gimli::AttributeValue::CallingConvention(_)) => Passing::Value,
            _ if unit.is_rust() || !unit.has_name_spaces() => Passing::Value,
            _ => Passing::Unknown,
        }
    }

    pub(crate) fn is_rust(&mut self, unit: UnitIdx) -> bool {
        self.unit(unit).is_some_and(|unit| unit.is_rust())
    }

    pub(crate) fn is_go(&mut self, unit: UnitIdx) -> bool {
        self.unit(unit).is_some_and(|unit| unit.is_go())
    }

    /// Tells whether a unit is written in assembly: its functions have no parameters that are told.
    pub(crate) fn is_assembled(&mut self, unit: UnitIdx) -> bool {
        self.unit(unit).is_some_and(|unit| unit.is_assembled())
    }
}

/// Tells whether an aggregate may be nothing but a wide vector, which looks like any array.
fn may_be_vector(layout: &Layout) -> bool {
    let is_all = |member: &Member| member.layout.size == layout.size;
    WIDE_VECTORS_BYTES.contains(&layout.size)
        && match &layout.shape {
            Shape::Scalar(_) => false,
            Shape::Array { .. } => true,
            Shape::Aggregate { members, .. } => {
                members.iter().any(|member| is_all(member) && may_be_vector(&member.layout))
            }
        }
}

/// The registers that pass eight bytes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// A general register.
    General,
    /// A vector register.
    Vector,
}

impl DebugInfo {
    /// The registers by which a function of `unit` gets an object: none for a large one, which is on
    /// the stack; `None` where that is not known.
    pub(crate) fn words(&mut self, unit: UnitIdx, layout: &Layout) -> Option<Vec<Word>> {
        if layout.size > REGISTERS_BYTES {
            return Some(Vec::new());
        }
        let is_rust = self.is_rust(unit);
        let starts = (0..layout.size).step_by(8);
        let words = starts.map(|start| Leaves::of(layout, start..start + 8, is_rust)?.word());
        words.collect()
    }
}

/// The scalars in a word.
struct Leaves {
    word: Range<u64>,
    n_floats: usize,
    n_others: usize,
    n_visited: usize,
    is_rust: bool,
}

impl Leaves {
    fn of(layout: &Layout, word: Range<u64>, is_rust: bool) -> Option<Self> {
        let mut leaves = Self { word, n_floats: 0, n_others: 0, n_visited: 0, is_rust };
        leaves.visit(layout, 0).then_some(leaves)
    }

    /// By the classes of the psABI, 3.2.3. Rust passes two scalars in two registers, however small,
    /// and has no promise for more of them.
    fn word(&self) -> Option<Word> {
        match (self.n_floats, self.n_others) {
            (0, 1) => Some(Word::General),
            (0, 0) => None,
            _ if self.is_rust => None,
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
            // Rust passes what holds an array, and is larger than a word, by its address.
            Shape::Array { .. } if self.is_rust => return false,
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
