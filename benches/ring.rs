//! How many samples a second go from a ring through decoding, ordering, channel and counting, on one reader
//! and one analyzer thread.
//!
//! `cargo bench --bench ring [-- PASSES]` prints the figures; nothing is asserted.
//!
//! The samples are real ones of the clock, with registers and 256 bytes of stack, taken from a
//! program that walks a list; all that is known of their code is known before. They are written again and again, with new
//! times, into a ring of 32 MiB that wraps in the middle of a record. Its filling, which is the kernel's part, is not
//! measured; a pass is measured from the reader's first look to the analyzer's last count.
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on ends")]

use dataspace_analyzer::index::worker::Worker;
use dataspace_analyzer::session::analyzer::{Analyzer, Config, Unobserved};
use dataspace_collector::channel::ahead;
use dataspace_collector::channel::batch::{self, BatchReceiver};
use dataspace_collector::event::EventSelector;
use dataspace_collector::live::synthetic::SyntheticSession;
use dataspace_collector::live::{Live, LiveConfig, thread_cpu_ns};
use dataspace_collector::target::TargetSpec;
use dataspace_proto::event::Sampling;
use dataspace_proto::record::{CpuMode, Record, Sample};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

#[path = "../tests/support/steady_state.rs"]
mod steady_state;
#[path = "../tests/support/mod.rs"]
mod support;

use steady_state::{Counting, Files, n_allocations};

/// 32 MiB.
const N_PAGES: usize = 8192;
/// Where the ring begins: not at a multiple of a record's size.
const START: u64 = 8 * 1001;
const N_TEMPLATES: usize = 2_000;
/// As the session has them.
const N_BATCHES: usize = 64;
const BATCH_LEN: usize = 1024;
/// A time between samples that makes five million a second.
const STEP_NS: u64 = 200;

/// Samples counted, and the CPU time of the analyzer's thread so far.
static N_COUNTED: AtomicU64 = AtomicU64::new(0);
static ANALYZER_NS: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() {
    let n_passes = std::env::args().filter_map(|word| word.parse().ok()).next().unwrap_or(20usize);
    let Some((analyzer, templates)) = known_samples() else { return };
    let (sender, receiver) = batch::channel(N_BATCHES, BATCH_LEN);
    let mut session = SyntheticSession::new(N_PAGES, START, sender).unwrap();
    let counting = std::thread::spawn(move || count(analyzer, &receiver));
    let mut time_ns = templates.iter().map(|sample| sample.time_ns).max().unwrap();
    // Buffers and caches fill.
    for _ in 0..3 {
        pass(&mut session, &templates, &mut time_ns);
    }
    let mut passes: Vec<Pass> =
        (0..n_passes).map(|_| pass(&mut session, &templates, &mut time_ns)).collect();
    drop(session);
    let analyzer = counting.join().unwrap();
    println!("{analyzer}");
    // As many slots are made as are on their way at one time: the first passes find out how many.
    let later = &passes[n_passes / 2..];
    let n_allocations: u64 = later.iter().map(|pass| pass.n_allocations).sum();
    let n_samples: u64 = later.iter().map(|pass| pass.n_samples).sum();
    passes.sort_by(|a, b| a.wall_ns.total_cmp(&b.wall_ns));
    print(&passes);
    println!("{n_allocations} allocations for {n_samples} samples of the later passes");
}

