//! Meetings: accesses to a line between which another thread touches it, before and after.
//!
//! One sample of a thread that wrote a line long ago says nothing, nor does a stack that another thread was given after
//! it. A line goes to and fro where a thread touches it, then another, then the first again, in short order.

use crate::limit;
use rustc_hash::FxHashMap;

/// Longest time before and after an access in which another thread is looked for. A line that goes to and fro less often
/// than once a second costs nothing that anybody would notice.
const LONGEST_NS: u64 = 1_000_000_000;

/// The same for a line that is sampled often: there samples tell more closely. Threads that wait for a CPU, which many
/// share, still meet in it.
const SHORTEST_NS: u64 = 100_000_000;

/// Samples of a line, at its mean rate, in which another thread is looked for; between the two times above.
const N_NEAR: u64 = 64;

/// One in so many of a line's samples a thread must have to count: one that reads a counter now and then makes nobody
/// else wait more often than that.
const RAREST: usize = 50;

/// Samples on a line without which a thread does not count.
const LEAST_OF_THREAD: usize = 3;

/// Accesses that must have met others before there is a verdict.
pub(crate) const LEAST_MET: u64 = 6;

/// One access to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineAccess {
    pub(crate) time_ns: u64,
    pub(crate) tid: i32,
    /// The bytes of the line that it touches, a bit each, the first the lowest.
    pub(crate) bytes: u64,
    pub(crate) is_write: bool,
}

/// Bytes at which an access met others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// Others touch other bytes only.
    Apart,
    /// Others touch the same.
    Same,
}

/// Places of one thread's accesses among all of a line, in order.
#[derive(Debug, Default)]
struct OfThread {
    all: Vec<u32>,
    writes: Vec<u32>,
}

/// Tells which of a line's accesses, which are in order of time, met others.
pub(crate) fn meetings(accesses: &[LineAccess]) -> Vec<Option<Meeting>> {
    let threads = sharers(accesses);
    let mut met = vec![None; accesses.len()];
    if threads.len() < 2 {
        return met;
    }
    let near_ns = near_ns(accesses);
    for (tid, of_thread) in &threads {
        let others = || threads.iter().filter(|(other, _)| other != tid);
        for at in &of_thread.all {
            let access = accesses[*at as usize];
            let meetings = others().filter_map(|(_, other)| {
                // Two that read do not disturb each other.
                let theirs = if access.is_write { &other.all } else { &other.writes };
                meeting(accesses, *at, theirs, near_ns)
            });
            met[*at as usize] = meetings.fold(None, |known, new| match known {
                Some(Meeting::Same) => known,
                _ => Some(new),
            });
        }
    }
    met
}

/// The meeting of the access at `at` with another thread, which has accesses at `theirs`.
fn meeting(accesses: &[LineAccess], at: u32, theirs: &[u32], near_ns: u64) -> Option<Meeting> {
    let next = theirs.partition_point(|their| *their < at);
    let access = accesses[at as usize];
    let before = accesses[*theirs.get(next.checked_sub(1)?)? as usize];
    let after = accesses[*theirs.get(next)? as usize];
    let is_near = access.time_ns.saturating_sub(before.time_ns) <= near_ns
        && after.time_ns.saturating_sub(access.time_ns) <= near_ns;
    let is_same = access.bytes & (before.bytes | after.bytes) != 0;
    is_near.then_some(if is_same { Meeting::Same } else { Meeting::Apart })
}

/// Threads that touch the line often enough to count, with their accesses.
fn sharers(accesses: &[LineAccess]) -> Vec<(i32, OfThread)> {
    let mut threads: FxHashMap<i32, OfThread> = FxHashMap::default();
    for (at, access) in (0..).zip(accesses) {
        let of_thread = threads.entry(access.tid).or_default();
        of_thread.all.push(at);
        if access.is_write {
            of_thread.writes.push(at);
        }
    }
    let least = LEAST_OF_THREAD.max(accesses.len() / RAREST);
    let mut threads: Vec<_> =
        threads.into_iter().filter(|(_, of_thread)| of_thread.all.len() >= least).collect();
    threads.sort_unstable_by_key(|(tid, of_thread)| (usize::MAX - of_thread.all.len(), *tid));
    threads.truncate(limit::MAX_LINE_SHARERS);
    threads
}

