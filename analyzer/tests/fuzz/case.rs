//! One damaged program, the samples in it, and what is asked of their answers.

use crate::fuzz::code::Maker;
use crate::fuzz::file::Sound;
use crate::fuzz::image::{Image, Original};
use crate::support::allocation;
use crate::support::program::SegmentMapping;
use crate::support::session::{PID, TestFiles};
use crate::truth::step::Random;
use dataspace_analyzer::bytes::file::LoadObjectKey;
use dataspace_analyzer::index::load_object::LoadObjectIndex;
use dataspace_analyzer::index::site::SiteQuery;
use dataspace_analyzer::index::worker::Worker;
use dataspace_analyzer::limit;
use dataspace_analyzer::session::analyzer::{Analyzer, Config, Decided, Observer};
use dataspace_analyzer::x86_64::backtrack::Skid;
use dataspace_proto::address::{Avma, FileOffset, Svma};
use dataspace_proto::event::{Event, EventIdx, EventKind, Sampling, SkidModel};
use dataspace_proto::memory::{Access, DataSource};
use dataspace_proto::record::{CpuMode, FileIdentity, Mmap, Record, Sample};
use dataspace_proto::register::{Register, RegisterAbi, Registers};
use iced_x86::{Decoder, DecoderOptions};
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Where the stack is said to be.
const STACK: (u64, u64) = (0x7ffd_0000_0000, 1 << 20);

/// Samples of one case.
const N_SAMPLES: u64 = 60;

/// Times that each is taken to be measured, and in all.
const N_MEASURED: u64 = 3;
const N_REPEATS: u64 = N_MEASURED + 2;

/// Sites that are asked for on their own.
const N_SITES: u64 = 12;

/// Ways that may lead to one instruction: its round, its predecessors with one above the limit, the
/// returns of a callee and the calls of a function.
const MAX_WAYS: usize = 2 + 3 * limit::MAX_PREDECESSORS;

/// Blocks of memory that making a site of known code may take: a few for each of its instructions,
/// and more for what debug information says of each trigger.
const MAX_ALLOCATIONS: u64 = 200_000;

/// What one case took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) n_samples: u64,
    pub(crate) n_sites: u64,
    /// Of a sample at a known site, and the seed of its case.
    pub(crate) longest_sample: (Duration, u64),
    /// Of making a site, with the function and what is read of the file.
    pub(crate) longest_site: (Duration, u64),
    pub(crate) most_allocations: u64,
    pub(crate) most_nodes: usize,
    /// Seconds of CPU that a case took for each megabyte of its file, and its seed.
    pub(crate) slowest_file: (f64, u64),
}

impl Cost {
    /// The sum, and the worst of both.
    pub(crate) fn add(&mut self, other: &Self) {
        self.n_samples += other.n_samples;
        self.n_sites += other.n_sites;
        self.longest_sample = self.longest_sample.max(other.longest_sample);
        self.longest_site = self.longest_site.max(other.longest_site);
        self.most_allocations = self.most_allocations.max(other.most_allocations);
        self.most_nodes = self.most_nodes.max(other.most_nodes);
        if other.slowest_file.0 > self.slowest_file.0 {
            self.slowest_file = other.slowest_file;
        }
    }
}

/// Says which case it was that failed.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the case with seed {} failed", self.0);
        }
    }
}

/// How long this thread has been on a CPU: other work of the machine does not count.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Counts the answers.
#[derive(Default)]
struct Answers(u64);

impl Observer for Answers {
    fn decided(&mut self, _: &Analyzer, _: Decided<'_>) {
        self.0 += 1;
    }
}

/// What cases are made of.
pub(crate) struct Cases {
    maker: Maker,
    original: Original,
    sound: Vec<Sound>,
}

impl Cases {
    pub(crate) fn new() -> Self {
        Self { maker: Maker::new(), original: Original::new(), sound: Sound::all() }
    }

    /// Runs the case of a seed with a file that is damaged.
    pub(crate) fn run_file(&self, seed: u64) -> Cost {
        let _named = Named(seed);
        let mut random = Random::seeded(seed);
        let sound = &self.sound[random.below(self.sound.len() as u64) as usize];
        let image = sound.damaged(&mut random);
        let began = cpu_seconds();
        let cost = Self::run_image(&image, &sound.mappings, seed, &mut random);
        let seconds = cpu_seconds() - began;
        Cost { slowest_file: (seconds / sound.megabytes(), seed), ..cost }
    }

    /// Runs the case of a seed. Panics where an answer is not what it must be.
    pub(crate) fn run(&self, seed: u64) -> Cost {
        let _named = Named(seed);
        let mut random = Random::seeded(seed);
        let image = self.original.damaged(&self.maker, &mut random);
        let began = cpu_seconds();
        let cost = Self::run_image(&image, &self.original.mappings, seed, &mut random);
        Cost { slowest_file: (cpu_seconds() - began, seed), ..cost }
    }

