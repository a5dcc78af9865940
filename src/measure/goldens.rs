//! Pictures of reports. The samples come from bytes as the kernel lays them out for each kind of hardware, put together by
//! hand, and go through decoder, analyzer and history.

use super::question::MeasuredSamples;
use super::report::MeasureReport;
use super::view::{DetailRows, MeasureView, SortBy, ThreadChoice};
use super::{document, sheet};
use crate::fixture::sampled::{PID, Sampled};
use crate::golden;
use crate::session::Source as _;
use dataspace_collector::record::decode::{self, NATIVE, SampleLayout};
use dataspace_proto::event::{Event, EventIdx, EventKind, Machine, Sampling, SkidModel};
use dataspace_proto::event_count::EventCount;
use dataspace_proto::measure::Measure;
use dataspace_proto::record::Sample;
use std::collections::BTreeMap;

/// IP, TID, TIME, CPU and IDENTIFIER of `PERF_SAMPLE_*` (Linux `include/uapi/linux/perf_event.h`).
const COMMON: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 16;
/// ADDR, DATA_SRC, WEIGHT_STRUCT and REGS_INTR.
const ACCESS: u64 = 1 << 3 | 1 << 15 | 1 << 24 | 1 << 18;
/// RAW.
const RAW: u64 = 1 << 10;

/// `PERF_RECORD_MISC_USER` and `PERF_RECORD_MISC_EXACT_IP`.
const MISC: u16 = 2 | 1 << 14;

/// Where the program's instructions are: a bit-field that is tested, `quantity`, `price`, `next`, and two counters.
const TEST: u64 = 0x40_1010;
const QUANTITY: u64 = 0x40_1016;
const PRICE: u64 = 0x40_101a;
const NEXT: u64 = 0x40_1021;
const RECEIVE: u64 = 0x40_1030;
const SEND: u64 = 0x40_1040;

fn layout(sample_type: u64, has_fetch: bool) -> SampleLayout {
    SampleLayout {
        sample_type,
        read_format: 0,
        branch_sample_type: 0,
        user_registers: 0,
        // ax, bx, cx, dx, si, di, bp, sp, ip.
        interrupt_registers: 0x1ff,
        is_precise: !has_fetch,
        has_fetch,
        sample_id_all: true,
        endian: NATIVE,
        machine: Machine::X86_64,
    }
}

/// The words in front of every sample: id, IP, process and thread, time.
fn head(ip: u64, thread: i32, number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(7u64.to_ne_bytes());
    bytes.extend(ip.to_ne_bytes());
    bytes.extend(PID.to_ne_bytes());
    bytes.extend((PID + thread).to_ne_bytes());
    bytes.extend((1_000_000_000 + number * 3_000_000).to_ne_bytes());
    bytes
}

/// A precise access: its instruction, address, latency, and `PERF_SAMPLE_DATA_SRC`.
struct SampledAccess {
    ip: u64,
    thread: i32,
    addr: u64,
    latency: u32,
    source: u64,
}

impl SampledAccess {
    fn decoded(&self, number: u64) -> Sample {
        let mut bytes = head(self.ip, self.thread, number);
        bytes.extend(self.addr.to_ne_bytes());
        // CPU, and reserved.
        bytes.extend(0u64.to_ne_bytes());
        // Latency of the data, of the instruction, of its retirement.
        bytes.extend(self.latency.to_ne_bytes());
        bytes.extend([0u8; 4]);
        bytes.extend(self.source.to_ne_bytes());
        // PERF_SAMPLE_REGS_ABI_64, then the registers: of the list's node in rdi.
        bytes.extend(2u64.to_ne_bytes());
        for register in 0..9u64 {
            let value = match register {
                5 => self.addr & !63,
                6 | 7 => 0x7fff_0000_0000,
                8 => self.ip,
                _ => 1,
            };
            bytes.extend(value.to_ne_bytes());
        }
        decode::sample(&layout(COMMON | ACCESS, false), MISC, &bytes).unwrap().sample
    }
}

