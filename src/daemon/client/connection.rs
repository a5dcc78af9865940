//! The open connections: how many of whom there may be, and which of them have to go.

use super::peer::{Peer, Rank};
use crate::daemon::limit::Limits;
use crate::lock::lock;
use dataspace_collector::quota::counts::Counts;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// Connections at once of all of whom it is not plain who they are: in a user namespace of his own
/// one user has 65,536 numbers.
const UNKNOWN_CONNECTIONS: usize = 4;

/// Connections over TCP at once that have not shown the token. For one more the oldest goes.
const STRANGERS: usize = 8;

/// The open connections.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    state: Mutex<ConnectionState>,
    revoked: watch::Sender<Revoked>,
}

#[derive(Debug, Default)]
struct ConnectionState {
    by_user: Counts<ConnectedUser>,
    /// Those over TCP that have not shown the token, the oldest first. They take no room from others.
    strangers: VecDeque<Arc<Notify>>,
}

/// Number of changes of those who are let in.
#[derive(Clone, Copy, Debug, Default)]
struct Revoked {
    tcp: u64,
    group: u64,
}

/// Client whose connections are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ConnectedUser {
    Known(u32),
    /// All of whom it is not plain who they are.
    Unknown,
    /// All over TCP that have shown the token.
    Network,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    connections: Arc<Connections>,
    /// `None` for a stranger.
    user: Mutex<Option<ConnectedUser>>,
    /// Tells a stranger to go.
    leave: Arc<Notify>,
    revoked: watch::Receiver<Revoked>,
    /// As it was when it came.
    since: Revoked,
}

impl Connections {
    /// Number of open connections.
    pub(crate) fn count(&self) -> usize {
        let state = lock(&self.state);
        state.by_user.total() + state.strangers.len()
    }

    /// One more, of `peer`; `None` where it or all together have as many as they may.
    pub(crate) fn add(self: &Arc<Self>, peer: &Peer, limits: Limits) -> Option<Counted> {
        let mut state = lock(&self.state);
        let leave = Arc::<Notify>::default();
        let user = if peer.address.is_some() {
            if state.strangers.len() >= STRANGERS
                && let Some(oldest) = state.strangers.pop_front()
            {
                oldest.notify_one();
            }
            state.strangers.push_back(leave.clone());
            None
        } else {
            let per_user = limits.connections_per_user;
            let (user, most) = match peer.rank {
                Rank::Privileged | Rank::Observer => {
                    (ConnectedUser::Known(peer.uid), limits.connections)
                }
                Rank::User => (ConnectedUser::Known(peer.uid), per_user),
                Rank::Unknown => (ConnectedUser::Unknown, per_user.min(UNKNOWN_CONNECTIONS)),
            };
            if !state.by_user.add_within(user, most, peer.share(limits.connections)) {
                return None;
            }
            Some(user)
        };
        let (connections, revoked) = (self.clone(), self.revoked.subscribe());
        let since = *revoked.borrow();
        Some(Counted { connections, user: Mutex::new(user), leave, revoked, since })
    }

    /// Ends what is open over TCP: the token or what it opens is another.
    pub(crate) fn revoke_tcp(&self) {
        self.revoked.send_modify(|revoked| revoked.tcp += 1);
    }

    /// Ends what is open of others than root: another group may see all.
    pub(crate) fn revoke_group(&self) {
        self.revoked.send_modify(|revoked| revoked.group += 1);
    }
}

impl Counted {
    /// The connection of `peer` has shown the token: it is a stranger's no more. Whether there is room
    /// for it.
    pub(crate) fn recognize(&self, peer: &Peer, limits: Limits) -> bool {
        let mut user = lock(&self.user);
        if user.is_some() {
            return true;
        }
        let mut state = lock(&self.connections.state);
        let most_of_all = peer.share(limits.connections);
        if !state.by_user.add_within(
            ConnectedUser::Network,
            limits.connections_per_user,
            most_of_all,
        ) {
            return false;
        }
        state.strangers.retain(|stranger| !Arc::ptr_eq(stranger, &self.leave));
        *user = Some(ConnectedUser::Network);
        true
    }

