//! Recordings of real machines, and of this one, read to the end.

use dataspace_collector::perf_data::read::{Recording, RecordingError};
use dataspace_proto::accounting::Collected;
use dataspace_proto::address::Avma;
use dataspace_proto::event::{Event, EventKind, SkidModel};
use dataspace_proto::memory::{Access, DataSource, Level};
use dataspace_proto::record::{CpuMode, FileIdentity, Mmap, Record, Sample};

use dataspace_proto::register::Register;
use std::fs::File;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The recordings that are kept beside the project, or where `DATASPACE_RECORDINGS` says, if they
/// are there.
fn shared(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/recordings");
    let dir = std::env::var_os("DATASPACE_RECORDINGS").map_or(beside, PathBuf::from);
    let path = dir.join(name);
    if path.exists() {
        return Some(path);
    }
    let missing = if dir.exists() { path } else { dir };
    println!("skipped: {} is not there", missing.display());
    None
}

fn assert_is_even(collected: &Collected) {
    assert_eq!(
        collected.kernel_samples,
        collected.delivered + collected.ring_full + collected.undecodable,
        "{collected:?}"
    );
}

fn read(recording: &mut Recording) -> Vec<Record> {
    let mut records = Vec::new();
    while let Some(record) = recording.next_record().expect("the recording can be read") {
        records.push(record);
    }
    let collected = recording.collected();
    assert_is_even(&collected);
    assert_eq!(collected.delivered, samples(&records).len() as u64);
    assert!(matches!(records.last(), Some(Record::Collected(last)) if **last == collected));
    records
}

fn read_path(path: &Path) -> Vec<Record> {
    read(&mut Recording::open(path).expect("the recording opens"))
}

fn samples(records: &[Record]) -> Vec<&Sample> {
    records
        .iter()
        .filter_map(|record| match record {
            Record::Sample(sample) => Some(sample),
            _ => None,
        })
        .collect()
}

fn events(records: &[Record]) -> Vec<&Event> {
    records
        .iter()
        .filter_map(|record| match record {
            Record::Event(event) => Some(&**event),
            _ => None,
        })
        .collect()
}

fn warnings(records: &[Record]) -> Vec<&str> {
    records
        .iter()
        .filter_map(|record| match record {
            Record::Warning(text) => Some(&**text),
            _ => None,
        })
        .collect()
}

fn mmaps(records: &[Record]) -> Vec<&Mmap> {
    records
        .iter()
        .filter_map(|record| match record {
            Record::Mmap(mmap) => Some(&**mmap),
            _ => None,
        })
        .collect()
}

/// Samples, events by name and kind, and what a warning has to contain, of one shared recording.
struct Expected {
    file: &'static str,
    n_samples: usize,
    events: &'static [(&'static str, EventKind, SkidModel)],
    warning: Option<&'static str>,
}

const CYCLES_P: (&str, EventKind, SkidModel) = ("cycles:P", EventKind::Other, SkidModel::Exact);
const MEM_LOADS: (&str, EventKind, SkidModel) =
    ("cpu/mem-loads/pp", EventKind::Memory, SkidModel::Exact);
const UNNAMED_MEM_LOADS: (&str, EventKind, SkidModel) =
    ("cpu/event=0xcd,umask=0x1/", EventKind::Memory, SkidModel::Exact);

