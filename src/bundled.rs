//! Programs compiled by `build.rs` and carried in this binary: started from memory, or from a file.

use crate::exit::{Failure, Kind};
use anyhow::Context;
use dataspace_collector::system::procfs::Procfs;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Time in which the program has to show that it runs at all.
const START: Duration = Duration::from_millis(50);

/// A program in this binary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bundled {
    /// Name of the process.
    pub(crate) name: &'static str,
    /// Its file.
    pub(crate) bytes: &'static [u8],
    /// Destination of its standard output.
    pub(crate) output: fn() -> Stdio,
    /// Command that the user typed to have it run.
    pub(crate) typed: &'static str,
}

/// The running program. It ends when this is dropped, and also when this process ends in any
/// other way: its standard input is a pipe whose other end nobody else holds.
#[derive(Debug)]
pub(crate) struct Started {
    child: Child,
    /// Path of the program's file, if it had to be one with a name.
    _file: Option<tempfile::TempDir>,
}

impl Bundled {
    /// Starts the program from memory, or from a temporary file where that is not allowed
    /// (`vm.memfd_noexec`, no memfd).
    pub(crate) fn start(&self) -> anyhow::Result<Started> {
        self.start_from_memory().or_else(|error| {
            tracing::debug!(%error, "no start from memory");
            self.start_from_file().context("starting the bundled program")
        })
    }

    fn start_from_memory(&self) -> anyhow::Result<Started> {
        let descriptor = memfd_create(self.name, MemfdFlags::CLOEXEC)?;
        let mut file = File::from(descriptor);
        file.write_all(self.bytes)?;
        // The kernel opens the path before it closes the descriptor.
        let path = Procfs::default().own_file(&file);
        Ok(Started { child: self.spawn(&path)?, _file: None })
    }

    fn start_from_file(&self) -> anyhow::Result<Started> {
        let dir = tempfile::Builder::new().prefix(self.name).tempdir()?;
        let path = dir.path().join("workload");
        fs::write(&path, self.bytes)?;
        fs::set_permissions(&path, Permissions::from_mode(0o700))?;
        Ok(Started { child: self.spawn(&path)?, _file: Some(dir) })
    }

    fn spawn(&self, path: &Path) -> anyhow::Result<Child> {
        let mut child = Command::new(path)
            .arg0(self.name)
            .stdin(Stdio::piped())
            .stdout((self.output)())
            .stderr(Stdio::null())
            // A group of its own: Ctrl-C is for us, and the totals of the last moment are wanted.
            .process_group(0)
            .spawn()
            .map_err(|error| self.refused(path, error))?;
        let deadline = Instant::now() + START;
        while Instant::now() < deadline {
            if let Some(status) = child.try_wait()? {
                anyhow::bail!("the bundled program ended at once: {status}");
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(child)
    }

    fn refused(&self, path: &Path, error: io::Error) -> anyhow::Error {
        let remedy = format!(
            "TMPDIR=DIR dataspace {}   with a directory that is not mounted noexec",
            self.typed
        );
        let failure = Failure::new(Kind::NotPermitted, format!("executing {}", path.display()));
        if error.kind() == io::ErrorKind::PermissionDenied {
            return failure.with_remedy(remedy).into();
        }
        anyhow::Error::from(error).context(format!("executing {}", path.display()))
    }
}

impl Started {
    /// Its process number.
    pub(crate) fn pid(&self) -> anyhow::Result<i32> {
        Ok(i32::try_from(self.child.id())?)
    }

    /// Its standard input. It ends when that closes.
    pub(crate) fn input(&mut self) -> Option<&mut ChildStdin> {
        self.child.stdin.as_mut()
    }

    /// Its standard output, where that is a pipe, once.
    pub(crate) fn take_output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended by itself, which is all that is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo;

    fn is_busy(error: &anyhow::Error) -> bool {
        let error = error.root_cause().downcast_ref::<io::Error>();
        error.is_some_and(|error| error.kind() == io::ErrorKind::ExecutableFileBusy)
    }

    fn is_alive(pid: i32) -> bool {
        fs::exists(format!("/proc/{pid}")).unwrap()
    }

    #[test]
    fn a_program_runs_from_memory_and_ends_with_its_owner() {
        let started = demo::PROGRAM.start_from_memory().unwrap();
        let pid = started.pid().unwrap();
        assert!(is_alive(pid));
        drop(started);
        assert!(!is_alive(pid));
    }

    #[test]
    fn a_program_runs_from_a_file() {
        let started = loop {
            match demo::PROGRAM.start_from_file() {
                // A child that another test forks meanwhile has the file open for writing until it executes.
                Err(error) if is_busy(&error) => thread::yield_now(),
                started => break started.unwrap(),
            }
        };
        assert!(is_alive(started.pid().unwrap()));
    }

    #[test]
    fn a_program_ends_when_its_standard_input_closes() {
        let mut started = demo::PROGRAM.start_from_memory().unwrap();
        drop(started.child.stdin.take());
        // One that goes on lets the test hang, which a busy machine does not.
        started.child.wait().unwrap();
    }
}
