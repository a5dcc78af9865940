//! Known names and layouts of compilers, runtimes and libraries, as tables.

pub(crate) mod borrower;
pub(crate) mod callback;
pub(crate) mod compiler;
pub(crate) mod coroutine;
pub(crate) mod go;
pub(crate) mod hashbrown;
pub(crate) mod header;
pub(crate) mod language;
pub(crate) mod libcxx;
pub(crate) mod libstdcxx;
pub(crate) mod loader;
pub(crate) mod malloc;
pub(crate) mod mangling;
pub(crate) mod noreturn;
pub(crate) mod rust_std;
pub(crate) mod source_dir;
pub(crate) mod storage;
pub(crate) mod written;
