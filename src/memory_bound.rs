//! Keeps the resident memory of this process below what was asked for (`--memory-max`): measures it as
//! the kernel does, and where it comes near has caches given up, in the order of [`EvictionStage`].

mod judge;
mod room;
mod turn;

use crate::exit::{Failure, Kind};
use crate::lock::lock;
use dataspace_analyzer::bytes::eviction::EvictionStage;
use dataspace_collector::system::memory;
use judge::{Judge, headroom_bytes, high_bytes, plentiful_bytes};
use room::Queue;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
pub(crate) use turn::{NoTurn, Turn};

/// Interval between two looks, of 10 µs of work each. A worker reads some 20 MB of debug information in that
/// time.
const LOOK: Duration = Duration::from_millis(20);

/// The same where memory is not plentiful.
const CLOSE_LOOK: Duration = Duration::from_millis(4);

/// The same where the bound is far off: a worker reads less than half of [`FAR_BYTES`] meanwhile.
const FAR_LOOK: Duration = Duration::from_millis(100);
const FAR_BYTES: u64 = 256 << 20;

/// Before so much is read at once it is looked how much is resident.
const LARGE_READ_BYTES: usize = 128 << 10;

/// Memory that is needed without any session: the program takes 10 MB, and what one question reads 16.
const FLOOR_BYTES: u64 = 32 << 20;

/// Memory that each session needs beside that: 0.6 MB where its target sleeps, 4 MB with the totals of some
/// hundred objects.
const SESSION_BYTES: u64 = 5 << 20;

/// The bound of this process.
static BOUND: MemoryBound = MemoryBound::unbounded();

const N_STAGES: usize = EvictionStage::ALL.len();

#[derive(Debug)]
struct MemoryBound {
    /// 0: there is none.
    max_bytes: AtomicU64,
    /// Number of times that something was asked to be given up, times [`N_STAGES`], plus the stage.
    asked: AtomicU64,
    /// The last stage was asked for, and memory is not plentiful yet.
    is_short: AtomicBool,
    /// Resident memory at the last look.
    resident_bytes: AtomicU64,
    /// There is a thread that looks. Held where the bound comes or goes, so that a thread that is about to
    /// return is not taken for one that looks.
    is_watched: Mutex<bool>,
    /// Those who work on questions, and who wait to.
    questions: Queue,
    /// Sessions that were to be given up.
    n_wanted: AtomicU64,
    /// Number of times that each stage was asked for.
    n_asked: [AtomicU64; N_STAGES],
}

/// State of the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryState {
    /// The bound.
    pub(crate) max_bytes: u64,
    /// Resident memory now.
    pub(crate) resident_bytes: u64,
    /// True while the work itself is given up, for the time being.
    pub(crate) is_short: bool,
    /// Sessions that were given up.
    n_sessions: u64,
    /// Of [`EvictionStage::ALL`].
    pub(crate) n_shed: [u64; N_STAGES],
}

impl MemoryState {
    /// State of several processes together, before any is [added](Self::add).
    pub(crate) fn of(max_bytes: u64, resident_bytes: u64, n_sessions: u64) -> Self {
        Self { max_bytes, resident_bytes, is_short: false, n_sessions, n_shed: Default::default() }
    }

    /// Adds a process, whose work `is_short` of memory, and that gave up so much.
    pub(crate) fn add(&mut self, is_short: bool, n_shed: &[u64]) {
        self.is_short |= is_short;
        for (sum, n) in self.n_shed.iter_mut().zip(n_shed) {
            *sum = sum.saturating_add(*n);
        }
    }

    /// Number of times that each kind of thing was asked to be given up, and the number of sessions that were.
    pub(crate) fn shed(self) -> impl Iterator<Item = (&'static str, u64)> {
        let last = ("sessions", self.n_sessions);
        EvictionStage::ALL.map(EvictionStage::name).into_iter().zip(self.n_shed).chain([last])
    }

