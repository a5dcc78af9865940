//! Right of a user to read a file that is opened for a session of his, with privileges that he has
//! not got: what his program's debug information names must not lead to what he may not see.

use dataspace_collector::system::procfs::{Credentials, Procfs};
use rustix::fs::{Stat, fstat, getxattr, stat};
use rustix::io::Errno;
use rustix::process::{Gid, getegid, geteuid, getgroups};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

/// The user whose permissions decide, beside our own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileReader {
    /// The user.
    pub(crate) uid: u32,
    /// His group.
    pub(crate) gid: u32,
    /// His other groups.
    pub(crate) groups: Arc<[u32]>,
}

/// The permission bits of the others (POSIX.1, `<sys/stat.h>`).
const READ: u32 = 0o4;
const SEARCH: u32 = 0o1;

impl FileReader {
    /// Our own user, without the privileges that we may have.
    fn own() -> Self {
        let groups = getgroups().unwrap_or_default().into_iter().map(Gid::as_raw);
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        Self { uid, gid, groups: groups.collect() }
    }

    /// Tells whether the user may read the file of `found`, and search every directory above it. What
    /// cannot be told is a no: access control lists, files of another mount namespace.
    pub(super) fn may_read(&self, found: &OwnedFd) -> bool {
        let link = Procfs::default().own_file(found);
        let (Ok(path), Ok(file)) = (std::fs::read_link(link), fstat(found)) else { return false };
        // The path is that of the file's own mount tree: here it may be another file's.
        let is_here =
            stat(&path).is_ok_and(|here| (here.st_dev, here.st_ino) == (file.st_dev, file.st_ino));
        is_here
            && path.is_absolute()
            && self.has(&file, READ)
            && !has_access_list(&path)
            && path.ancestors().skip(1).all(|directory| {
                let may_search = stat(directory).is_ok_and(|stat| self.has(&stat, SEARCH));
                may_search && !has_access_list(directory)
            })
    }

    /// The same of a file that a process of his has mapped: the kernel let that find it, in whatever mount namespace,
    /// so that no directory decides. It maps programs that may be run and not read, too.
    pub(super) fn may_read_mapped(&self, found: &OwnedFd) -> bool {
        let link = Procfs::default().own_file(found);
        fstat(found).is_ok_and(|file| self.has(&file, READ)) && !has_access_list(&link)
    }

    /// The first of owner, group and others that he is decides (POSIX.1, 4.7 File Access
    /// Permissions).
    fn has(&self, stat: &Stat, right: u32) -> bool {
        let shift = if stat.st_uid == self.uid {
            6
        } else if stat.st_gid == self.gid || self.groups.contains(&stat.st_gid) {
            3
        } else {
            0
        };
        stat.st_mode >> shift & right != 0
    }
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
        let reader = FileReader { uid: one.uid, gid: one.gid, groups: one.groups.clone().into() };
        if !one.reads_all && !reader.may_read_mapped(found) {
            return false;
        }
        checked.push(one);
    }
    !checked.is_empty() || FileReader::own().may_read_mapped(found)
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

    fn may_read(path: &Path, reader: &FileReader) -> bool {
        let found = rustix::fs::open(path, OFlags::PATH, Mode::empty()).unwrap();
        reader.may_read(&found)
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
        let stranger = FileReader { uid: STRANGER, gid: STRANGER, groups: Arc::default() };
        for (mode, expect) in [(0o755, true), (0o711, false), (0o750, false)] {
            set(&path, mode);
            let found = rustix::fs::open(&path, OFlags::PATH, Mode::empty()).unwrap();
            assert_eq!(stranger.may_read_mapped(&found), expect, "{mode:o}");
            assert!(!stranger.may_read(&found), "its directory is closed to him");
        }
    }

    #[test]
    fn the_modes_of_the_file_and_of_all_directories_decide() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "x").unwrap();
        let own = std::fs::metadata(&path).unwrap();
        let owner = FileReader { uid: own.uid(), gid: STRANGER, groups: Arc::default() };
        let member = FileReader { uid: STRANGER, gid: STRANGER, groups: [own.gid()].into() };
        let other = FileReader { uid: STRANGER, gid: STRANGER, groups: Arc::default() };
        let check = |dir_mode: u32, mode: u32, expect: [bool; 3]| {
            let set = |path: &Path, mode| {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
            };
            set(&path, mode);
            set(dir.path(), dir_mode);
            let found = [&owner, &member, &other].map(|reader| may_read(&path, reader));
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
