//! The thread of a session: attaches, attaches again, and publishes snapshots.

use super::frame::{Frame, cut};
use super::own_work::OwnWork;
use super::sealed::Sealed;
use super::staff::{Hosted, Staff};
use super::{Course, Owner, Session};
use crate::config::LiveOptions;
use crate::daemon::client::refusal_log::REFUSALS;
use crate::exit;
use crate::ownership::{OwnProcess, Standing};
use crossbeam_channel::Receiver;
use dataspace_proto::api::{ErrorCode, SessionState};
use dataspace_proto::worker::{self as proto, Ask, Flag, Reply, SessionRequest, Viewer};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
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

/// Reason of a session that waits for memory.
const SHORT: &str = "memory is short (memory_max): it goes on when there is memory again; fewer sessions or \
                     a higher memory_max would help";

/// Reason to give a worker up whose words make no sense.
const NO_REPLY: &str = "its reply is none to what it was asked";

/// Reason of a session that ended because of memory.
const ENDED_FOR_MEMORY: &str = "memory was short (memory_max), and giving up all else was not enough: it was \
                                ended; fewer sessions or a higher memory_max would help";

/// A snapshot that nobody asked for is made so often, to see that the analyzer answers.
const BEAT: Duration = Duration::from_secs(5);

/// Time between two snapshots at least: making one takes the analyzer's time.
const MIN_SPACING: Duration = Duration::from_millis(50);

/// Time after which a session begins anew whose worker was lost; twice as long each time that it was lost at once.
const FIRST_ANEW: Duration = Duration::from_millis(100);

/// Time that a session has lasted if its worker was not lost at once.
const LASTING: Duration = Duration::from_secs(2);

/// Interval at which a worker that has not replied yet is told of what is new.
const LOOK: Duration = Duration::from_millis(20);

/// Time that a worker may take to reply: the end of a session takes three seconds of debug information that is still
/// being read.
const PATIENCE: Duration = Duration::from_secs(30);

/// The same where it opens events: processes that do not show their mappings are waited for.
const OPENING_PATIENCE: Duration = Duration::from_secs(120);

/// Objects that a snapshot lists at most unless the session says otherwise: some 10 MB of JSON with
/// names of usual length.
const MAX_OBJECTS: usize = 10_000;

/// The thread of a session: attaches, attaches again, publishes snapshots.
pub(super) struct Keeper {
    pub(super) session: Arc<Session>,
    pub(super) options: LiveOptions,
    pub(super) staff: Arc<Staff>,
    pub(super) processes: Vec<OwnProcess>,
    pub(super) woken: Receiver<()>,
    /// Its target may end and be there again, as a unit that is restarted.
    pub(super) comes_back: bool,
}

/// Reason to follow an attached session no longer.
enum Over {
    /// It was asked to end.
    Left,
    /// Its target has ended.
    Target,
    /// There is no memory for it.
    Memory,
    /// Its target does not belong to its user any more.
    Refused(String),
    /// Its worker was lost.
    Lost(String),
}

impl Keeper {
    pub(super) fn run(&self) {
        use SessionState::{Detached, Ended, Waiting};
        let session = &self.session;
        let (mut n_given_up, mut n_lost, mut warning) = (0, 0, None);
        loop {
            let began = Instant::now();
            let retry = match self.attach(warning.take()) {
                Err(Unattached::Short) => {
                    session.is_now(Waiting, Some(SHORT.into()), Some(ErrorCode::TooMany));
                    RETRY
                }
                Err(Unattached::Lost(why)) if self.is_done_once() => {
                    return self.lost_for_good(&why);
                }
                Err(Unattached::Lost(why)) => self.lost(&why, &mut warning, &mut n_lost, began),
                Ok(hosted) => match self.follow(&hosted) {
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
                    Over::Target if !self.comes_back => {
                        session.is_now(Ended, self.own_work().and_then(OwnWork::end_note), None);
                        if session.course == Course::Own {
                            self.answer_on(&hosted);
                        }
                        return;
                    }
                    Over::Target => {
                        session.is_now(Waiting, Some("its target has ended".into()), None);
                        RETRY
                    }
                    Over::Lost(why) if self.is_done_once() => return self.lost_for_good(&why),
                    Over::Lost(why) => self.lost(&why, &mut warning, &mut n_lost, began),
                },
                Err(Unattached::Refused(why)) => return self.refused(why),
                Err(Unattached::Error(code, why)) => match self.failed(code, why) {
                    Some(retry) => retry,
                    None => return,
                },
            };
            if self.is_asked_to_leave_within(retry) {
                return session.is_now(Detached, None, None);
            }
        }
    }

