//! A control group whose tasks are counted: what tells it from a later one of the same path, for a
//! unit that restarts gets a new one.

use crate::access;
use crate::error::Error;
use crate::system::cgroup::Cgroup;
use crate::target::Coverage;
use std::path::Path;
use std::time::{Duration, Instant};

/// Interval at which a unit's group that is gone is looked for elsewhere: all groups of the machine are gone through.
const SEARCH: Duration = Duration::from_secs(5);

/// A group that is open.
#[derive(Debug)]
pub(crate) struct GroupWatch {
    group: Cgroup,
    identity: Option<(u64, u64)>,
    /// Time when it was removed, or looked for elsewhere last.
    gone_since: Option<Instant>,
}

/// Fate of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupChange {
    /// It was removed: the unit stopped.
    Gone,
    /// There is one again, of this path or of the same unit.
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
        access::directory(&group.path)
            .map_err(|errno| Error::System { call: "opening the control group", errno })?;
        let identity = group.identity();
        Ok(Self { group, identity, gone_since: None })
    }

    /// Its directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.group.path
    }

    /// Its name, for a person.
    pub(crate) fn name(&self) -> String {
        self.group.path.display().to_string()
    }

    /// Looks whether the group was removed, or is there again: then it is open anew.
    pub(crate) fn check(&mut self, now: Instant) -> Option<GroupChange> {
        let identity = self.group.identity();
        if identity == self.identity {
            return None;
        }
        let group = if identity.is_some() {
            self.group.clone()
        } else {
            let Some(since) = self.gone_since else {
                self.gone_since = Some(now);
                return Some(GroupChange::Gone);
            };
            if now.saturating_duration_since(since) < SEARCH {
                return None;
            }
            self.gone_since = Some(now);
            self.group.moved()?
        };
        // A group that goes again at this moment is found out at the next look.
        *self = Self::open(group).ok()?;
        Some(GroupChange::Back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::cgroup::Hierarchies;
    use std::fs;

    #[test]
    fn a_unit_that_was_given_another_slice_is_found_there() {
        let dir = tempfile::tempdir().unwrap();
        let slice = |name: &str| dir.path().join(name).join("redis.service");
        let make = |name: &str| {
            fs::create_dir_all(slice(name)).unwrap();
            fs::write(slice(name).join("cgroup.procs"), "7\n").unwrap();
        };
        make("system.slice");
        let mounts = format!("none {} cgroup2 rw 0 0\n", dir.path().display());
        let hierarchies = Hierarchies::new(&mounts);
        let by_name = Coverage::Cgroup(hierarchies.unit("redis").unwrap());
        let by_path = Coverage::Cgroup(hierarchies.group(&slice("system.slice")).unwrap());
        let [mut unit, mut path] =
            [by_name, by_path].map(|one| GroupWatch::of(&one).unwrap().unwrap());
        let began = Instant::now();
        assert_eq!(unit.check(began), None);
        fs::remove_dir_all(slice("system.slice")).unwrap();
        make("other.slice");
        for watch in [&mut unit, &mut path] {
            assert_eq!(watch.check(began), Some(GroupChange::Gone));
            assert_eq!(watch.check(began), None, "it may be back soon where it was");
        }
        let later = began + SEARCH;
        assert_eq!(path.check(later), None, "somebody meant this path");
        assert_eq!(unit.check(later), Some(GroupChange::Back));
        assert_eq!(unit.name(), slice("other.slice").display().to_string());
        assert_eq!(unit.check(later), None);
    }
}
