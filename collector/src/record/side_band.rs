//! The records of a ring that are no samples: mappings, names, births, deaths, losses, and what else
//! the kernel tells.

use crate::record::decode::{Cursor, Endian, SampleLayout, cpu_mode, sample_id_time_ns};
use crate::record::ring::RawRecord;
use dataspace_proto::address::{Avma, FileOffset};
use dataspace_proto::record::{
    Cgroup, Comm, CpuMode, Exit, FileIdentity, Fork, KernelSymbol, Mmap, Namespace, Record,
};
use perf_event_open_sys::bindings as abi;

/// `PROT_EXEC` of MMAP2's `prot`.
const PROT_EXEC: u32 = 4;
/// Of MMAP2, where there is a build-id or an inode.
const IDENTITY_BYTES: u64 = 24;

/// Message of one record.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "it is taken apart at once, and boxing allocates")]
pub enum SideBand {
    /// Something for the analyzer, at its time.
    Record(Record),
    /// So many records found no room in the ring.
    Lost(u64),
    /// The kernel stopped (`true`) or let go again (`false`) the event with this stream id.
    Throttled {
        /// Its time.
        time_ns: u64,
        /// The event: its own id, not the one it inherited.
        stream_id: u64,
        /// Stopped, not let go.
        begins: bool,
    },
    /// A kind that came into the kernel after this program was written.
    Unknown(u32),
}

/// The last kind of `enum perf_event_type` that is known here, of Linux 6.19.
const LAST_KNOWN_KIND: u32 = abi::PERF_RECORD_CALLCHAIN_DEFERRED;

/// Tells whether records of this kind of the kernel's are known, if perhaps of no use.
///
/// Of no use are: `READ` (counts, which are read otherwise), `ITRACE_START`, `AUX_OUTPUT_HW_ID`
/// (of traces, which are not decoded), `SWITCH` (who runs when), `BPF_EVENT` (a program's number;
/// its code is told by `KSYMBOL`), `TEXT_POKE` (kernel code, which is not decoded),
/// `CALLCHAIN_DEFERRED` (call chains).
pub(crate) const fn is_known(kind: u32) -> bool {
    kind != 0 && kind <= LAST_KNOWN_KIND
}

/// Decodes a record that is not a sample. `None` for kinds we have no use for, and for records
/// too short to be what they say.
#[must_use]
pub fn decode(layout: &SampleLayout, raw: &RawRecord<'_>) -> Option<SideBand> {
    let mut cursor = Cursor::new(raw.payload, layout.endian);
    match raw.kind {
        abi::PERF_RECORD_LOST => {
            cursor.u64()?;
            Some(SideBand::Lost(cursor.u64()?))
        }
        abi::PERF_RECORD_THROTTLE | abi::PERF_RECORD_UNTHROTTLE => {
            let time_ns = cursor.u64()?;
            cursor.u64()?;
            let stream_id = cursor.u64()?;
            let begins = raw.kind == abi::PERF_RECORD_THROTTLE;
            Some(SideBand::Throttled { time_ns, stream_id, begins })
        }
        kind if !is_known(kind) => Some(SideBand::Unknown(kind)),
        _ => {
            // As in a recording, and as perf orders records: births and deaths have two times.
            let time_ns = sample_id_time_ns(layout, raw.payload);
            let time_ns = time_ns.or_else(|| own_time_ns(raw, layout.endian));
            task_record(raw, layout.endian, time_ns.unwrap_or(0)).map(SideBand::Record)
        }
    }
}

/// The time that a fork, an exit or a throttling tells itself, beside the one at the record's end.
pub(crate) fn own_time_ns(raw: &RawRecord<'_>, endian: Endian) -> Option<u64> {
    let mut cursor = Cursor::new(raw.payload, endian);
    match raw.kind {
        abi::PERF_RECORD_FORK | abi::PERF_RECORD_EXIT => cursor.take(16)?,
        abi::PERF_RECORD_THROTTLE | abi::PERF_RECORD_UNTHROTTLE => &[],
        _ => return None,
    };
    cursor.u64()
}

