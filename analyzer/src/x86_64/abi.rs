//! Registers and frames by the System V ABI: DWARF numbers, argument order, what a call keeps.

use dataspace_proto::register::Register;

/// Registers that pass integers and pointers.
pub(crate) const N_ARGUMENTS: usize = 6;

/// Their DWARF numbers: rdi, rsi, rdx, rcx, r8, r9.
pub(crate) const ARGUMENTS: [u8; N_ARGUMENTS] = [5, 4, 1, 2, 8, 9];

/// DWARF numbers of the registers that a call does not keep (psABI, figure 3.4).
pub(crate) const CALLER_SAVED: [u8; 9] = [0, 1, 2, 4, 5, 8, 9, 10, 11];

/// DWARF number of the register that holds what a call returned.
pub(crate) const RETURNED: u8 = 0;

/// DWARF number of rbp, by which compilers address a frame that they aligned.
pub(crate) const FRAME_POINTER: u16 = 6;

/// DWARF number of rsp.
pub(crate) const STACK_POINTER: u16 = 7;

/// DWARF number of the column for the return address.
pub(crate) const RETURN_ADDRESS: u16 = 16;

/// Vector registers, without those that only AVX-512 has.
pub(crate) const N_VECTORS: u8 = 16;

/// Bytes of a pointer, of a general register, and of a slot in a frame.
pub(crate) const POINTER_BYTES: u8 = 8;

/// Bytes of the return address, which a call puts just below the CFA (psABI, figure 3.3).
pub(crate) const RETURN_ADDRESS_BYTES: u8 = POINTER_BYTES;

/// Bytes below the stack pointer that a function may use (psABI, section 3.2.2).
pub(crate) const RED_ZONE_BYTES: u64 = 128;

/// General registers, whose DWARF numbers are the lowest.
pub(crate) const N_GENERAL_REGISTERS: usize = 16;

/// General registers by their DWARF numbers (psABI, figure 3.36).
const DWARF_ORDER: [Register; N_GENERAL_REGISTERS] = [
    Register::Rax,
    Register::Rdx,
    Register::Rcx,
    Register::Rbx,
    Register::Rsi,
    Register::Rdi,
    Register::Rbp,
    Register::Rsp,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

/// DWARF number of a general register.
pub(crate) fn dwarf_number(register: Register) -> u16 {
    let found = DWARF_ORDER.iter().position(|candidate| *candidate == register);
    // RIP and RFLAGS never address memory.
    found.map_or(RETURN_ADDRESS, |number| number as u16)
}

/// General register with this DWARF number.
pub(crate) fn general_register(number: u16) -> Option<Register> {
    DWARF_ORDER.get(usize::from(number)).copied()
}

/// The sampled register that iced's full register is.
#[must_use]
pub(super) fn sampled_register(register: iced_x86::Register) -> Option<Register> {
    /// The psABI's number of each register, by that of instructions (SDM volume 2, table 2-2).
    const NUMBERS: [u16; N_GENERAL_REGISTERS] =
        [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];
    let number = register.is_gpr64().then(|| register.number())?;
    general_register(NUMBERS[number])
}

/// Tells whether a call leaves a general register as it was.
pub(crate) fn is_callee_saved(register: Register) -> bool {
    !CALLER_SAVED.iter().any(|lost| u16::from(*lost) == dwarf_number(register))
}
