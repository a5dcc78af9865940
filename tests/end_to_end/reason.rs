//! Each of the reasons why a sample has no data object, live on a program that gives cause for it.

use crate::support::{
    Recorded, Running, compile, in_kernel, last_snapshot, record, samples_of, snapshot_once, total,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

fn unknown(snapshot: &Value, reason: &str) -> u64 {
    snapshot["accounting"]["unknown"][reason].as_u64().unwrap_or(0)
}

fn program() -> std::path::PathBuf {
    compile("reason", &["-O2", "-g", "-no-pie"])
}

/// Watches the loop called `reason` by the clock: that reason has most of its memory samples, for all of its
/// accesses are of one kind. Those of `other` are not counted.
fn clock_but(program: &Path, reason: &str, other: fn(&Value) -> u64) {
    let (running, _) = Running::start(program, &[reason]);
    let memory = |snapshot: &Value| total(snapshot) - in_kernel(snapshot) - other(snapshot);
    let args = ["top", "-p", &running.pid(), "-e", "cpu-clock", "-c", "500000"];
    let Some(snapshot) = snapshot_once(&args, |snapshot| memory(snapshot) >= 1000) else { return };
    let (memory, of_reason) = (memory(&snapshot), unknown(&snapshot, reason));
    let context = format!("{of_reason} of {memory} {reason}: {}", snapshot["accounting"]);
    assert!(memory > 50 && of_reason * 100 >= memory * 80, "{context}");
}

fn clock(program: &Path, reason: &str) {
    clock_but(program, reason, |_| 0);
}

/// How often a program under a breakpoint goes through its loop: its hits, 360 bytes each, fit into a
/// ring of 512 KiB, however late it is read.
const ROUNDS: u64 = 100;

/// Runs the loop called `reason` under a breakpoint on heap memory.
fn breakpoint(program: &Path, address: &str, reason: &str) -> Option<Value> {
    let event = format!("mem:{address}/8:rw:u");
    let (program, rounds) = (program.to_str().unwrap(), ROUNDS.to_string());
    let command = [program, reason, &rounds];
    last_snapshot(&[&["top", "-e", &event, "-c", "1", "--json", "--"][..], &command].concat())
}

#[test]
fn without_debug_information_the_clock_is_unascertainable() {
    clock(&compile("reason", &["-O2", "-s", "-no-pie"]), "unascertainable");
}

#[test]
fn code_that_nobody_bounds_is_unverifiable() {
    clock(&compile("reason", &["-O2", "-s", "-no-pie"]), "unverifiable");
}

#[test]
fn where_two_ways_meet_without_a_trace_the_clock_is_unresolvable() {
    // The access on one of the ways, and one that begins anew, as on a machine whose host takes memory away.
    clock_but(&program(), "unresolvable", |snapshot| {
        snapshot["accounting"]["attributed"].as_u64().unwrap_or(0)
    });
}

#[test]
fn words_in_storage_of_bytes_are_unidentified() {
    clock(&program(), "unidentified");
}

#[test]
fn what_a_pointer_without_a_variable_points_at_is_undetermined() {
    clock(&program(), "undetermined");
}

#[test]
fn what_is_no_address_is_invalid() {
    // The kernel's time on the refused access is the access's: without it there are no samples.
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    let is_open = paranoid.trim().parse::<i32>().unwrap() < 2;
    if !is_open && !rustix::process::geteuid().is_root() {
        eprintln!("not run: samples in the kernel are not permitted");
        return;
    }
    let (running, _) = Running::start(&program(), &["invalid_address"]);
    let args = ["top", "-p", &running.pid(), "-e", "cpu-clock", "-c", "500000"];
    let invalid = |snapshot: &Value| unknown(snapshot, "invalid_address");
    let Some(snapshot) = snapshot_once(&args, |snapshot| invalid(snapshot) > 50) else { return };
    let invalid = invalid(&snapshot);
    assert!(invalid > 50, "{invalid}: {}", snapshot["accounting"]);
}

#[test]
fn an_operand_of_a_call_is_reported_in_the_callee_and_blocked() {
    let Some(snapshot) = breakpoint(&program(), "0x20000000", "blocked") else { return };
    // Ten calls a round; the store that sets the pointer is the one answer.
    assert_eq!(unknown(&snapshot, "blocked"), 10 * ROUNDS, "{}", snapshot["accounting"]);
    assert_eq!(snapshot["accounting"]["attributed"], 1);
}

#[test]
fn a_hit_that_is_held_back_is_unspecified() {
    // The load of the segment is reported one too late; the store before it is not.
    let nameless = compile("reason", &["-O2", "-s", "-no-pie"]);
    let Some(snapshot) = breakpoint(&nameless, "0x20000008", "unspecified") else { return };
    assert_eq!(unknown(&snapshot, "unspecified"), ROUNDS, "{}", snapshot["accounting"]);
    assert_eq!(unknown(&snapshot, "unascertainable"), ROUNDS, "{}", snapshot["accounting"]);
    // Where the store has a name, its votes name the load: it is of the same memory.
    let Some(snapshot) = breakpoint(&program(), "0x20000008", "unspecified") else { return };
    assert_eq!(snapshot["accounting"]["attributed"], 2 * ROUNDS, "{}", snapshot["accounting"]);
    assert_eq!(snapshot["accounting"]["voted"], ROUNDS, "{}", snapshot["accounting"]);
    let object = "{structure:cell}.{array[7]:long_int rest}";
    assert_eq!(samples_of(&snapshot, object), 2 * ROUNDS);
}

#[test]
fn a_counter_far_from_any_access_is_incomplete() {
    let Some(Recorded { lines, .. }) = record(
        &program(),
        &["incomplete", "1000"],
        "cpu-clock:u",
        &["-c", "500000"],
        &["--skid", "2"],
    ) else {
        return;
    };
    let is_incomplete = |line: &&Value| line["reason"] == "incomplete";
    let incomplete = lines.iter().filter(is_incomplete).count();
    assert!(lines.len() > 20 && incomplete * 2 >= lines.len(), "{incomplete} of {}", lines.len());
}

#[test]
fn a_load_over_its_own_base_has_lost_its_address_but_not_its_type() {
    let args = ["register_loss", "100"];
    let Some(Recorded { lines, .. }) =
        record(&program(), &args, "cpu-clock:u", &["-c", "500000"], &[])
    else {
        return;
    };
    // Waits gather after the slow load. How many samples fall elsewhere in the loop is the machine's affair.
    // One may be held up at another loss before the loop begins.
    let mut by_ip: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for line in &lines {
        by_ip.entry(line["ip"].as_str().unwrap()).or_default().push(line);
    }
    let is_lost = |line: &&&Value| line["reason"] == "register_loss";
    let n_lost = |of_ip: &Vec<&Value>| of_ip.iter().filter(is_lost).count();
    let after_load = by_ip.into_values().max_by_key(n_lost).unwrap_or_default();
    let first = *after_load.first().unwrap_or_else(|| panic!("no samples"));
    assert!(after_load.len() > 50, "{} of {}", after_load.len(), lines.len());
    for line in after_load {
        assert_eq!(line["scope"]["function"], "chase");
        assert_eq!(line["trigger"], first["trigger"], "one instruction leads there");
        assert_ne!(line["trigger"], line["ip"]);
        assert_eq!(line["reason"], "register_loss");
        assert_eq!(line["object"], "{structure:cell}.{pointer+structure:cell next}");
        assert!(line["addr"].is_null(), "{line}");
    }
}
