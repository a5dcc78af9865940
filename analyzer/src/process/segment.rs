//! Kinds of memory that addresses are in: text, data, heap, stack.

use crate::process::recent::DataSpan;
use crate::process::table::{DataObjectAt, ProcessTable};
use dataspace_proto::address::Avma;
use dataspace_proto::memory::MemorySegment;
use dataspace_proto::record::{Mmap, Sample};
use dataspace_proto::register::Register;

/// Beginnings of the names that the kernel gives to mappings of shared memory (`shmem_kernel_file_setup()`, `newseg()` and
/// `memfd_create()` in Linux), and of the directory of POSIX's.
const SHARED: [&[u8]; 4] = [b"/dev/shm/", b"/SYSV", b"/memfd:", b"/dev/zero"];

/// Beginnings of names with a slash that memory without a file has: perf's own, and of huge pages (`hugetlb_file_setup()`).
const ANONYMOUS: [&[u8]; 2] = [b"//anon", b"/anon_hugepage"];

/// Kind of memory that a mapping is, by its name.
pub(crate) fn of_mapping(mmap: &Mmap) -> MemorySegment {
    let is_named = |names: &[&[u8]]| names.iter().any(|name| mmap.path.starts_with(name));
    if is_named(&[b"[heap]"]) {
        MemorySegment::Heap
    } else if is_named(&[b"[stack"]) {
        MemorySegment::Stack
    } else if is_named(&SHARED) {
        MemorySegment::Shared
    } else if mmap.is_executable {
        MemorySegment::Text
    } else if mmap.path.first() == Some(&b'/') && !is_named(&ANONYMOUS) {
        MemorySegment::Data
    } else {
        MemorySegment::Anonymous
    }
}

impl ProcessTable {
    /// Kind of memory that `addr` of a sample's process is in; `None` where nothing is known to be mapped there.
    pub(crate) fn segment(&mut self, sample: &Sample, addr: Avma) -> Option<MemorySegment> {
        match addr.is_user() {
            true => self.mapped_data(sample, addr).1,
            false => Some(MemorySegment::Kernel),
        }
    }

    /// The load object whose segments hold `addr`, an address of a sample's process, and the kind of memory.
    // In line: what is written elsewhere and then copied here would wait for itself.
    #[inline(always)]
    pub(crate) fn mapped_data(
        &mut self,
        sample: &Sample,
        addr: Avma,
    ) -> (DataObjectAt, Option<MemorySegment>) {
        // The stack of another thread than the first is mapped as any memory without a file is.
        let is_stack = |span: &DataSpan| {
            let sp = sample.registers_of_user().get(Register::Rsp);
            sp.is_some_and(|sp| (span.start..span.end).contains(&sp))
        };
        let segment = |span: &DataSpan| match span.segment {
            Some(MemorySegment::Anonymous) if is_stack(span) => Some(MemorySegment::Stack),
            segment => segment,
        };
        self.data_around(sample.pid, addr, |span| (span.answer, segment(span)))
            .unwrap_or((DataObjectAt::None, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::address::FileOffset;

    fn mmap(start: u64, path: &str, is_executable: bool) -> Mmap {
        Mmap {
            pid: 1,
            start: Avma(start),
            len_bytes: 0x1000,
            file_offset: FileOffset(0),
            is_executable,
            path: path.as_bytes().into(),
            ..Mmap::default()
        }
    }

    #[test]
    fn names_of_mappings_tell_what_they_are() {
        for (path, is_executable, expected) in [
            ("/usr/bin/cat", true, MemorySegment::Text),
            ("/usr/bin/cat", false, MemorySegment::Data),
            ("[heap]", false, MemorySegment::Heap),
            ("[stack]", false, MemorySegment::Stack),
            ("[vdso]", true, MemorySegment::Text),
            ("//anon", false, MemorySegment::Anonymous),
            ("", false, MemorySegment::Anonymous),
            ("/dev/shm/ring (deleted)", false, MemorySegment::Shared),
            ("/SYSV00000000 (deleted)", false, MemorySegment::Shared),
            ("/memfd:pool (deleted)", false, MemorySegment::Shared),
            ("/dev/zero (deleted)", false, MemorySegment::Shared),
        ] {
            assert_eq!(of_mapping(&mmap(0, path, is_executable)), expected, "{path}");
        }
    }

    #[test]
    fn the_mapping_that_the_stack_pointer_is_in_is_a_stack() {
        let mut table = ProcessTable::default();
        table.mmap(&mmap(0x10_0000, "//anon", false));
        table.mmap(&mmap(0x20_0000, "//anon", false));
        table.mmap(&mmap(0xffff_ffff_ff60_0000, "[vsyscall]", true));
        let mut sample = Sample { pid: 1, ip: Avma(0x1000), ..Sample::default() };
        sample.registers.set(Register::Rsp, 0x10_0800);
        let mut of = |addr| table.segment(&sample, Avma(addr));
        for _ in 0..2 {
            assert_eq!(of(0x10_0010), Some(MemorySegment::Stack));
            assert_eq!(of(0x20_0010), Some(MemorySegment::Anonymous));
            assert_eq!(of(0x30_0010), None, "nothing is there");
            assert_eq!(of(0xffff_8000_0000_0000), Some(MemorySegment::Kernel));
            assert_eq!(of(0xffff_ffff_ff60_0010), Some(MemorySegment::Kernel));
        }
    }
}
