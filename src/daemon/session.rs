//! One session of the daemon: what is known of it, and the thread that keeps it attached.

use super::frame::Frame;
use super::peer::{Peer, Rank};
use super::refusal_log::REFUSALS;
use crate::config::{LiveOptions, LiveTarget};
use crate::exit;
use crate::ownership::{OwnProcess, Standing};
use crate::session::{self, Source};
use crossbeam_channel::{Receiver, Sender, bounded};
use dataspace_collector::memory;
use dataspace_proto::api::{ErrorCode, Origin, SessionLine, SessionSpec, SessionState};
use dataspace_proto::snapshot::Snapshot;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long the end of a target, or of its belonging to its user, may go unnoticed.
const GLANCE: Duration = Duration::from_millis(250);

/// How long a target that is not there is not looked for.
const RETRY: Duration = Duration::from_secs(1);

/// The same where a privilege or the machine is in the way: that changes seldom.
const SLOW_RETRY: Duration = Duration::from_secs(30);

/// A snapshot that nobody asked for is made so often, to see that the analyzer answers.
const BEAT: Duration = Duration::from_secs(5);

/// Time between two snapshots at least: making one takes the analyzer's time.
const MIN_SPACING: Duration = Duration::from_millis(50);

/// Objects that a snapshot lists at most unless the session says otherwise: some 10 MB of JSON with
/// names of usual length.
const MAX_OBJECTS: usize = 10_000;

/// Whose a session is, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) origin: Origin,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// What he might see when it began: with that it samples, whatever he may see later.
    pub(super) rank: Rank,
}

impl Owner {
    /// Who asks for a session.
    pub(super) const fn requesting(peer: &Peer) -> Self {
        Self { origin: Origin::Request, uid: peer.uid, gid: peer.gid, rank: peer.rank }
    }

    /// The daemon itself, by its configuration.
    pub(super) fn configuration() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        Self { origin: Origin::Configuration, uid, gid, rank: Rank::Privileged }
    }
}

/// How a session stands, and why.
#[derive(Clone, Debug)]
pub(super) struct Status {
    pub(super) state: SessionState,
    pub(super) detail: Option<String>,
    /// What kind of failure it is, where it is one.
    pub(super) code: Option<ErrorCode>,
    target: String,
    events: Vec<String>,
    n_attached: u64,
    /// Its thread has returned: it takes no rings, descriptors or threads any more.
    pub(super) has_returned: bool,
}

impl Status {
    /// Whether nothing will change any more.
    pub(super) const fn is_over(&self) -> bool {
        use SessionState::{Detached, Ended, Failed};
        matches!(self.state, Ended | Failed | Detached)
    }
}

/// A session, as whoever answers clients knows it.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: u64,
    pub(super) spec: SessionSpec,
    pub(super) owner: Owner,
    status: watch::Sender<Status>,
    frames: watch::Sender<Option<Arc<Frame>>>,
    /// Wakes the thread: for a fresh snapshot, or to leave.
    wake: Sender<()>,
    is_leaving: AtomicBool,
    /// The daemon ends: it is to leave soon, also if it is leaving already.
    is_hurried: Arc<AtomicBool>,
    began: Instant,
    /// When its heart was last seen to beat, or nothing was attached; since `began`.
    heard_ms: AtomicU64,
    /// The beat that was seen then.
    beat: AtomicU64,
}

/// What a session is begun with.
#[derive(Debug)]
pub(super) struct Beginning {
    pub(super) id: u64,
    pub(super) spec: SessionSpec,
    pub(super) owner: Owner,
    pub(super) options: LiveOptions,
    /// Where it is for a user who may see only his own processes: these.
    pub(super) processes: Vec<OwnProcess>,
}

