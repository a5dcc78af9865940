//! An analyzer with its worker over a program's file, fed with samples made by hand.

use crate::support::program::Program;
use dataspace_analyzer::attribution::world::Paths;
use dataspace_analyzer::bytes::file::{
    CompanionFiles, CompanionName, DebugFileQuery, FileBytes, FileError, FileSource, LoadObjectKey,
};
use dataspace_analyzer::index::worker::Worker;
use dataspace_analyzer::session::analyzer::{Analyzer, Config, Decided, Observer};
use dataspace_proto::address::{Avma, FileOffset};
use dataspace_proto::event::{Event, EventIdx, EventKind, Sampling, SkidModel};
use dataspace_proto::reason::Reason;
use dataspace_proto::record::{CpuMode, FileIdentity, Mmap, Record, Sample};
use dataspace_proto::register::{Register, RegisterAbi, Registers};
use dataspace_proto::sample_line::SampleLine;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The process that every sample is of.
pub(crate) const PID: i32 = 4711;

/// Questions that one sample may lead to: a session that asks for more runs in circles.
const MAX_QUESTIONS: usize = 8;

/// Files from memory or from disk.
#[derive(Default)]
pub(crate) struct TestFiles {
    /// What is there instead of the file.
    pub(crate) instead: Option<Vec<u8>>,
    /// Files that are offered as debug files.
    pub(crate) debug: Vec<PathBuf>,
    /// Files that are offered for every companion, instead of those of the name.
    pub(crate) companions: Option<Vec<Vec<u8>>>,
}

/// The files that debug information names, where it says they are.
#[derive(Debug)]
struct TestCompanions {
    path: PathBuf,
    instead: Option<Vec<Vec<u8>>>,
}

impl TestCompanions {
    fn path_of(&self, name: &CompanionName) -> PathBuf {
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let parent = self.path.parent().unwrap();
        match name {
            CompanionName::Split { name, dir } => match dir {
                Some(dir) => path(dir).join(path(name)),
                None => path(name),
            },
            CompanionName::Package => {
                path([self.path.as_os_str().as_bytes(), b".dwp"].concat().as_slice())
            }
            CompanionName::Supplementary { path: name, .. } => parent.join(path(name)),
        }
    }
}

impl CompanionFiles for TestCompanions {
    fn open(&self, name: &CompanionName) -> Vec<Box<dyn FileBytes>> {
        let files = match &self.instead {
            Some(files) => files.clone(),
            None => std::fs::read(self.path_of(name)).into_iter().collect(),
        };
        files.into_iter().map(|bytes| Box::new(Bytes(bytes)) as Box<dyn FileBytes>).collect()
    }
}

/// A file image in memory.
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl FileBytes for Bytes {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), FileError> {
        let start = usize::try_from(offset).ok();
        let range = start.and_then(|start| self.0.get(start..start.checked_add(buffer.len())?));
        let n_bytes = buffer.len() as u64;
        let bytes = range.ok_or(FileError { offset, n_bytes, cause: "end of file".to_owned() })?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}

impl FileSource for TestFiles {
    fn load_object(&self, key: &LoadObjectKey) -> Result<Box<dyn FileBytes>, Reason> {
        if let Some(bytes) = &self.instead {
            return Ok(Box::new(Bytes(bytes.clone())));
        }
        let path = Path::new(std::str::from_utf8(&key.path).map_err(|_| Reason::ObjectMissing)?);
        let bytes = std::fs::read(path).map_err(|_| Reason::ObjectMissing)?;
        Ok(Box::new(Bytes(bytes)))
    }

    fn companions(&self, query: &DebugFileQuery) -> Box<dyn CompanionFiles> {
        let path = PathBuf::from(OsStr::from_bytes(&query.path));
        Box::new(TestCompanions { path, instead: self.companions.clone() })
    }

    fn debug_files(&self, _: &DebugFileQuery) -> Vec<Box<dyn FileBytes>> {
        let read = |path: &PathBuf| std::fs::read(path).ok();
        let files = self.debug.iter().filter_map(read);
        files.map(|bytes| Box::new(Bytes(bytes)) as Box<dyn FileBytes>).collect()
    }
}

/// What a sample made by hand says.
#[derive(Clone, Default)]
pub(crate) struct Hand {
    pub(crate) registers: Vec<(Register, u64)>,
    pub(crate) addr: Option<u64>,
}

/// Registers and no data address.
pub(crate) fn with(registers: &[(Register, u64)]) -> Hand {
    Hand { registers: registers.to_vec(), addr: None }
}

impl Hand {
    /// The same with a sampled data address.
    pub(crate) fn at(mut self, addr: u64) -> Self {
        self.addr = Some(addr);
        self
    }
}

/// An analyzer and its worker.
pub(crate) struct Session {
    pub(crate) analyzer: Analyzer,
    worker: Worker,
    pub(crate) lines: Lines,
}

/// The answers, in the order in which they were decided.
#[derive(Default)]
pub(crate) struct Lines(pub(crate) Vec<SampleLine>);

impl Observer for Lines {
    fn decided(&mut self, analyzer: &Analyzer, decided: Decided<'_>) {
        self.0.push(analyzer.sample_line(decided));
    }
}

/// Events, in the order of their indices.
pub(crate) const EXACT: EventIdx = EventIdx(0);
pub(crate) const CLOCK: EventIdx = EventIdx(1);
pub(crate) const FAULTS: EventIdx = EventIdx(2);
pub(crate) const COUNTER: EventIdx = EventIdx(3);
pub(crate) const N_EVENTS: u16 = 4;

