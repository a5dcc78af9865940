//! Metrics for Prometheus: the text format 0.0.4, base units, and a bounded number of series.

use super::answer::{AnswerBody, full};
use super::route::Asked;
use super::totals::FRESH;
use crate::daemon::client::peer::{Peer, Rank};
use crate::daemon::session::Session;
use crate::daemon::state::Daemon;
use crate::session::cost;
use crate::text::visible;
use dataspace_proto::accounting::Accounting;
use dataspace_proto::api::{ApiError, SessionState};
use dataspace_proto::event_count::EventCount;
use dataspace_proto::reason::Reason;
use dataspace_proto::worker::Figures;
use hyper::Response;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// As the text is announced.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Time that fresh snapshots of all sessions together are waited for: what has not come by then is told as it was.
const PATIENCE: Duration = Duration::from_millis(500);

/// All metrics that the peer may see, as things stand now.
pub(crate) async fn answer(asked: Asked<'_>) -> Result<Response<AnswerBody>, ApiError> {
    let text = text(asked.daemon, asked.peer).await;
    Ok(full(asked.route.success, asked.route.answer.kind, text.into()))
}

async fn text(daemon: &Daemon, peer: &Peer) -> String {
    let sessions = daemon.roster.visible(peer);
    renew(sessions.iter().filter(|session| has_series(session, peer))).await;
    let mut text = Text::default();
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    text.family("dataspace_build_info", "gauge", "The version that runs, as a label.")
        .sample(&version, 1.0);
    if peer.sees_all() {
        own(&mut text, daemon);
    }
    let mut family = text.family("dataspace_sessions", "gauge", "Sessions by state.");
    for state in SessionState::ALL {
        let n = sessions.iter().filter(|session| session.status().state == state).count();
        family.sample(&[("state", state.name())], number(n as u64));
    }
    let (mut shown, mut attached) = (Vec::new(), Vec::new());
    for session in sessions.iter().filter(|session| has_series(session, peer)) {
        let Some(frame) = session.newest() else { continue };
        let figures = frame.figures.clone();
        let label = label(session, &sessions);
        // What is so now is not known of one that has ended, or waits for its target.
        if session.status().state == SessionState::Attached {
            attached.push((label.clone(), figures.clone()));
        }
        shown.push((label, figures));
    }
    accounts(&mut text, &shown);
    counts(&mut text, &attached);
    queues(&mut text, &attached);
    objects(&mut text, &attached);
    text.0
}

/// Tells whether a session has series of its own. A user who sees all sessions gets none for those of plain
/// users, each of whom could make any number of series by attaching again and again.
fn has_series(session: &Session, peer: &Peer) -> bool {
    !peer.sees_all() || session.owner.rank == Rank::Privileged
}

/// The session's name, or its number where it has none, or where the configuration has given the name
/// to another since: two series of the same labels are an error.
fn label(session: &Session, all: &[Arc<Session>]) -> String {
    let name = session.spec.name.as_ref();
    let is_namesake = |one: &Arc<Session>| one.is_configured() && one.spec.name.as_ref() == name;
    let name = name.filter(|_| session.is_configured() || !all.iter().any(is_namesake));
    name.cloned().unwrap_or_else(|| session.id.to_string())
}

/// Has `sessions` make fresh snapshots, all at once, and waits until they have or [`PATIENCE`] is over.
async fn renew(sessions: impl Iterator<Item = &Arc<Session>>) {
    let mut renewals: JoinSet<_> = sessions
        .cloned()
        .map(|session| async move { session.renewed(FRESH).await.is_some() })
        .collect();
    let _ = tokio::time::timeout(PATIENCE, async { while renewals.join_next().await.is_some() {} })
        .await;
}

