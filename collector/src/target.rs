//! What a session is attached to, and when that has ended.

use crate::error::Error;
use crate::procfs::Procfs;
use crate::sys::{pidfd, spawn};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::ffi::OsString;

/// What to profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetSpec {
    /// Processes: every thread, and every thread and child born later.
    Pids(Vec<i32>),
    /// Single threads, without what is born of them.
    Tids(Vec<i32>),
    /// A command with its arguments, from its first instruction on, with its children.
    Command(Vec<OsString>),
}

/// Where a command's output goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandOutput {
    /// Where ours goes.
    #[default]
    Inherit,
    /// To our standard error: our standard output is for data.
    Stderr,
    /// Nowhere, and it has no input: the terminal is ours.
    Discard,
}

/// A task whose end is watched.
#[derive(Debug)]
pub(crate) struct Watched {
    /// The task's process.
    pub(crate) pid: i32,
    /// The only thread to sample, or all of the process.
    pub(crate) tid: Option<i32>,
    pub(crate) pidfd: OwnedFd,
}

/// A target that was found, or forked.
#[derive(Debug)]
pub(crate) struct Target {
    /// Those of the asked-for tasks that are there.
    pub(crate) watched: Vec<Watched>,
    /// The command's process, not executed yet.
    pub(crate) held: Option<spawn::HeldChild>,
    /// For a person.
    pub(crate) description: String,
}

impl Target {
    /// Finds, or forks, what `spec` names. Tasks that are not there are left out.
    pub(crate) fn find(
        spec: &TargetSpec,
        output: CommandOutput,
        procfs: &Procfs,
    ) -> Result<Self, Error> {
        match spec {
            TargetSpec::Pids(pids) => Self::existing(pids, procfs, "process", |pid| {
                let pidfd = pidfd::open_process(pid)?;
                Ok(Watched { pid, tid: None, pidfd })
            }),
            TargetSpec::Tids(tids) => Self::existing(tids, procfs, "thread", |tid| {
                // The descriptor first: what is read after it opened is this thread's as long as
                // it has not ended.
                let pid = procfs.status(tid).ok().and_then(|status| status.pid);
                let pid = pid.ok_or(Errno::SRCH)?;
                let pidfd = pidfd::open_thread(tid, pid)?;
                Ok(Watched { pid, tid: Some(tid), pidfd })
            }),
            TargetSpec::Command(argv) => Self::forked(argv, output),
        }
    }

    fn existing(
        ids: &[i32],
        procfs: &Procfs,
        noun: &str,
        watch: impl Fn(i32) -> Result<Watched, Errno>,
    ) -> Result<Self, Error> {
        let Some(&first) = ids.first() else { return Err(Error::NoTarget) };
        let mut watched = Vec::new();
        let mut names = Vec::new();
        let mut seen = Vec::new();
        for &id in ids {
            if seen.contains(&id) {
                continue;
            }
            seen.push(id);
            match watch(id) {
                Ok(one) => {
                    let name = procfs.comm(one.pid, id).unwrap_or_default();
                    names.push(format!("{noun} {id} ({})", String::from_utf8_lossy(&name)));
                    watched.push(one);
                }
                // EINVAL, ENOENT from Linux 6.16 on: the number is a thread's, not a process's.
                Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => {}
                Err(errno) => return Err(Error::System { call: "pidfd_open", errno }),
            }
        }
        if watched.is_empty() {
            let process = procfs.status(first).ok().and_then(|status| status.pid);
            return Err(match process {
                Some(process) if process != first => {
                    Error::ThreadNotProcess { tid: first, process }
                }
                _ => Error::NoSuchProcess { id: first },
            });
        }
        Ok(Self { watched, held: None, description: names.join(", ") })
    }

    fn forked(argv: &[OsString], output: CommandOutput) -> Result<Self, Error> {
        let Some(name) = argv.first() else { return Err(Error::NoTarget) };
        let held = spawn::hold(argv, output)
            .map_err(|errno| Error::Command { name: name.clone(), errno })?;
        let pid = held.pid();
        let pidfd = pidfd::open_process(pid)
            .map_err(|errno| Error::System { call: "pidfd_open of the command", errno })?;
        let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
        Ok(Self {
            watched: vec![Watched { pid, tid: None, pidfd }],
            held: Some(held),
            description: words.join(" "),
        })
    }

    /// Forgets the tasks that have ended: whatever was read of their numbers since may have been
    /// another's.
    pub(crate) fn drop_ended(&mut self) -> Result<(), Error> {
        let first = self.watched.first().map_or(0, |watched| watched.tid.unwrap_or(watched.pid));
        self.watched.retain(|watched| !pidfd::has_ended(&watched.pidfd));
        if self.watched.is_empty() { Err(Error::NoSuchProcess { id: first }) } else { Ok(()) }
    }
}