    fn run_image(
        image: &Image,
        mappings: &[SegmentMapping],
        seed: u64,
        random: &mut Random,
    ) -> Cost {
        allocation::bounded(|| {
            let mut cost = Cost {
                longest_sample: (Duration::ZERO, seed),
                longest_site: (Duration::ZERO, seed),
                ..Cost::default()
            };
            Self::sites(image, random, &mut cost);
            Self::samples(image, mappings, random, &mut cost);
            cost
        })
    }

    /// Asks for sites directly, each twice: the second time the function is decoded.
    fn sites(image: &Image, random: &mut Random, cost: &mut Cost) {
        let key = LoadObjectKey {
            path: b"/program".as_slice().into(),
            identity: FileIdentity::None,
            pid: 1,
            range: (Avma(0), Avma(0)),
            mount_namespace: 0,
        };
        let files = TestFiles { instead: Some(image.bytes.clone()), ..TestFiles::default() };
        let Ok(mut index) = LoadObjectIndex::open(&key, &files) else { return };
        for _ in 0..N_SITES {
            let query = SiteQuery { ip: Svma(ip(image, random)), skid: skid(random) };
            let began = Instant::now();
            let _ = index.site(query);
            cost.longest_site.0 = cost.longest_site.0.max(began.elapsed());
            let before = allocation::n_allocations();
            let site = index.site(query);
            let n_allocations = allocation::n_allocations() - before;
            assert!(n_allocations <= MAX_ALLOCATIONS, "{n_allocations} allocations: {query:?}");
            cost.most_allocations = cost.most_allocations.max(n_allocations);
            cost.n_sites += 1;
            let Ok(past) = site.outcome else { continue };
            let nodes = &past.trail.nodes;
            assert!(nodes.len() <= limit::MAX_TRAIL_NODES, "{} nodes", nodes.len());
            assert!(past.triggers.len() <= nodes.len(), "{query:?}");
            for node in nodes {
                assert!(node.ways.len() <= MAX_WAYS, "{} ways: {query:?}", node.ways.len());
                assert!(node.ways.iter().all(|way| usize::from(way.from) < nodes.len()));
            }
            cost.most_nodes = cost.most_nodes.max(nodes.len());
        }
    }

    /// Takes samples through the analyzer's own door.
    fn samples(image: &Image, mappings: &[SegmentMapping], random: &mut Random, cost: &mut Cost) {
        let files = TestFiles { instead: Some(image.bytes.clone()), ..TestFiles::default() };
        let mut worker = Worker::new(Box::new(files));
        let mut analyzer = Analyzer::new(Config::default());
        let mut answers = Answers::default();
        let events = events(random);
        for event in &events {
            let event = Record::Event(Box::new(event.clone()));
            analyzer.apply(&event, &mut answers);
        }
        for mapping in records(mappings) {
            analyzer.apply(&Record::Mmap(Box::new(mapping)), &mut answers);
        }
        for n_before in 0..N_SAMPLES {
            let event = random.below(events.len() as u64 + 1) as u16;
            let record = Record::Sample(sample(image, random, event));
            let began = Instant::now();
            analyzer.apply(&record, &mut answers);
            // None waits for others.
            analyzer.settle(&mut answers);
            while let Some(request) = analyzer.next_request() {
                analyzer.answer(worker.answer(&request), &mut answers);
            }
            assert_eq!(answers.0, n_before * N_REPEATS + 1, "one sample, one answer: {record:?}");
            assert_eq!(analyzer.n_pending(), 0);
            // Now all is known: once more to warm what is kept, and once to measure.
            analyzer.apply(&record, &mut answers);
            let before = allocation::n_allocations();
            let began_again = Instant::now();
            let mut shortest = Duration::MAX;
            for _ in 0..N_MEASURED {
                let began = Instant::now();
                analyzer.apply(&record, &mut answers);
                // Once in a while another thread is on the CPU meanwhile.
                shortest = shortest.min(began.elapsed());
            }
            cost.longest_sample.0 = cost.longest_sample.0.max(shortest);
            cost.longest_site.0 = cost.longest_site.0.max(began_again - began);
            assert_eq!(allocation::n_allocations(), before, "a known sample allocates: {record:?}");
            assert_eq!(answers.0, (n_before + 1) * N_REPEATS, "one sample, one answer: {record:?}");
            assert_eq!(analyzer.accounting().imbalance(), 0);
        }
        cost.n_samples += N_SAMPLES * N_REPEATS;
    }
}

