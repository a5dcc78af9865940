//! A daemon whose one worker is in the hands of an attacker, for as long as wanted.
//!
//! `cargo bench --bench taken_worker -- [--seconds N] [--seed S]`, as root. The worker of one user's sessions is this
//! program: under the sandbox of a real one it asks its broker for what it may have and what it may not, damages
//! messages, answers wrongly or never, and dies. Each descriptor that it gets is looked at from outside. Meanwhile root
//! asks for all that the daemon tells of those sessions, and has a session of his own with an honest worker. It fails
//! where the daemon ends, does not answer, or hands out what it may not, and where the other session loses a sample or
//! begins anew; it prints how memory and descriptors of the daemon grow.
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on ends")]

mod judge;
mod worker;

#[path = "../../src/broker/sandbox.rs"]
mod sandbox;
#[path = "../../tests/support/mod.rs"]
mod support;
#[path = "../../src/broker/wire.rs"]
#[allow(dead_code, unused_imports, reason = "the daemon and its tests use the rest")]
mod wire;

use judge::{Judge, USER};
use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept, bind, listen, socket_with,
};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::daemon::{Daemon, open_dir};
use support::{Running, compile, copy_program, lost};

/// Between two lines of what was reached.
const REPORT_INTERVAL: Duration = Duration::from_secs(30);

/// That one answer of the daemon may take, whatever a worker does: twice the time that a worker has for what a client
/// wishes for, since one may come after another's.
const MAX_ANSWER: Duration = Duration::from_secs(60);

/// What the daemon's memory may grow by in KiB after a tenth of the time: pieces that threads keep for later.
const MAX_GROWTH_KIB: u64 = 32 << 10;

/// Clients that ask at a time.
const N_CLIENTS: usize = 3;

/// Requests about a session of the worker that was taken over.
const PATHS: [&str; 8] =
    ["", "/snapshot", "/stream", "/objects/1", "/objects/1/layout", "/pprof", "/folded", "/x"];

fn main() {
    let (mut n_seconds, mut seed) = (30, 0);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|word| word.parse().ok()).expect("a number");
        match &*word {
            "--bench" => {} // cargo's own word for every bench
            "--seconds" => n_seconds = number(),
            "--seed" => seed = number(),
            "--worker" => return worker::run(number(), &words.collect::<Vec<_>>()),
            _ => panic!("{word} is not known"),
        }
    }
    if !rustix::process::geteuid().is_root() {
        println!("not run: it has to be root, to have sessions of two users");
        return;
    }
    fight(Duration::from_secs(n_seconds), seed);
}

/// All for whom the daemon's workers are started.
struct Cast {
    judge: Arc<Judge>,
    /// Processes that requests are about.
    pids: Vec<String>,
    seed: AtomicU64,
}

