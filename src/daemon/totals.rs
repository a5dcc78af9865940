//! Answers made of a session's newest snapshot: itself, its accounting, an object of it, a profile.

use super::Daemon;
use super::answer::{AnswerBody, full, json, json_bytes};
use super::endpoint::{Endpoint, Route};
use super::frame::Frame;
use super::object;
use super::path::number;
use super::peer::Peer;
use super::route::absent;
use super::session::Session;
use crate::session::findings::Findings;
use bytes::Bytes;
use dataspace_proto::api::{AccountingAnswer, ApiError, ErrorCode, SessionState};
use hyper::Response;
use hyper::header::{CONTENT_DISPOSITION, HeaderValue};
use serde::Serialize;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A snapshot that is younger is fresh enough for whoever asks for one.
pub(super) const FRESH: Duration = Duration::from_millis(100);

/// Time that a fresh snapshot is waited for, before the one before is given.
const PATIENCE: Duration = Duration::from_secs(1);

/// The answer of `route`; `object` is the key of an object where the path has one.
///
/// # Errors
/// Those that the route names.
pub(super) async fn answer(
    daemon: &Daemon,
    peer: &Peer,
    session: &Arc<Session>,
    route: &Route,
    object: &str,
) -> Result<Response<AnswerBody>, ApiError> {
    let Route { endpoint, success: ok, answer, .. } = *route;
    session.looked_at();
    match endpoint {
        Endpoint::Accounting => {
            let snapshot = &fresh(session).await?.findings.snapshot;
            let (elapsed_ns, accounting) = (snapshot.elapsed_ns, snapshot.accounting.clone());
            return Ok(json(ok, &AccountingAnswer { elapsed_ns, accounting }));
        }
        Endpoint::Object | Endpoint::Layout | Endpoint::Pprof | Endpoint::Folded => {}
        _ => return Ok(json_bytes(ok, fresh(session).await?.json())),
    }
    // Before there is a snapshot, so that requests that wait keep none.
    let turn = daemon.turns.take(peer).await?;
    let frame = fresh(session).await?;
    let (id, key) = (session.id, object.to_owned());
    let made = turn.spend(move || match endpoint {
        Endpoint::Object | Endpoint::Layout => object_of(&frame.findings, id, endpoint, &key),
        Endpoint::Pprof => frame.pprof().map_err(|error| unmade(id, &error)),
        _ => frame.folded().map_err(|error| unmade(id, &error)),
    });
    let bytes = made.await.unwrap_or_else(|error| Err(unmade(id, &error.into())))?;
    Ok(match endpoint {
        Endpoint::Pprof => download(full(ok, answer.kind, bytes), id),
        _ => full(ok, answer.kind, bytes),
    })
}

fn unmade(session: u64, error: &io::Error) -> ApiError {
    tracing::error!(%error, session, "an answer cannot be made");
    let message = "this cannot be made now: see the daemon's log".to_owned();
    ApiError { code: ErrorCode::NoSnapshot, message }
}

/// An object, or its layout, as JSON.
fn object_of(
    findings: &Findings,
    session: u64,
    endpoint: Endpoint,
    key: &str,
) -> Result<Bytes, ApiError> {
    fn bytes(session: u64, value: &impl Serialize) -> Result<Bytes, ApiError> {
        let json = serde_json::to_vec(value);
        json.map(Bytes::from).map_err(|error| unmade(session, &error.into()))
    }
    let no_object = || {
        let how = if findings.snapshot.truncated { "that this session lists" } else { "yet" };
        absent(format!("session {session} has no object {key} {how}"))
    };
    let id: u32 = number(key).ok_or_else(no_object)?;
    if endpoint == Endpoint::Object {
        return bytes(session, &object::detail(findings, id).ok_or_else(no_object)?);
    }
    if !findings.snapshot.objects.iter().any(|line| line.id == id) {
        return Err(no_object());
    }
    let no_layout = || absent(format!("object {id} is no part of an aggregate that is laid out"));
    bytes(session, &object::layout(findings, id).ok_or_else(no_layout)?)
}

fn download(mut response: Response<AnswerBody>, session: u64) -> Response<AnswerBody> {
    let name = format!("attachment; filename=\"session-{session}.pb.gz\"");
    if let Ok(name) = HeaderValue::from_str(&name) {
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    response
}

/// A snapshot as things stand now, if the session can make one.
async fn fresh(session: &Arc<Session>) -> Result<Arc<Frame>, ApiError> {
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
