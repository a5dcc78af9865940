//! Tasks that a session is attached to, and when they have ended.

pub mod membership;

pub use crate::sys::pidfd::has_ended;

use crate::access;
use crate::access::command;
use crate::error::Error;
use crate::sys::spawn::HeldChild;
use crate::system::cgroup::{Cgroup, Hierarchies};
use crate::system::procfs::Procfs;
use crate::target::membership::{CommFilter, Membership, listed};
use dataspace_proto::broker::CommandOutput;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::getpid;
use std::ffi::OsString;
use std::path::PathBuf;

/// Tasks to profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetSpec {
    /// Processes: every thread, and every thread and child born later.
    Pids(Vec<i32>),
    /// Single threads, without what is born of them.
    Tids(Vec<i32>),
    /// A command with its arguments, from its first instruction on, with its children.
    Command(Vec<OsString>),
    /// A control group and those below it: a directory, or a path as `/proc/PID/cgroup` has it.
    Cgroup(PathBuf),
    /// The control group of a unit of systemd; a name without a suffix is a service's.
    Unit(String),
    /// Every process of the machine but this one.
    All,
}

/// A task whose end is watched.
#[derive(Debug)]
pub(crate) struct Watched {
    /// The task's process.
    pub(crate) pid: i32,
    /// The only thread to sample, or all of the process.
    pub(crate) tid: Option<i32>,
    pub(crate) pidfd: OwnedFd,
    /// The task's number and name, for a person.
    pub(crate) name: String,
}

/// Places where a session's events are to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// On each thread of each target, where what is born inherits them.
    Tasks,
    /// On each CPU, for the tasks of a control group.
    Cgroup(Cgroup),
    /// On each CPU, for all tasks.
    Cpus,
}

/// A target that was found, or forked.
#[derive(Debug)]
pub(crate) struct Target {
    /// Those of the asked-for tasks that are there; none where the target has no end of its own.
    pub(crate) watched: Vec<Watched>,
    /// The command's process, not executed yet.
    pub(crate) held: Option<HeldChild>,
    /// For a person; none: the whole system.
    pub(crate) description: Option<String>,
    pub(crate) coverage: Coverage,
}

impl Target {
    /// Finds, or forks, what `spec` names. Tasks that are not there are left out.
    pub(crate) fn find(
        spec: &TargetSpec,
        output: CommandOutput,
        procfs: &Procfs,
    ) -> Result<Self, Error> {
        let hierarchies = || Hierarchies::read(procfs);
        match spec {
            TargetSpec::Cgroup(path) => Self::group(hierarchies().group(path)?, "cgroup", procfs),
            TargetSpec::Unit(name) => Self::group(hierarchies().unit(name)?, "unit", procfs),
            TargetSpec::All => Ok(Self {
                watched: Vec::new(),
                held: None,
                description: None,
                coverage: Coverage::Cpus,
            }),
            TargetSpec::Pids(pids) => Self::existing(pids, procfs, "process", |pid| {
                let pidfd = access::process(pid)?;
                Ok((pid, None, pidfd))
            }),
            TargetSpec::Tids(tids) => Self::existing(tids, procfs, "thread", |tid| {
                // The descriptor first: what is read after it opened is this thread's as long as
                // it has not ended.
                let pid = procfs.status(tid).ok().and_then(|status| status.pid);
                let pid = pid.ok_or(Errno::SRCH)?;
                let pidfd = access::thread(tid, pid)?;
                Ok((pid, Some(tid), pidfd))
            }),
            TargetSpec::Command(argv) => Self::forked(argv, output),
        }
    }

