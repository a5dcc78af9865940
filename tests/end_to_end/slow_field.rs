//! Loops in which one field misses the cache, however it is accessed and wherever in the loop: each sample's
//! trigger is the instruction that was executed last, and its object what is at the address. How many samples
//! come of which is the machine's affair (`cargo bench --bench slow_field`).

use crate::support::slow_field::{KINDS, POSITIONS};
use crate::support::{Running, assert_balanced, compile, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

/// What a loop touches besides the slow field: where, and the objects.
const HOT: [(&str, [&str; 2]); 2] = [
    ("gauges", ["{structure:gauge}.{long_int level}", "{structure:gauge}.{long_int limit}"]),
    ("meters", ["{structure:meter}.{long_int ticks}", "{structure:meter}.{long_int total}"]),
];

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

/// The instructions of a program's functions that touch memory, by the address of the next instruction: as
/// objdump lists them.
fn accesses(program: &Path, functions: &str) -> BTreeMap<u64, Option<u64>> {
    let output = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(program).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let listed = text.split("\n\n").filter(|part| part.contains(&format!("<{functions}_")));
    let mut accesses = BTreeMap::new();
    for function in listed {
        let instructions = function.lines().filter_map(|line| line.trim_start().split_once(":\t"));
        let instructions: Vec<_> = instructions.map(|(ip, text)| (hex(ip), text)).collect();
        for pair in instructions.windows(2) {
            let [(ip, text), (next, _)] = pair else { unreachable!() };
            let is_access =
                text.contains('(') && !text.starts_with("lea") && !text.starts_with("nop");
            let is_access = is_access || text.starts_with("push") || text.starts_with("pop");
            accesses.insert(*next, is_access.then_some(*ip));
        }
        // Where a jump leads to another instruction may have been the last.
        for (_, text) in instructions {
            let target = text.strip_prefix('j').and_then(|text| text.split_whitespace().nth(1));
            target.map(|target| accesses.remove(&hex(target)));
        }
    }
    assert!(accesses.len() > 30, "{text}");
    accesses
}

/// Some hundred samples of the running program, as `script` says them; `None`, with the reason printed, where
/// there are none to be had.
fn sampled(program: &Running) -> Option<Vec<Value>> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    let file = file.to_str().unwrap();
    let output = run(&[
        "record",
        "-o",
        file,
        "--max-size",
        "400K",
        "-e",
        "cpu-clock",
        "-c",
        "333333",
        "-p",
        &program.pid(),
    ]);
    if matches!(output.status.code(), Some(3 | 4)) {
        eprintln!("not run: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    let report = run(&["report", "--json", "-i", file]);
    assert_balanced(&serde_json::from_slice(&report.stdout).unwrap());
    let script = String::from_utf8(run(&["script", "-i", file]).stdout).unwrap();
    Some(script.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn check(optimisation: &str) {
    let program = compile("slow_field", &[optimisation, "-g", "-no-pie"]);
    for (kind, slow) in KINDS {
        let functions = match kind {
            "dependent" => "chase",
            "independent" => "lookup",
            _ => "mark",
        };
        let accesses = accesses(&program, functions);
        for position in POSITIONS {
            let (running, said) = Running::start(&program, &[kind, position]);
            let place = |name: &str| -> Range<u64> {
                let line = said.iter().find_map(|line| line.strip_prefix(&format!("{name} ")));
                let (start, end) = line.unwrap().split_once(' ').unwrap();
                hex(start)..hex(end)
            };
            let Some(lines) = sampled(&running) else { return };
            let (mut n_accesses, mut n_named, mut n_slow) = (0, 0, 0);
            for line in &lines {
                let ip = hex(line["ip"].as_str().unwrap());
                let Some(executed) = accesses.get(&ip) else { continue };
                let context = format!("{optimisation} {kind} {position}: {line}");
                let trigger = line["trigger"].as_str().map(hex);
                // An access that begins anew, as where the machine's host takes memory away, is its own.
                if trigger != Some(ip) {
                    assert!(
                        trigger.is_none() || trigger == *executed || executed.is_none(),
                        "{context}"
                    );
                    assert_eq!(line["not_memory"], executed.is_none(), "{context}");
                }
                n_accesses += u32::from(line["not_memory"] == false);
                let Some(object) = line["object"].as_str() else { continue };
                n_named += 1;
                n_slow += u32::from(object == slow);
                // A load over its own base leaves no address behind.
                let Some(addr) = line["addr"].as_str().map(hex) else {
                    assert_eq!(object, slow, "{context}");
                    continue;
                };
                assert_eq!(place("lines").contains(&addr), object == slow, "{context}");
                for (name, members) in HOT {
                    assert_eq!(place(name).contains(&addr), members.contains(&object), "{context}");
                }
            }
            let context = format!("{optimisation} {kind} {position}: {n_named} of {n_accesses}");
            assert!(n_accesses > 20 && n_named * 10 >= n_accesses * 9, "{context}");
            assert!(n_slow > 0, "{context}: none at {slow}");
            println!("{context} are named, {n_slow} are at the slow field");
        }
    }
}

#[test]
fn each_sample_of_a_loop_is_of_the_access_before_it() {
    check("-O2");
}

#[test]
fn each_sample_of_a_loop_that_is_less_optimised_is_of_the_access_before_it() {
    check("-O1");
}
