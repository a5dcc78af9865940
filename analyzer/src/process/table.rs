//! Processes, what is mapped in each one, and the load objects behind the mappings.

use crate::bytes::file::{LoadObjectIdx, LoadObjectKey};
use crate::elf::image::Segment;
use crate::elf::thread_block::ThreadBlock;
use crate::index::load_object::ObjectFacts;
use crate::limit;
use crate::process::recent::{DataSpan, RecentData};
use crate::process::segment;
use dataspace_proto::address::{Avma, FileOffset, Svma};
use dataspace_proto::memory::MemorySegment;
use dataspace_proto::reason::Reason;
use dataspace_proto::record::{Comm, Exit, FileIdentity, Fork, Mmap, Namespace};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The thing that a mapping maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backing {
    File(LoadObjectIdx),
    Anonymous,
    Kernel,
}

/// One mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: Avma,
    pub(crate) end: Avma,
    pub(crate) file_offset: FileOffset,
    pub(crate) is_executable: bool,
    pub(crate) backing: Backing,
    /// The kind of memory that it is, by its name.
    pub(crate) segment: MemorySegment,
}

/// The state of a load object as the analyzer knows it.
#[derive(Debug)]
pub(crate) enum ObjectState {
    /// No sample needed it yet.
    Unopened,
    /// A worker was asked to open it.
    Opening,
    /// It can be asked about.
    Open(Arc<ObjectFacts>),
    /// It cannot, and why.
    Failed(Reason),
}

/// One load object.
#[derive(Debug)]
pub(crate) struct LoadObject {
    pub(crate) key: Arc<LoadObjectKey>,
    pub(crate) state: ObjectState,
}

/// The thing that a data address lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataObjectAt {
    /// In the data of no load object.
    None,
    /// In a mapping of one that was not opened yet.
    Unopened(LoadObjectIdx),
    /// In this one's segments.
    Open {
        /// The load object.
        object: LoadObjectIdx,
        /// Number that the loader added to its addresses.
        bias: u64,
    },
}

/// One process's address space. A child shares its parent's mappings until one of them changes:
/// most children do nothing but execute another program.
#[derive(Clone, Debug, Default)]
struct Space {
    mappings: Arc<BTreeMap<Avma, Mapping>>,
    /// Threads that are known beside the first one.
    n_more_threads: u32,
}

/// All processes and load objects of a session.
#[derive(Debug, Default)]
pub(crate) struct ProcessTable {
    spaces: FxHashMap<i32, Space>,
    /// Processes that ended, oldest first: the first to be forgotten.
    ended: VecDeque<i32>,
    objects: Vec<LoadObject>,
    by_identity: FxHashMap<(Arc<[u8]>, FileIdentity, u64), LoadObjectIdx>,
    /// The mount namespaces of processes that are in another one than this program, or the recorder.
    namespaces: FxHashMap<i32, u64>,
    /// Number of times that mappings or the state of load objects may have changed.
    n_changes: u64,
    recent_data: RecentData,
}

impl ProcessTable {
    pub(crate) fn mmap(&mut self, mmap: &Mmap) {
        self.n_changes += 1;
        let backing = self.backing(mmap);
        let mapping = Mapping {
            start: mmap.start,
            end: Avma(mmap.start.0.saturating_add(mmap.len_bytes)),
            file_offset: mmap.file_offset,
            is_executable: mmap.is_executable,
            backing,
            segment: segment::of_mapping(mmap),
        };
        self.make_room();
        let space = self.spaces.entry(mmap.pid).or_default();
        insert(Arc::make_mut(&mut space.mappings), mapping);
    }

    /// The part of a new mapping that held something else, or nothing, before.
    ///
    /// The kernel tells of a heap that grows (`do_brk_flags`, and `mmap` beside a mapping of the same
    /// kind) as of one mapping with all that was there before. What shares an end with a smaller
    /// anonymous mapping is taken for that one grown.
    pub(crate) fn newly_mapped(&self, mmap: &Mmap) -> (Avma, Avma) {
        let (start, end) = (mmap.start, Avma(mmap.start.0.saturating_add(mmap.len_bytes)));
        if mmap.path.first() == Some(&b'/') && !mmap.path.starts_with(b"//anon") {
            return (start, end);
        }
        let last = Avma(end.0.saturating_sub(1));
        let known = [start, last].map(|at| {
            let mapping = self.mapping(mmap.pid, at)?;
            let is_inside = start <= mapping.start && mapping.end <= end;
            let is_grown = (start, end) != (mapping.start, mapping.end);
            let is_kept = mapping.backing == Backing::Anonymous && is_inside && is_grown;
            is_kept.then_some((mapping.start, mapping.end))
        });
        match known {
            [Some((_, below)), Some((above, _))] if below <= above => (below, above),
            [Some((_, kept)), _] => (kept, end),
            [_, Some((kept, _))] => (start, kept),
            [None, None] => (start, end),
        }
    }