/// Decodes what is told of a task, of the kernel's code or of a control group, as of `time_ns`.
pub(crate) fn task_record(raw: &RawRecord<'_>, endian: Endian, time_ns: u64) -> Option<Record> {
    let mut cursor = Cursor::new(raw.payload, endian);
    match raw.kind {
        abi::PERF_RECORD_MMAP | abi::PERF_RECORD_MMAP2 => {
            let mmap = Mmap { time_ns, ..mmap(raw, &mut cursor)? };
            Some(Record::Mmap(Box::new(mmap)))
        }
        abi::PERF_RECORD_COMM => {
            let (pid, tid) = (cursor.task_id()?, cursor.task_id()?);
            let is_exec = has(raw, abi::PERF_RECORD_MISC_COMM_EXEC);
            let name = text(cursor.rest());
            Some(Record::Comm(Box::new(Comm { time_ns, pid, tid, is_exec, name })))
        }
        abi::PERF_RECORD_FORK | abi::PERF_RECORD_EXIT => {
            let (pid, parent_pid) = (cursor.task_id()?, cursor.task_id()?);
            let (tid, parent_tid) = (cursor.task_id()?, cursor.task_id()?);
            Some(if raw.kind == abi::PERF_RECORD_FORK {
                Record::Fork(Fork { time_ns, pid, tid, parent_pid, parent_tid })
            } else {
                Record::Exit(Exit { time_ns, pid, tid })
            })
        }
        abi::PERF_RECORD_NAMESPACES => namespace(&mut cursor, time_ns).map(Record::Namespace),
        abi::PERF_RECORD_CGROUP => {
            let cgroup = Cgroup { time_ns, id: cursor.u64()?, path: text(cursor.rest()) };
            Some(Record::Cgroup(Box::new(cgroup)))
        }
        abi::PERF_RECORD_KSYMBOL => {
            let (start, len_bytes) = (Avma(cursor.u64()?), cursor.u32()?);
            cursor.u16()?; // BPF, or code that was moved out of line
            let flags = u32::from(cursor.u16()?);
            let is_removed = flags & abi::PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER != 0;
            let name = text(cursor.rest());
            let symbol = KernelSymbol { time_ns, start, len_bytes, is_removed, name };
            Some(Record::KernelSymbol(Box::new(symbol)))
        }
        _ => None,
    }
}

/// The mount namespace of a process. The kernel tells of each thread; they have one for all, but
/// for a moment in `unshare`.
fn namespace(cursor: &mut Cursor<'_>, time_ns: u64) -> Option<Namespace> {
    let (pid, tid) = (cursor.task_id()?, cursor.task_id()?);
    let n_namespaces = cursor.u64()?;
    let mount = u64::from(abi::MNT_NS_INDEX);
    if pid != tid || n_namespaces <= mount {
        return None;
    }
    // Device and inode of each.
    cursor.take(mount * 16 + 8)?;
    Some(Namespace { time_ns, pid, mount: cursor.u64()? })
}

fn has(raw: &RawRecord<'_>, flag: u32) -> bool {
    u32::from(raw.misc) & flag != 0
}

fn mmap(raw: &RawRecord<'_>, cursor: &mut Cursor<'_>) -> Option<Mmap> {
    if matches!(cpu_mode(raw.misc), CpuMode::Guest | CpuMode::Other) {
        return None; // a guest's memory is not this machine's
    }
    let mut mmap = Mmap {
        pid: cursor.task_id()?,
        tid: cursor.task_id()?,
        start: Avma(cursor.u64()?),
        len_bytes: cursor.u64()?,
        file_offset: FileOffset(cursor.u64()?),
        is_executable: !has(raw, abi::PERF_RECORD_MISC_MMAP_DATA),
        ..Mmap::default()
    };
    if raw.kind == abi::PERF_RECORD_MMAP2 {
        let mut of_inode = *cursor;
        let field = cursor.take(IDENTITY_BYTES)?;
        let is_flagged = has(raw, abi::PERF_RECORD_MISC_MMAP_BUILD_ID);
        let of_build_id = is_flagged.then(|| build_id(field)).flatten();
        mmap.identity = of_build_id.or_else(|| inode(&mut of_inode))?;
        mmap.is_executable = cursor.u32()? & PROT_EXEC != 0;
        cursor.u32()?; // flags
    }
    mmap.path = text(cursor.rest());
    Some(mmap)
}

/// A build id: its size, three reserved bytes, and 20 bytes of which so many count and the rest are 0; `None`
/// if `field` is none. Linux (`perf_event_mmap_output()` in `kernel/events/core.c`, up to 6.18 at least) leaves
/// the flag set for the events after one that asked for build ids, and writes an inode for those that did
/// not.
fn build_id(field: &[u8]) -> Option<FileIdentity> {
    let (head, bytes) = field.split_at_checked(4)?;
    let (id, rest) = bytes.split_at_checked(usize::from(head[0]))?;
    if head[1..].iter().chain(rest).any(|&byte| byte != 0) {
        return None;
    }
    Some(if id.is_empty() { FileIdentity::None } else { FileIdentity::BuildId(id.into()) })
}

fn inode(cursor: &mut Cursor<'_>) -> Option<FileIdentity> {
    let (major, minor) = (cursor.u32()?, cursor.u32()?);
    let (inode, generation) = (cursor.u64()?, cursor.u64()?);
    // Anonymous memory has no inode.
    Some(match inode {
        0 => FileIdentity::None,
        _ => FileIdentity::Inode { major, minor, inode, generation },
    })
}

