//! Recordings that we write: `perf` reads them like its own, and so do we.

use crate::support::{Running, assert_balanced, compile, dataspace, lost, run, sqlite, workers};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

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
    // What a ring had no room for is told so, and is no fault of the file.
    let errors = errors.replace("warning:\nprocessed", "processed");
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
    let count = |value: &Value| value.as_u64().unwrap();
    let lost: u64 = said["lost"].as_object().unwrap().values().map(count).sum();
    let behind_end = count(&said["behind_end"]);
    assert_eq!(count(&said["kernel"]), samples + lost + behind_end, "{said}");
    assert!(said["is_full"] == true || behind_end == 0, "{said}");
    assert_eq!(count(&said["bytes"]), file.metadata().unwrap().len());
    let ours = report(file);
    assert_eq!(count(&ours["accounting"]["kernel"]), count(&said["kernel"]) - behind_end);
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
    let args = [
        "-e",
        "cpu-clock",
        "-c",
        "500000",
        "--max-overhead",
        "off",
        "--",
        program.to_str().unwrap(),
        "100000",
    ];
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
    for events in [&["-e", "page-faults"][..], &["-e", "cpu-clock", "-c", "500000"]] {
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
    let ours = report(&file);
    let n_samples = ours["accounting"]["kernel"].as_u64().unwrap() - lost(&ours);
    assert!(n_samples > 10);
    for reader in perfs() {
        perf(&reader, &["report", "--stdio"], &file);
        assert_eq!(n_lines(&reader, &file), n_samples, "{reader}");
    }
}

#[test]
fn a_killed_recorder_leaves_a_recording_that_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let (file, part) = (dir.path().join("perf.data"), dir.path().join("perf.data.part"));
    let (program, _) = Running::start(&compile("chase", &["-O2", "-g"]), &[]);
    let pid = program.pid();
    let args =
        ["record", "-e", "cpu-clock", "-c", "1000000", "-o", file.to_str().unwrap(), "-p", &pid];
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
    // The one that writes: it could not end anything in order.
    let [writer] = workers(&recorder)[..] else { panic!("one worker") };
    kill_process(Pid::from_raw(writer).unwrap(), Signal::KILL).unwrap();
    assert_eq!(recorder.wait().unwrap().code(), Some(1));
    assert!(!file.exists());
    let ours = report(&part);
    let kernel = ours["accounting"]["kernel"].as_u64().unwrap();
    assert!(kernel >= n_samples, "{kernel} of {n_samples}");
    for reader in perfs() {
        perf(&reader, &["report", "--stdio"], &part);
        assert_eq!(n_lines(&reader, &part), kernel - lost(&ours));
    }
}

#[test]
fn what_ends_a_recording_leaves_it_whole() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    let (program, _) = Running::start(&compile("chase", &["-O2", "-g"]), &[]);
    let pid = program.pid();
    let fast = ["-e", "cpu-clock", "-c", "100000", "--max-overhead", "off", "-p", &pid];
    let Some(said) = record(&file, &[&["--max-size", "200K"], &fast[..]].concat()) else { return };
    assert_eq!(said["is_full"], true);
    let n_bytes = file.metadata().unwrap().len();
    // A sample with registers and stack has some 700 bytes, a mapping takes two thirds of that in the
    // tables too.
    assert!((190 << 10..=200 << 10).contains(&n_bytes), "{n_bytes}: {said}");
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

/// A recorder of `pid` to `file` that is to be asked to end; its first line was read.
fn recorder(file: &Path, pid: &str) -> Option<(Child, String)> {
    let args = ["record", "-o", file.to_str().unwrap(), "-p", pid];
    let mut recorder = dataspace(&args).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(recorder.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    if line.starts_with("error") {
        let status = recorder.wait().unwrap();
        assert!(matches!(status.code(), Some(3 | 4)), "{line}");
        eprintln!("not run: {line}");
        return None;
    }
    Some((recorder, line))
}

#[test]
fn a_named_pipe_that_nobody_reads_is_given_up_at_the_first_signal() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (program, _) = Running::start(&compile("chase", &["-O2", "-g"]), &[]);
    for signal in [Signal::INT, Signal::TERM] {
        let Some((recorder, line)) = recorder(&pipe, &program.pid()) else { return };
        assert!(line.contains("nobody reads yet"), "{line}");
        kill_process(Pid::from_child(&recorder), signal).unwrap();
        let output = recorder.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{output:?}");
    }
    let there = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(there, 1, "nothing but the pipe is left");
}

/// A recording of nothing much to `file`, in a directory where all may write, by somebody without
/// privileges, whom only root can become; `before` goes before the command. `None`, with the reason
/// printed, where that cannot be.
fn recorded_by_nobody(file: &Path, before: &str) -> Option<Output> {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
    std::fs::set_permissions(file.parent().unwrap(), mode).unwrap();
    let (program, file) = (env!("CARGO_BIN_EXE_dataspace"), file.display());
    let script = format!("{before} {program} record --json -m 4096 -o {file} -- true");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--clear-groups", "--", "sh", "-c", &script]);
    let output = command.stdin(Stdio::null()).output();
    let output = output.ok().filter(|it| !matches!(it.status.code(), Some(1 | 126 | 127)));
    if output.is_none() {
        eprintln!("not run: the binary cannot be run as nobody");
    }
    output
}