    fn existing(
        ids: &[i32],
        procfs: &Procfs,
        noun: &str,
        watch: impl Fn(i32) -> Result<(i32, Option<i32>, OwnedFd), Errno>,
    ) -> Result<Self, Error> {
        let Some(&first) = ids.first() else { return Err(Error::NoTarget) };
        let mut watched: Vec<Watched> = Vec::new();
        let mut seen = Vec::new();
        for &id in ids {
            if seen.contains(&id) {
                continue;
            }
            seen.push(id);
            match watch(id) {
                Ok((pid, tid, pidfd)) => {
                    let comm = procfs.comm(pid, id).unwrap_or_default();
                    let name = format!("{noun} {id} ({})", String::from_utf8_lossy(&comm));
                    watched.push(Watched { pid, tid, pidfd, name });
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
        let names: Vec<&str> = watched.iter().map(|one| one.name.as_str()).collect();
        let description = Some(listed(&names));
        Ok(Self { watched, held: None, description, coverage: Coverage::Tasks })
    }

    /// The kernel counts by the group where its hierarchy can, else by the processes that are in
    /// it now, and by their children.
    fn group(group: Cgroup, noun: &str, procfs: &Procfs) -> Result<Self, Error> {
        let name = group.path.file_name().unwrap_or(group.path.as_os_str()).to_string_lossy();
        let description = Some(format!("{noun} {name}"));
        if group.counts_events() {
            let coverage = Coverage::Cgroup(group);
            return Ok(Self { watched: Vec::new(), held: None, description, coverage });
        }
        let pids = group.processes().unwrap_or_default();
        if pids.is_empty() {
            return Err(Error::Cgroup {
                name: group.path.display().to_string(),
                why: "its hierarchy cannot count events, and no process is in it now".into(),
                remedy: "a cgroup2 hierarchy counts whatever comes into the group later",
            });
        }
        let found = Self::find(&TargetSpec::Pids(pids), CommandOutput::Inherit, procfs)?;
        Ok(Self { description, ..found })
    }

    fn forked(argv: &[OsString], output: CommandOutput) -> Result<Self, Error> {
        let Some(name) = argv.first() else { return Err(Error::NoTarget) };
        let held = command::hold(argv, output)
            .map_err(|errno| Error::Command { name: name.clone(), errno })?;
        let pid = held.pid();
        let pidfd = access::process(pid)
            .map_err(|errno| Error::System { call: "pidfd_open of the command", errno })?;
        let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
        let name = words.join(" ");
        Ok(Self {
            watched: vec![Watched { pid, tid: None, pidfd, name: name.clone() }],
            held: Some(held),
            description: Some(name),
            coverage: Coverage::Tasks,
        })
    }

    /// Membership of the processes that the kernel will show; those there are now are in it.
    pub(crate) fn membership(&self, comms: CommFilter, procfs: &Procfs) -> Membership {
        // On a thread's events nothing but the target is seen.
        let takes_all = self.coverage == Coverage::Tasks || self.watched.is_empty();
        let own_pid = getpid().as_raw_nonzero().get();
        let own_pid = if self.watched.iter().any(|one| one.pid == own_pid) { 0 } else { own_pid };
        let mut membership = Membership::new(takes_all, own_pid, comms);
        for pid in self.processes() {
            let name = procfs.comm(pid, pid).unwrap_or_default();
            membership.add(pid, &name, procfs.tasks(pid).map_or(1, |tids| tids.len()), true);
        }
        membership
    }

    /// The processes there are now. Not those of the whole system: each of them is looked up when
    /// it is first seen.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let mut pids: Vec<i32> = match &self.coverage {
            Coverage::Cgroup(group) if self.watched.is_empty() => {
                group.processes().unwrap_or_default()
            }
            _ => self.watched.iter().map(|watched| watched.pid).collect(),
        };
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Forgets the tasks that have ended: whatever was read of their numbers since may have been
    /// another's.
    pub(crate) fn drop_ended(&mut self) -> Result<(), Error> {
        let Some(first) = self.watched.first() else { return Ok(()) };
        let first = first.tid.unwrap_or(first.pid);
        self.watched.retain(|watched| !has_ended(&watched.pidfd));
        if self.watched.is_empty() { Err(Error::NoSuchProcess { id: first }) } else { Ok(()) }
    }
}
