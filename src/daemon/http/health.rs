//! State of the daemon: the operation, and silence that makes it unwell.

use super::answer::{AnswerBody, json};
use super::route::Asked;
use crate::daemon::client::peer::Peer;
use crate::daemon::state::Daemon;
use dataspace_proto::api::{ApiError, Health, HealthStatus, MemoryLine, SessionState};
use hyper::Response;
use std::time::Duration;

/// Sessions that are silent for longer make the daemon unwell: an analyzer answers in microseconds.
pub(crate) const MAX_SILENCE: Duration = Duration::from_secs(20);

/// State of the daemon, as far as the peer may see.
pub(crate) async fn answer(asked: Asked<'_>) -> Result<Response<AnswerBody>, ApiError> {
    Ok(json(asked.route.success, &state(asked.daemon, asked.peer)))
}

fn state(daemon: &Daemon, peer: &Peer) -> Health {
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
