//! Targets that are covered by events on whole CPUs: names, control groups, many threads. What is
//! counted is touches of one address, of which the programs know the number.

use crate::support::{Partner, Program, Said, Session, copy_program, open};
use dataspace_collector::event::EventSelector;
use dataspace_collector::live::{LiveConfig, Outcome};
use dataspace_collector::target::TargetSpec;
use dataspace_collector::target::membership::CommFilter;
use dataspace_proto::record::Record;
use std::path::{Path, PathBuf};

/// Touches one address as often as each line says, in as many threads as the first line says.
const TOUCHER: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
volatile long watched __attribute__((aligned(8)));
static pthread_barrier_t all_there, go, done;
static void *touch_once(void *unused) {
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&go);
    __asm__ volatile("addq $1, %0" : "+m"(watched));
    pthread_barrier_wait(&done);
    return 0;
}
int main(void) {
    long n_threads = 0, n;
    if (scanf("%ld", &n_threads) != 1) return 1;
    pthread_barrier_init(&all_there, 0, n_threads + 1);
    pthread_barrier_init(&go, 0, n_threads + 1);
    pthread_barrier_init(&done, 0, n_threads + 1);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    for (long i = 0; i < n_threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, touch_once, 0) != 0) return 2;
    }
    pthread_barrier_wait(&all_there);
    printf("there\n");
    fflush(stdout);
    while (scanf("%ld", &n) == 1) {
        if (n < 0) {
            pthread_barrier_wait(&go);
            pthread_barrier_wait(&done);
        }
        for (long i = 0; i < n; i++) __asm__ volatile("addq $1, %0" : "+m"(watched));
        printf("done\n");
        fflush(stdout);
    }
    return 0;
}
"#;

fn watching(program: &Program, target: TargetSpec) -> LiveConfig {
    let address = program.address("watched");
    let event = EventSelector::parse(&format!("mem:{address:#x}/8:rw:u")).unwrap();
    LiveConfig { events: vec![event], ..LiveConfig::new(target) }
}

/// The program under another name, running, its `n_threads` threads there.
fn spawn_as(program: &Program, name: &str, n_threads: usize) -> Partner {
    let path = program.path().with_file_name(name);
    if !path.exists() {
        copy_program(&program.path(), &path);
    }
    let mut partner = Partner::spawn(&path);
    partner.say(&n_threads.to_string());
    assert_eq!(partner.read_line(), "there");
    partner
}

fn touch(partner: &mut Partner, n: i64) {
    partner.say(&n.to_string());
    assert_eq!(partner.read_line(), "done");
}

fn stopped(mut session: Session) -> (Said, Outcome) {
    session.running.stop();
    session.wait_for(|record| matches!(record, Record::Collected(_)));
    session.finish()
}

#[test]
fn only_processes_of_the_name_are_the_targets_and_later_ones_too() {
    let program = Program::new(TOUCHER);
    let include = vec![b"ds-member".as_slice().into()];
    let comms = CommFilter { include, ..CommFilter::default() };
    let config = LiveConfig { comms, ..watching(&program, TargetSpec::All) };
    let mut early = spawn_as(&program, "ds-member", 0);
    let mut other = spawn_as(&program, "ds-other", 0);
    let Some(live) = open(config) else { return };
    assert_eq!(live.description(), "processes called ds-member");
    let mut session = Session::start(live);
    session.wait_for(|record| matches!(record, Record::Tick { .. }));
    touch(&mut early, 100);
    touch(&mut other, 40);
    let mut later = spawn_as(&program, "ds-member", 0);
    touch(&mut later, 20);
    let pids = [early.pid(), later.pid()];
    let (said, outcome) = stopped(session);
    assert_eq!(outcome.collected.kernel_samples, 120, "{:?}", outcome.collected);
    // Programs of other tests touch the same address meanwhile.
    assert!(outcome.collected.outside >= 40, "{:?}", outcome.collected);
    assert_eq!(outcome.collected.event_counts, [120 + outcome.collected.outside]);
    assert!(said.samples().all(|sample| pids.contains(&sample.pid)));
    assert!(said.has_mapping(&program.path().with_file_name("ds-member")));
    assert!(!said.has_mapping(&program.path().with_file_name("ds-other")));
}

