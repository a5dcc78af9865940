//! The whole way from a file's bytes and a sample to its answer, over hostile files, for as long as wanted.
//!
//! `cargo bench -p dataspace-analyzer --bench fuzz -- [--seconds N] [--seed S]`. Each case is a program
//! with another text, or a compiled one whose file is damaged (headers, debug sections, frame descriptions,
//! code), with twelve sites and sixty samples; `--seed` is the first case's, and the next one's is one more.
//! All is done in the sandbox of a worker: what would take more than a worker has fails.
//! A damaged file that takes more than a second for a megabyte fails. Says how many cases a second, and the worst
//! times, every half minute; where a case panics its seed is said, and `--seconds 0 --seed S` runs that one alone.
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on ends")]

#[path = "../tests/fuzz/mod.rs"]
mod fuzz;
#[path = "../../src/broker/sandbox.rs"]
mod sandbox;
#[path = "../tests/support/mod.rs"]
#[allow(dead_code, reason = "the tests use the other half")]
mod support;
#[path = "../tests/truth/mod.rs"]
#[allow(dead_code, reason = "the tests use the other half")]
mod truth;

use fuzz::case::{Cases, Cost};
use rustix::process::{getegid, geteuid};
use std::io::{Error, Result};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: support::allocation::Counting = support::allocation::Counting;

/// That reading a damaged file and answering all questions about it may take, for a megabyte of it; smaller
/// files have as long.
const MAX_SECONDS_A_MEGABYTE: f64 = 1.;

/// Between two lines of what was reached.
const REPORT_INTERVAL: Duration = Duration::from_secs(30);

fn main() -> Result<()> {
    let (mut n_seconds, mut seed) = (30, 0);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        // Cargo's own word for every bench.
        if word == "--bench" {
            continue;
        }
        let value = words.next().ok_or_else(|| Error::other(format!("{word} needs a value")))?;
        let number = || value.parse().map_err(|_| Error::other(format!("{word} needs a number")));
        match &*word {
            "--seconds" => n_seconds = number()?,
            "--seed" => seed = number()?,
            _ => return Err(Error::other(format!("{word} is not known"))),
        }
    }
    let cases = Cases::new();
    // From here on nothing is opened, as in a worker.
    sandbox::enter(getegid(), geteuid(), false)?;
    let mut sum = Cost::default();
    let mut worst = (Duration::ZERO, seed);
    let (began, first) = (Instant::now(), seed);
    let mut reported = began;
    loop {
        let case = Instant::now();
        sum.add(&cases.run(seed));
        sum.add(&cases.run_file(seed));
        worst = worst.max((case.elapsed(), seed));
        seed += 1;
        let is_over = began.elapsed() >= Duration::from_secs(n_seconds);
        if is_over || reported.elapsed() >= REPORT_INTERVAL {
            print(&sum, seed - first, worst, began.elapsed());
            reported = Instant::now();
        }
        let (slowest, at) = sum.slowest_file;
        if slowest > MAX_SECONDS_A_MEGABYTE {
            return Err(Error::other(format!("{slowest:.2} s for a megabyte: seed {at}")));
        }
        if is_over {
            return Ok(());
        }
    }
}

fn print(sum: &Cost, n_cases: u64, worst: (Duration, u64), elapsed: Duration) {
    let seconds = elapsed.as_secs_f64();
    println!(
        "{seconds:.0} s: {n_cases} cases ({:.0}/s), {} sites, {} samples; longest case {:.1} ms \
         (seed {}), site {:.2} ms (seed {}), known sample {:.3} ms (seed {}), megabyte {:.2} s \
         (seed {}); most of a site: {} allocations, {} nodes",
        n_cases as f64 / seconds,
        sum.n_sites,
        sum.n_samples,
        worst.0.as_secs_f64() * 1e3,
        worst.1,
        sum.longest_site.0.as_secs_f64() * 1e3,
        sum.longest_site.1,
        sum.longest_sample.0.as_secs_f64() * 1e3,
        sum.longest_sample.1,
        sum.slowest_file.0,
        sum.slowest_file.1,
        sum.most_allocations,
        sum.most_nodes,
    );
}
