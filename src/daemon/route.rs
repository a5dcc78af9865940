//! Routing of requests: finds the operation that a path means, and answers it.

use super::Daemon;
use super::answer::{AnswerBody, full, json, json_bytes, refusal, with_body};
use super::endpoint::{ANY, Endpoint, ROUTES, Route};
use super::metrics;
use super::openapi;
use super::path::{self, number};
use super::peer::Peer;
use super::session::Session;
use super::stream::{DEFAULT_INTERVAL_MS, EventStream, INTERVALS};
use super::totals;
use dataspace_proto::api::{
    ApiError, ErrorCode, Health, HealthStatus, MemoryLine, SessionList, SessionSpec, SessionState,
};
use http_body_util::{BodyExt as _, Either, LengthLimitError, Limited};
use hyper::body::Body;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Request, Response};
use std::sync::Arc;
use std::time::Duration;

/// Sessions that are silent for longer make the daemon unwell: an analyzer answers in microseconds.
pub(super) const MAX_SILENCE: Duration = Duration::from_secs(20);

/// A request whose path is known.
struct Routed {
    route: &'static Route,
    /// The parts of the path where the route has braces.
    keys: Vec<String>,
    query: Vec<(String, String)>,
}

/// The answer to `request`.
pub(super) async fn answer<B>(
    daemon: &Daemon,
    peer: &Peer,
    request: Request<B>,
) -> Response<AnswerBody>
where
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let path = request.uri().path().to_owned();
    let asked = match find(request.method(), &path, request.uri().query()) {
        Ok(Found::Routed(asked)) => asked,
        Ok(Found::WrongMethod(allowed)) => return wrong_method(&allowed),
        Err(error) => return refusal(&error),
    };
    let route = asked.route;
    let answer = respond(daemon, peer, asked, request).await.unwrap_or_else(|error| {
        tracing::debug!(uid = peer.uid, path, code = ?error.code, error.message, "not done");
        let is_known = route.errors.contains(&error.code) || ANY.contains(&error.code);
        debug_assert!(
            is_known,
            "{:?} does not say that it answers {:?}",
            route.endpoint, error.code
        );
        refusal(&error)
    });
    debug_assert!(!answer.status().is_success() || answer.status() == route.success);
    answer
}

enum Found {
    Routed(Routed),
    /// The path is there, and takes these methods.
    WrongMethod(String),
}

/// The route of a request.
fn find(method: &Method, path: &str, query: Option<&str>) -> Result<Found, ApiError> {
    let parts = path::parts(path)?;
    let mut allowed: Vec<&str> = Vec::new();
    // What answers HEAD has no body: hyper leaves it away.
    let meant = if method == Method::HEAD { Method::GET } else { method.clone() };
    for route in &ROUTES {
        let Some(keys) = keys(route.path, &parts) else { continue };
        if *route.method != meant {
            allowed.push(route.method.as_str());
            if *route.method == Method::GET {
                allowed.push("HEAD");
            }
            continue;
        }
        let query = path::query(query)?;
        let known: Vec<&str> = route.query.iter().map(|parameter| parameter.name).collect();
        if let Some((name, _)) = query.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            let takes = match &known[..] {
                [] => "no parameters".to_owned(),
                known => known.join(", "),
            };
            let message = format!("there is no parameter {name:?}: this path takes {takes}");
            return Err(ApiError { code: ErrorCode::BadRequest, message });
        }
        return Ok(Found::Routed(Routed { route, keys, query }));
    }
    if allowed.is_empty() {
        return Err(absent(format!("there is no {path}")));
    }
    Ok(Found::WrongMethod(allowed.join(", ")))
}

