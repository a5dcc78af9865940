//! Code that is in no file: what its maker calls it is the function of its samples.

use crate::support::{Running, compile, last_snapshot, record, snapshot_once};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Samples of code that is made at run time, and the functions that they are in.
fn made(snapshot: &Value) -> (u64, Vec<String>) {
    let objects = snapshot["objects"].as_array().unwrap();
    let Some(made) = objects.iter().find(|object| object["object"] == "<Unknown>.(jit_code)")
    else {
        return (0, Vec::new());
    };
    let functions = made["scope"].as_array().unwrap().iter();
    let functions = functions.map(|scope| scope["function"].as_str().unwrap().to_owned());
    (made["metrics"]["all"]["samples"].as_u64().unwrap(), functions.collect())
}

#[test]
fn live_code_is_named_by_its_map_and_by_its_dump() {
    let program = compile("jit", &["-O1", "-g"]);
    let dir = tempfile::tempdir().unwrap();
    for how in ["map", "dump"] {
        let (program, _) = Running::start(&program, &[how, dir.path().to_str().unwrap()]);
        let map = format!("/tmp/perf-{}.map", program.pid());
        let snapshot = snapshot_once(&["top", "-p", &program.pid()], |snapshot| {
            let (n_samples, functions) = made(snapshot);
            n_samples > 50 && !functions.is_empty()
        });
        let _ = std::fs::remove_file(map);
        let Some(snapshot) = snapshot else { return };
        assert_eq!(made(&snapshot).1, ["jit_reader"], "{how}");
    }
}

#[test]
fn recorded_code_is_named_by_what_the_program_left_behind() {
    let program = compile("jit", &["-O1", "-g"]);
    let dir = tempfile::tempdir().unwrap();
    for how in ["map", "dump"] {
        let args = [how, dir.path().to_str().unwrap(), "300"];
        let Some(recorded) = record(&program, &args, "cpu-clock:u", &["-c", "500000"], &[]) else {
            return;
        };
        let pid = recorded.lines[0]["pid"].as_i64().unwrap();
        let _ = std::fs::remove_file(Path::new(&format!("/tmp/perf-{pid}.map")));
        let made = recorded.lines.iter().filter(|line| line["reason"] == "jit_code");
        let functions: Vec<_> = made.map(|line| line["scope"]["function"].as_str()).collect();
        assert!(functions.len() > 20, "{how}: {} samples", functions.len());
        assert!(functions.iter().all(|function| *function == Some("jit_reader")), "{how}");
    }
}

#[test]
fn code_that_comes_into_the_kernel_is_named_live_and_recorded() {
    let program = compile("bpf", &["-O1"]);
    let said = Command::new(&program).arg("1").output().unwrap().stdout;
    // Without its compiler the kernel interprets the program, and has no code to name.
    let jit = std::fs::read_to_string("/proc/sys/net/core/bpf_jit_enable").unwrap_or_default();
    if !said.is_empty() || jit.trim() == "0" {
        eprintln!("not run: no BPF program can be loaded and run as code");
        return;
    }
    let program = program.to_str().unwrap();
    let is_ours = |scope: &Value| {
        let function = scope["function"].as_str().unwrap_or_default();
        function.starts_with("bpf_prog_") && function.ends_with("_dataspace_t")
    };
    let Some(snapshot) = last_snapshot(&["top", "--json", "--", program, "3"]) else { return };
    let objects = snapshot["objects"].as_array().unwrap();
    let kernel = objects.iter().find(|object| object["object"] == "<Unknown>.(kernel)");
    let scopes = kernel.map_or(&Value::Null, |kernel| &kernel["scope"]);
    assert!(scopes.as_array().is_some_and(|scopes| scopes.iter().any(is_ours)), "{scopes}");

    let Some(recorded) = record(program.as_ref(), &["3"], "cpu-clock", &[], &[]) else {
        return;
    };
    let ours = recorded.lines.iter().filter(|line| is_ours(&line["scope"])).collect::<Vec<_>>();
    assert!(ours.len() > 20, "{} samples", ours.len());
    assert!(ours.iter().all(|line| line["reason"] == "kernel"));
}
