//! Lines that threads share, held to what programs say of their counters and threads.

use crate::support::{PATIENCE, Running, compile_by, compile_rust, run, sheet};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

/// Bytes of a line.
const LINE: u64 = 64;

/// Samples that each thread is to have on its counter before anything is said of a line.
const ENOUGH: u64 = 40;

/// A counter, as the program tells of it.
#[derive(Debug)]
struct Counter {
    address: u64,
    tid: u64,
    function: String,
}

/// The program of this compiler; `None`, with the reason printed, where that is not installed.
fn program(compiler: &str) -> Option<PathBuf> {
    // gcc puts globals in another order otherwise, and those that are to be in one line are not.
    let gcc = ["-g", "-pthread", "-fno-toplevel-reorder"];
    match compiler.split_once(' ').unwrap() {
        ("rustc", level) => Some(compile_rust("sharing", &["-C", &format!("opt-level={level}")])),
        (name @ ("gcc" | "g++"), level) => {
            compile_by(name, "sharing", &[&gcc[..], &[level]].concat())
        }
        (name, level) => compile_by(name, "sharing", &[&gcc[..2], &[level]].concat()),
    }
}

fn counter(line: &str) -> Counter {
    let words: Vec<&str> = line.split(' ').collect();
    let ["counter", address, tid, function] = words[..] else { panic!("{line}") };
    let address = u64::from_str_radix(address.trim_start_matches("0x"), 16).unwrap();
    Counter { address, tid: tid.parse().unwrap(), function: function.to_owned() }
}

/// The line of this address in an answer.
fn line_at(answer: &Value, address: u64) -> Option<&Value> {
    let name = format!("{:#x}", address & !(LINE - 1));
    answer["lines"].as_array().unwrap().iter().find(|line| line["line"] == name)
}

/// Samples of a thread that wrote its counter.
fn n_writes(answer: &Value, counter: &Counter) -> u64 {
    let Some(line) = line_at(answer, counter.address) else { return 0 };
    let parts = line["parts"].as_array().unwrap().iter();
    let is_its = |part: &&Value| {
        part["address"] == format!("{:#x}", counter.address) && part["tid"] == counter.tid
    };
    parts.filter(is_its).map(|part| part["writes"].as_u64().unwrap()).sum()
}

/// The answer of `threads`, once both threads have been seen to count; `None`, with the reason printed, where live events
/// are not to be had.
fn answer(running: &Running, counters: &[Counter]) -> Option<Value> {
    let pid = running.pid();
    let mut seconds = 1;
    loop {
        let duration = seconds.to_string();
        let output = run(&["threads", "-p", &pid, "--duration", &duration, "--json", "--all"]);
        let errors = String::from_utf8_lossy(&output.stderr);
        if matches!(output.status.code(), Some(3 | 4)) {
            eprintln!("not run: {errors}");
            return None;
        }
        assert!(output.status.success(), "{errors}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        if counters.iter().all(|counter| n_writes(&answer, counter) >= ENOUGH) {
            return Some(answer);
        }
        seconds *= 2;
        assert!(seconds < PATIENCE.as_secs(), "{counters:?}: {answer}");
    }
}

/// What is wrong with the answer on a program whose counters share a line in this way.
fn fault(answer: &Value, counters: &[Counter], sharing: &str) -> Option<String> {
    for counter in counters {
        let line = line_at(answer, counter.address).unwrap();
        if line["sharing"] != sharing {
            return Some(format!("{} is not {sharing}: {line}", line["sharing"]));
        }
        let parts = line["parts"].as_array().unwrap();
        let is_its = |part: &&Value| {
            let function = part["function"].as_str().unwrap_or_default();
            part["tid"] == counter.tid
                && part["address"] == format!("{:#x}", counter.address)
                && function.rsplit("::").next() == Some(&*counter.function)
                && part["object"].as_str().is_some_and(|object| object.starts_with('{'))
                && part["source"].as_str().is_some_and(|source| source.contains("sharing."))
        };
        if !parts.iter().any(|part| is_its(&part)) {
            return Some(format!("{counter:?} is not told: {line}"));
        }
        if sharing != "none" {
            let at_stake = line["at_stake_ns"].as_u64().unwrap();
            assert!(at_stake > 0 && at_stake <= answer["time_ns"].as_u64().unwrap(), "{answer}");
            assert!(line["advice"].as_str().is_some_and(|advice| !advice.is_empty()));
        }
    }
    // Nothing else of the program is shared.
    let lines: BTreeSet<String> =
        counters.iter().map(|it| format!("{:#x}", it.address & !(LINE - 1))).collect();
    let is_other = |line: &&Value| {
        line["sharing"] != "none" && !lines.contains(line["line"].as_str().unwrap())
    };
    let other = answer["lines"].as_array().unwrap().iter().find(is_other);
    other.map(|line| format!("shared as well: {line}"))
}

