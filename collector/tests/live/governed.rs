//! What sampling may cost: storms are tamed, weights stay right, and what is left out is told.

use crate::support::{Program, Said, Session, open};
use dataspace_collector::error::ErrorKind;
use dataspace_collector::event::EventSelector;
use dataspace_collector::live::{Live, LiveConfig, Outcome};
use dataspace_collector::target::TargetSpec;
use dataspace_proto::record::Record;
use std::cell::Cell;

/// Calls `getppid` in as many threads as the line says, born after the line came, until the next line comes;
/// says how often.
const CALLER: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
static volatile int stop;
static long n_calls;
/* Not as often as it can: all samples are kept until the period changes, which a busy machine takes long to. */
static void call_some(void) {
    for (int i = 0; i < 100; i++) {
        syscall(SYS_getppid);
        for (volatile int j = 0; j < 500; j++) {}
    }
    __atomic_add_fetch(&n_calls, 100, __ATOMIC_SEQ_CST);
}
static void *call(void *unused) {
    while (!stop) call_some();
    return 0;
}
int main(void) {
    int n_threads;
    char byte;
    alarm(900);
    printf("there\n");
    fflush(stdout);
    if (scanf("%d", &n_threads) != 1) return 1;
    pthread_t threads[8];
    for (int i = 0; i < n_threads; i++) pthread_create(&threads[i], 0, call, 0);
    if (n_threads == 0) fcntl(0, F_SETFL, O_NONBLOCK);
    while (read(0, &byte, 1) < 0) call_some();
    fcntl(0, F_SETFL, 0);
    stop = 1;
    for (int i = 0; i < n_threads; i++) pthread_join(threads[i], 0);
    printf("%ld\n", n_calls);
    fflush(stdout);
    while (read(0, &byte, 1) > 0) {}
    return 0;
}
"#;

/// What sampling may cost.
const MAX_OVERHEAD: f64 = 0.01;

/// All are kept: who waits for more of them waits for a machine that gives nobody a CPU.
const MAX_SAMPLES: u64 = 1_000_000;

/// What a governed session saw of so many threads, which go on until most of the weight is that of samples
/// with another period than the first, and the number of their calls.
fn governed(n_threads: usize) -> Option<(u64, Said, Outcome)> {
    let program = Program::new(CALLER);
    let mut partner = program.spawn();
    partner.read_line();
    let config = LiveConfig {
        events: vec![EventSelector::parse("syscalls:sys_enter_getppid").unwrap()],
        max_overhead: Some(MAX_OVERHEAD),
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
    let (n_samples, weight) = (Cell::new(0), Cell::new(0));
    session.wait_for(|record| {
        if let Record::Sample(sample) = record {
            n_samples.set(n_samples.get() + 1);
            weight.set(weight.get() + sample.period);
        }
        weight.get() > 4 * n_samples.get() || n_samples.get() >= MAX_SAMPLES
    });
    partner.say("stop");
    let n_calls = partner.read_line().parse().unwrap();
    partner.finish();
    let (said, outcome) = session.finish();
    let governance = &outcome.collected.governance;
    if governance.n_changes == 0 && governance.overhead <= MAX_OVERHEAD {
        eprintln!("skipped: on this busy machine sampling costs too little to be tamed");
        return None;
    }
    Some((n_calls, said, outcome))
}

/// Holds the samples' weights to what the kernel counted. How much of a period is left at a change, and how
/// long the kernel's events rest meanwhile, is the machine's affair.
fn check_weights(n_calls: u64, said: &Said, outcome: &Outcome) {
    let collected = &outcome.collected;
    let n_counted = collected.event_counts[0];
    assert!(n_counted <= n_calls, "no call is counted twice: {n_counted} of {n_calls}");
    assert!(n_counted * 2 > n_calls, "few are missed: {n_counted} of {n_calls}");
    let weights: u64 = said.samples().map(|sample| sample.period).sum();
    let weights = weights + collected.ring_full + collected.channel_full;
    let share = weights as f64 / n_counted as f64;
    println!("{n_calls} calls, weights {share:.3}, {:?}", collected.governance);
    assert!((0.5..2.0).contains(&share), "{weights} of {n_counted}: {collected:?}");
}

#[test]
fn a_storm_of_tracepoints_is_tamed_and_its_weights_add_up() {
    let Some((n_calls, said, outcome)) = governed(0) else { return };
    assert!(outcome.collected.governance.n_changes >= 1, "{:?}", outcome.collected);
    assert!(outcome.collected.kernel_samples < n_calls, "{:?}", outcome.collected);
    check_weights(n_calls, &said, &outcome);
    assert!(said.warnings().iter().any(|text| text.contains("--max-overhead")));
}

#[test]
fn threads_that_inherited_an_event_get_the_new_period_too() {
    let Some((n_calls, said, outcome)) = governed(2) else { return };
    assert!(outcome.collected.governance.n_changes >= 1, "{:?}", outcome.collected);
    assert_eq!(said.samples().map(|sample| sample.period).min(), Some(1));
    check_weights(n_calls, &said, &outcome);
}

/// Touches one address without end, for the same reason not as often as it can.
const TOUCHER: &str = r#"
#include <stdio.h>
volatile long watched __attribute__((aligned(8)));
int main(void) {
    printf("there\n");
    fflush(stdout);
    for (;;) {
        __asm__ volatile("addq $1, %0" : "+m"(watched));
        for (volatile int j = 0; j < 500; j++) {}
    }
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
        max_overhead: Some(MAX_OVERHEAD),
        ..LiveConfig::new(TargetSpec::Pids(vec![partner.pid()]))
    };
    let Some(live) = open(config) else { return };
    let mut session = Session::start(live);
    // It rests, that is told, and it is watched again.
    let (gap_ns, told_ns) = (Cell::new(0), Cell::new(0));
    session.wait_for(|record| {
        if let Record::Collected(collected) = record {
            gap_ns.set(collected.governance.gap_ns);
        }
        gap_ns.get() > 0
    });
    session.wait_for(|record| {
        if let Record::Tick { time_ns } = record {
            told_ns.set(*time_ns);
        }
        told_ns.get() > 0
    });
    session.wait_for(
        |record| matches!(record, Record::Sample(sample) if sample.time_ns > told_ns.get()),
    );
    session.running.stop();
    let (said, outcome) = session.finish();
    let governance = &outcome.collected.governance;
    let times: Vec<u64> = said.samples().map(|sample| sample.time_ns).collect();
    // The program touches it all the time, so that nothing comes while it rests; a busy machine may leave
    // more gaps. A rest is told from the decision on.
    const SHORT_NS: u64 = 1_000_000;
    let gaps = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    let rested_ns: u64 = gaps.filter(|gap_ns| *gap_ns > SHORT_NS).sum();
    let gap_ns = gap_ns.get();
    assert!(rested_ns * 2 > gap_ns, "{rested_ns} of {gap_ns}: {governance:?}");
    assert!(governance.gap_ns >= gap_ns, "{governance:?}");
    assert!(governance.target_ns > 0 && governance.events[0].sample_cost_ns > 0);
}