impl Session {
    /// A session on `program`, mapped as the program saw itself mapped.
    pub(crate) fn new(program: &Program) -> Self {
        Self::over(program, TestFiles::default())
    }

    /// The same with other files than those on disk.
    pub(crate) fn over(program: &Program, files: TestFiles) -> Self {
        let mut session = Self::without_mappings(files);
        for line in &program.maps {
            session.map_line(line, &FileIdentity::None);
        }
        session
    }

    /// A session on `program` with other ways than both paths.
    pub(crate) fn configured(program: &Program, config: Config) -> Self {
        let mut session = Self::with_config(TestFiles::default(), config);
        for line in &program.maps {
            session.map_line(line, &FileIdentity::None);
        }
        session
    }

    /// A session on `program` in which the type path alone answers.
    pub(crate) fn of_type_path(program: &Program) -> Self {
        Self::configured(program, Config { paths: Paths::Type, ..Config::default() })
    }

    /// A session that knows events, and no mapping yet.
    pub(crate) fn without_mappings(files: TestFiles) -> Self {
        Self::with_config(files, Config::default())
    }

    /// The same, configured.
    pub(crate) fn with_config(files: TestFiles, config: Config) -> Self {
        let mut session = Self {
            analyzer: Analyzer::new(config),
            worker: Worker::new(Box::new(files)),
            lines: Lines::default(),
        };
        for (name, kind, skid) in [
            ("exact", EventKind::Clock, SkidModel::Exact),
            ("clock", EventKind::Clock, SkidModel::AfterOne),
            ("page-faults", EventKind::PageFault, SkidModel::Exact),
            ("counter", EventKind::Other, SkidModel::Unknown(8)),
        ] {
            session.apply(&Record::Event(Box::new(Event {
                name: name.to_owned(),
                kind,
                skid,
                sampling: Sampling::Period(1),
                includes_kernel: false,
            })));
        }
        session
    }

    /// A mapping as `/proc/PID/maps` shows it.
    pub(crate) fn map_line(&mut self, line: &str, identity: &FileIdentity) {
        let mut fields = line.split_whitespace();
        let mut next = || fields.next().unwrap_or_default();
        let (range, flags, offset) = (next(), next(), next());
        let (_, _, path) = (next(), next(), next());
        let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let (start, end) = range.split_once('-').unwrap();
        self.map(
            hex(start),
            hex(end) - hex(start),
            hex(offset),
            flags.contains('x'),
            path,
            identity,
        );
    }

    /// A mapping.
    pub(crate) fn map(
        &mut self,
        start: u64,
        len_bytes: u64,
        file_offset: u64,
        is_executable: bool,
        path: &str,
        identity: &FileIdentity,
    ) {
        self.apply(&Record::Mmap(Box::new(Mmap {
            time_ns: 0,
            pid: PID,
            tid: PID,
            start: Avma(start),
            len_bytes,
            file_offset: FileOffset(file_offset),
            is_executable,
            path: path.as_bytes().into(),
            identity: identity.clone(),
        })));
    }

    /// Takes a record in and answers every question it leads to.
    pub(crate) fn apply(&mut self, record: &Record) {
        self.analyzer.apply(record, &mut self.lines);
        let mut n_questions = 0;
        while let Some(request) = self.analyzer.next_request() {
            let response = self.worker.answer(&request);
            self.analyzer.answer(response, &mut self.lines);
            n_questions += 1;
            assert!(n_questions <= MAX_QUESTIONS, "the session asks in circles: {request:?}");
        }
    }

    /// The answer for a sample of `event` at `ip`.
    pub(crate) fn sample(&mut self, event: EventIdx, ip: u64, hand: &Hand) -> SampleLine {
        self.one(sample(event, ip, hand))
    }

    /// The answer for a sample.
    pub(crate) fn one(&mut self, sample: Sample) -> SampleLine {
        let before = self.lines.0.len();
        self.apply(&Record::Sample(sample));
        if self.lines.0.len() == before {
            // It would wait for others.
            self.analyzer.settle(&mut self.lines);
        }
        assert_eq!(self.lines.0.len(), before + 1, "one sample, one answer");
        self.lines.0.last().cloned().unwrap()
    }

    /// The answer for the access at `ip`, with the registers before it.
    pub(crate) fn exact(&mut self, ip: u64, hand: &Hand) -> SampleLine {
        self.sample(EXACT, ip, hand)
    }
}

/// A sample of `event` at `ip`.
pub(crate) fn sample(event: EventIdx, ip: u64, hand: &Hand) -> Sample {
    let mut registers = Registers::default();
    registers.abi = RegisterAbi::Bits64;
    for (register, value) in &hand.registers {
        registers.set(*register, *value);
    }
    Sample {
        time_ns: 1,
        pid: PID,
        tid: PID,
        event,
        period: 1,
        mode: CpuMode::User,
        ip: Avma(ip),
        addr: hand.addr.map(Avma),
        registers,
        ..Sample::default()
    }
}

/// What a test asks of an answer: the object or the reason, in one word.
pub(crate) fn object(line: &SampleLine) -> &str {
    match (&line.object, line.reason) {
        (Some(object), _) => object,
        (None, Some(reason)) => reason.name(),
        (None, None) => "not_memory",
    }
}
