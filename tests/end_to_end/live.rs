//! Live sessions on programs whose hot data is known.

use crate::support::{
    Running, compile, copy_program, in_kernel, last_snapshot, lost, run, samples_of, snapshot_once,
    sqlite, total,
};
use serde_json::Value;
use std::process::Command;

/// The address of a symbol, by nm.
fn address_of(program: &std::path::Path, symbol: &str) -> String {
    let output = Command::new("nm").arg(program).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.ends_with(&format!(" {symbol}"))).unwrap();
    format!("0x{}", line.split(' ').next().unwrap())
}

fn count(snapshot: &Value, path: &[&str]) -> u64 {
    let value = path.iter().fold(snapshot, |value, key| &value[*key]);
    value.as_u64().unwrap_or(0)
}

#[test]
fn a_pointer_chase_waits_on_next() {
    let (program, _) = Running::start(&compile("chase", &["-O2", "-g"]), &[]);
    let args = ["top", "-p", &program.pid()];
    // What the kernel does meanwhile, as on an interrupt, is not the program's.
    let memory = |snapshot: &Value| total(snapshot) - in_kernel(snapshot);
    let Some(snapshot) = snapshot_once(&args, |snapshot| memory(snapshot) >= 1000) else { return };
    let next = samples_of(&snapshot, "{structure:cell}.{pointer+structure:cell next}");
    let memory = memory(&snapshot);
    assert!(memory >= 1000 && next * 100 >= memory * 97, "{next} of {memory} on next");
}

#[test]
fn every_access_under_a_breakpoint_is_counted() {
    // Of 360 bytes each: they fit into a ring of 512 KiB, however late it is read.
    const N_STORES: u64 = 1200;
    let program = compile("count", &["-O2", "-g", "-no-pie"]);
    let event = format!("mem:{}/8:rw", address_of(&program, "counter"));
    let (program, n_stores) = (program.to_str().unwrap(), N_STORES.to_string());
    let args = ["top", "-e", &event, "-c", "1", "--json", "--", program, &n_stores];
    let Some(snapshot) = last_snapshot(&args) else { return };
    let object = snapshot["objects"]
        .as_array()
        .unwrap()
        .iter()
        .find(|object| object["object"] == "{long_int counter}")
        .expect("the counter is named");
    // Where little memory may be locked the rings are smaller; what they lose is counted.
    let n_seen = N_STORES - lost(&snapshot);
    assert_eq!(count(object, &["metrics", "all", "stores"]), n_seen);
    assert_eq!(count(object, &["metrics", "all", "evidence", "both"]), n_seen);
    // The kernel itself clears the variable when it sets the program up, at most byte by byte: of
    // those accesses only the address is known.
    let by_kernel = object["metrics"]["all"]["evidence"]["address"].as_u64().unwrap_or(0);
    assert!(by_kernel <= 8, "{by_kernel}");
    assert_eq!(count(object, &["metrics", "all", "samples"]), n_seen + by_kernel);
    // Before the program is mapped nothing tells what is there.
    let unknown = snapshot["accounting"]["unknown"].as_object().unwrap();
    assert!(unknown.keys().all(|reason| reason == "kernel"), "{unknown:?}");
    let functions = object["scope"].as_array().unwrap();
    assert!(functions.iter().all(|scope| scope["function"] == "bump"), "{functions:?}");
}

#[test]
fn sqlite_is_named_by_its_own_structures() {
    let (program, _) = Running::start(&sqlite(), &[]);
    let has_member_of = |snapshot: &Value, names: &[&str]| {
        snapshot["objects"].as_array().unwrap().iter().any(|object| {
            let object = object["object"].as_str().unwrap();
            names.iter().any(|name| object.starts_with(&format!("{{structure:{name}}}.{{")))
        })
    };
    let wanted = [&["VdbeOp"][..], &["Mem", "sqlite3_value"], &["BtCursor"], &["MemPage"]];
    let is_enough = |snapshot: &Value| wanted.iter().all(|names| has_member_of(snapshot, names));
    let Some(snapshot) = snapshot_once(&["top", "-p", &program.pid()], is_enough) else { return };
    for names in wanted {
        assert!(has_member_of(&snapshot, names), "no member of {names:?}");
    }
    assert_eq!(snapshot["accounting"]["unknown"].get("pending"), None, "pending drains");
}

#[test]
fn globals_are_named_by_type_and_place() {
    let (program, said) = Running::start(&compile("globals", &["-O1", "-g"]), &[]);
    let fact = |name: &str| -> u64 {
        said.iter().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse().unwrap()
    };
    let y = "{structure:order}.{array[3]:structure:point at}.{int y}";
    let table = "{array[4096]:long_int table}";
    let is_enough = |snapshot: &Value| {
        samples_of(snapshot, y).min(samples_of(snapshot, table)) > 0 && total(snapshot) > 500
    };
    let Some(snapshot) = snapshot_once(&["top", "-p", &program.pid()], is_enough) else { return };
    let objects = snapshot["objects"].as_array().unwrap();
    let find = |name: &str| objects.iter().find(|object| object["object"] == name);
    let y = find(y).expect("book[].at[].y");
    // The element of the inner array is not told in a name: the offset is that of the first.
    assert_eq!(y["offset"].as_u64().unwrap(), fact("offset ") - 8);
    assert_eq!(count(find("{structure:order}").unwrap(), &["size"]), fact("size "));
    assert!(samples_of(&snapshot, table) > 0);
}