impl Session {
    /// Begins a session on a thread of its own, which attaches it.
    ///
    /// # Errors
    /// Where there is no thread.
    pub(super) fn begin(beginning: Beginning) -> std::io::Result<Arc<Self>> {
        let Beginning { id, spec, owner, options, processes } = beginning;
        let (session, woken) = Self::new(id, spec, owner, describe(&options));
        let session = Arc::new(session);
        let comes_back =
            matches!(options.target, LiveTarget::Unit(_) | LiveTarget::Cgroup(_) | LiveTarget::All);
        let keeper = Keeper { session: session.clone(), options, processes, woken, comes_back };
        std::thread::Builder::new().name(format!("session {id}")).spawn(move || {
            let session = keeper.session.clone();
            if catch_unwind(AssertUnwindSafe(|| keeper.run())).is_err() {
                let why = "its thread failed: see the log".to_owned();
                session.is_now(SessionState::Failed, Some(why), Some(ErrorCode::NotAttached));
            }
            drop(keeper);
            // What its threads had allocated is in heaps that other sessions may never use.
            memory::give_back();
            session.has_returned_now();
        })?;
        Ok(session)
    }

    /// A session whose thread has not begun, and what wakes that.
    fn new(id: u64, spec: SessionSpec, owner: Owner, target: String) -> (Self, Receiver<()>) {
        let (wake, woken) = bounded(1);
        let (status, _) = watch::channel(Status {
            state: SessionState::Starting,
            detail: None,
            code: None,
            target,
            events: Vec::new(),
            n_attached: 0,
            has_returned: false,
        });
        let (frames, _) = watch::channel(None);
        let session = Self {
            id,
            spec,
            owner,
            status,
            frames,
            wake,
            is_leaving: AtomicBool::new(false),
            is_hurried: Arc::default(),
            began: Instant::now(),
            heard_ms: AtomicU64::new(0),
            beat: AtomicU64::new(0),
        };
        (session, woken)
    }

    /// A session without a thread.
    #[cfg(test)]
    pub(super) fn idle(id: u64, name: Option<&str>, owner: Owner) -> Arc<Self> {
        let spec = SessionSpec { name: name.map(str::to_owned), ..SessionSpec::default() };
        Arc::new(Self::new(id, spec, owner, String::new()).0)
    }

    /// How it stands.
    pub(super) fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// As lists have it.
    pub(super) fn line(&self) -> SessionLine {
        let Status { state, detail, target, events, n_attached, .. } = self.status();
        let Owner { origin, uid, .. } = self.owner;
        let (id, name) = (self.id, self.spec.name.clone());
        SessionLine { id, name, origin, uid, state, detail, target, events, n_attached }
    }

    /// Changes of [`Self::status`].
    pub(super) fn watch_status(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    /// The newest snapshot, and those that come.
    pub(super) fn watch_frames(&self) -> watch::Receiver<Option<Arc<Frame>>> {
        self.frames.subscribe()
    }

    /// Asks for a fresh snapshot; several that ask at once get the same.
    pub(super) fn wish(&self) {
        let _ = self.wake.try_send(());
    }

    /// Asks it to end. It does so in its own time: see [`Self::watch_status`].
    pub(super) fn leave(&self) {
        self.is_leaving.store(true, Ordering::Release);
        let _ = self.wake.try_send(());
    }

    /// The same, and not to wait for what is still being read.
    pub(super) fn leave_soon(&self) {
        self.is_hurried.store(true, Ordering::Release);
        self.leave();
    }

    /// Whether it was asked to end: whoever asks for sessions sees it no more.
    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Acquire)
    }

    pub(super) fn has_returned_now(&self) {
        self.status.send_modify(|status| status.has_returned = true);
    }

    /// Whether nothing is left of it but its totals.
    pub(super) fn has_returned(&self) -> bool {
        self.status.borrow().has_returned
    }

    /// Whether it is one of the configuration, which are the daemon's own duty.
    pub(super) fn is_configured(&self) -> bool {
        self.owner.origin == Origin::Configuration
    }

    /// How long its heart has not beaten: reader, analyzer or snapshots stand still. Where nothing is
    /// attached there is none: opening events may take long.
    pub(super) fn silent_for(&self) -> Duration {
        if self.status.borrow().state != SessionState::Attached {
            return Duration::ZERO;
        }
        let heard = Duration::from_millis(self.heard_ms.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(heard)
    }

    fn is_now(&self, state: SessionState, detail: Option<String>, code: Option<ErrorCode>) {
        let name = self.spec.name.as_deref().unwrap_or_default();
        let why = detail.as_deref().unwrap_or_default();
        // The same again is no news: a unit that does not run is looked for each second.
        let is_news = self.status.borrow().state != state;
        if is_news && state == SessionState::Failed {
            tracing::warn!(session = self.id, name, why, "{}", state.name());
        } else if is_news {
            tracing::info!(session = self.id, name, why, "{}", state.name());
        }
        self.status.send_modify(|status| {
            status.state = state;
            status.detail = detail;
            status.code = code;
        });
    }

    /// Takes note of a heartbeat, which is none if it is the one before.
    fn feel(&self, beat: u64) {
        if self.beat.swap(beat, Ordering::Relaxed) != beat {
            self.heard();
        }
    }

    fn heard(&self) {
        let since = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard_ms.store(since, Ordering::Relaxed);
    }
}

