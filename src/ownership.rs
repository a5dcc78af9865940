//! Ownership of a process by a user: the kernel's rule for reading another process
//! (`__ptrace_may_access()` in Linux `kernel/ptrace.c`, `cap_ptrace_access_check()` in
//! `security/commoncap.c`), asked for somebody else than ourselves.

use dataspace_collector::system::procfs::{Ids, ProcessDirectory, Procfs, Status};
use dataspace_collector::target::has_ended;
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};
use std::io;
use std::path::Path;
use std::sync::OnceLock;

/// The user for whom all is done: in a worker another than its own.
static USER: OnceLock<u32> = OnceLock::new();

/// Threads that are looked at while a client waits: 15 µs each.
const MAX_LOOKED_AT: usize = 512;

/// The user for whom all is done. A process asks before it becomes somebody else.
pub(crate) fn user() -> u32 {
    *USER.get_or_init(|| geteuid().as_raw())
}

/// A process whose number cannot become another's unnoticed.
#[derive(Debug)]
pub(crate) struct OwnProcess {
    pid: i32,
    uid: u32,
    gid: u32,
    pidfd: OwnedFd,
    directory: ProcessDirectory,
}

/// Relation of a process to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is his.
    Own,
    /// It has ended.
    Gone,
    /// It is one of others, as its ids say: he is not told that it is there.
    OfOthers(String),
    /// It has his ids and may yet not be his: why.
    Foreign(String),
}

impl OwnProcess {
    /// Opens process `pid` for the user `uid` with the group `gid`.
    ///
    /// # Errors
    /// Why it is not his to profile.
    pub(crate) fn open(pid: i32, uid: u32, gid: u32) -> Result<Self, Standing> {
        let number = Pid::from_raw(pid).ok_or(Standing::Gone)?;
        // The descriptor first: what is read of the number afterwards is this process's, as long as
        // it has not ended.
        let pidfd = pidfd_open(number, PidfdFlags::empty()).map_err(|_| Standing::Gone)?;
        let directory = Procfs::default().directory(pid).map_err(|_| Standing::Gone)?;
        let process = Self { pid, uid, gid, pidfd, directory };
        match process.standing() {
            Standing::Own => Ok(process),
            standing => Err(standing),
        }
    }

    /// Its relation now: exec and setuid change that.
    pub(crate) fn standing(&self) -> Standing {
        if has_ended(&self.pidfd) {
            return Standing::Gone;
        }
        let Self { pid, uid, gid, .. } = self;
        let foreign = |why: &str| Standing::Foreign(format!("process {pid} {why}"));
        let Ok((owner, status)) = self.directory.status() else {
            return if has_ended(&self.pidfd) {
                Standing::Gone
            } else {
                foreign("does not show its status")
            };
        };
        // Files of a process belong to its effective user, but to root where it is not dumpable
        // (`task_dump_owner()` in Linux `fs/proc/base.c`).
        let is_dumpable = owner == (*uid, *gid);
        if !has_ids(&status, *uid, *gid) {
            return Standing::OfOthers(format!(
                "process {pid} does not belong to this user with all its user and group ids"
            ));
        }
        if !is_dumpable {
            return foreign("is not dumpable");
        }
        if status.permitted_capabilities != Some(0) {
            return foreign("has capabilities");
        }
        if !is_in_our_namespace(&self.directory) {
            return foreign("is in another user namespace");
        }
        Standing::Own
    }

    /// Opens what `path` leads to in its directory of `/proc`, if it is the user's all the while.
    pub(crate) fn open_in_directory(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let found = self.directory.open_inside(path, flags)?;
        match self.standing() {
            Standing::Own => Ok(found),
            Standing::Gone => Err(io::ErrorKind::NotFound.into()),
            Standing::OfOthers(_) | Standing::Foreign(_) => {
                Err(io::ErrorKind::PermissionDenied.into())
            }
        }
    }

