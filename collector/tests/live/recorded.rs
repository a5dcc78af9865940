//! Sessions that are written to a file: it holds what the channel got.

use crate::support::{Program, Said, Session, open, with_tracefs};
use dataspace_collector::channel::batch;
use dataspace_collector::event::EventSelector;
use dataspace_collector::live::{Heard, LiveConfig};
use dataspace_collector::perf_data::read::Recording;
use dataspace_collector::perf_data::write::{Output, Recorded, Recorder, RecorderConfig};
use dataspace_collector::target::TargetSpec;
use dataspace_proto::accounting::Collected;
use dataspace_proto::event::Sampling;
use dataspace_proto::record::{FileIdentity, Mmap, Record};
use std::path::{Path, PathBuf};

/// Touches what a breakpoint watches, memory for the first time, and the CPU; in threads, in
/// children and behind exec.
const BUSY: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
volatile long watched __attribute__((aligned(8)));
static void *work(void *unused) {
    for (int round = 0; round < 20; round++) {
        char *memory = mmap(0, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(memory, round, 1 << 18);
        munmap(memory, 1 << 18);
        watched++;
    }
    for (volatile long i = 0; i < 30000000; i++) {}
    return 0;
}
int main(int argc, char **argv) {
    pthread_t threads[3];
    if (argc == 1) getchar();
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    if (argc == 1 && fork() == 0) execl(argv[0], argv[0], "again", (char *)0);
    while (wait(0) > 0) {}
    return 0;
}
"#;

fn recorder(path: &Path) -> Recorder {
    Recorder::create(RecorderConfig {
        output: Output::File(path.into()),
        max_bytes: None,
        program: "test".to_owned(),
        command_line: Vec::new(),
    })
    .unwrap()
}

/// What was sampled or happened to a task, as text with every field, in the order it came in.
///
/// Which file was mapped before the session `/proc` tells by inode; a recording knows the build-id,
/// if the same file was mapped again.
fn of_tasks<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<String> {
    let text = |record: &Record| match record {
        // Of the vdso only the recording's table has one.
        Record::Mmap(mmap) if mmap.time_ns == 0 || &*mmap.path == b"[vdso]" => {
            format!("{:?}", Mmap { identity: FileIdentity::None, ..(**mmap).clone() })
        }
        record => format!("{record:?}"),
    };
    let is_of_task = |record: &&Record| match record {
        // The kernel's own place is in a recording only.
        Record::Mmap(mmap) => mmap.pid >= 0,
        Record::Sample(_) | Record::Comm(_) | Record::Fork(_) | Record::Exit(_) => true,
        _ => false,
    };
    records.into_iter().filter(is_of_task).map(text).collect()
}

fn read(path: &Path) -> (Vec<Record>, Collected) {
    let mut recording = Recording::open(path).unwrap();
    let mut records = Vec::new();
    while let Some(record) = recording.next_record().unwrap() {
        records.push(record);
    }
    (records, recording.collected())
}

/// Records a session whose channel is heard too, and holds one to the other.
fn check(program: &Program, events: &[&str], attach: bool) -> Option<(Said, Recorded)> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("perf.data");
    let mut partner = program.spawn();
    let target = if attach {
        TargetSpec::Pids(vec![partner.pid()])
    } else {
        let mut argv = program.argv();
        argv.push("again".into());
        TargetSpec::Command(argv)
    };
    let mut config = LiveConfig::new(target);
    config.events = events.iter().map(|event| EventSelector::parse(event).unwrap()).collect();
    if events == ["cpu-clock"] {
        config.sampling = Some(Sampling::Period(100_000));
    }
    let live = open(config)?;
    let opened = live.events().to_vec();
    let recorder = recorder(&path);
    let progress = recorder.progress();
    let (sender, receiver) = batch::channel(64, 1024);
    let running = live.record(recorder, sender, Heard::Everything, &|| false).unwrap();
    partner.say("go");
    let (said, outcome) = Session { running, receiver, said: Said::default() }.finish();
    partner.finish();
    let recorded = progress.finished().unwrap();
    let (records, collected) = read(&path);

    let live = of_tasks(&said.records);
    let read = of_tasks(&records);
    assert!(live.len() > 100, "{} records", live.len());
    if outcome.collected.late == 0 {
        for (live, read) in live.iter().zip(&read) {
            assert_eq!(live, read);
        }
    }
    assert_eq!(live.len(), read.len());
    let announced = |records: &[Record]| -> Vec<String> {
        let is_event = |record: &&Record| matches!(record, Record::Event(_));
        records.iter().filter(is_event).map(|event| format!("{event:?}")).collect()
    };
    assert_eq!(announced(&said.records), announced(&records));
    assert_eq!(announced(&records).len(), opened.len());
    assert_eq!(collected.kernel_samples, outcome.collected.kernel_samples);
    assert_eq!(collected.delivered, outcome.collected.delivered);
    assert_eq!(collected.delivered, recorded.n_samples);
    assert_eq!(collected.ring_full, recorded.n_lost);
    assert_eq!(recorded.n_bytes, path.metadata().unwrap().len());
    let warnings: Vec<_> = records.iter().filter(|r| matches!(r, Record::Warning(_))).collect();
    assert!(warnings.is_empty(), "{warnings:?}");
    Some((said, recorded))
}

