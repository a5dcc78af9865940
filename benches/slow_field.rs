//! How much of a loop's time is charged to the one field that misses the cache: a table of
//! compilers, kinds of access, and places in the loop.
//!
//! `cargo bench --bench slow_field [-- SAMPLES]` prints the table; nothing is asserted.
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on ends")]

#[path = "../tests/support/mod.rs"]
mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use support::slow_field::{KINDS, POSITIONS};
use support::{Running, in_kernel, snapshot_once, total};

fn main() {
    let n_samples = std::env::args().filter_map(|word| word.parse().ok()).next().unwrap_or(10_000);
    println!("compiler   access       place    SLOW FIELD  MEMORY   SHARE  not memory  remainder");
    for (compiler, optimisation) in
        [("gcc", "-O1"), ("gcc", "-O2"), ("gcc", "-O3"), ("clang", "-O1"), ("clang", "-O2")]
    {
        let flags = [optimisation, "-g"];
        let Some(program) = support::compile_by(compiler, "slow_field", &flags) else { continue };
        for kind in KINDS {
            for position in POSITIONS {
                let Some(share) = measure(&program, kind, position, n_samples) else {
                    return;
                };
                let rest: Vec<String> =
                    share.rest.iter().map(|(name, count)| format!("{count} {name}")).collect();
                println!(
                    "{compiler:5} {optimisation}  {:11}  {position:7} {:>11} {:>7} {:>6.1}% {:>11}  {}",
                    kind.0,
                    share.slow,
                    share.memory,
                    share.slow as f64 / share.memory.max(1) as f64 * 100.0,
                    share.not_memory,
                    rest.join(", ")
                );
            }
        }
    }
}

/// What was measured of one loop.
#[derive(Debug, Default)]
struct Share {
    /// Samples charged to the slow field.
    slow: u64,
    /// Samples that are memory accesses, the unknown ones among them.
    memory: u64,
    not_memory: u64,
    /// What else was charged: objects and reasons.
    rest: BTreeMap<String, u64>,
}

/// Watches the loop until `n_samples` are seen; `None` where live events are not to be had.
fn measure(program: &Path, kind: (&str, &str), position: &str, n_samples: u64) -> Option<Share> {
    let (word, field) = kind;
    let (running, _) = Running::start(program, &[word, position]);
    let args = ["top", "-p", &running.pid(), "-e", "cpu-clock", "-c", "333333"];
    let snapshot = snapshot_once(&args, |snapshot| memory(snapshot) >= n_samples)?;
    Some(Share::of(&snapshot, field))
}

/// Samples of the loop's accesses: what the kernel does meanwhile, as on an interrupt, is not among
/// them.
fn memory(snapshot: &Value) -> u64 {
    total(snapshot) - in_kernel(snapshot)
}

impl Share {
    fn of(snapshot: &Value, field: &str) -> Self {
        let not_memory = snapshot["accounting"]["not_memory"].as_u64().unwrap();
        let mut share = Self { memory: memory(snapshot), not_memory, ..Self::default() };
        for (name, n_samples) in finest(snapshot) {
            // What gcc calls "long int" is "long" to clang.
            if name.replace("long_int", "long") == field.replace("long_int", "long") {
                share.slow += n_samples;
            } else {
                *share.rest.entry(name).or_default() += n_samples;
            }
        }
        share
    }
}

/// The objects that have no part of their own in the snapshot, and their samples.
fn finest(snapshot: &Value) -> Vec<(String, u64)> {
    let objects = snapshot["objects"].as_array().unwrap();
    let names = || objects.iter().map(|object| object["object"].as_str().unwrap());
    let has_part = |name: &str| {
        let start = format!("{name}.");
        names().any(|other| other.starts_with(&start))
    };
    let is_finest = |name: &str| !["<Total>", "<Scalars>"].contains(&name) && !has_part(name);
    names()
        .zip(objects)
        .filter(|(name, _)| is_finest(name))
        .map(|(name, object)| {
            (name.to_owned(), object["metrics"]["all"]["samples"].as_u64().unwrap())
        })
        .collect()
}
