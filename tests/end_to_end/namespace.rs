//! Programs in another mount namespace: a path means another file there.

use crate::support::{
    FOR_A_WHILE, Running, compile, copy_program, dataspace, perf_record, samples_of, snapshot_once,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// `chase` at a path, and `globals` at the same path in a mount namespace of its own; neither has a
/// build-id to tell them apart. The directory, the path, and the words that start the latter.
fn two_programs() -> Option<(tempfile::TempDir, PathBuf, [String; 4])> {
    let flags = ["-O1", "-g", "-Wl,--build-id=none"];
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("program");
    copy_program(&compile("chase", &flags), &path);
    let inner = compile("globals", &flags);
    let start =
        format!("mount --bind {} {path} && exec {path}", inner.display(), path = path.display());
    let words = ["-m", "sh", "-c", &start].map(str::to_owned);
    let can = Command::new("unshare").args(["-m", "true"]).stderr(Stdio::null()).status();
    if !can.is_ok_and(|status| status.success()) {
        eprintln!("not run: no mount namespace can be made here");
        return None;
    }
    Some((dir, path, words))
}

#[test]
fn a_live_program_is_the_file_of_its_own_namespace() {
    let Some((_dir, _, words)) = two_programs() else { return };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (program, _) = Running::start(Path::new("unshare"), &words);
    let orders = |snapshot: &Value| samples_of(snapshot, "{structure:order}");
    let args = ["top", "-p", &program.pid()];
    let Some(snapshot) = snapshot_once(&args, |snapshot| orders(snapshot) > 10) else { return };
    assert!(orders(&snapshot) > 10);
    assert_eq!(samples_of(&snapshot, "{structure:cell}"), 0);
}

#[test]
fn a_recording_does_not_take_this_namespaces_file_for_that_of_another() {
    let Some((dir, path, words)) = two_programs() else { return };
    let file = dir.path().join("perf.data");
    for option in ["--namespaces", "--buildid-mmap"] {
        let mut perf = Command::new("perf");
        perf.args([
            "record",
            "-q",
            "-c",
            "2000000",
            "-e",
            "cpu-clock:u",
            "--namespaces",
            option,
            "-o",
        ]);
        perf.arg(&file).args(["--", "sh", "-c", FOR_A_WHILE, "sh", "unshare"]).args(&words);
        if perf_record(perf.stdin(Stdio::piped())).is_none() {
            return;
        }
        let script = dataspace(&["script", "-i", file.to_str().unwrap()]).output().unwrap();
        assert!(script.status.success(), "{}", String::from_utf8_lossy(&script.stderr));
        let lines = String::from_utf8(script.stdout).unwrap();
        let lines: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let missing = lines.iter().filter(|line| line["reason"] == "object_missing").count();
        // The shell and the loader are in the file system that both see, but are not sought here
        // either, unless they have a build-id that says so.
        assert!(missing > 50, "{option}: {missing} of {}", lines.len());
        let is_of_path = |line: &&Value| line["scope"]["object"] == path.to_str().unwrap();
        assert_eq!(lines.iter().filter(is_of_path).count(), 0, "{option}");
        std::fs::remove_file(&file).unwrap();
    }
}