#[test]
fn rings_that_are_smaller_than_was_asked_for_are_told_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    let Some(output) = recorded_by_nobody(&file, "ulimit -l 64; exec") else { return };
    if matches!(output.status.code(), Some(3 | 4)) {
        return eprintln!("not run: {}", String::from_utf8_lossy(&output.stderr));
    }
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let warnings = said["warnings"].as_array().unwrap();
    let of_rings = warnings.iter().filter_map(Value::as_str);
    let of_rings: Vec<_> =
        of_rings.filter(|text| text.starts_with("rings of 4096 pages")).collect();
    assert_eq!(of_rings.len(), 1, "{said}");
    for part in ["RLIMIT_MEMLOCK is 65536 bytes", "sudo sysctl kernel.perf_event_mlock_kb="] {
        assert!(of_rings[0].contains(part), "{part} is not in {}", of_rings[0]);
    }
}

#[test]
fn a_file_of_somebody_else_in_a_sticky_directory_is_told_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    std::fs::write(&file, "theirs").unwrap();
    let Some(output) = recorded_by_nobody(&file, "exec") else { return };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert!(errors.contains("sticky") && errors.contains("-o names another"), "{errors}");
    let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().collect();
    assert_eq!(names.len(), 1, "nothing was begun: {names:?}");
}

#[test]
fn a_recording_that_cannot_have_its_name_is_kept_and_says_where() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    let (program, _) = Running::start(&compile("chase", &["-O2", "-g"]), &[]);
    let Some((recorder, line)) = recorder(&file, &program.pid()) else { return };
    assert!(line.starts_with("recording "), "{line}");
    // Too late to be found out before.
    std::fs::create_dir(&file).unwrap();
    kill_process(Pid::from_child(&recorder), Signal::INT).unwrap();
    let output = recorder.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("whole") && errors.contains("perf.data.part"), "{errors}");
    assert!(errors.contains("is a directory"), "{errors}");
    let part = dir.path().join("perf.data.part");
    report(&part);
    for reader in perfs() {
        let header = perf(&reader, &["report", "--header-only"], &part);
        assert!(header.contains("# cmdline : "), "its tables are there: {header}");
    }
}

#[test]
fn what_was_mapped_before_has_the_build_ids_that_readelf_shows() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    let path = compile("chase", &["-O2", "-g"]);
    let (program, _) = Running::start(&path, &[]);
    let args = ["--duration", "0.2", "-p", &program.pid()];
    if record(&file, &args).is_none() {
        return;
    }
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", program.pid())).unwrap();
    let code = maps.lines().filter(|line| line.contains(" r-xp "));
    let files: Vec<&str> = code.filter_map(|line| Some(&line[line.find('/')?..])).collect();
    assert!(files.contains(&path.to_str().unwrap()), "{maps}");
    for reader in perfs() {
        let listed = perf(&reader, &["buildid-list"], &file);
        for &file in &files {
            let output = Command::new("readelf").args(["-n", file]).output().unwrap();
            let notes = String::from_utf8_lossy(&output.stdout).into_owned();
            let id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: "));
            let Some(id) = id else { continue };
            let line = format!("{id} {file}");
            assert!(listed.lines().any(|listed| listed == line), "{line} in {listed}");
        }
    }
}

#[test]
fn what_cannot_be_recorded_is_told_by_its_exit_code_and_in_records_own_words() {
    let output = run(&["record"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.contains("dataspace record -p PID") && !errors.contains(" top "), "{errors}");
    let has = |pmu: &str| Path::new("/sys/bus/event_source/devices").join(pmu).exists();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    let check = |event: &str, says: &str| {
        let output = run(&["record", "-o", file.to_str().unwrap(), "-e", event, "--", "true"]);
        let errors = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(3) {
            return eprintln!("not run: {errors}");
        }
        assert_eq!(output.status.code(), Some(4), "{event}: {errors}");
        assert!(errors.contains(says), "{event}: {errors}");
    };
    if !["cpu", "cpu_core"].into_iter().any(has) {
        check("mem-loads", "this machine has none");
        check("cpu/mem-loads/", "no PMU cpu");
    }
    // Without the right to sample the kernel it is refused for that first.
    if has("msr") && rustix::process::geteuid().is_root() {
        check("msr/tsc/", "counted and not sampled");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "no file was left");
}

#[test]
fn a_full_disk_ends_the_recording_and_keeps_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    std::fs::write(&file, "before").unwrap();
    let (program, _) = Running::start(&compile("chase", &["-O2", "-g"]), &[]);
    // In blocks of 512 bytes.
    let script = format!(
        "ulimit -f 200; exec {} record -e cpu-clock -c 100000 --max-overhead off -o {} -p {}",
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
    std::fs::write(dir.path().join("a"), "before").unwrap();
    std::fs::create_dir(dir.path().join("a.old")).unwrap();
    std::fs::create_dir(dir.path().join("b.part")).unwrap();
    for (place, says) in [
        ("no/such/perf.data", "cannot be created"),
        ("", "is a directory"),
        ("a", "would become"),
        ("b", "is no file"),
    ] {
        let place = dir.path().join(place);
        let args = ["record", "-o", place.to_str().unwrap(), "--", "touch", ran.to_str().unwrap()];
        let output = run(&args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(says), "{errors}");
        assert!(!ran.exists());
    }
}
