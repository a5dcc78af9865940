//! The addresses of thread-local variables for the threads of each process, as far as samples told.

use crate::bytes::file::LoadObjectIdx;
use crate::elf::thread_block::ThreadBlock;
use crate::limit;
use dataspace_proto::address::Avma;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A load object with thread-local variables.
pub(crate) type Module = (LoadObjectIdx, ThreadBlock);

/// One thread's block of one load object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    end: Avma,
    tid: i32,
    object: LoadObjectIdx,
}

/// Bases and blocks that were learned.
#[derive(Debug, Default)]
pub(crate) struct ThreadStorage {
    /// Process and base, by thread.
    bases: FxHashMap<i32, (i32, u64)>,
    /// By process and first address, so that an address of any thread is found at once.
    blocks: FxHashMap<i32, BTreeMap<Avma, Block>>,
    /// The program that each process runs.
    programs: FxHashMap<i32, Module>,
}

impl ThreadStorage {
    /// The base of a thread's storage.
    pub(crate) fn base(&self, tid: i32) -> Option<u64> {
        self.bases.get(&tid).map(|(_, base)| *base)
    }

    /// The program of process `pid`, if it has thread-local variables.
    pub(crate) fn program(&self, pid: i32) -> Option<Module> {
        self.programs.get(&pid).copied()
    }

    /// Notes which program a process runs: its block has a fixed place in every thread.
    pub(crate) fn set_program(&mut self, pid: i32, program: Module) {
        if self.programs.insert(pid, program) == Some(program) {
            return;
        }
        let threads: Vec<(i32, u64)> = self
            .bases
            .iter()
            .filter(|(_, (of, _))| *of == pid)
            .map(|(tid, (_, base))| (*tid, *base))
            .collect();
        for (tid, base) in threads {
            self.place_program(pid, tid, base);
        }
    }

    /// Learns the base of a thread's storage.
    pub(crate) fn learn_base(&mut self, pid: i32, tid: i32, base: u64) {
        if self.base(tid) == Some(base) {
            return;
        }
        self.forget_thread(pid, tid);
        if self.bases.len() >= limit::MAX_THREAD_BASES {
            self.bases.clear();
            self.blocks.clear();
        }
        self.bases.insert(tid, (pid, base));
        self.place_program(pid, tid, base);
    }

    /// Learns where a thread has its block of a load object.
    pub(crate) fn learn_block(&mut self, pid: i32, tid: i32, module: Module, start: Avma) {
        let blocks = self.blocks.entry(pid).or_default();
        let end = Avma(start.0.saturating_add(module.1.len_bytes));
        let block = Block { end, tid, object: module.0 };
        if blocks.get(&start) == Some(&block) {
            return;
        }
        if blocks.len() >= limit::MAX_THREAD_BLOCKS {
            blocks.clear();
        }
        // What was there before, or was thought to be elsewhere, is not there any more.
        blocks.retain(|at, old| {
            let is_apart = old.end <= start || end <= *at;
            is_apart && (old.tid, old.object) != (tid, module.0)
        });
        blocks.insert(start, block);
    }

    /// The load object whose block, of any thread of process `pid`, holds `avma`, and the offset
    /// in it.
    pub(crate) fn find(&self, pid: i32, avma: Avma) -> Option<(LoadObjectIdx, u64)> {
        let (start, block) = self.blocks.get(&pid)?.range(..=avma).next_back()?;
        (avma < block.end).then_some((block.object, avma.0 - start.0))
    }

    /// Forgets a thread: it ended, or what was learned of it was wrong.
    pub(crate) fn forget_thread(&mut self, pid: i32, tid: i32) {
        self.bases.remove(&tid);
        if let Some(blocks) = self.blocks.get_mut(&pid) {
            blocks.retain(|_, block| block.tid != tid);
        }
    }

    /// Forgets a process: it runs another program, or none.
    pub(crate) fn forget_process(&mut self, pid: i32) {
        self.programs.remove(&pid);
        self.blocks.remove(&pid);
        self.bases.retain(|_, (of, _)| *of != pid);
    }

    fn place_program(&mut self, pid: i32, tid: i32, base: u64) {
        let Some(program) = self.program(pid) else { return };
        let start = program.1.below_base.and_then(|below| base.checked_sub(below));
        if let Some(start) = start {
            self.learn_block(pid, tid, program, Avma(start));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: Module =
        (LoadObjectIdx(0), ThreadBlock { len_bytes: 0x14, below_base: Some(0x20) });
    const LIBRARY: Module = (LoadObjectIdx(1), ThreadBlock { len_bytes: 0x40, below_base: None });

    #[test]
    fn every_threads_block_is_found_until_it_ends() {
        let mut storage = ThreadStorage::default();
        storage.learn_base(1, 10, 0x1000);
        assert_eq!(storage.find(1, Avma(0xfe0)), None, "the program is not known yet");
        storage.set_program(1, PROGRAM);
        storage.learn_base(1, 11, 0x2000);
        storage.learn_block(1, 11, LIBRARY, Avma(0x5000));
        let find = |storage: &ThreadStorage, at| storage.find(1, Avma(at));
        assert_eq!(find(&storage, 0xfe0), Some((LoadObjectIdx(0), 0)));
        assert_eq!(find(&storage, 0x1ff3), Some((LoadObjectIdx(0), 0x13)));
        assert_eq!(find(&storage, 0x1ff4), None, "between the block and the base");
        assert_eq!(find(&storage, 0x503f), Some((LoadObjectIdx(1), 0x3f)));
        assert_eq!(storage.find(2, Avma(0xfe0)), None, "another process");
        storage.forget_thread(1, 11);
        assert_eq!((find(&storage, 0x5000), find(&storage, 0x1fe0)), (None, None));
        assert!(find(&storage, 0xfe0).is_some());
        storage.forget_process(1);
        assert_eq!((find(&storage, 0xfe0), storage.base(10)), (None, None));
    }

    #[test]
    fn a_base_that_moves_takes_its_block_along() {
        let mut storage = ThreadStorage::default();
        storage.set_program(1, PROGRAM);
        storage.learn_base(1, 10, 0x1000);
        storage.learn_base(1, 10, 0x3000);
        assert_eq!(storage.find(1, Avma(0xfe0)), None);
        assert!(storage.find(1, Avma(0x2fe0)).is_some());
    }
}
