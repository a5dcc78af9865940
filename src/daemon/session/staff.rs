//! The daemon's workers: one for each user who may see only his own, and one for all who see all; more where one may not
//! lock memory enough for their rings. Who hangs, grows or crashes is ended, and his sessions begin anew with another.

use super::memory_share::shares;
use super::own_work::OwnWork;
use super::worker_log;
use crate::broker::{self, Service, Terms, wire::Connection};
use crate::file_source::FilePolicy;
use crate::lock::lock;
use crate::memory_bound::MemoryState;
use dataspace_collector::access::worker;
use dataspace_collector::live::n_sessions_that_fit;
use dataspace_collector::quota::counts::Counts;
use dataspace_collector::system::memory;
use dataspace_collector::system::procfs::Procfs;
use dataspace_proto::worker::{Flag, Order, SessionRequest, Standing, Viewer};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsFd as _;
use rustix::io::Errno;
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

/// Interval at which memory is shared out anew.
const SHARING: Duration = Duration::from_millis(100);

/// Room for what a worker takes beside what it has, before memory is shared out anew.
pub(super) const GROWTH_BYTES: u64 = 16 << 20;

/// Time that a worker has to give memory back.
const OBEYING: Duration = Duration::from_secs(10);

/// Time that a worker has to begin.
const BEGINNING: Duration = Duration::from_secs(10);

/// Processes of one user's worker: those that were given up and cannot be ended count too.
const MAX_LIVING: usize = 4;

/// A worker is told of another bound if it differs by so much.
const STEP_BYTES: u64 = 1 << 20;

/// Place of the sessions' workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Workplace {
    /// In processes that this one starts.
    Child,
    /// In processes that are started for whoever connects to this socket, as systemd does.
    Socket(PathBuf),
}

/// The workers.
#[derive(Debug)]
pub(crate) struct Staff {
    /// Those that there are. Held for a moment only: clients wait for it.
    workers: Mutex<Vec<Arc<Worker>>>,
    /// Held while a worker begins, so that no user has more than his sessions need.
    beginning: Mutex<()>,
    /// Sessions that one worker has at most: its rings are memory that it locks.
    capacity: usize,
    /// Processes of each user's, those that were given up among them.
    n_living: Mutex<Counts<Option<u32>>>,
    workplace: Workplace,
    /// For the user who started this process: its own session's work, and sources are shown.
    own: Option<OwnWork>,
    /// Bound on memory of all together; 0: none.
    max_bytes: AtomicU64,
    /// Workers in which a session is to be given up.
    short: Mutex<Vec<Arc<Worker>>>,
    short_news: Notify,
    n_sessions_given_up: AtomicU64,
    /// There is memory to share, or none any more.
    sharing_news: Notify,
}

/// A worker, as the daemon knows it.
#[derive(Debug)]
pub(crate) struct Worker {
    viewer: Option<Viewer>,
    control: Connection,
    pid: i32,
    process: OwnedFd,
    is_gone: AtomicBool,
    /// The broker's, while it is wanted.
    service: Mutex<Option<Service>>,
    /// Its sessions, those that are about to begin among them.
    sessions: Mutex<Vec<u64>>,
    /// Its state when one of them was asked last.
    standing: Mutex<Standing>,
    /// The bound that it was told.
    told_bytes: AtomicU64,
    /// Time since when it has far more.
    above_since: Mutex<Option<Instant>>,
}

/// Want of memory in a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shortage {
    /// Its sessions, of which one is to be given up.
    pub(crate) sessions: Vec<u64>,
    /// It has more than it should.
    pub(crate) is_above: bool,
}

impl Staff {
    /// Nobody yet.
    pub(crate) fn new(workplace: Workplace) -> Arc<Self> {
        Self::doing(workplace, None)
    }

    /// Nobody yet; for the user who started this process.
    pub(crate) fn own(work: OwnWork) -> Arc<Self> {
        Self::doing(Workplace::Child, Some(work))
    }