    pub(crate) fn comm(&mut self, comm: &Comm) {
        self.n_changes += 1;
        if comm.is_exec {
            self.spaces.insert(comm.pid, Space::default());
        } else if comm.time_ns == 0 && comm.tid != comm.pid {
            // A thread from before the session.
            self.spaces.entry(comm.pid).or_default().n_more_threads += 1;
        }
    }

    pub(crate) fn fork(&mut self, fork: &Fork) {
        if fork.pid == fork.parent_pid {
            if let Some(space) = self.spaces.get_mut(&fork.pid) {
                space.n_more_threads = space.n_more_threads.saturating_add(1);
            }
            return;
        }
        self.n_changes += 1;
        let parent = self.spaces.get(&fork.parent_pid);
        let mappings = parent.map(|space| Arc::clone(&space.mappings)).unwrap_or_default();
        self.make_room();
        self.ended.retain(|pid| *pid != fork.pid);
        match self.namespaces.get(&fork.parent_pid).copied() {
            // What the child is in besides is told of it after its birth.
            Some(mount) => self.namespace(&Namespace { time_ns: 0, pid: fork.pid, mount }),
            None => drop(self.namespaces.remove(&fork.pid)),
        }
        self.spaces.insert(fork.pid, Space { mappings, n_more_threads: 0 });
    }

    /// From here on the paths of new mappings are those of this mount namespace.
    pub(crate) fn namespace(&mut self, namespace: &Namespace) {
        if namespace.mount == 0 {
            self.namespaces.remove(&namespace.pid);
        } else if self.namespaces.len() < limit::MAX_PROCESSES {
            self.namespaces.insert(namespace.pid, namespace.mount);
        }
    }

    /// The mount namespace of a process; 0 for that of this program, or the recorder.
    pub(crate) fn mount_namespace(&self, pid: i32) -> u64 {
        self.namespaces.get(&pid).copied().unwrap_or(0)
    }

    /// Mappings stay for a while: samples may wait for debug information, and other threads may
    /// still run when the first one ends.
    pub(crate) fn exit(&mut self, exit: &Exit) {
        let Some(space) = self.spaces.get_mut(&exit.pid) else { return };
        if exit.pid != exit.tid {
            space.n_more_threads = space.n_more_threads.saturating_sub(1);
            return;
        }
        self.ended.push_back(exit.pid);
        if self.ended.len() > limit::MAX_ENDED_PROCESSES
            && let Some(pid) = self.ended.pop_front()
        {
            let is_over = self.spaces.get(&pid).is_some_and(|space| space.n_more_threads == 0);
            if is_over {
                self.spaces.remove(&pid);
                self.namespaces.remove(&pid);
            }
        }
    }

    /// The mapping of process `pid` that holds `avma`.
    pub(crate) fn mapping(&self, pid: i32, avma: Avma) -> Option<&Mapping> {
        let (_, mapping) = self.spaces.get(&pid)?.mappings.range(..=avma).next_back()?;
        (avma < mapping.end).then_some(mapping)
    }

    /// The program of process `pid`, if it was opened and has thread-local variables.
    pub(crate) fn program(&self, pid: i32) -> Option<(LoadObjectIdx, ThreadBlock)> {
        self.spaces.get(&pid)?.mappings.values().find_map(|mapping| {
            let Backing::File(object) = mapping.backing else { return None };
            let ObjectState::Open(facts) = &self.object(object)?.state else { return None };
            let block = facts.thread.filter(|block| block.below_base.is_some())?;
            Some((object, block))
        })
    }