const EXPECTED: [Expected; 13] = [
    Expected {
        file: "ivybridge-mem-loads.data",
        n_samples: 253,
        events: &[MEM_LOADS],
        warning: None,
    },
    Expected {
        file: "skylake-load-latency-weight-struct.data",
        n_samples: 14,
        events: &[(
            "MEM_TRANS_RETIRED.LOAD_LATENCY:ldlat=64:precise=2:mh:mg:pinned",
            EventKind::Memory,
            SkidModel::Exact,
        )],
        warning: None,
    },
    Expected {
        file: "ivytown-mem-loads-system.data",
        n_samples: 14,
        events: &[MEM_LOADS],
        warning: None,
    },
    Expected {
        file: "cometlake-cycles-regs-stack.zstd.pipe.data",
        n_samples: 547,
        events: &[CYCLES_P],
        warning: None,
    },
    Expected {
        file: "skylake-pebs-ip-macrofusion.data",
        n_samples: 10_014,
        events: &[("mem_inst_retired.all_loads:upp", EventKind::Memory, SkidModel::Exact)],
        warning: None,
    },
    Expected {
        file: "bigendian-mem-loads.data",
        n_samples: 253,
        events: &[UNNAMED_MEM_LOADS],
        warning: None,
    },
    Expected {
        file: "truncated-mem-loads.data",
        n_samples: 129,
        events: &[UNNAMED_MEM_LOADS],
        warning: Some("cut off at byte 9000: 6992 bytes of records are missing"),
    },
    // The recorder's own closing words stand behind the last record.
    Expected {
        file: "sleep.compressed2.pipe.data",
        n_samples: 7,
        events: &[CYCLES_P],
        warning: Some("ends inside the record at byte 31808"),
    },
    Expected {
        file: "tracepoint-stream.pipe.data",
        n_samples: 1,
        events: &[("probe_untitled1:main", EventKind::Tracepoint, SkidModel::Exact)],
        warning: None,
    },
    Expected {
        file: "zero-size-sample.pipe.data",
        n_samples: 0,
        events: &[("cycles", EventKind::Other, SkidModel::Unknown(8))],
        warning: Some("the record at byte 49104 says it is 0 bytes long; the 11536 bytes"),
    },
    Expected {
        file: "header-features-unaligned.pipe.data",
        n_samples: 2,
        events: &[("cpu-clock", EventKind::Clock, SkidModel::AfterOne)],
        warning: None,
    },
    Expected {
        file: "hybrid-topology.data",
        n_samples: 7,
        events: &[
            ("cpu_core/cycles:ppp/", EventKind::Other, SkidModel::Exact),
            ("cpu_atom/cycles:ppp/", EventKind::Other, SkidModel::Exact),
        ],
        warning: None,
    },
    Expected {
        file: "aarch64-sleep.zstd.data",
        n_samples: 8,
        // Of this machine it is not known how far samples skid.
        events: &[("cycles:P", EventKind::Other, SkidModel::Unknown(8))],
        warning: None,
    },
];

#[test]
fn every_shared_recording_gives_its_samples_and_events() {
    for expected in EXPECTED {
        let Some(path) = shared(expected.file) else { continue };
        let records = read_path(&path);
        let name = expected.file;
        assert_eq!(samples(&records).len(), expected.n_samples, "{name}");
        let described: Vec<_> =
            events(&records).iter().map(|e| (e.name.as_str(), e.kind, e.skid)).collect();
        assert_eq!(described, expected.events, "{name}");
        let warnings = warnings(&records);
        match expected.warning {
            Some(text) => assert!(warnings.iter().any(|w| w.contains(text)), "{warnings:?}"),
            None => assert_eq!(warnings, [""; 0], "{name}"),
        }
    }
}

#[test]
fn machine_and_events_come_before_samples_and_time_does_not_go_back() {
    for expected in EXPECTED {
        let Some(path) = shared(expected.file) else { continue };
        let (mut n_machines, mut n_events, mut last) = (0, 0, 0);
        for record in read_path(&path) {
            n_machines += usize::from(matches!(record, Record::Machine(_)));
            n_events += usize::from(matches!(record, Record::Event(_)));
            if let Record::Sample(sample) = record {
                assert_eq!(n_machines, 1);
                assert!(usize::from(sample.event.0) < n_events);
                assert!(sample.time_ns >= last, "{}", expected.file);
                last = sample.time_ns;
            }
        }
    }
}

#[test]
fn only_x86_64_is_told_as_such() {
    use dataspace_proto::event::Machine;
    for (file, machine) in [
        ("aarch64-sleep.zstd.data", Machine::Other),
        ("cometlake-cycles-regs-stack.zstd.pipe.data", Machine::X86_64),
    ] {
        let Some(path) = shared(file) else { continue };
        let records = read_path(&path);
        let told = records.iter().find_map(|record| match record {
            Record::Machine(machine) => Some(*machine),
            _ => None,
        });
        assert_eq!(told, Some(machine), "{file}");
    }
}

