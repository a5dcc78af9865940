//! An operation: its path and method, what a request for it may carry, and who answers it.

use super::answer::{AnswerBody, JSON};
use super::path::number;
use crate::daemon::client::peer::Peer;
use crate::daemon::session::Session;
use crate::daemon::state::Daemon;
use dataspace_proto::api::{ApiError, ErrorCode};
use hyper::body::Incoming;
use hyper::{Method, Response, StatusCode};
use schemars::{Schema, SchemaGenerator, json_schema};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// One operation: from this the daemon knows what to answer, and the document is made of it.
#[derive(Debug)]
pub(crate) struct Route {
    /// The name by which programs know it (OpenAPI's `operationId`).
    pub(crate) name: &'static str,
    /// The method; HEAD is answered wherever it is GET.
    pub(crate) method: &'static Method,
    /// With the names of its keys in braces: see [`KEYS`].
    pub(crate) path: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) description: Option<&'static str>,
    /// The parameters that its query may have.
    pub(crate) query: &'static [Parameter],
    /// The body that it needs.
    pub(crate) request: Option<Content>,
    /// The status of its answer, where it has one.
    pub(crate) success: StatusCode,
    /// The body of that answer.
    pub(crate) answer: Content,
    /// The body in another form, where that can be asked for.
    pub(crate) other_answer: Option<Content>,
    /// Errors that may be answered instead, besides [`ANY`].
    pub(crate) errors: &'static [ErrorCode],
    /// Makes the answer.
    pub(crate) handler: Handler,
}

/// A request for an operation, and who asks for what.
pub(crate) struct Asked<'a> {
    pub(crate) daemon: &'a Daemon,
    pub(crate) peer: &'a Peer,
    pub(crate) route: &'static Route,
    /// The parts of the path where the route has braces.
    pub(crate) keys: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Incoming,
}

/// An answer that is being made. Errors are those that the route names, or [`ANY`].
pub(crate) type Answering<'a> =
    Pin<Box<dyn Future<Output = Result<Response<AnswerBody>, ApiError>> + Send + 'a>>;

/// Makes answers to requests for one operation.
#[derive(Clone, Copy)]
pub(crate) struct Handler(pub(crate) for<'a> fn(Asked<'a>) -> Answering<'a>);

impl fmt::Debug for Handler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Handler")
    }
}

impl Asked<'_> {
    /// The session that the path names. A number is spelled in one way only.
    ///
    /// # Errors
    /// That there is none that the peer may see.
    pub(crate) fn session(&self) -> Result<Arc<Session>, ApiError> {
        let key = self.keys.first().map_or("", String::as_str);
        let is_no_number = key.starts_with(|c: char| c.is_ascii_digit() || c == '+')
            && key.parse::<u64>().is_ok()
            && number::<u64>(key).is_none();
        if is_no_number {
            return Err(absent(format!("there is no session {key}")));
        }
        self.daemon.roster.find(self.peer, key)
    }

    /// The object that the path names.
    pub(crate) fn object(&self) -> &str {
        self.keys.get(1).map_or("", String::as_str)
    }
}

/// Says that there is no such thing.
pub(crate) fn absent(message: String) -> ApiError {
    ApiError { code: ErrorCode::NotFound, message }
}

/// A key in a path, or a parameter of a query.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) schema: fn() -> Schema,
}

/// A body: its media type, and the schema of what is in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content {
    pub(crate) kind: &'static str,
    pub(crate) schema: fn(&mut SchemaGenerator) -> Schema,
}

impl Content {
    pub(crate) const fn json(schema: fn(&mut SchemaGenerator) -> Schema) -> Self {
        Self { kind: JSON, schema }
    }

    pub(crate) const fn text(kind: &'static str) -> Self {
        Self { kind, schema: SchemaGenerator::subschema_for::<String> }
    }
}

/// Keys in paths.
pub(crate) static KEYS: [Parameter; 2] = [
    Parameter {
        name: "session",
        description: "A session's number or name.",
        schema: || json_schema!({"type": "string", "minLength": 1}),
    },
    Parameter {
        name: "object",
        description: "An object's number.",
        schema: || json_schema!({"type": "integer", "minimum": 0, "maximum": u32::MAX}),
    },
];

/// Errors that any request may be answered with: it makes no sense, or is refused before it is looked at.
pub(crate) const ANY: [ErrorCode; 4] =
    [ErrorCode::BadRequest, ErrorCode::Unauthorized, ErrorCode::WrongHost, ErrorCode::TooMany];
