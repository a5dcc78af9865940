//! The real analyzer and worker over one program: an analyzer for each model, and one for what is
//! said of the true trigger.

use crate::truth::model::{self, Model, PID};
use crate::truth::step::State;
use dataspace_analyzer::attribution::world::Paths;
use dataspace_analyzer::bytes::file::{
    DebugFileQuery, FileBytes, FileError, FileSource, LoadObjectKey,
};
use dataspace_analyzer::index::worker::Worker;
use dataspace_analyzer::session::analyzer::{Analyzer, Config, Decided, Observer};
use dataspace_proto::address::{Avma, FileOffset};
use dataspace_proto::event::{EventKind, SkidModel};
use dataspace_proto::reason::Reason;
use dataspace_proto::record::{Mmap, Record, Sample};
use dataspace_proto::sample_line::SampleLine;
use std::fs::File;
use std::io::{Error, Result};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files as they are on disk, without separate debug files.
#[derive(Default)]
pub(crate) struct Files {
    /// A file, and what is read in its place.
    pub(crate) instead: Option<(PathBuf, PathBuf)>,
}

struct Opened {
    file: File,
    len_bytes: u64,
}

impl FileBytes for Opened {
    fn len(&self) -> u64 {
        self.len_bytes
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> std::result::Result<(), FileError> {
        let n_bytes = buffer.len() as u64;
        let failed = |error: Error| FileError { offset, n_bytes, cause: error.to_string() };
        self.file.read_exact_at(buffer, offset).map_err(failed)
    }
}

impl FileSource for Files {
    fn load_object(&self, key: &LoadObjectKey) -> std::result::Result<Box<dyn FileBytes>, Reason> {
        let path = std::str::from_utf8(&key.path).map_err(|_| Reason::ObjectMissing)?;
        let path = match &self.instead {
            Some((file, other)) if file == Path::new(path) => other,
            _ => Path::new(path),
        };
        let file = File::open(path).map_err(|_| Reason::ObjectMissing)?;
        let len_bytes = file.metadata().map_err(|_| Reason::ObjectMissing)?.len();
        Ok(Box::new(Opened { file, len_bytes }))
    }

    fn debug_files(&self, _: &DebugFileQuery) -> Vec<Box<dyn FileBytes>> {
        Vec::new()
    }
}

/// The last answer.
#[derive(Default)]
struct Last(Option<SampleLine>);

impl Observer for Last {
    fn decided(&mut self, analyzer: &Analyzer, decided: Decided<'_>) {
        self.0 = Some(analyzer.sample_line(decided));
    }
}

/// A mapping that a load object has.
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) file_offset: u64,
    pub(crate) is_executable: bool,
    pub(crate) path: Arc<str>,
}

/// What `/proc/PID/maps` says.
pub(crate) fn mappings(maps: &str) -> Vec<Mapping> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let mapping = |line: &str| {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let is_executable = fields.next()?.contains('x');
        let file_offset = hex(fields.next()?)?;
        let path = fields.nth(2).unwrap_or_default().into();
        Some(Mapping { start: hex(start)?, end: hex(end)?, file_offset, is_executable, path })
    };
    maps.lines().filter_map(mapping).collect()
}

/// The sessions over one program.
pub(crate) struct Sessions {
    // Load objects are numbered in the order of their mappings, so all analyzers can ask one.
    worker: Worker,
    analyzers: Vec<Analyzer>,
    /// By both paths, and by the type alone.
    references: [Analyzer; 2],
    last: Last,
}

impl Sessions {
    pub(crate) fn new(mappings: &[Mapping]) -> Self {
        Self::over(mappings, Files::default())
    }

    pub(crate) fn over(mappings: &[Mapping], files: Files) -> Self {
        let analyzers = Model::ALL.iter().map(|model| {
            let mut analyzer = Analyzer::new(model.config());
            set_up(&mut analyzer, model.event(), mappings);
            analyzer
        });
        let references = [Paths::Both, Paths::Type].map(|paths| {
            let mut reference = Analyzer::new(Config { paths, ..Config::default() });
            let event = model::event("reference", EventKind::Memory, SkidModel::Exact);
            set_up(&mut reference, event, mappings);
            reference
        });
        Self {
            worker: Worker::new(Box::new(files)),
            analyzers: analyzers.collect(),
            references,
            last: Last::default(),
        }
    }

    /// The answer for a sample of `model`.
    pub(crate) fn ask(&mut self, model: Model, sample: Sample) -> Result<SampleLine> {
        let analyzer = &mut self.analyzers[model as usize];
        one(analyzer, &mut self.worker, &mut self.last, sample)
    }

    /// The objects at the true trigger with its true address, those that are known.
    pub(crate) fn reference(&mut self, state: &State, addr: Option<u64>) -> Result<Vec<Arc<str>>> {
        let sample = Sample { is_exact_ip: true, ..model::sample(state, addr) };
        let Self { references, worker, last, .. } = self;
        let mut known = Vec::new();
        for reference in references {
            known.extend(one(reference, worker, last, sample)?.object);
        }
        Ok(known)
    }
}

fn set_up(analyzer: &mut Analyzer, event: dataspace_proto::event::Event, mappings: &[Mapping]) {
    let mut last = Last::default();
    analyzer.apply(&Record::Event(Box::new(event)), &mut last);
    for mapping in mappings {
        let mmap = Mmap {
            pid: PID,
            tid: PID,
            start: Avma(mapping.start),
            len_bytes: mapping.end - mapping.start,
            file_offset: FileOffset(mapping.file_offset),
            is_executable: mapping.is_executable,
            path: mapping.path.as_bytes().into(),
            ..Mmap::default()
        };
        analyzer.apply(&Record::Mmap(Box::new(mmap)), &mut last);
    }
}

fn one(
    analyzer: &mut Analyzer,
    worker: &mut Worker,
    last: &mut Last,
    sample: Sample,
) -> Result<SampleLine> {
    analyzer.apply(&Record::Sample(sample), last);
    analyzer.settle(last);
    while let Some(request) = analyzer.next_request() {
        analyzer.answer(worker.answer(&request), last);
    }
    last.0.take().ok_or_else(|| Error::other("a sample without an answer"))
}
