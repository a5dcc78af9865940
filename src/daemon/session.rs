//! One session of the daemon: what is known of it, and what it may be asked for.

mod audience;
pub(crate) mod authority;
pub(crate) mod frame;
mod keeper;
mod memory_share;
pub(crate) mod own_work;
mod owner;
pub(crate) mod roster;
pub(crate) mod sealed;
pub(crate) mod spec;
pub(crate) mod staff;
mod worker_log;

use crate::broker::wire::Connection;
use crate::config::LiveOptions;
use crate::daemon::client::peer::Rank;
use crate::lock::lock;
use crate::ownership::OwnProcess;
use audience::Audience;
use crossbeam_channel::{Receiver, Sender, bounded};
use dataspace_collector::target::TargetSpec;
use dataspace_proto::api::{ErrorCode, Origin, SessionLine, SessionSpec, SessionState};
use dataspace_proto::worker::{Figures, MAX_MADE_BYTES, Reply, Wish};
use frame::Frame;
use keeper::Keeper;
use own_work::OwnWork;
pub(crate) use owner::Owner;
use sealed::Sealed;
use staff::Staff;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Time that nobody need look at a session that ends unwatched: a client that polls, or connects again, may take
/// so long.
const UNWATCHED_TIME: Duration = Duration::from_secs(10);

/// Time that events may take to be opened before that is told: processes that do not answer are waited for no
/// longer than half of it.
const MAX_OPENING: Duration = Duration::from_secs(20);

/// Snapshots that slow clients hold at most before there is another: they take memory of the worker that its own bound
/// does not see.
const MAX_HELD_BYTES: u64 = 3 * MAX_MADE_BYTES;

/// Time that a fresh snapshot is waited for, before the one before is given.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time that a worker may take to make something of a snapshot.
const MAKING: Duration = Duration::from_secs(30);

/// The way to a worker that makes what clients wish for.
#[derive(Debug)]
struct Wished {
    connection: Connection,
    /// Replies that were waited for no longer, and are still to come.
    n_late: usize,
}

/// State of a session, and its reason.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    pub(crate) state: SessionState,
    pub(crate) detail: Option<String>,
    /// Kind of the failure, where it is one.
    pub(crate) code: Option<ErrorCode>,
    target: String,
    events: Vec<String>,
    n_attached: u64,
    /// Its thread has returned: it takes no rings, descriptors or threads any more.
    pub(crate) has_returned: bool,
}

impl Status {
    /// Tells whether nothing will change any more.
    pub(crate) const fn is_over(&self) -> bool {
        use SessionState::{Detached, Ended, Failed};
        matches!(self.state, Ended | Failed | Detached)
    }
}

/// A session, as whoever answers clients knows it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: u64,
    pub(crate) spec: SessionSpec,
    pub(crate) owner: Owner,
    status: watch::Sender<Status>,
    frames: watch::Sender<Option<Arc<Frame>>>,
    /// Wakes the thread: for a fresh snapshot, or to leave.
    wake: Sender<()>,
    is_leaving: AtomicBool,
    /// It is to be given up for want of memory.
    is_given_up: AtomicBool,
    /// The daemon ends: it is to leave soon, also if it is leaving already.
    is_hurried: Arc<AtomicBool>,
    began: Instant,
    /// Time of the last heartbeat that was seen, or when nothing was attached; since `began`.
    heard_ms: AtomicU64,
    /// The beat that was seen then.
    beat: AtomicU64,
    /// Since when its events are being opened.
    opening_since: Mutex<Option<Instant>>,
    /// Since when it is to give its memory back.
    going_since: Mutex<Option<Instant>>,
    course: Course,
    audience: Audience,
    /// Snapshots that clients may still be taking, and their lengths.
    held: Mutex<Vec<(Weak<File>, u64)>>,
    /// The connection for what takes its worker long to make.
    wished: Mutex<Option<Wished>>,
}

/// A client that looks at a session, until it is dropped.
#[derive(Debug)]
pub(crate) struct Watching(Arc<Session>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.audience.leave();
    }
}

/// The way a session begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// It ends with its target, or when it is asked to.
    Usual,
    /// The same, or when nobody has looked at it for [`UNWATCHED_TIME`].
    WhileWatched,
    /// It is the daemon's own: it does what that is for, and answers questions after its target's end.
    Own,
}

