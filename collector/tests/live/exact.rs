//! Events whose number the program knows: the kernel's count, ours and its own have to be equal.

use crate::support::{Program, Session, open, with_tracefs};
use dataspace_collector::event::EventSelector;
use dataspace_collector::live::LiveConfig;
use dataspace_collector::target::TargetSpec;
use dataspace_proto::address::Avma;
use dataspace_proto::event::{EventKind, Sampling, SkidModel};
use dataspace_proto::record::{CpuMode, Record};

const COUNTS_TO_1000: &str = r#"
volatile long counter __attribute__((aligned(8)));
int main(void) {
    for (int i = 0; i < 1000; i++) __asm__ volatile("addq $1, %0" : "+m"(counter));
    return 0;
}
"#;

#[test]
fn every_access_to_a_watched_variable_is_one_sample() {
    let program = Program::new(COUNTS_TO_1000);
    let address = program.address("counter");
    let selector = EventSelector::parse(&format!("mem:{address:#x}/8:rw:u")).unwrap();
    let target = TargetSpec::Command(program.argv());
    let config = LiveConfig { events: vec![selector], ..LiveConfig::new(target) };
    let Some(live) = open(config) else { return };
    let kind = EventKind::Breakpoint { address: Avma(address), len_bytes: 8 };
    assert_eq!((live.events()[0].kind, live.events()[0].skid), (kind, SkidModel::AfterOne));
    let (said, outcome) = Session::start(live).finish();
    // What no ring had room for, as where little memory may be locked, is counted.
    let n_samples = said.samples().count() as u64;
    assert_eq!(n_samples + outcome.collected.ring_full, 1000);
    assert_eq!(outcome.collected.event_counts, [1000]);
    assert_eq!(outcome.collected.kernel_samples, 1000);
    assert!(outcome.exit_status.unwrap().success());
    assert!(said.samples().all(|sample| sample.addr == Some(Avma(address)) && sample.period == 1));
    assert!(said.samples().all(|sample| sample.mode == CpuMode::User));
    assert_eq!(said.warnings(), Vec::<&str>::new());
    let ips: std::collections::HashSet<_> = said.samples().map(|sample| sample.ip).collect();
    assert_eq!(ips.len(), 1, "one instruction touches it, and IP is the one behind");
}

#[test]
fn a_period_stands_for_so_many_events() {
    let program = Program::new(COUNTS_TO_1000);
    let selector = EventSelector::parse(&format!("mem:{:#x}/8:u", program.address("counter")));
    let config = LiveConfig {
        events: vec![selector.unwrap()],
        sampling: Some(Sampling::Period(100)),
        ..LiveConfig::new(TargetSpec::Command(program.argv()))
    };
    let Some(live) = open(config) else { return };
    let (said, outcome) = Session::start(live).finish();
    assert_eq!(outcome.collected.event_counts, [1000]);
    assert!(said.samples().all(|sample| sample.period == 100));
    // Each CPU has an event of its own, and a program that moves leaves a part of a period behind.
    let n_samples = said.samples().count();
    let n_cpus = std::thread::available_parallelism().unwrap().get();
    assert!(n_samples <= 10 && n_samples + n_cpus > 10, "{n_samples} samples on {n_cpus} CPUs");
}

const FAULTS: &str = r#"
#include <sys/mman.h>
int main(void) {
    char *pages = mmap(0, 100 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(pages, 100 << 12, MADV_NOHUGEPAGE);
    for (int i = 0; i < 100; i++) pages[(i << 12) + 5] = 1;
    return 0;
}
"#;

#[test]
fn every_page_fault_has_its_address() {
    let program = Program::new(FAULTS);
    let config = LiveConfig {
        events: vec![EventSelector::parse("page-faults").unwrap()],
        ..LiveConfig::new(TargetSpec::Command(program.argv()))
    };
    let Some(live) = open(config) else { return };
    let (said, outcome) = Session::start(live).finish();
    let n_touches =
        said.samples().filter(|sample| sample.addr.is_some_and(|addr| addr.0 & 0xfff == 5)).count();
    let collected = &outcome.collected;
    let with_lost = n_touches as u64 + collected.ring_full;
    assert!(with_lost >= 100, "{n_touches} faults at byte 5 of a page: {collected:?}");
    assert_eq!(collected.kernel_samples, collected.event_counts[0]);
    assert_eq!(said.warnings(), Vec::<&str>::new());
}

#[test]
fn with_a_frequency_the_weights_are_said_to_be_guesses() {
    let program = Program::new(FAULTS);
    let config = LiveConfig {
        events: vec![EventSelector::parse("page-faults:u").unwrap()],
        sampling: Some(Sampling::FrequencyHz(100)),
        ..LiveConfig::new(TargetSpec::Command(program.argv()))
    };
    let Some(live) = open(config) else { return };
    assert_eq!(live.events()[0].sampling, Sampling::FrequencyHz(100));
    let (said, _) = Session::start(live).finish();
    assert!(said.samples().count() > 0);
    assert!(said.samples().all(|sample| sample.period > 0));
    assert!(said.warnings().iter().any(|warning| warning.contains("guesses")));
}

const ASKS_FOR_ITS_PARENT: &str = r#"
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 200000; i++) syscall(SYS_getppid);
    return 0;
}
"#;

/// With rings of one page most samples find no room; what did is delivered, and the rest is known
/// to the last one.
#[test]
fn what_a_flood_loses_is_counted_exactly() {
    with_tracefs("live::exact::what_a_flood_loses_is_counted_exactly", || {
        let program = Program::new(ASKS_FOR_ITS_PARENT);
        let config = LiveConfig {
            events: vec![EventSelector::parse("syscalls:sys_enter_getppid").unwrap()],
            ring_pages: Some(1),
            ..LiveConfig::new(TargetSpec::Command(program.argv()))
        };
        let Some(live) = open(config) else { return };
        let (said, outcome) = Session::start(live).finish();
        let collected = outcome.collected;
        assert_eq!(collected.event_counts, [200_000]);
        assert_eq!(collected.kernel_samples, 200_000);
        let n_samples = said.samples().count() as u64;
        assert_eq!(200_000 - n_samples, collected.ring_full + collected.channel_full);
        assert!(collected.ring_full > 0, "{collected:?}");
        assert!(said.samples().all(|sample| sample.addr.is_none()));
        assert_eq!(said.warnings(), Vec::<&str>::new());
        eprintln!("{collected:?}");
    });
}

#[test]
fn a_slow_analyzer_loses_samples_and_no_counts() {
    let program = Program::new(COUNTS_TO_1000);
    let selector = EventSelector::parse(&format!("mem:{:#x}/8:u", program.address("counter")));
    let config = LiveConfig {
        events: vec![selector.unwrap()],
        ..LiveConfig::new(TargetSpec::Command(program.argv()))
    };
    let Some(live) = open(config) else { return };
    let (sender, receiver) = dataspace_collector::channel::batch::channel(1, 8);
    let running = live.start(sender).unwrap();
    let mut records = Vec::new();
    while let Some(batch) = receiver.receive() {
        records.extend(batch.iter().cloned());
        receiver.recycle(batch);
    }
    let collected = running.join().collected;
    let n_samples = records.iter().filter(|r| matches!(r, Record::Sample(_))).count() as u64;
    assert_eq!(collected.delivered, n_samples);
    assert_eq!(collected.kernel_samples, 1000);
    assert_eq!(collected.delivered + collected.channel_full, 1000);
}
