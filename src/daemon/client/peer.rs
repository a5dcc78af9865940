//! The client at the other end of a connection: what the kernel says of it, and what follows.

use crate::ownership;
use dataspace_collector::system::procfs::{Procfs, Status};
use dataspace_collector::system::socket::SocketPeer;
use dataspace_collector::target::has_ended;
use dataspace_proto::worker::Viewer;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use tokio::net::UnixStream;

/// The user that stands for all users that have no number here (`DEFAULT_OVERFLOWUID` in Linux
/// `include/linux/highuid.h`), where the sysctl cannot be read.
const OVERFLOW_UID: u32 = 65_534;

/// A client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Its user, when it connected.
    pub(crate) uid: u32,
    /// Its group.
    pub(crate) gid: u32,
    /// Its process, for the log: the number may be another's by now.
    pub(crate) pid: i32,
    pub(crate) groups: std::sync::Arc<[u32]>,
    pub(crate) rank: Rank,
    /// Its address, if it came over TCP: the kernel says nothing else of it then.
    pub(crate) address: Option<SocketAddr>,
}

/// The user that no process has (`setresuid(2)` takes it for "unchanged"): who comes over TCP.
pub(crate) const NOBODY: u32 = u32::MAX;

/// Group whose members may see all, beside root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trusted {
    /// Members of this group.
    pub(crate) group: Option<u32>,
    /// This user.
    pub(crate) uid: Option<u32>,
}

impl Trusted {
    /// Members of the group called `group`; and the user that the daemon runs as, if it can do no
    /// more than he can himself.
    pub(crate) fn of(group: &str) -> Self {
        let own_status = Procfs::default().status("self").unwrap_or_default();
        let trusted = Self { group: group_number(group), uid: own_user(&own_status) };
        if trusted.group.is_none() && trusted.uid.is_none() {
            tracing::warn!(group, "there is no such group: only root may see all");
        }
        trusted
    }
}

/// The user of a process without capabilities, whose status is given.
fn own_user(status: &Status) -> Option<u32> {
    let is_plain = status.permitted_capabilities == Some(0);
    is_plain.then(|| rustix::process::geteuid().as_raw())
}

/// Rank of a client, which decides what it may see and do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// Everything: root, and whom the daemon trusts.
    Privileged,
    /// To see everything, and change nothing: who has a token with these rights.
    Observer,
    /// Sessions of his own, on processes of his own.
    User,
    /// Nothing but how the daemon is: it is not plain who he is.
    Unknown,
}

impl Peer {
    /// Asks the kernel.
    ///
    /// # Errors
    /// Where it does not tell.
    pub(crate) fn of(stream: &UnixStream, trusted: Trusted) -> io::Result<Self> {
        let credentials = stream.peer_cred()?;
        let (uid, gid) = (credentials.uid(), credentials.gid());
        let pid = credentials.pid().unwrap_or(0);
        let SocketPeer { groups, pidfd } = SocketPeer::of(stream.as_fd())?;
        let is_member = trusted.group.is_some_and(|group| gid == group || groups.contains(&group));
        let rank = if uid == 0 || is_member || trusted.uid == Some(uid) {
            Rank::Privileged
        } else if uid != overflow_uid() && is_in_our_namespace(pid, pidfd) {
            Rank::User
        } else {
            Rank::Unknown
        };
        Ok(Self { uid, gid, pid, groups: groups.into(), rank, address: None })
    }

    /// A client that connected over TCP, and has not shown a token yet.
    pub(crate) fn over_tcp(address: SocketAddr) -> Self {
        let (uid, gid, groups) = (NOBODY, NOBODY, std::sync::Arc::default());
        Self { uid, gid, pid: 0, groups, rank: Rank::Unknown, address: Some(address) }
    }

    /// A client with the token: what it begins belongs to the daemon's own user.
    pub(crate) fn with_token(address: SocketAddr, rank: Rank) -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        Self { uid, gid, rank, ..Self::over_tcp(address) }
    }

    /// Tells whether it may see all.
    pub(crate) fn sees_all(&self) -> bool {
        matches!(self.rank, Rank::Privileged | Rank::Observer)
    }

    /// Part of a limit that it may fill: a quarter is kept for those who see all, so that users cannot keep them out.
    pub(crate) fn share(&self, limit: usize) -> usize {
        if self.sees_all() { limit } else { limit - limit.div_ceil(4) }
    }

    /// With whose permissions files are read for it.
    pub(crate) fn viewer(&self) -> Viewer {
        Viewer { uid: self.uid, gid: self.gid, groups: self.groups.to_vec() }
    }
}

/// The user that stands for all users that have no number here.
pub(crate) fn overflow_uid() -> u32 {
    let uid = Procfs::default().sysctl("kernel/overflowuid");
    uid.and_then(|uid| u32::try_from(uid).ok()).unwrap_or(OVERFLOW_UID)
}

/// Tells whether the process that connected is in our user namespace. One in another, such as a sandbox,
/// may not look at processes outside of it, though they have its user's number here. Before Linux 6.5
/// the socket gives no descriptor: then it is that of the process which has the number a moment
/// after it connected.
fn is_in_our_namespace(pid: i32, pidfd: Option<OwnedFd>) -> bool {
    let by_number = || pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok();
    let Some(pidfd) = pidfd.or_else(by_number) else { return false };
    let Ok(directory) = Procfs::default().directory(pid) else { return false };
    // Not ended after the directory was opened: it is of this very process.
    !has_ended(&pidfd) && ownership::is_in_our_namespace(&directory)
}

/// The number of the group called `name`, which may be a number itself.
pub(crate) fn group_number(name: &str) -> Option<u32> {
    if let Ok(number) = name.parse() {
        return Some(number);
    }
    group_in(&std::fs::read_to_string("/etc/group").ok()?, name)
}

/// A line of group(5): name, password, number, members.
fn group_in(text: &str, name: &str) -> Option<u32> {
    let mut lines = text.lines().map(|line| line.split(':'));
    lines
        .find_map(|mut parts| (parts.next()? == name).then(|| parts.nth(1)?.parse().ok()).flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_by_their_whole_name() {
        let text = "root:x:0:\ndataspacer:x:7:a\ndataspace:x:990:alice,bob\nbroken\n";
        assert_eq!(group_in(text, "dataspace"), Some(990));
        assert_eq!(group_in(text, "data"), None);
        assert_eq!(group_in(text, "broken"), None);
        assert_eq!(group_number("12"), Some(12));
        assert_eq!(group_number("no-such-group-here"), None);
    }

    #[test]
    fn the_daemons_own_user_is_trusted_only_where_it_has_no_capabilities() {
        let uid = rustix::process::geteuid().as_raw();
        let status =
            |permitted_capabilities| Status { permitted_capabilities, ..Status::default() };
        assert_eq!(own_user(&status(Some(0))), Some(uid));
        assert_eq!(own_user(&status(Some(1 << 38))), None);
        assert_eq!(own_user(&status(None)), None);
    }

    #[test]
    fn the_kernel_tells_who_we_are() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let (one, _other) = UnixStream::pair().unwrap();
            let uid = rustix::process::geteuid().as_raw();
            let peer = Peer::of(&one, Trusted::default()).unwrap();
            assert_eq!((peer.uid, peer.pid), (uid, std::process::id().cast_signed()));
            let gid = rustix::process::getegid().as_raw();
            for trusted in
                [Trusted { group: Some(gid), uid: None }, Trusted { group: None, uid: Some(uid) }]
            {
                assert!(Peer::of(&one, trusted).unwrap().sees_all());
            }
            assert_eq!(peer.sees_all(), uid == 0);
        });
    }
}