#[test]
fn ivybridge_loads_have_their_addresses() {
    let Some(path) = shared("ivybridge-mem-loads.data") else { return };
    let records = read_path(&path);
    let samples = samples(&records);
    let of_user: Vec<_> = samples.iter().filter(|s| s.mode == CpuMode::User).collect();
    assert_eq!(of_user.len(), 251);
    let heap = Some(Avma(0x7f12_f813_900c));
    assert_eq!(of_user.iter().filter(|s| s.addr == heap).count(), 31);
    assert!(of_user.iter().all(|s| s.pid == 0xf39e9 && s.latency > 0 && s.period == 4986));
    let build_ids = mmaps(&records)
        .iter()
        .filter(|mmap| matches!(mmap.identity, FileIdentity::BuildId(_)))
        .map(|mmap| String::from_utf8_lossy(&mmap.path).into_owned())
        .collect::<Vec<_>>();
    assert_eq!(build_ids, ["[kernel.kallsyms]_text"]);
}

#[test]
fn a_byte_swapped_copy_gives_equal_samples_and_a_cut_one_a_prefix() {
    let names =
        ["ivybridge-mem-loads.data", "bigendian-mem-loads.data", "truncated-mem-loads.data"];
    let [Some(whole), Some(swapped), Some(cut)] = names.map(shared) else { return };
    let text = |path: &Path| -> Vec<String> {
        samples(&read_path(path)).iter().map(|sample| format!("{sample:?}")).collect()
    };
    let (whole, swapped, cut) = (text(&whole), text(&swapped), text(&cut));
    assert_eq!(whole, swapped);
    assert_eq!(whole[..cut.len()], cut);
}

#[test]
fn skylake_levels_come_from_behind_the_weight_structure() {
    let Some(path) = shared("skylake-load-latency-weight-struct.data") else { return };
    let records = read_path(&path);
    for sample in samples(&records) {
        let source = sample.data_source.expect("DATA_SRC was sampled");
        assert!(source.level.is_some() && sample.latency >= 64, "{sample:?}");
        assert!(sample.cpu.is_some() && sample.is_exact_ip);
    }
    assert_eq!(samples(&records).iter().filter(|s| s.mode == CpuMode::User).count(), 5);
}

#[test]
fn cometlake_samples_have_user_registers() {
    let Some(path) = shared("cometlake-cycles-regs-stack.zstd.pipe.data") else { return };
    let records = read_path(&path);
    let samples = samples(&records);
    assert_eq!(samples.iter().filter(|s| s.addr.is_some()).count(), 257);
    for sample in samples.iter().filter(|s| s.mode == CpuMode::User && !s.is_exact_ip) {
        assert_eq!(sample.user_registers.get(Register::Rip), Some(sample.ip.0));
    }
}

#[test]
fn a_file_mode_recording_is_refused_on_a_pipe_and_a_pipe_mode_one_read() {
    if let Some(path) = shared("ivybridge-mem-loads.data") {
        let result = Recording::from_reader(Box::new(File::open(path).unwrap()), "-".into());
        assert!(matches!(result, Err(RecordingError::NeedsSeek { .. })));
    }
    if let Some(path) = shared("cometlake-cycles-regs-stack.zstd.pipe.data") {
        let reader = Box::new(File::open(path).unwrap());
        let mut recording = Recording::from_reader(reader, "-".into()).unwrap();
        assert_eq!(samples(&read(&mut recording)).len(), 547);
        assert_eq!(recording.progress(), (108_556, None));
    }
}

#[test]
fn a_recording_that_was_not_closed_is_read_to_its_last_whole_record() {
    let Some(path) = shared("ivybridge-mem-loads.data") else { return };
    let mut bytes = std::fs::read(path).unwrap();
    bytes[48..56].fill(0); // the data's length
    bytes.truncate(9000);
    let records = read(&mut from_bytes(bytes).unwrap());
    assert_eq!(samples(&records).len(), 129);
    assert!(warnings(&records).iter().any(|w| w.contains("did not finish")));
}

fn from_bytes(bytes: Vec<u8>) -> Result<Recording, RecordingError> {
    Recording::from_seekable(Box::new(Cursor::new(bytes)), "mutated".into())
}

/// A small generator of numbers that look random: xorshift64 of Marsaglia (2003).
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

/// So many bytes of each recording are mutated: the tables in front and records enough.
const MUTATED_LEN: usize = 48 << 10;
const N_MUTATIONS: usize = 120;

