//! The tables of what was judged.

use crate::truth::judge::Verdict;
use crate::truth::miss::Miss;
use crate::truth::model::Model;
use crate::truth::run::Outcome;
use crate::truth::tally::{Tally, percent};
use std::collections::BTreeMap;

/// Prints the tally of each group that `group` makes of the outcomes.
pub(crate) fn print_table(title: &str, outcomes: &[Outcome], group: impl Fn(&Outcome) -> String) {
    println!(
        "\n{title:<28} {:<14} {:>9} {:>8} {:>8} {:>7} {:>8} {:>8}  unanswered, % of samples",
        "model", "samples", "answered", "wrong", "address", "explicit", "call/ret"
    );
    for ((name, model), tally) in grouped(outcomes, group) {
        let reasons = tally.reasons();
        let reasons: Vec<String> =
            reasons.iter().map(|(reason, share)| format!("{} {share:.1}", reason.name())).collect();
        println!(
            "{name:<28} {:<14} {:>9} {:>7.2}% {:>7.3}% {:>7} {:>7.2}% {:>7.2}%  {}",
            model.name(),
            tally.samples,
            percent(tally.answered, tally.samples),
            percent(tally.wrong, tally.answered),
            tally.wrong_addresses,
            percent(tally.explicit_answered, tally.explicit),
            percent(tally.calls_and_returns, tally.samples),
            reasons.join(", ")
        );
    }
}

/// The sums of each group by model.
pub(crate) fn grouped(
    outcomes: &[Outcome],
    group: impl Fn(&Outcome) -> String,
) -> BTreeMap<(String, Model), Tally> {
    let mut sums: BTreeMap<(String, Model), Tally> = BTreeMap::new();
    for outcome in outcomes {
        for (model, tally) in &outcome.tallies {
            sums.entry((group(outcome), *model)).or_default().add(tally);
        }
    }
    sums
}

/// Prints the heaviest places where answers were wrong, where only the address was, and where
/// there was none.
pub(crate) fn print_misses(outcomes: Vec<Outcome>, n_listed: usize) {
    let mut misses: Vec<Miss> = outcomes.into_iter().flat_map(|it| it.misses).collect();
    misses.sort_by(|left, right| {
        (right.n_samples, &left.text).cmp(&(left.n_samples, &right.text))
    });
    print_some("wrong", misses.iter().filter(|miss| miss.verdict.is_wrong()), n_listed);
    print_some("wrong address", misses.iter().filter(|miss| miss.is_wrong_address), n_listed);
    let mut by_reason: BTreeMap<Verdict, Vec<&Miss>> = BTreeMap::new();
    for miss in misses.iter().filter(|miss| !miss.verdict.is_answered()) {
        by_reason.entry(miss.verdict).or_default().push(miss);
    }
    for (verdict, misses) in by_reason {
        print_some(&format!("unanswered: {}", verdict.name()), misses.into_iter(), n_listed);
    }
}

fn print_some<'a>(title: &str, misses: impl Iterator<Item = &'a Miss> + Clone, n_listed: usize) {
    let n_samples: u64 = misses.clone().map(|miss| miss.n_samples).sum();
    println!("\n{title}: {n_samples} samples at {} places", misses.clone().count());
    for miss in misses.take(n_listed) {
        let Miss { n_samples, model, verdict, text, .. } = miss;
        println!("{n_samples:>7} {} {} {text}", model.name(), verdict.name());
    }
}
