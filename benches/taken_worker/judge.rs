//! Judge of the descriptors that a worker got: what each is, by the kernel's word, and whether its user may have it.

use crate::wire::Connection;
use rustix::fd::{AsRawFd as _, OwnedFd};
use std::collections::BTreeMap;
use std::fs::{File, read_link, read_to_string};
use std::os::unix::fs::MetadataExt as _;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

/// The user whose worker was taken over.
pub(crate) const USER: u32 = 4_000_005;

/// Files of a process that none may have, whoever it is.
const SECRET: [&str; 9] =
    ["auxv", "cmdline", "environ", "mem", "pagemap", "stack", "syscall", "timens_offsets", "wchan"];

/// The account of what was handed out.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    /// Processes that are workers in the attacker's hands.
    workers: Mutex<Vec<u32>>,
    kinds: Mutex<BTreeMap<String, u64>>,
}

impl Judge {
    /// A worker's end of a connection to the judge, who listens at the other one.
    pub(crate) fn sits(self: &Arc<Self>) -> Stdio {
        let (ours, theirs) = Connection::pair().unwrap();
        let judge = Arc::clone(self);
        std::thread::spawn(move || {
            while let Ok(Some((asked, fds))) = ours.receive::<String>() {
                judge
                    .count(if fds.is_empty() { "refused or said" } else { "opened" }.to_owned(), 1);
                for fd in fds {
                    match judge.judged(&fd) {
                        Ok(kind) => judge.count(kind, 1),
                        Err(why) => {
                            eprintln!("handed out for {asked}: {why}");
                            std::process::exit(1);
                        }
                    }
                }
            }
        });
        OwnedFd::from(theirs).into()
    }

    /// Process `pid` is a worker in the attacker's hands.
    pub(crate) fn knows(&self, pid: u32) {
        self.workers.lock().unwrap().push(pid);
    }

    fn count(&self, kind: String, n: u64) {
        *self.kinds.lock().unwrap().entry(kind).or_default() += n;
    }

    /// The number of each kind.
    pub(crate) fn account(&self) -> String {
        let kinds = self.kinds.lock().unwrap();
        kinds.iter().map(|(kind, n)| format!("{n} {kind}")).collect::<Vec<_>>().join(", ")
    }

    /// The kind of what `fd` is; why its holder may not have it.
    fn judged(&self, fd: &OwnedFd) -> Result<String, String> {
        let link = read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap();
        let link = link.to_string_lossy().into_owned();
        let info = read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd())).unwrap();
        let field = |name| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let kind = |kind: &str| Ok(kind.to_owned());
        match &*link {
            "anon_inode:[perf_event]" => return kind("events"),
            "anon_inode:[pidfd]" => {
                let pid = field("Pid:").and_then(|pid| pid.parse().ok());
                // Below 0 it has ended.
                let is_his = pid.is_none_or(|pid: i32| pid <= 0 || self.is_his(pid.unsigned_abs()));
                let status = || read_to_string(format!("/proc/{}/status", pid.unwrap_or_default()));
                return if is_his { kind("tasks") } else { Err(format!("task {:?}", status())) };
            }
            _ if link.starts_with("socket:") => return kind("connections"),
            _ if link.starts_with("mnt:") => return kind("namespaces"),
            _ => {}
        }
        let access = field("flags:").and_then(|flags| u32::from_str_radix(flags, 8).ok()).unwrap();
        if access & 3 != 0 {
            return Err(format!("{link}, for writing"));
        }
        if let Some(path) = link.strip_prefix("/proc/") {
            return self.judged_of_proc(path).map(|()| "files of /proc".to_owned());
        }
        if link.starts_with("/sys/") {
            let is_of_kernel = link.contains("tracing") || link.contains("/kernel/debug");
            return if is_of_kernel { Err(link) } else { kind("files of /sys") };
        }
        let file = File::from(fd.try_clone().unwrap()).metadata().unwrap();
        let mode = file.mode();
        let may_read = mode & 0o004 != 0 || (file.uid() == USER && mode & 0o400 != 0);
        match file.is_file() && may_read {
            true => kind("other files"),
            false => Err(format!("{link}, of mode {mode:o}")),
        }
    }

    fn judged_of_proc(&self, path: &str) -> Result<(), String> {
        let mut parts = path.split('/');
        let Some(Ok(pid)) = parts.next().map(str::parse) else {
            let is_of_kernel = ["kallsyms", "modules", "kcore", "kmsg"].contains(&path);
            return if is_of_kernel { Err(path.to_owned()) } else { Ok(()) };
        };
        let name = parts.next_back().unwrap_or_default();
        let is_shown_to_all = name == "schedstat";
        if SECRET.contains(&name) || !(is_shown_to_all || self.is_his(pid)) {
            return Err(path.to_owned());
        }
        Ok(())
    }

    /// Tells whether process or thread `pid` is the user's, of one of the workers, or gone.
    fn is_his(&self, pid: u32) -> bool {
        let Ok(status) = read_to_string(format!("/proc/{pid}/status")) else { return true };
        let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let uids = field("Uid:").unwrap_or_default();
        let is_his = uids.split_whitespace().all(|uid| uid == USER.to_string());
        // It may be the id of one of its threads.
        let process = field("Tgid:").and_then(|pid| pid.parse().ok());
        is_his || process.is_some_and(|pid| self.workers.lock().unwrap().contains(&pid))
    }
}
