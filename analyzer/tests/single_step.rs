//! Triggers that backtracking finds, held to programs that were single-stepped.

use crate::truth::build::Build;
use crate::truth::model::Model;
use crate::truth::run::{self, Outcome, Plan};
use crate::truth::tally::percent;
use crate::truth::{catalog, listing};
use std::io::ErrorKind;

/// Samples of each build and model: about 150,000 in all, in half a minute.
const N_PICKS: usize = 600;

/// Wrong answers after one instruction, in percent of those given.
const MAX_WRONG_AFTER_ONE: f64 = 0.1;

/// The same in any one program.
const MAX_WRONG_AFTER_ONE_IN_A_PROGRAM: f64 = 0.5;

/// Answers after one instruction where the trigger has a written-out memory operand and is no call
/// or return, in percent, in programs that a compiler wrote.
const MIN_ANSWERED_AFTER_ONE: f64 = 95.0;

/// A program written by hand to be difficult, without unwind information: stripped, most of it cannot be
/// verified. Its part in all builds depends on which compilers are installed.
const WRITTEN_BY_HAND: &str = "assembly";

/// The same in that one: 47 in its builds by gcc alone.
const MIN_ANSWERED_AFTER_ONE_BY_HAND: f64 = 40.0;

/// Wrong answers after one to eight instructions with a data address: 0.07 in the full run of the
/// bench, and here in a run of a twentieth of its samples.
const MAX_WRONG_RANDOM_ADDRESSED: f64 = 0.15;

/// The same without one.
const MAX_WRONG_RANDOM: f64 = 0.1;

/// Two or three builds of each program, so that each set of flags has its turn.
fn builds() -> Vec<Build> {
    const STRIDE: usize = 9;
    let builds = catalog::builds().into_iter().enumerate();
    builds.filter(|(idx, build)| idx % STRIDE == 0 && build.can_run()).map(|it| it.1).collect()
}

#[test]
fn triggers_agree_with_single_stepped_programs() {
    let dir = tempfile::tempdir().unwrap();
    let models = Model::ALL.to_vec();
    let plan =
        Plan { dir: dir.path(), builds: builds(), models, n_picks: N_PICKS, has_misses: true };
    let outcomes = match run::run(&plan) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            eprintln!("skipped: programs may not be traced here: {error}");
            return;
        }
        outcomes => outcomes.unwrap(),
    };
    listing::print_table("program", &outcomes, |it| it.build.source.name.to_owned());
    listing::print_table("all", &outcomes, |_| "all".to_owned());
    let faults = faults(&outcomes);
    if !faults.is_empty() {
        listing::print_misses(outcomes, 5);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What is beyond the limits.
fn faults(outcomes: &[Outcome]) -> Vec<String> {
    let mut faults = Vec::new();
    for ((_, model), tally) in listing::grouped(outcomes, |_| String::new()) {
        let wrong = percent(tally.wrong, tally.answered);
        let limit = match model {
            Model::Exact | Model::AfterOne | Model::AfterWait | Model::AfterOneAddressed => {
                MAX_WRONG_AFTER_ONE
            }
            Model::RandomAddressed => MAX_WRONG_RANDOM_ADDRESSED,
            Model::Random => MAX_WRONG_RANDOM,
        };
        if wrong > limit {
            faults.push(format!("{}: {wrong:.2} % of the answers are wrong", model.name()));
        }
    }
    let (compiled, by_hand) = ("compiled", "by hand");
    let author = |it: &Outcome| match it.build.source.name {
        WRITTEN_BY_HAND => by_hand.to_owned(),
        _ => compiled.to_owned(),
    };
    let answers = listing::grouped(outcomes, author);
    for (author, limit) in
        [(compiled, MIN_ANSWERED_AFTER_ONE), (by_hand, MIN_ANSWERED_AFTER_ONE_BY_HAND)]
    {
        let tally = &answers[&(author.to_owned(), Model::AfterOne)];
        let answered = percent(tally.explicit_answered, tally.explicit);
        if answered < limit {
            faults.push(format!(
                "{author}: only {answered:.2} % of the memory operands are answered"
            ));
        }
    }
    for ((name, model), tally) in listing::grouped(outcomes, |it| it.build.source.name.to_owned()) {
        let wrong = percent(tally.wrong, tally.answered);
        let is_clock = matches!(model, Model::AfterOne | Model::AfterWait);
        if is_clock && wrong > MAX_WRONG_AFTER_ONE_IN_A_PROGRAM {
            faults.push(format!("{name}: {wrong:.2} % of the answers are wrong"));
        }
    }
    faults
}
