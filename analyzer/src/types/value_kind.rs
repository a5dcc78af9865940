//! The use of a value by the code around an access.

use crate::types::layout::ScalarKind;

/// The use of a value by the instructions around an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ValueKind {
    /// Copied, or nothing is known: a compiler copies a float through a general register.
    #[default]
    Unknown,
    /// Integer arithmetic, which addresses are counted by too.
    Integer,
    /// Floating-point arithmetic.
    Float,
    /// Looked for as a pointer, whatever the code does with it.
    Pointer,
    /// Memory is accessed at it afterwards: a pointer, or a number that is taken for one.
    Base,
}

impl ValueKind {
    /// Tells whether a scalar of this kind is used so.
    pub(crate) const fn fits(self, kind: ScalarKind) -> bool {
        match self {
            Self::Unknown => true,
            Self::Integer => !matches!(kind, ScalarKind::Float),
            Self::Float => matches!(kind, ScalarKind::Float),
            Self::Pointer | Self::Base => matches!(kind, ScalarKind::Pointer),
        }
    }
}