    /// For how many sessions there is room at most.
    pub(crate) fn n_sessions_max(self) -> usize {
        let n_sessions = self.max_bytes.saturating_sub(FLOOR_BYTES) / SESSION_BYTES;
        usize::try_from(n_sessions).unwrap_or(usize::MAX)
    }

    /// Tells whether more is resident than should be, whatever was given up.
    pub(crate) fn is_above(self) -> bool {
        self.resident_bytes > high_bytes(self.max_bytes)
    }
}

/// Sessions for which there is room where nobody asked for a bound.
const MIN_USUAL_SESSIONS: usize = 16;

/// The bound of a daemon of which nobody asked for one, where the machine has four times that.
const USUAL_BYTES: u64 = 1 << 30;

/// Bound for a daemon with `n_sessions` of which nobody asked for one: a quarter of the machine's memory, and no more
/// than a gigabyte.
pub(crate) fn usual_bytes(n_sessions: usize) -> u64 {
    let least_bytes = FLOOR_BYTES + SESSION_BYTES * n_sessions.max(MIN_USUAL_SESSIONS) as u64;
    let quarter = memory::machine_bytes().map_or(USUAL_BYTES, |bytes| bytes / 4);
    quarter.min(USUAL_BYTES).max(least_bytes)
}

/// Fault of a bound for a process of so many sessions, if it has no room for them.
///
/// # Errors
/// What it needs.
pub(crate) fn check(max_bytes: u64, n_sessions: usize) -> Result<(), String> {
    let needed_bytes = FLOOR_BYTES + SESSION_BYTES * n_sessions.max(1) as u64;
    if max_bytes >= needed_bytes {
        return Ok(());
    }
    let mib = |bytes: u64| bytes >> 20;
    Err(format!(
        "a bound of {} MiB on memory is too little for {} session(s): it is to be at least {}M, which is {}M \
         and {}M for each session",
        mib(max_bytes),
        n_sessions.max(1),
        mib(needed_bytes),
        mib(FLOOR_BYTES),
        mib(SESSION_BYTES)
    ))
}

/// The same of a bound for one session that was typed, if one was.
///
/// # Errors
/// What it needs.
pub(crate) fn check_asked(max_bytes: Option<u64>) -> Result<(), Failure> {
    let checked = max_bytes.map_or(Ok(()), |max_bytes| check(max_bytes, 1));
    checked.map_err(|what| Failure::new(Kind::Usage, format!("--memory-max: {what}")))
}

/// Number of times that memory was short though all else was given up: one session is to be each time.
pub(crate) fn n_wanted() -> u64 {
    BOUND.n_wanted.load(Ordering::Relaxed)
}

/// Sets the bound, or that there is none.
pub(crate) fn set(max_bytes: Option<u64>) {
    if !BOUND.is_to_be_watched(max_bytes) {
        return;
    }
    memory::keep_little();
    let thread = std::thread::Builder::new().name("memory".to_owned());
    if let Err(error) = thread.spawn(|| watch(&BOUND)) {
        BOUND.leave();
        tracing::error!(%error, "no thread to watch memory: it is not bounded");
    }
}

/// The state of the bound, if there is one.
pub(crate) fn state() -> Option<MemoryState> {
    let max_bytes = BOUND.max_bytes.load(Ordering::Relaxed);
    (max_bytes != 0).then(|| MemoryState {
        max_bytes,
        resident_bytes: memory::resident_bytes(),
        is_short: is_short(),
        n_sessions: 0,
        n_shed: BOUND.n_asked.each_ref().map(|n| n.load(Ordering::Relaxed)),
    })
}

/// Tells whether nothing new is to be found out.
pub(crate) fn is_short() -> bool {
    BOUND.is_short.load(Ordering::Relaxed)
}

