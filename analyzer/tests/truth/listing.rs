//! The tables of what was judged.

use crate::truth::judge::Verdict;
use crate::truth::miss::Miss;
use crate::truth::model::Model;
use crate::truth::run::Outcome;
use crate::truth::tally::{Tally, percent};
use std::collections::{BTreeMap, HashMap};

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

/// Misses of one kind at one place, over all programs.
struct Heap {
    n_samples: u64,
    n_programs: usize,
    example: String,
}

/// What the listing tells misses apart by.
type Kind = (Model, Verdict, bool, String);

/// Prints the heaviest places where answers were wrong, where only the address was, and where
/// there was none.
pub(crate) fn print_misses(outcomes: Vec<Outcome>, n_listed: usize) {
    let mut heaps: HashMap<Kind, Heap> = HashMap::new();
    for miss in outcomes.into_iter().flat_map(|it| it.misses) {
        let Miss { model, verdict, is_wrong_address, place, example, n_samples } = miss;
        let heap = heaps.entry((model, verdict, is_wrong_address, place)).or_insert(Heap {
            n_samples: 0,
            n_programs: 0,
            example,
        });
        heap.n_samples += n_samples;
        heap.n_programs += 1;
    }
    let mut titled: BTreeMap<(Model, String), Vec<(Kind, Heap)>> = BTreeMap::new();
    for (kind, heap) in heaps {
        let (model, verdict, is_wrong_address, _) = &kind;
        let title = match verdict {
            Verdict::Unanswered(_) => format!("no answer: {}", verdict.name()),
            _ if *is_wrong_address => "a wrong address".to_owned(),
            _ => verdict.name().to_owned(),
        };
        titled.entry((*model, title)).or_default().push((kind, heap));
    }
    for ((model, title), mut heaps) in titled {
        heaps.sort_by(|(left_kind, left), (right_kind, right)| {
            (right.n_samples, &left_kind.3).cmp(&(left.n_samples, &right_kind.3))
        });
        let n_samples: u64 = heaps.iter().map(|(_, heap)| heap.n_samples).sum();
        println!("\n{}: {title}: {n_samples} samples at {} places", model.name(), heaps.len());
        for ((_, _, _, place), heap) in heaps.into_iter().take(n_listed) {
            let Heap { n_samples, n_programs, example } = heap;
            println!("  {n_samples} samples of {n_programs} programs{place}{example}");
        }
    }
}
