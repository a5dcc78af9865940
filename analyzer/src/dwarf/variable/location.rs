//! Location expressions, as far as they say where a variable is in terms of one register.

use crate::dwarf::unit::reader::Reader;
use crate::dwarf::variable::register_sum;
use crate::limit;
use dataspace_proto::address::Svma;
use gimli::Operation;
use std::ops::Range;

/// The point that a displacement is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// A register, by its DWARF number (psABI, figure 3.36).
    Register(u16),
    /// The canonical frame address.
    Cfa,
}

/// The place of a variable, at one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VariablePlace {
    /// Its value is in a register.
    Register(u16),
    /// It is in memory, `offset` bytes from `base`.
    Memory {
        /// From where.
        base: Base,
        /// Distance from there.
        offset: i64,
    },
    /// It has no place; its value is that of a base plus `offset`.
    Value {
        /// From where.
        base: Base,
        /// Number that is added.
        offset: i64,
    },
    /// Its value, or its address, is the sum of a register, so many times another one, and `offset`.
    Sum {
        /// The register that counts once, by its DWARF number.
        base: u16,
        /// The other one.
        index: u16,
        /// Factor of that register.
        scale: i64,
        /// Number that is added besides.
        offset: i64,
        /// The sum is where the variable is, and not its value.
        is_place: bool,
    },
    /// It is at a fixed address.
    Static(Svma),
    /// Its value is what the register held when the function was entered.
    Entry(u16),
    /// It is where the register pointed when the function was entered.
    AtEntry(u16),
    /// It is where a pointer points that is in memory: Fortran passes all by reference, and some of that on the stack.
    Behind {
        /// The pointer is counted from here.
        base: Base,
        /// Distance of the pointer from there.
        offset: i64,
    },
}

/// The place of a part of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VariablePart {
    /// The place itself.
    pub place: VariablePlace,
    /// Beginning of the part in the variable, in bytes.
    pub offset: u64,
    /// Number of bytes that it has, unless it is all from there on.
    pub n_bytes: Option<u64>,
}

impl VariablePart {
    /// The bytes of a variable of `size` bytes that it has.
    pub(crate) fn bytes(&self, size: u64) -> Range<u64> {
        let end = self.n_bytes.map_or(size, |n_bytes| self.offset.saturating_add(n_bytes));
        self.offset..end.min(size)
    }
}

/// The point that `DW_OP_fbreg` is counted from in a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FrameBase {
    #[default]
    Unknown,
    /// Register or CFA, plus an offset.
    Known(Base, i64),
}

/// Reads `DW_AT_frame_base` (DWARF 5 section 3.3.5).
pub(crate) fn frame_base(
    expression: gimli::Expression<Reader>,
    encoding: gimli::Encoding,
) -> FrameBase {
    match operations(expression, encoding).as_deref() {
        Some([Operation::CallFrameCFA, rest @ ..]) => match moved(0, rest) {
            // LLVM counts so from the CFA where arguments are pushed.
            Some(offset) => FrameBase::Known(Base::Cfa, offset),
            None => FrameBase::Unknown,
        },
        // As a frame base, "in register r" means that r's value is the address.
        Some([Operation::Register { register }]) => FrameBase::Known(Base::Register(register.0), 0),
        Some([Operation::RegisterOffset { register, offset, .. }]) => {
            FrameBase::Known(Base::Register(register.0), *offset)
        }
        _ => FrameBase::Unknown,
    }
}

/// The places of the parts of a variable with this location expression: one for a variable in one
/// piece (DWARF 5 section 2.6.1.2). Parts in none of the forms above are left out.
pub(crate) fn parts(
    dwarf: &gimli::Dwarf<Reader>,
    unit: &gimli::Unit<Reader>,
    expression: gimli::Expression<Reader>,
    frame_base: FrameBase,
) -> Vec<VariablePart> {
    let Some(operations) = operations(expression, unit.encoding()) else { return Vec::new() };
    let mut parts = Vec::new();
    let mut offset = 0u64;
    let mut rest = operations.as_slice();
    while !rest.is_empty() {
        let is_piece = |operation: &Operation<Reader>| matches!(operation, Operation::Piece { .. });
        let end = rest.iter().position(is_piece);
        let (description, tail) = rest.split_at(end.unwrap_or(rest.len()));
        let place = place(dwarf, unit, description, frame_base);
        let Some((Operation::Piece { size_in_bits, bit_offset }, tail)) = tail.split_first() else {
            parts.extend(place.map(|place| VariablePart { place, offset, n_bytes: None }));
            break;
        };
        let n_bytes = Some(size_in_bits / 8);
        parts.extend(place.map(|place| VariablePart { place, offset, n_bytes }));
        // What stands after a part of odd bits is not where bytes say.
        if size_in_bits % 8 != 0 || bit_offset.is_some() {
            break;
        }
        offset = offset.saturating_add(size_in_bits / 8);
        rest = tail;
    }
    parts
}

