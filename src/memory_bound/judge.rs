//! Decides what is to be given up, by how much memory is resident and for how long.

use dataspace_analyzer::bytes::eviction::EvictionStage;
use std::time::{Duration, Instant};

/// Room below the bound at which things are given up, if that is more than an eighth of it: what one question
/// reads comes on top before it is looked again. So a question is begun only where there is as much for
/// each that is worked on.
const HEADROOM_BYTES: u64 = 16 << 20;

/// Time that a stage has to take effect before the next one is asked for.
const SETTLING: Duration = Duration::from_millis(200);

/// Time that memory may be short and not plentiful, though the work was given up, before a session is to
/// be given up, and then the next.
const LASTING: Duration = Duration::from_secs(1);

/// Memory that is short again so soon was never plentiful. On a busy machine a question takes half a minute to
/// use up what was given up for it.
const RELAPSE: Duration = Duration::from_secs(60);

/// Number of times that this may happen before a session is to be given up.
const MAX_RELAPSES: u32 = 2;

/// Time that memory has to be plentiful before work that was given up goes on: it takes memory.
const EASING: Duration = Duration::from_secs(2);

/// Memory that is left free below a bound.
pub(super) fn headroom_bytes(max_bytes: u64) -> u64 {
    HEADROOM_BYTES.max(max_bytes / 8)
}

/// Above this things are given up.
pub(super) fn high_bytes(max_bytes: u64) -> u64 {
    max_bytes.saturating_sub(headroom_bytes(max_bytes))
}

/// Up to this there is no want.
pub(super) fn plentiful_bytes(max_bytes: u64) -> u64 {
    high_bytes(max_bytes) - high_bytes(max_bytes) / 8
}

/// Decides what is to be given up.
#[derive(Debug, Default)]
pub(super) struct Judge {
    /// Stage that was asked for last, while that was not enough.
    pub(super) last: Option<(EvictionStage, Instant)>,
    plentiful_since: Option<Instant>,
    /// Since when it is short, or a session was asked for.
    short_since: Option<Instant>,
    /// Time when it was short last.
    short_at: Option<Instant>,
    n_relapses: u32,
}

impl Judge {
    pub(super) fn look(
        &mut self,
        resident_bytes: u64,
        max_bytes: u64,
        now: Instant,
    ) -> Option<EvictionStage> {
        let is_plentiful = resident_bytes <= plentiful_bytes(max_bytes);
        let plentiful_since = *self.plentiful_since.get_or_insert(now);
        if !is_plentiful {
            self.plentiful_since = None;
        }
        if resident_bytes <= high_bytes(max_bytes) {
            let is_eased = is_plentiful && now.duration_since(plentiful_since) >= EASING;
            self.last = self.last.filter(|(stage, _)| *stage == EvictionStage::Work && !is_eased);
            return None;
        }
        let stage = match self.last {
            None => EvictionStage::Caches,
            Some((_, at)) if now.duration_since(at) < SETTLING => return None,
            Some((stage, _)) => {
                EvictionStage::ALL.get(stage as usize + 1).copied().unwrap_or(EvictionStage::Work)
            }
        };
        self.last = Some((stage, now));
        Some(stage)
    }

    /// Tells whether a session is to be given up: memory is short and stays so without any work, or is so again
    /// and again.
    pub(super) fn wants_a_session(&mut self, is_plentiful: bool, now: Instant) -> bool {
        if !self.is_short() {
            self.short_since = None;
            return false;
        }
        if self.short_since.is_none() {
            let is_relapse = self.short_at.is_some_and(|at| now.duration_since(at) < RELAPSE);
            self.n_relapses = if is_relapse { self.n_relapses + 1 } else { 0 };
        }
        self.short_at = Some(now);
        let since = *self.short_since.get_or_insert(now);
        let is_lasting = !is_plentiful && now.duration_since(since) >= LASTING;
        if !is_lasting && self.n_relapses <= MAX_RELAPSES {
            return false;
        }
        self.short_since = Some(now);
        self.n_relapses = 0;
        true
    }

    pub(super) fn is_short(&self) -> bool {
        self.last.is_some_and(|(stage, _)| stage == EvictionStage::Work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_given_up_until_it_is_enough_and_the_order_begins_anew() {
        let (mut judge, began) = (Judge::default(), Instant::now());
        let mut look = |ms, mib: u64| {
            let stage = judge.look(mib << 20, 800 << 20, began + Duration::from_millis(ms));
            (stage, judge.is_short())
        };
        assert_eq!(look(0, 700), (None, false));
        assert_eq!(look(20, 701), (Some(EvictionStage::Caches), false));
        assert_eq!(look(40, 750), (None, false), "it has no effect yet");
        assert_eq!(look(220, 750), (Some(EvictionStage::Indices), false));
        assert_eq!(look(240, 690), (None, false), "that was enough");
        assert_eq!(look(260, 750), (Some(EvictionStage::Caches), false));
        assert_eq!(look(460, 750), (Some(EvictionStage::Indices), false));
        assert_eq!(look(660, 750), (Some(EvictionStage::Answers), false));
        assert_eq!(look(860, 750), (Some(EvictionStage::Work), true));
        assert_eq!(look(1060, 750), (Some(EvictionStage::Work), true), "again and again");
        assert_eq!(look(1080, 690), (None, true));
        assert_eq!(look(1100, 600), (None, true), "not for long yet");
        assert_eq!(look(3100, 600), (None, false));
    }

    #[test]
    fn a_session_is_given_up_where_memory_stays_short_or_is_so_again_and_again() {
        let (mut judge, began) = (Judge::default(), Instant::now());
        let mut short_at = |ms, is_short: bool, is_plentiful| {
            let now = began + Duration::from_millis(ms);
            judge.last = is_short.then_some((EvictionStage::Work, now));
            judge.wants_a_session(is_plentiful, now)
        };
        assert!(!short_at(0, true, false));
        assert!(!short_at(999, true, false), "giving up work takes its time");
        assert!(short_at(1000, true, false));
        assert!(!short_at(1999, true, false), "and so does a session");
        assert!(short_at(2000, true, false));
        assert!(!short_at(3000, true, true), "it was enough");
        for ms in [5000, 8000] {
            assert!(!short_at(ms, false, true));
            assert!(!short_at(ms + 1000, true, true));
        }
        assert!(!short_at(11_000, false, true));
        assert!(short_at(12_000, true, true), "the third time within seconds");
        assert!(!short_at(15_000, false, true) && !short_at(15_001, true, true));
        // On a busy machine it takes longer, and nothing is named meanwhile either.
        assert!(!short_at(39_999, false, true) && !short_at(40_000, true, true));
        assert!(!short_at(64_999, false, true) && short_at(65_000, true, true));
        for ms in [126_000, 187_000, 248_000, 309_000] {
            assert!(!short_at(ms - 1, false, true) && !short_at(ms, true, true), "seldom");
        }
    }
}
