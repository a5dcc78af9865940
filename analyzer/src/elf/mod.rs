//! ELF files: sections, symbols, relocations, linkage.

pub mod data_symbol;
pub mod image;
pub(crate) mod linkage;
pub(crate) mod packing;
pub(crate) mod relocation;
pub(crate) mod symbol_name;
pub mod thread_block;
pub(crate) mod thunk;
