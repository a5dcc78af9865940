//! Takes connections, within limits, and serves HTTP/1.1 on each.

use super::Daemon;
use super::answer::{last_words, refusal};
use super::config_file::Limits;
use super::network;
use super::patience::Patient;
use super::peer::{Peer, Rank};
use super::roster::share;
use super::route;
use super::voiced::Voiced;
use dataspace_proto::api::{ApiError, ErrorCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener};
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

/// Whose connections are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum User {
    Known(u32),
    /// All of whom it is not plain who they are.
    Unknown,
    /// All that come over TCP: who they are is told with each request only.
    Network,
}

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
            _ if peer.address.is_some() => (User::Network, limits.connections_per_user),
            Rank::Privileged | Rank::Observer => (User::Known(peer.uid), limits.connections),
            Rank::User => (User::Known(peer.uid), limits.connections_per_user),
            Rank::Unknown => (User::Unknown, limits.connections_per_user.min(UNKNOWN_CONNECTIONS)),
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
        begin(stream, peer, &daemon, &ending).await;
    }
}

/// Takes connections over TCP until `ending`.
pub(super) async fn serve_network(
    listener: TcpListener,
    daemon: Arc<Daemon>,
    mut ending: watch::Receiver<bool>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = ending.wait_for(|is_ending| *is_ending) => return,
        };
        match accepted {
            Ok((stream, address)) => {
                // Events are small and far between: each is to go out at once.
                let _ = stream.set_nodelay(true);
                begin(stream, Peer::over_tcp(address), &daemon, &ending).await;
            }
            Err(error) => {
                tracing::warn!(%error, "a connection over TCP cannot be taken");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Begins to serve a connection, if there is room for it.
async fn begin<S>(stream: S, peer: Peer, daemon: &Arc<Daemon>, ending: &watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match daemon.connections.add(&peer, daemon.limits()) {
        Some(counted) => {
            let (daemon, ending) = (daemon.clone(), ending.clone());
            tokio::spawn(converse(stream, peer, daemon, ending, counted));
        }
        None => turn_away(stream, &peer).await,
    }
}

/// One connection, from its first request to its end.
async fn converse<S>(
    stream: S,
    peer: Peer,
    daemon: Arc<Daemon>,
    mut ending: watch::Receiver<bool>,
    _counted: Counted,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = daemon.limits();
    let io = TokioIo::new(Voiced::new(Patient::new(stream, limits.stall_time())));
    let service = service_fn(|request| async {
        let answer = match network::admit(&daemon.settings(), &peer, &request) {
            Ok(peer) => route::answer(&daemon, &peer, request).await,
            Err(error) => refusal(&error),
        };
        Ok::<_, Infallible>(answer)
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
async fn turn_away(mut stream: impl AsyncWrite + Unpin, peer: &Peer) {
    let message = "there are as many connections as the limits allow";
    let error = ApiError { code: ErrorCode::TooMany, ..peer.refuse("connect", message) };
    // A fresh socket has room for it.
    let _ = tokio::time::timeout(RETRY, stream.write_all(&last_words(&error))).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_unknown_shares_few_connections_with_all_others() {
        let connections = Arc::<Connections>::default();
        let peer =
            |uid, rank| Peer { uid, gid: uid, pid: 1, groups: Arc::default(), rank, address: None };
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
        let from_afar = Peer::over_tcp(([127, 0, 0, 1], 7).into());
        let afar: Vec<_> = std::iter::from_fn(|| connections.add(&from_afar, limits)).collect();
        assert_eq!(afar.len(), limits.connections_per_user, "all over TCP together");
    }
}
