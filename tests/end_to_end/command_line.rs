//! Errors with their remedy, exit codes, help, colours, signals.

use crate::support::{Running, compile, dataspace, run};
use std::collections::BTreeSet;
use std::process::{Output, Stdio};

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn errors_have_their_exit_codes_and_say_what_helps() {
    let check = |args: &[&str], code: i32, says: &str| {
        let output = run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{args:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{args:?}: errors go to stderr");
    };
    check(&["top"], 2, "dataspace top -p PID");
    check(&["top", "-p", "0"], 2, "");
    check(&["top", "-p", "99999999", "--once"], 1, "99999999");
    check(&["top", "-p", "1", "-e", "no-such-event"], 2, "cpu-clock");
    check(&["top", "--comm", "a-name-that-is-cut", "--once"], 2, "use a-name-that-is-");
    check(&["top", "--once", "--", "/no/such/program"], 1, "/no/such/program");
    check(&["report", "-i", "/no/such/file"], 1, "/no/such/file");
    check(&["report", "-i", "Cargo.toml"], 1, "Cargo.toml");
    check(&["report", "-i", "/dev/null"], 1, "/dev/null");
    check(&["frobnicate"], 2, "Usage");
    check(&["doctor", "--json", "-F", "99"], 2, "--calibrate");
    check(&["doctor", "-e", "cpu-clock"], 2, "dataspace doctor --calibrate");
    check(&["doctor", "--calibrate", "-e", "cpu-clock,task-clock"], 2, "one event");
    check(&["doctor", "--calibrate", "-e", "no-such-event"], 2, "cpu-clock");
    check(&["doctor", "--calibrate", "--duration", "0"], 2, "seconds");
}

#[test]
fn a_name_that_nobody_has_is_told_of() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not run: only root may profile names");
        return;
    }
    let args = ["top", "--comm", "no-such-name", "-e", "cpu-clock", "--once", "--duration", "0.1"];
    let output = run(&args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("no process of this name was sampled"), "{}", stderr(&output));
}

#[test]
fn help_has_examples() {
    for command in [
        "top", "report", "script", "doctor", "demo", "daemon", "config", "attach", "detach",
        "sessions", "status",
    ] {
        let output = run(&[command, "--help"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("Examples:") || text.contains("EXAMPLES"), "{command}: {text}");
    }
}

#[test]
fn doctor_says_what_is_there() {
    let output = run(&["doctor"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("cpu-clock") && text.contains("perf_event_paranoid"), "{text}");
    assert!(text.contains("dataspace doctor --calibrate"), "{text}");
    assert!(!text.contains('\x1b'), "no colour on a pipe");
}

#[test]
fn doctor_says_the_same_to_a_program() {
    let output = run(&["doctor", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(found["kernel"], release.trim());
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    let is_virtual = cpuinfo.split_whitespace().any(|flag| flag == "hypervisor");
    assert_eq!(found["processor"]["is_virtual"], is_virtual);
    let events = found["events"].as_array().unwrap();
    assert!(events.iter().any(|event| event["name"] == "cpu-clock"), "{found}");
    assert!(found["privileges"].is_array() && found["limits"].is_array());
}

#[test]
fn a_demo_has_the_windows_that_were_typed() {
    let output = run(&["demo", "--json", "--duration", "0.1", "--windows", "2,5"]);
    if matches!(output.status.code(), Some(3 | 4)) {
        eprintln!("not run: {}", stderr(&output));
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let last = output.stdout.trim_ascii().rsplit(|&byte| byte == b'\n').next().unwrap();
    let snapshot: serde_json::Value = serde_json::from_slice(last).unwrap();
    let sums = &snapshot["objects"][0]["metrics"];
    let windows: BTreeSet<_> = sums.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(windows, BTreeSet::from(["2s", "5s", "all"]), "{sums}");
}

#[test]
fn demo_on_a_pipe_prints_its_table_and_ends_well() {
    let output = run(&["demo"]);
    if matches!(output.status.code(), Some(3 | 4)) {
        eprintln!("not run: {}", stderr(&output));
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("<Total>") && text.contains("order.price"), "{text}");
    assert!(!text.contains('\x1b'), "no colour on a pipe");
}

#[test]
fn an_interrupt_ends_in_order_with_the_result() {
    let (program, _) = Running::start(&compile("chase", &["-O2", "-g"]), &["8"]);
    let mut session = dataspace(&["top", "-p", &program.pid(), "--json", "--interval", "0.1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first line says that it is at work.
    let mut stdout = std::io::BufReader::new(session.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    if line.is_empty() {
        eprintln!("not run: {}", stderr(&session.wait_with_output().unwrap()));
        return;
    }
    let pid = rustix::process::Pid::from_raw(session.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let mut last = line;
    for line in std::io::BufRead::lines(stdout) {
        last = line.unwrap();
    }
    let output = session.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let snapshot: serde_json::Value = serde_json::from_str(&last).unwrap();
    assert_eq!(snapshot["target"]["running"], false, "the last snapshot is final");
}

#[test]
fn a_file_that_is_no_regular_one_is_refused_and_nothing_hangs() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
    let writer = std::thread::spawn({
        let fifo = fifo.clone();
        // A writer that says nothing: the reader sees the end of an empty recording.
        move || drop(std::fs::OpenOptions::new().write(true).open(fifo))
    });
    let output = run(&["report", "-i", fifo.to_str().unwrap()]);
    writer.join().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let output = run(&["report", "-i", dir.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}
