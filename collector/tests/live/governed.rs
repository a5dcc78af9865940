//! What sampling may cost: storms are tamed, weights stay right, and what is left out is told.

use crate::support::{Program, Said, Session, open};
use dataspace_collector::error::ErrorKind;
use dataspace_collector::event::EventSelector;
use dataspace_collector::live::{Live, LiveConfig, Outcome, Permission};
use dataspace_collector::target::TargetSpec;
use dataspace_proto::record::Record;
use std::sync::Arc;

/// Calls `getppid` for two seconds in as many threads as the line says, born after the line came;
/// says how often.
const CALLER: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static long n_calls;
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}
static void *call(void *unused) {
    long n = 0;
    for (double end = now() + 2; now() < end; n += 100)
        for (int i = 0; i < 100; i++) syscall(SYS_getppid);
    __atomic_add_fetch(&n_calls, n, __ATOMIC_SEQ_CST);
    return 0;
}
int main(void) {
    int n_threads;
    char byte;
    printf("there\n");
    fflush(stdout);
    if (scanf("%d", &n_threads) != 1) return 1;
    pthread_t threads[8];
    for (int i = 0; i < n_threads; i++) pthread_create(&threads[i], 0, call, 0);
    if (n_threads == 0) call(0);
    for (int i = 0; i < n_threads; i++) pthread_join(threads[i], 0);
    printf("%ld\n", n_calls);
    fflush(stdout);
    while (read(0, &byte, 1) > 0) {}
    return 0;
}
"#;

fn governed(n_threads: usize) -> Option<(u64, Said, Outcome)> {
    let program = Program::new(CALLER);
    let mut partner = program.spawn();
    partner.read_line();
    let config = LiveConfig {
        events: vec![EventSelector::parse("syscalls:sys_enter_getppid").unwrap()],
        max_overhead: Some(0.01),
        ..LiveConfig::new(TargetSpec::Pids(vec![partner.pid()]))
    };
    let live = match Live::open(config) {
        Ok(live) => live,
        Err(error) => {
            assert_ne!(error.kind(), ErrorKind::Usage, "{error}");
            eprintln!("skipped: {error}");
            return None;
        }
    };
    let mut session = Session::start(live);
    session.wait_for(|record| matches!(record, Record::Tick { .. }));
    partner.say(&n_threads.to_string());
    let reader = std::thread::spawn(move || {
        let answer = partner.read_line();
        partner.finish();
        answer.parse().unwrap()
    });
    let (said, outcome) = session.finish();
    Some((reader.join().unwrap(), said, outcome))
}

#[test]
fn a_storm_of_tracepoints_is_tamed_and_its_weights_add_up() {
    let Some((n_calls, said, outcome)) = governed(0) else { return };
    let governance = &outcome.collected.governance;
    assert!(governance.n_changes >= 1, "{governance:?}");
    // The kernel stops an event for a moment to give it another period.
    let n_counted = outcome.collected.event_counts[0];
    assert!((n_calls * 99 / 100..=n_calls).contains(&n_counted), "{n_counted} of {n_calls}");
    assert!(outcome.collected.kernel_samples < n_calls, "{:?}", outcome.collected);
    let weights: u64 = said.samples().map(|sample| sample.period).sum();
    let weights = weights + outcome.collected.ring_full + outcome.collected.channel_full;
    let share = weights as f64 / n_calls as f64;
    println!("{n_calls} calls, weights {share:.3}, {governance:?}");
    assert!((0.8..1.2).contains(&share), "{weights} of {n_calls}: {governance:?}");
    assert!(said.warnings().iter().any(|text| text.contains("--max-overhead")));
}

#[test]
fn threads_that_inherited_an_event_get_the_new_period_too() {
    let Some((n_calls, said, outcome)) = governed(2) else { return };
    let governance = &outcome.collected.governance;
    assert!(governance.n_changes >= 1, "{governance:?}");
    let n_counted = outcome.collected.event_counts[0];
    assert!(n_counted <= n_calls, "no call is counted twice: {n_counted} of {n_calls}");
    assert!(n_counted * 10 >= n_calls * 8, "few are missed: {n_counted} of {n_calls}");
    let (mut first, mut last) = (u64::MAX, 0);
    for sample in said.samples() {
        (first, last) = (first.min(sample.period), last.max(sample.period));
    }
    assert_eq!(first, 1);
    assert!(last > 1, "samples with the new period came");
    let weights: u64 = said.samples().map(|sample| sample.period).sum();
    let weights = weights + outcome.collected.ring_full + outcome.collected.channel_full;
    let share = weights as f64 / n_counted as f64;
    assert!((0.8..1.2).contains(&share), "{weights} of {n_counted}: {governance:?}");
}

