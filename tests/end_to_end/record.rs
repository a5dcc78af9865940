//! Recordings that we write: `perf` reads them like its own, and so do we.

use crate::support::{Running, assert_balanced, compile, dataspace, run, sqlite};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Names a second `perf`, a newer one for example, to read the recordings with.
const OTHER_PERF: &str = "DATASPACE_OTHER_PERF";

/// The readers there are. A path of the second is the same in its eyes and ours.
fn perfs() -> Vec<String> {
    let other = std::env::var(OTHER_PERF).ok();
    let perfs = ["perf".to_owned()].into_iter().chain(other);
    perfs.filter(|perf| is_there(perf)).collect()
}

fn is_there(perf: &str) -> bool {
    let version = Command::new(perf).arg("--version").output();
    let is_there = version.is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!("not run: there is no {perf}");
    }
    is_there
}

/// What `perf` prints, which has to be all that it says.
fn perf(perf: &str, args: &[&str], file: &Path) -> String {
    let mut command = Command::new(perf);
    // Debug information is not what is tested, and takes long to read.
    command.args(args).arg("-i").arg(file).stdin(Stdio::null());
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).to_lowercase();
    assert!(output.status.success(), "{command:?}: {errors}");
    for word in ["warning", "error", "invalid", "failed", "unknown", "corrupt"] {
        assert!(!errors.contains(word), "{command:?}: {errors}");
    }
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Lines that `perf script` prints, one for each sample.
fn n_lines(reader: &str, file: &Path) -> u64 {
    let text = perf(reader, &["script", "-F", "comm,tid,cpu,time,event,ip,period"], file);
    text.lines().filter(|line| !line.is_empty()).count() as u64
}

/// Holds the recording in `file` to what `record` said of it.
fn check(file: &Path, said: &Value) {
    let samples = said["samples"].as_u64().unwrap();
    for reader in perfs() {
        perf(&reader, &["report", "--stdio"], file);
        let header = perf(&reader, &["report", "--header-only"], file);
        for fact in ["# hostname : ", "# arch : ", "# cmdline : ", "clockid: monotonic"] {
            assert!(header.contains(fact), "{reader}: {fact} in {header}");
        }
        let stats = perf(&reader, &["report", "--stats"], file);
        let line = stats.lines().find(|line| line.contains("SAMPLE events:"));
        let count = line.and_then(|line| line.split_whitespace().nth(2)).map(str::parse::<u64>);
        assert_eq!(count, (samples > 0).then_some(Ok(samples)), "{reader}: {stats}");
        assert_eq!(n_lines(&reader, file), samples, "{reader}");
    }
    let ours = report(file);
    assert_eq!(ours["accounting"]["kernel"], said["kernel"]);
    assert_eq!(ours["accounting"]["lost"]["ring_full"], said["lost"]["ring_full"]);
}

/// Our own reading of it.
fn report(file: &Path) -> Value {
    let output = run(&["report", "-i", file.to_str().unwrap(), "--json"]);
    assert!(output.status.success(), "{output:?}");
    let snapshot = serde_json::from_slice(&output.stdout).unwrap();
    assert_balanced(&snapshot);
    snapshot
}