/// The parts where `template` has braces, if the path fits it.
fn keys(template: &str, parts: &[String]) -> Option<Vec<String>> {
    let expected: Vec<&str> = template.trim_start_matches('/').split('/').collect();
    if expected.len() != parts.len() {
        return None;
    }
    let mut keys = Vec::new();
    for (expected, part) in expected.iter().zip(parts) {
        if expected.starts_with('{') && !part.is_empty() {
            keys.push(part.clone());
        } else if expected != part {
            return None;
        }
    }
    Some(keys)
}

async fn respond<B>(
    daemon: &Daemon,
    peer: &Peer,
    asked: Routed,
    request: Request<B>,
) -> Result<Response<AnswerBody>, ApiError>
where
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Route { endpoint, success: ok, .. } = *asked.route;
    let key = asked.keys.first().map_or("", String::as_str);
    match endpoint {
        Endpoint::Metrics => {
            let text = metrics::text(daemon, peer).await;
            Ok(full(ok, asked.route.answer.kind, text.into()))
        }
        Endpoint::OpenApi => Ok(json_bytes(ok, openapi::document())),
        Endpoint::Health => Ok(json(ok, &health(daemon, peer))),
        Endpoint::Sessions => {
            let sessions = daemon.roster.visible(peer);
            let sessions = sessions.iter().map(|session| session.line()).collect();
            Ok(json(ok, &SessionList { sessions }))
        }
        Endpoint::Attach => {
            peer.may_change("attach")?;
            let ends_unwatched = ends_unwatched(&asked.query)?;
            let spec = read_spec(daemon, request).await?;
            let session = daemon.roster.attach(peer, spec, ends_unwatched).await?;
            Ok(json(ok, &session.line()))
        }
        Endpoint::Detach => {
            let session = session(daemon, peer, key)?;
            peer.may_change("detach")?;
            let address = peer.address.map(tracing::field::display);
            tracing::info!(uid = peer.uid, pid = peer.pid, address, session = session.id, "detach");
            daemon.roster.detach(std::slice::from_ref(&session)).await;
            Ok(json(ok, &session.line()))
        }
        Endpoint::Session => Ok(json(ok, &session(daemon, peer, key)?.line())),
        Endpoint::Stream => {
            let interval = interval(&asked.query)?;
            let body = EventStream::new(session(daemon, peer, key)?, interval);
            Ok(with_body(ok, asked.route.answer.kind, Either::Right(Either::Right(body))))
        }
        _ => {
            let session = session(daemon, peer, key)?;
            let object = asked.keys.get(1).map_or("", String::as_str);
            totals::answer(daemon, peer, &session, asked.route, object).await
        }
    }
}

/// The session that a path names. A number is spelled in one way only.
fn session(daemon: &Daemon, peer: &Peer, key: &str) -> Result<Arc<Session>, ApiError> {
    let is_no_number = key.starts_with(|c: char| c.is_ascii_digit() || c == '+')
        && key.parse::<u64>().is_ok()
        && number::<u64>(key).is_none();
    if is_no_number {
        return Err(absent(format!("there is no session {key}")));
    }
    daemon.roster.find(peer, key)
}

/// `interval_ms=…` of the stream's query.
fn interval(query: &[(String, String)]) -> Result<Duration, ApiError> {
    let Some((_, value)) = query.last() else {
        return Ok(Duration::from_millis(DEFAULT_INTERVAL_MS));
    };
    let (least, most) = (INTERVALS.start(), INTERVALS.end());
    let ms = number(value).filter(|ms| INTERVALS.contains(ms) && query.len() == 1);
    let message = || format!("interval_ms is one number from {least} to {most}");
    let ms = ms.ok_or_else(|| ApiError { code: ErrorCode::BadRequest, message: message() })?;
    Ok(Duration::from_millis(ms))
}

/// `ends_unwatched=…` of an attach request's query.
fn ends_unwatched(query: &[(String, String)]) -> Result<bool, ApiError> {
    match query {
        [] => Ok(false),
        [(_, value)] if ["true", "false"].contains(&value.as_str()) => Ok(value == "true"),
        _ => {
            let message = "ends_unwatched is true or false, once".to_owned();
            Err(ApiError { code: ErrorCode::BadRequest, message })
        }
    }
}

