//! Clients that look at a session: one that ends unwatched does so when nobody has looked for a while.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Clients that look at a session, by streams and by single requests.
#[derive(Debug)]
pub(super) struct Audience {
    n_streams: AtomicUsize,
    began: Instant,
    /// Time when somebody last looked, since `began`.
    looked_ms: AtomicU64,
}

impl Audience {
    /// Somebody asks for the session now.
    pub(super) fn new() -> Self {
        let (n_streams, looked_ms) = Default::default();
        Self { n_streams, began: Instant::now(), looked_ms }
    }

    /// Somebody looks once.
    pub(super) fn looked(&self) {
        let since = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.looked_ms.store(since, Ordering::Release);
    }

    /// Somebody looks until [`Self::leave`].
    pub(super) fn join(&self) {
        self.n_streams.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn leave(&self) {
        // First, so that the time is there when the count is not.
        self.looked();
        self.n_streams.fetch_sub(1, Ordering::AcqRel);
    }

    /// Tells whether nobody has looked for `time`.
    pub(super) fn is_away_for(&self, time: Duration) -> bool {
        if self.n_streams.load(Ordering::Acquire) > 0 {
            return false;
        }
        let looked = Duration::from_millis(self.looked_ms.load(Ordering::Acquire));
        self.began.elapsed().saturating_sub(looked) >= time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_is_there_while_a_stream_is_open_and_for_a_while_after_a_look() {
        let hour = Duration::from_secs(3600);
        let mut audience = Audience::new();
        assert!(audience.is_away_for(Duration::ZERO) && !audience.is_away_for(hour));
        audience.began = Instant::now().checked_sub(hour).unwrap();
        assert!(audience.is_away_for(hour));
        audience.join();
        audience.join();
        audience.leave();
        assert!(!audience.is_away_for(Duration::ZERO), "one stream is left");
        audience.leave();
        assert!(audience.is_away_for(Duration::ZERO) && !audience.is_away_for(hour));
        audience.looked_ms.store(0, Ordering::Release);
        assert!(audience.is_away_for(hour));
        audience.looked();
        assert!(!audience.is_away_for(hour));
    }
}
