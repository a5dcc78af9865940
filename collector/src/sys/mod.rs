//! The system calls of a live session, each wrapped once: the only unsafe code of the project.
#![allow(
    unsafe_code,
    reason = "perf_event_open, its ioctls, its mapping, fork and the groups at the end of a socket have no safe wrapper in rustix, prefetching and giving memory back none in std"
)]

pub(crate) mod attr_bytes;
pub(crate) mod clock;
pub(crate) mod memory;
pub(crate) mod mmap;
pub(crate) mod open;
pub(crate) mod pidfd;
pub(crate) mod prefetch;
pub(crate) mod signal;
pub(crate) mod socket;
pub(crate) mod spawn;

/// The cause of a call of libc that failed just now.
fn last_errno() -> rustix::io::Errno {
    let error = std::io::Error::last_os_error();
    rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO)
}

/// The outcome of a call of libc that gives a negative number where it fails.
fn check(result: libc::c_int) -> Result<(), rustix::io::Errno> {
    if result < 0 { Err(last_errno()) } else { Ok(()) }
}