async fn read_spec<B>(daemon: &Daemon, request: Request<B>) -> Result<SessionSpec, ApiError>
where
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
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
        session.status().state == SessionState::Failed
            || session.silent_for() > MAX_SILENCE
            || session.is_opening_long().is_some()
    });
    Health {
        status: if is_unwell { HealthStatus::Degraded } else { HealthStatus::Ok },
        version: env!("CARGO_PKG_VERSION").to_owned(),
        sees_all: peer.sees_all(),
        uptime_ns: u64::try_from(daemon.began.elapsed().as_nanos()).unwrap_or(u64::MAX),
        n_sessions: sessions.len(),
        n_attached: count(SessionState::Attached),
        n_failed,
        n_connections: peer.sees_all().then(|| daemon.connections.count()),
        memory: daemon.staff.memory().filter(|_| peer.sees_all()).map(|state| MemoryLine {
            max_bytes: state.max_bytes,
            resident_bytes: state.resident_bytes,
            is_short: state.is_short,
            shed: state.shed().map(|(what, n)| (what.to_owned(), n)).collect(),
        }),
    }
}

pub(super) fn absent(message: String) -> ApiError {
    ApiError { code: ErrorCode::NotFound, message }
}

fn wrong_method(allowed: &str) -> Response<AnswerBody> {
    let message = format!("this path takes {allowed}");
    let mut response = refusal(&ApiError { code: ErrorCode::MethodNotAllowed, message });
    if let Ok(allowed) = HeaderValue::from_str(allowed) {
        response.headers_mut().insert(ALLOW, allowed);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(query: &str) -> Result<u128, ApiError> {
        interval(&path::query(Some(query))?).map(|interval| interval.as_millis())
    }

    #[test]
    fn intervals_have_bounds() {
        assert_eq!(ms("").unwrap(), 1000);
        assert_eq!(ms("interval_ms=250").unwrap(), 250);
        for wrong in ["1", "x", "99999999", "+250", "", "250&interval_ms=300"] {
            let error = ms(&format!("interval_ms={wrong}")).unwrap_err();
            assert_eq!(error.code, ErrorCode::BadRequest, "{wrong}");
        }
    }

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

    #[test]
    fn a_path_has_one_spelling_and_a_query_what_it_takes() {
        let find =
            |method: Method, path: &str, query: Option<&str>| match find(&method, path, query) {
                Ok(Found::Routed(asked)) => {
                    format!("{:?} {}", asked.route.endpoint, asked.keys.join(" "))
                }
                Ok(Found::WrongMethod(allowed)) => allowed,
                Err(error) => format!("{:?}", error.code),
            };
        let get = |path: &str| find(Method::GET, path, None);
        assert_eq!(get("/v1/health"), "Health ");
        assert_eq!(get("/v1/sessions/a%40b/objects/7/layout"), "Layout a@b 7");
        for wrong in ["//v1/health", "/v1/health/", "/v1//health", "/v1/sessions/", "", "/", "*"] {
            assert_eq!(get(wrong), "NotFound", "{wrong}");
        }
        assert_eq!(get("/v1/sessions/%"), "BadRequest");
        assert_eq!(find(Method::HEAD, "/metrics", None), "Metrics ");
        assert_eq!(find(Method::PATCH, "/v1/sessions", None), "GET, HEAD, POST");
        assert_eq!(find(Method::OPTIONS, "/v1/sessions/7", None), "GET, HEAD, DELETE");
        assert_eq!(find(Method::GET, "/v1/health", Some("a=1")), "BadRequest");
        assert_eq!(find(Method::GET, "/v1/health", Some("")), "Health ");
        assert_eq!(find(Method::GET, "/v1/sessions/7/stream", Some("interval_ms=9")), "Stream 7");
    }
}
