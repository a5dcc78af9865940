//! Takes connections, within limits, and serves HTTP/1.1 on each.

use super::Daemon;
use super::config_file::Limits;
use super::patience::Patient;
use super::peer::{Peer, Rank};
use super::roster::share;
use super::route;
use dataspace_proto::api::{ApiError, ErrorCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

/// What is kept of a request's head, and of an answer that a client does not take.
const BUFFER_BYTES: usize = 64 << 10;

/// Where no connection can be taken, as for want of descriptors, it is tried again so much later.
const RETRY: Duration = Duration::from_millis(100);

/// How long open connections may take for what they have begun when the daemon ends.
pub(super) const FAREWELL: Duration = Duration::from_millis(300);

/// Connections at once of all of whom it is not plain who they are: in a user namespace of his own
/// one user has 65,536 numbers.
const UNKNOWN_CONNECTIONS: usize = 4;

/// The open connections.
#[derive(Debug, Default)]
pub(super) struct Connections {
    by_user: Mutex<HashMap<User, usize>>,
}

/// Whose connections are counted together: a user's, or those of all that are unknown.
type User = Option<u32>;

/// One of them, until it is dropped.
struct Counted {
    connections: Arc<Connections>,
    user: User,
}

impl Connections {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.lock().values().sum()
    }

    /// One more, of `peer`; `None` where it or all together have as many as they may.
    fn add(self: &Arc<Self>, peer: &Peer, limits: Limits) -> Option<Counted> {
        let mut by_user = self.lock();
        let n_all: usize = by_user.values().sum();
        let (user, most) = match peer.rank {
            Rank::Privileged => (Some(peer.uid), limits.connections),
            Rank::User => (Some(peer.uid), limits.connections_per_user),
            Rank::Unknown => (None, limits.connections_per_user.min(UNKNOWN_CONNECTIONS)),
        };
        let n_own = by_user.entry(user).or_default();
        let may_more = *n_own < most;
        if n_all >= share(limits.connections, peer) || !may_more {
            if *n_own == 0 {
                by_user.remove(&user);
            }
            return None;
        }
        *n_own += 1;
        Some(Counted { connections: self.clone(), user })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<User, usize>> {
        self.by_user.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut by_user = self.connections.lock();
        if let Some(n_own) = by_user.get_mut(&self.user) {
            *n_own -= 1;
            if *n_own == 0 {
                by_user.remove(&self.user);
            }
        }
    }
}

/// Takes connections until `ending`.
pub(super) async fn serve(
    listener: UnixListener,
    daemon: Arc<Daemon>,
    mut ending: watch::Receiver<bool>,
) {
    let mut is_out = false;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = ending.wait_for(|is_ending| *is_ending) => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Once: it is tried ten times a second.
                if !std::mem::replace(&mut is_out, true) {
                    tracing::error!(%error, "connections cannot be taken: they wait");
                }
                tokio::time::sleep(RETRY).await;
                continue;
            }
        };
        if std::mem::replace(&mut is_out, false) {
            tracing::warn!("connections are taken again");
        }
        // Now: a process that has ended could not be told from another of its number later.
        let peer = match Peer::of(&stream, daemon.trusted()) {
            Ok(peer) => peer,
            Err(error) => {
                tracing::warn!(%error, "refused: the kernel does not tell who connected");
                continue;
            }
        };
        match daemon.connections.add(&peer, daemon.limits()) {
            Some(counted) => {
                let (daemon, ending) = (daemon.clone(), ending.clone());
                tokio::spawn(converse(stream, peer, daemon, ending, counted));
            }
            None => turn_away(stream, &peer).await,
        }
    }
}

/// One connection, from its first request to its end.
async fn converse(
    stream: UnixStream,
    peer: Peer,
    daemon: Arc<Daemon>,
    mut ending: watch::Receiver<bool>,
    _counted: Counted,
) {
    let limits = daemon.limits();
    let io = TokioIo::new(Patient::new(stream, limits.stall_time()));
    let service = service_fn(|request| async {
        Ok::<_, Infallible>(route::answer(&daemon, &peer, request).await)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.request_time())
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(io, service);
    tokio::pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => Some(served),
        _ = ending.wait_for(|is_ending| *is_ending) => None,
    };
    let served = match served {
        Some(served) => served,
        None => {
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(FAREWELL, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = served {
        tracing::debug!(uid = peer.uid, pid = peer.pid, %error, "a connection broke off");
    }
}

/// Says that there are too many, without reading what is asked.
async fn turn_away(mut stream: UnixStream, peer: &Peer) {
    let message = "there are as many connections as the limits allow";
    let error = ApiError { code: ErrorCode::TooMany, ..peer.refuse("connect", message) };
    let body = serde_json::to_string(&error).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {} Too Many Requests\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        error.code.http_status(),
        body.len()
    );
    // A fresh socket has room for it.
    let _ = tokio::time::timeout(RETRY, stream.write_all((head + &body).as_bytes())).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_unknown_shares_few_connections_with_all_others() {
        let connections = Arc::<Connections>::default();
        let peer = |uid, rank| Peer { uid, gid: uid, pid: 1, groups: Arc::default(), rank };
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
}
