//! A control group whose tasks are counted: what tells it from a later one of the same path, for a
//! unit that restarts gets a new one.

use crate::cgroup::Cgroup;
use crate::error::Error;
use crate::target::Coverage;
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};

/// A group that is open.
#[derive(Debug)]
pub(crate) struct GroupWatch {
    group: Cgroup,
    directory: OwnedFd,
    identity: Option<(u64, u64)>,
    is_gone: bool,
}

/// What became of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupChange {
    /// It was removed: the unit stopped.
    Gone,
    /// There is one again.
    Back,
}

impl GroupWatch {
    /// Opens the group that `coverage` names, if it does.
    ///
    /// # Errors
    /// [`Error::System`] where its directory cannot be opened.
    pub(crate) fn of(coverage: &Coverage) -> Result<Option<Self>, Error> {
        match coverage {
            Coverage::Cgroup(group) => Self::open(group.clone()).map(Some),
            Coverage::Tasks | Coverage::Cpus => Ok(None),
        }
    }

    fn open(group: Cgroup) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(&group.path, flags, Mode::empty())
            .map_err(|errno| Error::System { call: "opening the control group", errno })?;
        let identity = group.identity();
        Ok(Self { group, directory, identity, is_gone: false })
    }

    /// Its directory, by which the kernel knows it.
    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Its name, for a person.
    pub(crate) fn name(&self) -> String {
        self.group.path.display().to_string()
    }

    /// Looks whether the group was removed, or is there again: then it is open anew.
    pub(crate) fn check(&mut self) -> Option<GroupChange> {
        let identity = self.group.identity();
        if identity == self.identity {
            return None;
        }
        if identity.is_none() {
            let is_news = !std::mem::replace(&mut self.is_gone, true);
            return is_news.then_some(GroupChange::Gone);
        }
        // A group that goes again at this moment is found out at the next look.
        *self = Self::open(self.group.clone()).ok()?;
        Some(GroupChange::Back)
    }
}
