//! Keeps refusals in the log from becoming a flood: each is there, with its user and reason, up to so
//! many a minute, and then a count.

use super::peer::{NOBODY, Peer};
use crate::lock::lock;
use dataspace_proto::api::{ApiError, ErrorCode};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The refusals of this process.
pub(crate) static REFUSALS: RefusalLog = RefusalLog { users: Mutex::new(BTreeMap::new()) };

/// Refusals of one user that are written in one [`SPAN`]: who asks by hand sees them all.
const MAX_WRITTEN: u64 = 10;

/// Time over which refusals are counted together.
const SPAN: Duration = Duration::from_secs(60);

/// Users that are told apart: with user namespaces, one has 65,536 numbers.
const MAX_USERS: usize = 1024;

/// Numbers of refusals that were written lately, by user.
#[derive(Debug)]
pub(crate) struct RefusalLog {
    users: Mutex<BTreeMap<Whose, Lately>>,
}

/// A user, or all that are too many to be told apart.
type Whose = Option<u32>;

#[derive(Debug)]
struct Lately {
    since: Instant,
    n_refused: u64,
}

impl Lately {
    /// Those that were not written.
    const fn n_left_out(&self) -> u64 {
        self.n_refused.saturating_sub(MAX_WRITTEN)
    }
}

impl RefusalLog {
    /// Counts a refusal of user `uid`. Whether it is to be written.
    pub(crate) fn admits(&self, uid: u32) -> bool {
        let now = Instant::now();
        self.tell(now);
        self.admits_at(uid, now)
    }

    /// Writes how many were left out in each minute that is over by `now`.
    pub(crate) fn tell(&self, now: Instant) {
        for (whose, n_left_out) in self.left_out(now) {
            match whose {
                Some(NOBODY) => {
                    tracing::warn!(n_left_out, "refused over TCP more often than is written");
                }
                Some(uid) => tracing::warn!(uid, n_left_out, "refused more often than is written"),
                None => tracing::warn!(n_left_out, "more users are refused than can be counted"),
            }
        }
    }

    fn admits_at(&self, uid: u32, now: Instant) -> bool {
        let mut users = lock(&self.users);
        let is_known = users.contains_key(&Some(uid)) || users.len() < MAX_USERS;
        let lately = users.entry(is_known.then_some(uid));
        let lately = lately.or_insert(Lately { since: now, n_refused: 0 });
        lately.n_refused += 1;
        lately.n_left_out() == 0
    }

    /// Of whom how many were left out, for each whose minute is over: it is forgotten.
    fn left_out(&self, now: Instant) -> Vec<(Whose, u64)> {
        let mut users = lock(&self.users);
        let mut left_out = Vec::new();
        users.retain(|whose, lately| {
            let is_over = now.saturating_duration_since(lately.since) >= SPAN;
            if is_over && lately.n_left_out() > 0 {
                left_out.push((*whose, lately.n_left_out()));
            }
            !is_over
        });
        left_out
    }
}

impl Peer {
    /// Writes a refusal to the log, if there are not too many of this user, and gives the answer to it.
    pub(crate) fn refuse(&self, wish: &str, why: impl Into<String>) -> ApiError {
        let message = why.into();
        self.log_refusal(wish, &message);
        ApiError { code: ErrorCode::NotPermitted, message }
    }

    /// Writes to the log why it is refused, if there are not too many of this user.
    pub(crate) fn log_refusal(&self, wish: &str, why: &str) {
        let Self { uid, gid, pid, address, .. } = self;
        // Who has the token acts as the daemon's own user, whose refusals are others.
        let whose = if address.is_some() { NOBODY } else { *uid };
        if REFUSALS.admits(whose) {
            match address {
                Some(address) => tracing::warn!(%address, wish, reason = why, "refused"),
                None => tracing::warn!(uid, gid, pid, wish, reason = why, "refused"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> RefusalLog {
        RefusalLog { users: Mutex::new(BTreeMap::new()) }
    }

    #[test]
    fn ten_a_minute_are_written_and_the_rest_is_counted() {
        let (log, began) = (log(), Instant::now());
        let n_written = |uid, n, now| (0..n).filter(|_| log.admits_at(uid, now)).count();
        assert_eq!((n_written(7, 50, began), n_written(8, 3, began)), (10, 3));
        assert_eq!(log.left_out(began + SPAN / 2), []);
        assert_eq!(log.left_out(began + SPAN), [(Some(7), 40)]);
        assert_eq!(log.left_out(began + SPAN), [], "told once");
        assert_eq!(n_written(7, 50, began + SPAN), 10);
    }

    #[test]
    fn users_beyond_a_bound_are_counted_together() {
        let (log, began) = (log(), Instant::now());
        let n_written = (0..2 * 1024).filter(|uid| log.admits_at(*uid, began)).count();
        assert_eq!(n_written, MAX_USERS + 10);
        assert_eq!(log.users.lock().unwrap().len(), MAX_USERS + 1);
        assert_eq!(log.left_out(began + SPAN), [(None, 1024 - 10)]);
    }
}
