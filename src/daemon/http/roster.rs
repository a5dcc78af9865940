//! Operations on sessions as such: list, attach, detach.

use super::answer::{AnswerBody, json};
use super::body;
use super::path::choice;
use super::route::Asked;
use crate::daemon::session::Course;
use crate::daemon::state::Daemon;
use dataspace_proto::api::{ApiError, ErrorCode, SessionList, SessionSpec};
use hyper::Response;
use hyper::body::Incoming;

/// The sessions that the peer may see.
pub(crate) async fn list(asked: Asked<'_>) -> Result<Response<AnswerBody>, ApiError> {
    let sessions = asked.daemon.roster.visible(asked.peer);
    let sessions = sessions.iter().map(|session| session.line()).collect();
    Ok(json(asked.route.success, &SessionList { sessions }))
}

/// One of them.
pub(crate) async fn one(asked: Asked<'_>) -> Result<Response<AnswerBody>, ApiError> {
    Ok(json(asked.route.success, &asked.session()?.line()))
}

/// Begins one.
pub(crate) async fn attach(mut asked: Asked<'_>) -> Result<Response<AnswerBody>, ApiError> {
    let Asked { daemon, peer, ref mut body, .. } = asked;
    peer.may_change("attach")?;
    let course = if ends_unwatched(&asked.query)? { Course::WhileWatched } else { Course::Usual };
    let spec = read_spec(daemon, body).await?;
    let session = daemon.roster.attach(peer, spec, course).await?;
    Ok(json(asked.route.success, &session.line()))
}

/// Ends one.
pub(crate) async fn detach(asked: Asked<'_>) -> Result<Response<AnswerBody>, ApiError> {
    let Asked { daemon, peer, .. } = asked;
    let session = asked.session()?;
    peer.may_change("detach")?;
    let address = peer.address.map(tracing::field::display);
    tracing::info!(uid = peer.uid, pid = peer.pid, address, session = session.id, "detach");
    daemon.roster.detach(std::slice::from_ref(&session)).await;
    Ok(json(asked.route.success, &session.line()))
}

/// `ends_unwatched=…` of an attach request's query.
fn ends_unwatched(query: &[(String, String)]) -> Result<bool, ApiError> {
    Ok(choice(query, "ends_unwatched", ["true", "false"])? == Some("true"))
}

async fn read_spec(daemon: &Daemon, body: &mut Incoming) -> Result<SessionSpec, ApiError> {
    let body = body::read(daemon, body).await?;
    serde_json::from_slice(&body).map_err(|error| {
        let message = format!("the request is not understood: {error}");
        ApiError { code: ErrorCode::BadRequest, message }
    })
}

#[cfg(test)]
mod tests {
    use super::super::path;
    use super::*;

    #[test]
    fn a_session_ends_unwatched_only_where_that_is_asked_for() {
        let asked = |query: &str| ends_unwatched(&path::query(Some(query))?);
        assert_eq!(asked(""), Ok(false));
        assert_eq!(asked("ends_unwatched=false"), Ok(false));
        assert_eq!(asked("ends_unwatched=true"), Ok(true));
        for wrong in ["", "1", "True", "true&ends_unwatched=true"] {
            let error = asked(&format!("ends_unwatched={wrong}")).unwrap_err();
            assert_eq!(error.code, ErrorCode::BadRequest, "{wrong}");
        }
    }
}
