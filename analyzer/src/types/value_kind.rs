//! What the code around an access does with the value.

use crate::types::layout::ScalarKind;

/// What the instructions around an access do with the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ValueKind {
    /// Copied, or nothing is known: a compiler copies a float through a general register.
    #[default]
    Unknown,
    /// Integer arithmetic, which addresses are counted by too.
    Integer,
    /// Floating-point arithmetic.
    Float,
    /// Used as an address.
    Pointer,
}

impl ValueKind {
    /// Whether a scalar of this kind is used so.
    pub(crate) const fn fits(self, kind: ScalarKind) -> bool {
        match self {
            Self::Unknown => true,
            Self::Integer => !matches!(kind, ScalarKind::Float),
            Self::Float => matches!(kind, ScalarKind::Float),
            Self::Pointer => matches!(kind, ScalarKind::Pointer),
        }
    }
}
