//! The daemon's sessions: begun, found, ended, and brought in line with the configuration.

use super::own_work::OwnWork;
use super::spec;
use super::spec::Planned;
use super::staff::{Shortage, Staff};
use super::{Beginning, Course, Owner, Session, Status};
use crate::daemon::client::pace::Pace;
use crate::daemon::client::peer::{Peer, Rank};
use crate::daemon::limit::Limits;
use crate::lock::lock;
use crate::memory_bound::MemoryState;
use dataspace_proto::api::{ApiError, ErrorCode, Origin, SessionSpec, SessionState};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Time that an attach request waits for its events to be opened.
const ATTACH_TIME: Duration = Duration::from_secs(10);

/// Time after which an attach request is refused, whatever for: it would tell whether there is such a process.
const REFUSAL_TIME: Duration = Duration::from_millis(5);

/// Time that a detach request waits for the final totals: the analyzer takes up to three seconds for
/// debug information that is still being read.
const DETACH_TIME: Duration = Duration::from_secs(6);

/// So long the memory is waited for that a session gives back which is about to end, before another one is
/// given up: totals are made within three seconds.
const FREEING_TIME: Duration = Duration::from_secs(5);

/// All sessions. One that was asked to end is not shown any more, but counts until its thread has
/// returned: else who begins and ends sessions in turn would have any number that are about to end.
#[derive(Debug)]
pub(crate) struct Roster {
    state: Mutex<RosterState>,
    staff: Arc<Staff>,
}

#[derive(Debug, Default)]
struct RosterState {
    sessions: BTreeMap<u64, Arc<Session>>,
    last_id: u64,
    limits: Limits,
    pace: Pace,
    is_ending: bool,
    /// Since when there was always one that was about to give its memory back: there may be any number that
    /// begin and end.
    freeing_since: Option<Instant>,
}

impl Roster {
    pub(crate) fn new(limits: Limits, staff: Arc<Staff>) -> Self {
        Self { state: Mutex::new(RosterState { limits, ..RosterState::default() }), staff }
    }

    /// The sessions that `peer` may see, in the order of their numbers.
    pub(crate) fn visible(&self, peer: &Peer) -> Vec<Arc<Session>> {
        self.lock().shown().filter(|session| peer.may_see(session)).cloned().collect()
    }

    /// Those of the configuration.
    pub(crate) fn configured(&self) -> Vec<Arc<Session>> {
        self.lock().shown().filter(|session| session.is_configured()).cloned().collect()
    }

    /// The session with the number or name `key`, if `peer` may see it. To one who may not, it is
    /// as if it were not there.
    ///
    /// # Errors
    /// That there is none.
    pub(crate) fn find(&self, peer: &Peer, key: &str) -> Result<Arc<Session>, ApiError> {
        let number: Option<u64> = key.parse().ok();
        let is_meant = |session: &&Arc<Session>| match number {
            Some(id) => session.id == id,
            None => session.spec.name.as_deref() == Some(key),
        };
        let state = self.lock();
        let mut meant = state.shown().filter(is_meant);
        let absent = || ApiError {
            code: ErrorCode::NotFound,
            message: format!("there is no session {key}"),
        };
        // The configuration may have named one as another was named before it was read again.
        let seen = meant.clone().filter(|session| peer.may_see(session));
        match seen.min_by_key(|session| !session.is_configured()) {
            Some(session) => Ok(session.clone()),
            None if meant.next().is_some() => {
                let _ = peer.refuse("session", format!("session {key} is another's"));
                Err(absent())
            }
            None => Err(absent()),
        }
    }

