//! A flood of tracepoint samples from a real ring, for us and for `perf record` in turn: what each loses, and
//! the CPU time each takes for a sample.
//!
//! `cargo bench --bench flood [-- PAIRS [CALLS]]` prints the figures and their ratios; nothing is asserted.
//!
//! Both sample `syscalls:sys_enter_getppid` with period 1, all registers, address and CPU, of a program that
//! makes its calls pinned to the last CPU. perf is asked for the user's and the interrupt's registers and, in
//! runs of their own, for the user's alone: they are the same here, and we sample them once. Both are attached before the flood begins, and their
//! CPU clocks are read just before it and when the last sample of it is through: for us counted by the
//! analyzer, for perf written to a file in memory. What perf has in its ring then, and never pays for here, is
//! left out of its samples. Of our threads the collector's and the analyzer's are meant; the whole process,
//! which prints snapshots besides, stands beside them. A sample of ours is counted then, for the place and the
//! object; one of perf's is in a file, and `perf report`, here by function alone, counts it: the ratios are to
//! `perf record` alone, and to both.
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on ends")]

use serde_json::Value;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

#[path = "../tests/support/mod.rs"]
mod support;

const EVENT: &str = "syscalls:sys_enter_getppid";
const REGISTERS: &str = "ax,bx,cx,dx,si,di,bp,sp,ip,flags,r8,r9,r10,r11,r12,r13,r14,r15";

/// Calls before the measured ones: what is needed once, such as the debug information of the one place that the
/// calls are at, is then there.
const N_FIRST: u64 = 2_000;

/// One run of one of the two.
#[derive(Clone, Copy, Debug)]
struct Run {
    n_calls: u64,
    /// Below 0 where perf wrote more samples than calls were made.
    n_lost: i64,
    /// CPU time a sample of the reading and counting threads, and of the whole process.
    ns_a_sample: f64,
    process_ns_a_sample: f64,
    /// What a call took the target.
    ns_a_call: f64,
    /// CPU time a sample of what counts them afterwards, where that is another program.
    counting_ns_a_sample: f64,
}

fn main() {
    let mut numbers = std::env::args().filter_map(|word| word.parse::<u64>().ok());
    let n_pairs = numbers.next().unwrap_or(5);
    let n_calls = numbers.next().unwrap_or(3_000_000);
    let program = support::compile("flood", &["-O2", "-g"]);
    println!("{n_calls} calls, {n_pairs} pairs; medians, ns of CPU time a sample");
    for n_pages in [1024, 8192] {
        let (mut ours, mut perfs, mut user_perfs) = (Vec::new(), Vec::new(), Vec::new());
        for pair in 0..n_pairs {
            // Whoever goes first has the machine as the last one left it.
            let mut turns = [0, 1, 2];
            turns.rotate_left(pair as usize % 3);
            for turn in turns {
                match turn {
                    0 => ours.extend(run_ours(&program, n_calls, n_pages)),
                    1 => perfs.extend(run_perf(&program, n_calls, n_pages, &["user", "intr"])),
                    _ => user_perfs.extend(run_perf(&program, n_calls, n_pages, &["user"])),
                }
            }
        }
        print(n_pages, &ours, &perfs, &user_perfs);
    }
}

fn print(n_pages: u64, ours: &[Run], perfs: &[Run], user_perfs: &[Run]) {
    println!("rings of {} MiB a CPU", n_pages * 4 / 1024);
    for (name, runs) in [("dataspace", ours), ("perf record", perfs), ("perf, user's", user_perfs)]
    {
        if runs.is_empty() {
            println!("  {name:12} not measured");
            continue;
        }
        let lost: Vec<i64> = runs.iter().map(|run| run.n_lost).collect();
        println!(
            "  {name:12} {:6.1} ns a sample ({:.1} the whole process); a call takes {:.0} ns; lost of {}: \
             {lost:?}",
            median(runs, |run| run.ns_a_sample),
            median(runs, |run| run.process_ns_a_sample),
            median(runs, |run| run.ns_a_call),
            runs[0].n_calls,
        );
    }
    for (name, theirs) in [("perf record", perfs), ("perf, user's", user_perfs)] {
        if ours.is_empty() || theirs.is_empty() {
            continue;
        }
        println!(
            "  ratio to {name:12} of CPU a sample {:.2} (whole process {:.2}), of a call's time {:.2}",
            median(ours, |run| run.ns_a_sample) / median(theirs, |run| run.ns_a_sample),
            median(ours, |run| run.process_ns_a_sample)
                / median(theirs, |run| run.process_ns_a_sample),
            median(ours, |run| run.ns_a_call) / median(theirs, |run| run.ns_a_call),
        );
        let counting = median(theirs, |run| run.counting_ns_a_sample);
        println!(
            "           with perf report, {counting:.0} ns a sample: from ring to counted sample {:.3}",
            median(ours, |run| run.ns_a_sample)
                / (counting + median(theirs, |run| run.ns_a_sample)),
        );
    }
}