fn print(passes: &[Pass]) {
    let (best, median, worst) = (passes[0], passes[passes.len() / 2], passes[passes.len() - 1]);
    println!("{} samples a pass, {} passes", median.n_samples, passes.len());
    let rate = |pass: Pass| 1e3 / pass.wall_ns;
    println!(
        "through both threads: {:.2} million samples/s (median; from {:.2} to {:.2})",
        rate(median),
        rate(worst),
        rate(best)
    );
    let median_of = |of: fn(&Pass) -> f64| {
        let mut values: Vec<f64> = passes.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!(
        "CPU time a sample: reader {:.1} ns, analyzer {:.1} ns",
        median_of(|pass| pass.reader_ns),
        median_of(|pass| pass.analyzer_ns)
    );
}

/// One filling of the ring; times are of one sample.
#[derive(Clone, Copy, Debug)]
struct Pass {
    n_samples: u64,
    wall_ns: f64,
    reader_ns: f64,
    analyzer_ns: f64,
    n_allocations: u64,
}

fn pass(session: &mut SyntheticSession, templates: &[Sample], time_ns: &mut u64) -> Pass {
    let n_samples = fill(session, templates, time_ns);
    let n_before = N_COUNTED.load(Ordering::Acquire);
    let (analyzer_ns, allocations) = (ANALYZER_NS.load(Ordering::Acquire), n_allocations());
    let (began, reader_began_ns) = (Instant::now(), thread_cpu_ns());
    session.drain();
    let reader_ns = thread_cpu_ns() - reader_began_ns;
    while N_COUNTED.load(Ordering::Acquire) < n_before + n_samples {
        std::hint::spin_loop();
    }
    let wall_ns = began.elapsed().as_nanos() as f64;
    let a_sample = |ns: u64| ns as f64 / n_samples as f64;
    Pass {
        n_samples,
        wall_ns: wall_ns / n_samples as f64,
        reader_ns: a_sample(reader_ns),
        analyzer_ns: a_sample(ANALYZER_NS.load(Ordering::Acquire) - analyzer_ns),
        n_allocations: n_allocations() - allocations,
    }
}

fn fill(session: &mut SyntheticSession, templates: &[Sample], time_ns: &mut u64) -> u64 {
    let mut n_samples = 0;
    for template in templates.iter().cycle() {
        if !session.write(&Sample { time_ns: *time_ns, ..*template }) {
            break;
        }
        *time_ns += STEP_NS;
        n_samples += 1;
    }
    n_samples
}

/// The analyzer's thread; gives what it made of the samples.
fn count(mut analyzer: Analyzer, batches: &BatchReceiver) -> String {
    while let Some(batch) = batches.receive() {
        let mut n_samples = 0;
        ahead::each(&batch, |record| {
            n_samples += u64::from(matches!(record, Record::Sample(_)));
            analyzer.apply(record, &mut Unobserved);
        });
        batches.recycle(batch);
        ANALYZER_NS.store(thread_cpu_ns(), Ordering::Release);
        N_COUNTED.fetch_add(n_samples, Ordering::Release);
    }
    let snapshot = analyzer.snapshot(Default::default(), Default::default(), None);
    format!(
        "attributed {} of {}",
        snapshot.accounting.attributed,
        N_COUNTED.load(Ordering::Relaxed)
    )
}

/// Samples of a real program, and an analyzer that knows all about their code; `None`, with the reason
/// printed, where live events are not to be had.
fn known_samples() -> Option<(Analyzer, Vec<Sample>)> {
    let program = support::compile("chase", &["-O2", "-g", "-no-pie"]);
    let mut config =
        LiveConfig::new(TargetSpec::Command(vec![program.into_os_string(), "8".into()]));
    config.events = vec![EventSelector::parse("cpu-clock").unwrap()];
    config.sampling = Some(Sampling::Period(100_000));
    let live = match Live::open(config) {
        Ok(live) => live,
        Err(error) => {
            println!("not run: {error}");
            return None;
        }
    };
    let (sender, receiver) = batch::channel(N_BATCHES, BATCH_LEN);
    let running = live.start(sender).unwrap();
    let mut analyzer = Analyzer::new(Config::default());
    let mut worker = Worker::new(Box::new(Files));
    let mut templates: Vec<Sample> = Vec::new();
    while let Some(batch) = receiver.receive() {
        for record in batch.iter() {
            analyzer.apply(record, &mut Unobserved);
            if let Record::Sample(sample) = record
                && sample.mode == CpuMode::User
            {
                templates.push(*sample);
            }
        }
        receiver.recycle(batch);
        while let Some(request) = analyzer.next_request() {
            let response = worker.answer(&request);
            analyzer.answer(response, &mut Unobserved);
        }
        // What is new to the worker comes first.
        if templates.len() > 2 * N_TEMPLATES {
            break;
        }
    }
    running.stop();
    drop(receiver);
    let _ = running.join();
    let first = templates.len().checked_sub(N_TEMPLATES)?;
    Some((analyzer, templates.split_off(first)))
}
