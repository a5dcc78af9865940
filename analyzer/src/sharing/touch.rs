//! Touches: samples of a history by the cache lines that they touch.

use crate::history::chunk::CHUNK_ROWS;
use crate::history::store::HistoryView;
use crate::limit;
use crate::query::field::At;
use crate::sharing::meeting::LineAccess;
use dataspace_proto::address::Avma;
use dataspace_proto::memory::Access;
use rustc_hash::{FxHashMap, FxHashSet};

/// Bytes of a line. All x86-64 processors have lines of 64.
pub(crate) const LINE_BYTES: u64 = 64;

/// A line of a process: its number, and the first address.
pub(crate) type LineKey = (i32, u64);

/// A sample on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineTouch {
    /// Number of the line.
    pub(crate) line: u32,
    /// Number of the sample in the history.
    row: u32,
    time_ns: u64,
}

/// All samples that count, in order of line and time.
#[derive(Debug, Default)]
pub(crate) struct Touches {
    /// The lines by their numbers.
    pub(crate) lines: Vec<LineKey>,
    pub(crate) list: Vec<LineTouch>,
    /// Lines that threads of one process touch, at least two of them.
    pub(crate) n_common: u64,
    /// Samples on lines that were too many to look at.
    pub(crate) n_left_out: u64,
}

/// A line, while it is found out who touches it.
#[derive(Clone, Copy, Debug)]
struct FoundLine {
    number: u32,
    first_tid: i32,
    is_common: bool,
}

/// Lines that samples touch, as many as there is room for.
#[derive(Debug, Default)]
pub(crate) struct LineFinder {
    found: FxHashMap<LineKey, FoundLine>,
    touches: Touches,
}

/// Bytes of a line that a sample touches, a bit each.
fn bytes(at: At<'_>, line: u64) -> u64 {
    let Some((first, last)) = range(at) else { return 0 };
    let first = first.saturating_sub(line).min(LINE_BYTES - 1);
    let last = last.saturating_sub(line).min(LINE_BYTES - 1);
    (u64::MAX << first) & (u64::MAX >> (LINE_BYTES - 1 - last))
}

/// The first and the last byte that a sample touches; one where its size is not known.
fn range(at: At<'_>) -> Option<(u64, u64)> {
    let first = at.address()?;
    let size = u64::from(at.chunk.size[at.row].max(1));
    Some((first, first.checked_add(size - 1)?))
}

/// The lines that a sample touches: one, or some where it goes across their borders.
fn lines(at: At<'_>) -> impl Iterator<Item = u64> + use<> {
    let aligned = |address: u64| address & !(LINE_BYTES - 1);
    let range = range(at).map(|(first, last)| (aligned(first), aligned(last)));
    let (first, last) = range.unwrap_or((1, 0));
    (first..=last).step_by(LINE_BYTES as usize).take(limit::MAX_LINES_OF_ACCESS)
}

/// Tells whether a sample reads or writes at an address of the process that is known.
pub(crate) fn is_access(at: At<'_>) -> bool {
    let is_there = at.address().is_some_and(|address| Avma(address).is_user());
    at.is_memory() && is_there && at.access() != Some(Access::Prefetch)
}

impl LineFinder {
    /// Adds a sample, whose number in the history is `row`.
    pub(crate) fn add(&mut self, at: At<'_>, row: u32) {
        let Some(task) = at.task() else { return };
        for address in lines(at) {
            let key = (task.pid, address);
            let is_full = self.found.len() >= limit::MAX_SURVEYED_LINES;
            let number = match self.found.get_mut(&key) {
                Some(found) => {
                    if found.first_tid != task.tid && !found.is_common {
                        found.is_common = true;
                        self.touches.n_common += 1;
                    }
                    found.number
                }
                None if is_full => {
                    self.touches.n_left_out += 1;
                    continue;
                }
                None => {
                    let number = self.touches.lines.len() as u32;
                    let found = FoundLine { number, first_tid: task.tid, is_common: false };
                    self.found.insert(key, found);
                    self.touches.lines.push(key);
                    number
                }
            };
            let time_ns = at.chunk.time_ns[at.row];
            self.touches.list.push(LineTouch { line: number, row, time_ns });
        }
    }

    /// The samples by line; of lines that one thread alone touches, too, where `has_all`.
    pub(crate) fn finish(self, has_all: bool) -> Touches {
        let Self { found, mut touches } = self;
        if !has_all {
            let is_common = |found: &&FoundLine| found.is_common;
            let common: FxHashSet<u32> =
                found.values().filter(is_common).map(|found| found.number).collect();
            touches.list.retain(|touch| common.contains(&touch.line));
        }
        // Samples that waited for debug information are in the history after later ones.
        touches.list.sort_unstable_by_key(|touch| (touch.line, touch.time_ns, touch.row));
        touches
    }
}

impl Touches {
    /// Each line with its samples, in order of time.
    pub(crate) fn by_line(&self) -> impl Iterator<Item = (LineKey, &[LineTouch])> {
        let groups = self.list.chunk_by(|one, other| one.line == other.line);
        groups.map(|group| (self.lines[group[0].line as usize], group))
    }
}

impl LineTouch {
    /// The sample.
    pub(crate) fn at(self, view: &HistoryView) -> At<'_> {
        let row = self.row as usize;
        At { view, chunk: &view.kept.chunks[row / CHUNK_ROWS], row: row % CHUNK_ROWS }
    }

    /// Its access to the line at `line`.
    pub(crate) fn access(self, view: &HistoryView, line: u64) -> LineAccess {
        let at = self.at(view);
        LineAccess {
            time_ns: self.time_ns,
            tid: at.task().map_or(0, |task| task.tid),
            bytes: bytes(at, line),
            is_write: matches!(at.access(), Some(Access::Store | Access::LoadStore)),
        }
    }
}

/// The number of a sample in a history, by its chunk and its row there.
pub(crate) fn row_number(chunk: usize, row: usize) -> u32 {
    u32::try_from(chunk * CHUNK_ROWS + row).unwrap_or(u32::MAX)
}
