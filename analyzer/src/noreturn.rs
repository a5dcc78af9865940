//! Functions that never return, by name: what stands behind a call of one is not run after it.

use crate::limit;
use object::{Object, ObjectSymbol as _, ObjectSymbolTable as _};

/// Names from the C library, the C++ runtime (Itanium C++ ABI) and the unwinder.
const NAMES: [&str; 37] = [
    "_Exit",
    "_Unwind_Resume",
    "_ZSt9terminatev",
    "__assert",
    "__assert_fail",
    "__assert_perror_fail",
    "__chk_fail",
    "__clang_call_terminate",
    "__cxa_bad_cast",
    "__cxa_bad_typeid",
    "__cxa_call_terminate",
    "__cxa_call_unexpected",
    "__cxa_deleted_virtual",
    "__cxa_pure_virtual",
    "__cxa_rethrow",
    "__cxa_throw",
    "__cxa_throw_bad_array_length",
    "__cxa_throw_bad_array_new_length",
    "__fortify_fail",
    "__libc_fatal",
    "__longjmp_chk",
    "__stack_chk_fail",
    "_exit",
    "_longjmp",
    "abort",
    "err",
    "errx",
    "exit",
    "longjmp",
    "pthread_exit",
    "quick_exit",
    "rust_begin_unwind",
    "rust_panic",
    "siglongjmp",
    "thrd_exit",
    "verr",
    "verrx",
];

/// Parts of names, mangled, of what panics in Rust's `core`, `alloc` and `std`.
const RUST_PATHS: [&str; 9] = [
    "4core9panicking",
    "4core6option13unwrap_failed",
    "4core6option13expect_failed",
    "4core6result13unwrap_failed",
    "5alloc7raw_vec17capacity_overflow",
    "5alloc7raw_vec12handle_error",
    "5alloc5alloc18handle_alloc_error",
    "3std7process5abort",
    "3std7process4exit",
];

/// Whether functions of this name never return.
pub(crate) fn is_name(name: &str) -> bool {
    if NAMES.binary_search(&name).is_ok() {
        return true;
    }
    // `std::__throw_length_error(char const*)` and its like.
    let is_throw = name.strip_prefix("_ZSt").is_some_and(|rest| {
        rest.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with("__throw_")
    });
    // Legacy mangling of a path, not of what is generic over it.
    let rust = name.strip_prefix("_ZN");
    is_throw || rust.is_some_and(|path| RUST_PATHS.iter().any(|known| path.starts_with(known)))
}

/// Where pointers to functions are kept that never return.
pub(crate) fn slots<'d>(elf: &impl Object<'d>) -> Vec<u64> {
    let (Some(table), Some(relocations)) = (elf.dynamic_symbol_table(), elf.dynamic_relocations())
    else {
        return Vec::new();
    };
    let mut slots: Vec<u64> = relocations
        .take(limit::MAX_SYMBOLS)
        .filter_map(|(slot, relocation)| {
            let object::RelocationTarget::Symbol(idx) = relocation.target() else { return None };
            let name = table.symbol_by_index(idx).ok()?.name().ok()?;
            is_name(name).then_some(slot)
        })
        .collect();
    slots.sort_unstable();
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_found() {
        assert!(NAMES.is_sorted());
        assert!(is_name("abort") && is_name("_ZSt20__throw_length_errorPKc"));
        assert!(is_name("_ZN4core9panicking5panic17h0123456789abcdefE"));
        assert!(!is_name("aborted") && !is_name("_ZSt4sqrtf") && !is_name("_ZN3std2io5Write"));
    }
}
