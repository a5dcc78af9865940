//! Known names and layouts of compilers, runtimes and libraries, as tables.

pub(crate) mod header;
pub(crate) mod libstdcxx;
pub(crate) mod noreturn;
