//! Records that the recorder writes itself, in the kernel's form: what was there before the
//! session, where the kernel is, and the counts at the end.

use crate::perf_data::format::build_id::MAX_BUILD_ID_BYTES;
use crate::perf_data::format::bytes::Bytes;
use crate::perf_data::format::user_record::KERNEL_PID;
use crate::system::host::Kernel;
use dataspace_proto::record::{FileIdentity, Mmap, Record};
use perf_event_open_sys::bindings as abi;

/// `[kernel.kallsyms]` with the symbol that its address is of.
const KERNEL_PATH: &[u8] = b"[kernel.kallsyms]_text";
const PROT_READ: u32 = 1;
const PROT_EXEC: u32 = 4;
const MAP_PRIVATE: u32 = 2;

/// The `struct sample_id` at a record's end, of an event with this `sample_type`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trailer {
    pub(super) sample_type: u64,
    pub(super) pid: i32,
    pub(super) tid: i32,
    pub(super) time_ns: u64,
    /// 0 for a record that no event made.
    pub(super) id: u64,
}

impl Trailer {
    fn write(self, bytes: &mut Bytes) {
        let has = |field: abi::perf_event_sample_format| self.sample_type & u64::from(field) != 0;
        if has(abi::PERF_SAMPLE_TID) {
            bytes.i32(self.pid);
            bytes.i32(self.tid);
        }
        let words = [
            (abi::PERF_SAMPLE_TIME, self.time_ns),
            (abi::PERF_SAMPLE_ID, self.id),
            (abi::PERF_SAMPLE_STREAM_ID, 0),
            (abi::PERF_SAMPLE_CPU, 0),
            (abi::PERF_SAMPLE_IDENTIFIER, self.id),
        ];
        for (_, word) in words.into_iter().filter(|(field, _)| has(*field)) {
            bytes.u64(word);
        }
    }
}

/// Writes a mapping, a name, a birth or a death; what else there is in a session is no record of
/// the kernel's. `sample_type` is that of all events.
pub(super) fn write(bytes: &mut Bytes, record: &Record, sample_type: u64) {
    let time_ns = record.time_ns().unwrap_or(0);
    let trailer = |pid, tid| Trailer { sample_type, pid, tid, time_ns, id: 0 };
    match record {
        Record::Mmap(mmap) => mmap2(bytes, mmap, trailer(mmap.pid, mmap.tid)),
        Record::Comm(comm) => {
            let misc = if comm.is_exec { abi::PERF_RECORD_MISC_COMM_EXEC as u16 } else { 0 };
            bytes.record(abi::PERF_RECORD_COMM, misc, |bytes| {
                bytes.i32(comm.pid);
                bytes.i32(comm.tid);
                bytes.text(&comm.name);
                trailer(comm.pid, comm.tid).write(bytes);
            });
        }
        Record::Fork(fork) => task(
            bytes,
            abi::PERF_RECORD_FORK,
            [fork.pid, fork.parent_pid, fork.tid, fork.parent_tid],
            trailer(fork.parent_pid, fork.parent_tid),
        ),
        Record::Exit(exit) => task(
            bytes,
            abi::PERF_RECORD_EXIT,
            [exit.pid, exit.pid, exit.tid, exit.tid],
            trailer(exit.pid, exit.tid),
        ),
        Record::Namespace(namespace) => {
            bytes.record(abi::PERF_RECORD_NAMESPACES, 0, |bytes| {
                bytes.i32(namespace.pid);
                bytes.i32(namespace.pid);
                // Pairs of device and inode; 0 where only the mount namespace was looked at.
                bytes.u64(u64::from(abi::NR_NAMESPACES));
                for index in 0..abi::NR_NAMESPACES {
                    bytes.u64(0);
                    bytes.u64(if index == abi::MNT_NS_INDEX { namespace.mount } else { 0 });
                }
                trailer(namespace.pid, namespace.pid).write(bytes);
            });
        }
        _ => {}
    }
}

fn task(bytes: &mut Bytes, kind: u32, ids: [i32; 4], trailer: Trailer) {
    bytes.record(kind, 0, |bytes| {
        for id in ids {
            bytes.i32(id);
        }
        bytes.u64(trailer.time_ns);
        trailer.write(bytes);
    });
}

