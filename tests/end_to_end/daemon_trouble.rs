//! What the daemon survives: a log that cannot be written, and whatever else goes wrong around it.

use crate::support::daemon::{Daemon, open_dir, send};
use crate::support::{Running, compile};
use rustix::process::Signal;
use std::fs::File;
use std::process::Stdio;

fn chase() -> Running {
    Running::start(&compile("chase", &["-O2", "-g"]), &["8"]).0
}

/// Asks it to end, and holds it to that.
fn ends_well(mut daemon: Daemon) {
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.process.wait().unwrap().code(), Some(0), "{}", daemon.log());
}

#[test]
fn a_log_that_cannot_be_written_does_not_end_it() {
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    let full = File::options().write(true).open("/dev/full").unwrap();
    for (what, stderr) in [("a closed pipe", Stdio::from(closed)), ("a full disk", full.into())] {
        let daemon = Daemon::start_in(open_dir(), "", |command| {
            command.stderr(stderr);
        });
        let program = chase();
        let id = daemon.attach(&program.pid());
        daemon.signal(Signal::HUP);
        if let Some(id) = id {
            let (status, _) = daemon.ask("DELETE", &format!("/v1/sessions/{id}"), "");
            assert_eq!(status, 200, "{what}");
        }
        daemon.get("/v1/health");
        ends_well(daemon);
    }
}

#[test]
fn a_user_does_not_fill_the_log_with_his_refusals() {
    // Root, who is refused nothing else, is turned away where there are too many connections.
    let mut daemon = Daemon::start("[limits]\nconnections = 4\n");
    daemon.wait_until("nobody else is connected", |daemon| {
        daemon.get("/v1/health")["n_connections"] == 1
    });
    let held: Vec<_> =
        (0..4).map(|_| std::os::unix::net::UnixStream::connect(&daemon.socket).unwrap()).collect();
    let n_turned_away =
        (0..40).filter(|_| send(&daemon.socket, b"").starts_with("HTTP/1.1 429")).count();
    assert_eq!(n_turned_away, 40);
    drop(held);
    let log = daemon.log();
    assert_eq!(log.matches("as many connections as the limits allow").count(), 10, "{log}");
    ends_well(daemon);
}
