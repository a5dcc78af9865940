//! Threads and children: those there are, those born later, those born while we attach.

use crate::support::{Program, Said, Session, open};
use dataspace_collector::event::EventSelector;
use dataspace_collector::live::{LiveConfig, Outcome};
use dataspace_collector::target::TargetSpec;
use dataspace_proto::record::Record;
use std::collections::HashSet;

const TOUCH: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
volatile long watched __attribute__((aligned(8)));
long n_touches;
static void touch(void) {
    __asm__ volatile("addq $1, %0" : "+m"(watched));
    __atomic_add_fetch(&n_touches, 1, __ATOMIC_SEQ_CST);
}
static void say(long number) {
    printf("%ld\n", number);
    fflush(stdout);
}
static void wait_for_line(void) {
    char byte;
    while (read(0, &byte, 1) > 0 && byte != '\n') {}
}
"#;

/// 8 threads that do nothing but start short-lived ones; told to, all of them touch.
const CHURN: &str = r#"
volatile int go, stop;
static void *short_lived(void *unused) {
    if (go) touch();
    return 0;
}
static void *starter(void *unused) {
    while (!stop) {
        pthread_t thread;
        if (pthread_create(&thread, 0, short_lived, 0) == 0) pthread_join(thread, 0);
        if (go) touch();
    }
    return 0;
}
int main(void) {
    pthread_t starters[8];
    for (int i = 0; i < 8; i++) pthread_create(&starters[i], 0, starter, 0);
    say(0);
    wait_for_line();
    go = 1;
    while (__atomic_load_n(&n_touches, __ATOMIC_SEQ_CST) < 3000) sched_yield();
    stop = 1;
    for (int i = 0; i < 8; i++) pthread_join(starters[i], 0);
    say(n_touches);
    wait_for_line();
    return 0;
}
"#;

fn watched(program: &Program) -> Vec<EventSelector> {
    let address = program.address("watched");
    vec![EventSelector::parse(&format!("mem:{address:#x}/8:rw:u")).unwrap()]
}

fn program(main: &str) -> Program {
    Program::new(&format!("#define _GNU_SOURCE\n#include <sched.h>\n{TOUCH}{main}"))
}

/// Attaches to the program, lets it go once the session is at work, and gives what it answered and
/// what the session saw.
fn watch_at_work(program: &Program) -> Option<(String, Said, Outcome)> {
    let mut partner = program.spawn();
    partner.read_line();
    let target = TargetSpec::Pids(vec![partner.pid()]);
    let config = LiveConfig { events: watched(program), ..LiveConfig::new(target) };
    let mut session = Session::start(open(config)?);
    session.wait_for(|record| matches!(record, Record::Tick { .. }));
    partner.say("go");
    let answer = partner.read_line();
    partner.finish();
    let (said, outcome) = session.finish();
    Some((answer, said, outcome))
}

#[test]
fn a_process_that_churns_threads_is_seen_whole_and_nothing_twice() {
    let program = program(CHURN);
    for _ in 0..8 {
        let Some((answer, said, outcome)) = watch_at_work(&program) else { return };
        let n_touches: u64 = answer.parse().unwrap();
        assert_eq!(outcome.collected.kernel_samples, n_touches, "{:?}", outcome.collected);
        assert_eq!(outcome.collected.event_counts, [n_touches]);
        // On a busy machine a ring may fill with births before the reader gets a CPU, which must be
        // said; the kernel counts touches whether or not their threads' births were read. So must be
        // that threads came faster than we could look.
        let is_honest = |text: &&str| {
            !text.contains("births were lost") && !text.contains("faster than they can be found")
        };
        let unexpected: Vec<&str> = said.warnings().into_iter().filter(is_honest).collect();
        assert_eq!(unexpected, Vec::<&str>::new());
    }
}

const LATER: &str = r#"
static void *one(void *unused) {
    touch();
    return 0;
}
int main(void) {
    say(0);
    wait_for_line();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, one, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 10; i++) touch();
        _exit(0);
    }
    waitpid(child, 0, 0);
    say(child);
    wait_for_line();
    return 0;
}
"#;

#[test]
fn threads_and_children_born_later_are_counted() {
    let program = program(LATER);
    let Some((answer, said, outcome)) = watch_at_work(&program) else { return };
    let child: i32 = answer.parse().unwrap();
    assert_eq!(outcome.collected.event_counts, [14]);
    assert_eq!(said.samples().filter(|sample| sample.pid == child).count(), 10);
    let tids: HashSet<i32> = said.samples().map(|sample| sample.tid).collect();
    assert_eq!(tids.len(), 5);
    let born: HashSet<i32> = said
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Fork(fork) => Some(fork.tid),
            _ => None,
        })
        .collect();
    assert!(tids.is_subset(&born), "{tids:?} of {born:?}");
    // Four threads and a child were born; they and the program itself have ended.
    let lives = outcome.collected.governance.lives.unwrap();
    assert_eq!((lives.n_births, lives.n_ends, lives.exit_ns), (5, 6, 0), "{lives:?}");
}

const TWO: &str = r#"
static void *other(void *unused) {
    wait_for_line();
    mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 7; i++) touch();
    return 0;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, other, 0);
    say(syscall(SYS_gettid));
    pthread_join(thread, 0);
    for (int i = 0; i < 3; i++) touch();
    say(n_touches);
    wait_for_line();
    return 0;
}
"#;

#[test]
fn a_single_thread_is_sampled_and_its_process_mapped() {
    let program = program(TWO);
    let mut partner = program.spawn();
    let tid: i32 = partner.read_line().parse().unwrap();
    let target = TargetSpec::Tids(vec![tid]);
    let config = LiveConfig { events: watched(&program), ..LiveConfig::new(target) };
    let Some(live) = open(config) else { return };
    let mut session = Session::start(live);
    session.wait_for(|record| matches!(record, Record::Tick { .. }));
    partner.say("go");
    assert_eq!(partner.read_line(), "10");
    partner.finish();
    let (said, _) = session.finish();
    assert_eq!(said.samples().filter(|sample| sample.tid == tid).count(), 3);
    assert_eq!(said.samples().count(), 3);
    let is_by_other = |record: &Record| {
        matches!(record, Record::Mmap(mmap)
            if mmap.time_ns > 0 && mmap.tid != tid && mmap.is_executable && &*mmap.path == b"//anon")
    };
    assert!(said.records.iter().any(is_by_other));
}