/// A fetch as AMD's IBS tells it: `IBS_FETCH_CTL` after the capabilities of Zen 4, then three registers more.
fn fetch(ip: u64, thread: i32, number: u64, latency: u64, bits: &[u32]) -> Sample {
    let mut bytes = head(ip, thread, number);
    bytes.extend(0u64.to_ne_bytes());
    let control = bits.iter().fold(latency << 32 | 1 << 49 | 1 << 50, |sum, bit| sum | 1 << bit);
    bytes.extend(36u32.to_ne_bytes());
    bytes.extend(0xbffu32.to_ne_bytes());
    for register in [control, ip, 0x1000, 9] {
        bytes.extend(register.to_ne_bytes());
    }
    decode::sample(&layout(COMMON | RAW, true), MISC, &bytes).unwrap().sample
}

/// `mem_op` load, `mem_lvl` hit, `mem_lvl_num`, `mem_dtlb`.
const fn source(level: u64, tlb: u64) -> u64 {
    2 | 2 << 5 | level << 33 | tlb << 26
}

/// `PERF_MEM_LVLNUM_*` and `PERF_MEM_TLB_*`.
const L1: u64 = 1;
const L2: u64 = 2;
const L3: u64 = 3;
const RAM: u64 = 0xd;
const TLB_L1_HIT: u64 = 8 | 2;
const TLB_L2_HIT: u64 = 0x10 | 2;
const TLB_L2_MISS: u64 = 0x10 | 4;

/// Accesses of the list's walk and of two counters, some hundred.
fn accesses() -> Vec<Sample> {
    let mut samples = Vec::new();
    for number in 0..400u64 {
        let node = 0x7f00_0000_0000 + number % 16 * 128;
        let (ip, thread, offset, latency, level, tlb) = match number % 10 {
            0..=3 => (NEXT, 0, 24, 180 + number as u32, RAM, TLB_L2_MISS),
            4 | 5 => (TEST, 0, 12, 40 + number as u32 % 30, L3, TLB_L2_HIT),
            6 => (QUANTITY, 0, 8, 12 + number as u32 % 4, L2, TLB_L1_HIT),
            7 => (PRICE, 0, 0, 5, L1, TLB_L1_HIT),
            8 => (RECEIVE, 1, 0, 90 + number as u32 % 50, L3, TLB_L1_HIT),
            _ => (SEND, 2, 8, 90 + number as u32 % 60, L3, TLB_L1_HIT),
        };
        let addr = if thread == 0 { node + offset } else { 0x40_4040 + offset };
        let access = SampledAccess { ip, thread, addr, latency, source: source(level, tlb) };
        samples.push(Sample { period: 10_007, ..access.decoded(number) });
    }
    samples
}

/// Fetches of the program's lines of code: hits, and misses by level.
fn fetches() -> Vec<Sample> {
    let mut samples = Vec::new();
    for number in 0..300u64 {
        samples.push(match number % 6 {
            0 => fetch(0x40_1000, 0, number, 4, &[]),
            // From L2, with the translation of the second level.
            1 => fetch(NEXT, 0, number, 17 + number % 5, &[51, 52, 55]),
            2 | 3 => fetch(RECEIVE, 1, number, 60 + number % 20, &[51, 58]),
            // From memory, after a walk.
            4 => fetch(SEND, 2, number, 300 + number, &[51, 55, 56, 58, 61]),
            // In the middle of an instruction, as a fetch may be.
            _ => fetch(SEND + 3, 2, number, 80, &[51, 58]),
        });
    }
    samples.iter().map(|sample| Sample { period: 0x2_0000, ..*sample }).collect()
}

/// First touches of the list, minor but for a few, and times of a clock.
fn faults() -> Vec<Sample> {
    let event = |number: u64| EventIdx(u16::from(number.is_multiple_of(25)));
    let sample = |number: u64| {
        let (ip, addr) = match number % 3 {
            0 => (RECEIVE, 0x40_4040),
            _ => (TEST, 0x7f00_0000_000c + number * 4096),
        };
        let access = SampledAccess {
            ip,
            thread: i32::from(number.is_multiple_of(3)),
            addr,
            latency: 0,
            source: 0,
        };
        let decoded = access.decoded(number);
        Sample { event: event(number), period: 1, data_source: None, ..decoded }
    };
    (0..300).map(sample).collect()
}