    fn doing(workplace: Workplace, own: Option<OwnWork>) -> Arc<Self> {
        let capacity = match workplace {
            // Each is a user of its own. Where all are one, another worker has no more.
            Workplace::Child if rustix::process::geteuid().is_root() => {
                worker::raise_lock_limit();
                n_sessions_that_fit()
            }
            // The unit has its own limit.
            Workplace::Child | Workplace::Socket(_) => usize::MAX,
        };
        Arc::new(Self {
            workers: Mutex::default(),
            beginning: Mutex::default(),
            capacity,
            n_living: Mutex::default(),
            workplace,
            own,
            max_bytes: AtomicU64::new(0),
            short: Mutex::default(),
            short_news: Notify::new(),
            n_sessions_given_up: AtomicU64::new(0),
            sharing_news: Notify::new(),
        })
    }

    /// A worker for `session` of `viewer`, or of those who see all, which is one of its own from now on; a new one where
    /// no other has room.
    ///
    /// # Errors
    /// Where there is no process for it.
    fn worker(self: &Arc<Self>, viewer: Option<&Viewer>, session: u64) -> io::Result<Arc<Worker>> {
        let beginning = lock(&self.beginning);
        let has_room = |it: &&Arc<Worker>| lock(&it.sessions).len() < self.capacity;
        let of_viewer = self.workers_of(viewer);
        if let Some(worker) = of_viewer.iter().find(has_room) {
            lock(&worker.sessions).push(session);
            return Ok(Arc::clone(worker));
        }
        let uid = viewer.map(|viewer| viewer.uid);
        if lock(&self.n_living).of(&uid) >= of_viewer.len() + MAX_LIVING {
            return Err(io::Error::other("those that were given up have not ended"));
        }
        let worker = self.begin(viewer.cloned())?;
        lock(&worker.sessions).push(session);
        let mut workers = lock(&self.workers);
        // It may have ended already, before it is known: whoever says so waits for this lock.
        if !worker.is_gone.load(Ordering::Acquire) {
            workers.push(Arc::clone(&worker));
        }
        drop(workers);
        drop(beginning);
        self.share_memory();
        self.sharing_news.notify_one();
        Ok(worker)
    }

    /// The workers of `viewer`, or of those who see all.
    fn workers_of(&self, viewer: Option<&Viewer>) -> Vec<Arc<Worker>> {
        let workers = lock(&self.workers);
        workers.iter().filter(|worker| worker.viewer.as_ref() == viewer).cloned().collect()
    }

    fn begin(self: &Arc<Self>, viewer: Option<Viewer>) -> io::Result<Arc<Worker>> {
        let (control, child) = match &self.workplace {
            Workplace::Child => {
                let (control, theirs) = Connection::pair()?;
                control.expect_hello()?;
                let mut command = Command::new(Procfs::default().own_program_link());
                command.arg("worker").stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
                let mut child = command.stderr(Stdio::piped()).spawn()?;
                if let Some(said) = child.stderr.take() {
                    let pid = child.id();
                    let thread = std::thread::Builder::new().name(format!("log of {pid}"));
                    thread.spawn(move || worker_log::relay(pid, said))?;
                }
                (control, Some(child))
            }
            Workplace::Socket(path) => (Connection::connect(path)?, None),
        };
        // Who it is, is the kernel's word, not its own.
        if !control.is_ready_within(BEGINNING)? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let number = control.receive_hello()?;
        let pid = number.as_raw_nonzero().get();
        let process = pidfd_open(number, PidfdFlags::empty())?;
        let (end, served) = (process.try_clone()?, process.try_clone()?);
        let worker = Arc::new(Worker::new(viewer.clone(), control, pid, process));
        let (staff, of_thread) = (Arc::clone(self), Arc::clone(&worker));
        let uid = viewer.as_ref().map(|viewer| viewer.uid);
        std::thread::Builder::new().name(format!("worker {pid}")).spawn(move || {
            lock(&staff.n_living).add(uid);
            let mut fds = [PollFd::new(&end, PollFlags::IN)];
            while matches!(poll(&mut fds, None), Err(Errno::INTR)) {}
            staff.has_ended(&of_thread);
            lock(&staff.n_living).remove(&uid);
            // Whoever began it knows how it ended: of our children that is us.
            let status = child.and_then(|mut child| child.wait().ok()).map(|it| it.to_string());
            tracing::info!(worker = pid, uid, status, "a worker has ended");
        })?;
        let terms = match &self.own {
            Some(own) => own.terms(),
            None => Terms::of_files(FilePolicy { is_live: true, viewer, ..FilePolicy::default() }),
        };
        let (service, access) = broker::serve_worker(terms, pid, served)?;
        *lock(&worker.service) = Some(service);
        worker.control.hand_over(&Order::Access, &[access])?;
        Ok(worker)
    }