/// What `record` says of a recording to `file`; `None`, with the reason printed, where it cannot.
fn record(file: &Path, args: &[&str]) -> Option<Value> {
    let file = file.to_str().unwrap();
    let output = run(&[&["record", "--json", "-o", file], args].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    if matches!(output.status.code(), Some(3 | 4)) {
        eprintln!("not run: {errors}");
        return None;
    }
    assert!(output.status.success(), "{args:?}: {errors}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn perf_reads_a_recording_of_sqlite_with_the_same_counts() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    let program = sqlite();
    let args = ["-F", "1999", "--max-overhead", "off", "--", program.to_str().unwrap(), "100000"];
    let Some(said) = record(&file, &args) else { return };
    assert!(said["samples"].as_u64().unwrap() > 100, "{said}");
    check(&file, &said);
    let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().collect();
    assert_eq!(names.len(), 1, "nothing but the recording is left: {names:?}");
}

#[test]
fn perf_reads_a_recording_of_a_storm_of_children_with_the_same_counts() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile("storm", &["-O2", "-g"]);
    for events in [&["-e", "page-faults"][..], &["-F", "1999"]] {
        let file = dir.path().join("perf.data");
        // Each child has some 70 faults of 700 bytes: rings that hold half of them.
        let program = program.to_str().unwrap();
        let command = ["-m", "2048", "--max-overhead", "off", "--", program, "300"];
        let Some(said) = record(&file, &[events, &command].concat()) else { return };
        assert!(said["samples"].as_u64().unwrap() > 10, "{said}");
        check(&file, &said);
    }
    assert!(dir.path().join("perf.data.old").exists(), "the first one is kept");
}

#[test]
fn a_stream_is_a_recording_too() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    let program = compile("storm", &["-O2", "-g"]);
    let args = ["record", "-e", "page-faults", "-o", "-", "--", program.to_str().unwrap(), "200"];
    let output = run(&args);
    if matches!(output.status.code(), Some(3 | 4)) {
        eprintln!("not run: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    std::fs::write(&file, &output.stdout).unwrap();
    let kernel = report(&file)["accounting"]["kernel"].as_u64().unwrap();
    assert!(kernel > 10);
    for reader in perfs() {
        perf(&reader, &["report", "--stdio"], &file);
        assert_eq!(n_lines(&reader, &file), kernel, "{reader}");
    }
}

#[test]
fn a_killed_recorder_leaves_a_recording_that_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let (file, part) = (dir.path().join("perf.data"), dir.path().join("perf.data.part"));
    let (program, _) = Running::start(&compile("chase", &["-O2", "-g"]), &[]);
    let pid = program.pid();
    let args = ["record", "-F", "999", "-o", file.to_str().unwrap(), "-p", &pid];
    let mut recorder = dataspace(&args).stderr(Stdio::null()).spawn().unwrap();
    // The header speaks of the first second once it is over: 104 bytes, then one id each.
    let n_samples = loop {
        if recorder.try_wait().unwrap().is_some() {
            eprintln!("not run: nothing can be recorded here");
            return;
        }
        if part.exists() {
            let output = run(&["report", "-i", part.to_str().unwrap(), "--json"]);
            let snapshot = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
            let n_samples = snapshot["accounting"]["kernel"].as_u64().unwrap_or(0);
            if n_samples > 0 {
                break n_samples;
            }
        }
    };
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    assert!(!file.exists());
    let kernel = report(&part)["accounting"]["kernel"].as_u64().unwrap();
    assert!(kernel >= n_samples, "{kernel} of {n_samples}");
    for reader in perfs() {
        perf(&reader, &["report", "--stdio"], &part);
        assert_eq!(n_lines(&reader, &part), kernel);
    }
}

#[test]
fn what_ends_a_recording_leaves_it_whole() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    let (program, _) = Running::start(&compile("chase", &["-O2", "-g"]), &[]);
    let pid = program.pid();
    let fast = ["-F", "9999", "--max-overhead", "off", "-p", &pid];
    let Some(said) = record(&file, &[&["--max-size", "200K"], &fast[..]].concat()) else { return };
    assert_eq!(said["is_full"], true);
    assert!(file.metadata().unwrap().len() < 2 << 20, "{said}");
    check(&file, &said);

    let Some(said) = record(&file, &[&["--duration", "0.3"], &fast[..]].concat()) else { return };
    assert_eq!(said["is_full"], false);
    check(&file, &said);

    let args = ["record", "--json", "-o", file.to_str().unwrap(), "-p", &pid];
    let recorder = dataspace(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let part = dir.path().join("perf.data.part");
    // The file is there before the events are, and Ctrl-C is listened to before the file is.
    while !part.exists() {
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&recorder), Signal::INT).unwrap();
    let output = recorder.wait_with_output().unwrap();
    match output.status.code() {
        Some(0) => check(&file, &serde_json::from_slice(&output.stdout).unwrap()),
        // It came before there was anything to record.
        code => assert_eq!((code, part.exists()), (Some(130), false)),
    }
}

#[test]
fn a_full_disk_ends_the_recording_and_keeps_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    std::fs::write(&file, "before").unwrap();
    let (program, _) = Running::start(&compile("chase", &["-O2", "-g"]), &[]);
    // In blocks of 512 bytes.
    let script = format!(
        "ulimit -f 200; exec {} record -F 9999 --max-overhead off -o {} -p {}",
        env!("CARGO_BIN_EXE_dataspace"),
        file.display(),
        program.pid()
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    if matches!(output.status.code(), Some(3 | 4)) {
        eprintln!("not run: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("perf.data.part") && errors.contains("File too large"), "{errors}");
    assert_eq!(std::fs::read(&file).unwrap(), b"before");
    assert!(report(&dir.path().join("perf.data.part"))["accounting"]["kernel"] != 0);
}

#[test]
fn a_place_that_cannot_be_written_is_told_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let ran = dir.path().join("ran");
    for (place, says) in [("no/such/perf.data", "cannot be created"), ("", "is a directory")] {
        let place = dir.path().join(place);
        let args = ["record", "-o", place.to_str().unwrap(), "--", "touch", ran.to_str().unwrap()];
        let output = run(&args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(says), "{errors}");
        assert!(!ran.exists());
    }
}
