//! Control groups as targets: where they are mounted, how a unit of systemd is found, who is in one.

use crate::access;
use crate::error::Error;
use crate::system::procfs::Procfs;
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

/// Directories looked into for a unit: a machine with 10,000 containers has fewer.
const MAX_DIRECTORIES: usize = 65_536;
/// Processes of one group that are looked at one by one.
const MAX_PROCESSES: usize = 65_536;
/// The longest `cgroup.procs` read: so many processes of 8 digits.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Use of a hierarchy for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Version 2: the kernel counts events by its groups.
    Unified,
    /// Version 1 with the `perf_event` controller: so too.
    PerfEvent,
    /// Version 1 that only names groups, as `name=systemd` does: it tells who is in one.
    Named,
}

/// The hierarchies of a machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hierarchies {
    /// Those whose events the kernel counts first.
    mounts: Vec<(PathBuf, Kind)>,
}

/// One group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cgroup {
    /// Its directory.
    pub(crate) path: PathBuf,
    kind: Kind,
    /// Place where it was looked for by the name of its unit; `None` for one that was named by its path.
    searched: Option<PathBuf>,
}

impl Hierarchies {
    /// The hierarchies that are mounted where we are.
    pub(crate) fn read(procfs: &Procfs) -> Self {
        Self::new(&procfs.text("self/mounts").unwrap_or_default())
    }

    /// The hierarchies that `mounts` (the text of `/proc/self/mounts`) tells of.
    pub(crate) fn new(mounts: &str) -> Self {
        let mut found: Vec<(PathBuf, Kind)> = mounts.lines().filter_map(mount).collect();
        // The controller is in one hierarchy only.
        if found.iter().any(|&(_, kind)| kind == Kind::PerfEvent) {
            for (_, kind) in &mut found {
                *kind = if *kind == Kind::Unified { Kind::Named } else { *kind };
            }
        }
        found.sort_by_key(|&(_, kind)| kind as u8);
        Self { mounts: found }
    }

    /// Tells whether `path` is in one of them.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.mounts.iter().any(|(mount, _)| path.starts_with(mount))
    }

    /// The group at `path`: a directory, or a path as `/proc/PID/cgroup` has it.
    ///
    /// # Errors
    /// [`Error::Cgroup`] where there is none.
    pub(crate) fn group(&self, path: &Path) -> Result<Cgroup, Error> {
        let is_group = |path: &Path| access::identity(&path.join("cgroup.procs")).is_ok();
        if let Some((_, kind)) = self.mounts.iter().find(|(mount, _)| path.starts_with(mount))
            && is_group(path)
        {
            return Ok(Cgroup { path: path.to_path_buf(), kind: *kind, searched: None });
        }
        let below = path.strip_prefix("/").unwrap_or(path);
        let is_safe =
            below.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let mut groups = self.mounts.iter().map(|(mount, kind)| (mount.join(below), *kind));
        match groups.find(|(path, _)| is_safe && is_group(path)) {
            Some((path, kind)) => Ok(Cgroup { path, kind, searched: None }),
            None => Err(Error::Cgroup {
                name: path.display().to_string(),
                why: if self.mounts.is_empty() {
                    "no cgroup hierarchy is mounted".into()
                } else {
                    "there is no such directory with a cgroup.procs below a cgroup mount".into()
                },
                remedy: "`cat /proc/PID/cgroup` shows a process's groups",
            }),
        }
    }

    /// The group of the unit `name`; a name without a suffix is a service's.
    ///
    /// # Errors
    /// [`Error::Cgroup`] where no group has that name: the unit does not run.
    pub(crate) fn unit(&self, name: &str) -> Result<Cgroup, Error> {
        let has_suffix = [".service", ".scope", ".slice"].iter().any(|end| name.ends_with(end));
        let wanted = if has_suffix { name.to_owned() } else { format!("{name}.service") };
        let found = self.mounts.iter().find_map(|(mount, kind)| {
            let path = directory_named(mount, &wanted)?;
            Some(Cgroup { path, kind: *kind, searched: Some(mount.clone()) })
        });
        found.ok_or_else(|| Error::Cgroup {
            name: wanted,
            why: "no control group has that name: the unit does not run, or there is no systemd"
                .into(),
            remedy: "`systemctl status NAME` shows its CGroup",
        })
    }
}

impl Cgroup {
    /// Tells whether the kernel can count events by this group.
    pub(crate) fn counts_events(&self) -> bool {
        self.kind != Kind::Named
    }

    /// Identity that tells this group from a later one of the same path; `None` when it is gone.
    pub(crate) fn identity(&self) -> Option<(u64, u64)> {
        access::identity(&self.path).ok()
    }