/// A text that ends with a zero byte, in front of the ids.
fn text(rest: &[u8]) -> Box<[u8]> {
    rest.split(|&byte| byte == 0).next().unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::decode::NATIVE;

    fn layout() -> SampleLayout {
        SampleLayout::of_fields(abi::PERF_SAMPLE_TIME)
    }

    fn mmap2_payload() -> Vec<u8> {
        assert_eq!(NATIVE, Endian::Little, "the bytes below are written for such a machine");
        let mut bytes = Vec::new();
        bytes.extend(7u32.to_le_bytes());
        bytes.extend(8u32.to_le_bytes());
        for word in [0x40_0000u64, 0x1000, 0x2000] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([3, 0, 0, 0]);
        bytes.extend([0xab; 3]);
        bytes.extend([0; 17]);
        bytes.extend(5u32.to_le_bytes());
        bytes.extend(2u32.to_le_bytes());
        bytes.extend(b"/a b (deleted)\0\0");
        bytes.extend(99u64.to_le_bytes());
        bytes
    }

    #[test]
    fn an_mmap2_has_its_build_id_path_and_time() {
        let payload = mmap2_payload();
        let misc = abi::PERF_RECORD_MISC_MMAP_BUILD_ID as u16;
        let raw = RawRecord { kind: abi::PERF_RECORD_MMAP2, misc, payload: &payload };
        let Some(SideBand::Record(Record::Mmap(mmap))) = decode(&layout(), &raw) else {
            panic!("an MMAP2 is a record");
        };
        assert_eq!((mmap.time_ns, mmap.pid, mmap.tid), (99, 7, 8));
        assert_eq!(&*mmap.path, b"/a b (deleted)");
        assert_eq!(mmap.identity, FileIdentity::BuildId([0xab; 3].into()));
        assert!(mmap.is_executable);
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn namespaces_control_groups_and_kernel_symbols_are_laid_out_as_the_kernel_says() {
        let record = |kind, payload: &[u8]| {
            task_record(&RawRecord { kind, misc: 0, payload }, Endian::Little, 5)
        };
        // pid 7, tid 7; seven pairs of device and inode: NET UTS IPC PID USER MNT CGROUP.
        let mut namespaces = vec![0x7_0000_0007, 7];
        namespaces.extend((0..7).flat_map(|index| [4, 0xf000_0000 + index]));
        let Some(Record::Namespace(namespace)) = record(16, &words(&namespaces)) else { panic!() };
        let expected = Namespace { time_ns: 5, pid: 7, mount: 0xf000_0005 };
        assert_eq!(namespace, expected);
        namespaces[0] = 0x8_0000_0007;
        assert!(record(16, &words(&namespaces)).is_none(), "of a thread");

        let mut cgroup = words(&[77]);
        cgroup.extend(b"/system.slice/a\0");
        let Some(Record::Cgroup(cgroup)) = record(19, &cgroup) else { panic!() };
        assert_eq!((cgroup.id, &*cgroup.path), (77, &b"/system.slice/a"[..]));

        // addr, len 0x40, type 1 (BPF), flags 0 or 1 (unregister), name.
        for (flags, is_removed) in [(0u64, false), (1, true)] {
            let mut symbol = words(&[0xffff_ffff_c000_1000, 0x40 | 1 << 32 | flags << 48]);
            symbol.extend(b"bpf_prog_a\0\0\0\0\0\0");
            let Some(Record::KernelSymbol(symbol)) = record(17, &symbol) else { panic!() };
            assert_eq!((symbol.start, symbol.len_bytes), (Avma(0xffff_ffff_c000_1000), 0x40));
            assert_eq!((&*symbol.name, symbol.is_removed), (&b"bpf_prog_a"[..], is_removed));
        }
    }

    #[test]
    fn kinds_that_are_not_known_are_told() {
        let raw = RawRecord { kind: 23, misc: 0, payload: &[0; 16] };
        assert!(matches!(decode(&layout(), &raw), Some(SideBand::Unknown(23))));
        for kind in 12..=22 {
            let raw = RawRecord { kind, misc: 0, payload: &[0; 16] };
            assert!(!matches!(decode(&layout(), &raw), Some(SideBand::Unknown(_))), "{kind}");
        }
    }

    #[test]
    fn every_cut_of_every_kind_is_no_panic() {
        let payload = mmap2_payload();
        for kind in 0..24 {
            for n in 0..payload.len() {
                let raw = RawRecord { kind, misc: u16::MAX, payload: &payload[..n] };
                let _ = decode(&layout(), &raw);
            }
        }
    }
}
