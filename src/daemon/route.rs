//! From a request to its answer: the paths of the API, and what each does.

use super::Daemon;
use super::metrics;
use super::peer::{Peer, Rank};
use super::session::Session;
use super::stream::{DEFAULT_INTERVAL_MS, EventStream, INTERVALS};
use crate::memory_bound;
use bytes::Bytes;
use dataspace_proto::api::{
    AccountingAnswer, ApiError, ErrorCode, Health, MemoryLine, SessionList, SessionSpec,
    SessionState, VERSION,
};
use http_body_util::{BodyExt as _, Either, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// The body of an answer.
pub(super) type Answer = Either<Full<Bytes>, EventStream>;

/// A snapshot that is younger is fresh enough for whoever asks for one.
const FRESH: Duration = Duration::from_millis(100);

/// How long a fresh snapshot is waited for, before the one before is given.
const PATIENCE: Duration = Duration::from_secs(1);

/// Sessions that are silent for longer make the daemon unwell: an analyzer answers in microseconds.
pub(super) const MAX_SILENCE: Duration = Duration::from_secs(20);

/// The answer to `request`.
pub(super) async fn answer(
    daemon: &Daemon,
    peer: &Peer,
    request: Request<Incoming>,
) -> Response<Answer> {
    let path = request.uri().path().to_owned();
    let answered = route(daemon, peer, &path, request).await;
    answered.unwrap_or_else(|error| {
        tracing::debug!(uid = peer.uid, path, code = ?error.code, error.message, "not done");
        refusal(&error)
    })
}

/// An error as an answer.
pub(super) fn refusal(error: &ApiError) -> Response<Answer> {
    let status = StatusCode::from_u16(error.code.http_status());
    json(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), error)
}

async fn route(
    daemon: &Daemon,
    peer: &Peer,
    path: &str,
    request: Request<Incoming>,
) -> Result<Response<Answer>, ApiError> {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let method = request.method().clone();
    // What answers HEAD has no body: hyper leaves it away.
    let is_get = method == Method::GET || method == Method::HEAD;
    let ok = StatusCode::OK;
    match *parts.as_slice() {
        ["metrics"] if is_get => {
            let text = metrics::text(daemon, peer).into();
            Ok(full(ok, metrics::CONTENT_TYPE, text))
        }
        ["metrics"] => Ok(wrong_method("GET, HEAD")),
        [VERSION, "health"] if is_get => Ok(json(ok, &health(daemon, peer))),
        [VERSION, "health"] => Ok(wrong_method("GET, HEAD")),
        [VERSION, "sessions"] if is_get => {
            let sessions = daemon.roster.visible(peer);
            let sessions = sessions.iter().map(|session| session.line()).collect();
            Ok(json(ok, &SessionList { sessions }))
        }
        [VERSION, "sessions"] if method == Method::POST => {
            let spec = read_spec(daemon, request).await?;
            let session = daemon.roster.attach(peer, spec).await?;
            Ok(json(StatusCode::CREATED, &session.line()))
        }
        [VERSION, "sessions"] => Ok(wrong_method("GET, HEAD, POST")),
        [VERSION, "sessions", key] if is_get => {
            Ok(json(ok, &daemon.roster.find(peer, key)?.line()))
        }
        [VERSION, "sessions", key] if method == Method::DELETE => {
            let session = daemon.roster.find(peer, key)?;
            tracing::info!(uid = peer.uid, pid = peer.pid, session = session.id, "detach");
            daemon.roster.detach(std::slice::from_ref(&session)).await;
            Ok(json(ok, &session.line()))
        }
        [VERSION, "sessions", _] => Ok(wrong_method("GET, HEAD, DELETE")),
        [VERSION, "sessions", key, part @ ("snapshot" | "stream" | "accounting")] => {
            if !is_get {
                return Ok(wrong_method("GET, HEAD"));
            }
            let session = daemon.roster.find(peer, key)?;
            part_of(&session, part, request.uri().query()).await
        }
        _ => Err(ApiError { code: ErrorCode::NotFound, message: format!("there is no {path}") }),
    }
}

async fn part_of(
    session: &Arc<Session>,
    part: &str,
    query: Option<&str>,
) -> Result<Response<Answer>, ApiError> {
    if part == "stream" {
        let stream = EventStream::new(session.clone(), interval(query)?);
        let mut response = Response::new(Either::Right(stream));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        return Ok(response);
    }
    let frame = fresh(session).await?;
    if part == "snapshot" {
        return Ok(json_bytes(StatusCode::OK, frame.json()));
    }
    let (elapsed_ns, accounting) = (frame.snapshot.elapsed_ns, frame.snapshot.accounting.clone());
    Ok(json(StatusCode::OK, &AccountingAnswer { elapsed_ns, accounting }))
}

