//! The thread of a session: attaches, attaches again, and publishes snapshots.

use super::{Owner, Session};
use crate::config::LiveOptions;
use crate::daemon::frame::Frame;
use crate::daemon::refusal_log::REFUSALS;
use crate::exit;
use crate::memory_bound;
use crate::ownership::{OwnProcess, Standing};
use crate::session::findings::Findings;
use crate::session::{self, Source};
use crossbeam_channel::Receiver;
use dataspace_proto::api::{ErrorCode, SessionState};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Time that the end of a target, or of its belonging to its user, may go unnoticed.
const GLANCE: Duration = Duration::from_millis(250);

/// Time after which a target that is not there is looked for again.
const RETRY: Duration = Duration::from_secs(1);

/// The same where a privilege or the machine is in the way: that changes seldom.
const SLOW_RETRY: Duration = Duration::from_secs(30);

/// Half of how long a session of the configuration waits that was given up for want of memory; each time
/// twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// The same at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Why a session waits that would take memory.
const SHORT: &str = "memory is short (memory_max): it goes on when there is memory again; fewer sessions or \
                     a higher memory_max would help";

/// Why a session ended that took memory.
const ENDED_FOR_MEMORY: &str = "memory was short (memory_max), and giving up all else was not enough: it was \
                                ended; fewer sessions or a higher memory_max would help";

/// A snapshot that nobody asked for is made so often, to see that the analyzer answers.
const BEAT: Duration = Duration::from_secs(5);

/// Time between two snapshots at least: making one takes the analyzer's time.
const MIN_SPACING: Duration = Duration::from_millis(50);

/// Objects that a snapshot lists at most unless the session says otherwise: some 10 MB of JSON with
/// names of usual length.
const MAX_OBJECTS: usize = 10_000;

/// The thread of a session: attaches, attaches again, publishes snapshots.
pub(super) struct Keeper {
    pub(super) session: Arc<Session>,
    pub(super) options: LiveOptions,
    pub(super) processes: Vec<OwnProcess>,
    pub(super) woken: Receiver<()>,
    /// Its target may end and be there again, as a unit that is restarted.
    pub(super) comes_back: bool,
}

/// Why an attached session is followed no longer.
enum Over {
    /// It was asked to end.
    Left,
    /// Its target has ended.
    Target,
    /// There is no memory for it.
    Memory,
    /// Its target does not belong to its user any more.
    Refused(String),
}

impl Keeper {
    pub(super) fn run(&self) {
        use SessionState::{Detached, Ended, Waiting};
        let session = &self.session;
        let mut n_given_up = 0;
        loop {
            let began = Instant::now();
            let retry = match self.attach() {
                Err(Unattached::Short) => {
                    session.is_now(Waiting, Some(SHORT.into()), Some(ErrorCode::TooMany));
                    RETRY
                }
                Ok(source) => match self.follow(&*source) {
                    Over::Left => return session.is_now(Detached, None, None),
                    Over::Refused(why) => return self.refused(why),
                    Over::Memory if !session.is_configured() => {
                        return session.is_now(Ended, Some(ENDED_FOR_MEMORY.into()), None);
                    }
                    Over::Memory => {
                        session.is_now(Waiting, Some(SHORT.into()), None);
                        // What went well for so long is another matter.
                        n_given_up *= u32::from(began.elapsed() < LONGEST_PAUSE);
                        n_given_up += 1;
                        LONGEST_PAUSE.min(FIRST_PAUSE * (1 << n_given_up.min(6)))
                    }
                    Over::Target if !self.comes_back => return session.is_now(Ended, None, None),
                    Over::Target => {
                        session.is_now(Waiting, Some("its target has ended".into()), None);
                        RETRY
                    }
                },
                Err(Unattached::Refused(why)) => return self.refused(why),
                Err(Unattached::Error(error)) => match self.failed(&error) {
                    Some(retry) => retry,
                    None => return,
                },
            };
            if self.is_asked_to_leave_within(retry) {
                return session.is_now(Detached, None, None);
            }
        }
    }

    /// Says why it could not be attached, and when that is to be tried again, if ever.
    fn failed(&self, error: &anyhow::Error) -> Option<Duration> {
        let (code, retry) = kind_of(error);
        let retry = retry.filter(|_| self.comes_back);
        let state = if retry.is_some() { SessionState::Waiting } else { SessionState::Failed };
        self.session.is_now(state, Some(format!("{error:#}")), Some(code));
        retry
    }

    fn refused(&self, why: String) {
        let Owner { uid, .. } = self.session.owner;
        if REFUSALS.admits(uid) {
            tracing::warn!(session = self.session.id, uid, reason = why, "refused");
        }
        self.session.is_now(SessionState::Failed, Some(why), Some(ErrorCode::NotPermitted));
    }

    /// Tells whether the session was asked to end, which it is here where nobody looks at it any more.
    fn is_to_leave(&self) -> bool {
        let session = &self.session;
        if !session.is_leaving() && session.is_abandoned() {
            tracing::info!(session = session.id, "nobody looks at it any more: it ends");
            session.leave();
        }
        session.is_leaving()
    }