    /// The group that its unit has elsewhere, where it was found by the unit's name and is gone: one whose
    /// slice was changed.
    pub(crate) fn moved(&self) -> Option<Self> {
        let searched = self.searched.clone()?;
        let path = directory_named(&searched, self.path.file_name()?.to_str()?)?;
        Some(Self { path, kind: self.kind, searched: Some(searched) })
    }

    /// The processes of this group and of those below it.
    ///
    /// # Errors
    /// Those of reading this group's directory.
    pub(crate) fn processes(&self) -> io::Result<Vec<i32>> {
        let mut pids = own_processes(&self.path)?;
        let mut waiting = VecDeque::from([self.path.clone()]);
        for _ in 0..MAX_DIRECTORIES {
            let Some(directory) = waiting.pop_front() else { break };
            for below in directories(&directory) {
                pids.extend(own_processes(&below).unwrap_or_default());
                waiting.push_back(below);
            }
            if pids.len() >= MAX_PROCESSES {
                break;
            }
        }
        pids.sort_unstable();
        pids.dedup();
        Ok(pids)
    }
}

fn own_processes(directory: &Path) -> io::Result<Vec<i32>> {
    use std::io::Read as _;
    let mut text = String::new();
    let file = access::file(&directory.join("cgroup.procs"))?;
    file.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
    // 0 is a process of another pid namespace.
    Ok(text.lines().filter_map(|line| line.parse().ok()).filter(|&pid| pid > 0).collect())
}

fn directories(path: &Path) -> impl Iterator<Item = PathBuf> + use<'_> {
    let entries = access::entries(path).ok().into_iter().flatten();
    let directories = entries.filter(|entry| entry.is_directory);
    directories.map(|entry| path.join(entry.name))
}

/// The directory called `name` that is nearest to `root`.
fn directory_named(root: &Path, name: &str) -> Option<PathBuf> {
    let mut waiting = VecDeque::from([root.to_path_buf()]);
    for _ in 0..MAX_DIRECTORIES {
        for below in directories(&waiting.pop_front()?) {
            if below.file_name().is_some_and(|own| own == name) {
                return Some(below);
            }
            waiting.push_back(below);
        }
    }
    None
}

/// One line of `/proc/self/mounts`: device, place, type, options.
fn mount(line: &str) -> Option<(PathBuf, Kind)> {
    let mut words = line.split(' ').skip(1);
    let (place, kind, options) = (words.next()?, words.next()?, words.next()?);
    let has = |option: &str| options.split(',').any(|one| one == option);
    let kind = match kind {
        "cgroup2" => Kind::Unified,
        "cgroup" if has("perf_event") => Kind::PerfEvent,
        "cgroup" if has("name=systemd") => Kind::Named,
        _ => return None,
    };
    Some((PathBuf::from(place.replace("\\040", " ")), kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree(groups: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (group, processes) in groups {
            let group = dir.path().join(group);
            fs::create_dir_all(&group).unwrap();
            fs::write(group.join("cgroup.procs"), processes).unwrap();
        }
        dir
    }

    #[test]
    fn a_unit_is_found_where_the_kernel_counts_before_where_it_only_names() {
        let dir = tree(&[
            ("v1/system.slice/redis.service", "7\n"),
            ("v2", "1\n"),
            ("v2/system.slice", ""),
            ("v2/system.slice/redis.service", "7\n8\n0\n"),
            ("v2/system.slice/redis.service/worker", "9\n"),
        ]);
        let root = dir.path().display();
        let mounts = format!(
            "tmpfs /x tmpfs rw 0 0\nsystemd {root}/v1 cgroup rw,name=systemd 0 0\n\
             none {root}/v2 cgroup2 rw 0 0\n"
        );
        let hierarchies = Hierarchies::new(&mounts);
        let unit = hierarchies.unit("redis").unwrap();
        assert!(unit.counts_events());
        assert_eq!(unit.processes().unwrap(), [7, 8, 9]);
        assert_eq!(hierarchies.unit("redis.service").unwrap(), unit);
        let by_path = |path: &Path| hierarchies.group(path).unwrap().path;
        assert_eq!(by_path(&unit.path), unit.path);
        assert_eq!(by_path(Path::new("/system.slice/redis.service")), unit.path);
        assert!(hierarchies.unit("nginx").is_err());
        let outside = hierarchies.group(Path::new("../v1/system.slice/redis.service"));
        assert!(outside.is_err(), "a path does not lead out of a hierarchy");
        fs::remove_dir_all(dir.path().join("v2")).unwrap();
        assert!(!hierarchies.unit("redis").unwrap().counts_events());
        assert_eq!(unit.identity(), None);
    }

    #[test]
    fn without_a_hierarchy_there_are_no_groups() {
        let error = Hierarchies::new("proc /proc proc rw 0 0\nbroken\n").group(Path::new("/a"));
        assert!(error.unwrap_err().to_string().contains("no cgroup hierarchy is mounted"));
    }
}
