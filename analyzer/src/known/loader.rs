//! The dynamic loader, and what a C library links to each program for it.

/// The function that tells where a thread-local variable is (psABI, 6.2; glibc and musl).
pub(crate) const TLS_GET_ADDR: &str = "__tls_get_addr";

/// Code that is linked to programs (`crt1.o`, `crtbegin.o`, `crti.o` and `libc_nonshared.a` of glibc 2.17 to 2.41, `libgcc.a` of gcc
/// 4.8 to 15, clang's handler): it calls what is registered, or computes, and knows no types of the program's.
const LINKED_CODE: [&str; 24] = [
    "__clang_call_terminate",
    "__cpu_indicator_init",
    "__divmodti4",
    "__divti3",
    "__do_global_dtors_aux",
    "__libc_csu_fini",
    "__libc_csu_init",
    "__modti3",
    "__mulxc3",
    "__popcountdi2",
    "__powidf2",
    "__udivmodti4",
    "__udivti3",
    "__umodti3",
    "__unordtf2",
    "_dl_relocate_static_pie",
    "_fini",
    "_init",
    "_start",
    "at_quick_exit",
    "atexit",
    "deregister_tm_clones",
    "frame_dummy",
    "register_tm_clones",
];

/// Tells whether a function of this name is such code.
pub(crate) fn is_linked_code(name: &str) -> bool {
    LINKED_CODE.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_their_order() {
        assert!(LINKED_CODE.is_sorted() && LINKED_CODE.iter().all(|name| is_linked_code(name)));
        assert!(!is_linked_code("main"));
    }
}
