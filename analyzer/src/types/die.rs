//! Entries of the debug information, by unit and offset.

use gimli::UnitOffset;

/// Index of a unit of a load object, whatever file it is in.
pub(crate) type UnitIdx = u32;

/// One entry of the debug information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DieRef {
    pub(crate) unit: UnitIdx,
    pub(crate) offset: UnitOffset,
}
