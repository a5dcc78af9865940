//! Actions of instructions on values, in terms that are no architecture's: all that data flow sees of them.
//!
//! An action first reads memory, then assigns registers, then writes memory, then hands control on.
//! What it reads is as it was before all of it, so that two assignments can exchange two registers.

use super::abi::POINTER_BYTES;
use super::access::AddressOperand;
use super::arithmetic::Operation;
use super::exit::Exit;
use crate::types::value_kind::ValueKind;

/// Lanes of eight bytes that are followed in a vector register.
pub(crate) const N_LANES: u8 = 4;

/// One instruction's reads, assignments, store and exit.
#[derive(Clone, Debug)]
pub(crate) struct Action {
    pub(crate) reading: Reading,
    /// Registers that are looked at although nothing is made of them: those that a comparison compares,
    /// or a string instruction addresses memory by.
    pub(crate) regarded: [Option<u8>; 2],
    /// Two values that are compared for equality.
    pub(crate) compared: Option<(Source, Source)>,
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) store: Option<Stored>,
    pub(crate) exit: Exit,
    /// The address that an indirect call or jump goes to.
    pub(crate) callee: Option<Source>,
}

/// Reads of an instruction, other than those of general registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// The memory operand that is written out.
    pub(crate) operand: Option<MemoryOperand>,
    /// It takes a pointer's bytes from the top of the stack.
    pub(crate) pops: bool,
    /// It takes the stack's own address: `mov %rsp,%rdi`.
    pub(crate) takes_stack: bool,
    /// It takes a lane out of a vector register, or puts one in.
    pub(crate) moves_lane: bool,
}

/// A memory operand that is written out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryOperand {
    pub(crate) address: AddressOperand,
    pub(crate) n_bytes: u32,
    pub(crate) kind: ValueKind,
    /// Only the address is computed, and the memory not touched.
    pub(crate) is_address: bool,
}

impl MemoryOperand {
    /// Tells whether it has room for just a pointer.
    pub(crate) fn is_pointer(&self) -> bool {
        self.n_bytes == u32::from(POINTER_BYTES)
    }
}

/// A value that an instruction takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A general register, by its DWARF number.
    Register(u8),
    /// Some of its bits.
    Bits(u8),
    /// A lane of a vector register.
    Lane { register: u8, lane: u8 },
    /// The value that is read from memory: popped, or the operand.
    Memory,
    /// So much further in the operand, in pointers.
    MemoryLane(u8),
    /// A number that the instruction holds.
    Constant(i64),
    /// Anything else.
    Opaque,
}

/// A general register's new value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Assignment {
    /// The register, by its DWARF number.
    pub(crate) to: u8,
    pub(crate) width: Width,
    pub(crate) value: Expression,
}

/// Part of a register that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// All of it.
    Whole,
    /// The lower half, and zeros above.
    Half,
    /// Less, and the rest stays.
    Part,
}

/// Way in which a new value is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expression {
    /// As it is taken.
    Value(Source),
    /// Low bits of a value, extended.
    Narrowed(Source),
    /// The address of the operand.
    AddressOf(AddressOperand),
    /// The address of the thread's own storage.
    ThreadPointer,
    /// Two values put together.
    Binary(Operation, Source, Source),
    /// A multiple.
    Product { of: Source, by: u64 },
    /// The value, so many bytes further on or back, or a multiple of that.
    Stepped { of: Source, size: u8 },
    /// One of two.
    Chosen(Source, Source),
    /// A number of which nothing is known.
    Number,
    /// Anything else.
    Opaque,
}

/// A value that is written to memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    /// On top of the stack; else in the operand.
    pub(crate) is_push: bool,
    pub(crate) value: Source,
    /// The bytes there are read before: by `xchg` and `add`, not by `mov`.
    pub(crate) reads: bool,
}

/// A vector register's new lanes, from the lowest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VectorAssignment {
    pub(crate) to: u8,
    pub(crate) lanes: [Source; N_LANES as usize],
}
