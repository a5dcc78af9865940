//! Eviction where memory is short, stage by stage. Nothing that was counted goes: only what can be found
//! out again, and at the very end the finding out.

use crate::attribution::verdict::Attribution;
use crate::bytes::eviction::EvictionStage;
use crate::bytes::file::LoadObjectIdx;
use crate::index::question::{Delay, Question};
use crate::limit;
use crate::session::analyzer::{Analyzer, Observer};
use dataspace_proto::reason::Reason;
use std::cmp::Reverse;

/// Files that are named where a session ends too soon for them.
const MAX_FILES_TOLD: usize = 3;

impl Analyzer {
    /// Evicts what is kept here, up to `stage`.
    pub fn evict(&mut self, stage: EvictionStage, observer: &mut dyn Observer) {
        self.history.shrink();
        if stage < EvictionStage::Answers {
            return;
        }
        self.world.evict_answers();
        self.warn(
            "memory was short (--memory-max): what was known of code was given up, and is found out \
             again"
                .to_owned(),
        );
        if stage == EvictionStage::Work {
            self.warn(
                "memory was short (--memory-max): samples are over_budget, and new data objects \
                 <Other>, until it is not"
                    .to_owned(),
            );
            self.give_up_pending(observer);
        }
    }

    /// The end of a session that waits no longer: says for what it still did, and decides those samples as `over_budget`.
    pub fn give_up_at_end(&mut self, observer: &mut dyn Observer) {
        let mut waiting: Vec<(LoadObjectIdx, usize)> = self.parked.waiting().into_iter().collect();
        waiting.sort_unstable_by_key(|(object, n_samples)| (Reverse(*n_samples), object.0));
        let files: Vec<String> = waiting
            .iter()
            .take(MAX_FILES_TOLD)
            .map(|(object, n_samples)| format!("{} ({n_samples})", self.path_of(*object)))
            .collect();
        if !files.is_empty() {
            let n_samples: usize = waiting.iter().map(|(_, n_samples)| n_samples).sum();
            let n_more = waiting.len() - files.len();
            let more =
                if n_more == 0 { String::new() } else { format!(" and {n_more} more files") };
            self.warn(format!(
                "the session ended while {n_samples} samples waited for debug information of {}{more}: they are \
                 over_budget; a longer session has the time to read it",
                files.join(", ")
            ));
        }
        self.give_up_pending(observer);
    }

    /// Tells of the first function whose code is more than is looked at.
    pub(crate) fn warn_of_large_code(&mut self, object: LoadObjectIdx, function: Option<&str>) {
        const WHAT: &str = "a function is too large to be followed";
        if self.warnings.iter().any(|warning| warning.starts_with(WHAT)) {
            return;
        }
        let function = function.map(|name| format!("{name} of ")).unwrap_or_default();
        self.warn(format!(
            "{WHAT}, first {function}{}: samples in such are over_budget; at most {} KiB of code, {} \
             instructions and {} values are looked at",
            self.path_of(object),
            limit::MAX_FUNCTION_BYTES >> 10,
            limit::MAX_FUNCTION_INSTRUCTIONS,
            limit::MAX_VALUES
        ));
    }

    fn path_of(&self, object: LoadObjectIdx) -> String {
        let known = self.world.processes.object(object);
        known.map_or_else(String::new, |it| it.key.path_text().into_owned())
    }

    /// Decides every sample that still waits as `over_budget`: the session ends, or memory is short.
    pub fn give_up_pending(&mut self, observer: &mut dyn Observer) {
        let unweighed = std::mem::take(&mut self.unweighed);
        for sample in self.parked.take_all().chain(unweighed) {
            self.decide(&sample, &Attribution::unknown(Reason::OverBudget), observer);
        }
    }

    /// Decides the samples that wait for an answer as `over_budget`. Nothing is noted of it, but why, once:
    /// the next sample asks again.
    pub(crate) fn give_up_waiting(
        &mut self,
        asked: (LoadObjectIdx, Question),
        delay: Delay,
        observer: &mut dyn Observer,
    ) {
        self.warn_of(delay, asked.0);
        for sample in &self.parked.take(asked) {
            self.decide(sample, &Attribution::unknown(Reason::OverBudget), observer);
        }
    }

    /// Tells once why questions are put off, and of the first load object that it happened to: the others
    /// must not take the place of other warnings.
    fn warn_of(&mut self, delay: Delay, object: LoadObjectIdx) {
        let what = match delay {
            Delay::Short => return,
            Delay::TooLarge => "debug information takes more memory than there is (--memory-max)",
            Delay::NoRoom => {
                "debug information had no memory while its files or others were waited for (--memory-max)"
            }
        };
        if self.warnings.iter().any(|warning| warning.starts_with(what)) {
            return;
        }
        let path = self.path_of(object);
        self.warn(format!(
            "{what}: samples are over_budget where it is needed, first in {path}; it is tried again, and a \
             higher memory_max or fewer sessions would help"
        ));
    }

    /// Tells whether memory is so short that nothing new is found out.
    pub fn set_short_of_memory(&mut self, is_short: bool) {
        if std::mem::replace(&mut self.is_short_of_memory, is_short) && !is_short {
            // What was made meanwhile is charged to `<Other>`.
            self.world.forget_names();
        }
        self.totals.set_closed(is_short);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::analyzer::Config;

    #[test]
    fn names_that_were_made_while_memory_was_short_are_made_anew_when_it_is_not() {
        let mut analyzer = Analyzer::new(Config::default());
        let mut generation = |is_short| {
            analyzer.set_short_of_memory(is_short);
            analyzer.world.names.generation()
        };
        let told = [false, true, true, false, false, true, false].map(&mut generation);
        // Each time that it ends, and at no other.
        assert_eq!(told, [0, 0, 0, 1, 1, 1, 2]);
    }
}
