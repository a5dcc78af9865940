//! Limits of the daemon, as its configuration has them.

use crate::cli::value;
use crate::memory_bound;
use serde::Deserialize;
use std::time::Duration;

/// Limits of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// Sessions at once; each has four threads, and rings on every CPU.
    pub(crate) sessions: usize,
    /// Sessions at once that one user may have who does not see all.
    pub(crate) sessions_per_user: usize,
    /// Connections at once.
    pub(crate) connections: usize,
    /// Connections at once that one user may have who does not see all.
    pub(crate) connections_per_user: usize,
    /// The longest body of a request.
    pub(crate) request_bytes: usize,
    /// Time that a request may take to arrive, in seconds.
    pub(crate) request_s: u64,
    /// Time that a client may take nothing of what is sent to it, in seconds.
    pub(crate) stall_s: u64,
    /// The resident memory that the daemon and its workers may take.
    pub(crate) memory_max: MemoryMax,
}

/// A bound on memory, as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum MemoryMax {
    /// None was named.
    #[default]
    Usual,
    /// `off`.
    Off,
    /// This many bytes.
    Bytes(u64),
}

impl MemoryMax {
    /// Reads `off` or a size.
    ///
    /// # Errors
    /// Words on what is expected.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        value::size(text).map(Self::Bytes).map_err(|expected| format!("{expected}, or off"))
    }

    /// The bound for a daemon that has `n_sessions` from the beginning.
    pub(crate) fn bytes(self, n_sessions: usize) -> Option<u64> {
        match self {
            Self::Usual => Some(memory_bound::usual_bytes(n_sessions)),
            Self::Off => None,
            Self::Bytes(bytes) => Some(bytes),
        }
    }

    /// Tells whether there is room for so many sessions.
    ///
    /// # Errors
    /// What they need.
    pub(crate) fn check(self, n_sessions: usize) -> Result<(), String> {
        match self {
            Self::Bytes(bytes) => memory_bound::check(bytes, n_sessions),
            Self::Usual | Self::Off => Ok(()),
        }
    }
}

impl TryFrom<String> for MemoryMax {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 32,
            sessions_per_user: 4,
            connections: 256,
            connections_per_user: 32,
            request_bytes: 64 << 10,
            request_s: 5,
            stall_s: 30,
            memory_max: MemoryMax::Usual,
        }
    }
}

impl Limits {
    /// Time that a request may take to arrive.
    pub(crate) const fn request_time(&self) -> Duration {
        Duration::from_secs(self.request_s)
    }

    /// Time that a client may take nothing.
    pub(crate) const fn stall_time(&self) -> Duration {
        Duration::from_secs(self.stall_s)
    }
}