    /// Tells whether any of its first threads has other rights than the user's. The others are looked at when an event is
    /// opened on them.
    pub(crate) fn has_foreign_thread(&self) -> bool {
        let tasks = Procfs::default().tasks(self.pid).unwrap_or_default();
        tasks.iter().take(MAX_LOOKED_AT).any(|tid| {
            let status = Procfs::default().status(tid);
            status.is_ok_and(|status| !is_plain_thread(&status, self.uid, self.gid))
        })
    }

    /// Number of its threads now; 0 where that cannot be told.
    pub(crate) fn n_threads(&self) -> u64 {
        self.directory.status().ok().and_then(|(_, status)| status.n_threads).unwrap_or(0)
    }
}

/// Tells whether all user and group ids of a thread, whose status is given, are these.
fn has_ids(status: &Status, uid: u32, gid: u32) -> bool {
    let all_are = |ids: Option<Ids>, id: u32| {
        ids.is_some_and(|ids| [ids.real, ids.effective, ids.saved] == [id; 3])
    };
    all_are(status.users, uid) && all_are(status.groups, gid)
}

/// Tells whether a thread, whose status is given, has the rights of this user and no others: the threads of a process may
/// differ in that.
pub(crate) fn is_plain_thread(status: &Status, uid: u32, gid: u32) -> bool {
    has_ids(status, uid, gid) && status.permitted_capabilities == Some(0)
}

/// Tells whether a process, whose directory is given, is in our own user namespace.
pub(crate) fn is_in_our_namespace(directory: &ProcessDirectory) -> bool {
    let own = || Procfs::default().directory("self").ok()?.user_namespace();
    directory.user_namespace().is_some_and(|there| own() == Some(there))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{getegid, geteuid};
    use std::process::{Child, Command, Stdio};

    /// A program that waits for its standard input to end.
    fn waiting(command: &mut Command) -> Child {
        let child = command.arg("cat").stdin(Stdio::piped()).stdout(Stdio::piped());
        child.spawn().unwrap()
    }

    fn end(mut child: Child) {
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    fn pid(child: &Child) -> i32 {
        child.id().cast_signed()
    }

    #[test]
    fn a_process_that_is_gone_is_nobodys() {
        let child = waiting(&mut Command::new("env"));
        let number = pid(&child);
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        let before = OwnProcess::open(number, uid, gid);
        end(child);
        if let Ok(process) = before {
            assert_eq!(process.standing(), Standing::Gone);
        }
        assert!(matches!(OwnProcess::open(0, uid, gid), Err(Standing::Gone)));
    }

    #[test]
    fn all_ids_have_to_be_the_users_and_nothing_may_be_privileged() {
        const USER: &str = "4000001";
        const OTHER: &str = "4000002";
        if !geteuid().is_root() {
            eprintln!("not run: only root can start programs of other users");
            return;
        }
        let check = |args: &[&str], says: Option<&str>| {
            let mut command = Command::new("setpriv");
            let mut child = waiting(command.args(args).arg("--clear-groups"));
            // Once it copies what is written to it, it is that program with those ids.
            use std::io::{Read as _, Write as _};
            child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
            child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
            let user: u32 = USER.parse().unwrap();
            let found = OwnProcess::open(pid(&child), user, user);
            match (found, says) {
                (Ok(process), None) => assert_eq!(process.n_threads(), 1),
                (Err(Standing::OfOthers(why) | Standing::Foreign(why)), Some(says)) => {
                    assert!(why.contains(says), "{args:?}: {why}");
                }
                (found, _) => panic!("{args:?}: {found:?}"),
            }
            end(child);
        };
        let (user, group) = (&*format!("--reuid={USER}"), &*format!("--regid={USER}"));
        check(&[user, group], None);
        check(&[&format!("--reuid={OTHER}"), group], Some("does not belong"));
        check(&[user, &format!("--regid={OTHER}")], Some("does not belong"));
        check(
            &[&format!("--ruid={OTHER}"), &format!("--euid={USER}"), group],
            Some("does not belong"),
        );
        check(
            &[user, &format!("--rgid={OTHER}"), &format!("--egid={USER}")],
            Some("does not belong"),
        );
        let capability = ["--inh-caps=+net_raw", "--ambient-caps=+net_raw"];
        check(&[user, group, capability[0], capability[1]], Some("has capabilities"));
    }
}