    /// Begins a session for `peer` and waits until it is attached.
    ///
    /// # Errors
    /// Why it is not to be had.
    pub(crate) async fn attach(
        &self,
        peer: &Peer,
        spec: SessionSpec,
        course: Course,
    ) -> Result<Arc<Session>, ApiError> {
        let bad = |message| ApiError { code: ErrorCode::BadRequest, message };
        if course != Course::Own && self.staff.own_work().is_some_and(OwnWork::is_recording) {
            // Its worker is told of files as a recording names them, and not what a task may read.
            return Err(bad("this page is of a recording: nothing is sampled here".to_owned()));
        }
        let mut options = spec::options(&spec).map_err(bad)?;
        let began = tokio::time::Instant::now();
        let processes = match peer.admit(&mut options) {
            Ok(processes) => processes,
            Err(refused) => {
                tokio::time::sleep_until(began + REFUSAL_TIME).await;
                return Err(refused);
            }
        };
        let owner = Owner::requesting(peer);
        let session = {
            let mut state = self.lock();
            // Of his worker's memory: what another user's takes, or says that it takes, is not his concern.
            let is_short = self.staff.is_short(options.viewer.as_ref());
            check_memory(peer, self.staff.memory(), is_short, state.n_held())?;
            state.make_room(peer)?;
            state.check_name(peer, spec.name.as_deref())?;
            state.check_pace(peer)?;
            state.last_id += 1;
            let id = state.last_id;
            let staff = Arc::clone(&self.staff);
            let beginning = Beginning { id, spec, owner, options, processes, course, staff };
            let session = Session::begin(beginning).map_err(no_thread)?;
            state.sessions.insert(id, session.clone());
            session
        };
        let address = peer.address.map(tracing::field::display);
        tracing::info!(uid = peer.uid, pid = peer.pid, address, session = session.id, "attach");
        let awaited = Awaited(Some(&session));
        let mut status = session.watch_status();
        let is_decided = status.wait_for(|status| status.state != SessionState::Starting);
        match course {
            // Whoever started it can end it, and a pipe may take its time.
            Course::Own => drop(is_decided.await),
            _ => drop(tokio::time::timeout(ATTACH_TIME, is_decided).await),
        }
        let status = session.status();
        if matches!(status.state, SessionState::Attached | SessionState::Ended) {
            awaited.has_come();
            session.looked_at();
            return Ok(session);
        }
        if status.state != SessionState::Starting {
            // It counts until its thread has returned: who tries again at once finds room.
            self.detach(std::slice::from_ref(&session)).await;
        }
        let code = status.code.unwrap_or(ErrorCode::NotAttached);
        let message = status.detail.unwrap_or_else(|| "attaching takes too long".to_owned());
        Err(ApiError { code, message })
    }

    /// Gives up one of the sessions of a worker whose memory is short: the one that is missed least: one that was asked
    /// for by a user, else by one who sees all, else one of the configuration, which only waits; of these the youngest.
    /// One of the configuration stays, and of others the last, unless more memory is taken than should be.
    pub(crate) fn give_up_one(&self, shortage: &Shortage) {
        let session = {
            let mut state = self.lock();
            if state.is_memory_to_come(Instant::now()) {
                return;
            }
            let is_meant = |session: &Session| shortage.sessions.contains(&session.id);
            state.least_missed(shortage.is_above, is_meant).cloned()
        };
        let Some(session) = session else { return };
        let Session { id, spec, .. } = &*session;
        tracing::warn!(session = id, name = spec.name, "memory is short: the session is given up");
        self.staff.session_given_up();
        session.give_up();
    }

    /// Ends `sessions`, which are not shown from now on, and waits until nothing is left of them.
    pub(crate) async fn detach(&self, sessions: &[Arc<Session>]) {
        sessions.iter().for_each(|session| session.leave());
        let _ = wait(sessions, DETACH_TIME, |status| status.has_returned).await;
    }

    /// Brings the sessions of the configuration in line with `planned`: what is new begins, what is
    /// gone ends, what is changed ends and begins anew. One that cannot begin is told of and left.
    pub(crate) async fn follow(&self, planned: &[Planned], limits: Limits) {
        self.lock().limits = limits;
        let is_kept = |session: &Session| planned.iter().any(|plan| plan.spec == session.spec);
        let mut old = self.configured();
        old.retain(|session| !is_kept(session));
        for Session { id, spec, .. } in old.iter().map(|session| &**session) {
            tracing::info!(session = id, name = spec.name, "not configured any more");
        }
        self.detach(&old).await;
        let owner = Owner::configuration();
        for Planned { spec, options } in planned {
            let mut state = self.lock();
            let is_there =
                |session: &Arc<Session>| session.is_configured() && session.spec == *spec;
            if state.shown().any(is_there) {
                continue;
            }
            let name = spec.name.clone().unwrap_or_default();
            // The configuration has no more than the limit allows; what others asked for is beside it.
            state.last_id += 1;
            let id = state.last_id;
            let (spec, options) = (spec.clone(), options.clone());
            let processes = Vec::new();
            let (staff, course) = (Arc::clone(&self.staff), Course::Usual);
            let beginning = Beginning { id, spec, owner, options, processes, course, staff };
            match Session::begin(beginning) {
                Ok(session) => drop(state.sessions.insert(id, session)),
                Err(error) => tracing::error!(name, %error, "no thread for a session"),
            }
        }
    }

