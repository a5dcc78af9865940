//! Notices of the daemon to systemd (sd_notify(3)).

use sd_notify::NotifyState;
use std::time::Duration;

/// The way to systemd, if it listens.
#[derive(Debug)]
pub(crate) struct Notices {
    is_heard: bool,
    watchdog: Option<Duration>,
}

impl Notices {
    /// As the environment tells.
    pub(crate) fn from_env() -> Self {
        let is_heard = std::env::var_os("NOTIFY_SOCKET").is_some();
        let watchdog = sd_notify::watchdog_enabled().filter(|time| !time.is_zero());
        Self { is_heard, watchdog }
    }

    /// Interval at which systemd is told that all is well: half of the time it waits.
    pub(crate) fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog.map(|time| time / 2)
    }

    /// Tells whether systemd listens, whose unit then says what becomes of us.
    pub(crate) const fn is_heard(&self) -> bool {
        self.is_heard
    }

    /// All that was to be begun or read again is.
    pub(crate) fn ready(&self) {
        say(&[NotifyState::Ready]);
    }

    /// The configuration is read again.
    pub(crate) fn reloading(&self) {
        // With the time since when, which systemd holds the next notice to.
        let since = NotifyState::monotonic_usec_now();
        match since {
            Ok(since) => say(&[NotifyState::Reloading, since]),
            Err(error) => tracing::debug!(%error, "no clock"),
        }
    }

    /// All is well.
    pub(crate) fn alive(&self) {
        say(&[NotifyState::Watchdog]);
    }

    /// The daemon ends.
    pub(crate) fn stopping(&self) {
        say(&[NotifyState::Stopping]);
    }
}

/// Says `what` where somebody listens.
fn say(what: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(what) {
        tracing::debug!(%error, ?what, "systemd does not hear");
    }
}
