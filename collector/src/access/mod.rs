//! Ways to what a session opens: by this process itself or, where it is a worker without privileges, by its broker.

pub(crate) mod command;
pub mod worker;

pub use command::CommandOfWorker;

use crate::sys::{attr_bytes, open, pidfd};
use dataspace_proto::broker::{Answer, FilePlace, MAX_FDS, Request};
use perf_event_open_sys::bindings as abi;
use perf_event_open_sys::bindings::perf_event_attr;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// An answer, and the descriptors beside it.
pub type Answered = (Answer, Vec<OwnedFd>);

/// Somebody with privileges, who opens for us what he lets us have.
pub trait Broker: Debug + Send + Sync {
    /// Answer to `request`, and the descriptors beside it.
    ///
    /// # Errors
    /// What the kernel said to him, or to us where he does not answer: [`Answer::Failed`] is one of them.
    fn ask(&self, request: &Request) -> Result<Answered, Errno>;
}

/// The broker of this process, for good, where it has one: it can open nothing itself then.
static BROKER: OnceLock<Box<dyn Broker>> = OnceLock::new();

/// From now on all that a session opens is opened by `broker`. The first one stays.
pub fn go_through(broker: Box<dyn Broker>) {
    let _ = BROKER.set(broker);
}

/// Tells whether this process has one.
#[must_use]
pub fn has_broker() -> bool {
    BROKER.get().is_some()
}

/// Has the broker do what is asked for, or does it here where there is none.
///
/// # Errors
/// As [`Broker::ask`].
fn ask(request: &Request) -> Result<Answered, Errno> {
    match BROKER.get() {
        None => perform(request),
        Some(broker) => broker.ask(request),
    }
}

/// One thing that was opened so.
///
/// # Errors
/// As [`Broker::ask`].
fn opened(request: &Request) -> Result<OwnedFd, Errno> {
    match ask(request)? {
        (Answer::Opened, mut fds) => fds.pop().ok_or(Errno::PROTO),
        _ => Err(Errno::PROTO),
    }
}

fn bytes_of(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

/// Opens one of the kernel's files for reading.
///
/// # Errors
/// Those of opening it.
pub(crate) fn file(path: &Path) -> io::Result<File> {
    Ok(opened(&Request::File { path: bytes_of(path) })?.into())
}

/// Opens one of the kernel's directories.
///
/// # Errors
/// Those of opening it.
pub(crate) fn directory(path: &Path) -> Result<OwnedFd, Errno> {
    opened(&Request::Directory { path: bytes_of(path) })
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: OsString,
    pub(crate) is_directory: bool,
}

/// The entries of one of the kernel's directories. One that cannot be read is left out: it is gone.
///
/// # Errors
/// Those of opening it.
pub(crate) fn entries(path: &Path) -> io::Result<impl Iterator<Item = Entry> + use<>> {
    let entries = Dir::new(directory(path)?)?.flatten();
    let is_one = |name: &[u8]| name != b"." && name != b"..";
    Ok(entries.filter(move |entry| is_one(entry.file_name().to_bytes())).map(|entry| Entry {
        name: OsStr::from_bytes(entry.file_name().to_bytes()).to_owned(),
        is_directory: entry.file_type() == FileType::Directory,
    }))
}

/// Target of one of the kernel's links.
///
/// # Errors
/// Those of reading it.
pub(crate) fn link(path: &Path) -> io::Result<PathBuf> {
    match ask(&Request::Link { path: bytes_of(path) })?.0 {
        Answer::Link(target) => Ok(OsString::from_vec(target).into()),
        _ => Err(Errno::PROTO.into()),
    }
}

/// Device and inode of one of the kernel's files.
///
/// # Errors
/// Those of asking: it is not there, most often.
pub(crate) fn identity(path: &Path) -> io::Result<(u64, u64)> {
    match ask(&Request::Identity { path: bytes_of(path) })?.0 {
        Answer::Identity { device, inode } => Ok((device, inode)),
        _ => Err(Errno::PROTO.into()),
    }
}

/// Tasks that an event counts, and on which CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EventPlace<'a> {
    /// One thread, on one CPU (−1: any).
    Task {
        /// The thread.
        tid: i32,
        /// The CPU.
        cpu: i32,
    },
    /// Every task of one CPU.
    Cpu(i32),
    /// The tasks of a control group, on one CPU.
    Cgroup {
        /// The group's directory.
        group: &'a Path,
        /// The CPU.
        cpu: i32,
    },
}

impl<'a> EventPlace<'a> {
    /// Every task of one CPU, or those of `group`.
    pub(crate) const fn of_cpu(cpu: i32, group: Option<&'a Path>) -> Self {
        match group {
            Some(group) => Self::Cgroup { group, cpu },
            None => Self::Cpu(cpu),
        }
    }

