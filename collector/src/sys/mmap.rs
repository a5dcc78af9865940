//! A kernel ring mapped into this process.

use super::last_errno;
use perf_event_open_sys::bindings::perf_event_mmap_page;
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// The mapping of one event: a control page, then a power of two of data pages.
#[derive(Debug)]
pub(crate) struct MappedRing {
    base: NonNull<u8>,
    page_bytes: usize,
    data_bytes: usize,
    /// No kernel writes to it: we do.
    #[cfg(feature = "synthetic")]
    is_ours: bool,
}

// SAFETY: the mapping belongs to the process, not to the thread that made it, and a `MappedRing`
// has no interior state of its own: whoever owns it is the ring's only reader. It is not `Sync`.
unsafe impl Send for MappedRing {}

impl MappedRing {
    /// Maps `n_pages` (a power of two) data pages of the event of `fd`.
    pub(crate) fn new(fd: BorrowedFd<'_>, n_pages: usize) -> Result<Self, Errno> {
        Self::map(n_pages, libc::MAP_SHARED, fd.as_raw_fd())
    }

    /// A ring of `n_pages` (a power of two) that no kernel writes to: the caller does, by [`Self::write`].
    #[cfg(feature = "synthetic")]
    pub(crate) fn in_memory(n_pages: usize) -> Result<Self, Errno> {
        Self::map(n_pages, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)
    }

    fn map(n_pages: usize, flags: i32, fd: i32) -> Result<Self, Errno> {
        let page_bytes = rustix::param::page_size();
        let data_bytes = n_pages * page_bytes;
        // SAFETY: a null hint lets the kernel choose the place, so no mapping of ours is replaced;
        // the descriptor, where there is one, is borrowed by the caller for the call.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                page_bytes + data_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                fd,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(last_errno());
        }
        let base = NonNull::new(address.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self {
            base,
            page_bytes,
            data_bytes,
            #[cfg(feature = "synthetic")]
            is_ours: fd < 0,
        })
    }

    fn head(&self) -> &AtomicU64 {
        let page = self.base.as_ptr().cast::<perf_event_mmap_page>();
        // SAFETY: the control page is mapped as long as `self` lives, is page-aligned (so the
        // field is 8-byte aligned), and both sides touch the field with whole 8-byte accesses only.
        unsafe { AtomicU64::from_ptr(&raw mut (*page).data_head) }
    }

    fn tail(&self) -> &AtomicU64 {
        let page = self.base.as_ptr().cast::<perf_event_mmap_page>();
        // SAFETY: as for `head`.
        unsafe { AtomicU64::from_ptr(&raw mut (*page).data_tail) }
    }

    /// Bytes that the kernel has written and we have not released yet: the part up to the end of the
    /// ring, then the part that wrapped around. Also the position at which it begins.
    ///
    /// `None` when the head makes no sense (more unread bytes than the ring holds).
    pub(crate) fn unread(&mut self) -> Option<(&[u8], &[u8], u64)> {
        // Acquire: pairs with the barrier before the kernel's store of data_head
        // (perf_output_put_handle() in kernel/events/ring_buffer.c).
        let head = self.head().load(Ordering::Acquire);
        let tail = self.tail().load(Ordering::Relaxed);
        let n_bytes = usize::try_from(head.wrapping_sub(tail)).ok()?;
        if n_bytes > self.data_bytes {
            return None;
        }
        // The size is a power of two, so the mask is exact.
        let start = tail as usize & (self.data_bytes - 1);
        let n_front = n_bytes.min(self.data_bytes - start);
        // SAFETY: the data pages follow the control page and are `data_bytes` long, and
        // `start + n_front` is not above that.
        let front = unsafe {
            std::slice::from_raw_parts(self.base.as_ptr().add(self.page_bytes + start), n_front)
        };
        // SAFETY: `n_bytes - n_front` is at most `start`, so the two parts do not overlap. For
        // both: the kernel writes no byte between tail and head until the tail moves, and that
        // takes `&mut self`, which the borrow of the slices forbids.
        let back = unsafe {
            std::slice::from_raw_parts(self.base.as_ptr().add(self.page_bytes), n_bytes - n_front)
        };
        Some((front, back, tail))
    }

    /// Number of bytes that the kernel has written and that were not released yet, as far as that makes sense.
    pub(crate) fn n_unread(&mut self) -> usize {
        let n_bytes =
            self.head().load(Ordering::Relaxed).wrapping_sub(self.tail().load(Ordering::Relaxed));
        usize::try_from(n_bytes).unwrap_or(usize::MAX)
    }

    /// Number of bytes that it holds.
    pub(crate) const fn n_bytes(&self) -> usize {
        self.data_bytes
    }

    /// Gives everything before `position` back to the kernel.
    pub(crate) fn release(&mut self, position: u64) {
        // Release: our reads of the data come before the kernel sees the room.
        self.tail().store(position, Ordering::Release);
    }

    /// Lets an empty ring of [ours](Self::in_memory) begin at byte `position`, a multiple of 8.
    #[cfg(feature = "synthetic")]
    pub(crate) fn begin_at(&mut self, position: u64) {
        assert!(self.is_ours, "the kernel says where its rings begin");
        self.tail().store(position, Ordering::Relaxed);
        self.head().store(position, Ordering::Release);
    }

    /// Puts `record` after all others in a ring of [ours](Self::in_memory), as the kernel does.
    /// Whether there was room.
    #[cfg(feature = "synthetic")]
    pub(crate) fn write(&mut self, record: &[u8]) -> bool {
        assert!(self.is_ours, "nobody but the kernel writes to its rings");
        let head = self.head().load(Ordering::Relaxed);
        let n_unread = head.wrapping_sub(self.tail().load(Ordering::Acquire));
        if n_unread + record.len() as u64 > self.data_bytes as u64 {
            return false;
        }
        let start = head as usize & (self.data_bytes - 1);
        // SAFETY: the data pages follow the control page and are `data_bytes` long; `&mut self` says that
        // no slice of them is borrowed, and the kernel does not know of this ring.
        let data = unsafe {
            std::slice::from_raw_parts_mut(self.base.as_ptr().add(self.page_bytes), self.data_bytes)
        };
        let (front, back) = record.split_at(record.len().min(self.data_bytes - start));
        data[start..start + front.len()].copy_from_slice(front);
        data[..back.len()].copy_from_slice(back);
        self.head().store(head + record.len() as u64, Ordering::Release);
        true
    }

    /// Gives everything written so far back, read or not: the way out of a head that makes no
    /// sense.
    pub(crate) fn skip(&mut self) {
        let head = self.head().load(Ordering::Acquire);
        self.release(head);
    }
}

impl Drop for MappedRing {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `new` made, unmapped once; every slice of it borrowed
        // `self` and is gone.
        let result =
            unsafe { libc::munmap(self.base.as_ptr().cast(), self.page_bytes + self.data_bytes) };
        debug_assert_eq!(result, 0, "unmapping our own mapping cannot fail");
    }
}
