//! Files of the kernel that a worker may have opened by its broker: those that a session asks for, and no others.

use crate::system::cgroup::Hierarchies;
use crate::system::procfs::Procfs;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// Files of `/proc` that tell of the machine.
const OF_MACHINE: [&str; 5] = ["cpuinfo", "loadavg", "meminfo", "stat", "version"];

/// The same, to those only who may see where the kernel is.
const OF_KERNEL: [&str; 2] = ["kallsyms", "modules"];

/// Files of a task. Some it shows to everybody, but not where `/proc` is mounted with `hidepid`.
const OF_TASK: [&str; 7] = ["cgroup", "comm", "exe", "maps", "ns/mnt", "stat", "status"];

/// Those of them that are links.
const OF_TASK_LINKS: [&str; 2] = ["/exe", "/ns/mnt"];

/// A file of any task: times, by which a worker measures on a child of its own what events cost.
const OF_ANY_TASK: &str = "schedstat";

/// Files of its own that a worker may see beside those.
const OWN: [&str; 3] = ["mounts", "statm", "uid_map"];

/// Directories of sysfs that tell of events, CPUs and the kernel.
const OF_SYSFS: [&str; 5] =
    ["bus/event_source", "devices/system/cpu", "devices/system/node", "fs/cgroup", "kernel/notes"];

/// Directories of tracefs, as seen below `/sys`.
const OF_TRACEFS: [&str; 2] = ["kernel/tracing", "kernel/debug/tracing"];

/// A file that may be opened, and by what right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelFile {
    /// Its path here.
    pub path: PathBuf,
    /// The right that it takes.
    pub right: Right,
    /// True for a link to what is a process's, and no file of the kernel.
    pub is_link: bool,
}

/// Right that it takes to be shown a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// None.
    None,
    /// To look into this task.
    Task(i32),
    /// To trace the kernel.
    Kernel,
}

impl KernelFile {
    /// The file that worker `own_pid` calls `path`; `None` if it is none that a session asks for.
    #[must_use]
    pub fn asked_for(path: &[u8], own_pid: i32) -> Option<Self> {
        let path = Path::new(OsStr::from_bytes(path));
        let of_proc = path.strip_prefix("/proc").ok();
        let of_sys = path.strip_prefix("/sys").ok();
        let is_plain = path.components().skip(1).all(|part| matches!(part, Component::Normal(_)));
        if !is_plain || !path.is_absolute() || path.as_os_str().as_bytes().contains(&0) {
            return None;
        }
        let file = |right| Some(Self { path: path.to_path_buf(), right, is_link: false });
        if let Some(below) = of_proc {
            return of_proc_file(below.to_str()?, own_pid);
        }
        if let Some(below) = of_sys {
            let is_below = |directory: &&str| below.starts_with(directory);
            if OF_SYSFS.iter().any(is_below) {
                return file(Right::None);
            }
            if OF_TRACEFS.iter().any(is_below) {
                return file(Right::Kernel);
            }
        }
        let is_group = Hierarchies::read(&Procfs::default()).has(path);
        is_group.then(|| file(Right::None)).flatten()
    }
}

fn of_proc_file(below: &str, own_pid: i32) -> Option<KernelFile> {
    let (first, rest) = below.split_once('/').unwrap_or((below, ""));
    let file = |path: &str, right| {
        let is_link = OF_TASK_LINKS.iter().any(|link| path.ends_with(link));
        Some(KernelFile { path: Procfs::default().path(path), right, is_link })
    };
    if rest.is_empty() && OF_MACHINE.contains(&first) {
        return file(below, Right::None);
    }
    if rest.is_empty() && OF_KERNEL.contains(&first) {
        return file(below, Right::Kernel);
    }
    if first == "sys" && rest.starts_with("kernel/") {
        return file(below, Right::None);
    }
    let pid = if first == "self" { own_pid } else { number(first)? };
    let path = format!("{pid}/{rest}");
    if pid == own_pid && OWN.contains(&rest) {
        return file(&path, Right::None);
    }
    // What holds for a process holds for its threads.
    let (task, name) = match rest.split_once('/') {
        None if rest == "task" => return file(&path, Right::Task(pid)),
        Some(("task", rest)) => {
            let (tid, name) = rest.split_once('/')?;
            (number(tid)?, name)
        }
        _ => (pid, rest),
    };
    if name == OF_ANY_TASK {
        return file(&path, Right::None);
    }
    OF_TASK.contains(&name).then(|| file(&path, Right::Task(task))).flatten()
}

fn number(text: &str) -> Option<i32> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right(path: &str) -> Option<Right> {
        KernelFile::asked_for(path.as_bytes(), 77).map(|file| file.right)
    }

    #[test]
    fn a_session_gets_what_it_asks_for_and_no_other_file() {
        assert_eq!(right("/proc/cpuinfo"), Some(Right::None));
        for path in ["/proc/7/maps", "/proc/7/status", "/proc/7/task"] {
            assert_eq!(right(path), Some(Right::Task(7)), "{path}");
        }
        assert_eq!(right("/proc/7/task/8/maps"), Some(Right::Task(8)));
        assert_eq!(right("/proc/7/ns/mnt"), Some(Right::Task(7)));
        assert_eq!(right("/sys/kernel/tracing/events/a/b/id"), Some(Right::Kernel));
        assert_eq!(right("/sys/devices/system/cpu/online"), Some(Right::None));
        for path in [
            "/etc/shadow",
            "/proc/7/mem",
            "/proc/7/environ",
            "/proc/7/statm",
            "/proc/7/root/etc/shadow",
            "/proc/7/task/8/mem",
            "/proc/kmsg",
            "/proc/kcore",
            "/proc/07/maps",
            "/proc/-1/maps",
            "/proc/sys/vm/x",
            "/proc/7/../8/mem",
            "/sys/kernel/security/x",
            "/sys/devices/system/cpu/../../pci0000:00/x",
            "/sys/devices/pci0000:00/0000:00:02.0/resource0",
            "/dev/mem",
            "proc/cpuinfo",
            "",
        ] {
            assert_eq!(right(path), None, "{path}");
        }
    }

    #[test]
    fn a_worker_that_says_self_means_itself() {
        let file = KernelFile::asked_for(b"/proc/self/statm", 77).unwrap();
        assert_eq!(file.path, Path::new("/proc/77/statm"));
        assert_eq!(right("/proc/self/maps"), Some(Right::Task(77)));
        assert_eq!(right("/proc/self/environ"), None);
    }
}
