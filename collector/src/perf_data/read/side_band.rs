//! Facts about a mapping or a namespace that a recording tells elsewhere than in the record itself.

use super::build_id::KnownBuildIds;
use super::home::Home;
use crate::perf_data::format::user_record::KERNEL_PID;
use dataspace_proto::record::{CpuMode, FileIdentity, Mmap, Record};

/// Completes a record when its time has come.
pub(super) fn complete(record: &mut Record, home: &mut Home, build_ids: &KnownBuildIds) {
    match record {
        Record::Namespace(namespace) => home.seen(namespace),
        Record::Fork(fork) => home.born(fork),
        // The recorder reads build-ids at its end, by path: of a process in another mount namespace,
        // if that is over by then, from the file that the path means to itself.
        Record::Mmap(mmap) if !home.is_elsewhere(mmap.pid) => identify(mmap, build_ids),
        _ => {}
    }
}

fn identify(mmap: &mut Mmap, build_ids: &KnownBuildIds) {
    let mode = if mmap.pid == KERNEL_PID { CpuMode::Kernel } else { CpuMode::User };
    if let FileIdentity::None | FileIdentity::Inode { .. } = mmap.identity
        && let Some(build_id) = build_ids.get(mode, &mmap.path)
    {
        mmap.identity = FileIdentity::BuildId(build_id.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::decode::Endian;
    use crate::record::ring::RawRecord;
    use crate::record::side_band::task_record;
    use dataspace_proto::record::{Fork, Namespace};
    use perf_event_open_sys::bindings as abi;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn mmap_of(kind: u32, misc: u32, payload: &[u8]) -> Mmap {
        let record = RawRecord { kind, misc: misc as u16, payload };
        match task_record(&record, Endian::Little, 9) {
            Some(Record::Mmap(mmap)) => *mmap,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn mmap2_names_its_file_by_inode_or_by_build_id() {
        let mut payload = words(&[0x2_0000_0001, 0x400000, 0x1000, 0, 0x1_0000_0008, 77, 5, 5]);
        payload.extend(b"/bin/true\0\0\0\0\0\0\0");
        let mmap = mmap_of(abi::PERF_RECORD_MMAP2, abi::PERF_RECORD_MISC_USER, &payload);
        assert_eq!((mmap.pid, mmap.tid, mmap.time_ns), (1, 2, 9));
        assert_eq!(&*mmap.path, b"/bin/true");
        assert!(mmap.is_executable);
        let inode = FileIdentity::Inode { major: 8, minor: 1, inode: 77, generation: 5 };
        assert_eq!(mmap.identity, inode);

        // The kernel may leave the flag set where there is no build id.
        let misc = abi::PERF_RECORD_MISC_USER | abi::PERF_RECORD_MISC_MMAP_BUILD_ID;
        assert_eq!(mmap_of(abi::PERF_RECORD_MMAP2, misc, &payload).identity, inode);
        payload[32..56].fill(0);
        payload[32] = 3;
        payload[36..39].copy_from_slice(&[0xa, 0xb, 0xc]);
        let mmap = mmap_of(abi::PERF_RECORD_MMAP2, misc, &payload);
        assert_eq!(mmap.identity, FileIdentity::BuildId([0xa, 0xb, 0xc].into()));
    }

    #[test]
    fn a_kernel_mapping_has_no_process_and_data_cannot_be_executed() {
        let mut payload = words(&[0xffff_ffff, 0, 0x1000, 0]);
        payload.extend(b"[kernel.kallsyms]_text\0");
        let misc = abi::PERF_RECORD_MISC_KERNEL | abi::PERF_RECORD_MISC_MMAP_DATA;
        let mmap = mmap_of(abi::PERF_RECORD_MMAP, misc, &payload);
        assert_eq!(mmap.pid, -1);
        assert!(!mmap.is_executable);
    }

    #[test]
    fn an_oversized_build_id_is_an_inode() {
        let mut payload = words(&[1, 0, 0x1000, 0, 1 << 32 | 0xff, 77, 0, 5]);
        payload.extend(b"x\0");
        let mmap = mmap_of(abi::PERF_RECORD_MMAP2, abi::PERF_RECORD_MISC_MMAP_BUILD_ID, &payload);
        let inode = FileIdentity::Inode { major: 255, minor: 1, inode: 77, generation: 0 };
        assert_eq!(mmap.identity, inode);
    }

    #[test]
    fn build_ids_by_path_are_those_of_the_recorders_own_namespace() {
        let mut build_ids = KnownBuildIds::default();
        let mut entry = vec![0xff; 4];
        entry.extend([7; 20]);
        entry.extend([20, 0, 0, 0]);
        entry.extend(b"/bin/a\0");
        build_ids.add_record(2, &entry, Endian::Little);
        let mut home = Home::default();
        let mut identity = |record: Record| {
            let mut record = record;
            complete(&mut record, &mut home, &build_ids);
            match record {
                Record::Mmap(mmap) => Some(mmap.identity),
                _ => None,
            }
        };
        let mmap = |pid| {
            let path = b"/bin/a"[..].into();
            Record::Mmap(Box::new(Mmap { pid, path, ..Mmap::default() }))
        };
        let known = Some(FileIdentity::BuildId([7; 20].into()));
        assert_eq!(identity(mmap(5)), known);
        identity(Record::Namespace(Namespace { time_ns: 1, pid: 5, mount: 0xf000_4711 }));
        identity(Record::Fork(Fork { pid: 6, tid: 6, parent_pid: 5, ..Fork::default() }));
        assert_eq!(identity(mmap(5)), Some(FileIdentity::None));
        assert_eq!(identity(mmap(6)), Some(FileIdentity::None), "a child is where its parent is");
        assert_eq!(identity(mmap(7)), known);
    }
}
