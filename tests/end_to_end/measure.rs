//! Measurements, held to what the kernel accounts for a program and to what that program knows of itself.

use crate::support::{assert_balanced, compile, dataspace, root, run, sheet};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// Pages of data that the program strides over.
const N_DATA_PAGES: u64 = 16_384;

/// A program of known footprint, which waits to be told.
struct Footprint {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Footprint {
    fn start(program: &Path) -> Self {
        let mut child =
            Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut footprint = Self { child, lines };
        footprint.line("ready");
        footprint
    }

    /// The words of the next line that begins with `what` and is no more than that where it is alone.
    fn line(&mut self, what: &str) -> Vec<String> {
        loop {
            let line = self.lines.next().expect("the program says it").unwrap();
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            if words[0] == what && (what != "ready" || words.len() == 1) {
                return words;
            }
        }
    }

    fn go(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    }
}

impl Drop for Footprint {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn count(report: &Value, event: &str) -> u64 {
    let counts = report["counts"].as_array().unwrap();
    let found = counts.iter().find(|count| count["event"] == event).unwrap();
    assert_eq!(found["count"], found["counted"], "nothing of it is scaled: {found}");
    found["count"].as_u64().unwrap()
}

/// The accounts are even, and each sample of the history is in one row and in one row of each summary.
fn check_sums(report: &Value) {
    assert_balanced(report);
    let total = report["total"]["samples"].as_u64().unwrap();
    let sum = |rows: &Value, field: &dyn Fn(&Value) -> u64| -> u64 {
        rows.as_array().unwrap().iter().map(field).sum()
    };
    let of_row = |row: &Value| row["metrics"]["samples"].as_u64().unwrap();
    assert_eq!(sum(&report["rows"], &of_row), total);
    for (name, rows) in report["summaries"].as_object().unwrap() {
        assert_eq!(sum(rows, &|row| row["samples"].as_u64().unwrap()), total, "{name}");
    }
}

fn row<'a>(rows: &'a Value, name: &str) -> &'a Value {
    let rows = rows.as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}: {rows:?}"))
}

