//! `dataspace status`: state of the daemon.

use super::json;
use crate::cli::{AskArgs, Global};
use crate::diagnostic;
use crate::exit::{Failure, Kind};
use crate::text::{span, visible};
use dataspace_proto::api::{Health, HealthStatus, MemoryLine};
use std::io::{Write, stdout};

/// Runs the command.
pub(super) fn run(args: &AskArgs, global: &Global) -> anyhow::Result<()> {
    diagnostic::start(global.verbose, false);
    let client = args.socket.client()?;
    let health: Health = client.get("health")?;
    let mut out = stdout().lock();
    if args.json {
        json::write(&health, &mut out)?;
    } else {
        writeln!(out, "{}", visible(&sentence(&health)))?;
    }
    out.flush()?;
    if health.status == HealthStatus::Ok {
        return Ok(());
    }
    let what = format!("the daemon is {}", health.status.name());
    Err(Failure::new(Kind::Failed, what)
        .with_remedy(format!("{}   why", client.typed("sessions")))
        .into())
}

fn sentence(health: &Health) -> String {
    let Health { status, version, n_sessions, n_attached, n_failed, .. } = health;
    let whose = if health.sees_all { "sessions" } else { "sessions of yours" };
    let connections =
        health.n_connections.map(|n| format!(", connections {n}")).unwrap_or_default();
    let uptime = span(health.uptime_ns);
    format!(
        "{}: version {version}, up {uptime}, {whose} {n_sessions} (attached {n_attached}, \
         failed {n_failed}){connections}{}",
        status.name(),
        health.memory.as_ref().map(memory).unwrap_or_default()
    )
}

fn memory(memory: &MemoryLine) -> String {
    let mib = |bytes: u64| bytes >> 20;
    let shed = memory.shed.iter().filter(|(_, n)| **n > 0);
    let shed: Vec<String> = shed.map(|(what, n)| format!("{what} {n}")).collect();
    let shed =
        if shed.is_empty() { String::new() } else { format!(" (given up: {})", shed.join(", ")) };
    let short = if memory.is_short { "; memory is short: samples are over_budget" } else { "" };
    format!(", memory {} of {} MiB{shed}{short}", mib(memory.resident_bytes), mib(memory.max_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_whose_sessions_are_counted() {
        let health = Health {
            status: HealthStatus::Ok,
            version: "1.2.3".into(),
            sees_all: true,
            uptime_ns: 61_000_000_000,
            n_sessions: 3,
            n_attached: 2,
            n_failed: 1,
            n_connections: Some(4),
            memory: None,
        };
        let expected =
            "ok: version 1.2.3, up 1:01, sessions 3 (attached 2, failed 1), connections 4";
        assert_eq!(sentence(&health), expected);
        let (max_bytes, resident_bytes) = (512 << 20, 100 << 20);
        let shed = [("caches".to_owned(), 3), ("work".to_owned(), 0)].into();
        let memory = MemoryLine { max_bytes, resident_bytes, is_short: false, shed };
        let bounded = Health { memory: Some(memory.clone()), ..health.clone() };
        let said = sentence(&bounded);
        assert!(said.ends_with(", memory 100 of 512 MiB (given up: caches 3)"), "{said}");
        let memory = MemoryLine { is_short: true, ..memory };
        let said = sentence(&Health { memory: Some(memory), ..health.clone() });
        assert!(said.ends_with("; memory is short: samples are over_budget"), "{said}");
        let own = Health { sees_all: false, n_connections: None, ..health };
        assert!(sentence(&own).contains("sessions of yours 3"));
        assert!(!sentence(&own).contains("connections"));
    }
}