#[test]
fn locals_are_named_by_their_place_on_the_stack() {
    let (program, said) = Running::start(&compile("locals", &["-O0", "-g"]), &[]);
    assert_eq!(said[2], "local.mean+72 8");
    let mean = "{structure:local}.{double mean}";
    let is_enough = |snapshot: &Value| samples_of(snapshot, mean) > 0 && total(snapshot) > 500;
    let Some(snapshot) = snapshot_once(&["top", "-p", &program.pid()], is_enough) else { return };
    let objects = snapshot["objects"].as_array().unwrap();
    let mean = objects.iter().find(|object| object["object"] == mean);
    assert_eq!(mean.expect("the hot member is named")["offset"].as_u64(), Some(72));
}

#[test]
fn threads_and_children_born_later_are_seen() {
    let program = compile("threads", &["-O2", "-g", "-pthread"]);
    let args = ["top", "--json", "--", program.to_str().unwrap()];
    let Some(snapshot) = last_snapshot(&args) else { return };
    let job = snapshot["objects"]
        .as_array()
        .unwrap()
        .iter()
        .find(|object| object["object"] == "{structure:job}.{long_int done}");
    // Two processes of sixteen threads each, of which a few may be too short for a sample.
    let threads = count(job.expect("the threads' work is named"), &["metrics", "all", "threads"]);
    assert!(threads > 16, "{threads} threads");
}

#[test]
fn exec_leads_to_the_next_program() {
    let program = compile("stages", &["-O1", "-g"]);
    let args = ["top", "--json", "--", program.to_str().unwrap()];
    let Some(snapshot) = last_snapshot(&args) else { return };
    assert!(samples_of(&snapshot, "{structure:first}.{long_int a}") > 10);
    assert!(samples_of(&snapshot, "{structure:second}.{long_int b}") > 10);
}

#[test]
fn a_library_loaded_later_is_named() {
    let plugin = compile("plugin", &["-O1", "-g", "-shared", "-fPIC"]);
    let loader = compile("loader", &["-O1", "-g", "-ldl"]);
    let (mut program, _) = Running::start(&loader, &[plugin.to_str().unwrap()]);
    let (pid, mut is_told) = (program.pid(), false);
    let hits = |snapshot: &Value| samples_of(snapshot, "{structure:plug}.{long_int hits}");
    let is_enough = |snapshot: &Value| {
        // With the first snapshot the session is at work: now the library may come.
        if !std::mem::replace(&mut is_told, true) {
            program.say("go");
        }
        hits(snapshot) > 10
    };
    let Some(snapshot) = snapshot_once(&["top", "-p", &pid], is_enough) else { return };
    assert!(hits(&snapshot) > 10);
}

#[test]
fn a_deleted_program_is_read_through_its_mapping() {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("gone");
    copy_program(&compile("globals", &["-O1", "-g"]), &copy);
    let (program, _) = Running::start(&copy, &[]);
    std::fs::remove_file(&copy).unwrap();
    let orders = |snapshot: &Value| samples_of(snapshot, "{structure:order}");
    let args = ["top", "-p", &program.pid()];
    let Some(snapshot) = snapshot_once(&args, |snapshot| orders(snapshot) > 10) else { return };
    assert!(orders(&snapshot) > 10);
}

#[test]
fn a_flood_is_lost_only_by_the_kernels_own_count() {
    let program = compile("flood", &["-O2", "-g"]);
    let event = "syscalls:sys_enter_getppid";
    let args = ["top", "-e", event, "-c", "1", "--json", "--", program.to_str().unwrap(), "400000"];
    let Some(snapshot) = last_snapshot(&args) else { return };
    // Period 1: the program's own number of system calls is the number of samples the kernel took.
    assert_eq!(count(&snapshot, &["accounting", "kernel"]), 400_000);
}

#[test]
fn page_faults_name_what_is_touched_first() {
    let program = compile("chase", &["-O2", "-g"]);
    let program = program.to_str().unwrap();
    let args = ["top", "-e", "page-faults", "--", program, "16"];
    // 16 MiB of cells are 4,096 pages, each touched first by a store to `next`; a burst of faults
    // may be faster than the reader, and what the ring had no room for is in its count.
    let touches = |snapshot: &Value| {
        let cells = samples_of(snapshot, "{structure:cell}.{pointer+structure:cell next}");
        (cells, cells + lost(snapshot))
    };
    let Some(snapshot) = snapshot_once(&args, |snapshot| touches(snapshot).1 >= 4000) else {
        return;
    };
    let (cells, with_lost) = touches(&snapshot);
    assert!(cells <= 4200 && with_lost >= 4000, "{cells} first touches, {with_lost} with the lost");
}

#[test]
fn the_target_goes_on_after_we_leave() {
    let (mut program, _) = Running::start(&compile("chase", &["-O2", "-g"]), &["8"]);
    let output = run(&["top", "-p", &program.pid(), "--once", "--duration", "0.3"]);
    assert!(program.is_running(), "{output:?}");
}
