//! Ownership of a process by a user: the kernel's rule for reading another process
//! (`__ptrace_may_access()` in Linux `kernel/ptrace.c`, `cap_ptrace_access_check()` in
//! `security/commoncap.c`), asked for somebody else than ourselves.

use dataspace_collector::live::Permission;
use dataspace_collector::target::has_ended;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, statat};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// A process's status is 1.5 kB; its groups, one of the lines, may be 65,536 numbers.
const MAX_STATUS_BYTES: u64 = 1 << 20;

/// A process whose number cannot become another's unnoticed.
#[derive(Debug)]
pub(crate) struct OwnProcess {
    pid: i32,
    uid: u32,
    gid: u32,
    pidfd: OwnedFd,
    /// `/proc/PID`, of this very process.
    directory: OwnedFd,
}

/// The processes of a user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessesOf {
    /// The user.
    pub(crate) uid: u32,
    /// His group.
    pub(crate) gid: u32,
}

impl Permission for ProcessesOf {
    fn uid(&self) -> u32 {
        self.uid
    }

    fn may_see(&self, pid: i32) -> bool {
        OwnProcess::open(pid, self.uid, self.gid).is_ok()
    }
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
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(format!("/proc/{pid}"), flags, Mode::empty())
            .map_err(|_| Standing::Gone)?;
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
        let Some((owner, status)) = self.status() else {
            return if has_ended(&self.pidfd) {
                Standing::Gone
            } else {
                foreign("does not show its status")
            };
        };
        // Files of a process belong to its effective user, but to root where it is not dumpable
        // (`task_dump_owner()` in Linux `fs/proc/base.c`).
        let is_dumpable = owner == (*uid, *gid);
        if ids(&status, "Uid:") != Some([*uid; 3]) || ids(&status, "Gid:") != Some([*gid; 3]) {
            return Standing::OfOthers(format!(
                "process {pid} does not belong to this user with all its user and group ids"
            ));
        }
        if !is_dumpable {
            return foreign("is not dumpable");
        }
        if line(&status, "CapPrm:").is_none_or(|set| set.bytes().any(|digit| digit != b'0')) {
            return foreign("has capabilities");
        }
        if namespace_of(self.directory.as_fd()).is_none_or(|there| own_namespace() != Some(there)) {
            return foreign("is in another user namespace");
        }
        Standing::Own
    }

    /// Opens what `path` leads to in its directory of `/proc`, if it is the user's all the while.
    pub(crate) fn open_in_directory(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let found = openat(&self.directory, path, flags, Mode::empty())?;
        match self.standing() {
            Standing::Own => Ok(found),
            Standing::Gone => Err(io::ErrorKind::NotFound.into()),
            Standing::OfOthers(_) | Standing::Foreign(_) => {
                Err(io::ErrorKind::PermissionDenied.into())
            }
        }
    }

    /// Number of its threads now; 0 where that cannot be told.
    pub(crate) fn n_threads(&self) -> u64 {
        let number = |status: &str| line(status, "Threads:")?.parse().ok();
        self.status().and_then(|(_, status)| number(&status)).unwrap_or(0)
    }

    /// Owner of the process's status, and the text.
    fn status(&self) -> Option<((u32, u32), String)> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let status = openat(&self.directory, "status", flags, Mode::empty()).ok()?;
        let stat = fstat(&status).ok()?;
        let mut text = Vec::new();
        File::from(status).take(MAX_STATUS_BYTES).read_to_end(&mut text).ok()?;
        // The process's name may be any bytes.
        Some(((stat.st_uid, stat.st_gid), String::from_utf8_lossy(&text).into_owned()))
    }
}

/// Identity of the user namespace of a process, whose `/proc` directory is given.
pub(crate) fn namespace_of(directory: impl AsFd) -> Option<(u64, u64)> {
    let stat = statat(directory, "ns/user", AtFlags::empty()).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

/// Identity of our own user namespace.
pub(crate) fn own_namespace() -> Option<(u64, u64)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    namespace_of(rustix::fs::open("/proc/self", flags, Mode::empty()).ok()?)
}

/// The rest of the line that begins with `key`. A process's own name is on the first line, its
/// blanks and ends of line escaped.
fn line<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}

/// Real, effective and saved id.
fn ids(status: &str, key: &str) -> Option<[u32; 3]> {
    let mut ids = line(status, key)?.split_whitespace().map(|id| id.parse().ok());
    Some([ids.next()??, ids.next()??, ids.next()??])
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
    fn ids_are_real_effective_and_saved() {
        let status = "Name:\tUid:\nUid:\t1\t2\t3\t4\nGid:\t5\t5\t5\t5\n";
        assert_eq!(ids(status, "Uid:"), Some([1, 2, 3]));
        assert_eq!(ids(status, "Gid:"), Some([5, 5, 5]));
        assert_eq!(ids("Uid:\t1\tx\t3\n", "Uid:"), None);
        assert_eq!(ids("", "Uid:"), None);
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
