//! A thread that asks the history, so that keys and totals are not held up by an answer that takes long.

use super::look::{self, Sight, Wish};
use super::state::ScreenState;
use crate::session::Source;
use crate::session::inspection::Inspector;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// Time that a picture waits for the answers: most come before, and then nothing is drawn twice.
const PATIENCE: Duration = Duration::from_millis(25);

/// Answers that lead to another question before there is a picture: a function is found, and then its code.
const MAX_STEPS: usize = 3;

/// The other end of the thread.
#[derive(Debug)]
pub(super) struct Looker {
    wishes: Sender<Wish>,
    sights: Receiver<Sight>,
    is_looking: bool,
}

impl Looker {
    /// Begins the thread, which ends after this was dropped.
    ///
    /// # Errors
    /// Where there is no thread to be had.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        source: &'scope dyn Source,
        mut inspector: Option<Inspector>,
    ) -> std::io::Result<Self> {
        let (wishes, asked) = bounded::<Wish>(1);
        let (answers, sights) = bounded(1);
        let look = move || {
            for wish in asked {
                let see = || look::see(wish.clone(), source, inspector.as_mut());
                let sight = catch_unwind(AssertUnwindSafe(see)).unwrap_or_else(|_| {
                    tracing::error!("a question of the screen panicked");
                    look::blind(wish, "the samples could not be asked: a fault of ours")
                });
                if answers.send(sight).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("looker".to_owned()).spawn_scoped(scope, look)?;
        Ok(Self { wishes, sights, is_looking: false })
    }

    /// Has the history asked what is missing, and puts on the screen of `width` columns what it said. Whether there is
    /// something new to draw.
    pub(super) fn look(&mut self, state: &mut ScreenState, width: usize) -> bool {
        let mut is_new = self.take(state, Duration::ZERO);
        let until = Instant::now() + PATIENCE;
        for _ in 0..MAX_STEPS {
            if self.is_looking || !state.is_stale {
                break;
            }
            is_new = true;
            let Some(wish) = look::wish(state, width) else { break };
            self.is_looking = self.wishes.send(wish).is_ok();
            self.take(state, until.saturating_duration_since(Instant::now()));
        }
        is_new
    }

    /// Tells whether an answer is to come.
    pub(super) fn is_looking(&self) -> bool {
        self.is_looking
    }

    fn take(&mut self, state: &mut ScreenState, wait: Duration) -> bool {
        if !self.is_looking {
            return false;
        }
        let Ok(sight) = self.sights.recv_timeout(wait) else { return false };
        self.is_looking = false;
        look::take(state, sight);
        true
    }
}
