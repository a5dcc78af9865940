//! Requests to the daemon and its answers, beside snapshots.

use crate::measure::Measure;
use crate::window::WindowLengths;
use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The first part of every path of the API. It changes when an answer's meaning does.
pub const VERSION: &str = "v1";

/// A session that somebody wants: as a table of the configuration, or as the body of an attach
/// request. It names one target of `pids`, `tids`, `unit`, `cgroup` and `all`, which `comm` and
/// `exclude_comm` may narrow; or `comm` alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = one_target_and_one_rate)]
pub struct SessionSpec {
    /// The session's name, beside its number. Only a user who sees all sessions may name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = Self::MAX_NAME_BYTES))]
    #[schemars(pattern(r"^[A-Za-z0-9._@:-]*[A-Za-z._@:-][A-Za-z0-9._@:-]*$"))]
    pub name: Option<String>,
    /// Processes: all their threads, and the children born from now on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = Self::MAX_NAMED), inner(range(min = 1, max = i32::MAX)))]
    pub pids: Vec<i32>,
    /// Single threads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = Self::MAX_NAMED), inner(range(min = 1, max = i32::MAX)))]
    pub tids: Vec<i32>,
    /// A unit of systemd.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub unit: Option<String>,
    /// A control group: its directory, or the path in `/proc/PID/cgroup`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub cgroup: Option<String>,
    /// Every process of the machine.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Only processes of these names; without another target, all of them, now and later. The kernel
    /// keeps 15 bytes of a name; a longer one is refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = Self::MAX_NAMED), inner(length(min = 1, max = 15)))]
    pub comm: Vec<String>,
    /// No processes of these names. The kernel keeps 15 bytes of a name; a longer one is refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = Self::MAX_NAMED), inner(length(min = 1, max = 15)))]
    pub exclude_comm: Vec<String>,
    /// Events to sample, each as `dataspace top --event` takes it; without any, the best one of the
    /// machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = Self::MAX_NAMED), inner(length(min = 1)))]
    #[schemars(extend("examples" = [["cpu-clock"]]))]
    pub events: Vec<String>,
    /// A measurement, which says what is sampled and what is counted beside it: `dcache`, `dtlb`, `icache`, `itlb`, `faults`
    /// or `time`; not with `events` or `frequency_hz`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", example = &"faults")]
    pub measure: Option<Measure>,
    /// Number of events from one sample to the next; not with `frequency_hz`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = u64::MAX))]
    pub period: Option<u64>,
    /// Samples a second of each thread on a CPU; not with `period`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = u64::MAX))]
    pub frequency_hz: Option<u64>,
    /// Memory that keeps the newest samples, for questions, as `--history` takes it: `64M`, or `0` for none; without it 16M,
    /// and no more than that for users who see only their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    #[schemars(extend("examples" = ["64M"]))]
    pub history: Option<String>,
    /// Limit of the cost of sampling, as `--max-overhead` takes it: a share of CPU time from 0.01% to
    /// 100%, or `off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"1%", example = &"off")]
    pub max_overhead: Option<String>,
    /// Pages of each CPU's ring, a power of two.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub ring_pages: Option<usize>,
    /// Maximum number of objects in a snapshot, `<Total>` among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = u64::MAX))]
    pub max_objects: Option<usize>,
    /// Windows that metrics are summed over, in seconds, besides the time since the session began;
    /// without it 60, 10 and 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows_s: Option<WindowLengths>,
}

impl SessionSpec {
    /// Maximum number of processes, threads, names or events of one session.
    pub const MAX_NAMED: usize = 1024;

    /// Length of the longest name of a session.
    pub const MAX_NAME_BYTES: usize = 64;
}

/// Adds the rules that concern several fields: there is one target, and one of `period` and
/// `frequency_hz` at most.
fn one_target_and_one_rate(schema: &mut Schema) {
    let targets = ["pids", "tids", "unit", "cgroup"];
    let alternative = |target: &str| {
        let others = targets.iter().filter(|other| **other != target);
        let others: Vec<Schema> = others.map(|other| json_schema!({"required": [other]})).collect();
        json_schema!({
            "required": [target],
            "properties": {"all": {"const": target == "all"}},
            "not": {"anyOf": others},
        })
    };
    let alternatives: Vec<Schema> =
        targets.into_iter().chain(["all", "comm"]).map(alternative).collect();
    let rules = json_schema!({
        "oneOf": alternatives,
        "not": {"required": ["period", "frequency_hz"]},
    });
    schema.ensure_object().extend(rules.as_object().cloned().unwrap_or_default());
}

named! {
    /// State of a session.
    #[derive(JsonSchema)]
    SessionState {
        /// Its events are being opened for the first time.
        Starting = "starting";
        /// It samples.
        Attached = "attached";
        /// Its target is not there and is looked for, or memory is short: `detail` tells the reason.
        Waiting = "waiting";
        /// Its target has ended and does not come back, or it was ended for want of memory: the totals are
        /// final.
        Ended = "ended";
        /// It could not be attached, or not again: `detail` tells the reason.
        Failed = "failed";
        /// It was detached: the totals are final.
        Detached = "detached";
    }
}

/// Source of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The configuration.
    Configuration,
    /// An attach request.
    Request,
}

