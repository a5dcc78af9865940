//! A daemon of a test's own, and a client that knows nothing of ours.

use super::{PATIENCE, dataspace};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A running daemon with a directory of its own, where its socket and configuration are.
pub(crate) struct Daemon {
    pub(crate) process: Child,
    pub(crate) socket: PathBuf,
    pub(crate) config: PathBuf,
    log: Arc<Mutex<String>>,
    /// The thread that reads the log until its end.
    reader: Option<JoinHandle<()>>,
    pub(crate) dir: tempfile::TempDir,
}

/// A directory that any user may look into.
pub(crate) fn open_dir() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

impl Daemon {
    /// Starts one with `config` and waits until it answers.
    pub(crate) fn start(config: &str) -> Self {
        Self::start_in(open_dir(), config, |_| {})
    }

    pub(crate) fn start_in(
        dir: tempfile::TempDir,
        config: &str,
        prepare: impl FnOnce(&mut Command),
    ) -> Self {
        let socket = dir.path().join("dataspace.sock");
        let file = dir.path().join("dataspace.toml");
        std::fs::write(&file, config).unwrap();
        let mut command = dataspace(&["daemon", "--config"]);
        command.arg(&file).arg("--socket").arg(&socket);
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        prepare(&mut command);
        let mut process = command.spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let for_thread = log.clone();
        // Unless the test has taken it elsewhere.
        let reader = process.stderr.take().map(|stderr| {
            std::thread::spawn(move || {
                for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                    *for_thread.lock().unwrap() += &(line + "\n");
                }
            })
        });
        let mut daemon = Self { process, socket, config: file, log, reader, dir };
        daemon.wait_until("the daemon listens", |daemon| {
            assert!(daemon.process.try_wait().unwrap().is_none(), "{}", daemon.log());
            UnixStream::connect(&daemon.socket).is_ok()
        });
        daemon
    }

    /// What it said on standard error so far: a thread of its own writes it, maybe after an answer.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until its log has a line with all these words.
    #[track_caller]
    pub(crate) fn wait_for_line(&mut self, words: &[&str]) {
        let has_all = |line: &str| words.iter().all(|word| line.contains(word));
        self.wait_until(&format!("a line with {words:?}"), |daemon| {
            daemon.log().lines().any(has_all)
        });
    }

    /// Waits until it has ended, with the code that says so, and said all that it had to say.
    #[track_caller]
    pub(crate) fn ends_well(&mut self) {
        let status = self.process.wait().unwrap();
        self.reader.take().map(JoinHandle::join).transpose().unwrap();
        assert_eq!(status.code(), Some(0), "{}", self.log());
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    #[track_caller]
    pub(crate) fn wait_until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asks, and gives the status and the JSON.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        ask(&self.socket, method, path, body)
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, value) = self.ask("GET", path, "");
        assert_eq!(status, 200, "{path}: {value}\n{}", self.log());
        value
    }

    /// The session called `name`.
    pub(crate) fn session(&self, name: &str) -> Value {
        self.get(&format!("/v1/sessions/{name}"))
    }

    /// The most memory that it and its workers ever had resident, each at its time, in MiB. Openers, which come and go,
    /// read nothing.
    pub(crate) fn peak_mib(&self) -> u64 {
        self.memory_mib("VmHWM:")
    }

    /// What the kernel says of its memory and its workers' in `line` of their status, in MiB.
    pub(crate) fn memory_mib(&self, line: &str) -> u64 {
        let own = i32::try_from(self.process.id()).unwrap();
        let of_process = |pid: i32| -> Option<u64> {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let line = status.lines().find_map(|one| one.strip_prefix(line))?;
            line.trim().trim_end_matches(" kB").parse().ok()
        };
        let kib: u64 =
            super::workers(&self.process).into_iter().chain([own]).filter_map(of_process).sum();
        kib / 1024
    }

    /// Attaches to process `pid`; gives the session's number. `None`, with the reason printed, where
    /// live events are not to be had.
    pub(crate) fn attach(&self, pid: &str) -> Option<u64> {
        let ask = || self.ask("POST", "/v1/sessions", &format!("{{\"pids\":[{pid}]}}"));
        // Ten seconds are little for 60,000 mappings on a busy machine: so it is asked for again.
        let is_late = |(_, value): &(u16, Value)| value["message"] == "attaching takes too long";
        let mut answers = std::iter::repeat_with(ask).take(20).skip_while(is_late);
        let (status, value) = answers.next().expect("200 seconds are enough to attach");
        if status == 422 {
            eprintln!("not run: {value}");
            return None;
        }
        assert_eq!(status, 201, "{value}\n{}", self.log());
        assert_eq!(value["state"], "attached");
        value["id"].as_u64()
    }

    /// The first snapshot of a session of which `is_enough` holds.
    #[track_caller]
    pub(crate) fn snapshot_once(
        &mut self,
        session: &str,
        is_enough: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut found = Value::Null;
        self.wait_until("a session has enough", |daemon| {
            let path = format!("/v1/sessions/{session}/snapshot");
            let (status, snapshot) = daemon.ask("GET", &path, "");
            let is_found = status == 200 && is_enough(&snapshot);
            if is_found {
                super::assert_balanced(&snapshot);
                found = snapshot;
            }
            is_found
        });
        found
    }

    /// Our client's commands, for this daemon.
    pub(crate) fn client(&self, args: &[&str]) -> Command {
        let (command, args) = args.split_first().unwrap();
        let mut client = dataspace(&[command, "--socket"]);
        client.arg(&self.socket).args(args).stdin(Stdio::null());
        client
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One request on a connection of its own.
pub(crate) fn ask(socket: &Path, method: &str, path: &str, body: &str) -> (u16, Value) {
    let head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
    let length =
        if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    let answer = send(socket, format!("{head}{length}\r\n{body}").as_bytes());
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(head.to_ascii_lowercase().contains("content-type: application/json"), "{head}");
    (status, serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body:?}")))
}

/// Sends bytes as they are, and reads what comes until the connection is closed.
pub(crate) fn send(socket: &Path, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // A request may be refused before all of it was taken.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

/// The events of a stream: names and data. Each is a chunk of its own, so its lines are whole.
pub(crate) fn events(socket: &Path, path: &str) -> impl Iterator<Item = (String, Value)> + use<> {
    let mut stream = UnixStream::connect(socket).unwrap();
    // At once: a head has to be there in time.
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut name = String::new();
    BufReader::new(stream).lines().map_while(Result::ok).filter_map(move |line| {
        if let Some(event) = line.strip_prefix("event: ") {
            name = event.to_owned();
        }
        let data = line.strip_prefix("data: ")?;
        Some((name.clone(), serde_json::from_str(data).unwrap()))
    })
}