#[test]
fn more_threads_than_descriptors_are_covered_by_cpus_and_counted_exactly() {
    const N_THREADS: usize = 700;
    let program = Program::new(TOUCHER);
    let mut partner = spawn_as(&program, "ds-threads", N_THREADS);
    let mut other = spawn_as(&program, "ds-other", 0);
    let target = TargetSpec::Pids(vec![partner.pid()]);
    let Some(live) = open(watching(&program, target)) else { return };
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: events on whole CPUs are for the privileged");
    }
    let mut session = Session::start(live);
    session.wait_for(|record| matches!(record, Record::Tick { .. }));
    touch(&mut other, 9);
    touch(&mut partner, -1);
    touch(&mut partner, 5);
    partner.finish();
    let (said, outcome) = session.finish();
    assert_eq!(outcome.collected.kernel_samples, N_THREADS as u64 + 5, "{:?}", outcome.collected);
    // Events on CPUs count others, too.
    assert!(outcome.collected.outside >= 9, "{:?}", outcome.collected);
    let names = said.records.iter().filter(|record| matches!(record, Record::Comm(_))).count();
    assert!(names >= N_THREADS, "each thread has a name: {names}");
}

/// A control group of its own, where there is a cgroup2 hierarchy that we may write to.
struct Group(PathBuf);

impl Group {
    fn new(name: &str) -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"));
        let Some(root) = mount.and_then(|line| line.split(' ').nth(1)) else {
            eprintln!("skipped: there is no cgroup2 hierarchy");
            return None;
        };
        let path = Path::new(root).join(format!("dataspace-{name}-{}", std::process::id()));
        if let Err(error) = std::fs::create_dir(&path) {
            eprintln!("skipped: no control group can be made: {error}");
            return None;
        }
        Some(Self(path))
    }

    fn take_in(&self, partner: &Partner) {
        std::fs::write(self.0.join("cgroup.procs"), partner.pid().to_string()).unwrap();
    }

    fn remove(&self) {
        // A process that was reaped may be in it a moment longer.
        while let Err(error) = std::fs::remove_dir(&self.0) {
            assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::BUSY.raw_os_error()));
            std::thread::yield_now();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_control_group_is_counted_through_its_end_and_its_return() {
    let program = Program::new(TOUCHER);
    let Some(group) = Group::new("restart") else { return };
    let mut first = spawn_as(&program, "ds-service", 0);
    let mut other = spawn_as(&program, "ds-other", 0);
    group.take_in(&first);
    let Some(live) = open(watching(&program, TargetSpec::Cgroup(group.0.clone()))) else { return };
    let mut session = Session::start(live);
    session.wait_for(|record| matches!(record, Record::Tick { .. }));
    touch(&mut first, 30);
    touch(&mut other, 7);
    let first_pid = first.pid();
    first.finish();
    group.remove();
    let says = |words: &'static str| move |record: &Record| matches!(record, Record::Warning(text) if text.contains(words));
    session.wait_for(says("was removed"));
    std::fs::create_dir(&group.0).unwrap();
    let mut second = spawn_as(&program, "ds-service", 0);
    group.take_in(&second);
    session.wait_for(says("is there again"));
    touch(&mut second, 12);
    let second_pid = second.pid();
    let (said, outcome) = stopped(session);
    second.finish();
    assert_eq!(outcome.collected.kernel_samples, 42, "{:?}", outcome.collected);
    assert_eq!(outcome.collected.outside, 0, "the kernel leaves others out");
    let count = |pid| said.samples().filter(|sample| sample.pid == pid).count();
    assert_eq!((count(first_pid), count(second_pid)), (30, 12));
    assert!(said.has_mapping(&program.path().with_file_name("ds-service")));
}
