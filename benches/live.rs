//! What a live session costs: time to the first named object, the profiler's CPU and memory, and
//! what it takes from the target, each beside a run without it.
//!
//! `cargo bench --bench live [-- SECONDS]` prints the figures; nothing is asserted.
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on ends")]

use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[path = "../tests/support/mod.rs"]
mod support;

fn main() {
    let seconds = std::env::args().filter_map(|word| word.parse().ok()).next().unwrap_or(60u64);
    let sqlite = support::sqlite();
    first_object(&sqlite);
    steady_state(&sqlite, seconds);
    target_cost(&sqlite);
}

/// From the start of `dataspace` to the first snapshot that names a structure of SQLite.
fn first_object(sqlite: &Path) {
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let (program, _) = support::Running::start(sqlite, &[]);
            let began = Instant::now();
            let args = ["top", "-p", &program.pid(), "--json", "--interval", "0.05"];
            let mut session = support::dataspace(&args)
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let lines = BufReader::new(session.stdout.take().unwrap()).lines();
            let names_structure = |line: std::io::Result<String>| {
                line.is_ok_and(|line| line.contains("\"{structure:"))
            };
            let is_found = lines.into_iter().any(names_structure);
            let elapsed = began.elapsed().as_secs_f64();
            let _ = session.kill();
            let _ = session.wait();
            assert!(is_found, "no structure was named");
            elapsed
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("first named object: {:.2} s (median of 5, worst {:.2} s)", times[2], times[4]);
}

/// The profiler's own CPU and memory over a long session at the default rate.
fn steady_state(sqlite: &Path, seconds: u64) {
    let (program, _) = support::Running::start(sqlite, &[]);
    let (pid, duration) = (program.pid(), seconds.to_string());
    let args = ["top", "-p", &pid, "--json", "--interval", "1", "--duration", &duration];
    let output = support::run(&args);
    let text = String::from_utf8(output.stdout).unwrap();
    let snapshots: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let cost = |snapshot: &Value, key: &str| snapshot["cost"][key].as_f64().unwrap();
    let elapsed = |snapshot: &Value| snapshot["elapsed_ns"].as_f64().unwrap();
    let last = snapshots.last().unwrap();
    println!(
        "profiler CPU, start included, over {:.0} s: {:.2} % of one core",
        elapsed(last) / 1e9,
        cost(last, "own_cpu_ns") / elapsed(last) * 100.0
    );
    // What debug information costs is paid once: the second half shows the rest.
    if let Some(half) = snapshots.get(snapshots.len() / 2) {
        let cpu_ns = cost(last, "own_cpu_ns") - cost(half, "own_cpu_ns");
        let span_ns = elapsed(last) - elapsed(half);
        println!("profiler CPU, second half: {:.2} % of one core", cpu_ns / span_ns * 100.0);
    }
    let rss = snapshots.iter().map(|s| cost(s, "own_rss_bytes")).fold(0.0, f64::max);
    println!("profiler RSS, most: {:.1} MB", rss / 1e6);
    println!("accounting: {}", last["accounting"]);
}

/// A fixed amount of work in pairs, with and without a profiler: the ratio of its CPU times.
fn target_cost(sqlite: &Path) {
    let work = "1500000";
    let plain = || cpu_seconds(&mut Command::new(sqlite), work, None);
    let profiled = || cpu_seconds(&mut Command::new(sqlite), work, Some(()));
    let _ = plain();
    let mut ratios: Vec<f64> = (0..5).map(|_| profiled() / plain()).collect();
    ratios.sort_by(f64::total_cmp);
    println!(
        "CPU time of the target, profiled / plain: median {:.4}, from {:.4} to {:.4} over {} pairs",
        ratios[ratios.len() / 2],
        ratios[0],
        ratios[ratios.len() - 1],
        ratios.len()
    );
}

/// Time on a CPU of `command work`, under a profiler if `profiled`.
fn cpu_seconds(command: &mut Command, work: &str, profiled: Option<()>) -> f64 {
    let mut child = command.arg(work).stdout(Stdio::null()).stdin(Stdio::null()).spawn().unwrap();
    let pid = child.id().to_string();
    let session = profiled.map(|()| {
        let args = ["top", "-p", &pid, "--json", "--interval", "1"];
        let mut command = support::dataspace(&args);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    });
    // The status stays readable until the child is waited for, which it is below.
    let pidfd = rustix::process::pidfd_open(
        rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap(),
        rustix::process::PidfdFlags::empty(),
    )
    .unwrap();
    let mut fds = [rustix::event::PollFd::new(&pidfd, rustix::event::PollFlags::IN)];
    let patience = Duration::from_secs(120);
    let timeout = rustix::event::Timespec { tv_sec: patience.as_secs().cast_signed(), tv_nsec: 0 };
    rustix::event::poll(&mut fds, Some(&timeout)).unwrap();
    // Linux Documentation/scheduler/sched-stats.rst: the first number is the time on a CPU in ns.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    child.wait().unwrap();
    if let Some(mut session) = session {
        session.wait().unwrap();
    }
    let on_cpu_ns: f64 = stat.split(' ').next().unwrap().parse().unwrap();
    on_cpu_ns / 1e9
}
