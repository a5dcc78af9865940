//! Parts of a line: what one thread does to the same bytes of it in one function.

use crate::dwarf::code::line::SourceLine;
use crate::known::source_dir;
use crate::query::field::{At, known};
use dataspace_proto::address::Avma;
use dataspace_proto::memory::Access;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Samples of one thread on the same bytes of a line, of one object and in one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePart {
    /// The thread.
    pub tid: i32,
    /// Its name.
    pub comm: Option<Arc<str>>,
    /// The first byte.
    pub address: Avma,
    /// Bytes that are touched at once; 0 where it is not known.
    pub size: u16,
    /// Descriptor of the finest object; of its reason where there is none.
    pub object: Arc<str>,
    /// The outermost named type.
    pub type_name: Option<Arc<str>>,
    /// The dotted member.
    pub member: Option<Arc<str>>,
    /// The variable by which the object was reached.
    pub variable: Option<Arc<str>>,
    /// Offset in the outermost aggregate.
    pub offset: Option<u32>,
    /// Number of the element, where the array's beginning is known.
    pub index: Option<u32>,
    /// The function that was interrupted.
    pub function: Option<Arc<str>>,
    /// The load object of that function.
    pub module: Option<Arc<str>>,
    /// The line of the trigger that most samples have; where it is a library's that was put in line, that of the call to it.
    pub source: Option<SourceLine>,
    /// Samples.
    pub samples: u64,
    /// Samples that read, among them those that write too.
    pub reads: u64,
    /// Samples that write, among them those that read too.
    pub writes: u64,
    /// Samples between which another thread touched the line, before and after.
    pub met: u64,
    /// Nanoseconds on a CPU that the samples of clocks stand for.
    pub time_ns: u64,
}

/// SampleSums over samples that have one name and one place.
#[derive(Clone, Copy, Debug, Default)]
struct SampleSums {
    samples: u64,
    reads: u64,
    writes: u64,
    met: u64,
    time_ns: u64,
}

/// Numbers by which samples are surely of one part: task, address, size, name, place.
type FineKey = (u32, u64, u16, u32, u32);

/// Samples of one line, summed.
#[derive(Debug, Default)]
pub(crate) struct PartSums<'a> {
    fine: FxHashMap<FineKey, (At<'a>, SampleSums)>,
}

impl<'a> PartSums<'a> {
    /// Counts a sample, which met others or did not.
    pub(crate) fn count(&mut self, at: At<'a>, is_met: bool) {
        let (chunk, row) = (at.chunk, at.row);
        let address = at.address().unwrap_or_default();
        let key = (chunk.task[row], address, chunk.size[row], chunk.name[row], chunk.place[row]);
        let (_, sums) = self.fine.entry(key).or_insert_with(|| (at, SampleSums::default()));
        let access = at.access();
        sums.samples += 1;
        sums.reads += u64::from(matches!(access, Some(Access::Load | Access::LoadStore)));
        sums.writes += u64::from(matches!(access, Some(Access::Store | Access::LoadStore)));
        sums.met += u64::from(is_met);
        sums.time_ns = sums.time_ns.saturating_add(at.time_on_cpu_ns());
    }

    /// The parts, those with most samples first.
    pub(crate) fn finish(self) -> Vec<LinePart> {
        let mut fine: Vec<(At<'a>, SampleSums)> = self.fine.into_values().collect();
        // The first of a part has its most frequent line.
        fine.sort_unstable_by_key(|(at, sums)| (u64::MAX - sums.samples, at.chunk.time_ns[at.row]));
        let mut numbers: FxHashMap<_, usize> = FxHashMap::default();
        let mut parts: Vec<LinePart> = Vec::new();
        for (at, sums) in fine {
            let part = part(at);
            let key =
                (part.tid, part.address.0, part.size, part.object.clone(), part.function.clone());
            let number = *numbers.entry(key).or_insert(parts.len());
            if number == parts.len() {
                parts.push(part);
            }
            let part = &mut parts[number];
            part.samples += sums.samples;
            part.reads += sums.reads;
            part.writes += sums.writes;
            part.met += sums.met;
            part.time_ns = part.time_ns.saturating_add(sums.time_ns);
        }
        parts.sort_by_key(|part| (u64::MAX - part.samples, part.tid, part.address.0));
        parts
    }
}

/// The innermost line of the program's own sources; else the innermost.
fn written(lines: &[SourceLine]) -> Option<&SourceLine> {
    let is_own =
        |line: &&SourceLine| line.path.as_deref().is_some_and(|path| !source_dir::is_library(path));
    lines.iter().find(is_own).or_else(|| lines.first())
}

/// The part of a sample, without sums.
fn part(at: At<'_>) -> LinePart {
    let (task, name, place) = (at.task(), at.name(), at.place());
    let (chunk, row) = (at.chunk, at.row);
    let lines = place.and_then(|place| place.lines.as_ref());
    LinePart {
        tid: task.map_or(0, |task| task.tid),
        comm: task.and_then(|task| task.comm.clone()),
        address: Avma(at.address().unwrap_or_default()),
        size: chunk.size[row],
        object: name.map_or_else(|| Arc::from(""), |name| Arc::clone(&name.object)),
        type_name: name.and_then(|name| name.type_name.clone()),
        member: name.and_then(|name| name.member.clone()),
        variable: name.and_then(|name| name.variable.clone()),
        offset: known(chunk.offset[row]),
        index: known(chunk.index[row]),
        function: place.and_then(|place| place.scope.function.clone()),
        module: place.map(|place| Arc::clone(&place.scope.object)),
        source: lines.and_then(|lines| written(lines)).cloned(),
        samples: 0,
        reads: 0,
        writes: 0,
        met: 0,
        time_ns: 0,
    }
}
