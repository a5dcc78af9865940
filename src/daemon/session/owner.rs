//! The owner of a session.

use crate::daemon::client::peer::{Peer, Rank};
use dataspace_proto::api::Origin;

/// Owner of a session, and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) origin: Origin,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The owner's rank when it began: with that it samples, whatever the rank is later.
    pub(crate) rank: Rank,
}

impl Owner {
    /// The owner of a session that `peer` asks for.
    pub(crate) const fn requesting(peer: &Peer) -> Self {
        Self { origin: Origin::Request, uid: peer.uid, gid: peer.gid, rank: peer.rank }
    }

    /// The daemon itself, by its configuration.
    pub(crate) fn configuration() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        Self { origin: Origin::Configuration, uid, gid, rank: Rank::Privileged }
    }
}
