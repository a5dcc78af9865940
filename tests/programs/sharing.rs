//! Two threads that count, each in a counter of its own or both in one, until the program is ended. As `sharing.c`.

use std::io::Read;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[repr(C, align(64))]
struct Stats {
    hits: AtomicU64,
    misses: AtomicU64,
}

#[repr(align(64))]
struct Padded(AtomicU64);

#[repr(C)]
struct PaddedStats {
    hits: Padded,
    misses: Padded,
}

#[repr(C, align(64))]
struct Counts([AtomicU64; 8]);

/// Globals in one line: a section of their own, in which they are alone.
#[unsafe(link_section = ".data.sharing_pair")]
static LEFT: Half = Half(AtomicU64::new(0));
#[unsafe(link_section = ".data.sharing_pair")]
static MIDDLE: Half = Half(AtomicU64::new(0));
#[unsafe(link_section = ".data.sharing_pair")]
static RIGHT: Half = Half(AtomicU64::new(0));

#[repr(align(32))]
struct Half(AtomicU64);

static STATS: Stats = Stats { hits: AtomicU64::new(0), misses: AtomicU64::new(0) };
static PADDED_STATS: PaddedStats =
    PaddedStats { hits: Padded(AtomicU64::new(0)), misses: Padded(AtomicU64::new(0)) };
static COUNTS: Counts = Counts([const { AtomicU64::new(0) }; 8]);
static PADDED_COUNTS: [Padded; 8] = [const { Padded(AtomicU64::new(0)) }; 8];
static PADDED_LEFT: Padded = Padded(AtomicU64::new(0));
static PADDED_RIGHT: Padded = Padded(AtomicU64::new(0));
static ONE: Padded = Padded(AtomicU64::new(0));
static STOPPED: PaddedBool = PaddedBool(AtomicBool::new(false));

#[repr(align(64))]
struct PaddedBool(AtomicBool);

unsafe extern "C" {
    fn gettid() -> i32;
}

fn tell(counter: &AtomicU64, function: &str, told: &Barrier) {
    // SAFETY: it takes nothing and cannot fail.
    let tid = unsafe { gettid() };
    println!("counter {counter:p} {tid} {function}");
    told.wait();
}

macro_rules! counting {
    ($function:ident) => {
        #[inline(never)]
        fn $function(counter: &AtomicU64, is_atomic: bool, told: &Barrier) {
            tell(counter, stringify!($function), told);
            while !STOPPED.0.load(Ordering::Relaxed) {
                if is_atomic {
                    counter.fetch_add(1, Ordering::Relaxed);
                } else {
                    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                }
            }
        }
    };
}

counting!(count_left);
counting!(count_right);

/// Two boxes that are in one line, or are not.
fn blocks(is_padded: bool) -> (&'static AtomicU64, &'static AtomicU64) {
    let mut left: &AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
    for _ in 0..1000 {
        let right: &AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
        let line = |counter: &AtomicU64| std::ptr::from_ref(counter) as usize / 64;
        if (line(left) == line(right)) != is_padded {
            return (left, right);
        }
        if !is_padded {
            left = right;
        }
    }
    panic!("no two such blocks");
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, kind, how] = &args[..] else { panic!("sharing KIND HOW") };
    let is_atomic = how == "atomic";
    let line = |counter: &AtomicU64| std::ptr::from_ref(counter) as usize / 64;
    let (left, right): (&'static AtomicU64, &'static AtomicU64) = match kind.as_str() {
        "members" => (&STATS.hits, &STATS.misses),
        "padded-members" => (&PADDED_STATS.hits.0, &PADDED_STATS.misses.0),
        // Of three halves of a line side by side two are in one.
        "globals" if line(&LEFT.0) == line(&MIDDLE.0) => (&LEFT.0, &MIDDLE.0),
        "globals" if line(&LEFT.0) == line(&RIGHT.0) => (&LEFT.0, &RIGHT.0),
        "globals" => (&MIDDLE.0, &RIGHT.0),
        "padded-globals" => (&PADDED_LEFT.0, &PADDED_RIGHT.0),
        "blocks" => blocks(false),
        "padded-blocks" => blocks(true),
        "elements" => (&COUNTS.0[2], &COUNTS.0[3]),
        "padded-elements" => (&PADDED_COUNTS[2].0, &PADDED_COUNTS[3].0),
        "one" => (&ONE.0, &ONE.0),
        _ => panic!("{kind}"),
    };
    let told = Barrier::new(3);
    std::thread::scope(|scope| {
        scope.spawn(|| count_left(left, is_atomic, &told));
        scope.spawn(|| count_right(right, is_atomic, &told));
        told.wait();
        println!("ready");
        // Until nobody is there any more.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        STOPPED.0.store(true, Ordering::Relaxed);
    });
}