    /// Waits, and wakes early only to leave.
    fn is_asked_to_leave_within(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        while !self.is_to_leave() {
            self.session.heard();
            let next = deadline.min(Instant::now() + BEAT);
            if self.woken.recv_deadline(next).is_err() && deadline <= Instant::now() {
                return false;
            }
        }
        true
    }

    fn attach(&self) -> Result<Box<dyn Source>, Unattached> {
        self.session.begins_to_open();
        let source = self.open();
        self.session.has_opened();
        source
    }

    fn open(&self) -> Result<Box<dyn Source>, Unattached> {
        if memory_bound::is_short() {
            return Err(Unattached::Short);
        }
        let is_hurried = Arc::clone(&self.session.is_hurried);
        let is_over = || self.is_to_leave() || self.session.is_given_up.load(Ordering::Acquire);
        let source = session::start_live_hurried_by(&self.options, is_hurried, &is_over);
        let source = source.map_err(Unattached::Error)?;
        if self.session.is_given_up.load(Ordering::Acquire) {
            source.stop();
            return Err(Unattached::Short);
        }
        // Events are opened by number: only if each process still is the one that was looked at,
        // and has not ended, was it that one all the time.
        for process in &self.processes {
            let unattached = match process.standing() {
                Standing::Own => continue,
                Standing::OfOthers(why) | Standing::Foreign(why) => Unattached::Refused(why),
                Standing::Gone => Unattached::Error(anyhow::anyhow!("the process has ended")),
            };
            source.stop();
            return Err(unattached);
        }
        let findings = source.findings();
        let snapshot = &findings.snapshot;
        self.session.status.send_modify(|status| {
            status.n_attached += 1;
            status.target.clone_from(&snapshot.target.description);
            status.events = snapshot.events.iter().map(|event| event.name.clone()).collect();
        });
        self.publish(findings);
        self.session.beat.store(source.heartbeat(), Ordering::Relaxed);
        self.session.heard();
        self.session.is_now(SessionState::Attached, None, None);
        Ok(source)
    }

    fn follow(&self, source: &dyn Source) -> Over {
        let mut published = Instant::now();
        loop {
            let is_wished = self.woken.recv_timeout(GLANCE).is_ok();
            let is_given_up = self.session.is_given_up.load(Ordering::Acquire);
            let is_leaving = self.is_to_leave() || is_given_up;
            if is_leaving {
                source.stop();
            } else if is_wished {
                std::thread::sleep(MIN_SPACING.saturating_sub(published.elapsed()));
            }
            let is_over = source.is_finished();
            let is_due = is_wished || is_leaving || is_over || published.elapsed() >= BEAT;
            let findings = is_due.then(|| source.findings());
            // After the snapshot, so that what is in it was seen while the processes were his.
            if let Some(why) = self.foreign() {
                source.stop();
                return Over::Refused(why);
            }
            if let Some(findings) = findings {
                self.publish(findings);
                self.session.feel(source.heartbeat());
                published = Instant::now();
            }
            match (is_leaving, is_over) {
                (true, _) if self.session.is_leaving() => return Over::Left,
                (true, _) => return Over::Memory,
                (_, true) => return Over::Target,
                _ => {}
            }
        }
    }

    /// Why a process of the target is not its user's any more.
    fn foreign(&self) -> Option<String> {
        self.processes.iter().find_map(|process| match process.standing() {
            Standing::OfOthers(why) | Standing::Foreign(why) => Some(why),
            Standing::Own | Standing::Gone => None,
        })
    }

    fn publish(&self, findings: Findings) {
        let max_objects = self.session.spec.max_objects.unwrap_or(MAX_OBJECTS);
        let frame = Arc::new(Frame::new(findings, max_objects, self.session.owner));
        if self.session.frames.receiver_count() > 0 {
            // Here rather than on the thread that answers clients.
            frame.event();
        }
        self.session.publish(frame);
    }
}

/// Kind of failure of `error`, and the time after which it may be another; `None`: never.
fn kind_of(error: &anyhow::Error) -> (ErrorCode, Option<Duration>) {
    match exit::code(error) {
        exit::USAGE => (ErrorCode::BadRequest, None),
        exit::UNSUPPORTED => (ErrorCode::Unsupported, Some(SLOW_RETRY)),
        exit::NOT_PERMITTED => (ErrorCode::MissingPrivilege, Some(SLOW_RETRY)),
        _ => (ErrorCode::NotAttached, Some(RETRY)),
    }
}

/// Why a session was not attached.
enum Unattached {
    /// It cannot be.
    Error(anyhow::Error),
    /// It may not be.
    Refused(String),
    /// There is no memory for it now.
    Short,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::{Failure, Kind};

    #[test]
    fn what_is_wrong_here_is_told_by_its_kind() {
        let code = |kind| kind_of(&Failure::new(kind, "x").into()).0;
        assert_eq!(code(Kind::NotPermitted), ErrorCode::MissingPrivilege);
        assert_eq!(code(Kind::Unsupported), ErrorCode::Unsupported);
        assert_eq!(code(Kind::Failed), ErrorCode::NotAttached);
        assert_eq!(kind_of(&Failure::new(Kind::Usage, "x").into()), (ErrorCode::BadRequest, None));
    }
}
