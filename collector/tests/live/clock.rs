//! Clock samples of running processes.

use crate::support::{Program, Session, open};
use dataspace_collector::live::LiveConfig;
use dataspace_collector::target::TargetSpec;
use dataspace_proto::event::{EventKind, Sampling};
use dataspace_proto::record::{CpuMode, Record};
use dataspace_proto::register::Register;

/// Says its pid and computes until its input ends, checked by a thread of its own.
pub(crate) const SPINNER: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
volatile long counter;
volatile int done;
static void *wait_for_end(void *unused) {
    char byte;
    while (read(0, &byte, 1) > 0) {}
    done = 1;
    return 0;
}
int main(void) {
    pthread_t waiter;
    pthread_create(&waiter, 0, wait_for_end, 0);
    puts("ready");
    fflush(stdout);
    while (!done) counter++;
    return 0;
}
"#;

#[test]
fn a_running_process_is_sampled_and_its_mappings_are_told() {
    let program = Program::new(SPINNER);
    let mut partner = program.spawn();
    assert_eq!(partner.read_line(), "ready");
    let target = TargetSpec::Pids(vec![partner.pid()]);
    let sampling = Some(Sampling::FrequencyHz(997));
    let Some(live) = open(LiveConfig { sampling, ..LiveConfig::new(target) }) else { return };
    assert_eq!(live.events()[0].kind, EventKind::Clock);
    assert_eq!(live.pids(), [partner.pid()]);
    let mut session = Session::start(live);
    for _ in 0..3 {
        let is_in_user =
            |record: &Record| matches!(record, Record::Sample(it) if it.mode == CpuMode::User);
        session.wait_for(is_in_user);
    }
    partner.finish();
    let (said, outcome) = session.finish();
    assert!(said.has_mapping(&program.path()));
    assert!(said.samples().all(|sample| sample.pid == partner.pid() && sample.addr.is_none()));
    assert!(said.samples().all(|sample| sample.period == 1_000_000_000 / 997));
    let in_user = said.samples().find(|sample| sample.mode == CpuMode::User).unwrap();
    assert_eq!(in_user.registers.get(Register::Rip), Some(in_user.ip.0));
    assert!(in_user.registers.get(Register::Rsp).is_some_and(|rsp| rsp != 0));
    assert!(outcome.exit_status.is_none());
    eprintln!("{:?} {:?}", outcome.collected, said.warnings());
}
