//! What the daemon survives: a log that cannot be written, and whatever else goes wrong around it.

use crate::support::daemon::{Daemon, ask, events, open_dir, send};
use crate::support::silent::{LastAnswer, Silent};
use crate::support::{Running, compile, total};
use rustix::process::Signal;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn chase() -> Running {
    Running::start(&compile("chase", &["-O2", "-g"]), &["8"]).0
}

/// Asks it to end, and holds it to that.
fn ends_well(mut daemon: Daemon) {
    daemon.signal(Signal::TERM);
    daemon.ends_well();
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

/// A pipe that takes no byte more, and its end that nobody reads.
fn full_pipe() -> (std::io::PipeReader, Stdio) {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let (reader, mut pipe) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&pipe).unwrap();
    fcntl_setfl(&pipe, flags | OFlags::NONBLOCK).unwrap();
    while pipe.write(&[b'x'; 4096]).is_ok() {}
    fcntl_setfl(&pipe, flags).unwrap();
    (reader, pipe.into())
}

#[test]
fn a_log_that_nobody_reads_does_not_hold_it_up() {
    let (_reader, stderr) = full_pipe();
    let mut daemon = Daemon::start_in(open_dir(), "[limits]\nconnections = 4\n", |command| {
        command.stderr(stderr);
    });
    let held: Vec<_> = (0..4).map(|_| UnixStream::connect(&daemon.socket).unwrap()).collect();
    daemon.wait_until("somebody is refused", |daemon| {
        send(&daemon.socket, b"").starts_with("HTTP/1.1 429")
    });
    drop(held);
    daemon.wait_until("it answers", |daemon| daemon.ask("GET", "/v1/health", "").0 == 200);
    daemon.signal(Signal::HUP);
    daemon.signal(Signal::TERM);
    let mut status = None;
    daemon.wait_until("it ends", |daemon| {
        status = daemon.process.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(0));
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
    let began = std::time::Instant::now();
    let n_turned_away =
        (0..40).filter(|_| send(&daemon.socket, b"").starts_with("HTTP/1.1 429")).count();
    assert_eq!(n_turned_away, 40);
    drop(held);
    let n_told =
        |daemon: &Daemon| daemon.log().matches("as many connections as the limits allow").count();
    daemon.signal(Signal::TERM);
    daemon.ends_well();
    // Ten of each minute.
    let n_minutes = began.elapsed().as_secs() / 60 + 1;
    let told = 10..=10 * n_minutes as usize;
    assert!(told.contains(&n_told(&daemon)), "{}", daemon.log());
}

/// What is open in a process.
fn n_descriptors(daemon: &Daemon) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", daemon.process.id())).unwrap().count()
}

#[test]
fn it_goes_on_when_it_has_no_descriptors_left_and_recovers() {
    let dir = open_dir();
    // None of those that say nothing is turned away meanwhile.
    let mut daemon = Daemon::start_in(dir, "[limits]\nrequest_s = 3600\n", |command| {
        let program = command.get_program().to_owned();
        let args: Vec<_> = command.get_args().map(std::ffi::OsStr::to_owned).collect();
        let mut shell = std::process::Command::new("sh");
        // The hard limit, too: it takes what it may have.
        shell.args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""]).arg(program).args(args);
        shell.stdin(Stdio::null()).stderr(Stdio::piped());
        *command = shell;
    });
    let held: Vec<UnixStream> =
        (0..80).map(|_| UnixStream::connect(&daemon.socket).unwrap()).collect();
    daemon.wait_until("it says so", |daemon| daemon.log().contains("connections cannot be taken"));
    drop(held);
    daemon.wait_until("it takes connections again", |daemon| {
        daemon.log().contains("connections are taken again")
    });
    daemon.get("/v1/health");
    // Once each time, and not at each try.
    let n_told = |what: &str| daemon.log().matches(what).count();
    let (n_out, n_again) = (n_told("cannot be taken"), n_told("are taken again"));
    assert!(n_out <= n_again + 1, "{}", daemon.log());
    // A session has more than that.
    let program = chase();
    let body = format!("{{\"pids\":[{}]}}", program.pid());
    let (status, answer) = daemon.ask("POST", "/v1/sessions", &body);
    assert!(status == 201 || status == 422, "{status} {answer}");
    daemon.get("/v1/health");
    ends_well(daemon);
}

