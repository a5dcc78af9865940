//! The values that a function computes: each one once, by how it comes about.

use crate::dwarf::code::frame::FrameRule;
use crate::dwarf::variable::location::Base;
use crate::types::value_kind::ValueKind;
use crate::x86_64::abi::{FRAME_POINTER, N_ARGUMENTS};
use dataspace_proto::address::Svma;

/// Index of a value of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct ValueIdx(pub(crate) u32);

/// Place in which a function keeps a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// A general register, by its DWARF number.
    Register(u8),
    /// Eight bytes of the frame.
    Slot(Slot),
    /// Eight bytes of a vector register.
    Lane { register: u8, lane: u8 },
}

/// A place in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Slot {
    /// The base that it is counted from.
    pub(crate) frame: Frame,
    /// Distance from that, in bytes.
    pub(crate) offset: i64,
}

impl Slot {
    /// The place in the frame that a location is; `None` outside the frame.
    pub(super) fn of(rule: FrameRule, base: Base, offset: i64) -> Option<Self> {
        let offset = match (base, rule) {
            (Base::Cfa, _) => offset,
            (Base::Register(register), FrameRule::Known(rule)) if register == rule.register => {
                offset.checked_sub(rule.offset)?
            }
            (Base::Register(FRAME_POINTER), FrameRule::Expression) => {
                return Some(Self { frame: Frame::Register(FRAME_POINTER as u8), offset });
            }
            _ => return None,
        };
        Some(Self { frame: Frame::Cfa, offset })
    }
}

/// Base that places in a frame are counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Frame {
    /// The canonical frame address.
    Cfa,
    /// A register that no rule relates to it, by its DWARF number: in a frame that was aligned.
    Register(u8),
}

/// Sum of values that an address is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) base: Option<ValueIdx>,
    pub(crate) index: Option<ValueIdx>,
    pub(crate) scale: u8,
    pub(crate) displacement: i64,
    /// The displacement is an address in the file's terms.
    pub(crate) is_static: bool,
}

/// Definition of a value: how it comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Definition {
    /// The content of a place where several ways meet, at the beginning of a run of instructions.
    Entry { run: u32, place: Place },
    /// The content of a register when the function is entered.
    Parameter { register: u8 },
    /// A number that the instruction holds.
    Constant(i64),
    /// An address in the file's terms.
    StaticAddress(Svma),
    /// The address where the thread's storage ends and its control block begins, which `%fs:0` holds.
    ThreadPointer,
    /// An address in the frame.
    FrameAddress(Slot),
    /// The sum of an address's parts.
    Sum(Sum),
    /// A multiple of a number.
    Product { of: ValueIdx, by: u64 },
    /// The difference `left` minus `right`.
    Difference { left: ValueIdx, right: ValueIdx },
    /// `of` with the bits of a mask.
    Masked { of: ValueIdx, mask: u64 },
    /// Low bits of a value, extended.
    Narrowed { of: ValueIdx },
    /// Read from memory, of so many bytes.
    Loaded { address: Sum, n_bytes: u8 },
    /// Read from the frame, where the value was put before.
    Reloaded { slot: Slot, kept: ValueIdx, at: u32 },
    /// One of two.
    Chosen { first: ValueIdx, second: ValueIdx },
    /// The value that the call at this instruction returned in the first register.
    Returned { at: u32 },
    /// A number of which nothing is known.
    Number,
    /// Anything else.
    Opaque,
}

impl Definition {
    /// Goes through the values that it names; what comes into an entry, and what is called, the graph knows.
    pub(super) fn for_each_operand(&self, mut visit: impl FnMut(ValueIdx)) {
        match *self {
            Self::Sum(sum) | Self::Loaded { address: sum, .. } => {
                [sum.base, sum.index].into_iter().flatten().for_each(visit);
            }
            Self::Product { of, .. }
            | Self::Masked { of, .. }
            | Self::Narrowed { of }
            | Self::Reloaded { kept: of, .. } => visit(of),
            Self::Difference { left: first, right: second } | Self::Chosen { first, second } => {
                [first, second].into_iter().for_each(visit);
            }
            Self::Entry { .. }
            | Self::Returned { .. }
            | Self::Parameter { .. }
            | Self::Constant(_)
            | Self::StaticAddress(_)
            | Self::ThreadPointer
            | Self::FrameAddress(_)
            | Self::Number
            | Self::Opaque => {}
        }
    }
}

/// Depth to which values are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// As far as it names what is accessed.
    Named,
    /// Also through vector registers that only copy, and with what is put into the frame.
    Copied,
}

/// Bytes that are accessed so far from where a value points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touched {
    pub(crate) displacement: i64,
    pub(crate) n_bytes: u8,
    pub(crate) kind: ValueKind,
    /// A number that is not known is added, in elements of so many bytes; 0 for none.
    pub(crate) step: u8,
}

/// An access to bytes that lie so far before where a value points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BytesBefore {
    pub(crate) distance: u8,
    pub(crate) n_bytes: u8,
}

impl BytesBefore {
    /// The last byte before.
    pub(crate) const FLAG: Self = Self { distance: 1, n_bytes: 1 };

    pub(super) fn of(touched: &Touched) -> Option<Self> {
        let distance = u8::try_from(touched.displacement.checked_neg()?).ok()?;
        let is_before = distance != 0 && touched.step == 0;
        is_before.then_some(Self { distance, n_bytes: touched.n_bytes })
    }
}

/// A value that is written to memory outside the frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Store {
    pub(crate) address: Sum,
    pub(crate) value: ValueIdx,
}

/// A call and what its argument registers hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) at: u32,
    /// By the order in which they are passed (psABI, 3.2.3).
    pub(crate) arguments: [ValueIdx; N_ARGUMENTS],
    /// The function's address, where it is a value.
    pub(crate) callee: Option<ValueIdx>,
}
