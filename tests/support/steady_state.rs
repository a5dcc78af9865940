//! What tests and benches of the steady state share: a count of all threads' allocations, and files
//! by their paths.

use dataspace_analyzer::bytes::file::{
    DebugFileQuery, FileBytes, FileError, FileSource, LoadObjectKey,
};
use dataspace_proto::reason::Reason;
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's allocator, counting.
pub(crate) struct Counting;

static N_ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// Blocks of memory that all threads have asked for so far.
pub(crate) fn n_allocations() -> u64 {
    N_ALLOCATIONS.load(Ordering::Relaxed)
}

#[allow(unsafe_code, reason = "GlobalAlloc is an unsafe trait; it only counts and passes on")]
// SAFETY: every call is passed on to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        N_ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        N_ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

/// Files by their paths.
pub(crate) struct Files;

struct Open(File, u64);

impl FileBytes for Open {
    fn len(&self) -> u64 {
        self.1
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), FileError> {
        let n_bytes = buffer.len() as u64;
        let failed =
            |error: std::io::Error| FileError { offset, n_bytes, cause: error.to_string() };
        self.0.read_exact_at(buffer, offset).map_err(failed)
    }
}

impl FileSource for Files {
    fn load_object(&self, key: &LoadObjectKey) -> Result<Box<dyn FileBytes>, Reason> {
        let path = String::from_utf8_lossy(&key.path).into_owned();
        let file = File::open(path).map_err(|_| Reason::ObjectMissing)?;
        let len = file.metadata().map_err(|_| Reason::ObjectMissing)?.len();
        Ok(Box::new(Open(file, len)))
    }

    fn debug_files(&self, _: &DebugFileQuery) -> Vec<Box<dyn FileBytes>> {
        Vec::new()
    }
}
