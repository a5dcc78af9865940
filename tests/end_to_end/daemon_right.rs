//! Who may see and do what: clients of several users, on processes of several users.

use crate::support::daemon::{Daemon, events, open_dir};
use crate::support::{Running, compile, copy_program, samples_of, total};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Users that no machine has.
const USER: &str = "4000001";
const OTHER: &str = "4000002";
const GROUP: &str = "4000003";

const NEXT: &str = "{structure:cell}.{pointer+structure:cell next}";

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("not run: only root can act as several users");
    }
    is_root
}

/// A command of `user` without any privilege.
fn as_user(user: &str, groups: Option<&str>, program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={user}"), &format!("--regid={user}"), "--inh-caps=-all"]);
    command.arg(groups.map_or("--clear-groups".to_owned(), |group| format!("--groups={group}")));
    command.arg(program).current_dir("/").stdin(Stdio::null());
    command
}

/// What clients and programs of others need to be able to read.
fn shared(dir: &Path, path: &Path, name: &str) -> std::path::PathBuf {
    let shared = dir.join(name);
    copy_program(path, &shared);
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o755)).unwrap();
    shared
}

/// A daemon, and files that any user may run.
pub(super) struct Stage {
    pub(super) daemon: Daemon,
    client: std::path::PathBuf,
    chase: std::path::PathBuf,
}

impl Stage {
    pub(super) fn new() -> Self {
        let dir = open_dir();
        let client = shared(dir.path(), Path::new(env!("CARGO_BIN_EXE_dataspace")), "dataspace");
        let chase = shared(dir.path(), &compile("chase", &["-O2", "-g"]), "chase");
        let config = format!("group = \"{GROUP}\"\n[limits]\nsessions_per_user = 2\n");
        Self { daemon: Daemon::start_in(dir, &config, |_| {}), client, chase }
    }

    pub(super) fn run(&self, user: &str, groups: Option<&str>, args: &[&str]) -> Output {
        let mut command = as_user(user, groups, &self.client);
        command.args(&args[..1]).arg("--socket").arg(&self.daemon.socket).args(&args[1..]);
        command.output().unwrap()
    }

    /// The exit code of a client of `user`, and what it says.
    fn ask(&self, user: &str, args: &[&str]) -> (Option<i32>, String) {
        let output = self.run(user, None, args);
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }

    fn sessions(&self, user: &str, groups: Option<&str>) -> Vec<u64> {
        let output = self.run(user, groups, &["sessions", "--json"]);
        let list: Value = serde_json::from_slice(&output.stdout).unwrap();
        let sessions = list["sessions"].as_array().unwrap();
        sessions.iter().map(|session| session["id"].as_u64().unwrap()).collect()
    }
}

pub(super) fn program_of(user: &str, stage: &Stage) -> Running {
    running_as(user, &[stage.chase.to_str().unwrap(), "8"])
}

/// Starts a command of `user` without any privilege, and waits until it is ready.
fn running_as(user: &str, command: &[&str]) -> Running {
    let (reuid, regid) = (format!("--reuid={user}"), format!("--regid={user}"));
    let options = [&*reuid, &*regid, "--clear-groups", "--inh-caps=-all"];
    Running::start(Path::new("setpriv"), &[&options, command].concat()).0
}