#[test]
fn a_recording_holds_what_the_channel_got_field_by_field() {
    let program = Program::new(BUSY);
    let breakpoint = format!("mem:{:#x}/8:rw:u", program.address("watched"));
    for attach in [false, true] {
        for events in
            [&["cpu-clock"][..], &["page-faults"], &["cpu-clock", &breakpoint, "page-faults:u"]]
        {
            let Some((said, _)) = check(&program, events, attach) else { return };
            assert!(said.samples().count() > 50, "{events:?}");
        }
    }
}

#[test]
fn a_recorded_tracepoint_has_its_format_in_the_file() {
    with_tracefs("live::recorded::a_recorded_tracepoint_has_its_format_in_the_file", || {
        let program = Program::new(BUSY);
        check(&program, &["syscalls:sys_enter_mmap"], false);
    });
}

/// Page faults recorded with nobody listening to them.
struct Unheard {
    /// The recording's.
    _dir: tempfile::TempDir,
    path: PathBuf,
    recorded: Recorded,
    collected: Collected,
    n_heard: usize,
}

fn unheard(ring_pages: Option<usize>) -> Option<Unheard> {
    let program = Program::new(BUSY);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("perf.data");
    let mut argv = program.argv();
    argv.push("again".into());
    let config = LiveConfig {
        events: vec![EventSelector::parse("page-faults").unwrap()],
        ring_pages,
        ..LiveConfig::new(TargetSpec::Command(argv))
    };
    let live = open(config)?;
    let recorder = recorder(&path);
    let (sender, receiver) = batch::channel(4, 16);
    let progress = recorder.progress();
    let running = live.record(recorder, sender, Heard::Notices, &|| false).unwrap();
    let mut n_heard = 0;
    while let Some(batch) = receiver.receive() {
        n_heard += of_tasks(batch.iter()).len();
        receiver.recycle(batch);
    }
    let collected = running.join().collected;
    let recorded = progress.finished().unwrap();
    assert_eq!(collected.kernel_samples, recorded.n_samples + recorded.n_lost);
    Some(Unheard { _dir: dir, path, recorded, collected, n_heard })
}

#[test]
fn without_listeners_a_recording_is_as_whole() {
    let Some(Unheard { path, collected, n_heard, _dir, .. }) = unheard(None) else { return };
    assert_eq!(n_heard, 0);
    assert_eq!(collected.event_counts, [collected.kernel_samples], "each fault is a sample");
    assert_eq!(read(&path).1.kernel_samples, collected.kernel_samples);
}

#[test]
fn what_is_lost_is_counted_in_the_recording_too() {
    // Room for six samples.
    let Some(Unheard { path, recorded, collected, _dir, .. }) = unheard(Some(1)) else { return };
    assert!(recorded.n_lost > 0, "{collected:?}");
    let (_, read) = read(&path);
    assert_eq!((read.kernel_samples, read.ring_full), (collected.kernel_samples, recorded.n_lost));
}