    /// Ends all sessions, and lets none begin; gives up waiting for them after `time`.
    pub(crate) async fn end(&self, time: Duration) {
        let sessions = {
            let mut state = self.lock();
            state.is_ending = true;
            state.sessions.values().cloned().collect::<Vec<_>>()
        };
        sessions.iter().for_each(|session| session.leave_soon());
        if !wait(&sessions, time, Status::is_over).await {
            tracing::warn!("some sessions do not end in time: they are left");
        }
    }

    fn lock(&self) -> MutexGuard<'_, RosterState> {
        let mut state = lock(&self.state);
        let is_gone = |session: &Session| session.is_leaving() || session.is_abandoned();
        state.sessions.retain(|_, session| !(session.has_returned() && is_gone(session)));
        state
    }
}

/// Waits until `is_so` of each of `sessions`, for `time` at most. Whether it was.
async fn wait(sessions: &[Arc<Session>], time: Duration, is_so: fn(&Status) -> bool) -> bool {
    let all_are = async {
        for session in sessions {
            let _ = session.watch_status().wait_for(is_so).await;
        }
    };
    tokio::time::timeout(time, all_are).await.is_ok()
}

/// A session that a client waits for: where the client goes away meanwhile, so does the session.
struct Awaited<'a>(Option<&'a Session>);

impl Awaited<'_> {
    /// The client has it.
    fn has_come(mut self) {
        self.0 = None;
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.0 {
            session.leave();
        }
    }
}

impl RosterState {
    /// Those that were not asked to end.
    fn shown(&self) -> impl Iterator<Item = &Arc<Session>> + Clone {
        self.sessions.values().filter(|session| !session.is_leaving())
    }

    /// Number of sessions that take memory, and not only that of their totals.
    fn n_held(&self) -> usize {
        self.sessions.values().filter(|session| !session.has_returned()).count()
    }

    /// Tells whether a session is about to give its memory back, and may be waited for. One that hangs is no reason
    /// to wait, nor not to wait for others.
    fn is_memory_to_come(&mut self, now: Instant) -> bool {
        let mut going = self.sessions.values().filter_map(|session| session.frees_memory_for(now));
        if !going.any(|time| time < FREEING_TIME) {
            self.freeing_since = None;
            return false;
        }
        let since = *self.freeing_since.get_or_insert(now);
        now.saturating_duration_since(since) < FREEING_TIME
    }

    /// The session that is given up next for its memory, if any.
    fn least_missed(
        &self,
        is_above: bool,
        is_meant: impl Fn(&Session) -> bool + Copy,
    ) -> Option<&Arc<Session>> {
        let sampling = self.shown().filter(|session| session.is_sampling() && is_meant(session));
        let is_last = sampling.clone().nth(1).is_none();
        let least = sampling.max_by_key(|session| {
            let Owner { origin, rank, .. } = session.owner;
            (origin == Origin::Request, rank == Rank::User, session.id)
        });
        least.filter(|session| !is_last || (is_above && !session.is_configured()))
    }

    /// Sees to it that `peer` may have one session more: of those that are over and were asked for
    /// by itself, the oldest goes.
    fn make_room(&mut self, peer: &Peer) -> Result<(), ApiError> {
        if self.is_ending {
            return Err(ApiError { code: ErrorCode::Ending, message: "the daemon ends".into() });
        }
        let is_own = |session: &Session| {
            let Owner { origin, uid, rank, .. } = session.owner;
            (origin, uid, rank) == (Origin::Request, peer.uid, peer.rank)
        };
        loop {
            let n_own = self.sessions.values().filter(|session| is_own(session)).count();
            let has_own_left = peer.sees_all() || n_own < self.limits.sessions_per_user;
            let n_for_all = peer.share(self.limits.sessions);
            // Few users are not to keep others out who have none yet.
            let n_for_peer = if n_own == 0 { n_for_all } else { peer.share(n_for_all) };
            if has_own_left && self.sessions.len() < n_for_peer {
                return Ok(());
            }
            let mut own = self.sessions.values().filter(|session| is_own(session));
            let Some(id) = own.find(|session| session.has_returned()).map(|one| one.id) else {
                let message = if has_own_left {
                    format!("the daemon has {} sessions, as many as it may", self.sessions.len())
                } else {
                    format!("you have {n_own} sessions, which is all one user may: detach one")
                };
                return Err(ApiError { code: ErrorCode::TooMany, message });
            };
            self.sessions.remove(&id);
        }
    }

    fn check_pace(&mut self, peer: &Peer) -> Result<(), ApiError> {
        let pace =
            if peer.sees_all() { Ok(()) } else { self.pace.attach(peer.uid, Instant::now()) };
        pace.map_err(|wait| {
            let message = format!("you attach too often: try again in {:.1} s", wait.as_secs_f64());
            ApiError { code: ErrorCode::TooMany, message }
        })
    }