fn records(mappings: &[SegmentMapping]) -> impl Iterator<Item = Mmap> {
    let of_program = mappings.iter().map(|mapping| Mmap {
        start: Avma(mapping.start),
        len_bytes: mapping.len_bytes,
        file_offset: FileOffset(mapping.file_offset),
        is_executable: mapping.is_executable,
        path: b"/program".as_slice().into(),
        ..Mmap::default()
    });
    let stack = Mmap {
        start: Avma(STACK.0),
        len_bytes: STACK.1,
        path: b"[stack]".as_slice().into(),
        ..Mmap::default()
    };
    of_program.chain([stack]).map(|mapping| Mmap { pid: PID, tid: PID, ..mapping })
}

/// An address in a function, mostly where an instruction begins.
fn ip(image: &Image, random: &mut Random) -> u64 {
    let n = image.functions.len() as u64;
    let Some((start, code)) = image.functions.get(random.below(n) as usize) else {
        return random.below(u64::MAX);
    };
    let n_bytes = code.len() as u64;
    match random.below(16) {
        0 => start + random.below(n_bytes),
        1 => random.below(u64::MAX),
        2 => *start,
        _ => {
            let last = random.below(n_bytes);
            let decoder = Decoder::with_ip(64, code, *start, DecoderOptions::NONE);
            let ips = decoder.into_iter().map(|instruction| instruction.ip());
            ips.take_while(|ip| *ip <= start + last).last().unwrap_or(*start)
        }
    }
}

fn range(random: &mut Random) -> u32 {
    match random.below(6) {
        0 => u32::MAX,
        1 => 64,
        2 => random.below(66) as u32,
        _ => random.below(10) as u32,
    }
}

fn skid(random: &mut Random) -> Skid {
    match random.below(7) {
        0 => Skid::Exact,
        1 => Skid::ExactOrFused,
        2 => Skid::Round,
        3 => Skid::AfterOne,
        4 => Skid::KernelEntry,
        _ => Skid::Within(range(random)),
    }
}

/// Each kind of event with each model of skid.
fn events(random: &mut Random) -> Vec<Event> {
    let breakpoint = EventKind::Breakpoint {
        address: Avma(value(random)),
        len_bytes: [0, 1, 2, 4, 8, 255][random.below(6) as usize],
    };
    let kinds = [
        EventKind::Clock,
        EventKind::PageFault,
        breakpoint,
        EventKind::Tracepoint,
        EventKind::Memory,
        EventKind::Other,
    ];
    let mut events = Vec::new();
    for kind in kinds {
        let skids = [SkidModel::Exact, SkidModel::AfterOne, SkidModel::Unknown(range(random))];
        events.extend(skids.map(|skid| Event {
            name: format!("{kind:?} {skid:?}"),
            kind,
            skid,
            sampling: Sampling::Period(1),
            includes_kernel: true,
        }));
    }
    events
}

/// A register's value or an address: an edge, a place in the program or its stack, or any.
fn value(random: &mut Random) -> u64 {
    const EDGES: [u64; 12] = [
        0,
        1,
        u64::MAX,
        i64::MAX as u64,
        i64::MIN as u64,
        0xffff_ffff,
        0x8000_0000,
        4095,
        4096,
        0x7fff_ffff_ffff,
        0x8000_0000_0000,
        0xffff_8000_0000_0000,
    ];
    match random.below(6) {
        0 => EDGES[random.below(12) as usize],
        1 => random.below(64),
        2 => STACK.0 + random.below(STACK.1),
        3 | 4 => 0x40_0000 + random.below(0x9000),
        _ => random.below(u64::MAX),
    }
}

fn registers(random: &mut Random) -> Registers {
    let mut registers = Registers::default();
    registers.abi = match random.below(20) {
        0 => RegisterAbi::None,
        1 => RegisterAbi::Bits32,
        _ => RegisterAbi::Bits64,
    };
    let has_all = random.below(2) == 0;
    for register in Register::ALL {
        if has_all || random.below(8) != 0 {
            registers.set(register, value(random));
        }
    }
    if random.below(2) == 0 {
        registers.set(Register::Rflags, random.below(1 << 17));
    }
    registers
}

fn sample(image: &Image, random: &mut Random, event: u16) -> Sample {
    let ip = ip(image, random);
    let mut user_registers = registers(random);
    user_registers.set(Register::Rip, ip);
    let mode = match random.below(10) {
        0 => CpuMode::Kernel,
        1 => CpuMode::Unknown,
        2 => CpuMode::Other,
        _ => CpuMode::User,
    };
    let access = [None, Some(Access::Load), Some(Access::Store), Some(Access::LoadStore)];
    let access = access[random.below(4) as usize];
    let source = DataSource { access, ..DataSource::default() };
    Sample {
        time_ns: 1,
        pid: PID,
        tid: PID + random.below(3) as i32,
        event: EventIdx(event),
        period: 1,
        mode,
        is_exact_ip: random.below(2) == 0,
        ip: Avma(ip),
        addr: (random.below(2) == 0).then(|| Avma(value(random))),
        registers: registers(random),
        user_registers,
        data_source: (random.below(2) == 0).then_some(source),
        ..Sample::default()
    }
}
