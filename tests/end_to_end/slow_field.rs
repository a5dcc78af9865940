//! Loops in which one field misses the cache: the clock's samples go to that field, however it is
//! accessed and wherever in the loop.

use crate::support::compile;
use crate::support::slow_field::{KINDS, POSITIONS, measure};

fn check(optimisation: &str) {
    let program = compile("slow_field", &[optimisation, "-g"]);
    for kind in KINDS {
        for position in POSITIONS {
            let Some(share) = measure(&program, kind, position, 2000) else { return };
            let context = format!("{optimisation} {} {position}: {share:?}", kind.0);
            assert!(share.memory > 50, "{context}");
            assert!(share.slow * 100 >= share.memory * kind.2, "{context}");
        }
    }
}

#[test]
fn the_slow_field_has_the_samples_of_its_loop() {
    check("-O2");
}

#[test]
fn the_slow_field_has_the_samples_of_a_loop_that_is_less_optimised() {
    check("-O1");
}