/// What is asked for, for a person, as long as nothing of it was found.
fn describe(options: &LiveOptions) -> String {
    let numbers = |ids: &[i32]| ids.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
    match &options.target {
        LiveTarget::Processes(pids) => format!("process {}", numbers(pids)),
        LiveTarget::Threads(tids) => format!("thread {}", numbers(tids)),
        LiveTarget::Unit(name) => format!("unit {name}"),
        LiveTarget::Cgroup(path) => format!("cgroup {}", path.display()),
        LiveTarget::All if options.comms.include.is_empty() => "the whole system".to_owned(),
        LiveTarget::All => {
            let names = options.comms.include.iter().map(|name| String::from_utf8_lossy(name));
            format!("processes called {}", names.collect::<Vec<_>>().join(", "))
        }
        LiveTarget::Command(_) => "a command".to_owned(),
    }
}

/// The thread of a session: attaches, attaches again, publishes snapshots.
struct Keeper {
    session: Arc<Session>,
    options: LiveOptions,
    processes: Vec<OwnProcess>,
    woken: Receiver<()>,
    /// Its target may end and be there again, as a unit that is restarted.
    comes_back: bool,
}

/// Why an attached session is followed no longer.
enum Over {
    /// It was asked to end.
    Left,
    /// Its target has ended.
    Target,
    /// Its target does not belong to its user any more.
    Refused(String),
}

impl Keeper {
    fn run(&self) {
        use SessionState::{Detached, Ended, Failed, Waiting};
        let session = &self.session;
        loop {
            let retry = match self.attach() {
                Ok(source) => match self.follow(&*source) {
                    Over::Left => return session.is_now(Detached, None, None),
                    Over::Refused(why) => return self.refused(why),
                    Over::Target if !self.comes_back => return session.is_now(Ended, None, None),
                    Over::Target => {
                        session.is_now(Waiting, Some("its target has ended".into()), None);
                        RETRY
                    }
                },
                Err(Unattached::Refused(why)) => return self.refused(why),
                Err(Unattached::Error(error)) => {
                    let (code, retry) = kind_of(&error);
                    let why = Some(format!("{error:#}"));
                    match retry.filter(|_| self.comes_back) {
                        Some(retry) => {
                            session.is_now(Waiting, why, Some(code));
                            retry
                        }
                        None => return session.is_now(Failed, why, Some(code)),
                    }
                }
            };
            if self.is_asked_to_leave_within(retry) {
                return session.is_now(Detached, None, None);
            }
        }
    }

    fn refused(&self, why: String) {
        let Owner { uid, .. } = self.session.owner;
        if REFUSALS.admits(uid) {
            tracing::warn!(session = self.session.id, uid, reason = why, "refused");
        }
        self.session.is_now(SessionState::Failed, Some(why), Some(ErrorCode::NotPermitted));
    }