/// Touches one address without end.
const TOUCHER: &str = r#"
#include <stdio.h>
volatile long watched __attribute__((aligned(8)));
int main(void) {
    printf("there\n");
    fflush(stdout);
    for (;;) __asm__ volatile("addq $1, %0" : "+m"(watched));
}
"#;

#[test]
fn a_breakpoint_rests_and_is_watched_again_and_the_gap_is_told() {
    let program = Program::new(TOUCHER);
    let mut partner = program.spawn();
    partner.read_line();
    let address = program.address("watched");
    let config = LiveConfig {
        events: vec![EventSelector::parse(&format!("mem:{address:#x}/8:w:u")).unwrap()],
        max_overhead: Some(0.01),
        ..LiveConfig::new(TargetSpec::Pids(vec![partner.pid()]))
    };
    let Some(live) = open(config) else { return };
    let mut session = Session::start(live);
    for _ in 0..3 {
        session.wait_for(|record| matches!(record, Record::Collected(_)));
    }
    session.running.stop();
    let (said, outcome) = session.finish();
    let governance = &outcome.collected.governance;
    let times: Vec<u64> = said.samples().map(|sample| sample.time_ns).collect();
    let longest_ns = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    assert!(longest_ns > 300_000_000, "it rested: {longest_ns}");
    let after = times.iter().filter(|&&time_ns| time_ns > times[0] + 900_000_000).count();
    assert!(after > 0, "and was watched again");
    assert!(governance.gap_ns >= longest_ns, "{governance:?}");
    assert!(governance.target_ns > 0 && governance.events[0].sample_cost_ns > 0);
}

/// Forks when a line comes; both call `getppid` for two seconds.
const FORKER: &str = r#"
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}
int main(void) {
    int number;
    printf("there\n");
    fflush(stdout);
    if (scanf("%d", &number) != 1) return 1;
    pid_t child = fork();
    for (double end = now() + 2; now() < end;)
        for (int i = 0; i < 100; i++) syscall(SYS_getppid);
    if (child > 0) waitpid(child, 0, 0);
    return 0;
}
"#;

/// Only one process may be seen.
#[derive(Debug)]
struct Only(i32);

impl Permission for Only {
    fn uid(&self) -> u32 {
        0
    }

    fn may_see(&self, pid: i32) -> bool {
        pid == self.0
    }
}

#[test]
fn a_child_that_may_not_be_seen_is_left_out_when_events_are_opened_again() {
    let program = Program::new(FORKER);
    let mut partner = program.spawn();
    partner.read_line();
    let parent = partner.pid();
    let config = LiveConfig {
        events: vec![EventSelector::parse("syscalls:sys_enter_getppid").unwrap()],
        max_overhead: Some(0.01),
        permission: Some(Arc::new(Only(parent))),
        ..LiveConfig::new(TargetSpec::Pids(vec![parent]))
    };
    let Some(live) = open(config) else { return };
    let mut session = Session::start(live);
    session.wait_for(|record| matches!(record, Record::Tick { .. }));
    partner.say("1");
    let reader = std::thread::spawn(move || partner.finish());
    let (said, outcome) = session.finish();
    reader.join().unwrap();
    let governance = &outcome.collected.governance;
    // The period that came with opening again: the child had inherited the one before.
    let last = said.samples().filter(|sample| sample.pid == parent).map(|sample| sample.period);
    assert!(last.max() > Some(1), "the parent is seen on: {governance:?}");
    let of_child: Vec<u64> =
        said.samples().filter(|one| one.pid != parent).map(|one| one.period).collect();
    assert!(!of_child.is_empty(), "what it inherits is the kernel's to give");
    assert!(of_child.iter().all(|period| *period == 1), "{} samples", of_child.len());
}