    /// Two sessions of one name could not be told apart by who sees both.
    fn check_name(&self, peer: &Peer, name: Option<&str>) -> Result<(), ApiError> {
        let Some(name) = name else { return Ok(()) };
        if !peer.sees_all() {
            // Whether a name is taken would tell what others have.
            let why = "only root and the daemon's group may name sessions";
            return Err(peer.refuse("attach", why));
        }
        if self.shown().any(|session| session.spec.name.as_deref() == Some(name)) {
            let message = format!("there is a session called {name}");
            return Err(ApiError { code: ErrorCode::NameTaken, message });
        }
        Ok(())
    }
}

/// Refuses `peer` a session beside `n_held` others where there is no memory for it: for so many, or because that of
/// its worker `is_short`. How much there is is told to whoever may see all.
fn check_memory(
    peer: &Peer,
    memory: Option<MemoryState>,
    is_short: bool,
    n_held: usize,
) -> Result<(), ApiError> {
    let Some(memory) = memory else { return Ok(()) };
    let has_room = n_held < peer.share(memory.n_sessions_max());
    if has_room && !is_short {
        return Ok(());
    }
    let mib = |bytes: u64| bytes >> 20;
    let (resident, max) = (mib(memory.resident_bytes), mib(memory.max_bytes));
    let why = match (peer.sees_all(), has_room) {
        (false, _) => "the daemon's memory is short".to_owned(),
        (true, true) => format!("memory is short: {resident} of {max} MiB are taken"),
        (true, false) => {
            format!("{n_held} sessions are all that {max} MiB of memory have room for")
        }
    };
    let remedy = "detach a session, try again later, or have memory_max raised";
    let message = format!("no session begins, for {why} (memory_max): {remedy}");
    Err(ApiError { code: ErrorCode::TooMany, message })
}

fn no_thread(error: std::io::Error) -> ApiError {
    tracing::error!(%error, "no thread for a session");
    ApiError { code: ErrorCode::NotAttached, message: format!("no thread is left: {error}") }
}

#[cfg(test)]
mod tests {
    use super::super::staff::Workplace;
    use super::*;

    fn user(uid: u32) -> Peer {
        Peer { uid, gid: uid, pid: 1, groups: Arc::default(), rank: Rank::User, address: None }
    }

    fn roster(limits: Limits, sessions: &[Arc<Session>]) -> Roster {
        let roster = Roster::new(limits, Staff::new(Workplace::Child));
        roster.lock().sessions = sessions.iter().map(|one| (one.id, one.clone())).collect();
        roster
    }

    #[test]
    fn a_name_means_the_session_of_the_configuration() {
        let root = Peer { rank: Rank::Privileged, ..user(0) };
        let requested = Session::idle(1, Some("a"), Owner::requesting(&root));
        let configured = Session::idle(2, Some("a"), Owner::configuration());
        let roster = roster(Limits::default(), &[requested, configured]);
        assert_eq!(roster.find(&root, "a").unwrap().id, 2);
        assert_eq!(roster.find(&root, "1").unwrap().id, 1);
        assert!(roster.find(&user(7), "a").is_err());
    }

    #[test]
    fn who_is_missed_least_is_given_up_first_and_one_stays() {
        let root = Peer { rank: Rank::Privileged, ..user(0) };
        let owners = [
            (1, Owner::requesting(&user(7))),
            (2, Owner::configuration()),
            (3, Owner::requesting(&root)),
            (4, Owner::requesting(&user(8))),
            (5, Owner::configuration()),
            (6, Owner::requesting(&root)),
        ];
        let sessions = owners.map(|(id, owner)| Session::idle(id, None, owner));
        let roster = roster(Limits::default(), &sessions);
        let next = |is_above| {
            let next = roster.lock().least_missed(is_above, |_| true).cloned();
            next.inspect(|session| session.give_up()).map(|session| session.id)
        };
        // Those that are still starting take memory, too.
        sessions[..4].iter().for_each(|session| session.samples_now());
        assert_eq!(
            [(); 6].map(|()| next(true)),
            [4, 1, 6, 3, 5, 0].map(|id| Some(id).filter(|id| *id != 0))
        );
        let alone = Session::idle(7, None, Owner::requesting(&root));
        alone.samples_now();
        roster.lock().sessions = [(7, alone)].into();
        assert_eq!((next(false), next(true)), (None, Some(7)));
    }

