//! Answers made of a session's newest snapshot: itself, its accounting, an object of it, a profile.

use super::Daemon;
use super::answer::{AnswerBody, JSON, json, sealed};
use super::endpoint::{Endpoint, Route};
use super::frame::Frame;
use super::path::number;
use super::peer::Peer;
use super::route::absent;
use super::session::Session;
use dataspace_proto::api::{AccountingAnswer, ApiError, ErrorCode, SessionState};
use dataspace_proto::worker::Wish;
use hyper::Response;
use hyper::header::{CONTENT_DISPOSITION, HeaderValue};
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
    let wish = match endpoint {
        Endpoint::Accounting => {
            let figures = &fresh(session).await?.figures;
            let (elapsed_ns, accounting) = (figures.elapsed_ns, figures.accounting.clone());
            return Ok(json(ok, &AccountingAnswer { elapsed_ns, accounting }));
        }
        Endpoint::Object | Endpoint::Layout => {
            let Some(id) = number(object) else { return Err(no_object(session, object)) };
            if endpoint == Endpoint::Object { Wish::Object(id) } else { Wish::Layout(id) }
        }
        Endpoint::Pprof => Wish::Pprof,
        Endpoint::Folded => Wish::Folded,
        _ => return Ok(sealed(ok, JSON, fresh(session).await?.event.json())),
    };
    let turn = daemon.turns.take(peer).await?;
    fresh(session).await?;
    let (of_turn, id) = (session.clone(), session.id);
    let making = turn.spend(move || {
        let made = of_turn.made(wish)?;
        // Where it has no layout: there may be no such object.
        let is_there = match wish {
            Wish::Layout(id) if made.is_none() => of_turn.made(Wish::Object(id))?.is_some(),
            _ => false,
        };
        Ok((made, is_there))
    });
    let made = making.await.unwrap_or_else(|error| Err(error.into()));
    match made.map_err(|error| unmade(id, &error))? {
        (Some(bytes), _) if endpoint == Endpoint::Pprof => {
            Ok(download(sealed(ok, answer.kind, bytes), id))
        }
        (Some(bytes), _) => Ok(sealed(ok, answer.kind, bytes)),
        (None, false) => Err(no_object(session, object)),
        (None, true) => {
            Err(absent(format!("object {object} is no part of an aggregate that is laid out")))
        }
    }
}

fn unmade(session: u64, error: &io::Error) -> ApiError {
    tracing::error!(%error, session, "an answer cannot be made");
    let message = "this cannot be made now: see the daemon's log".to_owned();
    ApiError { code: ErrorCode::NoSnapshot, message }
}

fn no_object(session: &Session, key: &str) -> ApiError {
    absent(format!("session {} lists no object {key}", session.id))
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
