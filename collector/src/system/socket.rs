//! Facts about the daemon's sockets: here because all unsafe code of the project is.

use crate::sys::socket;
use rustix::fd::{AsFd, OwnedFd, RawFd};
use rustix::io::Errno;
use std::sync::atomic::{AtomicI32, Ordering};

/// The first descriptor that systemd hands on (`SD_LISTEN_FDS_START`).
const FIRST_INHERITED: RawFd = 3;

/// The other end of a Unix socket, beside what `SO_PEERCRED` tells.
#[derive(Debug)]
pub struct SocketPeer {
    /// The supplementary groups that it had when it connected.
    pub groups: Vec<u32>,
    /// A descriptor of the process that connected; `None` where the kernel gives none (before
    /// Linux 6.5, or the process is gone).
    pub pidfd: Option<OwnedFd>,
}

impl SocketPeer {
    /// Asks the kernel.
    ///
    /// # Errors
    /// What `SO_PEERGROUPS` says, as of a socket that is not connected.
    pub fn of(socket: impl AsFd) -> Result<Self, Errno> {
        let groups = socket::peer_groups(socket.as_fd())?;
        Ok(Self { groups, pidfd: socket::peer_pidfd(socket.as_fd()).ok() })
    }
}

/// Tells whether `socket` is a stream socket that connections can be taken of.
///
/// # Errors
/// What `SO_TYPE` says, as of a descriptor that is no socket.
pub fn takes_connections(socket: impl AsFd) -> Result<bool, Errno> {
    socket::takes_connections(socket.as_fd())
}

/// The next of the descriptors that this process was started with, from 3 up; each is given once.
/// Only for processes that were told so (`LISTEN_FDS`), before they open anything.
#[must_use]
pub fn next_inherited() -> Option<OwnedFd> {
    static NEXT: AtomicI32 = AtomicI32::new(FIRST_INHERITED);
    socket::take_inherited(NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_socket_takes_connections_once_it_listens() {
        let dir = tempfile::tempdir().unwrap();
        let listener = std::os::unix::net::UnixListener::bind(dir.path().join("s")).unwrap();
        assert_eq!(takes_connections(&listener), Ok(true));
        assert_eq!(takes_connections(UnixStream::pair().unwrap().0), Ok(false));
        let datagram = std::os::unix::net::UnixDatagram::unbound().unwrap();
        assert_eq!(takes_connections(datagram), Ok(false));
        assert_eq!(takes_connections(tempfile::tempfile().unwrap()), Err(Errno::NOTSOCK));
    }

    #[test]
    fn the_other_end_has_our_groups_and_is_this_process() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = SocketPeer::of(&one).unwrap();
        let own = std::fs::read_to_string("/proc/self/status").unwrap();
        let own = own.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap();
        let mut expected: Vec<u32> =
            own.split_whitespace().map(|group| group.parse().unwrap()).collect();
        let mut groups = peer.groups;
        expected.sort_unstable();
        groups.sort_unstable();
        assert_eq!(groups, expected);
        let Some(pidfd) = peer.pidfd else {
            eprintln!("not run: this kernel has no SO_PEERPIDFD");
            return;
        };
        use std::os::fd::AsRawFd as _;
        let info = format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd());
        let info = std::fs::read_to_string(info).unwrap();
        assert!(info.contains(&format!("Pid:\t{}\n", std::process::id())), "{info}");
    }
}
