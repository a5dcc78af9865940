//! Right of a user to read a file that is opened for a session of his, with privileges that he has
//! not got: what his program's debug information names must not lead to what he may not see.

use dataspace_collector::system::procfs::{Credentials, Procfs};
use dataspace_proto::worker::Viewer;
use rustix::fs::{Stat, fstat, getxattr, stat};
use rustix::io::Errno;
use rustix::process::{Gid, getegid, geteuid, getgroups};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The permission bits of the others (POSIX.1, `<sys/stat.h>`).
const READ: u32 = 0o4;
const SEARCH: u32 = 0o1;

/// Our own user, without the privileges that we may have.
fn own() -> Viewer {
    let groups = getgroups().unwrap_or_default().into_iter().map(Gid::as_raw).collect();
    Viewer { uid: geteuid().as_raw(), gid: getegid().as_raw(), groups }
}

/// Tells whether `viewer` may read the file of `found`, and search every directory above it. What cannot be told is a
/// no: access control lists, files of another mount namespace.
pub(super) fn may_read(viewer: &Viewer, found: &OwnedFd) -> bool {
    let link = Procfs::default().own_file(found);
    let (Ok(path), Ok(file)) = (std::fs::read_link(link), fstat(found)) else { return false };
    // The path is that of the file's own mount tree: here it may be another file's.
    let is_here =
        stat(&path).is_ok_and(|here| (here.st_dev, here.st_ino) == (file.st_dev, file.st_ino));
    is_here
        && path.is_absolute()
        && has(viewer, &file, READ)
        && !has_access_list(&path)
        && path.ancestors().skip(1).all(|directory| {
            let may_search = stat(directory).is_ok_and(|stat| has(viewer, &stat, SEARCH));
            may_search && !has_access_list(directory)
        })
}

/// The same of a file that a process of his has mapped: the kernel let that find it, in whatever mount namespace, so
/// that no directory decides. It maps programs that may be run and not read, too.
pub(super) fn may_read_mapped(viewer: &Viewer, found: &OwnedFd) -> bool {
    let link = Procfs::default().own_file(found);
    fstat(found).is_ok_and(|file| has(viewer, &file, READ)) && !has_access_list(&link)
}

/// The first of owner, group and others that he is decides (POSIX.1, 4.7 File Access Permissions).
fn has(viewer: &Viewer, stat: &Stat, right: u32) -> bool {
    let shift = if stat.st_uid == viewer.uid {
        6
    } else if stat.st_gid == viewer.gid || viewer.groups.contains(&stat.st_gid) {
        3
    } else {
        0
    };
    stat.st_mode >> shift & right != 0
}

/// Tells whether the process of `task` could read the file of `found` itself, with the credentials of each of its
/// threads: what it names is not opened with more rights than it has. Of one that has ended nobody knows what it might
/// have read: then our own user's file, or everybody's. What cannot be told is a no.
pub(super) fn may_target_read(task: Option<i32>, found: &OwnedFd) -> bool {
    let procfs = Procfs::default();
    let mut checked: Vec<Credentials> = Vec::new();
    let tids = task.and_then(|task| procfs.tasks(task).ok());
    for tid in tids.unwrap_or_default() {
        // One that has ended meanwhile reads nothing.
        let Ok(one) = procfs.credentials(tid) else { continue };
        if checked.contains(&one) {
            continue;
        }
        let reader = Viewer { uid: one.uid, gid: one.gid, groups: one.groups.clone() };
        if !one.reads_all && !may_read_mapped(&reader, found) {
            return false;
        }
        checked.push(one);
    }
    !checked.is_empty() || may_read_mapped(&own(), found)
}

/// The same for text that is shown to people. Of a recording, and of a process that has ended, nobody knows who named it:
/// what root alone may read is then not shown to root.
pub(super) fn may_target_have_read(task: Option<i32>, found: &OwnedFd) -> bool {
    let procfs = Procfs::default();
    let is_gone = task.is_none_or(|task| procfs.tasks(task).map_or(true, |tids| tids.is_empty()));
    if is_gone && geteuid().is_root() {
        // Nobody's number, so that the rights of the others decide.
        let others = Viewer { uid: u32::MAX, gid: u32::MAX, groups: Vec::new() };
        return may_read_mapped(&others, found);
    }
    may_target_read(task, found)
}

/// Tells whether more than the mode decides, or that cannot be told.
fn has_access_list(path: &Path) -> bool {
    let mut value = [0_u8; 0];
    let found = getxattr(path.as_os_str().as_bytes(), "system.posix_acl_access", &mut value);
    !matches!(found, Err(Errno::NODATA | Errno::NOTSUP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    /// Nobody's number.
    const STRANGER: u32 = 4_000_000;

    fn may_read_at(path: &Path, viewer: &Viewer) -> bool {
        let found = rustix::fs::open(path, OFlags::PATH, Mode::empty()).unwrap();
        may_read(viewer, &found)
    }

    #[test]
    fn of_a_mapped_file_its_own_mode_decides() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "x").unwrap();
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        set(dir.path(), 0o700);
        let stranger = Viewer { uid: STRANGER, gid: STRANGER, groups: Vec::new() };
        for (mode, expect) in [(0o755, true), (0o711, false), (0o750, false)] {
            set(&path, mode);
            let found = rustix::fs::open(&path, OFlags::PATH, Mode::empty()).unwrap();
            assert_eq!(may_read_mapped(&stranger, &found), expect, "{mode:o}");
            assert!(!may_read(&stranger, &found), "its directory is closed to him");
        }
    }

    #[test]
    fn the_modes_of_the_file_and_of_all_directories_decide() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "x").unwrap();
        let own = std::fs::metadata(&path).unwrap();
        let owner = Viewer { uid: own.uid(), gid: STRANGER, groups: Vec::new() };
        let member = Viewer { uid: STRANGER, gid: STRANGER, groups: vec![own.gid()] };
        let other = Viewer { uid: STRANGER, gid: STRANGER, groups: Vec::new() };
        let check = |dir_mode: u32, mode: u32, expect: [bool; 3]| {
            let set = |path: &Path, mode| {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
            };
            set(&path, mode);
            set(dir.path(), dir_mode);
            let found = [&owner, &member, &other].map(|viewer| may_read_at(&path, viewer));
            assert_eq!(found, expect, "{dir_mode:o} {mode:o}");
        };
        check(0o755, 0o644, [true, true, true]);
        check(0o755, 0o640, [true, true, false]);
        check(0o755, 0o600, [true, false, false]);
        check(0o700, 0o644, [true, false, false]);
        // Who is the owner gets nothing of what the others may.
        if rustix::process::geteuid().is_root() {
            check(0o755, 0o044, [false, true, true]);
        }
    }
}