    /// `worker` does nothing any more, or nothing that is wanted.
    fn has_ended(&self, worker: &Arc<Worker>) {
        worker.is_gone.store(true, Ordering::Release);
        lock(&self.workers).retain(|one| !Arc::ptr_eq(one, worker));
        // Nobody else is to have what it was given a way to.
        let service = lock(&worker.service).take();
        drop(service);
    }

    /// Lets idle workers of a user go, as long as he has another one: they were only there for their rings. One may have
    /// become idle while another began.
    fn let_go(&self, viewer: Option<&Viewer>) {
        // While one begins nobody is let go: that one's end will.
        let Ok(_beginning) = self.beginning.try_lock() else { return };
        let of_viewer = self.workers_of(viewer);
        let idle = of_viewer.iter().filter(|worker| worker.is_idle());
        for worker in idle.take(of_viewer.len().saturating_sub(1)) {
            lock(&self.workers).retain(|one| !Arc::ptr_eq(one, worker));
            worker.control.hang_up();
        }
    }

    /// Begins session `session` with its worker; it is not attached yet.
    ///
    /// # Errors
    /// Where there is no worker, or the request is too long for it.
    pub(crate) fn host(
        self: &Arc<Self>,
        session: u64,
        request: SessionRequest,
    ) -> io::Result<(Hosted, Connection)> {
        let (followed, theirs) = Connection::pair()?;
        let (wished, their_wished) = Connection::pair()?;
        let worker = self.worker(request.viewer.as_ref(), session)?;
        let hosted = Hosted { staff: Arc::clone(self), worker, session, followed };
        let mut beside: Vec<OwnedFd> = vec![theirs.into(), their_wished.into()];
        if request.own_work.is_some()
            && let Some(file) = self.own.as_ref().and_then(OwnWork::file)
        {
            beside.push(file.try_clone()?.into());
        }
        let order = Order::Begin { session, request };
        if let Err(errno) = hosted.worker.control.hand_over(&order, &beside) {
            if errno != Errno::MSGSIZE {
                hosted.give_up();
            }
            return Err(errno.into());
        }
        Ok((hosted, wished))
    }

    /// The work of its own session.
    pub(crate) const fn own_work(&self) -> Option<&OwnWork> {
        self.own.as_ref()
    }

    /// Bounds the memory of all workers and of this process together.
    pub(crate) fn bound_memory(&self, max_bytes: Option<u64>) {
        self.max_bytes.store(max_bytes.unwrap_or(0), Ordering::Relaxed);
        self.share_memory();
        self.sharing_news.notify_one();
    }

    /// Shares memory out by what each worker has: the one that has most is bounded first.
    pub(crate) fn share_memory(&self) {
        let max_bytes = self.max_bytes.load(Ordering::Relaxed);
        let workers = lock(&self.workers).clone();
        let taken: Vec<u64> = workers.iter().map(|worker| worker.resident_bytes()).collect();
        // Who has no session does not grow.
        let growth = |worker: &Worker| if worker.is_idle() { 0 } else { GROWTH_BYTES };
        let wanted = workers.iter().zip(&taken).map(|(worker, taken)| taken + growth(worker));
        let wanted: Vec<u64> = wanted.collect();
        let left = max_bytes.saturating_sub(memory::resident_bytes());
        for ((worker, share), taken) in workers.iter().zip(shares(left, wanted)).zip(taken) {
            // No bound is one, too.
            let bound = if max_bytes == 0 { 0 } else { share.max(1) };
            if worker.is_above_for_long(taken, bound) {
                worker.end();
                self.has_ended(worker);
                continue;
            }
            let told = worker.told_bytes.load(Ordering::Relaxed);
            if told.abs_diff(bound) >= STEP_BYTES || (told == 0) != (bound == 0) {
                let max_bytes = Some(bound).filter(|bound| *bound != 0);
                // One that does not read is told again.
                if worker.control.send_now(&Order::Memory { max_bytes }, &[]).is_ok() {
                    worker.told_bytes.store(bound, Ordering::Relaxed);
                }
            }
        }
    }