#[test]
fn a_client_that_vanishes_leaves_a_session_or_none() {
    let mut daemon = Daemon::start("");
    let program = chase();
    let Some(id) = daemon.attach(&program.pid()) else { return };
    let delete = |daemon: &Daemon, id: u64| daemon.ask("DELETE", &format!("/v1/sessions/{id}"), "");
    assert_eq!(delete(&daemon, id).0, 200);
    let n_before = n_descriptors(&daemon);
    let body = format!("{{\"pids\":[{}]}}", program.pid());
    let length = body.len();
    for _ in 0..20 {
        let mut stream = UnixStream::connect(&daemon.socket).unwrap();
        let head = format!("POST /v1/sessions HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n");
        write!(stream, "{head}\r\n{body}").unwrap();
    }
    daemon.wait_until("nothing is about to begin or end", |daemon| {
        let sessions = daemon.get("/v1/sessions")["sessions"].clone();
        let sessions = sessions.as_array().unwrap();
        for session in sessions.iter().filter(|session| session["state"] == "attached") {
            delete(daemon, session["id"].as_u64().unwrap());
        }
        sessions.is_empty() && n_descriptors(daemon) <= n_before
    });
    ends_well(daemon);
}

#[test]
fn a_target_that_dies_while_it_is_read_ends_its_session_alone() {
    let mut daemon = Daemon::start("");
    let stays = chase();
    let Some(id) = daemon.attach(&stays.pid()) else { return };
    for _ in 0..5 {
        let program = chase();
        let body = format!("{{\"pids\":[{}]}}", program.pid());
        let asked = std::thread::spawn({
            let socket = daemon.socket.clone();
            move || ask(&socket, "POST", "/v1/sessions", &body)
        });
        // At any moment of the attaching.
        drop(program);
        let (status, answer) = asked.join().unwrap();
        assert!([201, 422].contains(&status), "{answer}");
    }
    daemon.wait_until("theirs are over", |daemon| {
        let sessions = daemon.get("/v1/sessions")["sessions"].clone();
        sessions.as_array().unwrap().iter().filter(|one| one["state"] == "attached").count() == 1
    });
    let snapshot = daemon.snapshot_once(&id.to_string(), |snapshot| total(snapshot) > 100);
    assert_eq!(snapshot["target"]["running"], true);
    ends_well(daemon);
}

#[test]
fn a_target_goes_on_when_the_daemon_is_killed() {
    let mut daemon = Daemon::start("");
    let mut program = chase();
    let Some(id) = daemon.attach(&program.pid()) else { return };
    daemon.snapshot_once(&id.to_string(), |snapshot| total(snapshot) > 10);
    daemon.process.kill().unwrap();
    daemon.process.wait().unwrap();
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", program.pid()));
    assert!(read("status").unwrap().contains("TracerPid:\t0\n"));
    // Ticks of user time, the fourteenth field.
    let worked = || -> u64 {
        let stat = read("stat").unwrap();
        stat.rsplit_once(')').unwrap().1.split(' ').nth(12).unwrap().parse().unwrap()
    };
    let before = worked();
    while worked() < before + 3 {
        std::thread::yield_now();
    }
    assert!(program.is_running());
    // And nothing is in the way of the next one.
    let next = Daemon::start("");
    assert!(next.attach(&program.pid()).is_some());
}

/// A program whose debug information is in another directory, `units` of `dir`.
pub(super) fn split_program(dir: &Path) -> Option<(PathBuf, PathBuf)> {
    let units = dir.join("units");
    std::fs::create_dir(&units).unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/chase.c");
    std::fs::copy(source, units.join("chase.c")).unwrap();
    let program = dir.join("split");
    let gcc = std::process::Command::new("gcc")
        .args(["-O2", "-g", "-gsplit-dwarf", "-c", "chase.c"])
        .current_dir(&units)
        .status();
    let linked = std::process::Command::new("gcc")
        .arg(units.join("chase.o"))
        .arg("-o")
        .arg(&program)
        .status();
    let is_there = gcc.is_ok_and(|status| status.success()) && linked.is_ok_and(|it| it.success());
    is_there.then_some((program, units))
}

