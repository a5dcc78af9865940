//! Mappings and task births, names and ends.
//!
//! Source: Linux `include/uapi/linux/perf_event.h`, `enum perf_event_type`.

use super::build_id::{BuildIds, until_nul};
use super::event_stream::RawRecord;
use crate::decode::{Cursor, Endian, cpu_mode};
use dataspace_proto::address::{Avma, FileOffset};
use dataspace_proto::record::{Comm, CpuMode, Exit, FileIdentity, Fork, Mmap, Record};
use perf_event_open_sys::bindings as abi;

/// The build-id field of MMAP2 has room for a SHA-1.
const MAX_BUILD_ID_LEN: u64 = 20;

/// The time that a fork, an exit or a throttling tells itself, beside the one at the record's end.
pub(super) fn own_time_ns(record: &RawRecord<'_>, endian: Endian) -> Option<u64> {
    let mut cursor = Cursor::new(record.payload, endian);
    match record.kind {
        abi::PERF_RECORD_FORK | abi::PERF_RECORD_EXIT => cursor.take(16)?,
        abi::PERF_RECORD_THROTTLE | abi::PERF_RECORD_UNTHROTTLE => &[],
        _ => return None,
    };
    cursor.u64()
}

/// Reads a side-band record that happened at `time_ns`; `None` if it is another one or damaged.
pub(super) fn parse(
    record: &RawRecord<'_>,
    endian: Endian,
    time_ns: u64,
    build_ids: &BuildIds,
) -> Option<Record> {
    let cursor = Cursor::new(record.payload, endian);
    match record.kind {
        abi::PERF_RECORD_MMAP | abi::PERF_RECORD_MMAP2 => {
            let mut mmap = mmap(record, cursor)?;
            mmap.time_ns = time_ns;
            if let FileIdentity::None | FileIdentity::Inode { .. } = mmap.identity
                && let Some(build_id) = build_ids.get(cpu_mode(record.misc), &mmap.path)
            {
                mmap.identity = FileIdentity::BuildId(build_id.into());
            }
            Some(Record::Mmap(Box::new(mmap)))
        }
        abi::PERF_RECORD_COMM => comm(record.misc, cursor, time_ns),
        abi::PERF_RECORD_FORK => fork(cursor, time_ns),
        abi::PERF_RECORD_EXIT => exit(cursor, time_ns),
        _ => None,
    }
}

fn has(misc: u16, flag: u32) -> bool {
    u32::from(misc) & flag != 0
}

fn mmap(record: &RawRecord<'_>, mut cursor: Cursor<'_>) -> Option<Mmap> {
    if cpu_mode(record.misc) == CpuMode::Other {
        return None; // a guest's memory is not this machine's
    }
    let mut mmap = Mmap {
        pid: cursor.task_id()?,
        tid: cursor.task_id()?,
        start: Avma(cursor.u64()?),
        len_bytes: cursor.u64()?,
        file_offset: FileOffset(cursor.u64()?),
        is_executable: !has(record.misc, abi::PERF_RECORD_MISC_MMAP_DATA),
        ..Mmap::default()
    };
    if record.kind == abi::PERF_RECORD_MMAP2 {
        mmap.identity = identity(record.misc, &mut cursor)?;
        cursor.take(8)?; // prot, flags
    }
    mmap.path = until_nul(cursor.rest()).into();
    Some(mmap)
}

/// The 24 bytes of MMAP2 that hold either an inode or a build-id.
fn identity(misc: u16, cursor: &mut Cursor<'_>) -> Option<FileIdentity> {
    if has(misc, abi::PERF_RECORD_MISC_MMAP_BUILD_ID) {
        let field = cursor.take(4 + MAX_BUILD_ID_LEN)?;
        let (&len, rest) = field.split_first()?;
        let build_id = rest.get(3..)?.get(..len.min(MAX_BUILD_ID_LEN as u8).into())?;
        return Some(match build_id {
            [] => FileIdentity::None,
            build_id => FileIdentity::BuildId(build_id.into()),
        });
    }
    let (major, minor) = (cursor.u32()?, cursor.u32()?);
    let (inode, generation) = (cursor.u64()?, cursor.u64()?);
    Some(match inode {
        0 => FileIdentity::None,
        _ => FileIdentity::Inode { major, minor, inode, generation },
    })
}

fn comm(misc: u16, mut cursor: Cursor<'_>, time_ns: u64) -> Option<Record> {
    Some(Record::Comm(Box::new(Comm {
        time_ns,
        pid: cursor.task_id()?,
        tid: cursor.task_id()?,
        is_exec: has(misc, abi::PERF_RECORD_MISC_COMM_EXEC),
        name: until_nul(cursor.rest()).into(),
    })))
}

fn fork(mut cursor: Cursor<'_>, time_ns: u64) -> Option<Record> {
    let (pid, parent_pid) = (cursor.task_id()?, cursor.task_id()?);
    let (tid, parent_tid) = (cursor.task_id()?, cursor.task_id()?);
    Some(Record::Fork(Fork { time_ns, pid, tid, parent_pid, parent_tid }))
}

fn exit(mut cursor: Cursor<'_>, time_ns: u64) -> Option<Record> {
    let (pid, _parent_pid, tid) = (cursor.task_id()?, cursor.task_id()?, cursor.task_id()?);
    Some(Record::Exit(Exit { time_ns, pid, tid }))
}

#[cfg(test)]
mod tests {
    use super::*;

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
