//! Counts of judgements.

use crate::truth::judge::Verdict;
use dataspace_proto::reason::{N_REASONS, Reason};

/// What is counted of one answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    pub(crate) is_wrong_address: bool,
    /// The true trigger has a memory operand that is written out.
    pub(crate) is_explicit: bool,
    /// It is a call or a return.
    pub(crate) is_call_or_return: bool,
}

/// Counts of answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) samples: u64,
    pub(crate) answered: u64,
    pub(crate) wrong: u64,
    pub(crate) wrong_addresses: u64,
    pub(crate) explicit: u64,
    pub(crate) explicit_answered: u64,
    pub(crate) calls_and_returns: u64,
    reasons: [u64; N_REASONS],
}

impl Tally {
    pub(crate) fn count(&mut self, judged: Judged) {
        self.samples += 1;
        let is_answered = judged.verdict.is_answered();
        self.answered += u64::from(is_answered);
        self.wrong += u64::from(judged.verdict.is_wrong());
        self.wrong_addresses += u64::from(judged.is_wrong_address);
        self.calls_and_returns += u64::from(judged.is_call_or_return);
        if judged.is_explicit && !judged.is_call_or_return {
            self.explicit += 1;
            self.explicit_answered += u64::from(is_answered);
        }
        if let Verdict::Unanswered(Some(reason)) = judged.verdict {
            self.reasons[reason as usize] += 1;
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        self.answered += other.answered;
        self.wrong += other.wrong;
        self.wrong_addresses += other.wrong_addresses;
        self.explicit += other.explicit;
        self.explicit_answered += other.explicit_answered;
        self.calls_and_returns += other.calls_and_returns;
        for (sum, count) in self.reasons.iter_mut().zip(other.reasons) {
            *sum += count;
        }
    }

    /// Reasons and their share of all samples, the heaviest first.
    pub(crate) fn reasons(&self) -> Vec<(Reason, f64)> {
        let mut shares: Vec<(Reason, f64)> = Reason::ALL
            .iter()
            .map(|reason| (*reason, percent(self.reasons[*reason as usize], self.samples)))
            .filter(|(_, share)| *share > 0.0)
            .collect();
        shares.sort_by(|(_, left), (_, right)| right.total_cmp(left));
        shares
    }
}

/// `part` of `whole` in percent.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}
