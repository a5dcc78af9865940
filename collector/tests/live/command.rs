//! Commands that a session starts itself.

use crate::support::{Program, Session, open};
use dataspace_collector::error::Error;
use dataspace_collector::live::{Live, LiveConfig};
use dataspace_collector::target::TargetSpec;
use dataspace_proto::record::Record;
use std::ffi::OsString;

fn command(words: &[&str]) -> LiveConfig {
    LiveConfig::new(TargetSpec::Command(words.iter().map(OsString::from).collect()))
}

#[test]
fn exec_is_told_with_the_new_mappings() {
    let program = Program::new("int main(void) { return 3; }");
    let path = program.path();
    let script = format!("exec {}", path.display());
    let Some(live) = open(command(&["sh", "-c", &script])) else { return };
    let pid = live.pids()[0];
    let (said, outcome) = Session::start(live).finish();
    let execs: Vec<&[u8]> = said
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Comm(comm) if comm.is_exec && comm.pid == pid => Some(&*comm.name),
            _ => None,
        })
        .collect();
    assert_eq!(execs, [&b"sh"[..], b"program"]);
    assert!(said.has_mapping(&path));
    assert_eq!(outcome.exit_status.unwrap().code(), Some(3));
    let exit = said.records.iter().find_map(|record| match record {
        Record::Exit(exit) => Some((exit.pid, exit.tid)),
        _ => None,
    });
    assert_eq!(exit, Some((pid, pid)));
}

#[test]
fn a_command_that_is_not_there_is_an_error_with_its_name() {
    let Some(live) = open(command(&["/nonexistent/command"])) else { return };
    let (sender, _receiver) = dataspace_collector::channel::batch::channel(1, 8);
    let error = live.start(sender).unwrap_err();
    assert!(error.to_string().starts_with("/nonexistent/command cannot be executed: No such file"));
    assert!(matches!(error, Error::Command { errno, .. } if errno.raw_os_error() == 2));
}

#[test]
fn a_session_that_never_starts_leaves_no_child() {
    let Some(live) = open(command(&["true"])) else { return };
    let pid = live.pids()[0];
    drop(live);
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn no_command_is_no_target() {
    assert!(matches!(Live::open(command(&[])), Err(Error::NoTarget)));
}

#[test]
fn a_pipe_that_breaks_ends_the_command_by_its_signal() {
    use std::os::unix::process::ExitStatusExt;
    // The profiler ignores SIGPIPE, as every Rust program does; the command must not.
    let Some(live) = open(command(&["sh", "-c", "kill -PIPE $$; exit 5"])) else { return };
    let (_, outcome) = Session::start(live).finish();
    assert_eq!(outcome.exit_status.unwrap().signal(), Some(13));
}
