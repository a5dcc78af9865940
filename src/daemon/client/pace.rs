//! Pace at which users who see only their own may attach: each session costs a process and files.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Attachments at once that are nobody's concern.
const BURST: u32 = 16;

/// Time between two of them after that.
const INTERVAL: Duration = Duration::from_millis(500);

/// The users who attached a moment ago, each with the time at which all of it is paid off.
#[derive(Debug, Default)]
pub(crate) struct Pace(HashMap<u32, Instant>);

impl Pace {
    /// Takes note that `uid` attaches.
    ///
    /// # Errors
    /// The time that it has to wait, where it has attached too often.
    pub(crate) fn attach(&mut self, uid: u32, now: Instant) -> Result<(), Duration> {
        self.0.retain(|_, paid_off| *paid_off > now);
        let paid_off = self.0.entry(uid).or_insert(now);
        let after = *paid_off + INTERVAL;
        let early = after.saturating_duration_since(now).saturating_sub(INTERVAL * BURST);
        if !early.is_zero() {
            return Err(early);
        }
        *paid_off = after;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_burst_there_is_one_each_interval_for_each_user() {
        let (mut pace, began) = (Pace::default(), Instant::now());
        let attached =
            |pace: &mut Pace, uid, now| (0..100).filter(|_| pace.attach(uid, now).is_ok()).count();
        assert_eq!(attached(&mut pace, 7, began), BURST as usize);
        assert_eq!(attached(&mut pace, 8, began), BURST as usize, "another user");
        assert_eq!(pace.attach(7, began), Err(INTERVAL));
        assert_eq!(attached(&mut pace, 7, began + 3 * INTERVAL), 3);
        assert_eq!(attached(&mut pace, 7, began + 100 * INTERVAL), BURST as usize);
        assert!(!pace.0.contains_key(&8), "who paid all off is forgotten");
    }
}
