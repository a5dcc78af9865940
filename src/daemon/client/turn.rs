//! Turns at what takes long to make: one at a time of each worker, and each user waits for one only.

use super::peer::Peer;
use crate::lock::lock;
use dataspace_collector::quota::counts::Counts;
use dataspace_proto::api::{ApiError, ErrorCode};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Time that a turn is waited for.
const WAIT: Duration = Duration::from_secs(5);

/// Requests of one user that may wait, beside the one whose turn it is.
const MAX_WAITING: usize = 1;

/// The same of one who sees all, as several dashboards of root do.
const MAX_WAITING_OF_TRUSTED: usize = 8;

/// Client whose requests are counted together.
type TurnUser = (u32, bool);

/// Queues of those who wait for a turn, in the order in which they asked.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Of each worker, by its user, while anybody waits for it: one that does not answer holds up its own only.
    each: Mutex<HashMap<Option<u32>, Weak<Semaphore>>>,
    waiting: Mutex<Counts<TurnUser>>,
}

impl Turns {
    /// Waits for a turn at the worker of user `worker`, or of those who see all.
    ///
    /// # Errors
    /// Where `peer` waits for one already, or it does not come in time.
    pub(crate) async fn take(
        &self,
        peer: &Peer,
        worker: Option<u32>,
    ) -> Result<AnswerTurn, ApiError> {
        let _waiting = self.wait(peer)?;
        match tokio::time::timeout(WAIT, self.one_of(worker).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(AnswerTurn { _permit: permit }),
            _ => Err(too_many("other profiles are being made: ask again later")),
        }
    }

    fn one_of(&self, worker: Option<u32>) -> Arc<Semaphore> {
        let mut each = lock(&self.each);
        each.retain(|_, one| one.strong_count() > 0);
        let known = each.get(&worker).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let one = Arc::new(Semaphore::new(1));
            each.insert(worker, Arc::downgrade(&one));
            one
        })
    }

    fn wait(&self, peer: &Peer) -> Result<Waiting<'_>, ApiError> {
        let user = (peer.uid, peer.sees_all());
        let most = if peer.sees_all() { MAX_WAITING_OF_TRUSTED } else { MAX_WAITING };
        if !lock(&self.waiting).add_within(user, most, usize::MAX) {
            return Err(too_many("you wait for another profile or object: ask again behind it"));
        }
        Ok(Waiting { turns: self, user })
    }
}

fn too_many(message: &str) -> ApiError {
    ApiError { code: ErrorCode::TooMany, message: message.to_owned() }
}

/// A request that waits, until it is dropped.
struct Waiting<'a> {
    turns: &'a Turns,
    user: TurnUser,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        lock(&self.turns.waiting).remove(&self.user);
    }
}

/// The turn of a request.
#[derive(Debug)]
pub(crate) struct AnswerTurn {
    _permit: OwnedSemaphorePermit,
}

impl AnswerTurn {
    /// Does `work` where it holds up neither other clients nor the watchdog. The turn lasts as long as
    /// the work does, which goes on where the client that asked has gone.
    ///
    /// # Errors
    /// Where the work panics.
    pub(crate) async fn spend<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, tokio::task::JoinError> {
        let turn = self;
        let work = move || {
            let _turn = turn;
            work()
        };
        tokio::task::spawn_blocking(work).await
    }
}

#[cfg(test)]
mod tests {
    use super::super::peer::Rank;
    use super::*;
    use std::pin::pin;
    use std::sync::mpsc;

    fn peer(uid: u32, rank: Rank) -> Peer {
        Peer { uid, gid: uid, pid: 1, groups: Arc::default(), rank, address: None }
    }

    fn block_on(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(test);
    }

    #[test]
    fn a_user_waits_for_one_turn_and_others_are_next() {
        block_on(async {
            let turns = Turns::default();
            let (user, other) = (peer(7, Rank::User), peer(8, Rank::User));
            let first = turns.take(&user, None).await.unwrap();
            let mut second = pin!(turns.take(&user, None));
            tokio::select! { biased; _ = &mut second => panic!("two at once"), () = async {} => {} }
            assert_eq!(turns.take(&user, None).await.unwrap_err().code, ErrorCode::TooMany);
            let mut of_other = pin!(turns.take(&other, None));
            tokio::select! { biased; _ = &mut of_other => panic!("two at once"), () = async {} => {} }
            drop(first);
            drop(second.await.unwrap());
            drop(of_other.await.unwrap());
            assert_eq!(*lock(&turns.waiting), Counts::new());
            assert!(turns.take(&user, None).await.is_ok());
        });
    }

    #[test]
    fn the_turn_lasts_as_long_as_the_work_though_the_client_has_gone() {
        block_on(async {
            let turns = Turns::default();
            let user = peer(7, Rank::User);
            let turn = turns.take(&user, None).await.unwrap();
            let (began, has_begun) = tokio::sync::oneshot::channel();
            let (end, ends) = mpsc::channel::<()>();
            let request = tokio::spawn(turn.spend(move || {
                began.send(()).unwrap();
                let _ = ends.recv();
            }));
            has_begun.await.unwrap();
            request.abort();
            assert!(request.await.unwrap_err().is_cancelled());
            assert_eq!(turns.one_of(None).available_permits(), 0);
            assert!(turns.take(&user, Some(7)).await.is_ok(), "another worker");
            drop(end);
            assert!(turns.take(&user, None).await.is_ok());
        });
    }
}
