//! Places for threads that may never come back, because they wait for what others have in their hands:
//! a file system that does not answer, a process that keeps its mappings locked; and for what they hold.

use crate::quota::counts::Counts;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// For whom a thread works: a user who may see only what is his own, or `None` for all others, who are
/// trusted.
pub type ForUser = Option<u32>;

/// So many places, a quarter of them at most for one user. Of the last quarter users have nothing, and
/// of another one who is trusted, so that neither side can take what the other one needs.
#[derive(Debug)]
pub struct Places {
    max: usize,
    taken: Mutex<Counts<ForUser>>,
    /// One was given back.
    freed: Condvar,
}

/// One place, until it is dropped.
#[derive(Debug)]
pub struct Place {
    of: &'static Places,
    user: ForUser,
}

impl Places {
    /// `max` free places.
    #[must_use]
    pub const fn new(max: usize) -> Self {
        Self { max, taken: Mutex::new(Counts::new()), freed: Condvar::new() }
    }

    /// Tells whether there is one more for `user`.
    #[must_use]
    pub fn has_room(&self, user: ForUser) -> bool {
        self.is_free(&self.lock(), user)
    }

    /// A place for `user`, if there is one.
    #[must_use]
    pub fn take(&'static self, user: ForUser) -> Option<Place> {
        self.take_within(user, Duration::ZERO)
    }

    /// The same; one that is given back in `time` is waited for.
    #[must_use]
    pub fn take_within(&'static self, user: ForUser, time: Duration) -> Option<Place> {
        let is_full = |taken: &mut Counts<ForUser>| !self.is_free(taken, user);
        let waited = self.freed.wait_timeout_while(self.lock(), time, is_full);
        let (mut taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        self.is_free(&taken, user).then(|| {
            taken.add(user);
            Place { of: self, user }
        })
    }

    /// A place for `user`, though there may be none: for a thread that is there already.
    #[must_use]
    pub fn take_anyhow(&'static self, user: ForUser) -> Place {
        self.lock().add(user);
        Place { of: self, user }
    }

    fn is_free(&self, taken: &Counts<ForUser>, user: ForUser) -> bool {
        let n_trusted = taken.of(&None);
        let n_of_side = if user.is_some() { taken.total() - n_trusted } else { n_trusted };
        let most = if user.is_some() { self.max / 4 } else { self.max };
        let is_within = taken.of(&user) < most && taken.total() < self.max;
        is_within && n_of_side < self.max - self.max / 4
    }

    fn lock(&self) -> MutexGuard<'_, Counts<ForUser>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.lock().remove(&self.user);
        self.of.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many places as `user` gets.
    fn all(places: &'static Places, user: ForUser) -> Vec<Place> {
        std::iter::from_fn(|| places.take(user)).collect()
    }

    #[test]
    fn no_user_takes_what_others_need() {
        static PLACES: Places = Places::new(16);
        let first = all(&PLACES, Some(7));
        assert_eq!(first.len(), 4);
        let others: Vec<_> = (8..20).flat_map(|uid| all(&PLACES, Some(uid))).collect();
        assert_eq!(others.len(), 8, "with the first one's three quarters");
        assert_eq!(all(&PLACES, None).len(), 4);
        drop(first);
        assert_eq!(all(&PLACES, Some(99)).len(), 4);
        assert!(PLACES.has_room(Some(99)) && !PLACES.has_room(Some(8)));
        drop(others);
    }

    #[test]
    fn who_is_trusted_leaves_users_theirs() {
        static PLACES: Places = Places::new(16);
        let trusted = all(&PLACES, None);
        assert_eq!(trusted.len(), 12);
        assert_eq!(all(&PLACES, Some(7)).len(), 4);
        let more = PLACES.take_anyhow(None);
        assert!(!PLACES.has_room(None));
        drop((trusted, more));
        assert_eq!(*PLACES.lock(), Counts::new());
    }

    #[test]
    fn a_place_that_is_given_back_is_had_by_who_waits() {
        static PLACES: Places = Places::new(4);
        let first = PLACES.take(Some(7)).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| PLACES.take_within(Some(7), Duration::from_secs(600)));
            drop(first);
            assert!(waiting.join().unwrap().is_some());
        });
    }
}