fn own(text: &mut Text, daemon: &Daemon) {
    let cost = cost::so_far(0);
    let mut one = |name, kind, help, value| text.family(name, kind, help).sample(&[], value);
    let help = "CPU time that the daemon has used, without its workers.";
    one("dataspace_process_cpu_seconds_total", "counter", help, seconds(cost.own_cpu_ns));
    let help = "Memory of the daemon and of its workers that is resident.";
    one(
        "dataspace_process_resident_memory_bytes",
        "gauge",
        help,
        number(daemon.staff.resident_bytes()),
    );
    if let Some(state) = daemon.staff.memory() {
        let help = "What resident memory may be.";
        one("dataspace_memory_max_bytes", "gauge", help, number(state.max_bytes));
        let help = "1 where samples are not named, and no session begins, for want of memory.";
        one("dataspace_memory_is_short", "gauge", help, number(u64::from(state.is_short)));
        let help = "How often something was given up for want of memory.";
        let mut family = text.family("dataspace_memory_shed_total", "counter", help);
        for (what, n) in state.shed() {
            family.sample(&[("what", what)], number(n));
        }
    }
    text.family("dataspace_connections", "gauge", "Open connections.")
        .sample(&[], number(daemon.connections.count() as u64));
}

/// Account of the samples. The sum of `attributed`, `unknown`, `not_memory` and `lost`, and of the samples that
/// wait, is `kernel`.
fn accounts(text: &mut Text, sessions: &[(String, Figures)]) {
    type Count = fn(&Accounting) -> u64;
    let plain: [(&'static str, &str, Count); 3] = [
        ("dataspace_kernel_samples_total", "Samples that the kernel took.", |s| s.kernel),
        ("dataspace_attributed_samples_total", "Samples with a data object.", |s| s.attributed),
        (
            "dataspace_not_memory_samples_total",
            "Samples whose instruction accesses no memory.",
            |s| s.not_memory,
        ),
    ];
    for (name, help, count) in plain {
        let mut family = text.family(name, "counter", help);
        for (session, figures) in sessions {
            family.sample(&[("session", session)], number(count(&figures.accounting)));
        }
    }
    let help = "Samples without a data object, by reason.";
    let mut family = text.family("dataspace_unknown_samples_total", "counter", help);
    for (session, figures) in sessions {
        // What waits for its answer is no count that only rises: it is a queue.
        let decided = figures.accounting.unknown.iter();
        for (reason, n) in decided.filter(|(reason, _)| **reason != Reason::Pending) {
            let reason = reason.name();
            family.sample(&[("session", session), ("reason", reason)], number(*n));
        }
    }
    let help = "Samples lost before attribution, by cause.";
    let mut family = text.family("dataspace_lost_samples_total", "counter", help);
    for (session, figures) in sessions {
        let lost = figures.accounting.lost;
        let causes = [
            ("ring_full", lost.ring_full),
            ("channel_full", lost.channel_full),
            ("undecodable", lost.undecodable),
        ];
        for (cause, n) in causes {
            family.sample(&[("session", session), ("cause", cause)], number(n));
        }
    }
    let help = "Time that sampling took from the target.";
    let mut family = text.family("dataspace_target_cost_seconds_total", "counter", help);
    for (session, figures) in sessions {
        family.sample(&[("session", session)], seconds(figures.target_cost_ns));
    }
}

/// Exact counts of measurements, as the counters saw them. An estimate for the time in which none ran may fall, which a
/// counter may not: enabled ÷ running is what to multiply by.
fn counts(text: &mut Text, sessions: &[(String, Figures)]) {
    type Figure = fn(&EventCount) -> f64;
    let families: [(&'static str, &str, Figure); 3] = [
        ("dataspace_events_total", "Events that a measurement counted.", |it| number(it.counted)),
        (
            "dataspace_events_enabled_seconds_total",
            "Time of its tasks in which an event was to be counted.",
            |it| seconds(it.enabled_ns),
        ),
        (
            "dataspace_events_running_seconds_total",
            "Time in which a counter counted an event.",
            |it| seconds(it.running_ns),
        ),
    ];
    for (name, help, figure) in families {
        let mut family = text.family(name, "counter", help);
        for (session, figures) in sessions {
            let counted = figures.counts.iter().filter(|count| count.count.is_some());
            for count in counted {
                let labels = [
                    ("session", session.as_str()),
                    ("event", &count.event),
                    ("selector", &count.selector),
                ];
                family.sample(&labels, figure(count));
            }
        }
    }
}

fn queues(text: &mut Text, sessions: &[(String, Figures)]) {
    let help =
        "What waits: batches of records, questions about code, samples without debug information.";
    let mut family = text.family("dataspace_queue_depth", "gauge", help);
    for (session, figures) in sessions {
        let pending = figures.accounting.unknown.get(&Reason::Pending).copied().unwrap_or(0);
        let depths = [
            ("batches", figures.n_batches),
            ("questions", figures.n_questions),
            ("pending_samples", pending),
        ];
        for (queue, depth) in depths {
            family.sample(&[("session", session), ("queue", queue)], number(depth));
        }
    }
}

/// Gauges over a window: the objects that have a series change, so a counter would go back.
fn objects(text: &mut Text, sessions: &[(String, Figures)]) {
    let help = "Samples of the window, by data object; other stands for all without a series.";
    let mut family = text.family("dataspace_object_samples", "gauge", help);
    for (session, figures) in sessions {
        for (object, n) in &figures.objects {
            let labels =
                [("session", session.as_str()), ("window", &figures.window), ("object", object)];
            family.sample(&labels, number(*n));
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "the format has floats; counts up to 2^53 are exact")]
const fn number(value: u64) -> f64 {
    value as f64
}

fn seconds(time_ns: u64) -> f64 {
    number(time_ns) / 1e9
}

/// The text as it grows.
#[derive(Default)]
struct Text(String);

impl Text {
    /// Begins a family; its samples follow before the next begins.
    fn family(&mut self, name: &'static str, kind: &str, help: &str) -> Family<'_> {
        // Writing to a String cannot fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        Family { name, text: &mut self.0 }
    }
}

/// A family of metrics whose samples are being written.
struct Family<'a> {
    name: &'static str,
    text: &'a mut String,
}

impl Family<'_> {
    fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(self.name);
        for (idx, (label, text)) in labels.iter().enumerate() {
            let before = if idx == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{label}=\"{}\"", escaped(text));
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

/// A label's value: backslash and quote have a backslash before them, and nothing is left that a terminal would obey,
/// whoever made it.
fn escaped(text: &str) -> String {
    visible(text).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::worker::figures_of;

    #[test]
    fn names_that_a_terminal_would_obey_are_written_out() {
        let mut snapshot = fixture::running();
        for line in &mut snapshot.objects {
            line.object = format!("\u{1b}[2J\r\u{202e}{}", line.id).into();
        }
        let mut text = Text::default();
        objects(&mut text, &[("s".to_owned(), figures_of(&fixture::findings_with(snapshot)))]);
        assert!(text.0.contains("\\\\u{1b}[2J\\\\u{d}\\\\u{202e}"), "{}", text.0);
        assert!(!text.0.contains(['\u{1b}', '\r', '\u{202e}']));
        // Nor what somebody made the worker say.
        assert_eq!(escaped("\u{1b}\r\n\"\\"), "\\\\u{1b}\\\\u{d}\\\\u{a}\\\"\\\\");
    }

    #[test]
    fn counts_of_measurements_are_counters_with_their_times() {
        let count = |event: &str, count| EventCount {
            event: event.to_owned(),
            selector: format!("{event}:u"),
            count,
            counted: 70,
            enabled_ns: 2_000_000_000,
            running_ns: 1_000_000_000,
            ..EventCount::default()
        };
        let mut snapshot = fixture::running();
        snapshot.counts = vec![count("minor-faults", Some(140)), count("dtlb-walks", None)];
        let mut text = Text::default();
        let sessions = [("s".to_owned(), figures_of(&fixture::findings_with(snapshot)))];
        counts(&mut text, &sessions);
        let labels = "{session=\"s\",event=\"minor-faults\",selector=\"minor-faults:u\"}";
        for (name, value) in [("", "70"), ("_enabled_seconds", "2"), ("_running_seconds", "1")] {
            let line = format!("dataspace_events{name}_total{labels} {value}");
            assert!(text.0.lines().any(|found| found == line), "{line}: {}", text.0);
        }
        assert!(!text.0.contains("dtlb-walks"), "it was not counted: {}", text.0);
    }

    #[test]
    fn objects_have_the_window_nearest_a_minute_as_a_label() {
        let check = |seconds: Vec<u64>, expect: &str| {
            let mut text = Text::default();
            let findings = fixture::findings_with(fixture::with_windows(seconds));
            objects(&mut text, &[("s".to_owned(), figures_of(&findings))]);
            let label = format!("{{session=\"s\",window=\"{expect}\",object=\"");
            let samples = text.0.lines().filter(|line| !line.starts_with('#'));
            assert!(samples.clone().count() > 5, "{}", text.0);
            assert!(samples.clone().all(|line| line.contains(&label)), "{}", text.0);
        };
        check(vec![60, 10, 1], "60s");
        check(vec![300, 30, 5], "30s");
        check(vec![300, 90], "90s");
    }

    #[test]
    fn what_waits_and_what_is_lost_is_told_by_queue_and_cause() {
        let mut snapshot = fixture::running();
        snapshot.accounting.unknown.insert(Reason::Pending, 5);
        snapshot.accounting.lost.channel_full = 7;
        let mut text = Text::default();
        let sessions = [("s".to_owned(), figures_of(&fixture::findings_with(snapshot)))];
        accounts(&mut text, &sessions);
        queues(&mut text, &sessions);
        for line in [
            "dataspace_queue_depth{session=\"s\",queue=\"batches\"} 3",
            "dataspace_queue_depth{session=\"s\",queue=\"questions\"} 2",
            "dataspace_queue_depth{session=\"s\",queue=\"pending_samples\"} 5",
            "dataspace_lost_samples_total{session=\"s\",cause=\"channel_full\"} 7",
        ] {
            assert!(text.0.lines().any(|found| found == line), "{line}: {}", text.0);
        }
        // Only what counts up is a total (Prometheus, "Metric and label naming").
        let kinds = text.0.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        for (name, kind) in kinds.filter_map(|line| line.split_once(' ')) {
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
        }
    }

    #[test]
    fn sessions_of_plain_users_have_series_for_themselves_only() {
        use crate::daemon::session::Owner;
        let peer =
            |uid, rank| Peer { uid, gid: uid, pid: 1, groups: Arc::default(), rank, address: None };
        let (user, root) = (peer(7, Rank::User), peer(0, Rank::Privileged));
        let of_user = Session::idle(1, None, Owner::requesting(&user));
        let of_root = Session::idle(2, None, Owner::requesting(&root));
        let configured = Session::idle(3, None, Owner::configuration());
        assert!(has_series(&of_user, &user) && !has_series(&of_user, &root));
        assert!(has_series(&of_root, &root) && has_series(&configured, &root));
        assert!(!has_series(&of_user, &peer(7, Rank::Observer)));
    }

    #[test]
    fn no_two_sessions_have_one_label() {
        use crate::daemon::session::Owner;
        let configured = Owner::configuration();
        let requested = Owner { origin: dataspace_proto::api::Origin::Request, ..configured };
        let named = [(1, "a", requested), (2, "a", configured), (3, "b", requested)];
        let all = named.map(|(id, name, owner)| Session::idle(id, Some(name), owner));
        assert_eq!(all.each_ref().map(|session| label(session, &all)), ["1", "a", "b"]);
    }

    #[test]
    fn the_text_is_that_of_the_format() {
        let mut text = Text::default();
        let mut family = text.family("a_total", "counter", "What.");
        family.sample(&[("x", "q\"b\\s\nn"), ("y", "z")], 1.5);
        Family { name: "b", text: &mut text.0 }.sample(&[], number(12_000_000));
        let expected = "# HELP a_total What.\n# TYPE a_total counter\n\
                        a_total{x=\"q\\\"b\\\\s\\\\u{a}n\",y=\"z\"} 1.5\nb 12000000\n";
        assert_eq!(text.0, expected);
    }
}
