//! Takes connections, within limits, and serves HTTP/1.1 on each.

use super::answer::{AnswerBody, last_words, refusal};
use super::voiced::Voiced;
use super::{endpoint, page};
use crate::daemon::client::connection::Counted;
use crate::daemon::client::network;
use crate::daemon::client::peer::Peer;
use crate::daemon::state::Daemon;
use dataspace_proto::api::{ApiError, ErrorCode};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio_io_timeout::TimeoutStream;

/// Bytes that are kept of a request's head, and of an answer that a client does not take.
const BUFFER_BYTES: usize = 64 << 10;

/// Time after which taking a connection is tried again where it could not be, as for want of descriptors.
const RETRY: Duration = Duration::from_millis(100);

/// Time that open connections may take for what they have begun when the daemon ends.
pub(crate) const FAREWELL: Duration = Duration::from_millis(300);

/// Takes connections until `ending`.
pub(crate) async fn serve(
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
pub(crate) async fn serve_network(
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
    counted: Counted,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = daemon.limits();
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limits.stall_time()));
    let io = TokioIo::new(Voiced::new(Box::pin(stream)));
    let service = service_fn(|request| async {
        let answer = answer(&daemon, &peer, &counted, request).await;
        let is_afar = peer.address.is_some();
        Ok::<_, Infallible>(if is_afar { page::confined(answer) } else { answer })
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.request_time())
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(io, service);
    tokio::pin!(connection);
    let served = tokio::select! {
        // What has arrived is looked at before its sender has to go.
        biased;
        served = connection.as_mut() => Some(served),
        _ = ending.wait_for(|is_ending| *is_ending) => None,
        reason = counted.expelled(&peer, limits.request_time()) => {
            tracing::debug!(uid = peer.uid, pid = peer.pid, reason, "a connection is closed");
            return;
        }
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

/// The answer to a request, if its sender is let in. The page itself is for everybody who may connect.
async fn answer(
    daemon: &Daemon,
    peer: &Peer,
    counted: &Counted,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    let tcp = daemon.settings().tcp;
    if let Err(error) = network::check_site(tcp.as_deref(), peer, &request) {
        return last(refusal(&error));
    }
    if let Some(file) = page::asked(&request).filter(|_| peer.address.is_some()) {
        return page::answer(file, &request);
    }
    match network::admit(tcp.as_deref(), peer, &request) {
        Ok(_) if !counted.recognize(peer, daemon.limits()) => last(refusal(&too_many(peer))),
        Ok(peer) => match &daemon.elsewhere {
            Some(elsewhere) => page::relayed(elsewhere, request).await,
            None => endpoint::answer(daemon, &peer, request).await,
        },
        Err(error) => last(refusal(&error)),
    }
}

/// `answer`, after which the connection is closed: who was not let in has to come anew.
fn last(mut answer: Response<AnswerBody>) -> Response<AnswerBody> {
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

fn too_many(peer: &Peer) -> ApiError {
    let message = "there are as many connections as the limits allow";
    ApiError { code: ErrorCode::TooMany, ..peer.refuse("connect", message) }
}

/// Says that there are too many, without reading what is asked.
async fn turn_away(mut stream: impl AsyncWrite + Unpin, peer: &Peer) {
    // A fresh socket has room for it.
    let _ = tokio::time::timeout(RETRY, stream.write_all(&last_words(&too_many(peer)))).await;
}
