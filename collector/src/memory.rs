//! The allocator's own memory: here because all unsafe code of the project is.

/// Gives memory that was freed back to the kernel. The allocator keeps it otherwise, in each thread's own
/// heap, and a process's resident memory would not fall with what it uses. Takes some milliseconds.
pub fn give_back() {
    crate::sys::memory::give_back();
}