#[test]
fn it_ends_in_order_whatever_its_sessions_wait_for() {
    let dir = open_dir();
    let Some((program, units)) = split_program(dir.path()) else {
        return eprintln!("not run: gcc is not installed");
    };
    // Where it cannot be mounted the rest is still true.
    let silent = Silent::mount(&units, LastAnswer::None);
    if silent.is_none() {
        eprintln!("not run: without files that never answer: FUSE cannot be mounted");
    }
    let waiting = "[[session]]\nname = \"waiting\"\ncgroup = \"/no/such/group\"\n";
    let config = format!("[limits]\nconnections_per_user = 250\n{waiting}");
    let mut daemon = Daemon::start_in(open_dir(), &config, |_| {});
    let (hung, stopped) = (Running::start(&program, &["8"]).0, chase());
    let Some(id) = daemon.attach(&hung.pid()) else { return };
    let Some(of_stopped) = daemon.attach(&stopped.pid()) else { return };
    let stopped_pid = rustix::process::Pid::from_raw(stopped.pid().parse().unwrap()).unwrap();
    rustix::process::kill_process(stopped_pid, Signal::STOP).unwrap();
    if silent.is_some() {
        daemon.snapshot_once(&id.to_string(), |snapshot| {
            snapshot["accounting"]["unknown"]["pending"].as_u64() > Some(0)
        });
    }
    let clients: Vec<UnixStream> = (0..100)
        .map(|_| {
            let mut stream = UnixStream::connect(&daemon.socket).unwrap();
            write!(stream, "GET /v1/sessions/{id}/stream HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
            stream
        })
        .collect();
    let last = events(&daemon.socket, &format!("/v1/sessions/{id}/stream?interval_ms=60000"));
    daemon.wait_until("the stopped one is still there", |daemon| {
        daemon.session(&of_stopped.to_string())["state"] == "attached"
    });
    let began = std::time::Instant::now();
    daemon.signal(Signal::TERM);
    daemon.ends_well();
    println!("it took {:?} to end", began.elapsed());
    // Whoever takes it has the final totals, in which nothing is pending.
    let rest: Vec<_> = last.collect();
    let (name, totals) = rest.iter().rev().find(|(name, _)| name == "snapshot").unwrap();
    assert_eq!((name.as_str(), &totals["target"]["running"]), ("snapshot", &false.into()));
    assert!(totals["accounting"]["unknown"]["pending"].is_null(), "{}", totals["accounting"]);
    crate::support::assert_balanced(totals);
    drop(clients);
    rustix::process::kill_process(stopped_pid, Signal::CONT).unwrap();
}

#[test]
fn a_session_that_ends_already_hears_that_the_daemon_does() {
    let dir = open_dir();
    let Some((program, units)) = split_program(dir.path()) else {
        return eprintln!("not run: gcc is not installed");
    };
    let Some(_silent) = Silent::mount(&units, LastAnswer::None) else {
        return eprintln!("not run: FUSE cannot be mounted");
    };
    let mut daemon = Daemon::start_in(open_dir(), "", |_| {});
    let hung = Running::start(&program, &["8"]).0;
    let Some(id) = daemon.attach(&hung.pid()) else { return };
    daemon.snapshot_once(&id.to_string(), |snapshot| {
        snapshot["accounting"]["unknown"]["pending"].as_u64() > Some(0)
    });
    let (socket, path) = (daemon.socket.clone(), format!("/v1/sessions/{id}"));
    let detaching = std::thread::spawn(move || ask(&socket, "DELETE", &path, ""));
    daemon.wait_until("it is asked to end", |daemon| {
        daemon.ask("GET", &format!("/v1/sessions/{id}"), "").0 == 404
    });
    daemon.signal(Signal::TERM);
    daemon.ends_well();
    let (status, line) = detaching.join().unwrap();
    assert_eq!((status, line["state"].as_str()), (200, Some("detached")), "{}", daemon.log());
    assert!(!daemon.log().contains("do not end in time"), "{}", daemon.log());
}
