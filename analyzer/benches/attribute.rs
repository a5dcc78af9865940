//! What one sample costs the analyzer once its trigger is known: both paths, totals and windows, and the history on top
//! of that; and what a question to the history costs.
//!
//! `cargo bench -p dataspace-analyzer --bench attribute` prints nanoseconds a sample, with and without a history one
//! round after the other, and milliseconds a question; nothing is asserted. Each figure is a median over places in memory,
//! with the lowest and the highest: those of two need not add up.
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on ends")]

use dataspace_analyzer::bytes::file::{
    DebugFileQuery, FileBytes, FileError, FileSource, LoadObjectKey,
};
use dataspace_analyzer::elf::image::ElfImage;
use dataspace_analyzer::index::worker::Worker;
use dataspace_analyzer::query::answer::Inquiry;
use dataspace_analyzer::session::analyzer::{Analyzer, Config, Unobserved};
use dataspace_proto::address::{Avma, FileOffset};
use dataspace_proto::event::{Event, EventKind, Sampling, SkidModel};
use dataspace_proto::query::Query;
use dataspace_proto::reason::Reason;
use dataspace_proto::record::{CpuMode, Mmap, Record, Sample};
use dataspace_proto::register::{Register, RegisterAbi};
use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind};
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

/// Room for histories: none, one that stays in the processor's caches, and one of a million samples.
const HISTORIES_BYTES: [u64; 3] = [0, 1 << 20, 70 << 20];

/// Where the program's cells are.
const POOL: u64 = 0x7000_0000_0000;

/// Times that the sessions begin anew, each of the three as the first in its turn. Where a session lies in memory moves it by
/// several nanoseconds: of two with the same history, the second took 5 more, always. So they lie elsewhere each time.
const N_PLACINGS: usize = 9;

/// Pieces of memory that lie before each session.
const N_GAPS: usize = 40;

/// Rounds of each session; the largest history is full after some 35. The best one counts: what others do with the processor
/// only ever adds to a round, and more than the difference that is looked for.
const N_ROUNDS: usize = 60;

/// Samples of a round.
const N_SAMPLES: usize = 100_000;

const PROGRAM: &str = "
struct cell { struct cell *next; long key; long count; };
struct cell pool[64];
long total;
__attribute__((noinline)) long walk(struct cell *p, long n)
{
    long sum = 0;
    while (n--) { sum += p->key; p->count++; total += sum; p = p->next; }
    return sum;
}
int main(int c, char **v) { (void)v; return walk(pool, c - 1); }
";

struct Bytes(Vec<u8>);

impl FileBytes for Bytes {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), FileError> {
        let start = usize::try_from(offset).unwrap();
        buffer.copy_from_slice(&self.0[start..start + buffer.len()]);
        Ok(())
    }
}

struct Files(Vec<u8>);

impl FileSource for Files {
    fn load_object(&self, _: &LoadObjectKey) -> Result<Box<dyn FileBytes>, Reason> {
        Ok(Box::new(Bytes(self.0.clone())))
    }

