//! Memory that was freed and is still held by the allocator.

/// Freed memory that the top of an allocator's heap keeps. The allocator raises it to twice the
/// largest block that was freed, up to 64 MiB, unless it is told.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_BYTES: libc::c_int = 1 << 20;

/// Number of heaps that the allocator makes for threads. It would make eight for each CPU, and what one thread frees
/// in one of them is not used by those of the others: threads come and go with sessions, and each heap stays
/// as large as it ever was.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const N_HEAPS: libc::c_int = 4;

/// Has the allocator keep little.
pub(crate) fn keep_little() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: mallopt(3) takes no pointers, and locks what it changes.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES);
        libc::mallopt(libc::M_ARENA_MAX, N_HEAPS);
    }
}

/// Gives it back to the kernel.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: malloc_trim(3) takes no pointers, locks what it walks, and frees nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}
