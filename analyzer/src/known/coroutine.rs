//! Coroutines of C++20, as gcc and clang lay out their frames.

/// The class that points at one, by the last part of its name.
pub(crate) const HANDLE: &str = "coroutine_handle";

/// Bytes from the beginning of a frame to its promise: the addresses of the functions that resume and destroy it, as all
/// compilers for this ABI have them, so that a handle works for frames of another one. A promise of an alignment above
/// 16 lies further on, and is left out.
pub(crate) const PROMISE_OFFSET: i64 = 16;
