//! Processes that are looked up: in time, late, and not at all. A `maps` that is a pipe is one that is
//! held up: opening it waits for whoever writes.

use super::*;
use crate::lookup::MAX_THREADS;
use crate::target::membership::CommFilter;
use dataspace_proto::address::Avma;
use dataspace_proto::record::{Comm, Mmap, Sample};
use std::fs;
use std::path::PathBuf;

const SECOND_NS: u64 = 1_000_000_000;

struct FakeProc(tempfile::TempDir);

impl FakeProc {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn directory(&self, pid: i32) -> PathBuf {
        let directory = self.0.path().join(pid.to_string());
        fs::create_dir_all(directory.join(format!("task/{pid}"))).unwrap();
        fs::write(directory.join(format!("task/{pid}/comm")), format!("name{pid}\n")).unwrap();
        directory
    }

    fn quick(&self, pid: i32) {
        fs::write(self.directory(pid).join("maps"), maps(1)).unwrap();
    }

    /// A process whose mappings cannot be read until [`Self::let_go`].
    fn held_up(&self, pid: i32) {
        let path = self.directory(pid).join("maps");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }

    fn let_go(&self, pid: i32) {
        fs::write(self.directory(pid).join("maps"), maps(1)).unwrap();
    }

    fn gate(&self, comms: CommFilter) -> Gate {
        let membership = Membership::new(true, 1, comms);
        Gate::new(membership, Procfs::new(self.0.path()), false).unwrap()
    }
}

fn maps(page: u64) -> String {
    let start = page * 0x1000;
    format!("{start:x}-{:x} r-xp 00000000 00:00 0 [of old]\n", start + 0x1000)
}

fn sample(pid: i32, time_ns: u64) -> Record {
    Record::Sample(Sample { pid, tid: pid, time_ns, ..Sample::default() })
}

fn mmap(pid: i32, time_ns: u64) -> Record {
    let path = b"new".as_slice().into();
    Record::Mmap(Box::new(Mmap { pid, time_ns, start: Avma(0x1000), path, ..Mmap::default() }))
}

const fn moment(time_ns: u64) -> Moment {
    Moment { time_ns, n_waiting: 0 }
}

/// Waits until something is told, as the reader does.
fn told(gate: &mut Gate, time_ns: u64) -> Vec<Record> {
    let mut told = Vec::new();
    while told.is_empty() {
        gate.wait();
        gate.take_answers(time_ns, |record| told.push(record));
    }
    told
}

fn paths(records: &[Record]) -> Vec<&[u8]> {
    let path = |record: &Record| matches!(record, Record::Mmap(_));
    let mappings = records.iter().filter(|record| path(record));
    mappings
        .filter_map(|record| match record {
            Record::Mmap(mmap) => Some(&*mmap.path),
            _ => None,
        })
        .collect()
}

#[test]
fn a_sample_waits_until_its_process_was_told() {
    let procfs = FakeProc::new();
    procfs.quick(7);
    let mut gate = procfs.gate(CommFilter::default());
    assert_eq!(gate.admits(&sample(7, 100), moment(200)), Verdict::Waits);
    assert!(gate.is_waiting());
    let told = told(&mut gate, 100);
    assert_eq!(paths(&told), [b"[of old]"]);
    assert!(told.iter().all(|record| record.time_ns() == Some(100)), "{told:?}");
    assert!(!gate.is_waiting());
    assert_eq!(gate.admits(&sample(7, 100), moment(200)), Verdict::Admitted);
    assert_eq!(gate.n_untold(), 0);
}

#[test]
fn many_mappings_are_told_piece_by_piece_and_the_sample_waits() {
    let procfs = FakeProc::new();
    let n_pages = 2 * MAX_TOLD as u64 + 7;
    let text: String = (1..=n_pages).map(maps).collect();
    fs::write(procfs.directory(7).join("maps"), text).unwrap();
    let mut gate = procfs.gate(CommFilter::default());
    let mut n_told = Vec::new();
    while gate.admits(&sample(7, 100), moment(200)) == Verdict::Waits {
        gate.wait();
        let mut told = Vec::new();
        gate.take_answers(100, |record| told.push(record));
        n_told.extend((!told.is_empty()).then_some(told.len()));
    }
    // The name of its thread comes first.
    assert_eq!(n_told, [MAX_TOLD, MAX_TOLD, 8]);
    assert!(!gate.is_telling());
}

#[test]
fn whoever_is_held_up_holds_up_others_for_a_second_at_most() {
    let procfs = FakeProc::new();
    procfs.held_up(7);
    procfs.quick(8);
    let mut gate = procfs.gate(CommFilter::default());
    assert_eq!(gate.admits(&sample(7, 100), moment(SECOND_NS)), Verdict::Waits);
    let late = moment(100 + SECOND_NS);
    assert_eq!(gate.admits(&sample(7, 100), late), Verdict::Admitted, "without its mappings");
    assert_eq!(gate.admits(&sample(7, SECOND_NS), late), Verdict::Admitted, "nor is the next kept");
    assert_eq!(gate.n_untold(), 2);
    // Others have another thread.
    assert_eq!(gate.admits(&sample(8, SECOND_NS), late), Verdict::Waits);
    assert_eq!(paths(&told(&mut gate, SECOND_NS)), [b"[of old]"]);
    assert_eq!(gate.admits(&sample(8, SECOND_NS), late), Verdict::Admitted);
    // What comes of it meanwhile is newer than the answer, and told after it.
    assert_eq!(gate.admits(&mmap(7, SECOND_NS), late), Verdict::Outside);
    procfs.let_go(7);
    let told = told(&mut gate, 2 * SECOND_NS);
    assert_eq!(paths(&told), [b"[of old]".as_slice(), b"new"]);
    assert!(told.iter().all(|record| record.time_ns() == Some(2 * SECOND_NS)), "{told:?}");
    assert_eq!(gate.admits(&sample(7, 2 * SECOND_NS), late), Verdict::Admitted);
    assert_eq!(gate.n_untold(), 2);
}