#[test]
fn two_counters_in_a_line_are_shared_falsely_one_truly_and_padded_ones_not() {
    for (compiler, kind, how, sharing) in [
        ("gcc -O2", "members", "atomic", "false"),
        ("clang -O2", "globals", "atomic", "false"),
        ("g++ -O2", "blocks", "atomic", "false"),
        ("rustc 2", "elements", "atomic", "false"),
        ("gcc -O0", "members", "plain", "false"),
        ("clang++ -O2", "members", "plain", "false"),
        ("g++ -O2", "globals", "plain", "false"),
        ("clang -O2", "blocks", "plain", "false"),
        ("gcc -O2", "elements", "plain", "false"),
        ("rustc 2", "blocks", "plain", "false"),
        ("clang++ -O2", "one", "atomic", "true"),
        ("rustc 2", "one", "plain", "true"),
        ("gcc -O2", "padded-members", "plain", "none"),
        ("clang++ -O2", "padded-globals", "plain", "none"),
        ("rustc 2", "padded-blocks", "atomic", "none"),
        ("g++ -O2", "padded-elements", "atomic", "none"),
    ] {
        let what = format!("{compiler} {kind} {how}");
        let Some(program) = program(compiler) else { continue };
        let (running, said) = Running::start(&program, &[kind, how]);
        let counters: Vec<Counter> = said.iter().map(|line| counter(line)).collect();
        assert_eq!(counters.len(), 2, "{what}");
        let Some(told) = answer(&running, &counters) else { return };
        // Threads of a machine that is too busy to run both do not take turns: once more.
        let wrong = fault(&told, &counters, sharing)
            .and_then(|_| fault(&answer(&running, &counters)?, &counters, sharing));
        assert_eq!(wrong, None, "{what}");
    }
}

#[test]
fn a_recording_tells_what_a_session_tells_and_a_question_narrows_it() {
    let Some(program) = program("gcc -O2") else { return };
    let (running, said) = Running::start(&program, &["members", "atomic"]);
    let counters: Vec<Counter> = said.iter().map(|line| counter(line)).collect();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    let file = file.to_str().unwrap();
    let mut seconds = 1;
    let told = loop {
        let duration = seconds.to_string();
        let pid = running.pid();
        let output = run(&["record", "-o", file, "-p", &pid, "--duration", &duration]);
        if matches!(output.status.code(), Some(3 | 4)) {
            eprintln!("not run: {}", String::from_utf8_lossy(&output.stderr));
            return;
        }
        let output = run(&["threads", "-i", file, "--json"]);
        assert!(output.status.success(), "{output:?}");
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        if counters.iter().all(|counter| n_writes(&told, counter) >= ENOUGH) {
            break told;
        }
        seconds *= 2;
        assert!(seconds < PATIENCE.as_secs(), "{told}");
    };
    assert_eq!(fault(&told, &counters, "false"), None);
    let only = ["threads", "-i", file, "--json", "--where", "member == \"hits\""];
    let one: Value = serde_json::from_slice(&run(&only).stdout).unwrap();
    assert_eq!(one["lines"].as_array().unwrap().len(), 0, "one thread alone: {one}");
    if let Some(rows) = sheet(&["threads", "-i", file, "--csv"]) {
        for counter in &counters {
            let (address, tid) = (format!("{:#x}", counter.address), counter.tid.to_string());
            let is_of =
                |row: &&HashMap<String, String>| row["address"] == address && row["tid"] == tid;
            let of: Vec<_> = rows.iter().filter(is_of).collect();
            let writes: u64 = of.iter().map(|row| row["writes"].parse::<u64>().unwrap()).sum();
            assert!(writes >= ENOUGH, "{rows:?}");
            assert!(of.iter().all(|row| row["sharing"] == "false"), "{rows:?}");
        }
    }
    let table = String::from_utf8(run(&["threads", "-i", file]).stdout).unwrap();
    for text in ["false sharing: 2 threads", "g_stats.hits", "count_right", "alignas(64) on misses"]
    {
        assert!(table.contains(text), "{text}: {table}");
    }
}

#[test]
fn mistakes_are_told_with_what_was_meant() {
    let check = |args: &[&str], code: i32, text: &str| {
        let output = run(&[&["threads"], args].concat());
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{errors}");
        assert!(errors.contains(text), "{errors}");
    };
    check(&["-i", "/nonexistent"], 1, "cannot read");
    check(&["-i", "a", "-p", "1"], 2, "cannot be used with");
    check(&["-p", "1", "--where", "colour == 1"], 2, "colour");
    check(&["-p", "1", "--span", "later"], 2, "span");
}
