//! Keeps the resident memory of this process below what was asked for (`--memory-max`): measures it as
//! the kernel does, and where it comes near has caches given up, in the order of [`Shed`].

mod room;

use crate::session::cost;
use dataspace_analyzer::shedding::Shed;
use dataspace_collector::memory;
use room::{Queue, Waiter, Working};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often it is looked at: 10 µs of work each. A worker reads some 20 MB of debug information in that
/// time.
const LOOK: Duration = Duration::from_millis(20);

/// The same where memory is not plentiful.
const CLOSE_LOOK: Duration = Duration::from_millis(4);

/// How far below the bound things are given up, if that is more than an eighth of it: what one question
/// reads comes on top before it is looked again. So a question is begun only where there is as much for
/// each that is worked on.
const HEADROOM_BYTES: u64 = 16 << 20;

/// How long a stage has to take effect before the next one is asked for.
const SETTLING: Duration = Duration::from_millis(200);

/// How long memory has to be plentiful before work that was given up goes on: it takes memory.
const EASING: Duration = Duration::from_secs(2);

/// Those who work on questions, and who wait to.
static QUESTIONS: Queue = Queue::new();

/// The bound of this process.
static BOUND: MemoryBound = MemoryBound::unbounded();

const N_STAGES: usize = Shed::ALL.len();

#[derive(Debug)]
struct MemoryBound {
    /// 0: there is none.
    max_bytes: AtomicU64,
    /// How often something was asked to be given up, times [`N_STAGES`], and which stage it was.
    asked: AtomicU64,
    /// The last stage was asked for, and memory is not plentiful yet.
    is_short: AtomicBool,
    /// Files are not read on.
    is_used_up: AtomicBool,
    /// There is a thread that looks. Held where the bound comes or goes, so that a thread that is about to
    /// return is not taken for one that looks.
    is_watched: Mutex<bool>,
    /// How often each stage was asked for.
    n_asked: [AtomicU64; N_STAGES],
}

/// How the bound stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryState {
    /// The bound.
    pub(crate) max_bytes: u64,
    /// Resident memory now.
    pub(crate) resident_bytes: u64,
    /// Whether the work itself was given up, for the time being.
    pub(crate) is_short: bool,
    /// Of [`Shed::ALL`].
    n_shed: [u64; N_STAGES],
}

impl MemoryState {
    /// How often each kind of thing was asked to be given up.
    pub(crate) fn shed(self) -> impl Iterator<Item = (&'static str, u64)> {
        Shed::ALL.map(Shed::name).into_iter().zip(self.n_shed)
    }
}

/// Sets the bound, or that there is none.
pub(crate) fn set(max_bytes: Option<u64>) {
    if !BOUND.is_to_be_watched(max_bytes) {
        return;
    }
    memory::keep_little();
    let thread = std::thread::Builder::new().name("memory".to_owned());
    if let Err(error) = thread.spawn(|| watch(&BOUND)) {
        *BOUND.watched() = false;
        tracing::error!(%error, "no thread to watch memory: it is not bounded");
    }
}

/// How the bound stands, if there is one.
pub(crate) fn state() -> Option<MemoryState> {
    let max_bytes = BOUND.max_bytes.load(Ordering::Relaxed);
    (max_bytes != 0).then(|| MemoryState {
        max_bytes,
        resident_bytes: cost::resident_bytes(),
        is_short: is_short(),
        n_shed: BOUND.n_asked.each_ref().map(|n| n.load(Ordering::Relaxed)),
    })
}

/// Whether nothing new is to be found out.
pub(crate) fn is_short() -> bool {
    BOUND.is_short.load(Ordering::Relaxed)
}

/// Whether memory is so near the bound that what is being read is broken off.
pub(crate) fn is_used_up() -> bool {
    BOUND.is_used_up.load(Ordering::Relaxed)
}

