//! Recordings, others' and our own, through `script` and `report`.

use crate::support::{
    FOR_A_WHILE, assert_balanced, compile, dataspace, perf_record, root, run, samples_of,
};
use serde_json::Value;
use std::collections::HashSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The recordings beside the repository, where they are.
fn recordings() -> Vec<PathBuf> {
    let dir = root().join("../shared/recordings");
    let Ok(entries) = std::fs::read_dir(&dir) else {
        eprintln!("not run: {} is not there", dir.display());
        return Vec::new();
    };
    let fuzz = std::fs::read_dir(dir.join("fuzz")).into_iter().flatten();
    let paths = entries.chain(fuzz).map(|entry| entry.unwrap().path());
    paths.filter(|path| path.is_file()).collect()
}

#[test]
fn every_recording_is_read_and_balances() {
    for path in recordings() {
        let path = path.to_str().unwrap();
        let output = run(&["report", "-i", path, "--json"]);
        match output.status.code() {
            Some(0) => {
                let text = String::from_utf8(output.stdout).unwrap();
                assert_balanced(&serde_json::from_str(text.lines().last().unwrap()).unwrap());
            }
            // What is no recording is refused with a reason.
            Some(1) => assert!(!output.stderr.is_empty(), "{path}"),
            code => panic!("{path}: {code:?} {}", String::from_utf8_lossy(&output.stderr)),
        }
    }
}

#[test]
fn script_prints_a_line_for_each_sample() {
    for path in recordings() {
        let path = path.to_str().unwrap();
        let report = run(&["report", "-i", path, "--json"]);
        if report.status.code() != Some(0) {
            continue;
        }
        let text = String::from_utf8(report.stdout).unwrap();
        let snapshot: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        let lost: u64 = snapshot["accounting"]["lost"]
            .as_object()
            .unwrap()
            .values()
            .map(|count| count.as_u64().unwrap())
            .sum();
        let script = run(&["script", "-i", path]);
        let lines = String::from_utf8(script.stdout).unwrap();
        let mut last_ns = 0;
        for line in lines.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let time_ns = line["time_ns"].as_u64().unwrap();
            assert!(time_ns >= last_ns, "{path}: time order");
            last_ns = time_ns;
        }
        let kernel = snapshot["accounting"]["kernel"].as_u64().unwrap();
        assert_eq!(lines.lines().count() as u64, kernel - lost, "{path}");
    }
}

/// A recording of `chase` made by perf, or why there is none.
fn record(dir: &std::path::Path, extra: &[&str]) -> Option<PathBuf> {
    let file = dir.join("perf.data");
    let program = compile("chase", &["-O2", "-g"]);
    let registers = "--intr-regs=ax,bx,cx,dx,si,di,bp,sp,ip,flags,r8,r9,r10,r11,r12,r13,r14,r15";
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-e", "cpu-clock", "-c", "1000000", registers, "-o"]).arg(&file);
    perf.args(extra).args(["--", "sh", "-c", FOR_A_WHILE, "sh"]).arg(program).arg("32");
    perf_record(&mut perf).map(|_| file)
}