    /// The opened load object whose code is at `avma`, if it has thread-local variables.
    pub(crate) fn thread_module(
        &self,
        pid: i32,
        avma: Avma,
    ) -> Option<(LoadObjectIdx, ThreadBlock)> {
        let Backing::File(object) = self.mapping(pid, avma)?.backing else { return None };
        let ObjectState::Open(facts) = &self.object(object)?.state else { return None };
        Some((object, facts.thread?))
    }

    /// Number of times that answers of this table may have changed.
    pub(crate) const fn n_changes(&self) -> u64 {
        self.n_changes
    }

    /// A `part` of what is known of the data address `avma`: the load object of process `pid` whose segments hold it, the
    /// kind of memory, and addresses around it that have the same answers.
    #[inline(always)]
    pub(super) fn data_around<T>(
        &mut self,
        pid: i32,
        avma: Avma,
        part: impl Fn(&DataSpan) -> T,
    ) -> Option<T> {
        match self.recent_data.find(pid, avma, self.n_changes) {
            Some(known) => Some(part(known)),
            None => self.find_data(pid, avma).as_ref().map(part),
        }
    }

    #[cold]
    fn find_data(&mut self, pid: i32, avma: Avma) -> Option<DataSpan> {
        let span = self.data_span(pid, avma)?;
        self.recent_data.keep(pid, avma, self.n_changes, span);
        Some(span)
    }

    /// All of it, worked out: the addresses are all in one mapping or in none, and no segment of a file begins or ends there.
    fn data_span(&self, pid: i32, avma: Avma) -> Option<DataSpan> {
        let space = &self.spaces.get(&pid)?.mappings;
        // A load object's segments lie together: the nearest mapped file at or below the address
        // is the one, bss included, which is anonymous memory after it.
        let mut below = space.range(..=avma).rev().map(|(_, mapping)| mapping).peekable();
        let next = Avma(avma.0.checked_add(1)?);
        let above = space.range(next..).next();
        let nearest = below.peek()?;
        let (start, end, segment) = match avma < nearest.end {
            true => (nearest.start.0, nearest.end.0, Some(self.segment_of(nearest))),
            false => (nearest.end.0, above.map_or(u64::MAX, |(start, _)| start.0), None),
        };
        let mut span = DataSpan { start, end, answer: DataObjectAt::None, segment };
        let file = |mapping: &Mapping| match mapping.backing {
            Backing::File(object) => Some((object, *mapping)),
            _ => None,
        };
        // Anonymous mappings between are bss or the heap: a few are stepped over.
        let Some((object, mapping)) = below.take(4).find_map(file) else { return Some(span) };
        let facts = match &self.object(object)?.state {
            ObjectState::Open(facts) => facts,
            ObjectState::Failed(_) => return Some(span),
            // Whether what lies after the file is its bss, only its headers tell.
            _ => {
                if avma < mapping.end {
                    span.answer = DataObjectAt::Unopened(object);
                }
                return Some(span);
            }
        };
        // Two data segments can begin in the same page of the file, so that a data mapping does
        // not tell which one it is of; one of code does, and one load has one bias.
        let near = space.range(..=avma).rev().take(NEAR).chain(space.range(next..).take(NEAR));
        let code = near
            .map(|(_, near)| near)
            .find(|near| near.is_executable && near.backing == Backing::File(object));
        let Some(bias) = bias(facts, code.unwrap_or(&mapping)) else { return Some(span) };
        let svma = Svma(avma.0.wrapping_sub(bias));
        let (room_below, room_above, is_held) = room(&facts.segments, svma);
        span.start = span.start.max(avma.0.saturating_sub(room_below));
        span.end = span.end.min(avma.0.saturating_add(room_above));
        if is_held {
            span.answer = DataObjectAt::Open { object, bias };
            // Zeroed data is no part of the file, and a heap may share its mapping.
            if span.segment == Some(MemorySegment::Anonymous) {
                span.segment = Some(MemorySegment::Data);
            }
        }
        Some(span)
    }

    /// Kind of memory that a mapping is, but for zeroed data.
    fn segment_of(&self, mapping: &Mapping) -> MemorySegment {
        match (mapping.segment, mapping.backing) {
            (MemorySegment::Data, Backing::File(object)) => {
                let state = self.object(object).map(|known| &known.state);
                let is_data = !matches!(state, Some(ObjectState::Failed(_)));
                if is_data { MemorySegment::Data } else { MemorySegment::File }
            }
            (segment, _) => segment,
        }
    }

