//! Memory that was freed and is still held by the allocator.

/// Gives it back to the kernel.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: malloc_trim(3) takes no pointers, locks what it walks, and frees nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}
