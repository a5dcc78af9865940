//! Known names and layouts of compilers, runtimes and libraries, as tables.

pub(crate) mod noreturn;