#[test]
fn no_more_than_so_many_records_wait() {
    let procfs = FakeProc::new();
    procfs.held_up(7);
    let mut gate = procfs.gate(CommFilter::default());
    let with = |n_waiting| Moment { time_ns: 100, n_waiting };
    assert_eq!(gate.admits(&sample(7, 100), with(500)), Verdict::Waits);
    assert_eq!(gate.admits(&sample(7, 100), with(499 + MAX_WAITING)), Verdict::Waits);
    assert_eq!(gate.admits(&sample(7, 100), with(500 + MAX_WAITING)), Verdict::Admitted);
    procfs.let_go(7);
}

#[test]
fn a_process_whose_name_cannot_be_known_is_none_of_that_name() {
    let procfs = FakeProc::new();
    procfs.held_up(7);
    procfs.quick(8);
    let include = vec![b"name8".as_slice().into()];
    let mut gate = procfs.gate(CommFilter { include, ..CommFilter::default() });
    let late = moment(100 + SECOND_NS);
    assert_eq!(gate.admits(&sample(7, 100), late), Verdict::Outside);
    assert_eq!(gate.admits(&sample(8, SECOND_NS), late), Verdict::Waits);
    assert_eq!(paths(&told(&mut gate, SECOND_NS)), [b"[of old]"]);
    assert_eq!(gate.admits(&sample(8, SECOND_NS), late), Verdict::Admitted);
    procfs.let_go(7);
}

#[test]
fn an_answer_about_what_exec_replaced_is_not_told() {
    let procfs = FakeProc::new();
    procfs.held_up(7);
    procfs.quick(8);
    let mut gate = procfs.gate(CommFilter::default());
    let late = moment(100 + SECOND_NS);
    assert_eq!(gate.admits(&sample(7, 100), late), Verdict::Admitted);
    let exec = Comm { pid: 7, tid: 7, is_exec: true, ..Comm::default() };
    assert_eq!(gate.admits(&Record::Comm(Box::new(exec)), late), Verdict::Admitted);
    assert_eq!(gate.admits(&sample(7, 100), late), Verdict::Admitted);
    assert_eq!(gate.n_untold(), 1, "what it maps from then on is told by records");
    procfs.let_go(7);
    assert_eq!(gate.admits(&sample(8, SECOND_NS), late), Verdict::Waits);
    let told = told(&mut gate, SECOND_NS);
    let is_of_7 = |record: &Record| matches!(record, Record::Mmap(mmap) if mmap.pid == 7);
    assert!(!told.iter().any(is_of_7), "{told:?}");
}

#[test]
fn nobody_waits_for_threads_that_are_all_held_up() {
    let procfs = FakeProc::new();
    let stuck = 100..100 + MAX_THREADS as i32;
    stuck.clone().for_each(|pid| procfs.held_up(pid));
    procfs.quick(8);
    procfs.quick(9);
    let mut gate = procfs.gate(CommFilter::default());
    let late = moment(100 + SECOND_NS);
    for pid in stuck.clone() {
        assert_eq!(gate.admits(&sample(pid, 100), late), Verdict::Admitted);
    }
    let fresh = |pid| sample(pid, 100 + SECOND_NS);
    assert_eq!(gate.admits(&fresh(8), late), Verdict::Admitted, "not a second each");
    assert_eq!(gate.n_untold(), MAX_THREADS as u64 + 1, "and it is counted");
    // One is let go: who asked is answered, and who asks then waits again.
    procfs.let_go(100);
    let mut pids = Vec::new();
    while pids.len() < 2 {
        let told = told(&mut gate, SECOND_NS);
        pids.extend(told.iter().filter_map(|record| match record {
            Record::Mmap(mmap) => Some(mmap.pid),
            _ => None,
        }));
    }
    assert_eq!(pids, [100, 8]);
    assert_eq!(gate.admits(&fresh(9), late), Verdict::Waits);
    stuck.skip(1).for_each(|pid| procfs.let_go(pid));
}

#[test]
fn the_number_of_processes_that_are_asked_about_is_bounded() {
    let procfs = FakeProc::new();
    let pids = 100..100 + 2 * MAX_ASKED as i32;
    pids.clone().for_each(|pid| procfs.held_up(pid));
    let mut gate = procfs.gate(CommFilter::default());
    for pid in pids.clone() {
        assert_eq!(gate.admits(&sample(pid, 100), moment(100 + SECOND_NS)), Verdict::Admitted);
    }
    assert!(gate.asked.len() <= MAX_ASKED);
    let n_kept = |gate: &Gate| gate.asked.get(&100).map(|asked| asked.kept.len());
    for _ in 0..MAX_KEPT {
        gate.admits(&mmap(100, 100), moment(100));
    }
    assert_eq!(n_kept(&gate), Some(MAX_KEPT));
    gate.admits(&mmap(100, 100), moment(100));
    assert_eq!(n_kept(&gate), None, "its next sample asks again");
}
