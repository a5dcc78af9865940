//! `perf_event_open` and what is done with the file descriptors it gives.

use super::{check, last_errno};
use perf_event_open_sys as perf;
use perf_event_open_sys::bindings as abi;
use perf_event_open_sys::bindings::perf_event_attr;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io::Errno;

/// Opens an event, in the group of `leader` if there is one, with the kernel's own parameters: on thread `tid`, or on
/// the tasks of the control group of which `cgroup` is the directory, or on all tasks (−1 and neither), on CPU `cpu`
/// (−1: any).
pub(crate) fn open(
    attr: &perf_event_attr,
    tid: i32,
    cpu: i32,
    cgroup: Option<BorrowedFd<'_>>,
    leader: Option<BorrowedFd<'_>>,
) -> Result<OwnedFd, Errno> {
    let of_cgroup = if cgroup.is_some() { abi::PERF_FLAG_PID_CGROUP } else { 0 };
    let pid = cgroup.map_or(tid, |directory| directory.as_raw_fd());
    // The kernel writes the size it expects into the attr, so it gets a copy.
    let mut attr = *attr;
    let leader = leader.map_or(-1, |leader| leader.as_raw_fd());
    let flags = libc::c_ulong::from(abi::PERF_FLAG_FD_CLOEXEC | of_cgroup);
    // SAFETY: `attr` is a live perf_event_attr, fully initialised, whose `size` is its own size;
    // it has no pointer fields set (no kprobe or uprobe strings). The kernel writes only to
    // `attr.size`. The descriptors are borrowed for the call.
    let fd = unsafe { perf::perf_event_open(&raw mut attr, pid, cpu, leader, flags) };
    if fd < 0 {
        return Err(last_errno());
    }
    // SAFETY: the call gave a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Stops the event of `fd`, and what inherited it.
pub(crate) fn disable(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: PERF_EVENT_IOC_DISABLE takes flags, not a pointer; `fd` is borrowed for the call.
    check(unsafe { perf::ioctls::DISABLE(fd.as_raw_fd(), 0) })
}

/// Lets the event of `fd` count again, and what inherited it.
pub(crate) fn enable(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: PERF_EVENT_IOC_ENABLE takes flags, not a pointer; `fd` is borrowed for the call.
    check(unsafe { perf::ioctls::ENABLE(fd.as_raw_fd(), 0) })
}

/// Gives the event of `fd` another period, or another frequency if that is what it has. What
/// inherited it keeps its own (`perf_event_period()` in Linux `kernel/events/core.c`).
pub(crate) fn set_period(fd: BorrowedFd<'_>, period: u64) -> Result<(), Errno> {
    let place = std::ptr::from_ref(&period) as u64;
    // SAFETY: PERF_EVENT_IOC_PERIOD reads one u64 from the address that it is given (`_perf_ioctl()`
    // in Linux `kernel/events/core.c`; the wrapper calls it a number); `period` lives through the
    // call.
    check(unsafe { perf::ioctls::PERIOD(fd.as_raw_fd(), place) })
}

/// Sends the records of `fd` to the ring of `owner`, an event on the same CPU.
pub(crate) fn set_output(fd: BorrowedFd<'_>, owner: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: PERF_EVENT_IOC_SET_OUTPUT takes a descriptor by value; both are borrowed for the
    // call, and the kernel keeps a reference of its own to the ring.
    check(unsafe { perf::ioctls::SET_OUTPUT(fd.as_raw_fd(), owner.as_raw_fd()) })
}

/// The id that stands in the records of the event.
pub(crate) fn id(fd: BorrowedFd<'_>) -> Result<u64, Errno> {
    let mut id = 0u64;
    // SAFETY: PERF_EVENT_IOC_ID writes one u64 to the pointer, which is valid for the call.
    check(unsafe { perf::ioctls::ID(fd.as_raw_fd(), &raw mut id) })?;
    Ok(id)
}

/// Answer of `read()` for one event and for all that inherited it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventCounts {
    /// Events.
    pub(crate) value: u64,
    /// Time in which it was enabled and its task ran.
    pub(crate) enabled_ns: u64,
    /// Time in which it counted.
    pub(crate) running_ns: u64,
    /// Records that found no room in the ring; 0 where the kernel does not tell.
    pub(crate) n_lost: u64,
}

/// Reads the counts of an event opened with [`super::attr::KernelFeatures::read_format`].
///
/// `None` at end of file: the kernel has put the event into the error state.
pub(crate) fn read_counts(fd: impl AsFd) -> Result<Option<EventCounts>, Errno> {
    let mut bytes = [0u8; 40];
    let n_bytes = rustix::io::read(fd, &mut bytes)?;
    if n_bytes == 0 {
        return Ok(None);
    }
    // value, time enabled, time running, id, lost (struct read_format in perf_event.h).
    let mut words = [0u64; 5];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = chunk.try_into().map_or(0, u64::from_ne_bytes);
    }
    let [value, enabled_ns, running_ns, _id, n_lost] = words;
    Ok(Some(EventCounts { value, enabled_ns, running_ns, n_lost }))
}