    /// State of the bound on memory, if there is one.
    pub(crate) fn memory(&self) -> Option<MemoryState> {
        let max_bytes = self.max_bytes.load(Ordering::Relaxed);
        let workers = lock(&self.workers).clone();
        let n_sessions = self.n_sessions_given_up.load(Ordering::Relaxed);
        let mut state = MemoryState::of(max_bytes, self.resident_bytes(), n_sessions);
        for worker in workers {
            let standing = lock(&worker.standing);
            state.add(standing.is_short, &standing.n_shed);
        }
        (max_bytes != 0).then_some(state)
    }

    /// Resident memory of all together.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let workers = lock(&self.workers);
        let own = memory::resident_bytes();
        workers.iter().fold(own, |sum, worker| sum.saturating_add(worker.resident_bytes()))
    }

    /// Tells whether a worker of `viewer` had too little memory when it was asked last.
    pub(crate) fn is_short(&self, viewer: Option<&Viewer>) -> bool {
        self.workers_of(viewer).iter().any(|worker| lock(&worker.standing).is_short)
    }

    /// Tells whether there is a bound and somebody to share it, or who still has to hear that there is none.
    fn has_memory_to_share(&self) -> bool {
        let is_bounded = self.max_bytes.load(Ordering::Relaxed) != 0;
        let is_told = |worker: &Arc<Worker>| worker.told_bytes.load(Ordering::Relaxed) != 0;
        lock(&self.workers).iter().any(|worker| is_bounded || is_told(worker))
    }

    /// Shares memory out again and again; comes back when a session is to be given up.
    pub(crate) async fn shortage(&self) -> Shortage {
        let mut sharing = tokio::time::interval(SHARING);
        sharing.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                shortage = self.session_wanted() => return shortage,
                // While nothing is bounded nobody wakes up for it.
                _ = sharing.tick(), if self.has_memory_to_share() => self.share_memory(),
                () = self.sharing_news.notified() => {}
            }
        }
    }

    async fn session_wanted(&self) -> Shortage {
        loop {
            if let Some(worker) = lock(&self.short).pop() {
                let is_above = lock(&worker.standing).is_above;
                return Shortage { sessions: lock(&worker.sessions).clone(), is_above };
            }
            self.short_news.notified().await;
        }
    }

    /// A session was given up.
    pub(crate) fn session_given_up(&self) {
        self.n_sessions_given_up.fetch_add(1, Ordering::Relaxed);
    }

    fn heard(&self, worker: &Arc<Worker>, standing: Standing) {
        let before = std::mem::replace(&mut *lock(&worker.standing), standing.clone());
        if standing.n_short > before.n_short {
            lock(&self.short).push(Arc::clone(worker));
            self.short_news.notify_one();
        }
    }
}

impl Worker {
    fn new(viewer: Option<Viewer>, control: Connection, pid: i32, process: OwnedFd) -> Self {
        let (is_gone, service, sessions, standing) = Default::default();
        let (told_bytes, above_since) = Default::default();
        Self {
            viewer,
            control,
            pid,
            process,
            is_gone,
            service,
            sessions,
            standing,
            told_bytes,
            above_since,
        }
    }

    fn resident_bytes(&self) -> u64 {
        memory::resident_bytes_of(self.pid)
    }

    /// Tells whether it has no session.
    fn is_idle(&self) -> bool {
        lock(&self.sessions).is_empty()
    }

    /// Tells whether it has had more than twice what it may, `taken` of `bound` (0: no bound), for long: it gives memory
    /// back as soon as it is told to, if it does as it is told.
    fn is_above_for_long(&self, taken: u64, bound: u64) -> bool {
        let mut above_since = lock(&self.above_since);
        if bound == 0 || taken / 2 <= bound.max(GROWTH_BYTES) {
            *above_since = None;
            return false;
        }
        above_since.get_or_insert_with(Instant::now).elapsed() >= OBEYING
    }