    /// The work of the daemon's own session, if it is that one.
    fn own_work(&self) -> Option<&OwnWork> {
        self.staff.own_work().filter(|_| self.session.course == Course::Own)
    }

    /// Tells whether its work cannot be done again.
    fn is_done_once(&self) -> bool {
        self.own_work().is_some_and(OwnWork::is_done_once)
    }

    /// Has its worker answer questions after the end, until it is asked to leave.
    fn answer_on(&self, hosted: &Hosted) {
        while !self.is_to_leave() {
            if self.session.is_given_up.load(Ordering::Acquire) {
                let why = Some(ENDED_FOR_MEMORY.to_owned());
                return self.session.is_now(SessionState::Ended, why, None);
            }
            if let Err(Lost(why)) = self.standing(hosted) {
                return self.lost_for_good(&why);
            }
            let _ = self.woken.recv_timeout(BEAT);
        }
    }

    /// Says that its worker was lost, and its work with it.
    fn lost_for_good(&self, why: &str) {
        let what = format!("the process that did the work was lost ({why}), and all that it had");
        self.session.is_now(SessionState::Failed, Some(what), Some(ErrorCode::NotAttached));
    }

    /// Says that its worker was lost, for the `n_lost`th time in a row, and when it is to begin anew with another.
    fn lost(
        &self,
        why: &str,
        warning: &mut Option<String>,
        n_lost: &mut u32,
        began: Instant,
    ) -> Duration {
        let session = &self.session;
        tracing::warn!(session = session.id, why, "its worker is lost: it begins anew");
        let detail = format!("its worker was lost ({why}): it begins anew");
        session.is_now(SessionState::Waiting, Some(detail), Some(ErrorCode::NotAttached));
        *warning = Some(format!(
            "the process that did the work was lost ({why}): all before was lost with it, and sampling began anew"
        ));
        *n_lost = if began.elapsed() < LASTING { *n_lost + 1 } else { 0 };
        match *n_lost {
            0 => FIRST_ANEW,
            n_lost => LONGEST_PAUSE.min(FIRST_ANEW * (1 << n_lost.min(12))),
        }
    }

