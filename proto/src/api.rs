//! What the daemon and its clients say to each other, beside snapshots.

use crate::window::WindowLengths;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The first part of every path of the API. It changes when an answer's meaning does.
pub const VERSION: &str = "v1";

/// A session that somebody wants: as a table of the configuration, or as the body of an attach
/// request. One target is named, which `comm` and `exclude_comm` may narrow; or `comm` alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionSpec {
    /// What it is called, beside its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Processes: all their threads, and the children born from now on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pids: Vec<i32>,
    /// Single threads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tids: Vec<i32>,
    /// A unit of systemd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// A control group: its directory, or the path in `/proc/PID/cgroup`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// Every process of the machine.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Only processes of these names; without another target, all of them, now and later.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub comm: Vec<String>,
    /// No processes of these names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude_comm: Vec<String>,
    /// Events as `--event` takes them; none: the best one that there is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// One sample each so many events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<u64>,
    /// So many samples a second of each thread on a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_hz: Option<u64>,
    /// What sampling may cost, as `--max-overhead` takes it: `1%`, `off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_overhead: Option<String>,
    /// Pages of each CPU's ring, a power of two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ring_pages: Option<usize>,
    /// Objects that a snapshot lists at most, `<Total>` among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_objects: Option<usize>,
    /// What metrics are summed over, in seconds, besides the time since the session began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows_s: Option<WindowLengths>,
}

/// How a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionState {
    /// Its events are being opened for the first time.
    Starting,
    /// It samples.
    Attached,
    /// Its target is not there and is looked for, or memory is short: `detail` says which.
    Waiting,
    /// Its target has ended and does not come back, or it was ended for want of memory: the totals are
    /// final.
    Ended,
    /// It cannot be had, or no longer: `detail` says why.
    Failed,
    /// It was detached: the totals are final.
    Detached,
}

impl SessionState {
    /// As in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Attached => "attached",
            Self::Waiting => "waiting",
            Self::Ended => "ended",
            Self::Failed => "failed",
            Self::Detached => "detached",
        }
    }
}

/// Where a session comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The configuration.
    Configuration,
    /// An attach request.
    Request,
}

/// One session, as lists have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionLine {
    /// Its number: no other session of this daemon gets it.
    pub id: u64,
    /// What it is called, if anything.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Where it comes from.
    pub origin: Origin,
    /// Whose it is: the user that asked for it, or the daemon's own.
    pub uid: u32,
    /// How it stands.
    pub state: SessionState,
    /// Why it stands so, where that is not plain.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detail: Option<String>,
    /// What is profiled, for a person.
    pub target: String,
    /// The events that are open.
    pub events: Vec<String>,
    /// How often it was attached: a target that came back is attached again.
    pub n_attached: u64,
}

/// All sessions that the asking user may see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionList {
    /// In the order of their numbers.
    pub sessions: Vec<SessionLine>,
}

/// Where every sample of a session went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountingAnswer {
    /// Time since the session was last attached.
    pub elapsed_ns: u64,
    /// As in snapshots.
    pub accounting: crate::accounting::Accounting,
}

/// How the daemon is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// `ok`, or `degraded` where a session of the configuration is failed or silent, or its events are not
    /// open after 20 s.
    pub status: String,
    /// The program's version.
    pub version: String,
    /// Whether the asking user may see all sessions, or his own only.
    pub sees_all: bool,
    /// Time since the daemon began.
    pub uptime_ns: u64,
    /// Sessions that the asking user may see.
    pub n_sessions: usize,
    /// Those of them that sample.
    pub n_attached: usize,
    /// Those of them that failed.
    pub n_failed: usize,
    /// Open connections, where the asking user may see all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub n_connections: Option<usize>,
    /// How the bound on memory stands, if there is one and the asking user may see all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory: Option<MemoryLine>,
}

/// How a bound on the daemon's memory stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryLine {
    /// The bound.
    pub max_bytes: u64,
    /// Resident memory, as the kernel counts it.
    pub resident_bytes: u64,
    /// Whether samples are not named for want of memory.
    pub is_short: bool,
    /// How often each kind of thing was given up, sessions among them.
    pub shed: BTreeMap<String, u64>,
}

/// Why a request was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiError {
    /// One word, for a program.
    pub code: ErrorCode,
    /// A sentence, for a person.
    pub message: String,
}

/// The kinds of [`ApiError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The request makes no sense.
    BadRequest,
    /// A request over TCP has no token, or not the daemon's.
    Unauthorized,
    /// A request over TCP is meant for a machine of another name.
    WrongHost,
    /// The asking user may not do that.
    NotPermitted,
    /// There is no such path, or no such session that the asking user may see.
    NotFound,
    /// The path does not take this method.
    MethodNotAllowed,
    /// The request's body is longer than allowed.
    TooLarge,
    /// The request's target is longer than can be read.
    UriTooLong,
    /// The request's headers are longer, or more, than can be read.
    HeadTooLarge,
    /// The request did not come in time.
    TooSlow,
    /// A limit of the daemon is reached.
    TooMany,
    /// There is a session of that name.
    NameTaken,
    /// The target cannot be profiled.
    NotAttached,
    /// The target cannot be profiled with the privileges that the daemon has.
    MissingPrivilege,
    /// This machine or its kernel has not got it.
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
        assert_eq!(serde_json::to_value(ErrorCode::NotPermitted).unwrap(), "not_permitted");
    }
}