#[test]
fn a_recording_by_perf_is_attributed_like_a_live_session() {
    let dir = tempfile::tempdir().unwrap();
    let Some(file) = record(dir.path(), &[]) else { return };
    let output = run(&["report", "-i", file.to_str().unwrap(), "--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let snapshot: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_balanced(&snapshot);
    let next = samples_of(&snapshot, "{structure:cell}.{pointer+structure:cell next}");
    assert!(next > 100, "{next} samples on next");
    // Without backtracking the sample is on the instruction behind, which touches nothing.
    let output = run(&["report", "-i", file.to_str().unwrap(), "--json", "--skid", "0"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let unskidded: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let at_ip = samples_of(&unskidded, "{structure:cell}.{pointer+structure:cell next}");
    // Few are at the instruction itself, but where the machine's host takes memory away under it.
    assert!(at_ip < next, "{at_ip} at the reported IP, {next} behind it");
}

#[test]
fn report_reads_the_recording_of_the_directory_and_pages_on_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let there = || {
        let mut command = dataspace(&["report"]);
        command.current_dir(dir.path());
        command
    };
    let missing = there().output().unwrap();
    let said = String::from_utf8(missing.stderr).unwrap();
    assert_eq!(missing.status.code(), Some(1));
    assert!(said.contains("perf.data") && said.contains("-i FILE"), "{said}");
    let Some(file) = record(dir.path(), &[]) else { return };
    let named = run(&["report", "-i", file.to_str().unwrap()]);
    let found = there().output().unwrap();
    // The first line has the path as it was given.
    let lines = |output: &std::process::Output| {
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(&found), lines(&named));
    // `script` of util-linux gives a command a terminal.
    let mut terminal = Command::new("script");
    let program = env!("CARGO_BIN_EXE_dataspace");
    terminal.args([
        "-qec",
        &format!("{program} report --plain --color never 2>/dev/null"),
        "/dev/null",
    ]);
    terminal.env("DATASPACE_PAGER", "sed 's/^/paged /'").env("TERM", "xterm");
    let paged = terminal.current_dir(dir.path()).stdin(Stdio::null()).output();
    let Ok(paged) = paged else {
        eprintln!("not run: there is no script(1) to make a terminal");
        return;
    };
    let paged = String::from_utf8(paged.stdout).unwrap();
    let shown = paged.lines().filter(|line| !line.trim().is_empty());
    assert!(
        shown.clone().count() > 10 && shown.clone().all(|it| it.starts_with("paged")),
        "{paged}"
    );
    assert!(paged.contains("<Total>"), "{paged}");
}

#[test]
fn script_lines_have_the_fixed_keys_and_survive_head() {
    let dir = tempfile::tempdir().unwrap();
    let Some(file) = record(dir.path(), &["-z"]) else { return };
    let output = run(&["script", "-i", file.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    let line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    for key in [
        "time_ns",
        "pid",
        "tid",
        "cpu",
        "event",
        "period",
        "ip",
        "trigger",
        "addr",
        "addr_source",
        "access",
        "size",
        "object",
        "scope",
        "type",
        "offset",
        "member",
        "evidence",
        "reason",
        "latency",
        "level",
    ] {
        assert!(line.get(key).is_some(), "{key} in {line}");
    }
    let program = compile("chase", &["-O2", "-g"]);
    let name = program.file_name().unwrap().to_str().unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    // A shell runs it.
    let of_program = lines.filter(|line| line["name"] == "cell.next");
    let names: HashSet<String> = of_program.map(|line| line["comm"].to_string()).collect();
    let cut = format!("{:?}", &name[..name.len().min(15)]);
    assert_eq!(names, HashSet::from([cut]), "as the kernel cuts it (TASK_COMM_LEN)");
    // A reader that goes away is no error.
    let mut script = dataspace(&["script", "-i", file.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(script.stdout.take());
    let output = script.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn another_file_in_the_programs_place_gives_no_names() {
    let dir = tempfile::tempdir().unwrap();
    let Some(file) = record(dir.path(), &[]) else { return };
    let symfs = dir.path().join("symfs");
    let program = compile("chase", &["-O2", "-g"]);
    let place = symfs.join(program.strip_prefix("/").unwrap());
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    // The right path, but another program: its build-id tells.
    std::fs::copy(compile("globals", &["-O1", "-g"]), &place).unwrap();
    let symfs = symfs.to_str().unwrap();
    let args = ["report", "-i", file.to_str().unwrap(), "--json", "--symfs", symfs];
    let text = String::from_utf8(run(&args).stdout).unwrap();
    let snapshot: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_balanced(&snapshot);
    let unknown = &snapshot["accounting"]["unknown"];
    assert!(unknown["object_changed"].as_u64().unwrap_or(0) > 100, "{unknown}");
    assert_eq!(samples_of(&snapshot, "{structure:cell}"), 0);
}