fn mmap2(bytes: &mut Bytes, mmap: &Mmap, trailer: Trailer) {
    let mut misc = abi::PERF_RECORD_MISC_USER;
    if !mmap.is_executable {
        misc |= abi::PERF_RECORD_MISC_MMAP_DATA;
    }
    if let FileIdentity::BuildId(_) = mmap.identity {
        misc |= abi::PERF_RECORD_MISC_MMAP_BUILD_ID;
    }
    bytes.record(abi::PERF_RECORD_MMAP2, misc as u16, |bytes| {
        bytes.i32(mmap.pid);
        bytes.i32(mmap.tid);
        bytes.u64(mmap.start.0);
        bytes.u64(mmap.len_bytes);
        bytes.u64(mmap.file_offset.0);
        match &mmap.identity {
            FileIdentity::BuildId(id) => build_id(bytes, id),
            &FileIdentity::Inode { major, minor, inode, generation } => {
                bytes.u32(major);
                bytes.u32(minor);
                bytes.u64(inode);
                bytes.u64(generation);
            }
            FileIdentity::None => bytes.bytes(&[0; 24]),
        }
        bytes.u32(if mmap.is_executable { PROT_READ | PROT_EXEC } else { PROT_READ });
        bytes.u32(MAP_PRIVATE);
        bytes.text(&mmap.path);
        trailer.write(bytes);
    });
}

/// `u8 size`, three bytes of nothing, 20 bytes.
fn build_id(bytes: &mut Bytes, id: &[u8]) {
    let id = &id[..id.len().min(MAX_BUILD_ID_BYTES)];
    bytes.bytes(&[id.len() as u8, 0, 0, 0]);
    bytes.bytes(id);
    bytes.bytes(&[0; MAX_BUILD_ID_BYTES][id.len()..]);
}

/// Places of the kernel and its modules: without them readers cannot place samples there.
pub(super) fn kernel(bytes: &mut Bytes, kernel: &Kernel, sample_type: u64) {
    let mut write = |start: u64, n_bytes: u64, file_offset: u64, path: &[u8]| {
        bytes.record(abi::PERF_RECORD_MMAP, abi::PERF_RECORD_MISC_KERNEL as u16, |bytes| {
            bytes.i32(KERNEL_PID);
            bytes.i32(0);
            bytes.u64(start);
            bytes.u64(n_bytes);
            bytes.u64(file_offset);
            bytes.text(path);
            Trailer { sample_type, pid: KERNEL_PID, ..Trailer::default() }.write(bytes);
        });
    };
    // The offset is the address of the symbol in the path.
    write(kernel.start, kernel.end - kernel.start, kernel.start, KERNEL_PATH);
    for module in &kernel.modules {
        write(module.start, module.n_bytes, 0, format!("[{}]", module.name).as_bytes());
    }
}

/// So many samples of the event with `trailer.id` found no room.
pub(super) fn lost_samples(bytes: &mut Bytes, n_lost: u64, trailer: Trailer) {
    bytes.record(abi::PERF_RECORD_LOST_SAMPLES, 0, |bytes| {
        bytes.u64(n_lost);
        trailer.write(bytes);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::decode::SampleLayout;
    use crate::record::ring::{Joint, RingReader};
    use crate::record::side_band::{self, SideBand};
    use dataspace_proto::address::{Avma, FileOffset};
    use dataspace_proto::record::{Comm, Exit, Fork};

    const IDS: u32 = abi::PERF_SAMPLE_IDENTIFIER
        | abi::PERF_SAMPLE_TID
        | abi::PERF_SAMPLE_TIME
        | abi::PERF_SAMPLE_CPU;

    fn back(bytes: &Bytes) -> Record {
        let layout = SampleLayout::of_fields(IDS);
        let mut joint = Joint::default();
        let mut reader = RingReader::new(&bytes.0, &[], &mut joint);
        let raw = reader.next().unwrap().unwrap();
        let Some(SideBand::Record(record)) = side_band::decode(&layout, &raw) else {
            panic!("{raw:?} is no record");
        };
        record
    }

    #[test]
    fn what_is_written_is_read_as_it_was() {
        let mmap = |identity, is_executable, path: &[u8]| {
            Record::Mmap(Box::new(Mmap {
                time_ns: 9,
                pid: 7,
                tid: 8,
                start: Avma(0x40_0000),
                len_bytes: 0x1000,
                file_offset: FileOffset(0x2000),
                is_executable,
                path: path.into(),
                identity,
            }))
        };
        let inode = FileIdentity::Inode { major: 8, minor: 1, inode: 77, generation: 5 };
        let name = b"a\xff b".to_vec().into();
        for record in [
            mmap(FileIdentity::BuildId([0xab; 20].into()), true, b"/a b (deleted)"),
            mmap(FileIdentity::BuildId([0xab; 3].into()), false, b"1234567"),
            mmap(inode, true, b"12345678"),
            mmap(FileIdentity::None, false, b"//anon"),
            Record::Comm(Box::new(Comm { time_ns: 9, pid: 1, tid: 2, is_exec: true, name })),
            Record::Fork(Fork { time_ns: 3, pid: 1, tid: 2, parent_pid: 3, parent_tid: 4 }),
            Record::Exit(Exit { time_ns: 3, pid: 1, tid: 2 }),
        ] {
            let mut bytes = Bytes::default();
            write(&mut bytes, &record, u64::from(IDS));
            assert_eq!(format!("{:?}", back(&bytes)), format!("{record:?}"));
        }
    }
}