/// The place that operations without pieces give a value; `None` for none of the forms above.
fn place(
    dwarf: &gimli::Dwarf<Reader>,
    unit: &gimli::Unit<Reader>,
    operations: &[Operation<Reader>],
    frame_base: FrameBase,
) -> Option<VariablePlace> {
    match operations {
        [Operation::Register { register }] => Some(VariablePlace::Register(register.0)),
        [Operation::Address { address }] => Some(VariablePlace::Static(Svma(*address))),
        [Operation::AddressIndex { index }] => {
            Some(VariablePlace::Static(Svma(dwarf.address(unit, *index).ok()?)))
        }
        [Operation::EntryValue { expression }, rest @ ..] => {
            let expression = gimli::Expression(expression.clone());
            match (self::operations(expression, unit.encoding())?.as_slice(), rest) {
                ([Operation::Register { register }], [Operation::StackValue]) => {
                    Some(VariablePlace::Entry(register.0))
                }
                ([Operation::Register { register }], []) => {
                    Some(VariablePlace::AtEntry(register.0))
                }
                _ => None,
            }
        }
        [first, rest @ ..] => {
            let counted = counted_from_one(first, rest, frame_base);
            counted.or_else(|| register_sum::read(operations))
        }
        [] => None,
    }
}

/// The place that operations give a value, so far from one place.
fn counted_from_one(
    first: &Operation<Reader>,
    rest: &[Operation<Reader>],
    frame_base: FrameBase,
) -> Option<VariablePlace> {
    let (base, offset) = based(first, frame_base)?;
    Some(match rest {
        [rest @ .., Operation::StackValue] => {
            VariablePlace::Value { base, offset: moved(offset, rest)? }
        }
        [rest @ .., Operation::Deref { size: 8, space: false, .. }] => {
            VariablePlace::Behind { base, offset: moved(offset, rest)? }
        }
        rest => VariablePlace::Memory { base, offset: moved(offset, rest)? },
    })
}

/// An offset after sums with constants; `None` for anything else.
fn moved(mut offset: i64, operations: &[Operation<Reader>]) -> Option<i64> {
    let mut constants: Vec<i64> = Vec::new();
    for operation in operations {
        match operation {
            Operation::PlusConstant { value } if constants.is_empty() => {
                offset = offset.wrapping_add(value.cast_signed());
            }
            Operation::UnsignedConstant { value } => constants.push(value.cast_signed()),
            Operation::SignedConstant { value } => constants.push(*value),
            Operation::Plus => offset = offset.wrapping_add(constants.pop()?),
            Operation::Minus => offset = offset.wrapping_sub(constants.pop()?),
            _ => return None,
        }
    }
    constants.is_empty().then_some(offset)
}

fn based(operation: &Operation<Reader>, frame_base: FrameBase) -> Option<(Base, i64)> {
    match operation {
        // A typed register (DW_OP_regval_type) holds no address.
        Operation::RegisterOffset { register, offset, base_type } if base_type.0 == 0 => {
            Some((Base::Register(register.0), *offset))
        }
        Operation::CallFrameCFA => Some((Base::Cfa, 0)),
        Operation::FrameOffset { offset } => match frame_base {
            FrameBase::Known(base, start) => Some((base, start.wrapping_add(*offset))),
            FrameBase::Unknown => None,
        },
        _ => None,
    }
}

pub(crate) fn operations(
    expression: gimli::Expression<Reader>,
    encoding: gimli::Encoding,
) -> Option<Vec<Operation<Reader>>> {
    let mut operations = expression.operations(encoding);
    let mut found = Vec::new();
    while let Some(operation) = operations.next().ok()? {
        if found.len() >= limit::MAX_LOCATION_OPERATIONS {
            return None;
        }
        found.push(operation);
    }
    Some(found)
}
