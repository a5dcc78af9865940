//! How much of a loop's time is charged to the one field that misses the cache: a table of
//! compilers, kinds of access, and places in the loop.
//!
//! `cargo bench --bench slow_field [-- SAMPLES]` prints the table; nothing is asserted.
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on ends")]

#[path = "../tests/support/mod.rs"]
mod support;

use support::slow_field::{KINDS, POSITIONS, measure};

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