/// A snapshot as things stand now, if the session can make one.
async fn fresh(session: &Arc<Session>) -> Result<Arc<super::frame::Frame>, ApiError> {
    let mut frames = session.watch_frames();
    let newest = frames.borrow_and_update().clone();
    let status = session.status();
    let is_fresh = newest.as_ref().is_some_and(|frame| frame.made.elapsed() < FRESH);
    if status.state != SessionState::Attached || is_fresh {
        let message = || {
            let why = status.detail.map(|why| format!(": {why}")).unwrap_or_default();
            format!("session {} has no snapshot, it is {}{why}", session.id, status.state.name())
        };
        return newest.ok_or_else(|| ApiError { code: ErrorCode::NoSnapshot, message: message() });
    }
    session.wish();
    let _ = tokio::time::timeout(PATIENCE, frames.changed()).await;
    let newest = frames.borrow_and_update().clone();
    let message = || format!("session {} has no snapshot yet", session.id);
    newest.ok_or_else(|| ApiError { code: ErrorCode::NoSnapshot, message: message() })
}

/// `interval_ms=…` of the stream's query.
fn interval(query: Option<&str>) -> Result<Duration, ApiError> {
    let wrong = |message: String| ApiError { code: ErrorCode::BadRequest, message };
    let mut ms = DEFAULT_INTERVAL_MS;
    for part in query.unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
        let Some(value) = part.strip_prefix("interval_ms=") else {
            return Err(wrong("a stream takes nothing but interval_ms".into()));
        };
        let (least, most) = (INTERVALS.start(), INTERVALS.end());
        ms = value
            .parse()
            .ok()
            .filter(|ms| INTERVALS.contains(ms))
            .ok_or_else(|| wrong(format!("interval_ms is a number from {least} to {most}")))?;
    }
    Ok(Duration::from_millis(ms))
}

async fn read_spec(daemon: &Daemon, request: Request<Incoming>) -> Result<SessionSpec, ApiError> {
    let wrong = |code, message: String| ApiError { code, message };
    let limits = daemon.limits();
    let body = Limited::new(request.into_body(), limits.request_bytes).collect();
    let body = tokio::time::timeout(limits.request_time(), body).await;
    let too_slow = |_| wrong(ErrorCode::TooSlow, "the request's body does not come".into());
    let body = body.map_err(too_slow)?.map_err(|error| {
        if error.is::<LengthLimitError>() {
            let message = format!("a request has at most {} bytes", limits.request_bytes);
            wrong(ErrorCode::TooLarge, message)
        } else {
            wrong(ErrorCode::BadRequest, format!("the request's body breaks off: {error}"))
        }
    })?;
    serde_json::from_slice(&body.to_bytes()).map_err(|error| {
        wrong(ErrorCode::BadRequest, format!("the request is not understood: {error}"))
    })
}

fn health(daemon: &Daemon, peer: &Peer) -> Health {
    let sessions = daemon.roster.visible(peer);
    let count = |state| sessions.iter().filter(|one| one.status().state == state).count();
    let n_failed = count(SessionState::Failed);
    // By those of the configuration: what somebody asks for and cannot have is no fault of the daemon.
    let is_unwell = sessions.iter().filter(|session| session.is_configured()).any(|session| {
        session.status().state == SessionState::Failed || session.silent_for() > MAX_SILENCE
    });
    Health {
        status: if is_unwell { "degraded" } else { "ok" }.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        sees_all: peer.rank == Rank::Privileged,
        uptime_ns: u64::try_from(daemon.began.elapsed().as_nanos()).unwrap_or(u64::MAX),
        n_sessions: sessions.len(),
        n_attached: count(SessionState::Attached),
        n_failed,
        n_connections: peer.sees_all().then(|| daemon.connections.count()),
        memory: memory_bound::state().filter(|_| peer.sees_all()).map(|state| MemoryLine {
            max_bytes: state.max_bytes,
            resident_bytes: state.resident_bytes,
            is_short: state.is_short,
            shed: state.shed().map(|(what, n)| (what.to_owned(), n)).collect(),
        }),
    }
}

fn wrong_method(allowed: &'static str) -> Response<Answer> {
    let message = format!("this path takes {allowed}");
    let mut response = refusal(&ApiError { code: ErrorCode::MethodNotAllowed, message });
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

fn json(status: StatusCode, value: &impl Serialize) -> Response<Answer> {
    match serde_json::to_vec(value) {
        Ok(json) => json_bytes(status, json.into()),
        Err(error) => {
            tracing::error!(%error, "an answer cannot be written as JSON");
            json_bytes(StatusCode::INTERNAL_SERVER_ERROR, Bytes::from_static(b"null"))
        }
    }
}

fn json_bytes(status: StatusCode, json: Bytes) -> Response<Answer> {
    full(status, "application/json", json)
}

fn full(status: StatusCode, kind: &'static str, bytes: Bytes) -> Response<Answer> {
    let mut response = Response::new(Either::Left(Full::new(bytes)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_bounds() {
        let ms = |query| interval(query).map(|interval| interval.as_millis());
        assert_eq!(ms(None).unwrap(), 1000);
        assert_eq!(ms(Some("")).unwrap(), 1000);
        assert_eq!(ms(Some("interval_ms=250")).unwrap(), 250);
        for wrong in ["interval_ms=1", "interval_ms=x", "interval_ms=99999999", "limit=3"] {
            assert_eq!(ms(Some(wrong)).unwrap_err().code, ErrorCode::BadRequest, "{wrong}");
        }
    }
}
