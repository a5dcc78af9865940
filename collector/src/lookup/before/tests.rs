//! Processes of a `/proc` of ours. A `maps` that is a named pipe is one of a process that never answers:
//! opening it waits for whoever writes.

use super::*;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Enough for who answers, on a machine that does other things too: those who do not are waited for so long.
const SHORT: Duration = Duration::from_secs(5);

struct FakeProc(tempfile::TempDir);

impl FakeProc {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn root(&self) -> &Path {
        self.0.path()
    }

    fn maps(&self, pid: i32) -> PathBuf {
        self.root().join(format!("{pid}/maps"))
    }

    /// A process of user `uid` with a name and as many mappings as there are `paths`.
    fn make(&self, pid: i32, uid: u32, paths: &[String]) {
        let task = self.root().join(format!("{pid}/task/{pid}"));
        fs::create_dir_all(&task).unwrap();
        fs::write(task.join("comm"), format!("name{pid}\n")).unwrap();
        let status = format!("Name:\tx\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n");
        fs::write(self.root().join(format!("{pid}/status")), status).unwrap();
        self.map(pid, paths);
    }

    fn map(&self, pid: i32, paths: &[String]) {
        let line = |path: &String| format!("1000-2000 r-xp 00000000 00:00 0 {path}\n");
        fs::write(self.maps(pid), paths.iter().map(line).collect::<String>()).unwrap();
    }

