//! Functions that never return, by name.

/// Names from the C library (glibc 2.36), the C++ runtime (Itanium C++ ABI; gcc 12, clang 14), the unwinder,
/// and Rust before it mangled its own.
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

/// Paths, mangled, of what panics or ends the process in Rust's `core`, `alloc` and `std` (1.95).
const RUST_PATHS: [&str; 7] = [
    "4core9panicking",
    "4core4cell22panic_already_borrowed",
    "4core4cell30panic_already_mutably_borrowed",
    "5alloc7raw_vec17capacity_overflow",
    "5alloc7raw_vec12handle_error",
    "3std7process5abort",
    "3std7process4exit",
];

/// Crates in which what ends like these never returns.
const RUST_CRATES: [&str; 3] = ["4core", "5alloc", "3std"];

const RUST_ENDINGS: [&str; 4] = ["_fail", "_fail_rt", "_failed", "handle_alloc_error"];

/// Tells whether functions of this name never return.
pub(crate) fn is_name(name: &str) -> bool {
    if NAMES.binary_search(&name).is_ok() {
        return true;
    }
    // `std::__throw_length_error(char const*)` and its like.
    let is_throw = name.strip_prefix("_ZSt").is_some_and(|rest| {
        rest.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with("__throw_")
    });
    is_throw || rust_path(name).is_some_and(is_rust_path)
}

/// The path in a mangled name that is not generic: legacy without its hash, or version 0 from the
/// crate on.
fn rust_path(name: &str) -> Option<&str> {
    if let Some(legacy) = name.strip_prefix("_ZN") {
        return Some(legacy.rsplit_once("17h").map_or(legacy, |(path, _)| path));
    }
    let rest = name.strip_prefix("_RNv")?.trim_start_matches("Nt").strip_prefix('C')?;
    // A crate's disambiguator.
    let rest = match rest.strip_prefix('s') {
        Some(numbered) => numbered.split_once('_')?.1,
        None => rest,
    };
    Some(rest)
}

fn is_rust_path(path: &str) -> bool {
    let is_ending = || {
        let own = RUST_CRATES.iter().any(|known| path.starts_with(known));
        own && RUST_ENDINGS.iter().any(|ending| path.ends_with(ending))
    };
    RUST_PATHS.iter().any(|known| path.starts_with(known)) || is_ending()
}

/// Names of libraries that programs give to functions of their own as well, which may return.
const COMMON_NAMES: [&str; 4] = ["err", "errx", "verr", "verrx"];

/// Tells by its name whether a function that the file itself has never returns.
pub(crate) fn is_own_name(name: &str) -> bool {
    is_name(name) && !COMMON_NAMES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{has_tool, run};
    use std::process::Command;

    /// Lists the functions that the headers of C and of the C++ runtime declare never to return.
    fn declared() -> Vec<String> {
        let mut compiler = Command::new("g++");
        compiler.args(["-E", "-P", "-x", "c++", "/dev/null"]);
        for header in [
            "assert.h",
            "cxxabi.h",
            "err.h",
            "pthread.h",
            "setjmp.h",
            "stdlib.h",
            "threads.h",
            "unistd.h",
        ] {
            compiler.args(["-include", header]);
        }
        let text = String::from_utf8(run(&mut compiler)).unwrap().replace('\n', " ");
        let declarations = text.split([';', '{', '}']).filter(|it| it.contains("__noreturn__"));
        let before = declarations.filter_map(|it| it.split_once('(').map(|(before, _)| before));
        let names = before.filter_map(|before| {
            let name = before.split_whitespace().next_back()?;
            // Others are in a name space.
            let is_c = before.trim_start().starts_with("extern") || name.starts_with("__cxa_");
            is_c.then(|| name.to_owned())
        });
        names.collect()
    }

    #[test]
    fn what_headers_declare_to_return_never_is_known() {
        if !has_tool("g++") {
            return;
        }
        let declared = declared();
        assert!(declared.len() >= 20, "{declared:?}");
        for name in declared {
            assert!(is_name(&name), "{name}");
        }
    }

    #[test]
    fn what_only_compilers_and_libraries_call_is_known() {
        for name in [
            "_Unwind_Resume",
            "_ZSt9terminatev",
            "__chk_fail",
            "__clang_call_terminate",
            "__cxa_call_terminate",
            "__cxa_call_unexpected",
            "__cxa_throw_bad_array_length",
            "__fortify_fail",
            "__libc_fatal",
            "__longjmp_chk",
            "__stack_chk_fail",
            "rust_begin_unwind",
            "rust_panic",
        ] {
            assert!(is_name(name) && is_own_name(name), "{name}");
        }
        for name in COMMON_NAMES {
            assert!(is_name(name) && !is_own_name(name), "{name}");
        }
    }

    /// Symbols from a program of Rust 1.95, but for those with a hash: the older mangling.
    #[test]
    fn what_ends_a_program_in_rust_is_known() {
        for name in [
            "_RNvNtCsgEmfK2I1SDS_4core9panicking9panic_fmt",
            "_RNvNtCsgEmfK2I1SDS_4core4cell22panic_already_borrowed",
            "_RNvNtCsgEmfK2I1SDS_4core4cell30panic_already_mutably_borrowed",
            "_RNvNtCslNYArtu3iFV_5alloc7raw_vec17capacity_overflow",
            "_RNvNtCslNYArtu3iFV_5alloc7raw_vec12handle_error",
            "_RNvNtCslNYArtu3iFV_5alloc5alloc18handle_alloc_error",
            "_RNvNtCsjrHSEGnQ3l9_3std7process5abort",
            "_RNvNtCsjrHSEGnQ3l9_3std7process4exit",
            "_RNvNtCsgEmfK2I1SDS_4core3str16slice_error_fail",
            "_RNvNtNtCsgEmfK2I1SDS_4core5slice5index16slice_index_fail",
            "_RNvNtCsgEmfK2I1SDS_4core6option13unwrap_failed",
            "_RNvNtCsjrHSEGnQ3l9_3std6thread12spawn_failed",
            "_ZN4core9panicking5panic17h0123456789abcdefE",
            "_ZN4core6result13unwrap_failed17h0123456789abcdefE",
            "_ZN4core3str19slice_error_fail_rt17h0123456789abcdefE",
        ] {
            assert!(is_name(name), "{name}");
        }
        assert!(!is_name("_RNvNtCs8rhTZKbY3lC_4mine5slice13unwrap_failed"));
    }

    #[test]
    fn names_are_in_order_and_whole() {
        assert!(NAMES.is_sorted());
        assert!(is_name("_ZSt20__throw_length_errorPKc"));
        assert!(!is_name("aborted") && !is_name("_ZSt4sqrtf") && !is_name("_ZN3std2io5Write"));
    }
}