    fn debug_files(&self, _: &DebugFileQuery) -> Vec<Box<dyn FileBytes>> {
        Vec::new()
    }
}

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let (source, program) = (dir.path().join("walk.c"), dir.path().join("walk"));
    std::fs::write(&source, PROGRAM).unwrap();
    let flags = ["-O2", "-g", "-no-pie", "-o"];
    let built = Command::new("gcc").arg(&source).args(flags).arg(&program).status().unwrap();
    assert!(built.success(), "gcc failed");
    let bytes = std::fs::read(&program).unwrap();
    let image = ElfImage::parse(&Bytes(bytes.clone())).unwrap();
    // Each IP behind a memory operand of `walk`, as a clock reports it.
    let walk = image.functions.iter().find(|function| &*function.name == "walk").unwrap();
    let offset = usize::try_from(image.offset_of_svma(walk.start).unwrap().0.0).unwrap();
    let code = &bytes[offset..offset + usize::try_from(walk.len_bytes).unwrap()];
    let ips: Vec<u64> = Decoder::with_ip(64, code, walk.start.0, DecoderOptions::NONE)
        .into_iter()
        .filter(|it| it.mnemonic() != Mnemonic::Nop && it.mnemonic() != Mnemonic::Lea)
        .filter(|it| (0..it.op_count()).any(|op| it.op_kind(op) == OpKind::Memory))
        .map(|it| it.next_ip())
        .collect();
    let samples: Vec<Record> = ips.iter().map(|ip| Record::Sample(sample(*ip, POOL))).collect();
    let segments = image.segments.iter().map(|segment| Mmap {
        pid: 1,
        tid: 1,
        start: Avma(segment.start.0),
        len_bytes: segment.memory_bytes,
        file_offset: FileOffset(segment.file_offset.0),
        is_executable: segment.is_executable,
        path: b"/walk".as_slice().into(),
        ..Mmap::default()
    });
    let pool = Mmap {
        pid: 1,
        tid: 1,
        start: Avma(POOL),
        len_bytes: 1 << 20,
        path: b"//anon".as_slice().into(),
        ..Mmap::default()
    };
    let mappings: Vec<Mmap> = segments.chain([pool]).collect();
    let begin = |history_bytes| {
        let config = Config { history_bytes, ..Config::default() };
        let mut analyzer = Analyzer::new(config);
        let mut worker = Worker::new(Box::new(Files(bytes.clone())));
        analyzer.apply(&Record::Event(Box::new(clock())), &mut Unobserved);
        for mapped in &mappings {
            analyzer.apply(&Record::Mmap(Box::new(mapped.clone())), &mut Unobserved);
        }
        for record in &samples {
            analyzer.apply(record, &mut Unobserved);
            while let Some(request) = analyzer.next_request() {
                analyzer.answer(worker.answer(&request), &mut Unobserved);
            }
        }
        Box::new(analyzer)
    };
    let mut each_ns = Vec::new();
    let mut sessions = HISTORIES_BYTES.map(|_| None);
    for placing in 0..N_PLACINGS {
        // The memory of the last ones is used again.
        sessions = HISTORIES_BYTES.map(|_| None);
        for turn in 0..sessions.len() {
            let session = (placing + turn) % sessions.len();
            sessions[session] = Some((gaps(placing), begin(HISTORIES_BYTES[session])));
        }
        let analyzers = sessions.each_mut().map(|session| &mut *session.as_mut().unwrap().1);
        each_ns.push(best_ns_a_sample(analyzers, &samples));
    }
    let spread_of = |ns: &dyn Fn(&[f64; 3]) -> f64| spread(each_ns.iter().map(ns).collect());
    println!("{} a sample over {} triggers", spread_of(&|of_session| of_session[0]), samples.len());
    for (kept, session) in [("1 MB", 1), ("70 MB", 2)] {
        let whole = spread_of(&|of_session| of_session[session]);
        let on_top = spread_of(&|of_session| of_session[session] - of_session[0]);
        println!("{whole} with a history of {kept}: {on_top} on top");
    }
    let [(_, plain), _, (_, keeping)] = &mut sessions.map(Option::unwrap);
    println!("accounting: {:?}", plain.accounting());
    let view = keeping.history().unwrap();
    for (by, filter) in [
        ("object", None),
        ("thread,object", None),
        ("object", Some("function == \"walk\" && access == \"load\"")),
        ("cacheline,member", Some("object.startsWith(\"{structure:cell}\")")),
        ("addr / 2097152", Some("offset % 16 == 8 || access == \"store\"")),
    ] {
        let query = Query {
            by: by.split(',').map(str::to_owned).collect(),
            filter: filter.map(str::to_owned),
            ..Query::default()
        };
        let inquiry = Inquiry::new(&query).unwrap();
        let began = Instant::now();
        let answer = black_box(inquiry.answer(&view));
        let ms = began.elapsed().as_secs_f64() * 1e3;
        println!(
            "{ms:6.1} ms over {} rows: --by '{by}' --where '{}': {} rows of {} samples",
            answer.rows_held,
            filter.unwrap_or_default(),
            answer.rows.len(),
            answer.total.samples
        );
    }
}

/// Memory of some sizes, others for each placing.
fn gaps(placing: usize) -> Vec<Vec<u8>> {
    let size = |gap| 16 + (placing * N_GAPS + gap) * 244 % 3_001;
    (0..N_GAPS).map(|gap| Vec::with_capacity(size(gap))).collect()
}

/// Nanoseconds a sample in the best round of each session, one round of each after the other.
fn best_ns_a_sample<const N: usize>(
    mut analyzers: [&mut Analyzer; N],
    samples: &[Record],
) -> [f64; N] {
    let mut best_ns = [f64::MAX; N];
    for _ in 0..N_ROUNDS {
        for (analyzer, best) in analyzers.iter_mut().zip(&mut best_ns) {
            *best = best.min(round_ns(analyzer, samples));
        }
    }
    best_ns
}

/// The median, and the lowest and highest of these.
fn spread(mut each_ns: Vec<f64>) -> String {
    each_ns.sort_by(f64::total_cmp);
    let (lowest_ns, highest_ns) = (each_ns[0], each_ns[each_ns.len() - 1]);
    format!("{:.1} ns ({lowest_ns:.1} to {highest_ns:.1})", each_ns[each_ns.len() / 2])
}

/// Nanoseconds a sample in one round.
// One piece of code for all sessions: a copy of it for each took 2 to 3 ns more or less.
#[inline(never)]
fn round_ns(analyzer: &mut Analyzer, samples: &[Record]) -> f64 {
    let n_times = N_SAMPLES / samples.len();
    let began = Instant::now();
    for _ in 0..n_times {
        for record in samples {
            analyzer.apply(black_box(record), &mut Unobserved);
        }
    }
    began.elapsed().as_nanos() as f64 / (n_times * samples.len()) as f64
}

fn clock() -> Event {
    Event {
        name: "cpu-clock".to_owned(),
        kind: EventKind::Clock,
        skid: SkidModel::AfterOne,
        sampling: Sampling::Period(1),
        includes_kernel: false,
    }
}

fn sample(ip: u64, pool: u64) -> Sample {
    let mut sample = Sample {
        time_ns: 1,
        pid: 1,
        tid: 1,
        period: 1,
        mode: CpuMode::User,
        ip: Avma(ip),
        ..Sample::default()
    };
    sample.registers.abi = RegisterAbi::Bits64;
    for register in Register::ALL {
        sample.registers.set(register, pool);
    }
    // A stack of its own, so that the cells are none of its objects.
    sample.registers.set(Register::Rsp, 0x7ffc_0000_0000);
    // The flags that adding up to `pool` leaves: its low byte has an even number of ones.
    sample.registers.set(Register::Rflags, 0x206);
    sample
}