fn mutate(bytes: &mut Vec<u8>, random: &mut Xorshift) {
    const INTERESTING: [u8; 6] = [0, 1, 7, 8, 0x7f, 0xff];
    for _ in 0..=random.below(8) {
        // Half of the changes hit the header, the attributes and the first records.
        let n = if random.below(2) == 0 { bytes.len().min(512) } else { bytes.len() };
        let at = random.below(n);
        let Some(byte) = bytes.get_mut(at) else { return };
        *byte = match random.below(3) {
            0 => *byte ^ 1 << random.below(8),
            1 => INTERESTING[random.below(INTERESTING.len())],
            _ => random.below(256) as u8,
        };
    }
    if random.below(3) == 0 {
        let len = random.below(bytes.len());
        bytes.truncate(len);
    }
}

#[test]
fn mutated_recordings_end_with_even_sums() {
    let Some(dir) = shared("") else { return };
    let mut random = Xorshift(0x9e37_79b9_7f4a_7c15);
    let dirs = [dir.clone(), dir.join("fuzz")];
    let files = dirs.iter().flat_map(|dir| std::fs::read_dir(dir).unwrap());
    for path in files.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        let mut original = std::fs::read(&path).unwrap();
        original.truncate(MUTATED_LEN);
        for _ in 0..N_MUTATIONS {
            let mut bytes = original.clone();
            mutate(&mut bytes, &mut random);
            if let Ok(mut recording) = from_bytes(bytes) {
                read(&mut recording);
            }
        }
    }
}

/// What one run of `perf record` is given, and what `perf script` is asked for.
struct Run {
    record: &'static [&'static str],
    fields: &'static str,
}

const RUNS: [Run; 9] = [
    Run {
        record: &[
            "-e",
            "page-faults",
            "-c",
            "1",
            "-d",
            "-W",
            "--phys-data",
            "--data-page-size",
            "--code-page-size",
        ],
        fields: "pid,tid,time,addr,ip,phys_addr,data_page_size,code_page_size",
    },
    // WEIGHT_STRUCT stands before REGS_INTR and PHYS_ADDR.
    Run {
        record: &["-e", "cpu-clock", "-W", "-d", "--phys-data", "--intr-regs=ax,bx,sp,ip"],
        fields: "pid,tid,time,ip,iregs",
    },
    Run { record: &["-e", "cpu-clock", "-z"], fields: "pid,tid,time,ip" },
    Run { record: &["-e", "page-faults", "-c", "1", "-d"], fields: "pid,tid,time,ip,addr" },
    Run {
        record: &["-e", "page-faults", "-e", "syscalls:sys_enter_read", "-c", "1"],
        fields: "pid,tid,time,event,ip",
    },
    // READ without GROUP, and call chains.
    Run { record: &["-e", "cpu-clock:S", "-g"], fields: "pid,tid,time" },
    // READ with GROUP. perf script makes up a sample for each member of the group.
    Run { record: &["-e", "{cpu-clock,page-faults}:S", "-g"], fields: "pid,tid,time" },
    // Stacks of 8 KiB make records straddle compressed ones.
    Run {
        record: &["-e", "cpu-clock", "-F", "20000", "-z", "--call-graph", "dwarf"],
        fields: "pid,tid,time",
    },
    Run { record: &["-a", "-e", "cpu-clock", "--tail-synthesize"], fields: "pid,tid,time,ip" },
];

/// A program that faults, writes, forks and keeps a CPU busy for some milliseconds.
const WORKLOAD: [&str; 3] =
    ["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; ls / >/dev/null"];

