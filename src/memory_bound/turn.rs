//! An index thread's turn to work on questions: it has room in memory while it works on one, none while it
//! waits for a file that does not answer, and waits for room no longer than so long.

use super::room::{Waiter, Working};
use super::{Asked, BOUND, MemoryBound};
use crate::lock::lock;
use dataspace_analyzer::bytes::eviction::EvictionStage;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Time that one works on questions before others have their turn: what was read for one serves the next,
/// as long as it is not given up for others.
const SPELL: Duration = Duration::from_millis(500);

/// Time that somebody waits for room, which is thirty turns of others. After that his question is put off:
/// samples must not wait for it without end, and nobody be told.
const ROOM_DEADLINE: Duration = Duration::from_secs(15);

/// Time that room is kept, for one question, while files are waited for: a disk that has to be read first
/// takes less, and its questions are not worked on by turns, for what each has read so far stays.
const FILES_PATIENCE: Duration = Duration::from_secs(2);

/// The same for one file: a page of a disk takes less.
const FILE_PATIENCE: Duration = Duration::from_millis(50);

/// The turn of one index thread.
#[derive(Debug)]
pub(crate) struct Turn {
    bound: &'static MemoryBound,
    is_room: fn(&MemoryBound, u64) -> bool,
    deadline: Duration,
    state: Mutex<TurnState>,
}

#[derive(Debug, Default)]
struct TurnState {
    /// Room, and since when.
    room: Option<(Working<'static>, Instant)>,
    /// Of the question that is worked on, where the room was given back meanwhile.
    interrupted: Option<Asked>,
    /// Time that files were waited for with the room that the question has.
    waited: Duration,
}

/// Reason for which nobody has his turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoTurn {
    /// Others had theirs for too long.
    Late,
    /// It is not wanted any more.
    Unwanted,
}

impl Default for Turn {
    fn default() -> Self {
        let (is_room, deadline) = (MemoryBound::is_room, ROOM_DEADLINE);
        Self { bound: &BOUND, is_room, deadline, state: Mutex::default() }
    }
}

impl Turn {
    /// Has room for one more question, once there is, as long as it `is_wanted`.
    pub(crate) fn begin(&self, is_wanted: impl FnMut() -> bool) -> Result<(), NoTurn> {
        let mut state = lock(&self.state);
        *state = TurnState { room: state.room.take(), ..TurnState::default() };
        let is_spent = |working: &Working<'_>, since: Instant| {
            since.elapsed() >= SPELL || !working.may_go_on(|n| (self.is_room)(self.bound, n))
        };
        state.room.take_if(|(working, since)| is_spent(working, *since));
        drop(state);
        self.have_room(is_wanted)
    }

    /// Goes on with the question after a file was waited for, as [`Self::begin`] does.
    pub(crate) fn go_on(&self, is_wanted: impl FnMut() -> bool) -> Result<(), NoTurn> {
        if lock(&self.state).interrupted.is_none() {
            return Ok(());
        }
        self.have_room(is_wanted)?;
        lock(&self.state).interrupted = None;
        Ok(())
    }

    /// Time that a file is waited for before the room is given back.
    pub(crate) fn patience(&self) -> Duration {
        FILES_PATIENCE.saturating_sub(lock(&self.state).waited).min(FILE_PATIENCE)
    }

    /// A file was waited for so long, and the room kept.
    pub(crate) fn has_waited(&self, time: Duration) {
        let mut state = lock(&self.state);
        state.waited = state.waited.saturating_add(time);
    }

    /// Gives the room back until [`Self::go_on`], for the file that is waited for is slow.
    pub(crate) fn interrupt(&self) {
        let mut state = lock(&self.state);
        if state.room.take().is_some() {
            state.interrupted = Some(Asked::of(self.bound));
        }
    }

    /// Tells whether what was read for a question that is interrupted is to be given up: nobody left room for it.
    pub(crate) fn is_to_give_way(&self) -> bool {
        let mut state = lock(&self.state);
        let Some(asked) = &mut state.interrupted else { return false };
        asked.anew().is_some_and(|stage| stage >= EvictionStage::Indices)
            || self.bound.is_short.load(Ordering::Relaxed)
    }

    /// There is no question any more: the room is for others.
    pub(crate) fn end(&self) {
        *lock(&self.state) = TurnState::default();
    }

    fn have_room(&self, mut is_wanted: impl FnMut() -> bool) -> Result<(), NoTurn> {
        let has_room = lock(&self.state).room.is_some();
        let waiter = (!has_room).then(|| self.bound.questions.join());
        let began = Instant::now();
        let is_room = |n| (self.is_room)(self.bound, n);
        while is_wanted() {
            let Some(waiter) = &waiter else { return Ok(()) };
            if let Some(working) = Waiter::work(waiter, is_room) {
                lock(&self.state).room = Some((working, Instant::now()));
                return Ok(());
            }
            if began.elapsed() >= self.deadline {
                return Err(NoTurn::Late);
            }
        }
        Err(NoTurn::Unwanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Turn {
        /// Turns of several threads, where there is room for one to work.
        pub(crate) fn with_room_for_one<const N: usize>(deadline: Duration) -> [Self; N] {
            let bound: &'static MemoryBound = Box::leak(Box::new(MemoryBound::unbounded()));
            let is_room = |_: &MemoryBound, n_working| n_working <= 1;
            [(); N].map(|()| Self { bound, is_room, deadline, state: Mutex::default() })
        }
    }

    #[test]
    fn nobody_waits_for_his_turn_without_end() {
        let [first, second] = Turn::with_room_for_one(Duration::ZERO);
        first.begin(|| true).unwrap();
        assert_eq!(second.begin(|| true), Err(NoTurn::Late));
        assert_eq!(second.begin(|| false), Err(NoTurn::Unwanted));
        first.interrupt();
        second.begin(|| true).unwrap();
        assert_eq!(first.go_on(|| true), Err(NoTurn::Late));
        second.end();
        first.go_on(|| true).unwrap();
        assert_eq!(second.begin(|| true), Err(NoTurn::Late), "the first has it again");
    }

    #[test]
    fn what_a_slow_file_gave_is_given_up_for_others() {
        let [turn] = Turn::with_room_for_one(Duration::ZERO);
        turn.begin(|| true).unwrap();
        turn.bound.ask(EvictionStage::Indices, 2, 1);
        assert!(!turn.is_to_give_way(), "it has room");
        turn.interrupt();
        assert!(!turn.is_to_give_way(), "that was before");
        turn.bound.ask(EvictionStage::Caches, 2, 1);
        assert!(!turn.is_to_give_way());
        turn.bound.ask(EvictionStage::Indices, 2, 1);
        assert!(turn.is_to_give_way());
        turn.go_on(|| true).unwrap();
        turn.bound.is_short.store(true, Ordering::Relaxed);
        assert!(!turn.is_to_give_way());
        turn.interrupt();
        assert!(turn.is_to_give_way());
    }

    #[test]
    fn files_that_answer_slowly_by_little_are_not_waited_for_either() {
        let [turn] = Turn::with_room_for_one(Duration::ZERO);
        turn.begin(|| true).unwrap();
        assert_eq!(turn.patience(), FILE_PATIENCE);
        turn.has_waited(FILES_PATIENCE);
        assert_eq!(turn.patience(), Duration::ZERO);
        turn.begin(|| true).unwrap();
        assert_eq!(turn.patience(), FILE_PATIENCE, "the next question");
    }
}