/// The program is attached to, and told to go only then: what it brackets is all that happens meanwhile.
#[test]
fn faults_that_are_counted_are_those_that_the_kernel_accounts() {
    let program = compile("footprint", &["-O1", "-g"]);
    let mut footprint = Footprint::start(&program);
    let pid = footprint.child.id().to_string();
    let mut measure = dataspace(&["measure", "faults", "-s", "1", "-p", &pid, "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(measure.stderr.take().unwrap()).lines();
    let is_sampling = errors.by_ref().any(|line| line.unwrap().starts_with("sampling "));
    if !is_sampling {
        let status = measure.wait().unwrap();
        assert!(matches!(status.code(), Some(3 | 4)), "{status:?}");
        eprintln!("not run: page faults cannot be sampled here");
        return;
    }
    footprint.go();
    let said = footprint.line("bracketed");
    let (minor, major): (u64, u64) = (said[1].parse().unwrap(), said[2].parse().unwrap());
    assert!(minor >= N_DATA_PAGES, "each page of data is touched first: {minor}");
    let measure_pid = rustix::process::Pid::from_child(&measure);
    rustix::process::kill_process(measure_pid, rustix::process::Signal::INT).unwrap();
    let output = measure.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(count(&report, "minor-faults"), minor);
    assert_eq!(count(&report, "major-faults"), major);
    assert_eq!(count(&report, "page-faults"), minor + major);
    check_sums(&report);
    // Every fault is a sample, or a loss that is told.
    assert_eq!(report["accounting"]["kernel"], minor + major);
    let lost: u64 = report["accounting"]["lost"]
        .as_object()
        .unwrap()
        .values()
        .map(|n| n.as_u64().unwrap())
        .sum();
    let stride = row(&report["summaries"]["function"], &function(&program, "stride"));
    let in_stride = stride["samples"].as_u64().unwrap();
    assert!(in_stride <= N_DATA_PAGES && in_stride + lost >= N_DATA_PAGES, "{stride} {lost}");
    let pages = row(&report["summaries"]["object"], "page.number");
    assert_eq!(pages["samples"], in_stride, "they are all of its one store");
    let data = row(&report["summaries"]["segment"], "data")["samples"].as_u64().unwrap();
    assert!(data >= in_stride, "{}", report["summaries"]["segment"]);
    // The store is the one instruction that faults.
    let details = report["details"].as_array().unwrap();
    let code = details.iter().find(|it| it["function"] == "stride").unwrap();
    let faulting: Vec<&Value> = code["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["kind"] == "instruction" && row["samples"] != 0)
        .collect();
    assert_eq!(faulting.len(), 1, "{faulting:?}");
    assert_eq!(faulting[0]["samples"], in_stride);
    assert!(faulting[0]["text"].as_str().unwrap().starts_with("mov"), "{faulting:?}");
}

/// `FILE::FUNCTION` as the summary has it.
fn function(program: &Path, function: &str) -> String {
    format!("{}::{function}", program.file_name().unwrap().to_str().unwrap())
}

/// Time that interrupts and the host took from tasks, by proc_stat(5): the clock of events goes on in it, that of a process does not (`update_rq_clock_task()` in Linux `kernel/sched/core.c`).
fn taken_ns() -> u64 {
    const TICK_NS: u64 = 10_000_000;
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let fields = stat.lines().next().unwrap().split_whitespace();
    // The word `cpu`, then user, nice, system, idle, iowait, irq, softirq, steal.
    let taken = fields.skip(6).take(3).map(|field| field.parse::<u64>().unwrap());
    taken.sum::<u64>() * TICK_NS
}

#[test]
fn time_is_what_the_kernel_accounts_and_samples_stand_for_it() {
    let program = compile("footprint", &["-O1", "-g"]);
    let args = ["measure", "time", "--json", "--", program.to_str().unwrap(), "spin", "1000000"];
    let taken_before_ns = taken_ns();
    let output = run(&args);
    let taken_ns = taken_ns() - taken_before_ns;
    let errors = String::from_utf8_lossy(&output.stderr);
    if matches!(output.status.code(), Some(3 | 4)) {
        eprintln!("not run: {errors}");
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    // A command's own output goes to standard error.
    let line = errors.lines().find(|line| line.starts_with("cpu ")).unwrap();
    let words: Vec<u64> = line.split(' ').skip(1).map(|word| word.parse().unwrap()).collect();
    let cpu_ns = words[0] * 1_000_000_000 + words[1];
    let counted_ns = count(&report, "task-clock");
    // What it says is without its beginning and its end.
    assert!(counted_ns >= cpu_ns * 99 / 100, "{counted_ns} {cpu_ns}");
    let most_ns = cpu_ns * 101 / 100 + 20_000_000 + taken_ns;
    assert!(counted_ns <= most_ns, "{counted_ns} {cpu_ns} {taken_ns}");
    check_sums(&report);
    let spin = row(&report["summaries"]["function"], &function(&program, "spin"));
    let share = spin["percent"].as_f64().unwrap();
    assert!(share > 80.0, "{spin}");
    // The sum is a local, which the loop reads and writes.
    let objects = &report["summaries"]["object"];
    assert!(
        objects.as_array().unwrap().iter().any(|it| it["name"].as_str().unwrap().contains("sum")),
        "{objects}"
    );
    let rates: Vec<&str> = report["rates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rate| rate["name"].as_str().unwrap())
        .collect();
    assert!(rates.contains(&"CPUs used"), "{rates:?}");
    assert_eq!(report["by"].as_array().unwrap().len(), 6);
}

#[test]
fn what_cannot_be_measured_is_told_with_what_comes_nearest() {
    let has_pmu = std::fs::read_dir("/sys/bus/event_source/devices").is_ok_and(|pmus| {
        pmus.flatten().any(|pmu| pmu.file_name().to_string_lossy().starts_with("cpu"))
    });
    if has_pmu {
        eprintln!("not run: this machine has a PMU");
        return;
    }
    for measure in ["dcache", "dtlb", "icache", "itlb"] {
        let output = run(&["measure", measure, "--", "true"]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{errors}");
        assert!(errors.contains("nearest: dataspace measure"), "{errors}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn recordings_are_measured_by_the_events_that_they_have() {
    let recordings = std::env::var("DATASPACE_RECORDINGS")
        .map_or_else(|_| root().join("../shared/recordings"), Into::into);
    let file = |name: &str| recordings.join(name);
    if !file("ivybridge-mem-loads.data").exists() {
        eprintln!("not run: there are no recordings at {}", recordings.display());
        return;
    }
    let report = |measure: &str, name: &str| -> Value {
        let path = file(name);
        let output = run(&["measure", measure, "-i", path.to_str().unwrap(), "--json"]);
        assert!(output.status.success(), "{output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["counts"], Value::Array(Vec::new()), "a recording holds none");
        check_sums(&report);
        report
    };
    // By perf: 14 samples, of which 4 hit the first level, and one missed the TLB.
    let skylake = report("dcache", "skylake-load-latency-weight-struct.data");
    let hits = |report: &Value| -> u64 {
        let rows = report["summaries"]["process"].as_array().unwrap();
        rows.iter().map(|row| row["hits"].as_u64().unwrap()).sum()
    };
    let n_all = skylake["total"]["samples"].as_u64().unwrap() + hits(&skylake);
    assert_eq!(n_all, 14);
    assert_eq!(report("dtlb", "skylake-load-latency-weight-struct.data")["total"]["samples"], 1);
    let ivy_bridge = report("dcache", "ivybridge-mem-loads.data");
    assert_eq!((ivy_bridge["total"]["samples"].as_u64(), hits(&ivy_bridge)), (Some(0), 253));
    assert_eq!(
        report("time", "cometlake-cycles-regs-stack.zstd.pipe.data")["total"]["samples"],
        547
    );
    let wrong =
        run(&["measure", "icache", "-i", file("ivybridge-mem-loads.data").to_str().unwrap()]);
    let errors = String::from_utf8_lossy(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(2), "{errors}");
    assert!(errors.contains("no samples of fetches") && errors.contains("mem-loads"), "{errors}");
}

#[test]
fn spreadsheets_and_text_have_the_same_counts() {
    let program = compile("footprint", &["-O1", "-g"]);
    let program = program.to_str().unwrap();
    let args = ["measure", "faults", "--csv", "--", program, "spin", "1000"];
    if matches!(run(&args).status.code(), Some(3 | 4)) {
        eprintln!("not run: page faults cannot be sampled here");
        return;
    }
    let Some(rows) = sheet(&args) else { return };
    let counts: Vec<&str> =
        rows.iter().filter(|row| row["section"] == "count").map(|row| &*row["name"]).collect();
    assert_eq!(counts, ["page-faults", "minor-faults", "major-faults", "task-clock"]);
    let text = run(&["measure", "faults", "--", program, "spin", "1000"]);
    let text = String::from_utf8(text.stdout).unwrap();
    let sections = [
        "Run information",
        "Exact metrics, of the whole run",
        "Process summary",
        "Thread summary",
        "Load module summary",
        "Function summary",
        "Data summary by object",
        "Data summary by region",
    ];
    let places: Vec<usize> = sections.iter().map(|title| text.find(title).expect(title)).collect();
    assert!(places.is_sorted(), "in HP Caliper's order: {places:?}");
}
