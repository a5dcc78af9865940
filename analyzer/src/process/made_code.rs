//! Names of code that processes make at run time, as far as their files were read.

use crate::bytes::file::{LoadObjectIdx, LoadObjectKey, NamesFormat};
use crate::index::code_names::Names;
use crate::index::named_code::{CodeTable, KernelCode};
use crate::index::question::{Needs, Question};
use crate::limit;
use crate::process::table::{Backing, ProcessTable};
use dataspace_proto::address::Avma;
use dataspace_proto::record::{CpuMode, FileIdentity, Fork, Mmap, Sample};
use dataspace_proto::sample_line::Scope;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// The stand-in for the path of a perf map, which the process's own number decides.
const PERF_MAP: &[u8] = b"[perf map]";

/// One file of names.
#[derive(Debug)]
struct NamesSource {
    object: LoadObjectIdx,
    format: NamesFormat,
    table: Option<Arc<CodeTable>>,
    /// Time of the last look at it.
    asked_ns: Option<u64>,
}

impl NamesSource {
    const fn new(object: LoadObjectIdx, format: NamesFormat) -> Self {
        Self { object, format, table: None, asked_ns: None }
    }
}

/// The files of one process.
#[derive(Debug, Default)]
struct ProcessCode {
    /// The tables of its parent when it was born.
    inherited: Vec<Arc<CodeTable>>,
    /// The dumps, then the map.
    sources: Vec<NamesSource>,
    has_map: bool,
}

impl ProcessCode {
    fn tables(&self) -> impl Iterator<Item = &Arc<CodeTable>> {
        self.sources.iter().filter_map(|source| source.table.as_ref()).chain(&self.inherited)
    }
}

/// The code of all processes.
#[derive(Debug, Default)]
pub(crate) struct MadeCode {
    processes: FxHashMap<i32, ProcessCode>,
    /// In the order in which they came.
    order: VecDeque<i32>,
}

impl MadeCode {
    /// The function at `ip`, if a file of the process names it.
    pub(crate) fn find(&self, pid: i32, ip: Avma) -> Option<&Arc<Scope>> {
        self.processes.get(&pid)?.tables().find_map(|table| table.find(ip.0))
    }

    /// The file that is to be looked at for the code of a sample at `ip`, which is in no file itself.
    pub(crate) fn needs(
        &mut self,
        sample: &Sample,
        ip: Avma,
        processes: &mut ProcessTable,
    ) -> Option<Needs> {
        if sample.pid <= 0 || self.find(sample.pid, ip).is_some() {
            return None;
        }
        let code = self.process(sample.pid);
        if !code.has_map {
            code.has_map = true;
            let key = LoadObjectKey {
                path: PERF_MAP.into(),
                identity: FileIdentity::None,
                pid: sample.pid,
                range: (Avma(0), Avma(0)),
                mount_namespace: processes.mount_namespace(sample.pid),
            };
            let object = processes.add_object(key)?;
            code.sources.push(NamesSource::new(object, NamesFormat::PerfMap));
        }
        let is_due = |source: &&mut NamesSource| {
            source.asked_ns.is_none_or(|asked_ns| {
                sample.time_ns >= asked_ns.saturating_add(limit::CODE_NAMES_INTERVAL_NS)
            })
        };
        let source = code.sources.iter_mut().find(is_due)?;
        source.asked_ns = Some(sample.time_ns);
        Some(Needs { object: source.object, question: Question::CodeNames(source.format) })
    }

    /// A worker has looked at the file.
    pub(crate) fn answer(&mut self, pid: i32, object: LoadObjectIdx, names: Names) {
        let Some(code) = self.processes.get_mut(&pid) else { return };
        if let Some(source) = code.sources.iter_mut().find(|source| source.object == object) {
            source.table = Some(names.table);
            code.inherited.clear();
        }
        self.make_room(pid);
    }

    /// A runtime tells where its dump is by mapping a page of it, so that it is code.
    pub(crate) fn mmap(&mut self, mmap: &Mmap, processes: &ProcessTable) {
        if !mmap.is_executable || !is_dump(&mmap.path) {
            return;
        }
        let Some(mapping) = processes.mapping(mmap.pid, mmap.start) else { return };
        let Backing::File(object) = mapping.backing else { return };
        let code = self.process(mmap.pid);
        let is_known = code.sources.iter().any(|source| source.object == object);
        if !is_known && code.sources.len() < limit::MAX_CODE_NAME_FILES {
            code.sources.insert(0, NamesSource::new(object, NamesFormat::JitDump));
        }
    }

    /// A new process has its parent's code, and names what it makes itself in files of its own.
    pub(crate) fn fork(&mut self, fork: &Fork) {
        if fork.pid == fork.parent_pid {
            return;
        }
        self.forget(fork.pid);
        let Some(parent) = self.processes.get(&fork.parent_pid) else { return };
        let inherited: Vec<_> = parent.tables().map(Arc::clone).collect();
        if !inherited.is_empty() {
            self.process(fork.pid).inherited = inherited;
        }
    }

    /// The process has another program, or is another one.
    pub(crate) fn forget(&mut self, pid: i32) {
        if self.processes.remove(&pid).is_some() {
            self.order.retain(|known| *known != pid);
        }
    }

    fn process(&mut self, pid: i32) -> &mut ProcessCode {
        if !self.processes.contains_key(&pid) {
            self.order.push_back(pid);
            if self.order.len() > limit::MAX_CODE_NAME_PROCESSES
                && let Some(oldest) = self.order.pop_front()
            {
                self.processes.remove(&oldest);
            }
        }
        self.processes.entry(pid).or_default()
    }

