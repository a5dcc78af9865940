//! Records of the time before a session, read in `/proc` on threads that may be left behind: a process that
//! keeps its mappings locked, as while a file system does not answer it, holds up whoever reads them.

use crate::lookup::process;
use crate::quota::places::{ForUser, Place, Places};
use crate::system::procfs::Procfs;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use dataspace_proto::record::Record;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time in which something has to come of a process: 65,530 mappings are read in a tenth of a second.
const DEADLINE: Duration = Duration::from_secs(5);
/// One of which nothing came for so long is waited for beside the next ones.
const PATIENCE: Duration = Duration::from_millis(100);
/// Time for which all processes together are waited for: there may be any number that let a little come now and
/// then, and a request to attach waits ten seconds. Then each has [`LOOK`].
const MAX_WAIT: Duration = Duration::from_secs(8);
/// Interval between two looks whether anybody still wants it.
const LOOK: Duration = Duration::from_millis(20);
/// Processes that are waited for at once: as many as one user may hold up, so that they take one deadline.
const MAX_ASIDE: usize = 16;
/// Records that wait for the thread that opens the session: 0.2 MB.
const MAX_RECORDS: usize = 256;
/// Threads that are held up, in the whole process: a quarter of them by processes of one user.
static HELD_UP: HeldUp = HeldUp::new(64);

/// Names of all threads, mount namespaces and mappings of all processes, as of time 0, each read shortly
/// before it is taken: all mappings of a few processes are hundreds of megabytes.
#[derive(Debug)]
pub(crate) struct Before {
    procfs: Procfs,
    /// Those that are not begun.
    pids: std::vec::IntoIter<i32>,
    /// Records to be taken next.
    ready: VecDeque<Record>,
    reading: Option<Reading>,
    /// Those of which nothing came for a while.
    aside: VecDeque<Reading>,
    /// A thread that is done.
    idle: Option<SnapshotReader>,
    /// Processes whose mappings are not read, for as many readers as may be are held up.
    refused: Vec<i32>,
    /// Time waited in all.
    waited: Duration,
    deadline: Duration,
    held_up: &'static HeldUp,
}

/// The threads that are held up, and by whom.
#[derive(Debug)]
struct HeldUp {
    places: Places,
    /// Processes that were given up: nobody need wait for them until their thread has come back.
    processes: Mutex<Vec<ProcessKey>>,
}

/// A process: its number, and when it started, for numbers are used again.
type ProcessKey = (i32, Option<u64>);

/// A process that is being read.
#[derive(Debug)]
struct Reading {
    process: ProcessKey,
    /// Its user.
    user: ForUser,
    reader: SnapshotReader,
    silent_since: Option<Instant>,
}

/// A thread, the way to it and back.
#[derive(Debug)]
struct SnapshotReader {
    jobs: Sender<Job>,
    told: Receiver<ToldRecord>,
    /// The thread has it too, so that what is put in is given back by whoever leaves last.
    parting: Arc<OnceLock<LeftBehind>>,
}

/// Mark of a thread that may be held up, until it comes back.
#[derive(Debug)]
struct LeftBehind {
    held_up: &'static HeldUp,
    process: ProcessKey,
    _place: Place,
}

struct Job {
    pid: i32,
    with_mappings: bool,
}

/// A record of a process, or that there are no more.
type ToldRecord = Option<Record>;

impl Before {
    /// To be taken after the side-band events are open: a mapping is then in one of the two, or in
    /// both, which does no harm.
    pub(crate) fn of(pids: Vec<i32>, procfs: &Procfs) -> Self {
        Self::within(&HELD_UP, DEADLINE, pids, procfs)
    }

    /// Records that were taken already.
    pub(crate) fn taken(records: Vec<Record>) -> Self {
        let nowhere = Procfs::new(std::path::Path::new(""));
        let mut taken = Self::of(Vec::new(), &nowhere);
        taken.ready = records.into();
        taken
    }

    fn within(
        held_up: &'static HeldUp,
        deadline: Duration,
        pids: Vec<i32>,
        procfs: &Procfs,
    ) -> Self {
        Self {
            procfs: procfs.clone(),
            pids: pids.into_iter(),
            ready: VecDeque::new(),
            reading: None,
            aside: VecDeque::new(),
            idle: None,
            refused: Vec::new(),
            waited: Duration::ZERO,
            deadline,
            held_up,
        }
    }

