//! Rules by which a worker has what it asks for: its viewer's own processes, or all where the viewer sees all.

use crate::lock::lock;
use crate::ownership::{OwnProcess, Standing, is_plain_thread};
use dataspace_collector::access::{self, Answered};
use dataspace_collector::live::Marks;
use dataspace_collector::system::machine;
use dataspace_collector::system::procfs::{Procfs, Status};
use dataspace_collector::system::right::{KernelFile, Right};
use dataspace_proto::broker::Request;
use dataspace_proto::worker::Viewer;
use rustix::fd::OwnedFd;
use rustix::fs::fstat;
use rustix::io::Errno;
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Mutex;

/// Processes of a viewer that are known at a time; more than that are looked at anew each time.
const MAX_KNOWN: usize = 256;

/// The rules for one worker.
#[derive(Debug)]
pub(super) struct Rules {
    worker_pid: i32,
    /// The viewer, where he may see only his own.
    viewer: Option<Viewer>,
    /// PMUs that are none of a session's.
    probes: [Option<u32>; 2],
    known: Mutex<Known>,
}

/// The viewer's processes, as far as anything was asked for of them.
#[derive(Debug, Default)]
struct Known {
    marks: Option<Marks>,
    processes: HashMap<i32, KnownProcess>,
}

impl Known {
    /// Looks at process `pid` anew, unless it is known.
    fn meet(&mut self, pid: i32, viewer: &Viewer) -> Result<(), Errno> {
        if self.is_still(pid) {
            return Ok(());
        }
        self.processes.remove(&pid);
        // Those that have ended are not kept open.
        self.processes.retain(|_, known| Marks::is_whole(&known.mark));
        let process = OwnProcess::open(pid, viewer.uid, viewer.gid).map_err(|_| Errno::ACCESS)?;
        if self.marks.is_none() {
            self.marks = Marks::new().ok();
        }
        let mark = self.marks.as_ref().and_then(|marks| marks.mark(pid)).ok_or(Errno::ACCESS)?;
        if self.processes.len() >= MAX_KNOWN {
            self.processes.clear();
        }
        self.processes.insert(pid, KnownProcess { process, mark });
        // The mark may have come after an exec that it did not see.
        if self.is_still(pid) { Ok(()) } else { Err(Errno::ACCESS) }
    }

    /// Tells whether process `pid` is known, is the viewer's, and was all the time.
    fn is_still(&self, pid: i32) -> bool {
        let is_still = |known: &KnownProcess| {
            // The question first: an exec after it takes the mark away, and all events.
            known.process.standing() == Standing::Own && Marks::is_whole(&known.mark)
        };
        self.processes.get(&pid).is_some_and(is_still)
    }
}

/// A process of the viewer's, and a mark on it from when it was.
#[derive(Debug)]
struct KnownProcess {
    process: OwnProcess,
    mark: OwnedFd,
}

impl Rules {
    pub(super) fn new(worker_pid: i32, viewer: Option<Viewer>) -> Self {
        let probes = ["kprobe", "uprobe"].map(machine::pmu_type);
        Self { worker_pid, viewer, probes, known: Mutex::default() }
    }

    /// Does what is asked for, where it may be.
    ///
    /// # Errors
    /// What the kernel said; `EACCES` where it may not be.
    pub(super) fn perform(&self, mut request: Request) -> Result<Answered, Errno> {
        let opens = matches!(request, Request::File { .. } | Request::Directory { .. });
        let asks_of_it = opens || matches!(request, Request::Identity { .. });
        let task = match &mut request {
            Request::File { path }
            | Request::Directory { path }
            | Request::Link { path }
            | Request::Identity { path } => {
                let file = KernelFile::asked_for(path, self.worker_pid).ok_or(Errno::ACCESS)?;
                // A process's program may be on a file system that never answers.
                let is_program = file.is_link && file.path.ends_with("exe");
                if (opens && file.is_link) || (asks_of_it && is_program) {
                    return Err(Errno::ACCESS);
                }
                *path = file.path.as_os_str().as_bytes().to_vec();
                match file.right {
                    Right::None => return readable_by_all(access::perform(&request)?),
                    Right::Task(task) => task,
                    Right::Kernel if self.viewer.is_none() => 0,
                    Right::Kernel => return Err(Errno::ACCESS),
                }
            }
            Request::Event { attrs, tid, cgroup, .. } => {
                // A kprobe's or uprobe's text would be read from our own memory.
                let is_probe = |pmu| self.probes.contains(&Some(pmu));
                if attrs.iter().any(|attr| access::pmu_type(attr).is_none_or(is_probe)) {
                    return Err(Errno::ACCESS);
                }
                let is_narrow = cgroup.is_none() && *tid > 0;
                if self.viewer.is_some()
                    && !(is_narrow && attrs.iter().all(|it| access::is_of_user_code(it)))
                {
                    return Err(Errno::ACCESS);
                }
                if let Some(path) = cgroup {
                    let file = KernelFile::asked_for(path, self.worker_pid).ok_or(Errno::ACCESS)?;
                    *path = file.path.as_os_str().as_bytes().to_vec();
                }
                *tid
            }
            Request::Task { tid, .. } => *tid,
            _ => return Err(Errno::INVAL),
        };
        match &self.viewer {
            None => access::perform(&request),
            Some(viewer) => self.perform_on(task, viewer, &request),
        }
    }

