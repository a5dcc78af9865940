//! Functions that called, held to a program of which the calls are known.

use crate::support::{PATIENCE, Running, compile, run};
use serde_json::Value;
use std::collections::BTreeMap;

/// The line of the program's source that says so.
fn line_with(text: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/callers.c");
    let source = std::fs::read_to_string(path).unwrap();
    let line = source.lines().position(|line| line.contains(text)).unwrap() + 1;
    format!("callers.c:{line}")
}

/// Samples by function, caller and line of the call; `None` where live events are not to be had.
fn callers(pid: &str) -> Option<BTreeMap<(String, String, String), u64>> {
    let mut seconds = 1;
    loop {
        let duration = seconds.to_string();
        let by = ["--by", "function,caller,caller_line", "--json", "--once"];
        let output = run(&[&["top", "-p", pid, "--duration", &duration], &by[..]].concat());
        if matches!(output.status.code(), Some(3 | 4)) {
            eprintln!("not run: {}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let rows = answer["rows"].as_array().unwrap().iter().map(|row| {
            let key = (text(&row["key"][0]), text(&row["key"][1]), text(&row["key"][2]));
            (key, row["metrics"]["samples"].as_u64().unwrap())
        });
        let rows: BTreeMap<_, _> = rows.collect();
        let has = |function: &str, caller: &str| {
            rows.keys().any(|key| key.0 == function && key.1 == caller)
        };
        let has_compared = rows.keys().any(|key| key.0 == "compare");
        if has("walk", "often") && has("walk", "rarely") && has_compared {
            return Some(rows);
        }
        seconds *= 2;
        assert!(seconds < PATIENCE.as_secs(), "{answer}");
    }
}

#[test]
fn a_function_was_called_from_where_the_program_calls_it() {
    let lines = [("often", line_with("frequent call")), ("rarely", line_with("rare call"))];
    for flags in [["-O2", "-g"], ["-O0", "-g"]] {
        let (running, _) = Running::start(&compile("callers", &flags), &[]);
        let Some(rows) = callers(&running.pid()) else { return };
        for (function, caller, line) in rows.keys() {
            match &**function {
                "walk" if !caller.is_empty() => {
                    let place = lines.iter().find(|(known, _)| known == caller);
                    assert!(place.is_some_and(|(_, end)| line.ends_with(end)), "{rows:?}");
                }
                // The C library does, in a function that has a name only where its debug information is there.
                "compare" => {
                    assert!(!["main", "walk", "often", "rarely"].contains(&&**caller), "{rows:?}");
                }
                "often" | "rarely" if !caller.is_empty() => assert_eq!(caller, "main", "{rows:?}"),
                _ => {}
            }
        }
        let of_walk = |is_known: bool| -> u64 {
            let rows = rows.iter().filter(|(key, _)| key.0 == "walk");
            rows.filter(|(key, _)| key.1.is_empty() != is_known).map(|(_, samples)| samples).sum()
        };
        assert!(of_walk(true) > 9 * of_walk(false), "{rows:?}");
    }
}
