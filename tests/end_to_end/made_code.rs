//! Code that is in no file: what its maker calls it is the function of its samples.

use crate::support::{Running, compile, record, snapshot_once};
use serde_json::Value;
use std::path::Path;

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
        let Some(recorded) = record(&program, &args, "cpu-clock:u", &["-F", "2000"], &[]) else {
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