/// Tells whether memory is so near the bound that what is being read is broken off: `n_bytes` more are to be.
pub(crate) fn is_used_up(n_bytes: usize) -> bool {
    let max_bytes = BOUND.max_bytes.load(Ordering::Relaxed);
    if max_bytes == 0 {
        return false;
    }
    let resident_bytes = match n_bytes {
        LARGE_READ_BYTES.. => memory::resident_bytes(),
        _ => BOUND.resident_bytes.load(Ordering::Relaxed),
    };
    let used_up_bytes = max_bytes.saturating_sub(headroom_bytes(max_bytes) / 2);
    resident_bytes.saturating_add(n_bytes as u64) > used_up_bytes
}

/// Last request to one thread to give something up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    bound: &'static MemoryBound,
    before: u64,
}

impl Asked {
    /// Of what is asked from now on.
    pub(crate) fn from_now() -> Self {
        Self::of(&BOUND)
    }

    fn of(bound: &'static MemoryBound) -> Self {
        Self { bound, before: bound.asked.load(Ordering::Acquire) }
    }

    /// The stage to be given up now, if that was not asked before.
    pub(crate) fn anew(&mut self) -> Option<EvictionStage> {
        let asked = self.bound.asked.load(Ordering::Acquire);
        let stage = EvictionStage::ALL.get(asked as usize % N_STAGES).copied();
        (std::mem::replace(&mut self.before, asked) != asked).then_some(stage).flatten()
    }
}

/// Something was given up: what the allocator keeps of it goes to the kernel.
pub(crate) fn given_up() {
    memory::give_back();
}

fn watch(bound: &MemoryBound) {
    let mut judge = Judge::default();
    let mut look = LOOK;
    loop {
        std::thread::sleep(look);
        if bound.is_left() {
            return;
        }
        let max_bytes = bound.max_bytes.load(Ordering::Relaxed);
        let resident_bytes = memory::resident_bytes();
        // Without a descriptor left the kernel tells nothing; and the bound may just have gone.
        if resident_bytes != 0 && max_bytes != 0 {
            bound.keep(&mut judge, resident_bytes, max_bytes);
            look = match plentiful_bytes(max_bytes).checked_sub(resident_bytes) {
                Some(FAR_BYTES..) => FAR_LOOK,
                Some(_) => LOOK,
                None => CLOSE_LOOK,
            };
        }
    }
}

impl MemoryBound {
    const fn unbounded() -> Self {
        Self {
            max_bytes: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            is_short: AtomicBool::new(false),
            resident_bytes: AtomicU64::new(0),
            is_watched: Mutex::new(false),
            questions: Queue::new(),
            n_wanted: AtomicU64::new(0),
            n_asked: [const { AtomicU64::new(0) }; N_STAGES],
        }
    }

    /// Sets the bound, and tells whether a thread is to be begun that looks.
    fn is_to_be_watched(&self, max_bytes: Option<u64>) -> bool {
        let mut is_watched = lock(&self.is_watched);
        self.max_bytes.store(max_bytes.unwrap_or(0), Ordering::Relaxed);
        max_bytes.is_some() && !std::mem::replace(&mut *is_watched, true)
    }

    /// Tells whether the thread that looks has nothing to look at, and is none any more.
    fn is_left(&self) -> bool {
        let mut is_watched = lock(&self.is_watched);
        if self.max_bytes.load(Ordering::Relaxed) != 0 {
            return false;
        }
        self.is_short.store(false, Ordering::Relaxed);
        *is_watched = false;
        true
    }

    /// There is nobody who looks: nothing is bounded, and nobody waits for what is never told.
    fn leave(&self) {
        let mut is_watched = lock(&self.is_watched);
        self.max_bytes.store(0, Ordering::Relaxed);
        *is_watched = false;
    }

    /// Tells whether there is room for the work on so many questions.
    fn is_room(&self, n_working: u64) -> bool {
        let max_bytes = self.max_bytes.load(Ordering::Relaxed);
        let taken_bytes = headroom_bytes(max_bytes).saturating_mul(n_working);
        max_bytes == 0 || memory::resident_bytes().saturating_add(taken_bytes) <= max_bytes
    }