fn event(name: &str, kind: EventKind, period: u64) -> Event {
    let skid = if kind == EventKind::Clock { SkidModel::AfterOne } else { SkidModel::Exact };
    let sampling = Sampling::Period(period);
    Event { name: name.into(), kind, skid, sampling, includes_kernel: false }
}

fn counted(event: &str, counted: u64, running_ms: u64) -> EventCount {
    let (enabled_ns, running_ns) = (900_000_000, running_ms * 1_000_000);
    EventCount {
        event: event.to_owned(),
        selector: event.to_owned(),
        count: EventCount::scaled(counted, enabled_ns, running_ns),
        counted,
        enabled_ns,
        running_ns,
        includes_kernel: false,
        lacks: None,
    }
}

fn report(measure: Measure, source: &Sampled, view: MeasureView) -> MeasureReport {
    let snapshot = source.snapshot();
    let samples =
        MeasuredSamples::new(measure, &snapshot.events, None, None, BTreeMap::new()).unwrap();
    let run = vec![("Target", "market".to_owned()), ("Measured", measure.name().to_owned())];
    MeasureReport::of(source, samples, view, run, true, &mut source.inspector()).unwrap()
}

fn text(report: &MeasureReport) -> String {
    let mut out = Vec::new();
    sheet::write(report, false, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[track_caller]
fn check(name: &str, measure: Measure, source: &Sampled, view: MeasureView) -> MeasureReport {
    let report = report(measure, source, view);
    golden::check(&format!("measure/golden/{name}.txt"), &text(&report));
    report
}

/// Each sample is in one row of every summary, and in the exact metrics' document.
#[track_caller]
fn check_sums(report: &MeasureReport, n_samples: u64) {
    assert_eq!(report.overview.total.samples, n_samples);
    for summary in report.overview.summaries.iter().chain(&report.overview.data) {
        let sum: u64 = summary.rows.iter().map(|row| row.sums.samples).sum();
        assert_eq!(sum, n_samples, "{}", summary.title);
    }
    let rows: u64 = report.answer.rows.iter().map(|row| row.metrics.samples).sum();
    assert_eq!((rows, report.answer.total.samples), (n_samples, n_samples));
}

#[test]
fn dcache_of_precise_loads() {
    let event = event("cpu/mem-loads,ldlat=8/P", EventKind::Memory, 10_007);
    let counts = vec![
        counted("loads", 40_000_000, 900),
        counted("l1d-load-misses", 3_602_520, 450),
        EventCount {
            lacks: Some("not counted by this processor".into()),
            ..counted("l3-load-misses", 0, 0)
        },
    ];
    let source = Sampled::of(&[event], accesses(), counts);
    let report = check("dcache", Measure::Dcache, &source, MeasureView::default());
    check_sums(&report, 360);
    assert_eq!(report.overview.total.hits, 40, "one in ten hit the first level");
    assert_eq!(report.overview.total.buckets.iter().sum::<u64>(), 360);
    // What missed has this latency, by the definition of the samples.
    let missed = accesses().into_iter().filter(|sample| sample.latency != 5);
    assert_eq!(
        report.overview.total.latency,
        missed.map(|sample| u64::from(sample.latency)).sum::<u64>()
    );
}

#[test]
fn dtlb_of_tagged_operations() {
    let event = event("ibs_op//", EventKind::Memory, 0x4_0000);
    let source = Sampled::of(&[event], accesses(), vec![counted("dtlb-walks", 41_943_040, 900)]);
    let report = check("dtlb", Measure::Dtlb, &source, MeasureView::default());
    check_sums(&report, 240);
    assert_eq!(report.overview.total.fills, [80, 160, 0]);
}

#[test]
fn icache_of_fetches() {
    let event = event("ibs_fetch/rand_en=1/", EventKind::Fetch, 0x2_0000);
    let source = Sampled::of(&[event], fetches(), vec![counted("l1i-misses", 32_768_000, 900)]);
    let report = check("icache", Measure::Icache, &source, MeasureView::default());
    assert_eq!(report.overview.total.samples, 250, "one in six hit");
    let of_code: u64 =
        report.details.iter().map(|detail| detail.total.samples - detail.n_elsewhere).sum();
    assert_eq!(of_code, 250, "those in the middle of an instruction are of it");
}

#[test]
fn itlb_of_fetches() {
    let event = event("ibs_fetch/rand_en=1/", EventKind::Fetch, 0x2_0000);
    let source = Sampled::of(&[event], fetches(), vec![counted("itlb-walks", 6_553_600, 900)]);
    let report = check("itlb", Measure::Itlb, &source, MeasureView::default());
    assert_eq!(report.overview.total.samples, 100);
    assert_eq!(report.overview.total.fills, [50, 50, 0]);
}

#[test]
fn icache_of_retired_instructions_has_no_latency() {
    let event = event("cpu/event=0xc6,umask=0x1,frontend=0x12/P", EventKind::Fetch, 10_007);
    let samples: Vec<Sample> = (0..90u64)
        .map(|number| {
            let ip = if number % 3 == 0 { NEXT } else { SEND };
            let access = SampledAccess { ip, thread: 0, addr: 0, latency: 0, source: 1 };
            Sample { period: 10_007, data_source: None, ..access.decoded(number) }
        })
        .collect();
    let source = Sampled::of(&[event], samples, Vec::new());
    let report = report(Measure::Icache, &source, MeasureView::default());
    assert!(report.overview.samples.scale.is_none());
    let shown = text(&report);
    assert!(shown.contains("not recorded") && shown.contains("Icache"), "{shown}");
    assert!(!shown.contains("Latency"), "{shown}");
    let shares: Vec<u64> =
        report.overview.summaries[3].rows.iter().map(|row| row.shares.own).collect();
    assert_eq!(shares, [60, 30], "by misses where no latency is told");
}

#[test]
fn faults_in_all_forms() {
    let events = [
        event("minor-faults", EventKind::PageFault, 1),
        event("major-faults", EventKind::PageFault, 1),
    ];
    let counts = vec![
        counted("page-faults", 300, 900),
        counted("minor-faults", 288, 900),
        counted("major-faults", 12, 900),
    ];
    let source = Sampled::of(&events, faults(), counts);
    let report_of_all = check("faults", Measure::Faults, &source, MeasureView::default());
    check_sums(&report_of_all, 300);
    let statements = MeasureView {
        rows: DetailRows::Statement,
        context_lines: 2,
        threads: ThreadChoice::All,
        has_module_data: true,
        is_by_module: true,
        sort: SortBy::Address,
        ..MeasureView::default()
    };
    check("faults_statements", Measure::Faults, &source, statements);
    let json = serde_json::to_value(document::of(&report_of_all)).unwrap();
    assert_eq!(json["schema"], 1);
    assert_eq!(json["counts"][0]["count"], 300);
    assert_eq!(json["total"]["samples"], 300);
    let rows = json["rows"].as_array().unwrap();
    let samples: u64 = rows.iter().map(|row| row["metrics"]["samples"].as_u64().unwrap()).sum();
    assert_eq!(samples, 300);
    let major = &json["summaries"]["process"][0]["period"]["major-faults"];
    assert_eq!(major, 12);
    let mut csv = Vec::new();
    document::write_csv(&report_of_all, &mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let n_columns = csv.lines().next().unwrap().split(',').count();
    assert_eq!(n_columns, 24);
    assert!(csv.contains("\"count\",,\"minor-faults\",,288,288,"), "{csv}");
}

#[test]
fn time_of_a_clock() {
    let source = Sampled::new();
    let report = check("time", Measure::Time, &source, MeasureView::default());
    check_sums(&report, 1_200);
    assert_eq!(report.overview.total.weight(), 1_200 * 2_000_000);
}
