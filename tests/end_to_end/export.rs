//! Reports in the formats of other tools, held to a program that knows its page faults, and to pprof.

use crate::support::{compile, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the program does, and nobody else there.
pub(crate) const LEAVES: [(&str, &str, u64); 3] = [
    ("{structure:leaf}.{long_int key}", "fill_keys", 300),
    ("{structure:leaf}.{long_int key}", "fill_more", 100),
    ("{structure:leaf}.{long_int count}", "fill_counts", 200),
];

/// A recording of all page faults of the program; `None`, with the reason printed, where there is none.
fn record(dir: &Path) -> Option<PathBuf> {
    let program = compile("leaves", &["-O2", "-g"]);
    let file = dir.join("perf.data");
    let path = file.to_str().unwrap();
    let output = run(&[
        "record",
        "-e",
        "page-faults",
        "-c",
        "1",
        "-o",
        path,
        "--",
        program.to_str().unwrap(),
    ]);
    if matches!(output.status.code(), Some(3 | 4)) {
        eprintln!("not run: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    assert!(output.status.success(), "{output:?}");
    Some(file)
}

fn report(file: &Path, format: &str) -> Vec<u8> {
    let output = run(&["report", "-i", file.to_str().unwrap(), "--format", format]);
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// The samples of each stack.
pub(crate) fn stacks(folded: &str) -> BTreeMap<&str, u64> {
    let lines = folded.lines().map(|line| line.rsplit_once(' ').unwrap());
    lines.map(|(stack, samples)| (stack, samples.parse().unwrap())).collect()
}

#[test]
fn every_fault_is_at_its_object_and_function_in_each_format() {
    let dir = tempfile::tempdir().unwrap();
    let Some(file) = record(dir.path()) else { return };
    let snapshot: Value = serde_json::from_slice(&report(&file, "json")).unwrap();
    let json = run(&["report", "-i", file.to_str().unwrap(), "--json"]);
    assert_eq!(json.stdout, report(&file, "json"), "--json is --format json");
    let total = &snapshot["objects"][0]["metrics"]["all"];
    let folded = String::from_utf8(report(&file, "folded")).unwrap();
    let stacks = stacks(&folded);
    for (member, function, n_faults) in LEAVES {
        let stack = format!("<Total>;{{structure:leaf}};{member};{function}");
        assert_eq!(stacks.get(&*stack), Some(&n_faults), "{folded}");
    }
    assert_eq!(Some(stacks.values().sum()), total["samples"].as_u64());
    let csv = String::from_utf8(report(&file, "csv")).unwrap();
    let row = csv.lines().find(|line| line.contains(LEAVES[2].0)).unwrap();
    assert!(row.contains(",200,0,200,,"), "samples, loads, stores, no latency: {row}");
    assert_eq!(csv.lines().count(), 1 + snapshot["objects"].as_array().unwrap().len());
    check_by_pprof(&file, dir.path(), total);
}

/// What `go tool pprof` makes of the profile, where it is installed.
fn check_by_pprof(file: &Path, dir: &Path, total: &Value) {
    let profile = dir.join("profile.pb.gz");
    std::fs::write(&profile, report(file, "pprof")).unwrap();
    let pprof = |args: &[&str]| {
        let mut command = Command::new("go");
        command.args(["tool", "pprof"]).args(args).arg(&profile);
        command.env("HOME", dir).env("PPROF_TMPDIR", dir).env("GOTOOLCHAIN", "local");
        command.output().ok().filter(|output| output.status.code() != Some(127))
    };
    let Some(raw) = pprof(&["-raw"]) else {
        eprintln!("not run: go is not installed");
        return;
    };
    let errors = String::from_utf8_lossy(&raw.stderr);
    if !raw.status.success() && errors.contains("no such tool") {
        eprintln!("not run: this go has no pprof");
        return;
    }
    assert!(raw.status.success(), "{errors}");
    let raw = String::from_utf8(raw.stdout).unwrap();
    assert!(raw.contains("samples/count[dflt] loads/count stores/count"), "{raw}");
    let top = pprof(&["-top", "-nodecount=100", "-cum"]).unwrap();
    let top = String::from_utf8(top.stdout).unwrap();
    // Flat, its share, the sum of shares, with what it calls, its share, name.
    let column = |idx: usize, name: &str| {
        let is_of =
            |line: &&str| line.split_whitespace().skip(5).collect::<Vec<_>>().join(" ") == name;
        let line = top.lines().find(is_of).unwrap_or_else(|| panic!("{name}: {top}"));
        line.split_whitespace().nth(idx).unwrap().parse::<u64>().unwrap()
    };
    let cumulated = |name: &str| column(3, name);
    assert_eq!(column(0, "{structure:leaf}.{long_int key}"), 400, "an object is what -top lists");
    assert_eq!(Some(cumulated("<Total>")), total["samples"].as_u64());
    assert_eq!(cumulated("{structure:leaf}"), 600);
    assert_eq!(cumulated("{structure:leaf}.{long_int key}"), 400);
    for (_, function, n_faults) in LEAVES {
        assert!(cumulated(function) >= n_faults, "{top}");
    }
}

#[test]
fn what_a_format_cannot_do_is_told() {
    let check = |args: &[&str], says: &str| {
        let output = run(&[&["report", "-i", "/no/such/file"], args].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && errors.contains(says), "{args:?}: {errors}");
    };
    check(&["--format", "svg"], "possible values");
    check(&["--format", "csv", "--json"], "cannot be used with");
    check(&["--format", "pprof", "--limit", "3"], "every sample");
    check(&["--format", "folded", "--filter", "x"], "every sample");
}
