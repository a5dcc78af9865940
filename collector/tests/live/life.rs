//! How sessions begin and end, and what they leave behind.

use super::clock::SPINNER;
use crate::support::{Program, Session, copy_program, open};
use dataspace_collector::error::{Error, ErrorKind};
use dataspace_collector::live::{Live, LiveConfig};
use dataspace_collector::target::TargetSpec;
use dataspace_proto::record::Record;
use std::process::Command;

#[test]
fn detaching_leaves_the_target_running() {
    let program = Program::new(SPINNER);
    let mut partner = program.spawn();
    partner.read_line();
    let Some(live) = open(LiveConfig::new(TargetSpec::Pids(vec![partner.pid()]))) else { return };
    let mut session = Session::start(live);
    session.wait_for(|record| matches!(record, Record::Sample(_)));
    session.running.stop();
    let (said, _) = session.finish();
    assert!(said.samples().count() > 0);
    assert!(partner.child.try_wait().unwrap().is_none(), "the target runs on");
    drop(partner.input.take());
    assert!(partner.child.wait().unwrap().success(), "and ends as it would have");
}

#[test]
fn time_is_told_while_nothing_happens() {
    let program = Program::new("#include <stdio.h>\nint main(void) { return getchar() == 'x'; }");
    let mut partner = program.spawn();
    let Some(live) = open(LiveConfig::new(TargetSpec::Pids(vec![partner.pid()]))) else { return };
    let mut session = Session::start(live);
    for _ in 0..3 {
        session.wait_for(|record| matches!(record, Record::Tick { .. }));
    }
    session.wait_for(|record| matches!(record, Record::Collected(_)));
    partner.finish();
    session.finish();
}

#[test]
fn a_process_that_is_gone_is_said_to_be() {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id() as i32;
    child.wait().unwrap();
    for target in [TargetSpec::Pids(vec![pid]), TargetSpec::Tids(vec![pid])] {
        match Live::open(LiveConfig::new(target)) {
            Err(error @ Error::NoSuchProcess { .. }) => {
                assert!(error.to_string().contains(&pid.to_string()));
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::NotPermitted),
            Ok(_) => panic!("process {pid} has been reaped"),
        }
    }
    let mut zombie = Command::new("true").spawn().unwrap();
    let mut stat = String::new();
    while !stat.contains(") Z ") {
        stat = std::fs::read_to_string(format!("/proc/{}/stat", zombie.id())).unwrap();
        std::thread::yield_now();
    }
    let target = TargetSpec::Pids(vec![zombie.id() as i32]);
    assert!(Live::open(LiveConfig::new(target)).is_err());
    zombie.wait().unwrap();
}

#[test]
fn one_of_two_processes_is_enough() {
    let program = Program::new("#include <stdio.h>\nint main(void) { return getchar() == 'x'; }");
    let mut partner = program.spawn();
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let pids = vec![gone.id() as i32, partner.pid(), partner.pid()];
    let Some(live) = open(LiveConfig::new(TargetSpec::Pids(pids))) else { return };
    assert_eq!(live.pids(), [partner.pid()]);
    let session = Session::start(live);
    partner.finish();
    session.finish();
}

#[test]
fn a_process_that_ended_leaves_the_description() {
    let program = Program::new("#include <stdio.h>\nint main(void) { return getchar() == 'x'; }");
    let (mut first, mut second) = (program.spawn(), program.spawn());
    let [of_first, of_second] =
        [&first, &second].map(|partner| format!("process {} (", partner.pid()));
    let pids = vec![first.pid(), second.pid()];
    let Some(live) = open(LiveConfig::new(TargetSpec::Pids(pids))) else { return };
    assert!(live.description().contains(&of_first) && live.description().contains(&of_second));
    let mut session = Session::start(live);
    first.finish();
    session.wait_for(|record| {
        matches!(record, Record::Target(text) if text.contains(&of_second) && !text.contains(&of_first))
    });
    second.finish();
    session.finish();
}

const EXECUTES_SET_UID: &str = r#"
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
    if (argc > 1) {
        puts("executed");
        fflush(stdout);
        return getchar() == 'x';
    }
    puts("ready");
    fflush(stdout);
    char byte = 0;
    while (read(0, &byte, 1) > 0 && byte != '\n') {}
    execl("./set-uid", "set-uid", "again", (char *)0);
    return 1;
}
"#;

#[test]
fn events_that_the_kernel_removed_are_missed() {
    let program = Program::new(EXECUTES_SET_UID);
    let copy = program.path().with_file_name("set-uid");
    copy_program(&program.path(), &copy);
    let path = copy.to_str().unwrap();
    let made = Command::new("sh")
        .args(["-c", &format!("chown 65534 {path} && chmod 4755 {path}")])
        .status()
        .unwrap();
    if !made.success() {
        eprintln!("skipped: a set-uid file cannot be made here");
        return;
    }
    let mut partner = program.spawn();
    partner.read_line();
    let Some(live) = open(LiveConfig::new(TargetSpec::Pids(vec![partner.pid()]))) else { return };
    let mut session = Session::start(live);
    let users = format!("/proc/{}/status", partner.pid());
    let users = || {
        let status = std::fs::read_to_string(&users).unwrap();
        status.lines().find(|line| line.starts_with("Uid:")).unwrap().to_owned()
    };
    let before = users();
    partner.say("go");
    assert_eq!(partner.read_line(), "executed");
    if users() == before {
        eprintln!("skipped: set-uid programs get no rights here");
        return;
    }
    session.wait_for(
        |record| matches!(record, Record::Warning(text) if text.contains("removed the events")),
    );
    assert!(partner.child.try_wait().unwrap().is_none());
    partner.finish();
    session.finish();
}