    pub(crate) fn object(&self, idx: LoadObjectIdx) -> Option<&LoadObject> {
        self.objects.get(idx.0 as usize)
    }

    pub(crate) fn object_mut(&mut self, idx: LoadObjectIdx) -> Option<&mut LoadObject> {
        self.n_changes += 1;
        self.objects.get_mut(idx.0 as usize)
    }

    fn backing(&mut self, mmap: &Mmap) -> Backing {
        if mmap.pid == -1 || !mmap.start.is_user() || &*mmap.path == b"[vsyscall]" {
            return Backing::Kernel;
        }
        let path = &*mmap.path;
        let is_file = path.first() == Some(&b'/') && !path.starts_with(b"//anon");
        if !is_file && path != b"[vdso]" {
            return Backing::Anonymous;
        }
        let path: Arc<[u8]> = path.into();
        let mount_namespace = self.mount_namespace(mmap.pid);
        // What has one build-id is one file wherever it is, but may be opened there only.
        let namespace = match mmap.identity {
            FileIdentity::BuildId(_) => u64::from(mount_namespace != 0),
            _ => mount_namespace,
        };
        let identity = (Arc::clone(&path), mmap.identity.clone(), namespace);
        if let Some(known) = self.by_identity.get(&identity) {
            return Backing::File(*known);
        }
        let key = LoadObjectKey {
            path,
            identity: mmap.identity.clone(),
            pid: mmap.pid,
            range: (mmap.start, Avma(mmap.start.0.saturating_add(mmap.len_bytes))),
            mount_namespace,
        };
        let Some(idx) = self.add_object(key) else { return Backing::Anonymous };
        self.by_identity.insert(identity, idx);
        Backing::File(idx)
    }

    /// One more load object, if there is room.
    pub(crate) fn add_object(&mut self, key: LoadObjectKey) -> Option<LoadObjectIdx> {
        if self.objects.len() >= limit::MAX_LOAD_OBJECTS {
            return None;
        }
        let idx = LoadObjectIdx(self.objects.len() as u32);
        self.objects.push(LoadObject { key: Arc::new(key), state: ObjectState::Unopened });
        Some(idx)
    }

    fn make_room(&mut self) {
        while self.spaces.len() >= limit::MAX_PROCESSES {
            let Some(pid) = self.ended.pop_front() else {
                // None has ended: the table starts anew rather than grow.
                self.spaces.clear();
                self.namespaces.clear();
                return;
            };
            self.spaces.remove(&pid);
            self.namespaces.remove(&pid);
        }
    }
}

/// Distances below and above `svma` within which it makes no difference to any segment where exactly an address is,
/// and whether one of them holds it.
fn room(segments: &[Segment], svma: Svma) -> (u64, u64, bool) {
    let (mut below, mut above, mut is_held) = (svma.0, u64::MAX - svma.0, false);
    for segment in segments {
        match svma.offset_from(segment.start) {
            None => above = above.min(segment.start.0 - svma.0),
            Some(into) if into < segment.memory_bytes => {
                is_held = true;
                below = below.min(into);
                above = above.min(segment.memory_bytes - into);
            }
            Some(into) => below = below.min(into - segment.memory_bytes),
        }
    }
    (below, above, is_held)
}

/// Number of mappings that one load of an object has at most on either side of an address.
const NEAR: usize = 8;

/// The bias of a load object, by one of its mappings: what the loader added to its addresses.
pub(crate) fn bias(facts: &ObjectFacts, mapping: &Mapping) -> Option<u64> {
    let holds = |segment: &&Segment| {
        mapping
            .file_offset
            .offset_from(segment.file_offset)
            .is_some_and(|into| into < segment.file_bytes)
            // The loader maps whole pages, so a mapping may begin a little before its segment.
            || segment
                .file_offset
                .offset_from(mapping.file_offset)
                .is_some_and(|before| before < 4096)
    };
    let executable = facts.segments.iter().filter(|segment| segment.is_executable);
    let segment = executable.clone().find(holds).or_else(|| facts.segments.iter().find(holds))?;
    let stated =
        segment.start.0.wrapping_add(mapping.file_offset.0.wrapping_sub(segment.file_offset.0));
    Some(mapping.start.0.wrapping_sub(stated))
}