    /// Looks once.
    fn keep(&self, judge: &mut Judge, resident_bytes: u64, max_bytes: u64) {
        self.resident_bytes.store(resident_bytes, Ordering::Relaxed);
        let now = Instant::now();
        let stage = judge.look(resident_bytes, max_bytes, now);
        // Before it is asked: whoever sees that work is to be given up sees that there is to be none.
        let was_short = self.is_short.swap(judge.is_short(), Ordering::Relaxed);
        if let Some(stage) = stage {
            self.ask(stage, resident_bytes, max_bytes);
        }
        if judge.wants_a_session(resident_bytes <= plentiful_bytes(max_bytes), now) {
            self.n_wanted.fetch_add(1, Ordering::Relaxed);
        }
        if was_short && !judge.is_short() {
            tracing::warn!(resident_bytes, "memory is no longer short: work goes on");
        }
    }

    fn ask(&self, stage: EvictionStage, resident_bytes: u64, max_bytes: u64) {
        let n_before = self.n_asked[stage as usize].fetch_add(1, Ordering::Relaxed);
        // The first time, and each time that it has doubled: what happens often is in the counts.
        if (n_before + 1).is_power_of_two() {
            let (what, n) = (stage.name(), n_before + 1);
            tracing::warn!(resident_bytes, max_bytes, what, n, "memory is short: given up");
        }
        let n_asked = self.asked.load(Ordering::Relaxed) / N_STAGES as u64 + 1;
        self.asked.store(n_asked * N_STAGES as u64 + stage as u64, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_without_room_for_its_sessions_is_told() {
        assert_eq!(check(37 << 20, 1), Ok(()));
        let error = check((37 << 20) - 1, 0).unwrap_err();
        assert!(error.contains("36 MiB") && error.contains("at least 37M"), "{error}");
        assert!(check(61 << 20, 6).unwrap_err().contains("6 session(s): it is to be at least 62M"));
    }

    #[test]
    fn whoever_begins_later_is_not_asked_for_what_was() {
        BOUND.ask(EvictionStage::Caches, 2, 1);
        let mut asked = Asked::from_now();
        assert_eq!(asked.anew(), None);
        BOUND.ask(EvictionStage::Indices, 2, 1);
        assert_eq!(asked.anew(), Some(EvictionStage::Indices));
        assert_eq!(asked.anew(), None);
    }

    #[test]
    fn a_bound_that_goes_and_comes_is_watched_by_one_thread() {
        let bound = MemoryBound::unbounded();
        assert!(bound.is_to_be_watched(Some(1)));
        assert!(!bound.is_to_be_watched(None));
        assert!(!bound.is_to_be_watched(Some(2)), "the thread has not looked since");
        assert!(!bound.is_left(), "and goes on");
        assert!(!bound.is_to_be_watched(None));
        assert!(bound.is_left());
        assert!(bound.is_to_be_watched(Some(3)), "it has returned");
    }

    #[test]
    fn a_bound_that_nobody_watches_is_none() {
        let bound = MemoryBound::unbounded();
        assert!(bound.is_to_be_watched(Some(1)) && !bound.is_room(1));
        bound.leave();
        assert!(bound.is_room(1));
        assert!(bound.is_to_be_watched(Some(2)), "the next may have its thread");
    }

    #[test]
    fn who_is_to_give_up_work_sees_that_memory_is_short() {
        let (bound, mut judge) = (MemoryBound::unbounded(), Judge::default());
        let long_ago = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        judge.last = Some((EvictionStage::Answers, long_ago));
        bound.keep(&mut judge, 2 << 30, 1 << 30);
        assert_eq!(
            bound.asked.load(Ordering::Acquire) as usize % N_STAGES,
            EvictionStage::Work as usize
        );
        assert!(bound.is_short.load(Ordering::Relaxed));
    }
}
