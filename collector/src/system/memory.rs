//! The allocator's own memory: here because all unsafe code of the project is.

/// Has the allocator keep little of what is freed, from now on, and in few heaps: `malloc_trim` gives nothing
/// back of the top of a thread's own heap, and that may be some 10 MB for each thread. To be called before
/// there are threads: heaps that are there stay.
pub fn keep_little() {
    crate::sys::memory::keep_little();
}

/// Gives memory that was freed back to the kernel. The allocator keeps it otherwise, in each thread's own
/// heap, and a process's resident memory would not fall with what it uses. Takes some milliseconds.
pub fn give_back() {
    crate::sys::memory::give_back();
}
