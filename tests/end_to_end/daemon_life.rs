//! How the daemon begins, changes and ends, and what systemd hears of it.

use crate::support::daemon::{Daemon, ask, events, open_dir};
use crate::support::{Running, compile, dataspace};
use rustix::process::Signal;
use serde_json::Value;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::process::{Command, Stdio};
use std::time::Instant;

fn chase() -> Running {
    Running::start(&compile("chase", &["-O2", "-g"]), &["8"]).0
}

#[test]
fn it_ends_in_order_with_final_totals_for_its_clients() {
    let mut daemon = Daemon::start("");
    let program = chase();
    let id = daemon.attach(&program.pid());
    let stream = id.map(|id| {
        let path = format!("/v1/sessions/{id}/stream?interval_ms=60000");
        let mut stream = events(&daemon.socket, &path).peekable();
        // Its request has been taken when something of it is there.
        assert_eq!(stream.peek().unwrap().0, "snapshot");
        stream
    });
    let began = Instant::now();
    daemon.signal(Signal::TERM);
    daemon.ends_well();
    println!("it took {:?} to end", began.elapsed());
    assert!(!daemon.socket.exists(), "its socket is gone");
    if let Some(stream) = stream {
        let rest: Vec<(String, Value)> = stream.collect();
        assert_eq!(rest.last().unwrap().0, "end");
        let last = rest.iter().rev().find(|(name, _)| name == "snapshot").unwrap();
        assert_eq!(last.1["target"]["running"], false);
    }
}

#[test]
fn a_socket_left_behind_is_replaced_and_a_living_one_is_not() {
    let mut daemon = Daemon::start("");
    let second = dataspace(&["daemon", "--config"])
        .arg(&daemon.config)
        .arg("--socket")
        .arg(&daemon.socket)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{errors}");
    assert!(errors.contains("a daemon already listens on"), "{errors}");
    daemon.get("/v1/health");
    daemon.process.kill().unwrap();
    daemon.process.wait().unwrap();
    assert!(daemon.socket.exists(), "nobody was there to remove it");
    let third = dataspace(&["daemon", "--config"])
        .arg(&daemon.config)
        .arg("--socket")
        .arg(&daemon.socket)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    daemon.process = third;
    daemon.wait_until("the next one listens", |daemon| {
        std::os::unix::net::UnixStream::connect(&daemon.socket).is_ok()
    });
    daemon.get("/v1/health");
}

#[test]
fn a_new_configuration_is_followed_and_a_wrong_one_is_not() {
    let program = chase();
    let session = |name: &str, max: u32| {
        format!("[[session]]\nname = \"{name}\"\npids = [{}]\nmax_objects = {max}\n", program.pid())
    };
    let first = session("stays", 10) + &session("goes", 10) + &session("changes", 10);
    let mut daemon = Daemon::start(&first);
    let id = |daemon: &Daemon, name: &str| {
        let (status, line) = daemon.ask("GET", &format!("/v1/sessions/{name}"), "");
        (status == 200).then(|| line["id"].as_u64().unwrap())
    };
    let before = ["stays", "goes", "changes"].map(|name| id(&daemon, name).unwrap());
    let second = session("stays", 10) + &session("changes", 20) + &session("comes", 10);
    std::fs::write(&daemon.config, second).unwrap();
    daemon.signal(Signal::HUP);
    daemon.wait_until("the new session is there", |daemon| id(daemon, "comes").is_some());
    assert_eq!(id(&daemon, "stays"), Some(before[0]), "what is not changed goes on");
    assert_eq!(id(&daemon, "goes"), None);
    assert_ne!(id(&daemon, "changes"), Some(before[2]));
    std::fs::write(&daemon.config, "colour = 1").unwrap();
    daemon.signal(Signal::HUP);
    daemon.wait_until("it says what is wrong", |daemon| daemon.log().contains("dataspace.toml:1:"));
    assert_eq!(id(&daemon, "stays"), Some(before[0]));
}

#[test]
fn systemd_hears_when_it_is_ready_alive_and_ending() {
    let dir = open_dir();
    let path = dir.path().join("notify");
    let notices = UnixDatagram::bind(&path).unwrap();
    let mut buffer = [0; 256];
    let mut hear = move || {
        let n = notices.recv(&mut buffer).unwrap();
        // Lines, of which the last may have an end.
        String::from_utf8(buffer[..n].to_vec()).unwrap().trim_end().to_owned()
    };
    let mut daemon = Daemon::start_in(dir, "", |command| {
        command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000");
    });
    assert_eq!(hear(), "READY=1");
    assert_eq!(hear(), "WATCHDOG=1");
    assert_eq!(hear(), "WATCHDOG=1", "again and again");
    daemon.signal(Signal::HUP);
    let mut heard = Vec::new();
    while !heard.contains(&"READY=1".to_owned()) {
        heard.push(hear());
    }
    assert!(heard.iter().any(|notice| notice.starts_with("RELOADING=1\n")), "{heard:?}");
    daemon.signal(Signal::TERM);
    while hear() != "STOPPING=1" {}
    daemon.ends_well();
}

/// The binary with `args`, started as systemd starts a service for `socket`: it is descriptor 3.
fn activated(socket: OwnedFd, args: &str) -> Command {
    let script = format!(
        "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=x exec \"$0\" {args}"
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_dataspace")]).stdin(socket);
    command
}

#[test]
fn it_takes_the_socket_that_systemd_opened() {
    let dir = open_dir();
    let socket = dir.path().join("activated.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    // Connected before the daemon is there: it waits in the socket's queue.
    let early = std::thread::spawn({
        let socket = socket.clone();
        move || ask(&socket, "GET", "/v1/health", "")
    });
    let args = format!("daemon --socket {}", socket.display());
    let mut daemon = activated(listener.into(), &args).stderr(Stdio::null()).spawn().unwrap();
    let (status, health) = early.join().unwrap();
    assert_eq!((status, health["status"].as_str()), (200, Some("ok")));
    let score = std::fs::read_to_string(format!("/proc/{}/oom_score_adj", daemon.id())).unwrap();
    assert!(score.trim().parse::<i32>().unwrap() >= 500, "the kernel takes it first: {score}");
    let pid = rustix::process::Pid::from_child(&daemon);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(daemon.wait().unwrap().code(), Some(0));
    assert!(socket.exists(), "it is systemd's to remove");
}

#[test]
fn a_socket_of_systemds_that_is_not_the_one_asked_for_is_refused() {
    let dir = open_dir();
    let socket = dir.path().join("activated.sock");
    let other = dir.path().join("other.sock");
    let asked = format!("daemon --socket {}", other.display());
    let check = |socket: OwnedFd, says: &str| {
        let output = activated(socket, &asked).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(says) && errors.contains("systemctl edit"), "{errors}");
    };
    check(UnixListener::bind(&socket).unwrap().into(), "activated.sock, and ");
    let no_listener = "no Unix stream socket that listens";
    check(UnixDatagram::bind(dir.path().join("datagram")).unwrap().into(), no_listener);
    check(std::net::TcpListener::bind("127.0.0.1:0").unwrap().into(), no_listener);
    check(std::fs::File::open("/dev/null").unwrap().into(), no_listener);
    assert!(!other.exists(), "nor is another one made");
}
