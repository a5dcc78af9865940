//! Questions to the history, held to a program that tells who touches what, and to `addr2line`.

use crate::support::{compile, run};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of the program's objects.
const PAGE: u64 = 4096;

/// A recording of all page faults of a program whose threads say what they touched.
struct Recorded {
    file: PathBuf,
    program: PathBuf,
    /// Each thread, its name, its first object and how many it touched.
    threads: Vec<(u64, &'static str, u64, u64)>,
    /// The static array.
    table: u64,
    _dir: tempfile::TempDir,
}

fn recorded() -> Option<Recorded> {
    let program = compile("instances", &["-O2", "-g", "-pthread"]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    let args = ["record", "-e", "page-faults", "-c", "1", "-o", file.to_str().unwrap(), "--"];
    let output = run(&[&args[..], &[program.to_str().unwrap()]].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    if matches!(output.status.code(), Some(3 | 4)) {
        eprintln!("not run: {said}");
        return None;
    }
    assert!(output.status.success(), "{said}");
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let mut threads = Vec::new();
    let mut table = 0;
    for line in said.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["thread", tid, first, n] => {
                let name = if n == "30" { "thirty" } else { "seventy" };
                threads.push((tid.parse().unwrap(), name, number(first), n.parse().unwrap()));
            }
            ["table", first] => table = number(first),
            _ => {}
        }
    }
    assert_eq!(threads.len(), 2, "{said}");
    Some(Recorded { file, program, threads, table, _dir: dir })
}

/// The answer to a question, in which every sample is in one row.
#[track_caller]
fn report(file: &Path, args: &[&str]) -> Value {
    let output = run(&[&["report", "-i", file.to_str().unwrap(), "--json"], args].concat());
    assert!(output.status.success(), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    for metric in ["samples", "loads", "stores", "latency"] {
        let rows = answer["rows"].as_array().unwrap().iter();
        let sum: u64 = rows.map(|row| row["metrics"][metric].as_u64().unwrap()).sum();
        assert_eq!(Some(sum), answer["total"][metric].as_u64(), "{metric}: {answer}");
    }
    answer
}

/// Samples by keys.
fn rows(answer: &Value) -> BTreeMap<String, u64> {
    let rows = answer["rows"].as_array().unwrap().iter();
    rows.map(|row| (row["key"].to_string(), row["metrics"]["samples"].as_u64().unwrap())).collect()
}

const MINE: &str = "type == \"page\" && comm != null && address_source == \"sampled\"";

#[test]
fn each_thread_has_the_instances_that_it_says_it_touched() {
    let Some(recorded) = recorded() else { return };
    let answer = report(&recorded.file, &["--by", "thread,comm,instance", "--where", MINE]);
    let found = rows(&answer);
    for (tid, name, first, n) in &recorded.threads {
        for idx in 0..*n {
            let key = json!([tid, name, format!("{:#x}", first + idx * PAGE)]).to_string();
            assert_eq!(found.get(&key), Some(&1), "{key} of {found:?}");
        }
    }
    // One a page of the two arrays, and of the static one all but what was touched before.
    let n_touched: u64 = recorded.threads.iter().map(|(.., n)| n).sum();
    let in_table = found.len() as u64 - n_touched;
    assert!((30..=40).contains(&in_table), "{in_table} of the static array");
    let by_page = report(&recorded.file, &["--by", "page,alignment", "--where", MINE]);
    for (_, _, first, n) in &recorded.threads {
        for idx in 0..*n {
            let key = json!([format!("{:#x}", first + idx * PAGE), 0]).to_string();
            assert!(rows(&by_page).contains_key(&key), "{key}");
        }
    }
    let filter = format!("{MINE} && variable == \"table\"");
    let by_index = report(&recorded.file, &["--by", "index,address", "--where", &filter]);
    for key in rows(&by_index).keys() {
        let key: Value = serde_json::from_str(key).unwrap();
        let address = recorded.table + key[0].as_u64().unwrap() * PAGE + 8;
        assert_eq!(key[1], json!(format!("{address:#x}")), "the count of each element");
    }
    let members = report(&recorded.file, &["--by", "member,access", "--where", MINE]);
    assert_eq!(rows(&members)["[\"key\",\"store\"]"], 30);
    assert_eq!(rows(&members)["[\"count\",\"store\"]"], 70 + in_table);
}

#[test]
fn formulas_say_what_they_say_of_the_addresses() {
    let Some(recorded) = recorded() else { return };
    let filter = format!("{MINE} && comm == \"seventy\"");
    let args = ["--by", "huge", "--key", "huge=addr / 2097152 * 2", "--where", &filter];
    let mut expected = BTreeMap::new();
    let (_, _, first, n) = recorded.threads[1];
    for idx in 0..n {
        let huge = (first + idx * PAGE) / (2 << 20) * 2;
        *expected.entry(json!([huge]).to_string()).or_insert(0) += 1;
    }
    assert_eq!(rows(&report(&recorded.file, &args)), expected);
    let odd = format!("{filter} && (addr / 4096) % 2 == 1");
    let n_odd = (0..n).filter(|idx| (first / PAGE + idx) % 2 == 1).count() as u64;
    assert_eq!(
        report(&recorded.file, &["--by", "comm", "--where", &odd])["total"]["samples"],
        n_odd
    );
}

#[test]
fn lines_are_those_of_addr2line_with_the_calls_that_were_put_in_line() {
    let Some(recorded) = recorded() else { return };
    let program = recorded.program.to_str().unwrap();
    let filter = format!("module == \"{program}\" && instruction != null");
    let args = ["--by", "instruction,line,inlined", "--where", &filter];
    let answer = report(&recorded.file, &args);
    let mut seen = BTreeSet::new();
    for key in rows(&answer).keys() {
        let key: Value = serde_json::from_str(key).unwrap();
        let (module, at) = key[0].as_str().unwrap().rsplit_once('+').unwrap();
        if module != program {
            continue;
        }
        let told = Command::new("addr2line").args(["-i", "-e", module, at]).output().unwrap();
        let told = String::from_utf8(told.stdout).unwrap();
        let told = told.lines().map(|line| line.split(" (").next().unwrap());
        let told: Vec<&str> = told.filter(|line| !line.starts_with("??")).collect();
        let inlined = key[2].as_str().map(|lines| lines.split(" < ").collect());
        let inlined: Vec<&str> = inlined.unwrap_or_default();
        let ours: Vec<&str> = key[1].as_str().into_iter().chain(inlined).collect();
        assert_eq!(ours, told, "{module}+{at}");
        seen.insert(ours.len());
    }
    assert!(
        seen.contains(&1) && seen.contains(&2),
        "a line in line, and one that is not: {seen:?}"
    );
}

#[test]
fn lines_of_script_lead_other_tools_to_the_instruction() {
    let Some(recorded) = recorded() else { return };
    let program = recorded.program.to_str().unwrap();
    let fields = "module,file_address,file,line,symbol,symbol_offset,trigger";
    let input = recorded.file.to_str().unwrap();
    let output = run(&["script", "-i", input, "--fields", fields]);
    let symbols = Command::new("nm").args(["-C", program]).output().unwrap();
    let symbols = String::from_utf8(symbols.stdout).unwrap();
    let start_of = |name: &str| {
        let mut words = symbols.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let found = words.find(|words| words.last() == Some(&name)).unwrap();
        u64::from_str_radix(found[0], 16).unwrap()
    };
    let mut n_checked = 0;
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        assert!(line.starts_with("{\"module\":"), "the fields in their order: {line}");
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line.as_object().unwrap().len(), 7);
        if line["module"] != program {
            continue;
        }
        let at = line["file_address"].as_str().unwrap();
        let told = Command::new("addr2line").args(["-e", program, at]).output().unwrap();
        let told = String::from_utf8(told.stdout).unwrap();
        let told = told.split([' ', '\n']).next().unwrap();
        match line["file"].as_str() {
            Some(file) => assert_eq!(format!("{file}:{}", line["line"]), told, "{at}"),
            // Code that was fetched for the first time may be the C library's, as `_start`.
            None => assert!(told.starts_with("??:"), "{at} {told}"),
        }
        // What links to libraries has no symbol.
        let Some(symbol) = line["symbol"].as_str().map(start_of) else {
            assert_eq!(line["file"], Value::Null, "{at}");
            continue;
        };
        let at = u64::from_str_radix(at.trim_start_matches("0x"), 16).unwrap();
        assert_eq!(symbol + line["symbol_offset"].as_u64().unwrap(), at);
        n_checked += 1;
    }
    assert!(n_checked > 100, "{n_checked} samples of the program");
    let refused = run(&["script", "-i", input, "--fields", "time_ns,object_"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("time_ns"), "it lists them");
}

#[test]
fn cpus_are_on_the_nodes_that_the_kernel_links_them_to() {
    let Some(recorded) = recorded() else { return };
    let live =
        ["top", "--json", "--once", "--duration", "0.3", "--by", "cpu,node", "-e", "cpu-clock"];
    let live = run(&[&live[..], &["--", "sh", "-c", "while :; do :; done"]].concat());
    let live: Value = serde_json::from_slice(&live.stdout).unwrap();
    for answer in [report(&recorded.file, &["--by", "cpu,node"]), live] {
        assert!(!rows(&answer).is_empty(), "{answer}");
        for key in rows(&answer).keys() {
            let key: Value = serde_json::from_str(key).unwrap();
            let links =
                std::fs::read_dir(format!("/sys/devices/system/cpu/cpu{}", key[0])).unwrap();
            let names = links.map(|link| link.unwrap().file_name().into_string().unwrap());
            let nodes = names.filter_map(|name| name.strip_prefix("node")?.parse::<u64>().ok());
            // A kernel without NUMA has none.
            assert_eq!(key[1].as_u64(), nodes.into_iter().next(), "{key}");
        }
    }
}

#[test]
fn a_recording_that_does_not_fit_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    // `tail` holds what it reads: a fault for each page of it, several chunks of the history.
    let shell = "head -c 120000000 /dev/zero | tail -c 119000000 > /dev/null";
    let args = ["record", "-e", "page-faults", "-c", "1", "-o", file.to_str().unwrap(), "--"];
    let output = run(&[&args[..], &["sh", "-c", shell]].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    if matches!(output.status.code(), Some(3 | 4)) {
        eprintln!("not run: {said}");
        return;
    }
    assert!(output.status.success(), "{said}");
    for keys in ["comm,cpu", "line", "second", "object"] {
        for rest in [&[][..], &["--span", "..1s", "--where", "memory || comm == \"tail\""]] {
            let args = [&["--by", keys], rest].concat();
            let whole = report(&file, &args);
            let small = report(&file, &[&args[..], &["--history", "1"]].concat());
            assert_eq!(whole, small, "{args:?}");
            assert!(whole["rows_held"].as_u64().unwrap() > 0, "{whole}");
            assert_eq!(whole["rows_held"], whole["rows_of_span"]);
        }
    }
    let all = report(&file, &["--by", "memory"]);
    assert!(all["rows_of_span"].as_u64().unwrap() > 20_000, "more than fits: {all}");
    // What comes through a pipe comes once: the answer says on how much of it it rests.
    let program = env!("CARGO_BIN_EXE_dataspace");
    let stream = dir.path().join("stream");
    let piped = format!(
        "{program} record -e page-faults -c 1 -o - -- sh -c '{shell}' > {0}; \
         cat {0} | {program} report -i - --history 1 --by memory --json",
        stream.to_str().unwrap()
    );
    let output = Command::new("sh").args(["-c", &piped]).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(answer["rows_held"].as_u64().unwrap() > 0, "{answer}");
    assert!(answer["rows_held"].as_u64() < answer["rows_of_span"].as_u64(), "{answer}");
}

#[test]
fn every_key_has_each_sample_in_one_row() {
    let Some(recorded) = recorded() else { return };
    let snapshot = run(&["report", "-i", recorded.file.to_str().unwrap(), "--json"]);
    let snapshot: Value = serde_json::from_slice(&snapshot.stdout).unwrap();
    let total = snapshot["objects"][0]["metrics"]["all"]["samples"].as_u64().unwrap();
    let kernel = snapshot["accounting"]["kernel"].as_u64().unwrap();
    for keys in [
        "object",
        "aggregate",
        "member",
        "type",
        "variable",
        "function",
        "line",
        "instruction",
        "module",
        "process",
        "comm",
        "thread",
        "cpu",
        "node",
        "cgroup",
        "unit",
        "second",
        "access",
        "level",
        "latency_bucket",
        "evidence",
        "reason",
        "region",
        "page",
        "cacheline",
        "address",
        "instance",
        "index",
        "alignment",
        "thread,object,second",
        "offset % 64",
    ] {
        let answer = report(&recorded.file, &["--by", keys]);
        assert_eq!(answer["total"]["samples"], total, "{keys}");
        assert_eq!(
            (&answer["rows_of_span"], &answer["rows_held"]),
            (&json!(kernel), &json!(kernel))
        );
    }
    assert_eq!(report(&recorded.file, &["--by", "memory"])["total"]["samples"], kernel);
    // Objects are those of the snapshot, each with what is charged to it alone.
    let by_reason = report(&recorded.file, &["--by", "reason", "--where", "reason != null"]);
    for (reason, samples) in snapshot["accounting"]["unknown"].as_object().unwrap() {
        assert_eq!(
            Some(&rows(&by_reason)[&json!([reason]).to_string()]),
            samples.as_u64().as_ref()
        );
    }
}

#[test]
fn what_means_nothing_is_said_with_its_column() {
    let fails = |args: &[&str]| {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let asked = |args: &[&str]| fails(&[&["report", "-i", "/nonexistent"], args].concat());
    let wrong = asked(&["--by", "object", "--where", "functoin == \"main\""]);
    assert!(wrong.contains("no field functoin") && wrong.contains("function"), "{wrong}");
    assert!(asked(&["--by", "objekt"]).contains("  objekt\n  ^"));
    assert!(asked(&["--where", "cpu + 1"]).contains("true or false"));
    assert!(asked(&["--metrics", "sampels"]).contains("samples, share"));
    assert!(asked(&["--span", "5s"]).contains("FROM..TO"));
    assert!(asked(&["--by", "cpu", "--format", "folded"]).contains("stacks"));
    let top = ["top", "--once", "--by", "objekt", "--", "true"];
    assert!(fails(&top).contains("objekt"), "before a command is started");
}

#[test]
fn a_live_session_answers_when_it_has_ended_unless_it_keeps_nothing() {
    let program = compile("leaves", &["-O2", "-g"]);
    let program = program.to_str().unwrap();
    let events =
        ["--once", "--json", "-e", "page-faults", "-c", "1", "--by", "function,member,line"];
    let filter = ["--where", "aggregate == \"{structure:leaf}\"", "--", program];
    let output = run(&[&["top"], &events[..], &filter].concat());
    if matches!(output.status.code(), Some(3 | 4)) {
        eprintln!("not run: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut found: Vec<(String, u64)> = Vec::new();
    for row in answer["rows"].as_array().unwrap() {
        assert!(row["key"][2].as_str().unwrap().contains("leaves.c:"), "{row}");
        let name = row["key"][0].as_str().unwrap().to_owned();
        found.push((name, row["metrics"]["samples"].as_u64().unwrap()));
    }
    let expected = [("fill_keys", 300), ("fill_counts", 200), ("fill_more", 100)];
    assert_eq!(found, expected.map(|(name, n)| (name.to_owned(), n)));
    let output = run(&[&["top", "--history", "0"], &events[..], &filter].concat());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("keeps no history"), "{said}");
}
