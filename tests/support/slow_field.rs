//! Loops in which exactly one field misses the cache, and how much of their time is charged to it.

use crate::support::{Running, in_kernel, snapshot_once, total};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// How the slow field is accessed: the program's word, its object without the scalar's type, and
/// the percentage of the loop's memory samples that must go to it.
pub(crate) const KINDS: [(&str, &str, u64); 3] = [
    ("dependent", "{structure:cell}.{pointer+structure:cell next}", 95),
    ("independent", "{structure:row}.{long_int key}", 95),
    ("store", "{structure:slot}.{long_int mark}", 90),
];

/// Where the slow access stands in the loop's body.
pub(crate) const POSITIONS: [&str; 3] = ["first", "middle", "last"];

/// What was measured of one loop.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// Samples charged to the slow field.
    pub(crate) slow: u64,
    /// Samples that are memory accesses, the unknown ones among them.
    pub(crate) memory: u64,
    pub(crate) not_memory: u64,
    /// What else was charged: objects and reasons.
    pub(crate) rest: BTreeMap<String, u64>,
}

/// Watches the loop until `n_samples` are seen; `None` where live events are not to be had.
pub(crate) fn measure(
    program: &Path,
    kind: (&str, &str, u64),
    position: &str,
    n_samples: u64,
) -> Option<Share> {
    let (word, field, _) = kind;
    let (running, _) = Running::start(program, &[word, position]);
    let args = ["top", "-p", &running.pid(), "-F", "3000"];
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