    /// The next record; none any more when it `is_over`, which is asked while it is waited for.
    pub(crate) fn next_unless(&mut self, is_over: &dyn Fn() -> bool) -> Option<Record> {
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Some(record);
            }
            let Some(reading) = &mut self.reading else {
                if is_over() || !self.go_on() {
                    self.break_off();
                    return None;
                }
                continue;
            };
            match reading.reader.told.recv_timeout(LOOK) {
                Ok(Some(record)) => {
                    reading.silent_since = None;
                    return Some(record);
                }
                Ok(None) => self.has_ended(),
                // It panicked.
                Err(RecvTimeoutError::Disconnected) => self.reading = None,
                Err(RecvTimeoutError::Timeout) if is_over() => {
                    self.break_off();
                    return None;
                }
                Err(RecvTimeoutError::Timeout) => self.waits(),
            }
        }
    }

    /// Begins the next process, or comes back to one that was silent. Whether there is anything more.
    fn go_on(&mut self) -> bool {
        let next = if self.aside.len() < MAX_ASIDE { self.pids.next() } else { None };
        if let Some(pid) = next {
            self.begin(pid);
        } else if let Some(reading) = self.aside.pop_front() {
            self.reading = Some(reading);
        } else if let Some(pid) = self.refused.first() {
            let others = match self.refused.len() - 1 {
                0 => String::new(),
                n_others => format!(" and {n_others} others"),
            };
            self.ready.push_back(process::warning(format!(
                "as many readers as may be wait for processes that do not answer: the mappings of \
                 process {pid}{others} from before stay unknown, and so do their data objects"
            )));
            self.refused.clear();
        } else {
            return false;
        }
        true
    }

    fn begin(&mut self, pid: i32) {
        let uid = self.procfs.status(pid).ok().and_then(|status| Some(status.users?.effective));
        let user = uid.filter(|&uid| uid != 0);
        let process = (pid, self.procfs.start_time_ticks(pid).ok());
        let is_known = self.held_up.lock().contains(&process);
        let has_room = self.held_up.places.has_room(user);
        if is_known {
            self.ready.push_back(no_answer(pid));
        } else if !has_room {
            self.refused.push(pid);
        }
        // Names and namespaces nobody can lock.
        let job = Job { pid, with_mappings: !is_known && has_room };
        let reader = self.idle.take().or_else(|| SnapshotReader::begin(self.procfs.clone()));
        match reader.filter(|reader| reader.jobs.send(job).is_ok()) {
            Some(reader) => {
                self.reading = Some(Reading { process, user, reader, silent_since: None });
            }
            None => self.ready.push_back(process::warning(format!(
                "no thread is left to read of process {pid}: names of its threads and its data \
                 objects stay unknown"
            ))),
        }
    }

    fn has_ended(&mut self) {
        let Some(Reading { reader, .. }) = self.reading.take() else { return };
        // The place of one that was set aside goes with its thread.
        if reader.parting.get().is_none() {
            self.idle = Some(reader);
        }
    }

    /// Nothing came of the process for a moment: it may be set aside, or given up.
    fn waits(&mut self) {
        self.waited += LOOK;
        let Some(mut reading) = self.reading.take() else { return };
        let silent = reading.silent_since.get_or_insert_with(Instant::now).elapsed();
        let deadline = if self.waited < MAX_WAIT { self.deadline } else { LOOK };
        if silent >= deadline {
            reading.is_left_behind(self.held_up);
            self.held_up.lock().push(reading.process);
            let (pid, uid) = (reading.process.0, reading.user);
            tracing::warn!(pid, uid, "a process does not answer: its reader is left behind");
            self.ready.push_back(no_answer(pid));
        } else if silent >= PATIENCE && reading.reader.parting.get().is_none() {
            reading.is_left_behind(self.held_up);
            self.aside.push_back(reading);
        } else {
            self.reading = Some(reading);
        }
    }

    /// Has nothing more come.
    fn break_off(&mut self) {
        if let Some(reading) = self.reading.take() {
            reading.is_left_behind(self.held_up);
        }
        self.aside.clear();
        self.pids = Vec::new().into_iter();
    }
}

impl Drop for Before {
    fn drop(&mut self) {
        self.break_off();
    }
}

impl HeldUp {
    const fn new(n_threads: usize) -> Self {
        Self { places: Places::new(n_threads), processes: Mutex::new(Vec::new()) }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ProcessKey>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reading {
    /// Its thread may never come back, and takes a place until it does.
    fn is_left_behind(&self, held_up: &'static HeldUp) {
        self.reader.parting.get_or_init(|| LeftBehind {
            held_up,
            process: self.process,
            _place: held_up.places.take_anyhow(self.user),
        });
    }
}

impl Drop for LeftBehind {
    fn drop(&mut self) {
        let mut processes = self.held_up.lock();
        let idx = processes.iter().position(|process| *process == self.process);
        idx.map(|idx| processes.swap_remove(idx));
    }
}

impl SnapshotReader {
    /// A thread that reads one process after the other, for as long as anybody asks and listens.
    fn begin(procfs: Procfs) -> Option<Self> {
        let (jobs, asked) = bounded::<Job>(1);
        let (tell, told) = bounded(MAX_RECORDS);
        let parting = Arc::default();
        let for_thread = Arc::clone(&parting);
        let work = move || {
            let _parting = for_thread;
            for Job { pid, with_mappings } in asked {
                let records = process::records(pid, &procfs, with_mappings).map(Some);
                for told in records.chain([None]) {
                    if tell.send(told).is_err() {
                        return;
                    }
                }
            }
        };
        match thread::Builder::new().name("before".to_owned()).spawn(work) {
            Ok(_) => Some(Self { jobs, told, parting }),
            Err(error) => {
                tracing::warn!(%error, "no thread to read what was before the session");
                None
            }
        }
    }
}

fn no_answer(pid: i32) -> Record {
    process::warning(format!(
        "process {pid} does not answer: its mappings from before stay unknown, and so do its data \
         objects; it keeps them locked, as while it waits for a file system that is gone"
    ))
}

#[cfg(test)]
#[path = "before/tests.rs"]
mod tests;
