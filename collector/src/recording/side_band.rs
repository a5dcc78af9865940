//! Mappings, names, births and deaths of a recording, whose build-ids may stand elsewhere in it.

use super::build_id::BuildIds;
use crate::decode::{Endian, cpu_mode};
use crate::ring::RawRecord;
use crate::side_band;
use dataspace_proto::record::{FileIdentity, Record};

/// Reads a side-band record that happened at `time_ns`; `None` if it is another one or damaged.
pub(super) fn parse(
    raw: &RawRecord<'_>,
    endian: Endian,
    time_ns: u64,
    build_ids: &BuildIds,
) -> Option<Record> {
    let mut record = side_band::task_record(raw, endian, time_ns)?;
    if let Record::Mmap(mmap) = &mut record
        && let FileIdentity::None | FileIdentity::Inode { .. } = mmap.identity
        && let Some(build_id) = build_ids.get(cpu_mode(raw.misc), &mmap.path)
    {
        mmap.identity = FileIdentity::BuildId(build_id.into());
    }
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::record::Mmap;
    use perf_event_open_sys::bindings as abi;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn mmap_of(kind: u32, misc: u32, payload: &[u8]) -> Mmap {
        let record = RawRecord { kind, misc: misc as u16, payload };
        match parse(&record, Endian::Little, 9, &BuildIds::default()) {
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

        payload[32] = 3;
        payload[36..39].copy_from_slice(&[0xa, 0xb, 0xc]);
        let misc = abi::PERF_RECORD_MISC_USER | abi::PERF_RECORD_MISC_MMAP_BUILD_ID;
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
    fn an_oversized_build_id_is_cut_to_its_field() {
        let mut payload = words(&[1, 0, 0x1000, 0, 0xff, 0, 0, 5]);
        payload.extend(b"x\0");
        let mmap = mmap_of(abi::PERF_RECORD_MMAP2, abi::PERF_RECORD_MISC_MMAP_BUILD_ID, &payload);
        assert_eq!(mmap.identity, FileIdentity::BuildId([0; 20].into()));
    }
}
