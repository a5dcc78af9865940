//! A process's directory of `/proc`, held open: it does not become that of another process with the same number.

use super::status::Status;
use super::whole;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, statat};
use std::fs::File;
use std::io;
use std::path::Path;

/// An open directory. What is read there is of the process that had the number when it was opened, and fails once
/// that has ended.
#[derive(Debug)]
pub struct ProcessDirectory(OwnedFd);

impl ProcessDirectory {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// Opens what `path` leads to in it.
    ///
    /// # Errors
    /// Those of opening.
    pub fn open_inside(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        Ok(openat(&self.0, path, flags, Mode::empty())?)
    }

    /// The process's status, and the user and group that own that file.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn status(&self) -> io::Result<((u32, u32), Status)> {
        let file = self.open_inside(Path::new("status"), OFlags::RDONLY | OFlags::CLOEXEC)?;
        let stat = fstat(&file)?;
        Ok(((stat.st_uid, stat.st_gid), Status::parse(&whole(File::from(file))?)))
    }

    /// Identity of the process's user namespace; `None` if it may not be seen.
    #[must_use]
    pub fn user_namespace(&self) -> Option<(u64, u64)> {
        let stat = statat(&self.0, "ns/user", AtFlags::empty()).ok()?;
        Some((stat.st_dev, stat.st_ino))
    }
}
