//! Hardware breakpoints as the truth: each instruction of a program that touches a watched member
//! is known, and so is how often it runs.

use crate::support::{Recorded, compile, last_snapshot, lost, record, samples_of, total};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

const WATCHED: &str = "{structure:box}.{long_int watched}";
/// Rounds that perf records: 2,650 hits of 360 bytes, which a ring of 4 MiB holds all, however late
/// perf gets to read it.
const RECORDED_ROUNDS: u64 = 50;
const RECORDED_RING_PAGES: &str = "1024";

/// Rounds under a live session, for the same reason: 1,060 hits of 360 bytes in a ring of 512 KiB.
const LIVE_ROUNDS: u64 = 20;

/// Hits a round in plain C: one in each of five functions, two in the one that copies.
const HITS_IN_C: u64 = 7;

/// Where the member is, and the instructions that touch it, by their address.
struct Truth {
    event: String,
    forms: HashMap<u64, String>,
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text.strip_prefix("0x").unwrap(), 16).unwrap()
}

fn truth(program: &Path, place: &str) -> Truth {
    let output = Command::new(program).args([place, "0"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut truth = Truth { event: String::new(), forms: HashMap::new() };
    for line in text.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["member", address] => truth.event = format!("mem:{address}/8:rw:u"),
            ["form", address, name] => {
                truth.forms.insert(hex(address), name.to_owned());
            }
            _ => panic!("{line}"),
        }
    }
    assert!(truth.forms.len() > 40, "{text}");
    truth
}

/// Whether a line's trigger is an instruction that does touch the member; `None` without one.
fn is_true(line: &Value, truth: &Truth) -> Option<bool> {
    let trigger = hex(line["trigger"].as_str()?);
    let function = line["scope"]["function"].as_str().unwrap_or_default();
    Some(match truth.forms.get(&trigger) {
        Some(name) => name == function,
        // Which instructions the compiler takes is its own; that there are no more is counted.
        None => function.starts_with("c_"),
    })
}

fn check(optimisation: &str, place: &str, sampling: &[&str]) {
    let program = compile("watched", &[optimisation, "-g", "-no-pie"]);
    let truth = truth(&program, place);
    let rounds = RECORDED_ROUNDS.to_string();
    let sampling = [&["-c", "1", "-m", RECORDED_RING_PAGES], sampling].concat();
    let args = [place, &rounds];
    let Some(Recorded { lines, .. }) = record(&program, &args, &truth.event, &sampling, &[]) else {
        return;
    };
    let context = format!("{optimisation} {place} {sampling:?}");
    let n_hits = (truth.forms.len() as u64 + HITS_IN_C) * RECORDED_ROUNDS;
    assert_eq!(lines.len() as u64, n_hits, "{context}");
    let mut by_trigger: HashMap<&str, u64> = HashMap::new();
    let mut in_c = 0;
    for line in &lines {
        assert_ne!(is_true(line, &truth), Some(false), "{context}: {line}");
        if let Some(trigger) = line["trigger"].as_str() {
            match truth.forms.contains_key(&hex(trigger)) {
                true => *by_trigger.entry(trigger).or_default() += 1,
                false => in_c += 1,
            }
        }
    }
    assert!(
        by_trigger.values().all(|count| *count <= RECORDED_ROUNDS),
        "{context}: {by_trigger:?}"
    );
    assert!(in_c <= HITS_IN_C * RECORDED_ROUNDS, "{context}: {in_c}");
    let answered = lines.iter().filter(|line| line["trigger"].is_string()).count() as u64;
    println!("{context}: {answered} of {n_hits} triggers found, none wrong");
    assert!(answered * 100 >= n_hits * 90, "{context}: {answered} of {n_hits}");
}

#[test]
fn every_trigger_of_a_hit_touches_the_watched_member() {
    for optimisation in ["-O0", "-O2"] {
        for place in ["global", "element", "heap"] {
            // With the data address, which rules candidates out, and without.
            check(optimisation, place, &["-d"]);
            check(optimisation, place, &[]);
        }
    }
}

#[test]
fn every_hit_is_charged_to_the_watched_member() {
    for optimisation in ["-O0", "-O2"] {
        for place in ["global", "element"] {
            let program = compile("watched", &[optimisation, "-g", "-no-pie"]);
            let truth = truth(&program, place);
            let (path, rounds) = (program.to_str().unwrap(), LIVE_ROUNDS.to_string());
            let args = ["top", "-e", &truth.event, "-c", "1", "--json", "--", path, place, &rounds];
            let Some(snapshot) = last_snapshot(&args) else { return };
            let n_hits = (truth.forms.len() as u64 + HITS_IN_C) * LIVE_ROUNDS;
            let context = format!("{optimisation} {place}: {}", snapshot["accounting"]);
            assert_eq!(snapshot["accounting"]["kernel"], n_hits, "{context}");
            // Where little memory may be locked the rings are smaller; what they lose is counted.
            let n_seen = n_hits - lost(&snapshot);
            assert_eq!(total(&snapshot), n_seen, "{context}");
            // Wider accesses are the whole box's.
            assert_eq!(samples_of(&snapshot, "{structure:box}"), n_seen, "{context}");
            let watched = samples_of(&snapshot, WATCHED);
            println!("{context}: {watched} of {n_seen} on the member itself");
            assert!(n_seen > 0 && watched * 100 >= n_seen * 85, "{context}: {watched} of {n_seen}");
        }
    }
}
