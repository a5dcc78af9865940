//! Functions of C libraries that put no pointers of their own into what they are given.

/// Names (C17 7.22.3, 7.24; POSIX.1-2017; Itanium C++ ABI for `operator delete`): they free, resize, order, fill, compare,
/// print, hand on or end.
const NAMES: [&str; 28] = [
    "_ZdaPv",
    "_ZdlPv",
    "_ZdlPvm",
    "__fprintf_chk",
    "__memset_chk",
    "__printf_chk",
    "__snprintf_chk",
    "__sprintf_chk",
    "abort",
    "bsearch",
    "cfree",
    "exit",
    "fprintf",
    "free",
    "memchr",
    "memcmp",
    "memset",
    "printf",
    "pthread_create",
    "puts",
    "qsort",
    "qsort_r",
    "realloc",
    "reallocarray",
    "snprintf",
    "sprintf",
    "strcmp",
    "strlen",
];

/// Tells whether a function is one of them.
pub(crate) fn is_known(name: &str) -> bool {
    NAMES.binary_search(&name).is_ok()
}

/// Tells whether a function copies what its second argument leads to, to where the first one does.
pub(crate) fn copies(name: &str) -> bool {
    matches!(
        name,
        "memcpy" | "memmove" | "mempcpy" | "__memcpy_chk" | "__memmove_chk" | "__mempcpy_chk"
    )
}

/// Tells whether a function returns memory that nobody else knows.
pub(crate) fn allocates(name: &str) -> bool {
    matches!(name, "malloc" | "calloc" | "_Znwm" | "_Znam")
}

/// Tells whether a function returns memory that has what was in its first argument.
pub(crate) fn resizes(name: &str) -> bool {
    matches!(name, "realloc" | "reallocarray")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_their_order() {
        assert!(NAMES.is_sorted() && NAMES.iter().all(|name| is_known(name)));
        assert!(!is_known("recvmsg") && copies("memcpy"));
    }
}