    /// Forgets the processes that came first, but not `kept`, until the rest is within bounds.
    fn make_room(&mut self, kept: i32) {
        let size = |code: &ProcessCode| code.tables().map(|table| table.n_bytes()).sum::<usize>();
        let mut n_bytes: usize = self.processes.values().map(size).sum();
        for pid in self.order.iter().copied().filter(|pid| *pid != kept).collect::<Vec<_>>() {
            if n_bytes <= limit::MAX_ALL_CODE_NAMES_BYTES {
                return;
            }
            n_bytes -= self.processes.get(&pid).map_or(0, size);
            self.forget(pid);
        }
    }
}

/// Tells whether a path ends in `jit-NUMBER.dump`.
fn is_dump(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    let number = name.strip_prefix(b"jit-").and_then(|rest| rest.strip_suffix(b".dump"));
    number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

/// The function of code that is in no file, by the sampled address.
pub(crate) fn named_code<'a>(
    kernel: &'a KernelCode,
    made: &'a MadeCode,
    sample: &Sample,
) -> Option<&'a Arc<Scope>> {
    match sample.mode {
        CpuMode::Kernel => kernel.find(sample.ip.0),
        CpuMode::User => made.find(sample.pid, sample.ip),
        CpuMode::Guest | CpuMode::Other | CpuMode::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(start: u64, name: &str) -> Names {
        let mut table = CodeTable::default();
        table.insert(start, 16, &"[jit]".into(), name.as_bytes());
        Names { table: Arc::new(table), is_cut: false }
    }

    fn sample(pid: i32, time_ns: u64) -> Sample {
        Sample { pid, time_ns, ..Sample::default() }
    }

    #[test]
    fn a_file_is_looked_at_once_a_second_while_code_has_no_name() {
        let (mut made, mut processes) = (MadeCode::default(), ProcessTable::default());
        let ip = Avma(0x1000);
        let needs = made.needs(&sample(7, 5), ip, &mut processes).unwrap();
        assert_eq!(needs.question, Question::CodeNames(NamesFormat::PerfMap));
        assert_eq!(made.needs(&sample(7, 5), ip, &mut processes), None, "not again at once");
        assert_eq!(made.needs(&sample(7, 1_000_000_005), ip, &mut processes), Some(needs));
        made.answer(7, needs.object, table(0x1000, "f"));
        assert_eq!(made.needs(&sample(7, 9_000_000_000), ip, &mut processes), None, "it is known");
        let function = made.find(7, Avma(0x100f)).and_then(|scope| scope.function.clone());
        assert_eq!(function.as_deref(), Some("f"));
        assert!(made.find(8, ip).is_none());
        // A child has the code of its parent; what is executed then has not.
        made.fork(&Fork { pid: 9, tid: 9, parent_pid: 7, parent_tid: 7, ..Fork::default() });
        assert!(made.find(9, ip).is_some());
        made.forget(9);
        assert!(made.find(9, ip).is_none());
    }

    #[test]
    fn a_dump_is_known_by_its_mapping() {
        for (path, expected) in [
            ("/tmp/jit-12.dump", true),
            ("/root/.debug/jit/java-jit-1/jit-1.dump", true),
            ("jit-.dump", false),
            ("/tmp/jit-1x.dump", false),
            ("/tmp/jit-1.dump/x", false),
            ("/tmp/xjit-1.dump", false),
        ] {
            assert_eq!(is_dump(path.as_bytes()), expected, "{path}");
        }
        let (mut made, mut processes) = (MadeCode::default(), ProcessTable::default());
        let mmap = Mmap {
            pid: 7,
            start: Avma(0x5000),
            len_bytes: 4096,
            is_executable: true,
            path: b"/tmp/jit-7.dump"[..].into(),
            ..Mmap::default()
        };
        processes.mmap(&mmap);
        made.mmap(&mmap, &processes);
        made.mmap(&mmap, &processes);
        let mut formats = Vec::new();
        while let Some(needs) = made.needs(&sample(7, 5), Avma(0x1000), &mut processes) {
            formats.push(needs.question);
        }
        let expected = [NamesFormat::JitDump, NamesFormat::PerfMap].map(Question::CodeNames);
        assert_eq!(formats, expected);
    }

    #[test]
    fn processes_are_bounded() {
        let (mut made, mut processes) = (MadeCode::default(), ProcessTable::default());
        for pid in 1..5_000 {
            made.needs(&sample(pid, 5), Avma(0x1000), &mut processes);
        }
        assert!(made.processes.len() <= limit::MAX_CODE_NAME_PROCESSES);
        assert_eq!(made.processes.len(), made.order.len());
    }

    #[test]
    fn names_of_all_processes_are_bounded_and_those_read_first_go_first() {
        let mut table = CodeTable::default();
        let mut start = 0x1000;
        while table.n_bytes() < limit::MAX_ALL_CODE_NAMES_BYTES / 5 * 2 {
            let name = format!("{start:x}{}", "f".repeat(limit::MAX_CODE_NAME_BYTES / 2));
            table.insert(start, 16, &"[jit]".into(), name.as_bytes());
            start += 16;
        }
        let table = Arc::new(table);
        let (mut made, mut processes) = (MadeCode::default(), ProcessTable::default());
        for pid in 1..=3 {
            let needs = made.needs(&sample(pid, 5), Avma(0x1000), &mut processes).unwrap();
            let names = Names { table: Arc::clone(&table), is_cut: false };
            made.answer(pid, needs.object, names);
        }
        let is_named = |pid| made.find(pid, Avma(0x1000)).is_some();
        assert_eq!([1, 2, 3].map(is_named), [false, true, true]);
    }
}
