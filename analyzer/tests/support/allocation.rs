//! How much memory a test holds at its height, so that hostile input that asks for much is seen.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// No input of these tests is larger than a few megabytes: nothing made of one may be larger.
pub(crate) const MAX_BYTES: usize = 512 << 20;

/// The system's allocator, counting by thread.
pub(crate) struct Counting;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
    static N_ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Blocks of memory that this thread has asked for so far: the steps of what makes anything.
pub(crate) fn n_allocations() -> u64 {
    N_ALLOCATIONS.get()
}

fn add(n_bytes: usize) {
    // While a thread ends its counters are gone: what it frees then is not counted.
    let _ = N_ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
    let _ = LIVE.try_with(|live| {
        live.set(live.get().saturating_add(n_bytes));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

fn remove(n_bytes: usize) {
    let _ = LIVE.try_with(|live| live.set(live.get().saturating_sub(n_bytes)));
}

#[allow(
    unsafe_code,
    reason = "an allocator cannot be written without; it only counts and hands on"
)]
// SAFETY: every call is handed on unchanged to the system's allocator, whose contract it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        if layout.size() > MAX_BYTES {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        if layout.size() > MAX_BYTES {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        remove(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, n_bytes: usize) -> *mut u8 {
        remove(layout.size());
        add(n_bytes);
        if n_bytes > MAX_BYTES {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, n_bytes) }
    }
}

/// What `work` gives; fails where it held more than [`MAX_BYTES`] at once.
pub(crate) fn bounded<T>(work: impl FnOnce() -> T) -> T {
    measured(work).0
}

/// The same, with how many bytes it held at most.
pub(crate) fn measured<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = work();
    let held = PEAK.get().saturating_sub(before);
    assert!(held <= MAX_BYTES, "{held} bytes were held at once");
    (result, held)
}