/// One session, as lists have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionLine {
    /// Its number: no other session of this daemon gets it.
    #[schemars(range(min = 1))]
    pub id: u64,
    /// Its name, if it has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Its source.
    pub origin: Origin,
    /// Its owner: the user who asked for it, or the daemon's own user.
    pub uid: u32,
    /// Its state.
    pub state: SessionState,
    /// Reason of its state, where that is not plain.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detail: Option<String>,
    /// Description of its target, for a person.
    pub target: String,
    /// The events that are open.
    pub events: Vec<String>,
    /// Number of times that it was attached: a target that came back is attached again.
    pub n_attached: u64,
}

/// All sessions that the client may see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionList {
    /// The sessions, in the order of their numbers.
    pub sessions: Vec<SessionLine>,
}

/// Account of every sample of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccountingAnswer {
    /// Time since the session was last attached.
    pub elapsed_ns: u64,
    /// The account, as in snapshots.
    pub accounting: crate::accounting::Accounting,
}

/// State of the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// `degraded` where a session of the configuration is failed or silent, or its events are not open
    /// after 20 s.
    pub status: HealthStatus,
    /// The program's version.
    pub version: String,
    /// True where the client may see all sessions, false where only those of its own user.
    pub sees_all: bool,
    /// Time since the daemon began.
    pub uptime_ns: u64,
    /// Sessions that the client may see.
    pub n_sessions: usize,
    /// Those of them that sample.
    pub n_attached: usize,
    /// Those of them that failed.
    pub n_failed: usize,
    /// Open connections, where the client may see all sessions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub n_connections: Option<usize>,
    /// State of the bound on memory, where there is one and the client may see all sessions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory: Option<MemoryLine>,
}

named! {
    /// Health of the daemon in one word.
    #[derive(JsonSchema)]
    HealthStatus {
        /// All is well.
        Ok = "ok";
        /// A session of the configuration does not work.
        Degraded = "degraded";
    }
}

/// State of the bound on the daemon's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryLine {
    /// The bound.
    pub max_bytes: u64,
    /// Resident memory, as the kernel counts it.
    pub resident_bytes: u64,
    /// True while samples are not named, and no session begins, for want of memory.
    pub is_short: bool,
    /// Number of times that each kind of thing was given up: caches, indices, answers, work, sessions.
    pub shed: BTreeMap<String, u64>,
}

/// Reason of a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApiError {
    /// One word, for a program.
    pub code: ErrorCode,
    /// A sentence, for a person.
    pub message: String,
}

/// Kind of a refusal.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The request makes no sense.
    BadRequest,
    /// Over TCP: the request has no token, or not the daemon's.
    Unauthorized,
    /// Over TCP: the request is meant for a machine of another name.
    WrongHost,
    /// The client may not do that.
    NotPermitted,
    /// There is no such path, or no such thing that the client may see.
    NotFound,
    /// The path does not take this method.
    MethodNotAllowed,
    /// The request's body is longer than allowed.
    TooLarge,
    /// The request's target is longer than can be read.
    UriTooLong,
    /// The request's headers are longer, or more, than can be read.
    HeadTooLarge,
    /// The request, or its body, did not come in time.
    TooSlow,
    /// A limit of the daemon is reached.
    TooMany,
    /// There is a session of that name.
    NameTaken,
    /// The target cannot be profiled.
    NotAttached,
    /// The target cannot be profiled with the privileges that the daemon has.
    MissingPrivilege,
    /// This machine or its kernel lacks what the request asks for.
    Unsupported,
    /// The session has no snapshot yet.
    NoSnapshot,
    /// The daemon ends.
    Ending,
}

impl ErrorCode {
    /// The status of HTTP that goes with it (RFC 9110, section 15).
    #[must_use]
    pub const fn http_status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::NotPermitted => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::TooSlow => 408,
            Self::NameTaken | Self::NoSnapshot => 409,
            Self::TooLarge => 413,
            Self::UriTooLong => 414,
            Self::WrongHost => 421,
            Self::NotAttached | Self::MissingPrivilege | Self::Unsupported => 422,
            Self::TooMany => 429,
            Self::HeadTooLarge => 431,
            Self::Ending => 503,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_specification_has_no_unknown_keys_and_says_no_more_than_was_said() {
        let spec: SessionSpec = serde_json::from_str(r#"{"pids":[7]}"#).unwrap();
        assert_eq!(spec, SessionSpec { pids: vec![7], ..SessionSpec::default() });
        assert_eq!(serde_json::to_string(&spec).unwrap(), r#"{"pids":[7]}"#);
        let error = serde_json::from_str::<SessionSpec>(r#"{"pid":7}"#).unwrap_err();
        assert!(error.to_string().contains("unknown field `pid`"), "{error}");
    }

    #[test]
    fn names_are_those_of_json() {
        for state in [SessionState::Starting, SessionState::Ended, SessionState::Detached] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
        for status in [HealthStatus::Ok, HealthStatus::Degraded] {
            assert_eq!(serde_json::to_value(status).unwrap(), status.name());
        }
        assert_eq!(serde_json::to_value(ErrorCode::NotPermitted).unwrap(), "not_permitted");
    }
}
