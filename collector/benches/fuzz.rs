//! Damaged recordings and records through the decoders, for as long as wanted.
//!
//! `cargo bench -p dataspace-collector --bench fuzz -- [--seconds N] [--seed S] [CORPUS]`. Each case is one
//! recording of the directory CORPUS and some hundred single records, out of a ring and alone, damaged as
//! its seed says; `--seed` is the first case's, and the next one's is one more. All is done in the sandbox of a
//! worker. A case fails that panics, whose samples do not add up, that holds too much memory, or that takes more
//! than two seconds for a megabyte: its seed is said, and `--seconds 0 --seed S` runs that one alone.
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on ends")]

#[path = "../../analyzer/tests/support/allocation.rs"]
#[allow(dead_code, reason = "the analyzer's tests use the rest")]
mod allocation;
#[path = "../tests/fuzz/mod.rs"]
mod fuzz;
#[path = "../../src/broker/sandbox.rs"]
mod sandbox;

use fuzz::{Cases, Cost};
use rustix::process::{getegid, geteuid};
use std::io::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: allocation::Counting = allocation::Counting;

/// That reading a damaged recording may take, for a megabyte of it; smaller ones have as long.
const MAX_SECONDS_A_MEGABYTE: f64 = 2.;

/// Between two lines of what was reached.
const REPORT_INTERVAL: Duration = Duration::from_secs(30);

fn main() -> Result<()> {
    let (mut n_seconds, mut seed, mut corpus) = (30, 0, fuzz::corpus_beside());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let number = |value: Option<String>| {
            value.and_then(|value| value.parse().ok()).ok_or_else(|| Error::other("no number"))
        };
        match &*word {
            "--bench" => {} // cargo's own word for every bench
            "--seconds" => n_seconds = number(words.next())?,
            "--seed" => seed = number(words.next())?,
            _ => corpus = PathBuf::from(word),
        }
    }
    let cases = Cases::new(&corpus);
    println!("{} recordings to damage", cases.len());
    // From here on nothing is opened, as in a worker.
    sandbox::enter(getegid(), geteuid(), false)?;
    let (mut sum, mut longest) = (Cost::default(), Duration::ZERO);
    let (began, first) = (Instant::now(), seed);
    let mut reported = began;
    loop {
        let case = Instant::now();
        let cost = catch_unwind(AssertUnwindSafe(|| cases.run(seed)))
            .map_err(|_| Error::other(format!("a case failed: seed {seed}")))?;
        sum.add(&cost);
        longest = longest.max(case.elapsed());
        seed += 1;
        let is_over = began.elapsed() >= Duration::from_secs(n_seconds);
        if is_over || reported.elapsed() >= REPORT_INTERVAL {
            print(&sum, seed - first, longest, began.elapsed());
            reported = Instant::now();
        }
        let (slowest, at) = sum.slowest;
        if slowest > MAX_SECONDS_A_MEGABYTE {
            return Err(Error::other(format!("{slowest:.2} s for a megabyte: seed {at}")));
        }
        if is_over {
            return Ok(());
        }
    }
}

fn print(sum: &Cost, n_cases: u64, longest: Duration, elapsed: Duration) {
    let seconds = elapsed.as_secs_f64();
    println!(
        "{seconds:.0} s: {n_cases} cases ({:.0}/s), {} recordings ({} refused) with {} samples and {} \
         other records, {} single records ({} samples decoded); longest case {:.1} ms, megabyte \
         {:.3} s (seed {}), most memory {:.1} MB",
        n_cases as f64 / seconds,
        sum.n_recordings,
        sum.n_refused,
        sum.n_samples,
        sum.n_other,
        sum.n_records,
        sum.n_decoded,
        longest.as_secs_f64() * 1e3,
        sum.slowest.0,
        sum.slowest.1,
        sum.most_bytes as f64 / 1e6,
    );
}