/// Inserts a mapping over whatever was there, as mmap(2) with MAP_FIXED does.
fn insert(space: &mut BTreeMap<Avma, Mapping>, mapping: Mapping) {
    if mapping.end <= mapping.start || space.len() >= limit::MAX_MAPPINGS {
        return;
    }
    if let Some((_, below)) = space.range_mut(..mapping.start).next_back()
        && below.end > mapping.start
    {
        let tail = cut_front(below, mapping.end);
        below.end = mapping.start;
        if let Some(tail) = tail {
            space.insert(tail.start, tail);
        }
    }
    while let Some((&start, inside)) = space.range(mapping.start..mapping.end).next() {
        let tail = cut_front(inside, mapping.end);
        space.remove(&start);
        if let Some(tail) = tail {
            space.insert(tail.start, tail);
        }
    }
    space.insert(mapping.start, mapping);
}

/// The part of `mapping` from `from` on.
fn cut_front(mapping: &Mapping, from: Avma) -> Option<Mapping> {
    let cut = from.offset_from(mapping.start)?;
    (from < mapping.end).then(|| Mapping {
        start: from,
        file_offset: mapping.file_offset.plus(cut),
        ..*mapping
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::record::Sample;
    use proptest::prelude::*;

    fn mmap(pid: i32, start: u64, len_bytes: u64, path: &str) -> Mmap {
        Mmap {
            pid,
            tid: pid,
            start: Avma(start),
            len_bytes,
            path: path.as_bytes().into(),
            ..Mmap::default()
        }
    }

    #[test]
    fn a_new_mapping_replaces_what_it_covers() {
        let mut table = ProcessTable::default();
        table.mmap(&mmap(1, 0x1000, 0x4000, "/a"));
        table.mmap(&mmap(1, 0x2000, 0x1000, "/b"));
        let at = |address| table.mapping(1, Avma(address)).copied().unwrap();
        assert_eq!((at(0x1fff).start, at(0x1fff).end), (Avma(0x1000), Avma(0x2000)));
        assert_eq!(at(0x2000).backing, Backing::File(LoadObjectIdx(1)));
        assert_eq!(at(0x3000).file_offset, FileOffset(0x2000), "the tail keeps its place");
        assert!(table.mapping(1, Avma(0x5000)).is_none());
    }

    #[test]
    fn exec_forgets_and_fork_inherits() {
        let mut table = ProcessTable::default();
        table.mmap(&mmap(1, 0x1000, 0x1000, "/a"));
        table.fork(&Fork { pid: 2, tid: 2, parent_pid: 1, parent_tid: 1, ..Fork::default() });
        table.comm(&Comm { pid: 1, tid: 1, is_exec: true, ..Comm::default() });
        assert!(table.mapping(1, Avma(0x1000)).is_none());
        assert!(table.mapping(2, Avma(0x1000)).is_some());
    }

    #[test]
    fn a_storm_of_children_leaves_few_spaces_and_no_living_process_loses_its_own() {
        let mut table = ProcessTable::default();
        table.mmap(&mmap(1, 0x1000, 0x1000, "/a"));
        table.mmap(&mmap(2, 0x1000, 0x1000, "/b"));
        let thread = Fork { pid: 2, tid: 3, parent_pid: 2, parent_tid: 2, ..Fork::default() };
        table.fork(&thread);
        table.exit(&Exit { pid: 2, tid: 2, ..Exit::default() });
        for pid in 10..10_000 {
            let born = Fork { pid, tid: pid, parent_pid: 1, parent_tid: 1, ..Fork::default() };
            table.fork(&born);
            table.exit(&Exit { pid, tid: pid, ..Exit::default() });
        }
        assert!(table.spaces.len() <= limit::MAX_ENDED_PROCESSES + 2);
        assert!(table.mapping(9_999, Avma(0x1000)).is_some(), "its samples may still wait");
        assert!(table.mapping(2, Avma(0x1000)).is_some(), "its other thread lives");
        assert!(table.mapping(10, Avma(0x1000)).is_none());
    }

    #[test]
    fn the_same_file_is_one_load_object() {
        let mut table = ProcessTable::default();
        table.mmap(&mmap(1, 0x1000, 0x1000, "/a"));
        table.mmap(&mmap(2, 0x9000, 0x1000, "/a"));
        assert_eq!(
            table.mapping(1, Avma(0x1000)).unwrap().backing,
            table.mapping(2, Avma(0x9000)).unwrap().backing
        );
    }

    #[test]
    fn a_path_of_another_mount_namespace_is_another_file() {
        let mut table = ProcessTable::default();
        let mut object = |pid, mount, identity: FileIdentity| {
            table.namespace(&Namespace { time_ns: 0, pid, mount });
            table.mmap(&Mmap { identity, ..mmap(pid, 0x1000, 0x1000, "/a") });
            table.mapping(pid, Avma(0x1000)).unwrap().backing
        };
        let none = || FileIdentity::None;
        let home = object(1, 0, none());
        assert_eq!(object(2, 0, none()), home);
        let elsewhere = object(3, 77, none());
        assert_ne!(elsewhere, home);
        assert_eq!(object(4, 77, none()), elsewhere);
        assert_ne!(object(5, 78, none()), elsewhere);
        // One build-id is one file, opened by what is known there.
        let build_id = || FileIdentity::BuildId([1; 20].into());
        let known = object(3, 77, build_id());
        assert_eq!(object(5, 78, build_id()), known);
        assert_ne!(object(1, 0, build_id()), known);
    }

    #[test]
    fn a_child_is_where_its_parent_is() {
        let mut table = ProcessTable::default();
        table.namespace(&Namespace { time_ns: 0, pid: 1, mount: 77 });
        let fork = |pid, parent_pid| Fork { pid, tid: pid, parent_pid, ..Fork::default() };
        table.fork(&fork(2, 1));
        assert_eq!(table.mount_namespace(2), 77);
        table.namespace(&Namespace { time_ns: 0, pid: 2, mount: 0 });
        assert_eq!((table.mount_namespace(2), table.mount_namespace(1)), (0, 77));
        table.fork(&fork(1, 2));
        assert_eq!(table.mount_namespace(1), 0, "a number that is used again");
    }

    /// The first load object with these segments of data (start, length), after one of code.
    fn open(table: &mut ProcessTable, segments: &[(u64, u64)]) {
        let segment = |(start, memory_bytes): (u64, u64), is_executable| Segment {
            file_offset: FileOffset(start),
            file_bytes: memory_bytes,
            start: Svma(start),
            memory_bytes,
            is_executable,
        };
        let code = std::iter::once(segment((0, 0x1000), true));
        let data = segments.iter().map(|it| segment(*it, false));
        let facts = ObjectFacts { segments: code.chain(data).collect(), ..ObjectFacts::default() };
        if let Some(object) = table.object_mut(LoadObjectIdx(0)) {
            object.state = ObjectState::Open(Arc::new(facts));
        }
    }

    proptest! {
        /// An address has the answer that it has by itself, whatever was asked before and mapped
        /// in between.
        #[test]
        fn what_was_found_lately_is_found_where_it_holds(
            segments in prop::collection::vec((0u64..0x8000, 0u64..0x3000), 0..3),
            steps in prop::collection::vec((0u64..12, 1u64..4, 0u8..8, 0u64..0xc000), 1..60),
        ) {
            let mut table = ProcessTable::default();
            for (page, n_pages, what, address) in steps {
                match what {
                    0 => table.mmap(&mmap(1, page << 12, n_pages << 12, "/a")),
                    1 => table.mmap(&mmap(1, page << 12, n_pages << 12, "/b")),
                    2 => table.mmap(&mmap(1, page << 12, n_pages << 12, "//anon")),
                    3 => open(&mut table, &segments),
                    _ => {}
                }
                for address in [address, page << 12, (page << 12) - u64::from(page != 0)] {
                    let told = |span: &DataSpan| (span.answer, span.segment);
                    let alone = table.data_span(1, Avma(address)).as_ref().map(told);
                    let found = table.data_around(1, Avma(address), told);
                    prop_assert_eq!(found, alone);
                    let mapped = table.mapping(1, Avma(address)).is_some();
                    prop_assert_eq!(alone.is_some_and(|(_, segment)| segment.is_some()), mapped);
                }
            }
        }
    }

    #[test]
    fn zeroed_data_is_data_and_the_heap_after_it_in_one_mapping_is_not() {
        let mut table = ProcessTable::default();
        let file = |start, file_offset, is_executable| {
            let file_offset = FileOffset(file_offset);
            Mmap { file_offset, is_executable, ..mmap(1, start, 0x1000, "/a") }
        };
        table.mmap(&file(0x10_0000, 0, true));
        table.mmap(&file(0x10_1000, 0x1000, false));
        table.mmap(&mmap(1, 0x10_2000, 0x8000, "//anon"));
        let kind = |table: &mut ProcessTable, addr| {
            let sample = Sample { pid: 1, ..Sample::default() };
            table.segment(&sample, Avma(addr))
        };
        open(&mut table, &[(0x1000, 0x3800)]);
        for (addr, expected) in [
            (0x10_0800, MemorySegment::Text),
            (0x10_1800, MemorySegment::Data),
            (0x10_2000, MemorySegment::Data),
            (0x10_47ff, MemorySegment::Data),
            (0x10_4800, MemorySegment::Anonymous),
            (0x10_9fff, MemorySegment::Anonymous),
        ] {
            assert_eq!(kind(&mut table, addr), Some(expected), "{addr:#x}");
        }
        if let Some(object) = table.object_mut(LoadObjectIdx(0)) {
            object.state = ObjectState::Failed(Reason::ObjectMissing);
        }
        assert_eq!(kind(&mut table, 0x10_1800), Some(MemorySegment::File));
        assert_eq!(kind(&mut table, 0x10_2000), Some(MemorySegment::Anonymous));
    }

    #[test]
    fn what_holds_nothing_or_is_one_too_many_is_not_mapped() {
        let mut space = BTreeMap::new();
        let mapping = |start: u64, end: u64| Mapping {
            start: Avma(start),
            end: Avma(end),
            file_offset: FileOffset(0),
            is_executable: false,
            backing: Backing::File(LoadObjectIdx(0)),
            segment: MemorySegment::Data,
        };
        insert(&mut space, mapping(0x1000, 0x3000));
        insert(&mut space, mapping(0x2000, 0x2000));
        insert(&mut space, mapping(0x2000, 0x1000));
        assert_eq!(space.keys().copied().collect::<Vec<_>>(), [Avma(0x1000)]);
        let first = 0x10_0000;
        for page in 0..limit::MAX_MAPPINGS as u64 {
            insert(&mut space, mapping(first + page * 0x1000, first + page * 0x1000 + 0x1000));
        }
        assert_eq!(space.len(), limit::MAX_MAPPINGS);
        assert_eq!(space[&Avma(0x1000)].end, Avma(0x3000), "nothing gives way");
    }

    #[test]
    fn a_mapping_tells_what_was_added_by_the_segment_that_holds_its_part_of_the_file() {
        let segment = |file_offset, start| Segment {
            file_offset: FileOffset(file_offset),
            file_bytes: 0x1000,
            start: Svma(start),
            memory_bytes: 0x1000,
            is_executable: true,
        };
        // The second begins where the first ends in the file, and elsewhere in memory.
        let segments = vec![segment(0x1000, 0x40_1000), segment(0x2000, 0x60_2000)];
        let facts = ObjectFacts { segments, ..ObjectFacts::default() };
        let bias = |file_offset| {
            let mapping = Mapping {
                start: Avma(0x7000_0000),
                end: Avma(0x7000_1000),
                file_offset: FileOffset(file_offset),
                is_executable: true,
                backing: Backing::File(LoadObjectIdx(0)),
                segment: MemorySegment::Text,
            };
            bias(&facts, &mapping)
        };
        assert_eq!(bias(0x1000), Some(0x7000_0000 - 0x40_1000));
        assert_eq!(bias(0x2000), Some(0x7000_0000 - 0x60_2000));
        assert_eq!(bias(0x5000), None);
        assert_eq!(bias(0), None, "a whole page before the first");
    }

    #[test]
    fn around_an_address_there_is_room_up_to_the_next_end_of_a_segment() {
        let segment = |start| Segment {
            file_offset: FileOffset(start),
            file_bytes: 0x1000,
            start: Svma(start),
            memory_bytes: 0x1000,
            is_executable: false,
        };
        let segments = [segment(0x1000), segment(0x4000)];
        let room = |svma| room(&segments, Svma(svma));
        assert_eq!(room(0x800), (0x800, 0x800, false));
        assert_eq!(room(0x1000), (0, 0x1000, true));
        assert_eq!(room(0x1800), (0x800, 0x800, true));
        assert_eq!(room(0x3000), (0x1000, 0x1000, false));
        assert_eq!(room(0x6000), (0x1000, u64::MAX - 0x6000, false));
    }
}
