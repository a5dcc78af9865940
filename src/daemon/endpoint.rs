//! Operations of the API: paths and methods, what a request may carry, and every possible answer.

use super::answer::JSON;
use super::metrics;
use super::stream::{DEFAULT_INTERVAL_MS, INTERVALS};
use dataspace_proto::api::{
    AccountingAnswer, ErrorCode, Health, SessionLine, SessionList, SessionSpec,
};
use dataspace_proto::object_detail::{ObjectDetail, ObjectLayout};
use dataspace_proto::snapshot::Snapshot;
use hyper::{Method, StatusCode};
use schemars::{Schema, SchemaGenerator, json_schema};

/// Names of the operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    Metrics,
    OpenApi,
    Health,
    Sessions,
    Attach,
    Session,
    Detach,
    Snapshot,
    Accounting,
    Stream,
    Pprof,
    Folded,
    Object,
    Layout,
}

/// One operation: from this the daemon knows what to answer, and the document is made of it.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) endpoint: Endpoint,
    /// The method; HEAD is answered wherever it is GET.
    pub(super) method: &'static Method,
    /// With the names of its keys in braces: see [`KEYS`].
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    pub(super) description: Option<&'static str>,
    /// The parameters that its query may have.
    pub(super) query: &'static [Parameter],
    /// The body that it needs.
    pub(super) request: Option<Content>,
    /// The status of its answer, where it has one.
    pub(super) success: StatusCode,
    /// The body of that answer.
    pub(super) answer: Content,
    /// Errors that may be answered instead, besides [`ANY`].
    pub(super) errors: &'static [ErrorCode],
}

/// A key in a path, or a parameter of a query.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) schema: fn() -> Schema,
}

/// A body: its media type, and the schema of what is in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content {
    pub(super) kind: &'static str,
    pub(super) schema: fn(&mut SchemaGenerator) -> Schema,
}

impl Content {
    const fn json(schema: fn(&mut SchemaGenerator) -> Schema) -> Self {
        Self { kind: JSON, schema }
    }

    const fn text(kind: &'static str) -> Self {
        Self { kind, schema: SchemaGenerator::subschema_for::<String> }
    }
}

/// Keys in paths.
pub(super) static KEYS: [Parameter; 2] = [
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

const ENDS_UNWATCHED: Parameter = Parameter {
    name: "ends_unwatched",
    description: "True for a session that ends by itself, and is gone, when for ten seconds no stream of it was \
                  open and nothing of its totals was asked for. So it does not outlive a client that is killed.",
    schema: || json_schema!({"type": "boolean", "default": false}),
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

/// Errors that any request may be answered with: it makes no sense, or is refused before it is looked at.
pub(super) const ANY: [ErrorCode; 4] =
    [ErrorCode::BadRequest, ErrorCode::Unauthorized, ErrorCode::WrongHost, ErrorCode::TooMany];

/// Errors of what is made of a session's snapshot.
const OF_SNAPSHOT: &[ErrorCode] = &[ErrorCode::NotFound, ErrorCode::NoSnapshot];

/// What most operations are: GET, without parameters or a body. Each has the rest of its own.
const GET: Route = Route {
    endpoint: Endpoint::Metrics,
    method: &Method::GET,
    path: "",
    summary: "",
    description: None,
    query: &[],
    request: None,
    success: StatusCode::OK,
    answer: Content::text(""),
    errors: &[],
};

/// Every operation.
pub(super) static ROUTES: [Route; 14] = [
    Route {
        endpoint: Endpoint::Metrics,
        path: "/metrics",
        summary: "Metrics in the text format of Prometheus.",
        answer: Content::text(metrics::CONTENT_TYPE),
        ..GET
    },
    Route {
        endpoint: Endpoint::OpenApi,
        path: "/v1/openapi.json",
        summary: "This document.",
        answer: Content::json(|_| json_schema!({"type": "object"})),
        ..GET
    },
    Route {
        endpoint: Endpoint::Health,
        path: "/v1/health",
        summary: "State of the daemon.",
        answer: Content::json(SchemaGenerator::subschema_for::<Health>),
        ..GET
    },
    Route {
        endpoint: Endpoint::Sessions,
        path: "/v1/sessions",
        summary: "Sessions that the client may see.",
        answer: Content::json(SchemaGenerator::subschema_for::<SessionList>),
        ..GET
    },
    Route {
        endpoint: Endpoint::Attach,
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
        endpoint: Endpoint::Session,
        path: "/v1/sessions/{session}",
        summary: "One session.",
        answer: Content::json(SchemaGenerator::subschema_for::<SessionLine>),
        errors: &[ErrorCode::NotFound],
        ..GET
    },
    Route {
        endpoint: Endpoint::Detach,
        method: &Method::DELETE,
        path: "/v1/sessions/{session}",
        summary: "Ends a session, and gives its last state.",
        answer: Content::json(SchemaGenerator::subschema_for::<SessionLine>),
        errors: &[ErrorCode::NotFound, ErrorCode::NotPermitted],
        ..GET
    },
    Route {
        endpoint: Endpoint::Snapshot,
        path: "/v1/sessions/{session}/snapshot",
        summary: "Totals of a session at this moment.",
        answer: Content::json(SchemaGenerator::subschema_for::<Snapshot>),
        errors: OF_SNAPSHOT,
        ..GET
    },
    Route {
        endpoint: Endpoint::Accounting,
        path: "/v1/sessions/{session}/accounting",
        summary: "Account of every sample of a session.",
        answer: Content::json(SchemaGenerator::subschema_for::<AccountingAnswer>),
        errors: OF_SNAPSHOT,
        ..GET
    },
    Route {
        endpoint: Endpoint::Stream,
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
        endpoint: Endpoint::Pprof,
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
        endpoint: Endpoint::Folded,
        path: "/v1/sessions/{session}/folded",
        summary: "Totals of a session as folded stacks, for flame graphs.",
        answer: Content::text("text/plain; charset=utf-8"),
        errors: OF_SNAPSHOT,
        ..GET
    },
    Route {
        endpoint: Endpoint::Object,
        path: "/v1/sessions/{session}/objects/{object}",
        summary: "One object in detail.",
        answer: Content::json(SchemaGenerator::subschema_for::<ObjectDetail>),
        errors: OF_SNAPSHOT,
        ..GET
    },
    Route {
        endpoint: Endpoint::Layout,
        path: "/v1/sessions/{session}/objects/{object}/layout",
        summary: "Layout of the outermost aggregate around an object, with what happens where.",
        answer: Content::json(SchemaGenerator::subschema_for::<ObjectLayout>),
        errors: OF_SNAPSHOT,
        ..GET
    },
];