/// Somebody with a question to work on, who waits for room.
#[derive(Debug)]
pub(crate) struct Question(Option<Waiter<'static>>);

/// Room for one question, while it is worked on.
#[derive(Debug)]
pub(crate) struct Room {
    _working: Option<Working<'static>>,
}

/// A question has come.
pub(crate) fn question() -> Question {
    let is_bounded = BOUND.max_bytes.load(Ordering::Relaxed) != 0;
    Question(is_bounded.then(|| QUESTIONS.join()))
}

impl Question {
    /// Room to work on it; waits for it a moment.
    pub(crate) fn room(&self) -> Option<Room> {
        let Some(waiter) = &self.0 else { return Some(Room { _working: None }) };
        let max_bytes = BOUND.max_bytes.load(Ordering::Relaxed);
        let is_room = |n_working: u64| {
            let taken_bytes = headroom_bytes(max_bytes).saturating_mul(n_working);
            max_bytes == 0 || cost::resident_bytes().saturating_add(taken_bytes) <= max_bytes
        };
        waiter.work(is_room).map(|working| Room { _working: Some(working) })
    }
}

/// What one thread was asked to give up before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked(u64);

impl Asked {
    /// Of what is asked from now on.
    pub(crate) fn from_now() -> Self {
        Self(BOUND.asked.load(Ordering::Acquire))
    }

    /// What is to be given up now, if that was not asked before.
    pub(crate) fn anew(&mut self) -> Option<Shed> {
        let asked = BOUND.asked.load(Ordering::Acquire);
        let stage = Shed::ALL.get(asked as usize % N_STAGES).copied();
        (std::mem::replace(&mut self.0, asked) != asked).then_some(stage).flatten()
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
        let resident_bytes = cost::resident_bytes();
        // Without a descriptor left the kernel tells nothing; and the bound may just have gone.
        if resident_bytes != 0 && max_bytes != 0 {
            bound.keep(&mut judge, resident_bytes, max_bytes);
            let is_plentiful = resident_bytes <= plentiful_bytes(max_bytes);
            look = if is_plentiful { LOOK } else { CLOSE_LOOK };
        }
    }
}

impl MemoryBound {
    const fn unbounded() -> Self {
        Self {
            max_bytes: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            is_short: AtomicBool::new(false),
            is_used_up: AtomicBool::new(false),
            is_watched: Mutex::new(false),
            n_asked: [const { AtomicU64::new(0) }; N_STAGES],
        }
    }

    fn watched(&self) -> MutexGuard<'_, bool> {
        self.is_watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the bound, and tells whether a thread is to be begun that looks.
    fn is_to_be_watched(&self, max_bytes: Option<u64>) -> bool {
        let mut is_watched = self.watched();
        self.max_bytes.store(max_bytes.unwrap_or(0), Ordering::Relaxed);
        max_bytes.is_some() && !std::mem::replace(&mut *is_watched, true)
    }

    /// Whether the thread that looks has nothing to look at, and is none any more.
    fn is_left(&self) -> bool {
        let mut is_watched = self.watched();
        if self.max_bytes.load(Ordering::Relaxed) != 0 {
            return false;
        }
        self.is_short.store(false, Ordering::Relaxed);
        self.is_used_up.store(false, Ordering::Relaxed);
        *is_watched = false;
        true
    }

    /// Looks once.
    fn keep(&self, judge: &mut Judge, resident_bytes: u64, max_bytes: u64) {
        let used_up_bytes = max_bytes.saturating_sub(headroom_bytes(max_bytes) / 4);
        self.is_used_up.store(resident_bytes > used_up_bytes, Ordering::Relaxed);
        let stage = judge.look(resident_bytes, max_bytes, Instant::now());
        // Before it is asked: whoever sees that work is to be given up sees that there is to be none.
        let was_short = self.is_short.swap(judge.is_short(), Ordering::Relaxed);
        if let Some(stage) = stage {
            self.ask(stage, resident_bytes, max_bytes);
        }
        if was_short && !judge.is_short() {
            tracing::warn!(resident_bytes, "memory is no longer short: work goes on");
        }
    }

    fn ask(&self, stage: Shed, resident_bytes: u64, max_bytes: u64) {
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

/// How much is left free below a bound.
fn headroom_bytes(max_bytes: u64) -> u64 {
    HEADROOM_BYTES.max(max_bytes / 8)
}

/// Above this things are given up.
fn high_bytes(max_bytes: u64) -> u64 {
    max_bytes.saturating_sub(headroom_bytes(max_bytes))
}

/// Up to this there is no want.
fn plentiful_bytes(max_bytes: u64) -> u64 {
    high_bytes(max_bytes) - high_bytes(max_bytes) / 8
}

/// Decides what is to be given up.
#[derive(Debug, Default)]
struct Judge {
    /// What was asked for last, while that was not enough.
    last: Option<(Shed, Instant)>,
    plentiful_since: Option<Instant>,
}

impl Judge {
    fn look(&mut self, resident_bytes: u64, max_bytes: u64, now: Instant) -> Option<Shed> {
        let is_plentiful = resident_bytes <= plentiful_bytes(max_bytes);
        let plentiful_since = *self.plentiful_since.get_or_insert(now);
        if !is_plentiful {
            self.plentiful_since = None;
        }
        if resident_bytes <= high_bytes(max_bytes) {
            let is_eased = is_plentiful && now.duration_since(plentiful_since) >= EASING;
            self.last = self.last.filter(|(stage, _)| *stage == Shed::Work && !is_eased);
            return None;
        }
        let stage = match self.last {
            None => Shed::Caches,
            Some((_, at)) if now.duration_since(at) < SETTLING => return None,
            Some((stage, _)) => Shed::ALL.get(stage as usize + 1).copied().unwrap_or(Shed::Work),
        };
        self.last = Some((stage, now));
        Some(stage)
    }

    fn is_short(&self) -> bool {
        self.last.is_some_and(|(stage, _)| stage == Shed::Work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_given_up_until_it_is_enough_and_the_order_begins_anew() {
        let (mut judge, began) = (Judge::default(), Instant::now());
        let mut look = |ms, mib: u64| {
            let stage = judge.look(mib << 20, 800 << 20, began + Duration::from_millis(ms));
            (stage, judge.is_short())
        };
        assert_eq!(look(0, 700), (None, false));
        assert_eq!(look(20, 701), (Some(Shed::Caches), false));
        assert_eq!(look(40, 750), (None, false), "it has no effect yet");
        assert_eq!(look(220, 750), (Some(Shed::Indices), false));
        assert_eq!(look(240, 690), (None, false), "that was enough");
        assert_eq!(look(260, 750), (Some(Shed::Caches), false));
        assert_eq!(look(460, 750), (Some(Shed::Indices), false));
        assert_eq!(look(660, 750), (Some(Shed::Answers), false));
        assert_eq!(look(860, 750), (Some(Shed::Work), true));
        assert_eq!(look(1060, 750), (Some(Shed::Work), true), "again and again");
        assert_eq!(look(1080, 690), (None, true));
        assert_eq!(look(1100, 600), (None, true), "not for long yet");
        assert_eq!(look(3100, 600), (None, false));
    }

    #[test]
    fn whoever_begins_later_is_not_asked_for_what_was() {
        BOUND.ask(Shed::Caches, 2, 1);
        let mut asked = Asked::from_now();
        assert_eq!(asked.anew(), None);
        BOUND.ask(Shed::Indices, 2, 1);
        assert_eq!(asked.anew(), Some(Shed::Indices));
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
    fn who_is_to_give_up_work_sees_that_memory_is_short() {
        let (bound, mut judge) = (MemoryBound::unbounded(), Judge::default());
        let long_ago = Instant::now().checked_sub(SETTLING).unwrap();
        judge.last = Some((Shed::Answers, long_ago));
        bound.keep(&mut judge, 2 << 30, 1 << 30);
        assert_eq!(bound.asked.load(Ordering::Acquire) as usize % N_STAGES, Shed::Work as usize);
        assert!(bound.is_short.load(Ordering::Relaxed));
    }
}