    /// Says why it could not be attached, and when that is to be tried again, if ever.
    fn failed(&self, code: ErrorCode, why: String) -> Option<Duration> {
        let retry = retry(code).filter(|_| self.comes_back);
        let state = if retry.is_some() { SessionState::Waiting } else { SessionState::Failed };
        self.session.is_now(state, Some(why), Some(code));
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

    fn attach(&self, warning: Option<String>) -> Result<Hosted, Unattached> {
        self.session.begins_to_open();
        let hosted = self.open(warning);
        self.session.has_opened();
        hosted
    }

    fn request(&self, warning: Option<String>) -> Result<SessionRequest, Unattached> {
        let spec = serde_json::to_vec(&self.session.spec);
        let spec =
            spec.map_err(|error| Unattached::Error(ErrorCode::BadRequest, error.to_string()))?;
        let max_objects = self.session.spec.max_objects.unwrap_or(MAX_OBJECTS) as u64;
        let own_work = self.own_work().and_then(OwnWork::as_asked);
        let has_lines = self.session.course == Course::Own;
        Ok(SessionRequest {
            spec,
            own_work,
            viewer: self.viewer(),
            max_objects,
            has_lines,
            warning,
        })
    }

    fn viewer(&self) -> Option<Viewer> {
        self.options.viewer.clone()
    }

    fn open(&self, warning: Option<String>) -> Result<Hosted, Unattached> {
        if self.staff.is_short(self.viewer().as_ref()) {
            return Err(Unattached::Short);
        }
        let no_worker = |error: io::Error| {
            let message = format!("no worker takes it: {error}");
            Unattached::Error(ErrorCode::NotAttached, message)
        };
        let (hosted, wished) =
            self.staff.host(self.session.id, self.request(warning)?).map_err(no_worker)?;
        self.session.is_hosted(wished);
        match self.ask(&hosted, Ask::Attach, &[])? {
            Reply::Attached(_) => {}
            Reply::NotAttached { code, message } => {
                return Err(Unattached::Error(code_of(code), cut(&message)));
            }
            _ => return Err(Unattached::Lost(NO_REPLY.to_owned())),
        }
        if self.session.is_given_up.load(Ordering::Acquire) {
            return Err(Unattached::Short);
        }
        // Events are opened by number: only if each process still is the one that was looked at,
        // and has not ended, was it that one all the time.
        for process in &self.processes {
            return Err(match process.standing() {
                Standing::Own => continue,
                Standing::OfOthers(why) | Standing::Foreign(why) => Unattached::Refused(why),
                Standing::Gone => {
                    Unattached::Error(ErrorCode::NotAttached, "the process has ended".to_owned())
                }
            });
        }
        let frame = self.snapshot(&hosted)?;
        self.session.status.send_modify(|status| status.n_attached += 1);
        self.session.publish(Arc::new(frame));
        self.session.heard();
        self.session.is_now(SessionState::Attached, None, None);
        Ok(hosted)
    }

    fn follow(&self, hosted: &Hosted) -> Over {
        self.follow_until_over(hosted).unwrap_or_else(|Lost(why)| Over::Lost(why))
    }

    fn follow_until_over(&self, hosted: &Hosted) -> Result<Over, Lost> {
        let mut published = Instant::now();
        loop {
            let is_wished = self.woken.recv_timeout(GLANCE).is_ok();
            let is_given_up = self.session.is_given_up.load(Ordering::Acquire);
            let is_leaving = self.is_to_leave() || is_given_up;
            if is_leaving {
                self.ask(hosted, Ask::Stop, &[])?;
            } else if is_wished {
                std::thread::sleep(MIN_SPACING.saturating_sub(published.elapsed()));
            }
            let standing = self.standing(hosted)?;
            let is_over = standing.is_finished;
            let is_due = is_wished || is_leaving || is_over || published.elapsed() >= BEAT;
            let frame = is_due.then(|| self.snapshot(hosted)).transpose()?;
            // After the snapshot, so that what is in it was seen while the processes were his.
            if let Some(why) = self.foreign() {
                return Ok(Over::Refused(why));
            }
            if let Some(frame) = frame {
                if is_leaving || is_over || !self.session.is_held_up() {
                    self.session.publish(Arc::new(frame));
                }
                self.session.feel(standing.beat);
                published = Instant::now();
            }
            match (is_leaving, is_over) {
                (true, _) if self.session.is_leaving() => return Ok(Over::Left),
                (true, _) => return Ok(Over::Memory),
                (_, true) => return Ok(Over::Target),
                _ => {}
            }
        }
    }

    fn standing(&self, hosted: &Hosted) -> Result<proto::Standing, Lost> {
        match self.ask(hosted, Ask::Glance, &[])? {
            Reply::Standing(standing) => {
                hosted.heard(&standing);
                Ok(standing)
            }
            _ => Err(Lost(NO_REPLY.to_owned())),
        }
    }

    fn snapshot(&self, hosted: &Hosted) -> Result<Frame, Lost> {
        let file = Sealed::blank().map_err(|error| Lost(format!("no file for it: {error}")))?;
        match self.ask(hosted, Ask::Snapshot, &[file.as_fd()])? {
            Reply::Snapshot(figures) => {
                let lost = |why: String| Lost(format!("its snapshot is none: {}", cut(&why)));
                let figures = serde_json::from_slice(&figures);
                let figures = figures.map_err(|error| lost(error.to_string()))?;
                let event = Sealed::seal(file).map_err(|error| lost(error.to_string()))?;
                Ok(Frame::made(event, figures))
            }
            _ => Err(Lost(NO_REPLY.to_owned())),
        }
    }

    /// The worker's reply. It is told meanwhile if the session is to end, and given up where it does not reply at all.
    fn ask(&self, hosted: &Hosted, ask: Ask, beside: &[BorrowedFd<'_>]) -> Result<Reply, Lost> {
        let lost = |errno: Errno| match errno {
            Errno::PIPE | Errno::CONNRESET => Lost("it is gone".to_owned()),
            errno => Lost(errno.to_string()),
        };
        let connection = hosted.connection();
        connection.put(&ask, beside).map_err(lost)?;
        let began = Instant::now();
        let patience = if ask == Ask::Attach { OPENING_PATIENCE } else { PATIENCE };
        let mut told = None;
        while !connection.is_ready_within(LOOK).map_err(lost)? {
            let is_hurried = self.session.is_hurried.load(Ordering::Acquire);
            let is_given_up = self.session.is_given_up.load(Ordering::Acquire);
            let flag = match (is_hurried, self.is_to_leave() || is_given_up) {
                (true, _) => Some(Flag::Hurry),
                (false, true) => Some(Flag::Leave),
                (false, false) => None,
            };
            if let Some(flag) = flag.filter(|_| flag != told) {
                hosted.flag(flag);
                told = Some(flag);
            }
            if began.elapsed() >= patience {
                hosted.give_up();
                return Err(Lost("it does not answer".to_owned()));
            }
        }
        let gone = || Lost("it is gone".to_owned());
        connection.receive_alone().map_err(lost)?.ok_or_else(gone)
    }

    /// Reason for which a process of the target is not its user's any more.
    fn foreign(&self) -> Option<String> {
        self.processes.iter().find_map(|process| match process.standing() {
            Standing::OfOthers(why) | Standing::Foreign(why) => Some(why),
            Standing::Own | Standing::Gone => None,
        })
    }
}

/// Kind of a failure that has the exit code `code`.
const fn code_of(code: u8) -> ErrorCode {
    match code {
        exit::USAGE => ErrorCode::BadRequest,
        exit::UNSUPPORTED => ErrorCode::Unsupported,
        exit::NOT_PERMITTED => ErrorCode::MissingPrivilege,
        _ => ErrorCode::NotAttached,
    }
}

/// Time after which what is wrong may be otherwise; `None`: never.
const fn retry(code: ErrorCode) -> Option<Duration> {
    match code {
        ErrorCode::BadRequest => None,
        ErrorCode::Unsupported | ErrorCode::MissingPrivilege => Some(SLOW_RETRY),
        _ => Some(RETRY),
    }
}

/// The worker is gone, or does not do what it should: why.
struct Lost(String);

/// Reason for which a session was not attached.
enum Unattached {
    /// It cannot be.
    Error(ErrorCode, String),
    /// Its worker was lost.
    Lost(String),
    /// It may not be.
    Refused(String),
    /// There is no memory for it now.
    Short,
}

impl From<Lost> for Unattached {
    fn from(Lost(why): Lost) -> Self {
        Self::Lost(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_here_is_told_by_its_kind() {
        assert_eq!(code_of(exit::NOT_PERMITTED), ErrorCode::MissingPrivilege);
        assert_eq!(code_of(exit::UNSUPPORTED), ErrorCode::Unsupported);
        assert_eq!(code_of(exit::FAILED), ErrorCode::NotAttached);
        assert_eq!(retry(code_of(exit::USAGE)), None);
        assert_eq!(retry(ErrorCode::NotAttached), Some(RETRY));
    }
}
