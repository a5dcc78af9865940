//! Records in, attributions and rolling totals out.
pub mod descriptor;
pub mod dwarf;
pub mod elf;
pub mod file;
pub mod layout;
pub mod limit;
pub mod x86_64;
