//! Names that C and C++ themselves give types.

/// The byte of C++17: an enumeration in libstdc++ 12 and libc++ 14.
pub(crate) const STD_BYTE: &str = "std::byte";

/// Nothing: debug information has no entry for it, and pointers to it are called by this word.
pub(crate) const VOID: &str = "void";

/// A slot in a table of virtual functions, as gcc and clang describe it: a pointer to a function that returns `int`.
pub(crate) const VIRTUAL_SLOT: &str = "__vtbl_ptr_type";
