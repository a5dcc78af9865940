//! Steady state allocates nothing for a sample: not in the collector's thread, not in the
//! analyzer's.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

use dataspace_analyzer::index::worker::Worker;
use dataspace_analyzer::session::analyzer::{Analyzer, Config, Unobserved};
use dataspace_collector::channel::batch;
use dataspace_collector::event::EventSelector;
use dataspace_collector::live::{Live, LiveConfig};
use dataspace_collector::target::TargetSpec;
use dataspace_proto::record::Record;

#[path = "support/steady_state.rs"]
mod steady_state;
#[path = "support/mod.rs"]
mod support;

use steady_state::{Counting, Files, n_allocations};

#[global_allocator]
static COUNTING: Counting = Counting;

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
    // With a history that is full soon: the room of the oldest samples is used again.
    let mut analyzer = Analyzer::new(Config { history_bytes: 1 << 20, ..Config::default() });
    let mut worker = Worker::new(Box::new(Files));
    let mut n_samples = 0u64;
    let mut n_others = 0u64;
    // Samples, other records and allocations when the first seconds, which fill caches and buffers, are over.
    let mut steady: Option<[u64; 3]> = None;
    while let Some(batch) = receiver.receive() {
        for record in batch.iter() {
            let is_sample = matches!(record, Record::Sample(_));
            n_samples += u64::from(is_sample);
            n_others += u64::from(!is_sample);
            analyzer.apply(record, &mut Unobserved);
        }
        receiver.recycle(batch);
        while let Some(request) = analyzer.next_request() {
            let response = worker.answer(&request);
            analyzer.answer(response, &mut Unobserved);
        }
        let now = [n_samples, n_others, n_allocations()];
        match steady {
            None if n_samples > 10_000 => steady = Some(now),
            Some(before) if n_samples > before[0] + 20_000 => {
                let [samples, others, allocations] = std::array::from_fn(|at| now[at] - before[at]);
                println!("{allocations} allocations for {samples} samples and {others} others");
                // Ticks, counters and new seconds, of which a busy machine makes more, may allocate; samples
                // may not.
                assert!(
                    allocations < samples / 20 + 10 * others,
                    "{allocations} allocations for {samples} samples and {others} others"
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
