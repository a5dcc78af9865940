//! Registers and frames by the System V ABI: DWARF numbers, argument order, what a call keeps.

/// Registers that pass integers and pointers.
pub(crate) const N_ARGUMENTS: usize = 6;

/// Their DWARF numbers: rdi, rsi, rdx, rcx, r8, r9.
pub(crate) const ARGUMENTS: [u8; N_ARGUMENTS] = [5, 4, 1, 2, 8, 9];

/// DWARF numbers of the registers that a call does not keep (psABI, figure 3.4).
pub(crate) const CALLER_SAVED: [u8; 9] = [0, 1, 2, 4, 5, 8, 9, 10, 11];

/// DWARF number of the register that holds what a call returned.
pub(crate) const RETURNED: u8 = 0;