    /// Does what is asked for of `task`, if its process is the viewer's before and after, and was all the time.
    fn perform_on(&self, task: i32, viewer: &Viewer, request: &Request) -> Result<Answered, Errno> {
        let status = || Procfs::default().status(task).ok();
        let pid = status().and_then(|status| status.pid).ok_or(Errno::SRCH)?;
        // It measures on itself what events cost.
        if pid == self.worker_pid {
            return access::perform(request);
        }
        let is_plain = || {
            let is_plain = |it: &Status| is_plain_thread(it, viewer.uid, viewer.gid);
            status().is_some_and(|it| it.pid == Some(pid) && is_plain(&it))
        };
        if !is_plain() {
            return Err(Errno::ACCESS);
        }
        let mut known = lock(&self.known);
        known.meet(pid, viewer)?;
        let done = access::perform(request)?;
        if is_plain() && known.is_still(pid) { Ok(done) } else { Err(Errno::ACCESS) }
    }
}

/// Files that take no right, if everybody may read them: `/proc/sys` and sysfs have others, too, and links to them.
fn readable_by_all(answered: Answered) -> Result<Answered, Errno> {
    let may_read = |fd: &OwnedFd| fstat(fd).is_ok_and(|stat| stat.st_mode & 0o004 != 0);
    if answered.1.iter().all(may_read) { Ok(answered) } else { Err(Errno::ACCESS) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Rules for a worker that is none of the processes asked for.
    fn rules(viewer: Option<u32>) -> Rules {
        let user = |uid| Viewer { uid, gid: uid, groups: Vec::new() };
        Rules::new(i32::MAX, viewer.map(user))
    }

    fn file(path: &str) -> Request {
        Request::File { path: path.as_bytes().to_vec() }
    }

    /// An event of user code on thread `tid`.
    fn event_on(tid: i32) -> Request {
        let is_whole = |n_bytes: &u8| access::pmu_type(&vec![0; usize::from(*n_bytes)]).is_some();
        let n_bytes = (64..=u8::MAX).find(is_whole).unwrap();
        // PERF_TYPE_SOFTWARE, its size, and exclude_kernel (Linux `include/uapi/linux/perf_event.h`).
        let mut attr = vec![0; usize::from(n_bytes)];
        (attr[0], attr[4], attr[40]) = (1, n_bytes, 1 << 5);
        Request::Event { attrs: vec![attr], tid, cpu: -1, cgroup: None }
    }

    fn refused(rules: &Rules, request: Request) -> Option<Errno> {
        rules.perform(request).err()
    }

    #[test]
    fn a_plain_users_worker_gets_nothing_of_others_or_of_the_kernel() {
        let own = std::process::id();
        let (all, stranger) = (rules(None), rules(Some(4_000_005)));
        for path in ["maps", "task", "comm"].map(|name| format!("/proc/{own}/{name}")) {
            let request = match path.ends_with("task") {
                true => Request::Directory { path: path.clone().into_bytes() },
                false => file(&path),
            };
            assert_eq!(refused(&all, request.clone()), None, "{path}");
            assert_eq!(refused(&stranger, request), Some(Errno::ACCESS), "{path}");
        }
        assert_eq!(refused(&stranger, file("/proc/kallsyms")), Some(Errno::ACCESS));
        let task = Request::Task { tid: own.cast_signed(), thread_of: None };
        assert_eq!(refused(&all, task.clone()), None);
        assert_eq!(refused(&stranger, task), Some(Errno::ACCESS));
        let event = event_on(own.cast_signed());
        assert_eq!(refused(&all, event.clone()), None);
        assert_eq!(refused(&stranger, event), Some(Errno::ACCESS));
        // Root's alone.
        for path in ["/proc/sys/kernel/cad_pid", "/proc/sys/kernel/usermodehelper/bset"] {
            assert_eq!(refused(&all, file(path)), Some(Errno::ACCESS), "{path}");
        }
        for path in [format!("/proc/{own}/mem"), "/etc/passwd".to_owned(), "/proc/1".to_owned()] {
            assert_eq!(refused(&all, file(&path)), Some(Errno::ACCESS), "{path}");
        }
    }

    #[test]
    fn no_worker_gets_an_event_of_garbage() {
        for (viewer, tid) in [(None, 1), (Some(4_000_005), 1), (None, -1)] {
            let attr = vec![0xff; 40];
            let event = Request::Event { attrs: vec![attr], tid, cpu: 0, cgroup: None };
            assert_eq!(refused(&rules(viewer), event), Some(Errno::ACCESS));
        }
    }

    proptest! {
        #[test]
        fn garbage_is_refused_and_harms_nobody(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(request) = postcard::from_bytes::<Request>(&bytes) {
                let _ = rules(Some(4_000_005)).perform(request);
            }
        }
    }
}