    /// The same, whose mappings cannot be read until [`Self::let_go`].
    fn held_up(&self, pid: i32, uid: u32) {
        self.make(pid, uid, &[]);
        fs::remove_file(self.maps(pid)).unwrap();
        mknodat(CWD, self.maps(pid), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }

    /// Has one thread that reads of it go on.
    fn let_go(&self, pid: i32) {
        self.map(pid, &["/late".to_owned()]);
    }

    fn before(&self, held_up: &'static HeldUp, deadline: Duration, pids: &[i32]) -> Before {
        Before::within(held_up, deadline, pids.to_vec(), &Procfs::new(self.root()))
    }
}

/// Records that were told, a line for each.
fn told(before: &mut Before, is_over: &dyn Fn() -> bool) -> Vec<String> {
    let records = std::iter::from_fn(|| before.next_unless(is_over));
    let lines = records.map(|record| match record {
        Record::Comm(comm) => format!("{} is {}", comm.pid, String::from_utf8_lossy(&comm.name)),
        Record::Mmap(mmap) => format!("{} has {}", mmap.pid, String::from_utf8_lossy(&mmap.path)),
        Record::Warning(text) => text.to_string(),
        other => format!("{other:?}"),
    });
    lines.collect()
}

fn of(path: &str) -> Vec<String> {
    vec![path.to_owned()]
}

/// Waits until all threads that were held up have come back.
fn come_back(held_up: &'static HeldUp, user: ForUser) {
    while !held_up.lock().is_empty() || !held_up.places.has_room(user) {
        thread::yield_now();
    }
}

#[test]
fn who_does_not_answer_costs_nobody_else_his_records() {
    static HELD_UP: HeldUp = HeldUp::new(4);
    let procfs = FakeProc::new();
    procfs.make(6, 1001, &of("/six"));
    procfs.held_up(7, 1000);
    procfs.make(8, 1001, &["/eight".to_owned(), "/and more".to_owned()]);
    let mut before = procfs.before(&HELD_UP, SHORT, &[6, 7, 8, 9]);
    let mut all = told(&mut before, &|| false);
    let is_warning = |line: &String| line.starts_with("process 7 does not answer: its mappings");
    let warning = all.remove(all.iter().position(is_warning).unwrap());
    // In any order: on a busy machine one that answers may be set aside, too.
    let answered = ["6 has /six", "8 has /and more", "8 has /eight"];
    let named = ["6 is name6", "7 is name7", "8 is name8"];
    let all: BTreeSet<&str> = all.iter().map(String::as_str).collect();
    assert_eq!(all, answered.into_iter().chain(named).collect(), "names cannot be held up");
    assert!(!HELD_UP.places.has_room(Some(1000)), "its reader is there still");
    // It is known, and not waited for again.
    let mut again = procfs.before(&HELD_UP, Duration::MAX, &[7, 6]);
    let again = told(&mut again, &|| false);
    assert!(again.contains(&warning) && again.contains(&"7 is name7".to_owned()), "{again:?}");
    procfs.let_go(7);
    come_back(&HELD_UP, Some(1000));
    fs::remove_file(procfs.maps(7)).unwrap();
    procfs.map(7, &of("/seven"));
    let mut answered = procfs.before(&HELD_UP, Duration::MAX, &[7]);
    assert_eq!(told(&mut answered, &|| false), ["7 is name7", "7 has /seven"]);
}

#[test]
fn processes_of_one_user_that_hang_leave_others_their_readers() {
    static HELD_UP: HeldUp = HeldUp::new(8);
    let procfs = FakeProc::new();
    let stuck = 10..15;
    stuck.clone().for_each(|pid| procfs.held_up(pid, 1000));
    procfs.make(20, 1000, &of("/of the same"));
    procfs.make(21, 1001, &of("/of another"));
    procfs.make(22, 0, &of("/of root"));
    let pids: Vec<i32> = stuck.clone().chain([20, 21, 22]).collect();
    let all = told(&mut procfs.before(&HELD_UP, SHORT, &pids), &|| false);
    // A quarter of eight are held up, and the others of this user are not tried.
    let is_silent = |line: &&String| line.contains("does not answer: its mappings");
    let silent: Vec<&String> = all.iter().filter(is_silent).collect();
    assert!(silent[0].contains("process 10 ") && silent[1].contains("process 11 "), "{silent:?}");
    assert_eq!(silent.len(), 2);
    let refused: Vec<_> = all.iter().filter(|line| line.contains("as many readers")).collect();
    assert_eq!(refused.len(), 1, "once for all");
    assert!(refused[0].contains("of process 12 and 3 others"), "{refused:?}");
    let mapped: BTreeSet<_> = all.iter().filter(|line| line.contains(" has ")).cloned().collect();
    assert_eq!(mapped, ["21 has /of another", "22 has /of root"].map(str::to_owned).into());
    let named: BTreeSet<String> = pids.iter().map(|pid| format!("{pid} is name{pid}")).collect();
    assert!(named.iter().all(|name| all.contains(name)), "{all:?}");
    let n_readers = HELD_UP.lock().len();
    assert_eq!(n_readers, 2);
    for pid in [10, 11] {
        procfs.let_go(pid);
    }
    come_back(&HELD_UP, Some(1000));
}

#[test]
fn one_that_answers_late_is_told_whole() {
    static HELD_UP: HeldUp = HeldUp::new(4);
    let procfs = FakeProc::new();
    procfs.held_up(7, 1000);
    procfs.make(8, 1001, &of("/eight"));
    let mut before = procfs.before(&HELD_UP, Duration::MAX, &[7, 8]);
    // It was set aside when the other one has its turn.
    let mut seen = Vec::new();
    while seen.last().is_none_or(|line: &String| line != "8 has /eight") {
        if let Some(Record::Mmap(mmap)) = before.next_unless(&|| false) {
            seen.push(format!("{} has {}", mmap.pid, String::from_utf8_lossy(&mmap.path)));
        }
    }
    procfs.let_go(7);
    assert_eq!(told(&mut before, &|| false), ["7 has /late"]);
    drop(before);
    come_back(&HELD_UP, Some(1000));
}

#[test]
fn who_is_waited_for_keeps_nobody_who_wants_to_go() {
    static HELD_UP: HeldUp = HeldUp::new(4);
    let procfs = FakeProc::new();
    procfs.held_up(7, 1000);
    procfs.make(8, 1000, &of("/eight"));
    let mut before = procfs.before(&HELD_UP, Duration::MAX, &[7]);
    let n_asked = Cell::new(0);
    // Asked while it is waited for, not only before.
    let is_over = || n_asked.replace(n_asked.get() + 1) == 3;
    assert_eq!(told(&mut before, &is_over), ["7 is name7"]);
    assert!(before.next_unless(&|| false).is_none());
    assert!(!HELD_UP.places.has_room(Some(1000)), "the thread is counted");
    procfs.let_go(7);
    come_back(&HELD_UP, Some(1000));
}

#[test]
fn many_that_let_little_come_are_waited_for_no_longer_than_a_few() {
    static HELD_UP: HeldUp = HeldUp::new(64);
    let procfs = FakeProc::new();
    let stuck = 10..14;
    stuck.clone().for_each(|pid| procfs.held_up(pid, 1000));
    let pids: Vec<i32> = stuck.clone().collect();
    let mut before = procfs.before(&HELD_UP, Duration::MAX, &pids);
    // As if others had taken all the time there is.
    before.waited = MAX_WAIT;
    let all = told(&mut before, &|| false);
    let n_silent = all.iter().filter(|line| line.contains("does not answer")).count();
    assert_eq!(n_silent, pids.len());
    stuck.for_each(|pid| procfs.let_go(pid));
    come_back(&HELD_UP, Some(1000));
}

#[test]
fn what_was_before_is_read_when_it_is_taken() {
    static HELD_UP: HeldUp = HeldUp::new(4);
    let procfs = FakeProc::new();
    let many: Vec<String> = (0..3 * MAX_RECORDS).map(|n| format!("/{n}")).collect();
    procfs.make(7, 0, &many);
    procfs.make(8, 0, &of("/read too early"));
    let mut before = procfs.before(&HELD_UP, Duration::MAX, &[7, 8, 9]);
    assert!(matches!(before.next_unless(&|| false), Some(Record::Comm(_))));
    procfs.map(8, &of("/eight"));
    let all = told(&mut before, &|| false);
    let expected = many.iter().map(|path| format!("7 has {path}"));
    let expected = expected.chain(["8 is name8".to_owned(), "8 has /eight".to_owned()]);
    assert_eq!(all, expected.collect::<Vec<_>>(), "and there is no process 9");
    assert!(HELD_UP.places.take(Some(1)).is_some(), "nobody is held up");
}

#[test]
fn a_thread_reads_no_further_than_is_taken() {
    let procfs = FakeProc::new();
    let many: Vec<String> = (0..3 * MAX_RECORDS).map(|n| format!("/{n}")).collect();
    procfs.make(7, 0, &many);
    let reader = SnapshotReader::begin(Procfs::new(procfs.root())).unwrap();
    reader.jobs.send(Job { pid: 7, with_mappings: true }).unwrap();
    let mut n_told = 0;
    while !reader.told.is_full() {
        thread::yield_now();
    }
    while let Ok(Some(_)) = reader.told.recv() {
        n_told += 1;
        assert!(reader.told.len() <= MAX_RECORDS);
    }
    assert_eq!(n_told, 3 * MAX_RECORDS + 1, "all mappings, and the name");
}