/// Request for a session, with all that it is begun with.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) id: u64,
    pub(crate) spec: SessionSpec,
    pub(crate) owner: Owner,
    pub(crate) options: LiveOptions,
    /// The processes, where it is for a user who may see only his own.
    pub(crate) processes: Vec<OwnProcess>,
    /// The way it begins and ends.
    pub(crate) course: Course,
    pub(crate) staff: Arc<Staff>,
}

impl Session {
    /// Begins a session on a thread of its own, which attaches it.
    ///
    /// # Errors
    /// Where there is no thread.
    pub(crate) fn begin(beginning: Beginning) -> std::io::Result<Arc<Self>> {
        let Beginning { id, spec, owner, options, processes, course, staff } = beginning;
        let own_work = staff.own_work().filter(|_| course == Course::Own);
        let target = own_work.and_then(OwnWork::description);
        let target = target.unwrap_or_else(|| spec::describe(&options));
        let (mut session, woken) = Self::new(id, spec, owner, target);
        session.course = course;
        let session = Arc::new(session);
        let has_more =
            matches!(options.target, TargetSpec::Unit(_) | TargetSpec::Cgroup(_) | TargetSpec::All);
        let comes_back = has_more && !own_work.is_some_and(OwnWork::is_done_once);
        let keeper =
            Keeper { session: session.clone(), options, staff, processes, woken, comes_back };
        std::thread::Builder::new().name(format!("session {id}")).spawn(move || {
            let session = keeper.session.clone();
            if catch_unwind(AssertUnwindSafe(|| keeper.run())).is_err() {
                let why = "its thread failed: see the log".to_owned();
                session.is_now(SessionState::Failed, Some(why), Some(ErrorCode::NotAttached));
            }
            drop(keeper);
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
            is_given_up: AtomicBool::new(false),
            is_hurried: Arc::default(),
            began: Instant::now(),
            heard_ms: AtomicU64::new(0),
            beat: AtomicU64::new(0),
            opening_since: Mutex::default(),
            going_since: Mutex::default(),
            course: Course::Usual,
            audience: Audience::new(),
            held: Mutex::default(),
            wished: Mutex::default(),
        };
        (session, woken)
    }

    /// A session without a thread.
    #[cfg(test)]
    pub(crate) fn idle(id: u64, name: Option<&str>, owner: Owner) -> Arc<Self> {
        let spec = SessionSpec { name: name.map(str::to_owned), ..SessionSpec::default() };
        Arc::new(Self::new(id, spec, owner, String::new()).0)
    }

    #[cfg(test)]
    pub(crate) fn samples_now(&self) {
        self.is_now(SessionState::Attached, None, None);
    }

    /// As if it had been asked to end so long ago.
    #[cfg(test)]
    pub(crate) fn has_gone_for(&self, time: Duration) {
        *lock(&self.going_since) = Some(Instant::now().checked_sub(time).unwrap());
    }

    /// Its state.
    pub(crate) fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// As lists have it.
    pub(crate) fn line(&self) -> SessionLine {
        let Status { state, mut detail, target, events, n_attached, .. } = self.status();
        if let Some(time) = self.is_opening_long() {
            let seconds = time.as_secs();
            detail = Some(format!(
                "its events are being opened for {seconds} s: the kernel or processes of its target keep \
                 it waiting"
            ));
        }
        let Owner { origin, uid, .. } = self.owner;
        let (id, name) = (self.id, self.spec.name.clone());
        SessionLine { id, name, origin, uid, state, detail, target, events, n_attached }
    }

    /// Changes of [`Self::status`].
    pub(crate) fn watch_status(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    /// Somebody looks at it, once.
    pub(crate) fn looked_at(&self) {
        self.audience.looked();
    }

    /// Somebody looks at it for as long as there is what this gives.
    pub(crate) fn watched(self: &Arc<Self>) -> Watching {
        self.audience.join();
        Watching(self.clone())
    }

    /// Tells whether it is to end because nobody looks at it any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.course == Course::WhileWatched && self.audience.is_away_for(UNWATCHED_TIME)
    }

    /// The newest snapshot: a fresh one, unless there is one younger than `young`, or none can be made, or making it takes
    /// longer than [`PATIENCE`]. Several that ask at once get the same.
    pub(crate) async fn renewed(&self, young: Duration) -> Option<Arc<Frame>> {
        let mut frames = self.frames.subscribe();
        let newest = frames.borrow_and_update().clone();
        let is_young = newest.is_some_and(|frame| frame.made.elapsed() < young);
        if !is_young && self.status.borrow().state == SessionState::Attached {
            let _ = self.wake.try_send(());
            let _ = tokio::time::timeout(PATIENCE, frames.changed()).await;
        }
        self.newest()
    }

    /// Tells whether clients that are slow hold so much of what its worker made that no more is to be.
    fn is_held_up(&self) -> bool {
        let mut held = lock(&self.held);
        held.retain(|(file, _)| file.strong_count() > 0);
        held.iter().map(|(_, n_bytes)| n_bytes).sum::<u64>() > MAX_HELD_BYTES
    }

    fn publish(&self, frame: Arc<Frame>) {
        self.status.send_if_modified(|status| {
            let Figures { target, events, .. } = &frame.figures;
            let is_news = (&status.target, &status.events) != (target, events);
            if is_news {
                status.target.clone_from(target);
                status.events.clone_from(events);
            }
            is_news
        });
        lock(&self.held).push((frame.event.whole(), frame.event.len()));
        self.frames.send_replace(Some(frame));
    }

    /// The newest snapshot.
    pub(crate) fn newest(&self) -> Option<Arc<Frame>> {
        self.frames.borrow().clone()
    }

    /// It has a worker, which makes what clients wish for when it is asked at `wished`.
    fn is_hosted(&self, wished: Connection) {
        *lock(&self.wished) = Some(Wished { connection: wished, n_late: 0 });
    }

    /// Something that takes its worker long to make, of the newest snapshot; `None` where there is no such thing.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub(crate) fn made(&self, wish: Wish) -> io::Result<Option<Sealed>> {
        let mut wished = lock(&self.wished);
        let Wished { connection, n_late } = wished.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        // What was too late is no answer to this wish.
        while *n_late > 0 {
            if !connection.is_ready_within(Duration::ZERO)? {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let _ = connection.receive_alone::<Reply>()?;
            *n_late -= 1;
        }
        let file = Sealed::blank()?;
        if let Err(errno) = connection.put(&wish, &[file.as_fd()]) {
            *wished = None;
            return Err(errno.into());
        }
        if !connection.is_ready_within(MAKING)? {
            *n_late += 1;
            return Err(io::ErrorKind::TimedOut.into());
        }
        match connection.receive_alone()? {
            Some(Reply::Made) => Sealed::seal(file).map(Some),
            Some(Reply::Absent) => Ok(None),
            Some(Reply::Refused(why)) => Err(io::Error::new(io::ErrorKind::InvalidInput, why)),
            Some(Reply::Failed(_)) => Err(io::Error::other("its worker cannot")),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Its events are to be opened now.
    fn begins_to_open(&self) {
        let mut going_since = lock(&self.going_since);
        self.is_given_up.store(false, Ordering::Release);
        if !self.is_leaving() {
            *going_since = None;
        }
        drop(going_since);
        *lock(&self.opening_since) = Some(Instant::now());
    }

    /// They are open, or cannot be.
    fn has_opened(&self) {
        *lock(&self.opening_since) = None;
    }

    /// For how long its events have been opened, if that takes suspiciously long.
    pub(crate) fn is_opening_long(&self) -> Option<Duration> {
        let time = lock(&self.opening_since).map(|since| since.elapsed());
        time.filter(|&time| time > MAX_OPENING)
    }

    /// Asks it to end. It does so in its own time: see [`Self::watch_status`].
    pub(crate) fn leave(&self) {
        self.is_leaving.store(true, Ordering::Release);
        lock(&self.going_since).get_or_insert_with(Instant::now);
        let _ = self.wake.try_send(());
    }

    /// The same, and not to wait for what is still being read.
    pub(crate) fn leave_soon(&self) {
        self.is_hurried.store(true, Ordering::Release);
        self.leave();
    }

    /// Has it give its memory up: it ends, or waits if it is one of the configuration.
    pub(crate) fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Release);
        lock(&self.going_since).get_or_insert_with(Instant::now);
        let _ = self.wake.try_send(());
    }

    /// Tells whether it samples, or is about to, and is to go on.
    pub(crate) fn is_sampling(&self) -> bool {
        use SessionState::{Attached, Starting};
        matches!(self.status.borrow().state, Attached | Starting) && !self.is_going()
    }

    /// Time since it was to give its memory back, if it is.
    pub(crate) fn frees_memory_for(&self, now: Instant) -> Option<Duration> {
        let status = self.status.borrow();
        let frees = !status.has_returned && status.state != SessionState::Waiting;
        let since = lock(&self.going_since).filter(|_| frees && self.is_going())?;
        Some(now.saturating_duration_since(since))
    }

    fn is_going(&self) -> bool {
        self.is_leaving() || self.is_given_up.load(Ordering::Acquire)
    }

    /// The user whose worker does it; `None`: the one of those who see all.
    pub(crate) fn worker_user(&self) -> Option<u32> {
        (self.owner.rank == Rank::User).then_some(self.owner.uid)
    }

    /// Tells whether it was asked to end: whoever asks for sessions sees it no more.
    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Acquire)
    }

    pub(crate) fn has_returned_now(&self) {
        self.status.send_modify(|status| status.has_returned = true);
    }

    /// Tells whether nothing is left of it but its totals.
    pub(crate) fn has_returned(&self) -> bool {
        self.status.borrow().has_returned
    }

    /// Tells whether it is one of the configuration, which are the daemon's own duty.
    pub(crate) fn is_configured(&self) -> bool {
        self.owner.origin == Origin::Configuration
    }

    /// Time since its last heartbeat: reader, analyzer or snapshots stand still. Where nothing is
    /// attached there is none: opening events may take long.
    pub(crate) fn silent_for(&self) -> Duration {
        if self.status.borrow().state != SessionState::Attached {
            return Duration::ZERO;
        }
        let heard = Duration::from_millis(self.heard_ms.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(heard)
    }

    fn is_now(&self, state: SessionState, detail: Option<String>, code: Option<ErrorCode>) {
        // What there is none of is no field.
        let (name, why) = (self.spec.name.as_deref(), detail.as_deref());
        // The same again is no news: a unit that does not run is looked for each second.
        let is_news = self.status.borrow().state != state;
        // Whoever waits for the first of its own says it himself.
        let is_told = self.course == Course::Own && self.status.borrow().n_attached == 0;
        if is_news && state == SessionState::Failed && !is_told {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_fresh_snapshot_is_waited_for_where_one_can_be_made() {
        let spec = SessionSpec::default();
        let (session, woken) = Session::new(1, spec, Owner::configuration(), String::new());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let renewed = |young| runtime.block_on(session.renewed(young)).map(|frame| frame.made);
        assert_eq!((renewed(Duration::ZERO), woken.len()), (None, 0), "not attached");
        session.is_now(SessionState::Attached, None, None);
        let publish = || {
            let frame = Frame::of(crate::worker::figures_of(&fixture::findings()));
            session.publish(Arc::new(frame));
            session.newest().unwrap().made
        };
        let first = publish();
        let hour = Duration::from_secs(3600);
        assert_eq!((renewed(hour), woken.len()), (Some(first), 0), "it is young enough");
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| {
                woken.recv().unwrap();
                publish()
            });
            let newest = renewed(Duration::ZERO);
            assert_eq!(newest, Some(asked.join().unwrap()));
        });
    }

    #[test]
    fn events_that_are_opened_for_long_are_told_of() {
        let session = Session::idle(1, None, Owner::configuration());
        session.begins_to_open();
        assert_eq!((session.is_opening_long(), session.line().detail), (None, None));
        *lock(&session.opening_since) = Instant::now().checked_sub(2 * MAX_OPENING);
        assert!(session.is_opening_long() >= Some(2 * MAX_OPENING));
        let detail = session.line().detail.unwrap();
        assert!(detail.starts_with("its events are being opened for 40 s"), "{detail}");
        session.has_opened();
        assert_eq!((session.is_opening_long(), session.line().detail), (None, None));
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
