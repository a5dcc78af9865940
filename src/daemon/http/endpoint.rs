//! Operations of the API: the table of them, from which requests are answered and the document is made.

use super::answer::{AnswerBody, refusal};
use super::path;
use super::route::{ANY, Asked, Content, Handler, Parameter, Route, absent};
use super::stream::{self, DEFAULT_INTERVAL_MS, INTERVALS};
use super::{health, metrics, openapi, roster, totals};
use crate::daemon::client::peer::Peer;
use crate::daemon::state::Daemon;
use dataspace_proto::api::{
    AccountingAnswer, ApiError, ErrorCode, Health, SessionLine, SessionList, SessionSpec,
};
use dataspace_proto::object_detail::{ObjectDetail, ObjectLayout};
use dataspace_proto::query::{Query, QueryAnswer};
use dataspace_proto::snapshot::Snapshot;
use dataspace_proto::view::{View, ViewRequest};
use hyper::body::Incoming;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use schemars::{SchemaGenerator, json_schema};

const ENDS_UNWATCHED: Parameter = Parameter {
    name: "ends_unwatched",
    description: "True for a session that ends by itself, and is gone, when for ten seconds no stream of it was \
                  open and nothing of its totals was asked for. So it does not outlive a client that is killed.",
    schema: || json_schema!({"type": "boolean", "default": false}),
};

const FORMAT: Parameter = Parameter {
    name: "format",
    description: "Form of the answer: JSON, or CSV (RFC 4180) with a line for each row, which has no accounts.",
    schema: || json_schema!({"type": "string", "enum": ["json", "csv"], "default": "json"}),
};

const INTERVAL_MS: Parameter = Parameter {
    name: "interval_ms",
    description: "Time between two snapshots.",
    schema: || {
        json_schema!({
            "type": "integer",
            "minimum": INTERVALS.start(),
            "maximum": INTERVALS.end(),
            "default": DEFAULT_INTERVAL_MS,
        })
    },
};

/// Errors of what is made of a session's snapshot.
const OF_SNAPSHOT: &[ErrorCode] = &[ErrorCode::NotFound, ErrorCode::NoSnapshot];

/// The usual operation: GET, without parameters or a body. Each has the rest of its own.
const GET: Route = Route {
    name: "",
    method: &Method::GET,
    path: "",
    summary: "",
    description: None,
    query: &[],
    request: None,
    success: StatusCode::OK,
    answer: Content::text(""),
    other_answer: None,
    errors: &[],
    handler: Handler(|_| Box::pin(async { Err(absent(String::new())) })),
};

/// A view of a session's history.
const VIEW: Route = Route {
    method: &Method::POST,
    request: Some(Content::json(SchemaGenerator::subschema_for::<ViewRequest>)),
    answer: Content::json(|_| json_schema!({"type": "object"})),
    errors: &[ErrorCode::NotFound, ErrorCode::NoSnapshot, ErrorCode::TooSlow, ErrorCode::TooLarge],
    ..GET
};

