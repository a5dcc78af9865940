//! The worker of a command: it reads what the target controls, and has no privileges.

use super::daemon_right::{Stage, program_of};
use crate::support::daemon::Daemon;
use crate::support::{Running, children, compile, copy_program, dataspace, workers};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

/// A `top` that has shown something, and its output.
fn watching(args: &[&str]) -> Option<(Child, BufReader<ChildStdout>)> {
    let mut command = dataspace(&[&["top", "--json", "--interval", "0.1"], args].concat());
    let mut top = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(top.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    if line.is_empty() {
        let output = top.wait_with_output().unwrap();
        eprintln!("not run: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    Some((top, lines))
}

fn status(pid: i32, key: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    line.unwrap().trim().to_owned()
}

fn end(mut top: Child, output: BufReader<ChildStdout>) {
    drop(output);
    kill_process(Pid::from_child(&top), Signal::TERM).unwrap();
    top.wait().unwrap();
}

/// Holds the only child of a command to what a worker is.
fn worker_of(broker: &Child) -> i32 {
    let [worker] = workers(broker)[..] else { panic!("one worker") };
    for capabilities in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
        assert_eq!(status(worker, capabilities), "0000000000000000", "{capabilities}");
    }
    assert_eq!((&*status(worker, "Seccomp"), &*status(worker, "NoNewPrivs")), ("2", "1"));
    let broker = i32::try_from(broker.id()).unwrap();
    let users: Vec<String> = [worker, broker].map(|pid| status(pid, "Uid")).into();
    if rustix::process::geteuid().is_root() {
        assert_ne!(users[0], users[1]);
        assert_eq!(status(worker, "Groups"), "");
    } else {
        assert_eq!(users[0], users[1]);
    }
    worker
}

#[test]
fn a_worker_has_no_privileges_and_nothing_to_open() {
    let program = compile("chase", &["-O2", "-g"]);
    let (target, _) = Running::start(&program, &[]);
    let Some((top, output)) = watching(&["-p", &target.pid()]) else { return };
    let worker = worker_of(&top);
    // Of files it has its own statistics, what it was started with, and those that the target has mapped.
    let mapped = std::fs::read_to_string(format!("/proc/{}/maps", target.pid())).unwrap();
    for fd in std::fs::read_dir(format!("/proc/{worker}/fd")).unwrap().flatten() {
        let Ok(path) = std::fs::read_link(fd.path()) else { continue };
        let path = path.to_str().unwrap();
        // And where it puts what lacks debug information, for its broker.
        let is_own = ["/dev/null", "/memfd:undescribed (deleted)"].contains(&path)
            || path == format!("/proc/{worker}/statm");
        assert!(!path.starts_with('/') || is_own || mapped.contains(path), "{path}");
    }
    end(top, output);
}

/// What is recorded is written by a worker, and gets its name by the broker; it is read by a worker too.
#[test]
fn recordings_are_written_and_read_by_workers() {
    let (target, _) = Running::start(&compile("chase", &["-O2", "-g"]), &[]);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.data");
    std::fs::write(&path, "before").unwrap();
    let args = ["record", "--json", "-p", &target.pid(), "-o", path.to_str().unwrap()];
    let mut command = dataspace(&args);
    let mut record = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(record.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    if !line.starts_with("recording") {
        record.wait().unwrap();
        return eprintln!("not run: {line}");
    }
    worker_of(&record);
    kill_process(Pid::from_child(&record), Signal::TERM).unwrap();
    let output = record.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let old = dir.path().join("run.data.old");
    assert_eq!(summary["previous"], old.to_str().unwrap());
    assert_eq!(std::fs::read(old).unwrap(), b"before");
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(summary["bytes"], bytes.len());

    let mut report = dataspace(&["report", "--json", "-i", "-"]);
    report.stdin(Stdio::piped()).stdout(Stdio::piped());
    // It has got nothing yet, and waits.
    let mut waiting = report.spawn().unwrap();
    let name = || workers(&waiting).first().map(|&worker| status(worker, "Seccomp"));
    while name().as_deref() != Some("2") {
        std::thread::yield_now();
    }
    worker_of(&waiting);
    drop(waiting.stdin.take());
    assert_eq!(waiting.wait().unwrap().code(), Some(1), "that was no recording");
    let output = report.stdin(std::fs::File::open(&path).unwrap()).output().unwrap();
    let totals: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(totals["accounting"]["kernel"], summary["kernel"]);
}

#[test]
fn without_a_sandbox_there_is_one_process() {
    let (target, _) = Running::start(&compile("chase", &["-O2", "-g"]), &[]);
    let Some((top, output)) = watching(&["-p", &target.pid(), "--sandbox", "off"]) else { return };
    assert_eq!(children(&top), [0; 0]);
    end(top, output);
}

#[test]
fn a_worker_that_is_killed_is_told_of() {
    let (target, _) = Running::start(&compile("chase", &["-O2", "-g"]), &[]);
    let Some((top, output)) = watching(&["-p", &target.pid()]) else { return };
    let [worker] = workers(&top)[..] else { panic!("one worker") };
    kill_process(Pid::from_raw(worker).unwrap(), Signal::KILL).unwrap();
    drop(output);
    let output = top.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("was ended by signal 9"), "{said}");
}

#[test]
fn a_worker_does_not_outlive_its_broker() {
    let (target, _) = Running::start(&compile("chase", &["-O2", "-g"]), &[]);
    let Some((mut top, output)) = watching(&["-p", &target.pid()]) else { return };
    let [worker] = workers(&top)[..] else { panic!("one worker") };
    let worker = rustix::process::pidfd_open(
        Pid::from_raw(worker).unwrap(),
        rustix::process::PidfdFlags::empty(),
    );
    top.kill().unwrap();
    top.wait().unwrap();
    // It writes what it has, and reads the end of its broker.
    drop(output);
    let worker = worker.unwrap();
    let mut fds = [rustix::event::PollFd::new(&worker, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut fds, None).unwrap();
}

/// A file that debug information names, and that the program itself may not read, is not read for it either.
#[test]
fn what_a_target_may_not_read_is_not_opened_for_it() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    use std::os::unix::process::CommandExt as _;
    const USER: u32 = 4_000_003;
    if !rustix::process::geteuid().is_root() {
        return eprintln!("not run: only root can start a program of another user");
    }
    let built = compile("chase", &["-O2", "-g", "-gsplit-dwarf"]);
    let dir = crate::support::daemon::open_dir();
    let program = dir.path().join("chase");
    copy_program(&built, &program);
    let split: Vec<_> = std::fs::read_dir(built.parent().unwrap())
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "dwo"))
        .filter(|path| path.to_string_lossy().contains("chase"))
        .collect();
    assert!(!split.is_empty(), "there is a split unit");
    let named = |mode: u32| -> Option<bool> {
        for dwo in &split {
            let beside = dir.path().join(dwo.file_name().unwrap());
            let _ = std::fs::remove_file(&beside);
            std::fs::copy(dwo, &beside).unwrap();
            chown(&beside, Some(0), Some(0)).unwrap();
            std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(mode)).unwrap();
            std::fs::set_permissions(dwo, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let mut target = std::process::Command::new(&program);
        let mut target = target.uid(USER).gid(USER).stdin(Stdio::piped()).spawn().unwrap();
        let output = dataspace(&["top", "--once", "--json", "--duration", "2", "-p"])
            .arg(target.id().to_string())
            .output()
            .unwrap();
        target.kill().unwrap();
        target.wait().unwrap();
        if output.status.code() != Some(0) {
            eprintln!("not run: {}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Some(String::from_utf8_lossy(&output.stdout).contains("{structure:cell}"))
    };
    assert!(Path::new(&program).exists());
    let readable = named(0o644);
    let closed = named(0o600);
    named(0o644);
    assert!(readable.is_none() || (readable, closed) == (Some(true), Some(false)));
}

/// The session's newest snapshot's samples, as the kernel counted them.
fn kernel_samples(daemon: &Daemon, id: u64) -> u64 {
    let (status, answer) = daemon.ask("GET", &format!("/v1/sessions/{id}/accounting"), "");
    if status == 200 { answer["accounting"]["kernel"].as_u64().unwrap() } else { 0 }
}

#[test]
fn a_session_begins_anew_when_its_worker_is_killed_and_others_go_on() {
    const USER: &str = "4000004";
    if !rustix::process::geteuid().is_root() {
        return eprintln!("not run: only root can start a program of another user");
    }
    let stage = Stage::new();
    let of_user = program_of(USER, &stage);
    let (of_root, _) = Running::start(&compile("chase", &["-O2", "-g"]), &[]);
    let Some(root_session) = stage.daemon.attach(&of_root.pid()) else { return };
    let attached = stage.run(USER, None, &["attach", "--json", "-p", &of_user.pid()]);
    let text = String::from_utf8_lossy(&attached.stdout);
    assert!(attached.status.success(), "{text} {}", String::from_utf8_lossy(&attached.stderr));
    let session: serde_json::Value = serde_json::from_str(&text).unwrap();
    let user_session = session["id"].as_u64().unwrap();
    let mut daemon = stage.daemon;
    let both = workers(&daemon.process);
    assert_eq!(both.len(), 2, "{both:?}");
    assert_ne!(status(both[0], "Uid"), status(both[1], "Uid"));
    for worker in &both {
        assert_eq!(status(*worker, "CapPrm"), "0000000000000000");
        assert_eq!((&*status(*worker, "Seccomp"), &*status(*worker, "NoNewPrivs")), ("2", "1"));
    }
    daemon.wait_until("both sample", |daemon| {
        [root_session, user_session].iter().all(|id| kernel_samples(daemon, *id) > 100)
    });
    // That of the user's session is the younger one.
    let (of_all, of_one) = (both[0].min(both[1]), both[0].max(both[1]));
    let before = kernel_samples(&daemon, root_session);
    kill_process(Pid::from_raw(of_one).unwrap(), Signal::KILL).unwrap();
    let warning = |daemon: &Daemon| {
        let path = format!("/v1/sessions/{user_session}/snapshot");
        let (status, snapshot) = daemon.ask("GET", &path, "");
        let warnings = if status == 200 { snapshot["warnings"].to_string() } else { String::new() };
        warnings.contains("sampling began anew")
    };
    daemon.wait_until("the session is there again, and says so", |daemon| {
        warning(daemon) && kernel_samples(daemon, user_session) > 0
    });
    let now = workers(&daemon.process);
    assert!(now.contains(&of_all) && now.len() == 2 && !now.contains(&of_one), "{now:?}");
    daemon.wait_until("the other went on", |daemon| kernel_samples(daemon, root_session) > before);
    let line = daemon.get(&format!("/v1/sessions/{root_session}"));
    assert_eq!(line["n_attached"], 1, "{line}");
}
