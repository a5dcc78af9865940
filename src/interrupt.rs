//! Ctrl-C, SIGTERM and a closed terminal, as a flag to be looked at.

use crate::exit::INTERRUPTED;
use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time that a wait goes on without looking at the flag: short enough to feel immediate.
const GLANCE: Duration = Duration::from_millis(20);

/// Set once somebody asked us to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    flag: Arc<AtomicBool>,
    is_listening: bool,
}

impl Interrupt {
    /// From now on these signals set the flag and nothing else.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let interrupt = Self { is_listening: true, ..Self::default() };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register(signal, Arc::clone(&interrupt.flag))
                .context("setting up the handler of Ctrl-C")?;
        }
        Ok(interrupt)
    }

    /// From now on a further signal ends the process at once: for the time while the first one is
    /// being obeyed and no terminal needs restoring.
    pub(crate) fn end_at_next(&self) -> anyhow::Result<()> {
        let armed = Arc::new(AtomicBool::new(true));
        let signals = if self.is_listening { &[SIGINT, SIGTERM][..] } else { &[] };
        for &signal in signals {
            flag::register_conditional_shutdown(signal, i32::from(INTERRUPTED), Arc::clone(&armed))
                .context("setting up the handler of Ctrl-C")?;
        }
        Ok(())
    }

    /// Tells whether we were asked to end.
    pub(crate) fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Asks ourselves to end.
    #[cfg(test)]
    pub(crate) fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Waits until `deadline`, until the flag is set, or until `is_done`.
    pub(crate) fn wait_until(&self, deadline: Instant, is_done: impl Fn() -> bool) {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_set() || is_done() {
                return;
            }
            thread::sleep(left.min(GLANCE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_ends_the_wait() {
        let interrupt = Interrupt::listen().unwrap();
        assert!(!interrupt.is_set());
        signal_hook::low_level::raise(SIGTERM).unwrap();
        interrupt.wait_until(Instant::now() + Duration::from_secs(60), || false);
        assert!(interrupt.is_set());
    }
}