#[test]
fn a_user_sees_and_attaches_to_his_own_only() {
    if !is_root() {
        return;
    }
    let mut stage = Stage::new();
    let roots = Running::start(&stage.chase, &["8"]).0;
    let Some(roots_session) = stage.daemon.attach(&roots.pid()) else { return };
    let own = program_of(USER, &stage);
    let others = program_of(OTHER, &stage);

    let (code, said) = stage.ask(USER, &["attach", "-p", &own.pid(), "--json"]);
    assert_eq!(code, Some(0), "{said}{}", stage.daemon.log());
    let session: Value = serde_json::from_str(&said).unwrap();
    let id = session["id"].as_u64().unwrap();
    let snapshot = stage.daemon.snapshot_once(&id.to_string(), |snapshot| total(snapshot) >= 100);
    assert!(samples_of(&snapshot, NEXT) > 50, "his program is named");
    let text = snapshot.to_string();
    assert!(!text.contains("0x"), "no address is told: {text}");
    assert_eq!(snapshot["cost"]["own_rss_bytes"], 0, "that is of all users' sessions");
    assert_eq!(snapshot["target"]["description"], format!("process {} (chase)", own.pid()));

    // To him there is nothing else.
    assert_eq!(stage.sessions(USER, None), [id]);
    assert_eq!(stage.sessions(OTHER, None), [0_u64; 0]);
    for (user, session) in [(USER, roots_session), (OTHER, id), (OTHER, roots_session)] {
        let (code, said) = stage.ask(user, &["detach", &session.to_string()]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(&format!("there is no session {session}")), "{said}");
    }
    let refused = [
        vec!["attach", "-a"],
        vec!["attach", "--comm", "chase"],
        vec!["attach", "--cgroup", "/"],
        vec!["attach", "-u", "dbus"],
        vec!["attach", "-p", "1"],
        vec!["attach", "-t", "1"],
    ];
    let pids = [roots.pid(), others.pid(), format!("{},{}", own.pid(), others.pid())];
    let of_pids = pids.iter().map(|pid| vec!["attach", "-p", pid]);
    for args in refused.into_iter().chain(of_pids.clone()) {
        let (code, said) = stage.ask(USER, &args);
        assert_eq!(code, Some(3), "{args:?}: {said}");
    }
    // Nor does he hear whether there is such a process: no machine has one of this number.
    let free = [vec!["attach", "-p", "2147483647"], vec!["attach", "-p", "1"]];
    for args in free.into_iter().chain(of_pids) {
        let (_, said) = stage.ask(USER, &args);
        assert!(said.contains("is not there, or does not belong to you"), "{args:?}: {said}");
    }
    let own_pid = own.pid();
    for event in ["mem:0xffffffff81000000/8:rw", "syscalls:sys_enter_read", "cycles:k"] {
        let (code, said) = stage.ask(USER, &["attach", "-p", &own_pid, "-e", event]);
        assert_eq!(code, Some(3), "{event}: {said}");
    }
    let of_user = format!("uid={USER}");
    for says in [&of_user, "does not belong to this user", "units, control groups", OTHER] {
        stage.daemon.wait_for_line(&["refused", says]);
    }

    // As many as he may have, and no more.
    assert_eq!(stage.ask(USER, &["attach", "-p", &own_pid]).0, Some(0));
    let (code, said) = stage.ask(USER, &["attach", "-p", &own_pid]);
    assert!(code == Some(1) && said.contains("detach one"), "{said}");

    // Members of the group see all, whoever they are.
    assert_eq!(stage.sessions(OTHER, Some(GROUP)).len(), 3);
    let output = stage.run(OTHER, Some(GROUP), &["detach", &roots_session.to_string()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(stage.ask(USER, &["detach", &id.to_string()]).0, Some(0));
}

#[test]
fn a_program_that_its_user_may_run_and_not_read_is_not_read_for_him() {
    if !is_root() {
        return;
    }
    let mut stage = Stage::new();
    let in_dir = |name| stage.chase.with_file_name(name);
    // The kernel hides what a process has that runs such a program, until the process says otherwise.
    let (source, library) = (in_dir("dumpable.c"), in_dir("dumpable.so"));
    let text = "#include <sys/prctl.h>\n\
                __attribute__((constructor)) static void say(void) { prctl(PR_SET_DUMPABLE, 1); }\n";
    std::fs::write(&source, text).unwrap();
    let gcc = ["-shared", "-fPIC", "-o"];
    let compiled = Command::new("gcc").args(gcc).arg(&library).arg(&source).status();
    if !compiled.is_ok_and(|status| status.success()) {
        eprintln!("not run: gcc is not installed");
        return;
    }
    std::fs::set_permissions(&stage.chase, std::fs::Permissions::from_mode(0o711)).unwrap();
    let preload = format!("LD_PRELOAD={}", library.display());
    let program = running_as(USER, &["env", &preload, stage.chase.to_str().unwrap(), "8"]);

    let (code, said) = stage.ask(USER, &["attach", "-p", &program.pid(), "--json"]);
    assert_eq!(code, Some(0), "{said}{}", stage.daemon.log());
    let session: Value = serde_json::from_str(&said).unwrap();
    let snapshot =
        stage.daemon.snapshot_once(&session["id"].to_string(), |snapshot| total(snapshot) >= 100);
    let unknown = &snapshot["accounting"]["unknown"];
    assert!(unknown["object_missing"].as_u64() > Some(50), "{unknown}");
    assert!(!snapshot.to_string().contains("structure:cell"), "{snapshot}");
    // Root may.
    let Some(id) = stage.daemon.attach(&program.pid()) else { return };
    let is_named = |snapshot: &Value| samples_of(snapshot, NEXT) > 0;
    stage.daemon.snapshot_once(&id.to_string(), is_named);
}

#[test]
fn a_session_ends_when_its_process_gets_more_rights() {
    if !is_root() {
        return;
    }
    let mut stage = Stage::new();
    let dir = stage.daemon.dir.path();
    // Root's, and executed as root by whoever executes it.
    let set_uid = shared(dir, Path::new("/bin/cat"), "set-uid");
    std::fs::set_permissions(&set_uid, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let mut command = as_user(USER, None, Path::new("/bin/sh"));
    let script = "echo ready; read line; exec \"$0\"";
    command.args(["-c", script]).arg(&set_uid).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = command.spawn().unwrap();
    let mut ready = String::new();
    let mut stdout = std::io::BufReader::new(program.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut ready).unwrap();
    let pid = program.id().to_string();
    let (code, said) = stage.ask(USER, &["attach", "-p", &pid, "--json"]);
    assert_eq!(code, Some(0), "{said}{}", stage.daemon.log());
    let session: Value = serde_json::from_str(&said).unwrap();
    let path = format!("/v1/sessions/{}/stream?interval_ms=60000", session["id"]);
    let stream = events(&stage.daemon.socket, &path);
    use std::io::{Read as _, Write as _};
    // Once it copies what is written to it, it is that program with those rights.
    program.stdin.as_mut().unwrap().write_all(b"go\nx").unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    let has_more = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    if !has_more.contains(&format!("Uid:\t{USER}\t0\t")) {
        program.kill().unwrap();
        program.wait().unwrap();
        eprintln!("not run: set-uid programs get no rights here");
        return;
    }
    let (name, line) = stream.last().unwrap();
    program.kill().unwrap();
    program.wait().unwrap();
    assert_eq!(name, "end");
    assert_eq!(line["state"], "failed", "{line}");
    let health = stage.daemon.get("/v1/health");
    assert_eq!((&health["n_failed"], &health["status"]), (&1.into(), &"ok".into()), "{health}");
    stage.daemon.wait_for_line(&["refused", "does not belong to this user"]);
}

#[test]
fn a_privilege_that_the_daemon_lacks_has_the_exit_code_of_one() {
    let binary = Path::new(env!("CARGO_BIN_EXE_dataspace"));
    let uid = USER.parse().unwrap();
    let version = || Command::new(binary).uid(uid).gid(uid).arg("--version").output();
    if !is_root() || !version().is_ok_and(|output| output.status.success()) {
        return eprintln!("not run: no other user can run {}", binary.display());
    }
    let dir = open_dir();
    std::os::unix::fs::chown(dir.path(), Some(uid), Some(uid)).unwrap();
    let daemon = Daemon::start_in(dir, "", |command| {
        command.uid(uid).gid(uid);
    });
    let output = daemon.client(&["attach", "-a"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return eprintln!("not run: everybody may sample whole CPUs here");
    }
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert!(errors.contains("the daemon lacks a privilege: "), "{errors}");
    assert!(errors.contains("without CAP_PERFMON"), "{errors}");
}

/// A user who connects without end takes the public socket from others of the public, and from nobody else.
#[test]
fn a_crowd_at_the_public_socket_does_not_reach_that_of_root_and_the_group() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let crowd = compile("crowd", &["-O2", "-pthread"]);
    let crowd = shared(stage.daemon.dir.path(), &crowd, "crowd");
    let socket = stage.daemon.socket.to_str().unwrap();
    let _crowd = running_as(USER, &[crowd.to_str().unwrap(), socket, "16"]);
    for _ in 0..16 {
        let status = stage.run("0", None, &["status"]);
        assert_eq!(status.status.code(), Some(0), "{}", String::from_utf8_lossy(&status.stderr));
        let sessions = stage.run(OTHER, Some(GROUP), &["sessions"]);
        assert_eq!(
            sessions.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&sessions.stderr)
        );
    }
}

/// The ids that `/proc` shows of a process are its first thread's.
#[test]
fn a_process_with_threads_of_others_is_not_its_first_threads_users() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let program = compile("mixed_threads", &["-O1", "-g", "-pthread"]);
    let program = shared(stage.daemon.dir.path(), &program, "mixed_threads");
    let running = Running::start(&program, &[USER]).0;
    let (code, said) = stage.ask(USER, &["attach", "-p", &running.pid()]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("the process has threads of other users"), "{said}");
}
