//! Code that no compiler made and files that are damaged: no panic, one answer for each sample, and
//! bounded work.

use crate::fuzz::case::{Cases, Cost};

/// Programs: each gives 12 sites and 180 samples.
const N_CASES: u64 = 800;

#[test]
fn random_code_is_answered_in_bounds() {
    let cases = Cases::new();
    let mut cost = Cost::default();
    for seed in 0..N_CASES {
        cost.add(&cases.run(seed));
    }
    // Otherwise the code is no code, and nothing was tried.
    assert!(cost.most_nodes > 100, "{cost:?}");
}

/// Damaged files: each has 12 sites and 300 samples.
const N_FILES: u64 = 300;

#[test]
fn damaged_files_are_answered_in_bounds() {
    let cases = Cases::new();
    let mut cost = Cost::default();
    for seed in 0..N_FILES {
        cost.add(&cases.run_file(seed));
    }
    assert!(cost.most_nodes > 20, "{cost:?}");
}
