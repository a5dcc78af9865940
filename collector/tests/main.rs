//! Live sessions on this machine's kernel: what it does not permit is skipped with the reason.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "../../analyzer/tests/support/allocation.rs"]
#[allow(dead_code, reason = "the analyzer's tests use the rest")]
mod allocation;
mod fuzz;
mod live;
mod support;

#[global_allocator]
static ALLOCATOR: allocation::Counting = allocation::Counting;

/// A few seconds of what `cargo bench --bench fuzz` does for as long as wanted.
#[test]
fn damaged_recordings_and_records_are_read_to_their_end() {
    let cases = fuzz::Cases::new(&fuzz::corpus_beside());
    let mut sum = fuzz::Cost::default();
    for seed in 0..4000 {
        sum.add(&cases.run(seed));
    }
    println!("{} recordings: {sum:?}", cases.len());
    // Damage must leave something to read, or nothing is tested.
    assert!(sum.n_refused * 2 < sum.n_recordings, "{sum:?}");
    assert!(sum.n_samples > sum.n_recordings && sum.n_decoded * 20 > sum.n_records, "{sum:?}");
}
