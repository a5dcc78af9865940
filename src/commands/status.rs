//! `dataspace status`: how the daemon is.

use super::json;
use crate::cli::{AskArgs, Global};
use crate::client::Client;
use crate::diagnostic;
use crate::exit::{Failure, Kind};
use crate::text::span;
use dataspace_proto::api::Health;
use std::io::{Write, stdout};

/// Runs the command.
pub(super) fn run(args: &AskArgs, global: &Global) -> anyhow::Result<()> {
    diagnostic::start(global.verbose, false);
    let health: Health = Client::new(&args.socket.path).get("health")?;
    let mut out = stdout().lock();
    if args.json {
        json::write(&health, &mut out)?;
    } else {
        writeln!(out, "{}", sentence(&health))?;
    }
    out.flush()?;
    if health.status == "ok" {
        return Ok(());
    }
    let what = format!("the daemon is {}", health.status);
    Err(Failure::new(Kind::Failed, what).with_remedy("dataspace sessions   why").into())
}

fn sentence(health: &Health) -> String {
    let Health { status, version, n_sessions, n_attached, n_failed, .. } = health;
    let whose = if health.sees_all { "sessions" } else { "sessions of yours" };
    let connections =
        health.n_connections.map(|n| format!(", connections {n}")).unwrap_or_default();
    let uptime = span(health.uptime_ns);
    format!(
        "{status}: version {version}, up {uptime}, {whose} {n_sessions} (attached {n_attached}, \
         failed {n_failed}){connections}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_whose_sessions_are_counted() {
        let health = Health {
            status: "ok".into(),
            version: "1.2.3".into(),
            sees_all: true,
            uptime_ns: 61_000_000_000,
            n_sessions: 3,
            n_attached: 2,
            n_failed: 1,
            n_connections: Some(4),
        };
        let expected =
            "ok: version 1.2.3, up 1:01, sessions 3 (attached 2, failed 1), connections 4";
        assert_eq!(sentence(&health), expected);
        let own = Health { sees_all: false, n_connections: None, ..health };
        assert!(sentence(&own).contains("sessions of yours 3"));
        assert!(!sentence(&own).contains("connections"));
    }
}
