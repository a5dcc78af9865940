//! The program that `dataspace demo` profiles: compiled by `build.rs` and carried in this binary.

use crate::exit::{Failure, Kind};
use anyhow::Context;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/workload"));

/// How long the program has to show that it runs at all.
const START: Duration = Duration::from_millis(50);

/// The running program. It ends when this is dropped, and also when this process ends in any
/// other way: its standard input is a pipe whose other end nobody else holds.
#[derive(Debug)]
pub(crate) struct Workload {
    child: Child,
    /// Where the program's file is, if it had to be one with a name.
    _file: Option<tempfile::TempDir>,
}

impl Workload {
    /// Starts the program from memory, or from a temporary file where that is not allowed
    /// (`vm.memfd_noexec`, no memfd).
    pub(crate) fn start() -> anyhow::Result<Self> {
        match start_from_memory() {
            Ok(child) => Ok(Self { child, _file: None }),
            Err(error) => {
                tracing::debug!(%error, "no start from memory");
                start_from_file().context("starting the bundled program")
            }
        }
    }

    /// Its process number.
    pub(crate) fn pid(&self) -> anyhow::Result<i32> {
        Ok(i32::try_from(self.child.id())?)
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        // It may have ended by itself, which is all that is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start_from_memory() -> anyhow::Result<Child> {
    let descriptor = memfd_create(c"dataspace-demo", MemfdFlags::CLOEXEC)?;
    let mut file = File::from(descriptor);
    file.write_all(PROGRAM)?;
    // The kernel opens the path before it closes the descriptor.
    spawn(&PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())))
}

fn start_from_file() -> anyhow::Result<Workload> {
    let dir = tempfile::Builder::new().prefix("dataspace-demo-").tempdir()?;
    let path = dir.path().join("workload");
    fs::write(&path, PROGRAM)?;
    fs::set_permissions(&path, Permissions::from_mode(0o700))?;
    Ok(Workload { child: spawn(&path)?, _file: Some(dir) })
}

fn spawn(path: &Path) -> anyhow::Result<Child> {
    let mut child = Command::new(path)
        .arg0("dataspace-demo")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // A group of its own: Ctrl-C is for us, and the totals of the last moment are wanted.
        .process_group(0)
        .spawn()
        .map_err(|error| refused(path, error))?;
    let deadline = Instant::now() + START;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait()? {
            anyhow::bail!("the bundled program ended at once: {status}");
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(child)
}

fn refused(path: &Path, error: io::Error) -> anyhow::Error {
    let failure = Failure::new(Kind::NotPermitted, format!("executing {}", path.display()))
        .with_remedy("TMPDIR=DIR dataspace demo   with a directory that is not mounted noexec");
    if error.kind() == io::ErrorKind::PermissionDenied {
        return failure.into();
    }
    anyhow::Error::from(error).context(format!("executing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_alive(pid: i32) -> bool {
        fs::exists(format!("/proc/{pid}")).unwrap()
    }

    #[test]
    fn the_program_runs_from_memory_and_ends_with_its_owner() {
        let workload = Workload { child: start_from_memory().unwrap(), _file: None };
        let pid = workload.pid().unwrap();
        assert!(is_alive(pid));
        drop(workload);
        assert!(!is_alive(pid));
    }

    #[test]
    fn the_program_runs_from_a_file() {
        assert!(is_alive(start_from_file().unwrap().pid().unwrap()));
    }

    #[test]
    fn the_program_ends_when_its_standard_input_closes() {
        let mut workload = Workload { child: start_from_memory().unwrap(), _file: None };
        drop(workload.child.stdin.take());
        let deadline = Instant::now() + Duration::from_secs(10);
        while workload.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "still running");
            thread::sleep(Duration::from_millis(10));
        }
    }
}