    /// Ends it at once.
    fn end(&self) {
        tracing::warn!(worker = self.pid, "a worker does not do as it is told: it is ended");
        // One of systemd's is another user: it ends itself when it has nobody to obey.
        let _ = pidfd_send_signal(self.process.as_fd(), Signal::KILL);
        self.control.hang_up();
    }
}

/// A session in its worker, as who follows it knows it.
#[derive(Debug)]
pub(crate) struct Hosted {
    staff: Arc<Staff>,
    worker: Arc<Worker>,
    session: u64,
    followed: Connection,
}

impl Hosted {
    /// The connection on which it is followed.
    pub(crate) const fn connection(&self) -> &Connection {
        &self.followed
    }

    /// Tells it something while it is busy.
    pub(crate) fn flag(&self, flag: Flag) {
        let _ = self.worker.control.send_now(&Order::Flag { session: self.session, flag }, &[]);
    }

    /// Takes note of how it stands.
    pub(crate) fn heard(&self, standing: &Standing) {
        self.staff.heard(&self.worker, standing.clone());
    }

    /// It does not answer: its worker is given up.
    pub(crate) fn give_up(&self) {
        self.worker.end();
        self.staff.has_ended(&self.worker);
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        lock(&self.worker.sessions).retain(|session| *session != self.session);
        // Nobody is left to say that its memory is short no longer.
        if self.worker.is_idle() {
            let mut standing = lock(&self.worker.standing);
            (standing.is_short, standing.is_above) = (false, false);
            drop(standing);
            self.staff.let_go(self.worker.viewer.as_ref());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_short_of_memory_for_its_user_and_while_it_has_sessions() {
        let staff = Staff::new(Workplace::Child);
        let (control, _theirs) = Connection::pair().unwrap();
        let own = rustix::process::getpid();
        let process = pidfd_open(own, PidfdFlags::empty()).unwrap();
        let pid = own.as_raw_nonzero().get();
        let user = Viewer { uid: 4_000_005, gid: 4_000_005, groups: Vec::new() };
        let worker = Arc::new(Worker::new(Some(user.clone()), control, pid, process));
        lock(&staff.workers).push(worker);
        let begin = |session| {
            let request = SessionRequest { viewer: Some(user.clone()), ..Default::default() };
            staff.host(session, request).unwrap().0
        };
        let (one, other) = (begin(1), begin(2));
        one.heard(&Standing { is_short: true, is_above: true, ..Default::default() });
        assert!(staff.is_short(Some(&user)));
        assert!(!staff.is_short(None), "whatever another user's worker says");
        drop(one);
        assert!(staff.is_short(Some(&user)));
        // Who would say that it is not any more?
        drop(other);
        assert!(!staff.is_short(Some(&user)));
    }

    #[test]
    fn a_worker_has_no_more_sessions_than_its_rings_have_room_for() {
        let mut staff = Staff::new(Workplace::Child);
        Arc::get_mut(&mut staff).unwrap().capacity = 2;
        let own = rustix::process::getpid();
        let connections: Vec<_> = (0..2).map(|_| Connection::pair().unwrap()).collect();
        let mut theirs = Vec::new();
        for (control, other) in connections {
            let process = pidfd_open(own, PidfdFlags::empty()).unwrap();
            let worker = Worker::new(None, control, own.as_raw_nonzero().get(), process);
            lock(&staff.workers).push(Arc::new(worker));
            theirs.push(other);
        }
        let begin = |session| staff.host(session, SessionRequest::default()).unwrap().0;
        let hosted: Vec<Hosted> = (1..4).map(begin).collect();
        assert!(Arc::ptr_eq(&hosted[0].worker, &hosted[1].worker));
        assert!(!Arc::ptr_eq(&hosted[0].worker, &hosted[2].worker));
        // One that is idle stays only where it is the only one.
        drop(hosted);
        assert_eq!(staff.workers_of(None).len(), 1);
    }
}
