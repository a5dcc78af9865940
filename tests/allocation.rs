//! Steady state allocates nothing for a sample: not in the collector's thread, not in the
//! analyzer's.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]
#![allow(unsafe_code, reason = "GlobalAlloc is an unsafe trait; it only counts and passes on")]

use dataspace_analyzer::analyzer::{Analyzer, Config, Unobserved};
use dataspace_analyzer::file::{DebugFileQuery, FileBytes, FileError, FileSource, LoadObjectKey};
use dataspace_analyzer::worker::Worker;
use dataspace_collector::event::EventSelector;
use dataspace_collector::live::{Live, LiveConfig};
use dataspace_collector::target::TargetSpec;
use dataspace_proto::batch;
use dataspace_proto::reason::Reason;
use dataspace_proto::record::Record;
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering};

#[path = "support/mod.rs"]
mod support;

struct Counting;

static N_ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

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

#[global_allocator]
static COUNTING: Counting = Counting;

/// Files by their paths.
struct Files;

struct Open(File, u64);

impl FileBytes for Open {
    fn len(&self) -> u64 {
        self.1
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), FileError> {
        let n_bytes = buffer.len() as u64;
        self.0.read_exact_at(buffer, offset).map_err(|error| FileError {
            offset,
            n_bytes,
            cause: error.to_string(),
        })
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

#[test]
fn a_sample_allocates_nothing_in_either_thread() {
    let program = support::compile("count", &["-O2", "-g", "-no-pie"]);
    let argv = vec![program.into_os_string(), "40000000000".into()];
    let mut config = LiveConfig::new(TargetSpec::Command(argv));
    config.events = vec![EventSelector::parse("cpu-clock").unwrap()];
    config.sampling = Some(dataspace_proto::event::Sampling::Period(100_000));
    let live = match Live::open(config) {
        Ok(live) => live,
        Err(error) => {
            eprintln!("not run: {error}");
            return;
        }
    };
    let pid = rustix::process::Pid::from_raw(live.pids()[0]).unwrap();
    let (sender, receiver) = batch::channel(64, 1024);
    let running = live.start(sender).unwrap();
    let mut analyzer = Analyzer::new(Config::default());
    let mut worker = Worker::new(Box::new(Files));
    let mut n_samples = 0u64;
    // Samples and allocations when the first seconds, which fill caches and buffers, are over.
    let mut steady: Option<(u64, u64)> = None;
    while let Some(batch) = receiver.receive() {
        for record in &batch {
            n_samples += u64::from(matches!(record, Record::Sample(_)));
            analyzer.apply(record, &mut Unobserved);
        }
        receiver.recycle(batch);
        while let Some(request) = analyzer.next_request() {
            let response = worker.answer(&request);
            analyzer.answer(response, &mut Unobserved);
        }
        let n_allocations = N_ALLOCATIONS.load(Ordering::Relaxed);
        match steady {
            None if n_samples > 10_000 => steady = Some((n_samples, n_allocations)),
            Some((samples, allocations)) if n_samples > samples + 20_000 => {
                let (samples, allocations) = (n_samples - samples, n_allocations - allocations);
                // Ticks, counters and new seconds may allocate; samples may not.
                assert!(
                    allocations * 20 < samples,
                    "{allocations} allocations for {samples} samples"
                );
                break;
            }
            _ => {}
        }
    }
    running.stop();
    drop(receiver);
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    let _ = running.join();
}