    /// The calling thread, on CPU `cpu` (−1: any).
    pub(crate) fn own_thread(cpu: i32) -> Self {
        Self::Task { tid: rustix::thread::gettid().as_raw_nonzero().get(), cpu }
    }

    /// The thread; −1 where there is not one only.
    pub(crate) const fn tid(self) -> i32 {
        match self {
            Self::Task { tid, .. } => tid,
            Self::Cpu(_) | Self::Cgroup { .. } => -1,
        }
    }
}

/// Opens an event.
///
/// # Errors
/// What the kernel said.
pub(crate) fn event(attr: &perf_event_attr, place: EventPlace<'_>) -> Result<OwnedFd, Errno> {
    events(&[attr], place)?.pop().ok_or(Errno::PROTO)
}

/// Opens a group of events, of which the first leads; gives them in this order.
///
/// # Errors
/// What the kernel said of the first that it refused.
pub(crate) fn events(
    attrs: &[&perf_event_attr],
    place: EventPlace<'_>,
) -> Result<Vec<OwnedFd>, Errno> {
    let (tid, cpu, group) = match place {
        EventPlace::Task { tid, cpu } => (tid, cpu, None),
        EventPlace::Cpu(cpu) => (-1, cpu, None),
        EventPlace::Cgroup { group, cpu } => (-1, cpu, Some(group)),
    };
    let request = Request::Event {
        attrs: attrs.iter().map(|attr| attr_bytes::as_bytes(attr).to_vec()).collect(),
        tid,
        cpu,
        cgroup: group.map(bytes_of),
    };
    let events = ask(&request)?.1;
    if events.len() == attrs.len() { Ok(events) } else { Err(Errno::PROTO) }
}

/// A descriptor of process `pid`.
///
/// # Errors
/// What the kernel said.
pub(crate) fn process(pid: i32) -> Result<OwnedFd, Errno> {
    opened(&Request::Task { tid: pid, thread_of: None })
}

/// A descriptor of thread `tid`; of its process `pid` where the kernel knows none of threads.
///
/// # Errors
/// What the kernel said.
pub(crate) fn thread(tid: i32, pid: i32) -> Result<OwnedFd, Errno> {
    opened(&Request::Task { tid, thread_of: Some(pid) })
}

/// Tells whether the event that a request asks for shows no more than what user code does, whoever opens it. Without
/// privileges the kernel itself would see to that (`perf_copy_attr()` and `perf_event_open()` in Linux
/// `kernel/events/core.c`).
#[must_use]
pub fn is_of_user_code(attr: &[u8]) -> bool {
    // A kprobe's or uprobe's text would be in our memory, a breakpoint or tracepoint is the kernel's or others' doing.
    const PLAIN_TYPES: [u32; 4] = [
        abi::PERF_TYPE_HARDWARE,
        abi::PERF_TYPE_SOFTWARE,
        abi::PERF_TYPE_HW_CACHE,
        abi::PERF_TYPE_RAW,
    ];
    const PRIVATE_FIELDS: u32 = abi::PERF_SAMPLE_PHYS_ADDR
        | abi::PERF_SAMPLE_CALLCHAIN
        | abi::PERF_SAMPLE_BRANCH_STACK
        | abi::PERF_SAMPLE_RAW
        | abi::PERF_SAMPLE_AUX;
    let Some(attr) = attr_bytes::from_bytes(attr) else { return false };
    let is_plain = PLAIN_TYPES.contains(&attr.type_) || attr.type_ >= abi::PERF_TYPE_MAX;
    let of_kernel = [attr.ksymbol(), attr.bpf_event(), attr.text_poke(), attr.sigtrap()];
    is_plain
        && attr.exclude_kernel() == 1
        && attr.sample_type & u64::from(PRIVATE_FIELDS) == 0
        && of_kernel == [0; 4]
}

/// The type of PMU that a request asks an event of.
#[must_use]
pub fn pmu_type(attr: &[u8]) -> Option<u32> {
    attr_bytes::from_bytes(attr).map(|attr| attr.type_)
}

/// Opens a load object, or a file that belongs to one, through the broker; `None` where there is none.
///
/// # Errors
/// What the kernel said to him, or his rules.
pub fn object(place: &FilePlace) -> Option<io::Result<File>> {
    BROKER.get()?;
    let file = opened(&Request::Object(place.clone()));
    Some(file.map(File::from).map_err(io::Error::from))
}

/// Has the broker end the recording that he began for this worker; `None` where there is none.
///
/// # Errors
/// As [`Broker::ask`].
pub(crate) fn end_recording(is_whole: bool) -> Option<Result<Answer, Errno>> {
    let answered = BROKER.get()?.ask(&Request::RecordingEnd { is_whole });
    Some(answered.map(|(answer, _)| answer))
}

