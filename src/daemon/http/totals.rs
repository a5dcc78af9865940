//! Answers of a session's totals: what clients read is never more than so much older than they ask.

use super::answer::{AnswerBody, JSON, json, sealed};
use super::body;
use super::path::{choice, number};
use super::route::{Asked, absent};
use crate::daemon::session::Session;
use crate::daemon::session::frame::Frame;
use crate::daemon::session::sealed::Sealed;
use dataspace_proto::api::{AccountingAnswer, ApiError, ErrorCode};
use dataspace_proto::view::View;
use dataspace_proto::worker::Wish;
use hyper::Response;
use hyper::header::{CONTENT_DISPOSITION, HeaderValue};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A snapshot that is younger is fresh enough for whoever asks for one.
pub(crate) const FRESH: Duration = Duration::from_millis(100);

/// RFC 4180, and RFC 7111.
pub(crate) const CSV: &str = "text/csv; charset=utf-8; header=present";

type Answered = Result<Response<AnswerBody>, ApiError>;

/// All of them.
pub(crate) async fn snapshot(asked: Asked<'_>) -> Answered {
    let session = asked.session()?;
    Ok(sealed(asked.route.success, JSON, fresh(&session).await?.event.json()))
}

/// The account of the samples.
pub(crate) async fn accounting(asked: Asked<'_>) -> Answered {
    let session = asked.session()?;
    let figures = &fresh(&session).await?.figures;
    let (elapsed_ns, accounting) = (figures.elapsed_ns, figures.accounting.clone());
    Ok(json(asked.route.success, &AccountingAnswer { elapsed_ns, accounting }))
}

/// A profile of pprof.
pub(crate) async fn pprof(asked: Asked<'_>) -> Answered {
    let session = asked.session()?;
    let profile = made(&asked, &session, Wish::Pprof).await?;
    let mut response = whole(&asked, profile, || no_snapshot(&session))?;
    let name = format!("attachment; filename=\"session-{}.pb.gz\"", session.id);
    if let Ok(name) = HeaderValue::from_str(&name) {
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

/// Folded stacks.
pub(crate) async fn folded(asked: Asked<'_>) -> Answered {
    let session = asked.session()?;
    let stacks = made(&asked, &session, Wish::Folded).await?;
    whole(&asked, stacks, || no_snapshot(&session))
}

/// One object.
pub(crate) async fn object(asked: Asked<'_>) -> Answered {
    let session = asked.session()?;
    let id = number(asked.object()).ok_or_else(|| no_object(&session, asked.object()))?;
    let object = made(&asked, &session, Wish::Object(id)).await?;
    whole(&asked, object, || no_object(&session, asked.object()))
}

/// The layout around one object.
pub(crate) async fn layout(asked: Asked<'_>) -> Answered {
    let session = asked.session()?;
    let object = asked.object();
    let id = number(object).ok_or_else(|| no_object(&session, object))?;
    let layout = made(&asked, &session, Wish::Layout(id)).await?;
    let is_there = layout.is_some() || made(&asked, &session, Wish::Object(id)).await?.is_some();
    whole(&asked, layout, || match is_there {
        true => absent(format!("object {object} is no part of an aggregate that is laid out")),
        false => no_object(&session, object),
    })
}

/// The answer to a question to the history.
pub(crate) async fn query(mut asked: Asked<'_>) -> Answered {
    let session = asked.session()?;
    let is_csv = choice(&asked.query, "format", ["json", "csv"])? == Some("csv");
    let query = body::read(asked.daemon, &mut asked.body).await?.to_vec();
    let keys = asked.daemon.settings().keys;
    let answer = made(&asked, &session, Wish::Query { query, keys, is_csv }).await?;
    let answer = answer.ok_or_else(|| no_snapshot(&session))?;
    let kind = if is_csv { CSV } else { asked.route.answer.kind };
    Ok(sealed(asked.route.success, kind, answer))
}

/// A view of the history.
pub(crate) async fn view(mut asked: Asked<'_>, view: View) -> Answered {
    let session = asked.session()?;
    let request = body::read(asked.daemon, &mut asked.body).await?.to_vec();
    let keys = asked.daemon.settings().keys;
    let made = made(&asked, &session, Wish::View { view, request, keys }).await?;
    whole(&asked, made, || no_snapshot(&session))
}

/// An answer that is `made`, or why there is none.
fn whole(asked: &Asked<'_>, made: Option<Sealed>, none: impl FnOnce() -> ApiError) -> Answered {
    Ok(sealed(asked.route.success, asked.route.answer.kind, made.ok_or_else(none)?))
}

/// A fresh snapshot as `session`'s worker makes it, when it is its turn; `None` where there is no such thing.
async fn made(
    asked: &Asked<'_>,
    session: &Arc<Session>,
    wish: Wish,
) -> Result<Option<Sealed>, ApiError> {
    let turn = asked.daemon.turns.take(asked.peer, session.worker_user()).await?;
    fresh(session).await?;
    let of_turn = Arc::clone(session);
    let made = turn.spend(move || of_turn.made(wish)).await;
    made.unwrap_or_else(|error| Err(error.into())).map_err(|error| {
        if error.kind() == io::ErrorKind::InvalidInput {
            return ApiError { code: ErrorCode::BadRequest, message: error.to_string() };
        }
        tracing::error!(%error, session = session.id, "an answer cannot be made");
        let message = "this cannot be made now: see the daemon's log".to_owned();
        ApiError { code: ErrorCode::NoSnapshot, message }
    })
}

fn no_object(session: &Session, key: &str) -> ApiError {
    absent(format!("session {} lists no object {key}", session.id))
}

fn no_snapshot(session: &Session) -> ApiError {
    let status = session.status();
    let why = status.detail.map(|why| format!(": {why}")).unwrap_or_default();
    let message =
        format!("session {} has no snapshot, it is {}{why}", session.id, status.state.name());
    ApiError { code: ErrorCode::NoSnapshot, message }
}

/// A snapshot as things stand now, if the session can make one.
async fn fresh(session: &Session) -> Result<Arc<Frame>, ApiError> {
    session.looked_at();
    session.renewed(FRESH).await.ok_or_else(|| no_snapshot(session))
}