fn fight(time: Duration, seed: u64) {
    let dir = open_dir();
    let program = dir.path().join("chase");
    copy_program(&compile("chase", &["-O2", "-g"]), &program);
    // They take what time is left: the attack is to have it.
    let program = ["-n", "19", program.to_str().unwrap(), "8"];
    let mut victim = Running::start(Path::new("nice"), &program).0;
    let mut target = Command::new("nice");
    let target = target.args(program).uid(USER).gid(USER).stdin(Stdio::piped());
    let target = target.stdout(Stdio::null()).spawn();
    let mut target = target.unwrap();

    let socket = dir.path().join("worker.sock");
    let listener = listen_at(&socket);
    let mut daemon = Daemon::start_in(dir, "", |command| {
        command.arg("--worker-socket").arg(&socket);
    });
    std::fs::set_permissions(daemon.dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let pids = [target.id(), daemon.process.id(), 1].map(|pid| pid.to_string());
    let pids = [&pids[..], &[victim.pid()]].concat();
    let judge = Arc::new(Judge::default());
    let cast = Cast { judge: Arc::clone(&judge), pids, seed: AtomicU64::new(seed) };
    std::thread::spawn(move || employ(&listener, &cast));

    // The first worker is an honest one, of root.
    let spared = daemon.attach(&victim.pid()).expect("live events").to_string();
    let is_over = Arc::new(AtomicBool::new(false));
    let attacker = {
        let (socket, pid, is_over) = (daemon.socket.clone(), target.id(), Arc::clone(&is_over));
        std::thread::spawn(move || attach_again_and_again(&socket, pid, &is_over))
    };
    let answers = Arc::new(Answers::default());
    let clients = [(); N_CLIENTS].map(|()| {
        let (socket, answers) = (daemon.socket.clone(), Arc::clone(&answers));
        let is_over = Arc::clone(&is_over);
        std::thread::spawn(move || answers.ask_again_and_again(&socket, &is_over))
    });
    let (began, mut reported, mut settled) = (Instant::now(), Instant::now(), None);
    while began.elapsed() < time {
        std::thread::sleep(Duration::from_millis(100));
        assert!(daemon.process.try_wait().unwrap().is_none(), "{}", daemon.log());
        // One that is caught takes nobody along, but is an error of ours.
        assert!(!daemon.log().contains("panicked"), "{}", daemon.log());
        assert!(!clients.iter().any(|client| client.is_finished()), "a client failed");
        if settled.is_none() && began.elapsed() > time / 10 {
            settled = Some(size(daemon.process.id()));
        }
        if reported.elapsed() >= REPORT_INTERVAL {
            print(&judge, began.elapsed(), &answers, size(daemon.process.id()));
            reported = Instant::now();
        }
    }
    is_over.store(true, Ordering::Release);
    let n_attached = attacker.join().unwrap();
    clients.into_iter().for_each(|client| client.join().unwrap());
    let ended = size(daemon.process.id());
    print(&judge, began.elapsed(), &answers, ended);
    println!(
        "{n_attached} sessions of the taken worker; the daemon's size at a tenth: {settled:?}"
    );
    let settled_kib = settled.map_or(0, |(resident_kib, ..)| resident_kib);
    assert!(ended.0 <= settled_kib + MAX_GROWTH_KIB, "the daemon's memory grew");

    let session = daemon.session(&spared);
    let snapshot = daemon.get(&format!("/v1/sessions/{spared}/snapshot"));
    support::assert_balanced(&snapshot);
    println!("the other session: {} samples, {} lost", support::total(&snapshot), lost(&snapshot));
    assert_eq!((lost(&snapshot), &session["state"]), (0, &Value::from("attached")));
    assert!(!snapshot["warnings"].to_string().contains("anew"), "{}", snapshot["warnings"]);
    assert!(victim.is_running());
    let _ = target.kill();
    let _ = target.wait();
}

fn listen_at(path: &Path) -> OwnedFd {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
    bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    listen(&socket, 16).unwrap();
    socket
}

/// Starts a worker for whoever connects: an honest one, then ours.
fn employ(listener: &OwnedFd, cast: &Cast) {
    let mut is_first = true;
    while let Ok(connection) = accept(listener) {
        let is_honest = std::mem::take(&mut is_first);
        let mut command = if is_honest {
            support::dataspace(&["worker"])
        } else {
            let seed = cast.seed.fetch_add(1, Ordering::Relaxed).to_string();
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--worker", &seed]).args(&cast.pids).stdout(cast.judge.sits());
            command
        };
        let mut child = command.stdin(connection).spawn().unwrap();
        if !is_honest {
            cast.judge.knows(child.id());
        }
        std::thread::spawn(move || child.wait());
    }
}

/// Sessions of the user whose worker was taken over, one after the other; gives their number.
fn attach_again_and_again(socket: &Path, pid: u32, is_over: &AtomicBool) -> u64 {
    let mut n_attached = 0;
    while !is_over.load(Ordering::Acquire) {
        let mut client = support::dataspace(&["attach", "--socket"]);
        client.arg(socket).args(["-p", &pid.to_string()]).uid(USER).gid(USER);
        let said = client.stdin(Stdio::null()).stderr(Stdio::null()).output().unwrap().stdout;
        n_attached += u64::from(!said.is_empty());
        // What there is stays for a while: it is asked for things meanwhile.
        std::thread::sleep(Duration::from_millis(700));
        let mut client = support::dataspace(&["detach", "--socket"]);
        for number in sessions_of_user(socket) {
            let _ = client.arg(socket).arg(number.to_string()).stderr(Stdio::null()).output();
            client = support::dataspace(&["detach", "--socket"]);
        }
    }
    n_attached
}

/// Numbers of the sessions that are not root's.
fn sessions_of_user(socket: &Path) -> Vec<u64> {
    let (_, list) = support::daemon::ask(socket, "GET", "/v1/sessions", "");
    let sessions = list["sessions"].as_array().cloned().unwrap_or_default();
    let is_his = |session: &&Value| session["uid"] == USER;
    sessions.iter().filter(is_his).filter_map(|session| session["id"].as_u64()).collect()
}

/// The account of what the API answered.
#[derive(Default)]
struct Answers {
    n: AtomicU64,
    longest: Mutex<Duration>,
}

impl Answers {
    /// Asks for all that there is, and takes what comes.
    fn ask_again_and_again(&self, socket: &Path, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Acquire) {
            for path in all_paths(socket) {
                let asked = Instant::now();
                read_some(socket, &path);
                let took = asked.elapsed();
                assert!(took < MAX_ANSWER, "{path} took {took:?}");
                self.n.fetch_add(1, Ordering::Relaxed);
                let mut longest = self.longest.lock().unwrap();
                *longest = longest.max(took);
            }
            // The others want the machine's cores, too.
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn all_paths(socket: &Path) -> Vec<String> {
    let of_session = |number: u64| PATHS.map(|path| format!("/v1/sessions/{number}{path}"));
    let of_all = ["/metrics", "/v1/health", "/v1/sessions"].map(str::to_owned);
    sessions_of_user(socket).into_iter().flat_map(of_session).chain(of_all).collect()
}

/// Asks, and takes what comes within a moment: an answer of a worker is whatever he made.
fn read_some(socket: &Path, path: &str) {
    let mut stream = UnixStream::connect(socket).unwrap();
    let _ = stream.set_read_timeout(Some(MAX_ANSWER));
    let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let _ = stream.write_all(head.as_bytes());
    let mut bytes = [0; 4096];
    let n_bytes = stream.read(&mut bytes).unwrap_or(0);
    assert!(n_bytes == 0 || bytes.starts_with(b"HTTP/1.1 "), "{path}");
}

/// Resident memory in KiB, descriptors and threads of a process.
fn size(pid: u32) -> (u64, usize, u64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let number = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    let n_fds = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    (number("VmRSS:"), n_fds, number("Threads:"))
}

fn print(judge: &Judge, time: Duration, answers: &Answers, size: (u64, usize, u64)) {
    let seconds = time.as_secs_f64();
    let n_asked = answers.n.load(Ordering::Relaxed);
    println!(
        "{seconds:.0} s: {}; {n_asked} answers of the API, the longest {:.2} s; the daemon: {} KiB, {} descriptors, \
         {} threads",
        judge.account(),
        answers.longest.lock().unwrap().as_secs_f64(),
        size.0,
        size.1,
        size.2,
    );
}
