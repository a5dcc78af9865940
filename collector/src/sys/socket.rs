//! Facts that a Unix socket tells of the process at its other end, and sockets that another process
//! opened for us.

use super::check;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::io::Errno;
use std::mem::size_of;

/// Supplementary groups that a process has at most (`NGROUPS_MAX`, Linux `include/uapi/linux/limits.h`).
const MAX_GROUPS: usize = 65_536;

/// Supplementary groups that most users do not exceed.
const USUAL_GROUPS: usize = 64;

/// The supplementary groups that the other end of `socket` had when it connected.
pub(crate) fn peer_groups(socket: BorrowedFd<'_>) -> Result<Vec<u32>, Errno> {
    let mut groups = vec![0_u32; USUAL_GROUPS];
    loop {
        let mut n_bytes = (groups.len() * size_of::<u32>()) as libc::socklen_t;
        // SAFETY: the kernel writes at most `n_bytes` bytes to `groups`, which is that long, and the
        // number of bytes it has to `n_bytes`; both live through the call. A gid_t is a u32.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut n_bytes,
            )
        };
        let n_groups = n_bytes as usize / size_of::<u32>();
        match check(result) {
            Ok(()) => {
                groups.truncate(n_groups);
                return Ok(groups);
            }
            // It tells how much room it needs.
            Err(Errno::RANGE) if (groups.len() + 1..=MAX_GROUPS).contains(&n_groups) => {
                groups.resize(n_groups, 0);
            }
            Err(errno) => return Err(errno),
        }
    }
}

/// A process descriptor of the other end of `socket`, as it was when it connected (Linux 6.5).
pub(crate) fn peer_pidfd(socket: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let fd = int_option(socket, libc::SO_PEERPIDFD)?;
    // SAFETY: the call gave a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Tells whether `socket` is a stream socket that connections can be taken of.
pub(crate) fn takes_connections(socket: BorrowedFd<'_>) -> Result<bool, Errno> {
    let is_stream = int_option(socket, libc::SO_TYPE)? == libc::SOCK_STREAM;
    Ok(is_stream && int_option(socket, libc::SO_ACCEPTCONN)? != 0)
}

/// An option of the socket level whose value is an int.
fn int_option(socket: BorrowedFd<'_>, option: libc::c_int) -> Result<libc::c_int, Errno> {
    let mut value: libc::c_int = -1;
    let mut n_bytes = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `n_bytes` bytes, an int, to `value`; both live through the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw mut value).cast(),
            &raw mut n_bytes,
        )
    };
    check(result).map(|()| value)
}

/// Takes over a descriptor that this process was started with; `None` if it is not open.
///
/// The caller has it from whoever started the process, and takes each one once.
pub(crate) fn take_inherited(fd: RawFd) -> Option<OwnedFd> {
    // SAFETY: F_GETFD takes no pointer; it fails on a number that is not open.
    if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
        return None;
    }
    // SAFETY: the descriptor is open, was there before any code of this process opened one, and
    // the caller, who is told its number by the parent process, makes no second owner.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // A program that we start must not get it.
    rustix::io::fcntl_setfd(fd.as_fd(), rustix::io::FdFlags::CLOEXEC).ok()?;
    Some(fd)
}