/// Every operation.
pub(crate) static ROUTES: [Route; 19] = [
    Route {
        name: "metrics",
        handler: Handler(|asked| Box::pin(metrics::answer(asked))),
        path: "/metrics",
        summary: "metrics in the text format of Prometheus.",
        answer: Content::text(metrics::CONTENT_TYPE),
        ..GET
    },
    Route {
        name: "openapi",
        handler: Handler(|asked| Box::pin(openapi::document(asked))),
        path: "/v1/openapi.json",
        summary: "This document.",
        answer: Content::json(|_| json_schema!({"type": "object"})),
        ..GET
    },
    Route {
        name: "health",
        handler: Handler(|asked| Box::pin(health::answer(asked))),
        path: "/v1/health",
        summary: "State of the daemon.",
        answer: Content::json(SchemaGenerator::subschema_for::<Health>),
        ..GET
    },
    Route {
        name: "sessions",
        handler: Handler(|asked| Box::pin(roster::list(asked))),
        path: "/v1/sessions",
        summary: "Sessions that the client may see.",
        answer: Content::json(SchemaGenerator::subschema_for::<SessionList>),
        ..GET
    },
    Route {
        name: "attach",
        handler: Handler(|asked| Box::pin(roster::attach(asked))),
        method: &Method::POST,
        path: "/v1/sessions",
        summary: "Attaches to a target.",
        description: Some(
            "The answer comes when events are open, or cannot be opened. The session goes on until it is \
             detached or its target ends.",
        ),
        query: &[ENDS_UNWATCHED],
        request: Some(Content::json(SchemaGenerator::subschema_for::<SessionSpec>)),
        success: StatusCode::CREATED,
        answer: Content::json(SchemaGenerator::subschema_for::<SessionLine>),
        other_answer: None,
        errors: &[
            ErrorCode::NotPermitted,
            ErrorCode::TooSlow,
            ErrorCode::NameTaken,
            ErrorCode::TooLarge,
            ErrorCode::NotAttached,
            ErrorCode::MissingPrivilege,
            ErrorCode::Unsupported,
            ErrorCode::Ending,
        ],
    },
    Route {
        name: "session",
        handler: Handler(|asked| Box::pin(roster::one(asked))),
        path: "/v1/sessions/{session}",
        summary: "One session.",
        answer: Content::json(SchemaGenerator::subschema_for::<SessionLine>),
        errors: &[ErrorCode::NotFound],
        ..GET
    },
    Route {
        name: "detach",
        handler: Handler(|asked| Box::pin(roster::detach(asked))),
        method: &Method::DELETE,
        path: "/v1/sessions/{session}",
        summary: "Ends a session, and gives its last state.",
        answer: Content::json(SchemaGenerator::subschema_for::<SessionLine>),
        errors: &[ErrorCode::NotFound, ErrorCode::NotPermitted],
        ..GET
    },
    Route {
        name: "snapshot",
        handler: Handler(|asked| Box::pin(totals::snapshot(asked))),
        path: "/v1/sessions/{session}/snapshot",
        summary: "Totals of a session at this moment.",
        answer: Content::json(SchemaGenerator::subschema_for::<Snapshot>),
        errors: OF_SNAPSHOT,
        ..GET
    },
    Route {
        name: "accounting",
        handler: Handler(|asked| Box::pin(totals::accounting(asked))),
        path: "/v1/sessions/{session}/accounting",
        summary: "Account of every sample of a session.",
        answer: Content::json(SchemaGenerator::subschema_for::<AccountingAnswer>),
        errors: OF_SNAPSHOT,
        ..GET
    },
    Route {
        name: "stream",
        handler: Handler(|asked| Box::pin(stream::answer(asked))),
        path: "/v1/sessions/{session}/stream",
        summary: "Snapshots as server-sent events.",
        description: Some(
            "Events `snapshot`, each with a Snapshot on one line, and at the end `end`, with the SessionLine. A \
             slow client gets fewer, and always the newest.",
        ),
        query: &[INTERVAL_MS],
        answer: Content::text("text/event-stream"),
        errors: &[ErrorCode::NotFound],
        ..GET
    },
    Route {
        name: "pprof",
        handler: Handler(|asked| Box::pin(totals::pprof(asked))),
        path: "/v1/sessions/{session}/pprof",
        summary: "Totals of a session as a profile for `go tool pprof`.",
        description: Some(
            "A stack is `<Total>`, the objects around an object, the object, and the function that accessed it. \
             Compressed with gzip.",
        ),
        answer: Content {
            kind: "application/octet-stream",
            schema: |_| json_schema!({"type": "string", "format": "binary"}),
        },
        errors: OF_SNAPSHOT,
        ..GET
    },
    Route {
        name: "folded",
        handler: Handler(|asked| Box::pin(totals::folded(asked))),
        path: "/v1/sessions/{session}/folded",
        summary: "Totals of a session as folded stacks, for flame graphs.",
        answer: Content::text("text/plain; charset=utf-8"),
        errors: OF_SNAPSHOT,
        ..GET
    },
    Route {
        name: "object",
        handler: Handler(|asked| Box::pin(totals::object(asked))),
        path: "/v1/sessions/{session}/objects/{object}",
        summary: "One object in detail.",
        answer: Content::json(SchemaGenerator::subschema_for::<ObjectDetail>),
        errors: OF_SNAPSHOT,
        ..GET
    },
    Route {
        name: "layout",
        handler: Handler(|asked| Box::pin(totals::layout(asked))),
        path: "/v1/sessions/{session}/objects/{object}/layout",
        summary: "Layout of the outermost aggregate around an object, with what happens where.",
        answer: Content::json(SchemaGenerator::subschema_for::<ObjectLayout>),
        errors: OF_SNAPSHOT,
        ..GET
    },
    Route {
        name: "query",
        handler: Handler(|asked| Box::pin(totals::query(asked))),
        method: &Method::POST,
        path: "/v1/sessions/{session}/query",
        summary: "The answer to a question to a session's history.",
        description: Some(
            "The samples of a span that a filter keeps, summed by keys. Addresses are told only to those who may see \
             all sessions: others get ordinals. An answer has at most 10,000 rows. Keys of the daemon's configuration \
             are known besides those of the question.",
        ),
        query: &[FORMAT],
        request: Some(Content::json(SchemaGenerator::subschema_for::<Query>)),
        answer: Content::json(SchemaGenerator::subschema_for::<QueryAnswer>),
        other_answer: Some(Content::text(totals::CSV)),
        errors: &[
            ErrorCode::NotFound,
            ErrorCode::NoSnapshot,
            ErrorCode::TooSlow,
            ErrorCode::TooLarge,
        ],
        ..GET
    },
    Route {
        name: "sharing",
        handler: Handler(|asked| Box::pin(totals::view(asked, View::Sharing))),
        path: "/v1/sessions/{session}/sharing",
        summary: "Cache lines that threads share, and who does what there.",
        description: Some(
            "As `dataspace threads --json` prints it. Addresses are told only to those who may see all sessions.",
        ),
        ..VIEW
    },
    Route {
        name: "code",
        handler: Handler(|asked| Box::pin(totals::view(asked, View::Code))),
        path: "/v1/sessions/{session}/code",
        summary: "The code of a function, with its samples and the data objects that it touches.",
        description: Some(
            "As `dataspace annotate --json` prints it. Sources are shown where the daemon may show them.",
        ),
        ..VIEW
    },
    Route {
        name: "members",
        handler: Handler(|asked| Box::pin(totals::view(asked, View::Members))),
        path: "/v1/sessions/{session}/members",
        summary: "The members of the outermost aggregate around an object, in its cache lines, with what was measured of each.",
        description: Some(
            "As `dataspace layout --json` prints a layout: with holes, the place at which most instances begin in a line, and how often each member was the first of its line to be touched.",
        ),
        ..VIEW
    },
    Route {
        name: "measurement",
        handler: Handler(|asked| Box::pin(totals::view(asked, View::Measurement))),
        path: "/v1/sessions/{session}/measurement",
        summary: "The measurement that the session's events are of: its sums by process, function, data object and kind of memory.",
        description: Some(
            "As `dataspace measure --json` prints it, without code and run information.",
        ),
        ..VIEW
    },
];

