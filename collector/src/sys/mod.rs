//! The system calls of a live session, each wrapped once: the only unsafe code of the project.
#![allow(
    unsafe_code,
    reason = "perf_event_open, its ioctls, its mapping, fork and the groups at the end of a socket have no safe wrapper in rustix, prefetching and giving memory back none in std"
)]

pub(crate) mod attr_bytes;
pub(crate) mod memory;
pub(crate) mod mmap;
pub(crate) mod open;
pub(crate) mod pidfd;
pub(crate) mod prefetch;
pub(crate) mod socket;
pub(crate) mod spawn;
