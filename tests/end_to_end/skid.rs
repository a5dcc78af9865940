//! Where a clock sample is not one instruction late: repeated string instructions, accesses that
//! fault, time in the kernel. The instruction just before the one in question touches `before`. Nearly all of a
//! kind are of the instruction in question, and would be of the one before if they were taken for late ones:
//! how many stray is the machine's affair.

use crate::support::{
    Recorded, Running, compile, in_kernel, record, samples_of, snapshot_once, total,
};
use serde_json::Value;

const BEFORE: &str = "{structure:note}.{long_int before}";
const FIRST: &str = "{structure:page}.{long_int first}";

/// Instructions whose operand is in a page that is not there yet.
const FAULTING: [&str; 3] = ["store", "update", "load"];

fn count(snapshot: &Value, path: &[&str]) -> u64 {
    path.iter().fold(snapshot, |value, key| &value[*key]).as_u64().unwrap_or(0)
}

/// The last snapshot of `event` over the program in `mode`, once it has so many samples of `what`.
fn watch(mode: &str, event: &str, what: fn(&Value) -> u64, n_samples: u64) -> Option<Value> {
    let (program, _) = Running::start(&compile("skid", &["-O2", "-g"]), &[mode, "-1"]);
    let args = ["top", "-p", &program.pid(), "-e", event, "-c", "333333"];
    snapshot_once(&args, |snapshot| what(snapshot) >= n_samples)
}

/// Samples of the program's own accesses.
fn memory(snapshot: &Value) -> u64 {
    total(snapshot) - in_kernel(snapshot)
}

/// Whether samples in the kernel are permitted; says so where they are not.
fn may_sample_kernel() -> bool {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    let is_open = paranoid.trim().parse::<i32>().unwrap() < 2;
    let may = is_open || rustix::process::geteuid().is_root();
    if !may {
        eprintln!("not run: samples in the kernel are not permitted");
    }
    may
}

/// A recording of a program in `mode`, as `script` says it, and the address of the instruction.
fn lines_of(mode: &str, n_rounds: &str, event: &str) -> Option<(Vec<Value>, u64)> {
    let program = compile("skid", &["-O2", "-g"]);
    let Recorded { lines, said } =
        record(&program, &[mode, n_rounds], event, &["-c", "333333"], &[])?;
    let address = said[0].strip_prefix("0x").unwrap();
    Some((lines, u64::from_str_radix(address, 16).unwrap()))
}

fn address(line: &Value, key: &str) -> Option<u64> {
    let text = line[key].as_str()?.strip_prefix("0x")?;
    u64::from_str_radix(text, 16).ok()
}

#[test]
fn a_repeated_string_instruction_is_its_own_trigger() {
    for mode in ["copy", "fill"] {
        for event in ["cpu-clock:u", "task-clock:u"] {
            let Some((lines, rep)) = lines_of(mode, "400", event) else { return };
            let at_rep = lines.iter().filter(|line| address(line, "ip") == Some(rep));
            let (n_at_rep, n_own) = at_rep.fold((0, 0), |(n_at_rep, n_own), line| {
                (n_at_rep + 1, n_own + u32::from(address(line, "trigger") == Some(rep)))
            });
            // Those that the interrupt caught before its first round belong to the one before.
            assert!(n_at_rep > 20, "{n_at_rep} samples at it, {mode} {event}");
            assert!(n_own * 4 > n_at_rep * 3, "{n_own} of {n_at_rep}, {mode} {event}");
        }
    }
}

#[test]
fn the_instruction_before_a_string_instruction_waits_for_nothing() {
    for mode in ["copy", "fill"] {
        let Some(snapshot) = watch(mode, "cpu-clock", memory, 1000) else { return };
        let (before, memory) = (samples_of(&snapshot, BEFORE), memory(&snapshot));
        assert!(memory > 50 && before * 4 < memory, "{before} of {memory}, {mode}");
    }
}

#[test]
fn an_access_that_faults_is_its_own_trigger() {
    for mode in FAULTING {
        for event in ["cpu-clock", "task-clock:u"] {
            if event == "cpu-clock" && !may_sample_kernel() {
                continue;
            }
            // The pages are given back by a system call, which the kernel takes its time for.
            let Some(snapshot) = watch(mode, event, memory, 200) else { return };
            let memory = memory(&snapshot);
            let (first, before) = (samples_of(&snapshot, FIRST), samples_of(&snapshot, BEFORE));
            let context = format!("{first} at it, {before} before, of {memory}, {mode} {event}");
            assert!(memory > 10, "{context}");
            assert!(first * 2 > memory && before * 4 < memory, "{context}");
        }
    }
}

#[test]
fn the_kernels_time_on_a_fault_is_the_accesss() {
    for mode in FAULTING {
        let Some(snapshot) = watch(mode, "cpu-clock:k", memory, 1000) else { return };
        let memory = memory(&snapshot);
        let first = samples_of(&snapshot, FIRST);
        assert!(memory > 50, "{memory} samples in faults, {mode}");
        assert!(first * 4 > memory * 3, "{first} of {memory}, {mode}");
    }
}

#[test]
fn the_kernels_time_in_a_system_call_is_its_own() {
    let Some(snapshot) = watch("call", "cpu-clock:k", in_kernel, 1000) else { return };
    let kernel = in_kernel(&snapshot);
    let all = count(&snapshot, &["accounting", "kernel"]);
    assert!(all > 50, "{all} samples in system calls");
    assert!(kernel * 4 > all * 3, "{kernel} of {all}");
}