/// The answer to `request`.
pub(crate) async fn answer(
    daemon: &Daemon,
    peer: &Peer,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    let path = request.uri().path().to_owned();
    let (route, keys, query) = match find(request.method(), &path, request.uri().query()) {
        Ok(Found::Routed(route, keys, query)) => (route, keys, query),
        Ok(Found::WrongMethod(allowed)) => return wrong_method(&allowed),
        Err(error) => return refusal(&error),
    };
    let asked = Asked { daemon, peer, route, keys, query, body: request.into_body() };
    let answer = (route.handler.0)(asked).await.unwrap_or_else(|error| {
        tracing::debug!(uid = peer.uid, path, code = ?error.code, error.message, "not done");
        let is_known = route.errors.contains(&error.code) || ANY.contains(&error.code);
        debug_assert!(is_known, "{} does not say that it answers {:?}", route.name, error.code);
        refusal(&error)
    });
    debug_assert!(!answer.status().is_success() || answer.status() == route.success);
    answer
}

enum Found {
    /// The operation, the parts of the path where it has braces, and the query.
    Routed(&'static Route, Vec<String>, Vec<(String, String)>),
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
        return Ok(Found::Routed(route, keys, query));
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

    #[test]
    fn a_path_has_one_spelling_and_a_query_what_it_takes() {
        let find =
            |method: Method, path: &str, query: Option<&str>| match find(&method, path, query) {
                Ok(Found::Routed(route, keys, _)) => format!("{} {}", route.name, keys.join(" ")),
                Ok(Found::WrongMethod(allowed)) => allowed,
                Err(error) => format!("{:?}", error.code),
            };
        let get = |path: &str| find(Method::GET, path, None);
        assert_eq!(get("/v1/health"), "health ");
        assert_eq!(get("/v1/sessions/a%40b/objects/7/layout"), "layout a@b 7");
        for wrong in ["//v1/health", "/v1/health/", "/v1//health", "/v1/sessions/", "", "/", "*"] {
            assert_eq!(get(wrong), "NotFound", "{wrong}");
        }
        assert_eq!(get("/v1/sessions/%"), "BadRequest");
        assert_eq!(find(Method::HEAD, "/metrics", None), "metrics ");
        assert_eq!(find(Method::PATCH, "/v1/sessions", None), "GET, HEAD, POST");
        assert_eq!(find(Method::OPTIONS, "/v1/sessions/7", None), "GET, HEAD, DELETE");
        assert_eq!(find(Method::GET, "/v1/health", Some("a=1")), "BadRequest");
        assert_eq!(find(Method::GET, "/v1/health", Some("")), "health ");
        assert_eq!(find(Method::GET, "/v1/sessions/7/stream", Some("interval_ms=9")), "stream 7");
    }
}