    /// Waits until it has to go: a stranger when `patience` is over or others come, and whoever came
    /// in by what does not let him in any more.
    pub(crate) async fn expelled(&self, peer: &Peer, patience: Duration) -> &'static str {
        tokio::select! {
            () = self.outstayed(patience) => "no token was shown",
            () = self.revoked(peer) => "who is let in was changed",
        }
    }

    async fn outstayed(&self, patience: Duration) {
        if self.is_stranger() {
            let _ = tokio::time::timeout(patience, self.leave.notified()).await;
        }
        if !self.is_stranger() {
            std::future::pending::<()>().await;
        }
    }

    async fn revoked(&self, peer: &Peer) {
        let mut revoked = self.revoked.clone();
        let is_over = |now: &Revoked| match peer.address {
            Some(_) => now.tcp != self.since.tcp,
            None => now.group != self.since.group && peer.uid != 0,
        };
        if revoked.wait_for(is_over).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    fn is_stranger(&self) -> bool {
        lock(&self.user).is_none()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let user = *self.user.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut state = lock(&self.connections.state);
        let Some(user) = user else {
            state.strangers.retain(|stranger| !Arc::ptr_eq(stranger, &self.leave));
            return;
        };
        state.by_user.remove(&user);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future as _;
    use std::task::{Context, Waker};

    fn peer(uid: u32, rank: Rank) -> Peer {
        Peer { uid, gid: uid, pid: 1, groups: Arc::default(), rank, address: None }
    }

    #[test]
    fn who_is_unknown_shares_few_connections_with_all_others() {
        let connections = Arc::<Connections>::default();
        let limits = Limits::default();
        let unknown = (1..100).filter_map(|uid| connections.add(&peer(uid, Rank::Unknown), limits));
        let unknown: Vec<Counted> = unknown.collect();
        assert_eq!(unknown.len(), UNKNOWN_CONNECTIONS);
        let user = peer(1, Rank::User);
        let own: Vec<Counted> = std::iter::from_fn(|| connections.add(&user, limits)).collect();
        assert_eq!(own.len(), limits.connections_per_user);
        drop(unknown);
        assert_eq!(connections.count(), own.len());
        assert!(connections.add(&peer(1, Rank::Unknown), limits).is_some());
        drop(own);
        assert_eq!(connections.count(), 0);
    }

    #[test]
    fn who_has_not_shown_the_token_takes_no_room_from_who_has() {
        let connections = Arc::<Connections>::default();
        let limits = Limits::default();
        let afar = Peer::over_tcp(([127, 0, 0, 1], 7).into());
        let come =
            |n| -> Vec<_> { (0..n).filter_map(|_| connections.add(&afar, limits)).collect() };
        let strangers = come(100);
        assert_eq!((strangers.len(), connections.count()), (100, STRANGERS), "the oldest leave");
        let known = come(100);
        let known: Vec<_> = known.iter().filter(|one| one.recognize(&afar, limits)).collect();
        assert_eq!(known.len(), limits.connections_per_user);
        assert!(known.iter().all(|one| one.recognize(&afar, limits)), "counted once");
        assert!(!strangers[99].recognize(&afar, limits));
        drop(strangers);
        assert!(connections.add(&peer(1, Rank::User), limits).is_some());
    }

    #[test]
    fn strangers_and_who_is_not_let_in_any_more_have_to_go() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        let connections = Arc::<Connections>::default();
        let limits = Limits::default();
        let come = |peer: &Peer| connections.add(peer, limits).unwrap();
        let has_to_go = |one: &Counted, peer: &Peer| {
            let mut expelled = std::pin::pin!(one.expelled(peer, Duration::from_secs(3600)));
            let mut context = Context::from_waker(Waker::noop());
            expelled.as_mut().poll(&mut context).is_ready()
        };
        let afar = Peer::over_tcp(([127, 0, 0, 1], 7).into());
        let (stranger, known) = (come(&afar), come(&afar));
        assert!(known.recognize(&afar, limits) && !has_to_go(&stranger, &afar));
        let _others: Vec<_> = (0..STRANGERS).map(|_| come(&afar)).collect();
        assert!(has_to_go(&stranger, &afar) && !has_to_go(&known, &afar));
        let (user, root) = (peer(7, Rank::Privileged), peer(0, Rank::Privileged));
        let (of_user, of_root) = (come(&user), come(&root));
        connections.revoke_tcp();
        assert!(has_to_go(&known, &afar) && !has_to_go(&of_user, &user));
        connections.revoke_group();
        assert!(has_to_go(&of_user, &user) && !has_to_go(&of_root, &root));
        let later = come(&afar);
        assert!(later.recognize(&afar, limits) && !has_to_go(&later, &afar));
    }
}
