//! Room for work on questions where memory is bounded: each that is worked on has room of its own below
//! the bound, and whoever waits for it has his turn.

use crate::lock::lock;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Time that somebody waits before he looks whether he is to give something up, or to end.
const LOOK: Duration = Duration::from_millis(20);

/// Those who work, and those who wait.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<RoomState>,
    moved: Condvar,
}

#[derive(Debug)]
struct RoomState {
    n_working: u64,
    waiting: VecDeque<u64>,
    last_number: u64,
}

/// Somebody who waits, until it is dropped.
#[derive(Debug)]
pub(super) struct Waiter<'a> {
    queue: &'a Queue,
    number: u64,
}

/// Somebody who works, until it is dropped.
#[derive(Debug)]
pub(super) struct Working<'a>(&'a Queue);

impl Queue {
    pub(super) const fn new() -> Self {
        let state = RoomState { n_working: 0, waiting: VecDeque::new(), last_number: 0 };
        Self { state: Mutex::new(state), moved: Condvar::new() }
    }

    /// Somebody comes, after all others.
    pub(super) fn join(&self) -> Waiter<'_> {
        let mut state = lock(&self.state);
        state.last_number += 1;
        let number = state.last_number;
        state.waiting.push_back(number);
        Waiter { queue: self, number }
    }
}

impl<'a> Waiter<'a> {
    /// Leave to work, if it is his turn and there `is_room` for so many who do; waits for it a moment.
    pub(super) fn work(&self, is_room: impl Fn(u64) -> bool) -> Option<Working<'a>> {
        let may = |state: &RoomState| {
            state.waiting.front() == Some(&self.number) && is_room(state.n_working + 1)
        };
        let mut state = lock(&self.queue.state);
        if !may(&state) {
            let waited = self.queue.moved.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if !may(&state) {
                return None;
            }
        }
        state.n_working += 1;
        Some(Working(self.queue))
    }
}

impl Working<'_> {
    /// Tells whether there still `is_room` for so many as work.
    pub(super) fn may_go_on(&self, is_room: impl Fn(u64) -> bool) -> bool {
        is_room(lock(&self.0.state).n_working)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        lock(&self.queue.state).waiting.retain(|number| *number != self.number);
        self.queue.moved.notify_all();
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).n_working -= 1;
        self.0.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_his_turn_as_there_is_room() {
        let queue = Queue::new();
        let (first, second, third) = (queue.join(), queue.join(), queue.join());
        let is_room = |n_working| n_working <= 1;
        assert!(second.work(is_room).is_none(), "he is not the next");
        let working = first.work(is_room).unwrap();
        drop(first);
        assert!(second.work(is_room).is_none(), "there is room for one");
        assert!(working.may_go_on(is_room) && !working.may_go_on(|_| false));
        // Who works and asks again comes after the others.
        let again = queue.join();
        drop(working);
        assert!(again.work(is_room).is_none() && third.work(is_room).is_none());
        // Who gives up keeps nobody.
        drop(second);
        let working = third.work(is_room).unwrap();
        drop((third, working));
        assert!(again.work(is_room).is_some());
    }
}