    /// Waits, and wakes early only to leave.
    fn is_asked_to_leave_within(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        while !self.session.is_leaving.load(Ordering::Acquire) {
            self.session.heard();
            let next = deadline.min(Instant::now() + BEAT);
            if self.woken.recv_deadline(next).is_err() && deadline <= Instant::now() {
                return false;
            }
        }
        true
    }

    fn attach(&self) -> Result<Box<dyn Source>, Unattached> {
        let is_hurried = Arc::clone(&self.session.is_hurried);
        let source = session::start_live_hurried_by(&self.options, is_hurried);
        let source = source.map_err(Unattached::Error)?;
        // Events are opened by number: only if each process still is the one that was looked at,
        // and has not ended, was it that one all the time.
        for process in &self.processes {
            let unattached = match process.standing() {
                Standing::Own => continue,
                Standing::Foreign(why) => Unattached::Refused(why),
                Standing::Gone => Unattached::Error(anyhow::anyhow!("the process has ended")),
            };
            source.stop();
            return Err(unattached);
        }
        let snapshot = source.snapshot();
        self.session.status.send_modify(|status| {
            status.n_attached += 1;
            status.target.clone_from(&snapshot.target.description);
            status.events = snapshot.events.iter().map(|event| event.name.clone()).collect();
        });
        self.publish(snapshot);
        self.session.beat.store(source.heartbeat(), Ordering::Relaxed);
        self.session.heard();
        self.session.is_now(SessionState::Attached, None, None);
        Ok(source)
    }

    fn follow(&self, source: &dyn Source) -> Over {
        let mut published = Instant::now();
        loop {
            let is_wished = self.woken.recv_timeout(GLANCE).is_ok();
            let is_leaving = self.session.is_leaving.load(Ordering::Acquire);
            if is_leaving {
                source.stop();
            } else if is_wished {
                std::thread::sleep(MIN_SPACING.saturating_sub(published.elapsed()));
            }
            let is_over = source.is_finished();
            let is_due = is_wished || is_leaving || is_over || published.elapsed() >= BEAT;
            let snapshot = is_due.then(|| source.snapshot());
            // Behind the snapshot, so that what is in it was seen while the processes were his.
            if let Some(why) = self.foreign() {
                source.stop();
                return Over::Refused(why);
            }
            if let Some(snapshot) = snapshot {
                self.publish(snapshot);
                self.session.feel(source.heartbeat());
                published = Instant::now();
            }
            match (is_leaving, is_over) {
                (true, _) => return Over::Left,
                (_, true) => return Over::Target,
                _ => {}
            }
        }
    }

    /// Why a process of the target is not its user's any more.
    fn foreign(&self) -> Option<String> {
        self.processes.iter().find_map(|process| match process.standing() {
            Standing::Foreign(why) => Some(why),
            Standing::Own | Standing::Gone => None,
        })
    }

    fn publish(&self, snapshot: Arc<Snapshot>) {
        let frames = &self.session.frames;
        let max_objects = self.session.spec.max_objects.unwrap_or(MAX_OBJECTS);
        let frame = Arc::new(Frame::new(snapshot, max_objects, self.session.owner));
        if frames.receiver_count() > 0 {
            // Here rather than on the thread that answers clients.
            frame.event();
        }
        frames.send_replace(Some(frame));
    }
}

/// What kind of failure `error` is, and when it may be another; `None`: never.
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

    #[test]
    fn a_heart_that_stands_still_is_noticed() {
        let session = Session::idle(1, None, Owner::configuration());
        assert_eq!(session.silent_for(), Duration::ZERO, "nothing is attached");
        session.is_now(SessionState::Attached, None, None);
        session.feel(7);
        // Snapshots come, and the beat in them is the same.
        let silent = loop {
            session.feel(7);
            let silent = session.silent_for();
            if silent >= Duration::from_millis(5) {
                break silent;
            }
        };
        let heard = session.heard_ms.load(Ordering::Relaxed);
        session.feel(8);
        assert!(session.heard_ms.load(Ordering::Relaxed) >= heard + silent.as_millis() as u64);
    }
}