/// Runs `perf`; `None`, with the reason printed, where it is missing or may not.
fn perf(args: &[&str]) -> Option<Vec<u8>> {
    let output = match Command::new("perf").args(args).output() {
        Ok(output) => output,
        Err(error) => {
            println!("skipped: perf cannot be run: {error}");
            return None;
        }
    };
    if !output.status.success() {
        println!("skipped: perf {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    Some(output.stdout)
}

/// One sample in the words of `perf script`: the asked fields of it, as text.
fn as_perf_says(sample: &Sample, events: &[&Event], fields: &str) -> String {
    let (seconds, ns) = (sample.time_ns / 1_000_000_000, sample.time_ns % 1_000_000_000);
    let mut text = format!("{}/{} {seconds}.{ns:09}:", sample.pid, sample.tid);
    if fields.contains("event") {
        text += &format!(" {}:", events[usize::from(sample.event.0)].name);
    }
    if fields.contains("addr") {
        text += &format!(" {:x}", sample.addr.unwrap_or_default().0);
    }
    if fields.contains("ip") {
        text += &format!(" {:x}", sample.ip.0);
    }
    if fields.contains("phys_addr") {
        text += &format!(" {:x}", sample.physical_addr.map_or(0, |address| address.0.get()));
    }
    if fields.contains("page_size") {
        for page in [sample.data_page, sample.code_page] {
            text += match page.bytes() {
                None => " N/A",
                Some(0x1000) => " 4K",
                Some(0x20_0000) => " 2M",
                Some(other) => panic!("pages of {other} bytes"),
            };
        }
    }
    if fields.contains("iregs") {
        text += " ABI:2";
        let registers = [
            ("AX", Register::Rax),
            ("BX", Register::Rbx),
            ("SP", Register::Rsp),
            ("IP", Register::Rip),
        ];
        for (name, register) in registers {
            text += &format!(" {name}:{:#x}", sample.registers.get(register).unwrap_or_default());
        }
    }
    text
}

/// What `perf script -F data_src` says of a data source, as far as both have words for it: the level
/// once by the mask and once by the number.
fn data_source_as_perf_says(source: &DataSource) -> String {
    let level = source.level.or(source.missed).map_or("N/A", |level| match level {
        Level::Lfb => "LFB/MAB",
        other => other.name(),
    });
    let outcome = if source.missed.is_some() { "miss" } else { "hit" };
    let lock = match source.locked {
        Some(true) => "Yes",
        Some(false) => "No",
        None => "N/A",
    };
    let capital = |text: Option<String>| match text.as_deref() {
        Some("none") => "None".to_owned(),
        other => other.unwrap_or("N/A").to_owned(),
    };
    format!(
        "|OP {}|LVL {level} {outcome}|SNP {}|TLB {}|LCK {lock}|BLK N/A",
        if source.access == Some(Access::Load) { "LOAD" } else { "N/A" },
        capital(source.snoop.text()),
        source.tlb.text().map_or("N/A".to_owned(), |text| text.replace('|', " or ")),
    )
}

#[test]
fn data_sources_and_latencies_of_real_processors_are_those_that_perf_tells() {
    let names = [
        "ivybridge-mem-loads.data",
        "ivytown-mem-loads-system.data",
        "skylake-load-latency-weight-struct.data",
    ];
    for path in names.iter().filter_map(|name| shared(name)) {
        let file = path.to_str().expect("a path of ASCII");
        let Some(text) = perf(&["script", "-i", file, "-F", "ip,addr,weight,data_src"]) else {
            return;
        };
        let theirs = String::from_utf8_lossy(&text)
            .lines()
            .map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                let (weight, ip) = (words[words.len() - 2], words[words.len() - 1]);
                // "LVL L1 or L1 hit": by both the mask and the number.
                let source = words[2..words.len() - 2].join(" ");
                let (before, behind) = source.split_once("|SNP").expect("a snoop");
                let level = before.split_once(" or ").map_or(before, |(mask, _)| mask);
                let level = level.trim_end_matches(" hit");
                format!("{} {level} hit|SNP{behind} {weight} {ip}", words[0])
            })
            .collect();
        let records = read_path(&path);
        let ours = samples(&records)
            .iter()
            .map(|sample| {
                let source = sample.data_source.expect("DATA_SRC was sampled");
                let addr = sample.addr.unwrap_or_default().0;
                let source = data_source_as_perf_says(&source);
                format!("{addr:x} {source} {} {:x}", sample.latency, sample.ip.0)
            })
            .collect();
        assert_eq!(sorted(ours), sorted(theirs), "{file}");
    }
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

fn check_against_perf(run: &Run) {
    let dir = tempfile::tempdir().expect("a directory to record into");
    let path = dir.path().join("perf.data");
    let file = path.to_str().expect("a path of ASCII");
    let record = [&["record", "-q", "-o", file][..], run.record, &["--"], &WORKLOAD].concat();
    if perf(&record).is_none() {
        return;
    }
    let Some(text) = perf(&["script", "-i", file, "--ns", "-F", run.fields]) else { return };
    let text = String::from_utf8_lossy(&text);
    let theirs: Vec<String> = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect();
    let records = read_path(&path);
    let events = events(&records);
    let ours = samples(&records).iter().map(|s| as_perf_says(s, &events, run.fields)).collect();
    assert!(!theirs.is_empty(), "{:?}", run.record);
    assert_eq!(sorted(ours), sorted(theirs), "{:?}", run.record);
    assert_eq!(warnings(&records), [""; 0], "{:?}", run.record);
}

#[test]
fn recordings_made_here_give_what_perf_script_gives() {
    if perf(&["--version"]).is_none() {
        return;
    }
    // A run of perf mostly waits for the kernel to take its events away.
    std::thread::scope(|scope| {
        for run in &RUNS {
            scope.spawn(|| check_against_perf(run));
        }
    });
}

#[test]
fn a_pipe_made_here_gives_what_perf_script_gives() {
    let options = ["record", "-q", "-o", "-", "-e", "cpu-clock", "-e", "page-faults", "--"];
    let record = [&options[..], &WORKLOAD].concat();
    let Some(bytes) = perf(&record) else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pipe.data");
    std::fs::write(&path, &bytes).unwrap();
    let fields = "pid,tid,time,ip";
    let script = ["script", "-i", path.to_str().unwrap(), "--ns", "-F", fields];
    let Some(text) = perf(&script) else { return };
    let n_theirs = String::from_utf8_lossy(&text).lines().count();
    let reader = Box::new(Cursor::new(bytes));
    let records = read(&mut Recording::from_reader(reader, "-".into()).unwrap());
    assert_eq!(samples(&records).len(), n_theirs);
    let names: Vec<_> = events(&records).iter().map(|e| e.name.clone()).collect();
    assert_eq!(names, ["cpu-clock", "page-faults"]);
}

#[test]
fn control_groups_of_samples_have_paths() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("perf.data");
    let record = ["record", "-q", "-e", "cpu-clock", "--all-cgroups", "--namespaces", "-o"];
    let file = path.to_str().unwrap();
    if perf(&[&record[..], &[file, "--"], &WORKLOAD].concat()).is_none() {
        return;
    }
    let records = read_path(&path);
    let mut paths = std::collections::HashMap::new();
    let mut n_namespaces = 0;
    for record in &records {
        match record {
            Record::Cgroup(cgroup) => drop(paths.insert(cgroup.id, cgroup.path.clone())),
            // What is recorded here is in the namespace that this test is in.
            Record::Namespace(namespace) if namespace.mount == 0 => n_namespaces += 1,
            Record::Namespace(other) => panic!("{other:?}"),
            _ => {}
        }
    }
    assert!(n_namespaces > 0);
    for sample in samples(&records) {
        let id = sample.cgroup.expect("CGROUP was sampled").get();
        let path = paths.get(&id).unwrap_or_else(|| panic!("{id} of {paths:?}"));
        assert!(path.starts_with(b"/"), "{path:?}");
    }
    assert_eq!(warnings(&records), [""; 0]);
}

#[test]
fn samples_that_a_full_ring_lost_are_counted() {
    const N_READS: u64 = 300_000;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("perf.data");
    let count = format!("count={N_READS}");
    let record = ["record", "-q", "-m", "1", "-e", "syscalls:sys_enter_read", "-c", "1", "-o"];
    let program = ["--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1", &count, "status=none"];
    if perf(&[&record[..], &[path.to_str().unwrap()], &program].concat()).is_none() {
        return;
    }
    let records = read_path(&path);
    let Some(Record::Collected(collected)) = records.last() else { panic!("no counts") };
    if !warnings(&records).is_empty() {
        println!("skipped: this kernel does not count lost samples: {:?}", warnings(&records));
        return;
    }
    // The loader reads a few times besides.
    assert!((N_READS..N_READS + 100).contains(&collected.kernel_samples), "{collected:?}");
}

#[test]
fn a_recording_can_be_read_on_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<Recording>();
}