/// Time before and after an access in which another thread is looked for.
fn near_ns(accesses: &[LineAccess]) -> u64 {
    let (Some(first), Some(last)) = (accesses.first(), accesses.last()) else { return 0 };
    let gaps = accesses.len().saturating_sub(1).max(1) as u64;
    let mean_ns = last.time_ns.saturating_sub(first.time_ns) / gaps;
    mean_ns.saturating_mul(N_NEAR).clamp(SHORTEST_NS, LONGEST_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    /// Accesses as text: a thread's letter, `r` or `w`, and the first of eight bytes; one each so many milliseconds.
    fn accesses(text: &str, gap_ms: u64) -> Vec<LineAccess> {
        let one = |(number, word): (u64, &str)| {
            let [thread, access, at @ ..] = word.as_bytes() else { panic!("{word}") };
            let at: u32 = std::str::from_utf8(at).unwrap().parse().unwrap();
            LineAccess {
                time_ns: number * gap_ms * MS,
                tid: i32::from(*thread),
                bytes: 0xff << at,
                is_write: *access == b'w',
            }
        };
        (0..).zip(text.split_whitespace()).map(one).collect()
    }

    /// Accesses that met others at other bytes, and at the same.
    fn counts(accesses: &[LineAccess]) -> (usize, usize) {
        let met = meetings(accesses);
        let count = |kind| met.iter().filter(|it| **it == Some(kind)).count();
        (count(Meeting::Apart), count(Meeting::Same))
    }

    #[test]
    fn only_what_comes_between_others_has_met_them() {
        let check = |text: &str, gap_ms: u64, expected: (usize, usize)| {
            assert_eq!(counts(&accesses(text, gap_ms)), expected, "{text}");
        };
        check("aw0 bw8 aw0 bw8 aw0 bw8", 1, (4, 0));
        check("aw0 bw0 aw0 bw0 aw0 bw0", 1, (0, 4));
        // Who only reads disturbs nobody who reads, and is disturbed by who writes.
        check("ar0 br8 ar0 br8 ar0 br8", 1, (0, 0));
        check("ar0 bw8 ar0 bw8 ar0 bw8", 1, (4, 0));
        check("ar0 bw0 ar0 bw0 ar0 bw0", 1, (0, 4));
        // Written at first, and by others from then on.
        check("mw0 mw0 mw0 aw0 aw0 aw0 aw0", 1, (0, 0));
        // A stack that others are given, one after the other.
        check("aw0 aw0 aw0 bw0 bw0 bw0 cw0 cw0 cw0", 1, (0, 0));
        // To and fro, but seldom.
        check("aw0 bw8 aw0 bw8 aw0 bw8", 2_000, (0, 0));
        check("aw0 bw8 aw0 bw8 aw0 bw8", 400, (4, 0));
        check("aw0 aw0 aw0", 1, (0, 0));
        check("", 1, (0, 0));
    }

    #[test]
    fn one_who_looks_now_and_then_does_not_count() {
        let writer = ["aw0"; 100].join(" ");
        let text = ["br0", &writer, "br0", &writer, "br0", &writer, "br0"].join(" ");
        assert_eq!(counts(&accesses(&text, 1)), (0, 0));
        let writer = ["aw0"; 20].join(" ");
        let text = ["br0", &writer, "br0", &writer, "br0", &writer, "br0"].join(" ");
        assert_eq!(counts(&accesses(&text, 1)).1, 62);
    }

    #[test]
    fn turns_of_a_busy_machine_meet_and_a_handing_over_does_not() {
        let turn = |who: &str| [who; 8].join(" ");
        let turns: Vec<String> = ["aw0", "bw8"].repeat(10).into_iter().map(turn).collect();
        assert_eq!(counts(&accesses(&turns.join(" "), 1)), (144, 0));
        let long = |who: &str| [who; 300].join(" ");
        let handed = [long("aw0"), long("bw0"), long("aw0"), long("bw0")].join(" ");
        assert_eq!(counts(&accesses(&handed, 1)), (0, 0));
    }

    fn access() -> impl Strategy<Value = LineAccess> {
        (0..4_000u64, 0..4i32, 0..57u32, any::<bool>()).prop_map(|(ms, tid, at, is_write)| {
            LineAccess { time_ns: ms * MS, tid, bytes: 0xff << at, is_write }
        })
    }

    proptest! {
        /// By the definition, without a search.
        #[test]
        fn a_meeting_is_what_its_definition_says(
            mut accesses in proptest::collection::vec(access(), 0..120),
        ) {
            accesses.sort_by_key(|access| access.time_ns);
            let count = |tid| accesses.iter().filter(|it| it.tid == tid).count();
            let counts = |tid| count(tid) >= 3.max(accesses.len() / 50);
            let near_ns = near_ns(&accesses);
            for (at, met) in meetings(&accesses).into_iter().enumerate() {
                let access = accesses[at];
                let mut expected = None;
                for other in (0..4).filter(|other| *other != access.tid && counts(*other)) {
                    let disturbs = |it: &&LineAccess| {
                        it.tid == other && (it.is_write || access.is_write)
                            && it.time_ns.abs_diff(access.time_ns) <= near_ns
                    };
                    let before = accesses[..at].iter().rev().find(disturbs);
                    let after = accesses[at..].iter().find(disturbs);
                    let (Some(before), Some(after)) = (before, after) else { continue };
                    if access.bytes & (before.bytes | after.bytes) != 0 {
                        expected = Some(Meeting::Same);
                    } else {
                        expected = expected.or(Some(Meeting::Apart));
                    }
                }
                prop_assert_eq!(met, expected.filter(|_| counts(access.tid)));
            }
        }
    }
}