fn median(runs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The program, ready to flood.
struct Flood {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Flood {
    fn start(program: &Path) -> Self {
        let n_cpus = std::thread::available_parallelism().unwrap().get();
        let mut child = Command::new(program)
            .args(["-".to_owned(), (n_cpus - 1).to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        Self { child, lines }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Floods, and gives what a call took.
    fn flood(&mut self, n_calls: u64) -> f64 {
        writeln!(self.child.stdin.as_mut().unwrap(), "{n_calls}").unwrap();
        let took_ns: f64 = self.lines.next().unwrap().unwrap().parse().unwrap();
        took_ns / n_calls as f64
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Time on a CPU in ns of the threads of `pid` and of its children whose name `is_meant`: the first number of
/// `schedstat` (Linux `Documentation/scheduler/sched-stats.rst`). The worker is a child of ours.
fn cpu_ns(pid: u32, is_meant: impl Fn(&str) -> bool + Copy) -> f64 {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let children = std::fs::read_to_string(path).unwrap_or_default();
    let of_children =
        children.split_whitespace().map(|child| cpu_ns(child.parse().unwrap(), is_meant));
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return 0.0 };
    let of_task = |task: std::io::Result<std::fs::DirEntry>| {
        let path = task.ok()?.path();
        let name = std::fs::read_to_string(path.join("comm")).ok()?;
        let stat = std::fs::read_to_string(path.join("schedstat")).ok()?;
        is_meant(name.trim()).then(|| stat.split(' ').next()?.parse::<f64>().ok())?
    };
    tasks.filter_map(of_task).sum::<f64>() + of_children.sum::<f64>()
}

fn run_ours(program: &Path, n_calls: u64, n_pages: u64) -> Option<Run> {
    let mut flood = Flood::start(program);
    let (pid, pages) = (flood.pid(), n_pages.to_string());
    let args = [
        "top",
        "-p",
        &pid,
        "-e",
        EVENT,
        "-c",
        "1",
        "-m",
        &pages,
        "--max-overhead",
        "off",
        "--json",
        "--interval",
        "0.5",
    ];
    let mut session =
        support::dataspace(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(session.stdout.take().unwrap()).lines();
    if lines.next().is_none() {
        let _ = session.wait();
        println!("not run: {EVENT} cannot be sampled here");
        return None;
    }
    flood.flood(N_FIRST);
    let accounted = |line: std::io::Result<String>| {
        let snapshot: Value = serde_json::from_str(&line.unwrap()).unwrap();
        support::assert_balanced(&snapshot);
        // The program's own count is the truth that the accounting is held to.
        let n_seen = snapshot["accounting"]["kernel"].as_u64().unwrap();
        assert!(n_seen <= N_FIRST + n_calls, "{n_seen} samples of {n_calls} calls");
        (n_seen, support::lost(&snapshot), snapshot["accounting"]["unknown"]["pending"].as_u64())
    };
    for line in lines.by_ref() {
        if matches!(accounted(line), (N_FIRST, _, None | Some(0))) {
            break;
        }
    }
    let of_threads = |name: &str| matches!(name, "collector" | "analyzer");
    let before = (cpu_ns(session.id(), of_threads), cpu_ns(session.id(), |_| true));
    let ns_a_call = flood.flood(n_calls);
    let (mut after, mut n_lost) = (before, 0);
    for line in lines.by_ref() {
        let (n_seen, lost, _) = accounted(line);
        after = (cpu_ns(session.id(), of_threads), cpu_ns(session.id(), |_| true));
        n_lost = lost;
        if n_seen == N_FIRST + n_calls {
            break;
        }
    }
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&session),
        rustix::process::Signal::INT,
    )
    .unwrap();
    if let Some((n_seen, lost, _)) = lines.last().map(accounted) {
        assert_eq!(n_seen, N_FIRST + n_calls);
        n_lost = lost;
    }
    session.wait().unwrap();
    let n_counted = (n_calls - n_lost) as f64;
    Some(Run {
        n_calls,
        n_lost: n_lost.cast_signed(),
        ns_a_sample: (after.0 - before.0) / n_counted,
        process_ns_a_sample: (after.1 - before.1) / n_counted,
        ns_a_call,
        counting_ns_a_sample: 0.0,
    })
}

/// perf's cheapest way that still keeps the samples: a file in memory, no build-ids, no cache.
fn run_perf(program: &Path, n_calls: u64, n_pages: u64, sets: &[&str]) -> Option<Run> {
    let mut flood = Flood::start(program);
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let (file, control, ack) =
        (dir.path().join("data"), dir.path().join("control"), dir.path().join("ack"));
    for fifo in [&control, &ack] {
        assert!(Command::new("mkfifo").arg(fifo).status().unwrap().success());
    }
    let mut perf = Command::new("perf")
        .args(["record", "-q", "-N", "-B", "-e", EVENT, "-c", "1", "-d", "-T", "--sample-cpu"])
        .args(sets.iter().map(|set| format!("--{set}-regs={REGISTERS}")))
        .args(["-m", &n_pages.to_string(), "-p", &flood.pid()])
        .arg(format!("--control=fifo:{},{}", control.display(), ack.display()))
        .arg("-o")
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Opened for both directions nothing waits for the other side.
    let open = |path| File::options().read(true).write(true).open(path).unwrap();
    let (mut control, mut ack) = (open(&control), open(&ack));
    // It answers when it is attached and reads its rings.
    control.write_all(b"ping\n").unwrap();
    let mut answer = [0; 4];
    ack.read_exact(&mut answer).unwrap();
    flood.flood(N_FIRST);
    let n_bytes_before = file.metadata().unwrap().len();
    let before = cpu_ns(perf.id(), |_| true);
    let ns_a_call = flood.flood(n_calls);
    let after = cpu_ns(perf.id(), |_| true);
    let n_bytes = (file.metadata().unwrap().len() - n_bytes_before) as f64;
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&perf),
        rustix::process::Signal::INT,
    )
    .unwrap();
    perf.wait().unwrap();
    let n_all_bytes = (file.metadata().unwrap().len() - n_bytes_before) as f64;
    let n_kept = n_samples(&file);
    let n_written = n_kept as f64 * n_bytes / n_all_bytes;
    let ns_a_sample = (after - before) / n_written;
    let n_lost = (N_FIRST + n_calls).cast_signed() - n_kept.cast_signed();
    Some(Run {
        n_calls,
        n_lost,
        ns_a_sample,
        process_ns_a_sample: ns_a_sample,
        ns_a_call,
        counting_ns_a_sample: report_cpu_ns(&file) / n_kept as f64,
    })
}

/// CPU time in ns that `perf report` takes for a recording, as the shell's `times` tells it.
fn report_cpu_ns(file: &Path) -> f64 {
    let script = "perf report -i \"$0\" -q -s sym --stdio >/dev/null 2>&1; times";
    let output = Command::new("sh").args(["-c", script]).arg(file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // The second line is of the shell's children: `0m5.120000s 0m0.230000s`.
    let words = text.lines().nth(1).unwrap().split_whitespace();
    let seconds = words.map(|word| {
        let (minutes, seconds) = word.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    });
    seconds.sum::<f64>() * 1e9
}

/// The samples in a recording: of each record the type and the size are looked at, as
/// `tools/perf/Documentation/perf.data-file-format.txt` has them.
fn n_samples(file: &Path) -> u64 {
    const SAMPLE: u32 = 9;
    let bytes = std::fs::read(file).unwrap();
    let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    // The data section stands behind magic, size, attr size and the attr section.
    let (mut at, end) = (word(40), word(40) + word(48));
    let mut n_samples = 0;
    while at < end {
        let kind = u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
        let size = u16::from_le_bytes(*bytes[at + 6..].first_chunk().unwrap());
        n_samples += u64::from(kind == SAMPLE);
        at += usize::from(size);
    }
    n_samples
}