/// Tells the broker, where there is one, that this process ends now, with that exit code.
pub fn take_leave(code: u8) {
    if let Some(broker) = BROKER.get() {
        // One that is gone has no use for it.
        let _ = broker.ask(&Request::Ending { code });
    }
}

/// Does what a worker asks for and may have, with this process's own privileges. Its files, command and recording
/// are another matter.
///
/// # Errors
/// What the kernel said; `EINVAL` where it makes no sense.
pub fn perform(request: &Request) -> Result<Answered, Errno> {
    let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
    let io = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let fd = match request {
        Request::File { path: bytes } => File::open(path(bytes)).map_err(io)?.into(),
        Request::Directory { path: bytes } => directory_at(&path(bytes))?,
        Request::Link { path: bytes } => {
            let target = std::fs::read_link(path(bytes)).map_err(io)?;
            return Ok((Answer::Link(target.into_os_string().into_vec()), Vec::new()));
        }
        Request::Identity { path: bytes } => {
            let stat = rustix::fs::stat(path(bytes))?;
            let (device, inode) = (stat.st_dev, stat.st_ino);
            return Ok((Answer::Identity { device, inode }, Vec::new()));
        }
        Request::Task { tid, thread_of: None } => pidfd::open_process(*tid)?,
        Request::Task { tid, thread_of: Some(pid) } => pidfd::open_thread(*tid, *pid)?,
        &Request::Event { ref attrs, tid, cpu, ref cgroup } => {
            if attrs.is_empty() || attrs.len() > MAX_FDS {
                return Err(Errno::INVAL);
            }
            let group = cgroup.as_ref().map(|bytes| directory_at(&path(bytes))).transpose()?;
            let mut events: Vec<OwnedFd> = Vec::new();
            for bytes in attrs {
                let attr = attr_bytes::from_bytes(bytes).ok_or(Errno::INVAL)?;
                let leader = events.first().map(AsFd::as_fd);
                let cgroup = group.as_ref().map(AsFd::as_fd);
                events.push(open::open(&attr, tid, cpu, cgroup, leader)?);
            }
            return Ok((Answer::Opened, events));
        }
        Request::Connection { .. }
        | Request::Object(_)
        | Request::Command { .. }
        | Request::CommandEnd { .. }
        | Request::RecordingEnd { .. }
        | Request::Ending { .. } => return Err(Errno::INVAL),
    };
    Ok((Answer::Opened, vec![fd]))
}

fn directory_at(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_events_that_show_no_more_than_user_code_are_for_everybody() {
        let is_plain = |change: &dyn Fn(&mut perf_event_attr)| {
            let mut attr = perf_event_attr { type_: abi::PERF_TYPE_SOFTWARE, ..Default::default() };
            attr.set_exclude_kernel(1);
            change(&mut attr);
            is_of_user_code(attr_bytes::as_bytes(&attr))
        };
        assert!(is_plain(&|_| {}));
        assert!(is_plain(&|attr| attr.type_ = abi::PERF_TYPE_RAW));
        assert!(is_plain(&|attr| attr.type_ = 11), "a PMU of the processor's");
        assert!(!is_plain(&|attr| attr.set_exclude_kernel(0)));
        assert!(!is_plain(&|attr| attr.type_ = abi::PERF_TYPE_TRACEPOINT));
        assert!(!is_plain(&|attr| attr.type_ = abi::PERF_TYPE_BREAKPOINT));
        assert!(!is_plain(&|attr| attr.sample_type = u64::from(abi::PERF_SAMPLE_PHYS_ADDR)));
        assert!(!is_plain(&|attr| attr.sample_type = u64::from(abi::PERF_SAMPLE_CALLCHAIN)));
        assert!(!is_plain(&|attr| attr.set_ksymbol(1)));
        assert!(!is_plain(&|attr| attr.set_sigtrap(1)));
        assert!(!is_of_user_code(b"short"));
    }

    #[test]
    fn what_is_asked_for_is_done_as_by_the_kernel() {
        let path = b"/proc/self/status".to_vec();
        let (answer, files) = perform(&Request::File { path }).unwrap();
        assert_eq!((answer, files.len()), (Answer::Opened, 1));
        let absent = perform(&Request::File { path: b"/proc/no/such".to_vec() });
        assert_eq!(absent.unwrap_err(), Errno::NOENT);
        let own = i32::try_from(std::process::id()).unwrap();
        let (_, mut tasks) = perform(&Request::Task { tid: own, thread_of: None }).unwrap();
        assert!(!pidfd::has_ended(tasks.pop().unwrap()));
        assert_eq!(perform(&Request::CommandEnd { is_asked: true }).unwrap_err(), Errno::INVAL);
    }
}