    #[test]
    fn memory_that_is_about_to_come_is_waited_for() {
        let root = Peer { rank: Rank::Privileged, ..user(0) };
        let mine = Session::idle(1, None, Owner::requesting(&root));
        let of_user = Session::idle(2, None, Owner::requesting(&user(7)));
        let both = [mine, of_user.clone()];
        both.iter().for_each(|session| session.samples_now());
        let roster = roster(Limits::default(), &both);
        let began = Instant::now();
        let is_to_come = |after| roster.lock().is_memory_to_come(began + after);
        assert!(!is_to_come(Duration::ZERO));
        of_user.leave();
        assert!(is_to_come(Duration::ZERO) && !is_to_come(FREEING_TIME), "not for ever");
        of_user.has_returned_now();
        assert!(!is_to_come(Duration::ZERO));
    }

    #[test]
    fn one_that_never_gives_its_memory_back_keeps_nobody_from_being_waited_for() {
        let session = |id| Session::idle(id, None, Owner::requesting(&user(7)));
        let (hung, other) = (session(1), session(2));
        [&hung, &other].into_iter().for_each(|session| session.samples_now());
        let roster = roster(Limits::default(), &[hung.clone(), other.clone()]);
        hung.leave();
        let now = Instant::now();
        assert!(roster.lock().is_memory_to_come(now));
        hung.has_gone_for(2 * FREEING_TIME);
        assert!(!roster.lock().is_memory_to_come(now), "it hangs");
        assert_eq!(roster.lock().least_missed(true, |_| true).map(|session| session.id), Some(2));
        other.give_up();
        let now = Instant::now();
        assert!(roster.lock().is_memory_to_come(now));
        assert!(!roster.lock().is_memory_to_come(now + FREEING_TIME));
        other.has_gone_for(2 * FREEING_TIME);
        assert!(roster.lock().least_missed(true, |_| true).is_none(), "both were picked");
    }

    #[test]
    fn who_begins_and_ends_sessions_in_turn_is_not_waited_for_for_ever() {
        let session = |id| Session::idle(id, None, Owner::requesting(&user(7)));
        let roster = roster(Limits::default(), &[]);
        let began = Instant::now();
        let is_to_come = |id: u64| {
            let session = session(id);
            session.samples_now();
            session.leave();
            roster.lock().sessions = [(id, session)].into();
            roster.lock().is_memory_to_come(began + u32::try_from(id).unwrap() * FREEING_TIME / 4)
        };
        assert_eq!([0, 1, 2, 3, 4].map(is_to_come), [true, true, true, true, false]);
    }

    #[test]
    fn users_leave_room_for_those_who_see_all() {
        let peers = [user(7), Peer { rank: Rank::Privileged, ..user(0) }];
        assert_eq!(peers.map(|peer| peer.share(8)), [6, 8]);
    }

    #[test]
    fn few_users_leave_places_for_those_who_have_none() {
        let roster =
            roster(Limits { sessions: 16, sessions_per_user: 8, ..Limits::default() }, &[]);
        let mut n_of_users = 0;
        for id in 0..24 {
            let of = user(7 + id as u32 / 8);
            if roster.lock().make_room(&of).is_ok() {
                let session = Session::idle(id, None, Owner::requesting(&of));
                roster.lock().sessions.insert(id, session);
                n_of_users += 1;
            }
        }
        // Three users could have 24. Of 16 a quarter is left to those who see all, of the rest one to who has none.
        assert!(n_of_users < 12, "{n_of_users}");
        assert!(roster.lock().make_room(&user(99)).is_ok());
    }

    #[test]
    fn a_session_that_is_about_to_end_is_not_shown_but_counts() {
        let (peer, other) = (user(7), user(8));
        let session = Session::idle(1, None, Owner::requesting(&peer));
        let limits = Limits { sessions_per_user: 1, ..Limits::default() };
        let roster = roster(limits, std::slice::from_ref(&session));
        assert_eq!(roster.visible(&peer).len(), 1);
        drop(Awaited(Some(&session)));
        assert!(roster.visible(&peer).is_empty() && roster.find(&peer, "1").is_err());
        let error = roster.lock().make_room(&peer).unwrap_err();
        assert_eq!(error.code, ErrorCode::TooMany);
        assert!(roster.lock().make_room(&other).is_ok());
        // Half of two is kept for those who see all.
        roster.lock().limits = Limits { sessions: 2, ..limits };
        assert!(roster.lock().make_room(&other).is_err(), "it counts for the whole, too");
        session.has_returned_now();
        assert!(roster.lock().make_room(&peer).is_ok());
        assert!(roster.lock().sessions.is_empty());
    }
}
