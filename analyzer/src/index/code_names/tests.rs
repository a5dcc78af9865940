//! Names from files written by hand, as the specifications lay them out.

use super::*;
use crate::bytes::file::{DebugFileQuery, FileError};
use dataspace_proto::address::Avma;
use dataspace_proto::reason::Reason;
use dataspace_proto::record::FileIdentity;
use proptest::prelude::*;
use std::sync::{Mutex, PoisonError};

/// A file that the test writes to, with its inode number.
#[derive(Clone, Default)]
struct Growing(Arc<Mutex<(Vec<u8>, u64)>>);

impl Growing {
    fn append(&self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.extend_from_slice(bytes);
    }

    fn replace(&self, bytes: &[u8], inode: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (bytes.to_vec(), inode);
    }
}

struct Now(Vec<u8>);

impl FileBytes for Now {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), FileError> {
        let start = offset as usize;
        let error = || FileError { offset, n_bytes: 0, cause: "end".to_owned() };
        buffer.copy_from_slice(self.0.get(start..start + buffer.len()).ok_or_else(error)?);
        Ok(())
    }
}

impl FileSource for Growing {
    fn load_object(&self, _: &LoadObjectKey) -> Result<Box<dyn FileBytes>, Reason> {
        Err(Reason::ObjectMissing)
    }

    fn debug_files(&self, _: &DebugFileQuery) -> Vec<Box<dyn FileBytes>> {
        Vec::new()
    }

    fn code_names(&self, _: &LoadObjectKey, _: NamesFormat) -> Option<NamesFile> {
        let (bytes, inode) = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (inode != 0).then(|| NamesFile { bytes: Box::new(Now(bytes)), inode })
    }
}

fn key() -> LoadObjectKey {
    LoadObjectKey {
        path: b"[jit]"[..].into(),
        identity: FileIdentity::None,
        pid: 7,
        range: (Avma(0), Avma(0)),
        mount_namespace: 0,
    }
}

/// A file, and who reads it.
struct Bench {
    file: Growing,
    names: CodeNames,
    format: NamesFormat,
}

impl Bench {
    fn new(format: NamesFormat, bytes: &[u8]) -> Self {
        let file = Growing::default();
        file.replace(bytes, 1);
        Self { file, names: CodeNames::default(), format }
    }

    fn name(&mut self, address: u64) -> Option<String> {
        let names = self.names.read(LoadObjectIdx(0), &key(), self.format, &self.file)?;
        names.table.find(address)?.function.as_ref().map(ToString::to_string)
    }
}

#[test]
fn lines_name_code_and_later_ones_win() {
    let mut bench = Bench::new(
        NamesFormat::PerfMap,
        b"1000 20 first\n1010 8 second one\n0x2000 0x10 third\nbroken\n3000 zz no\n4000 10\n5000 10 \n",
    );
    for (address, expected) in [
        (0x1000, Some("first")),
        (0x1010, Some("second one")),
        (0x1018, Some("first")),
        (0x1020, None),
        (0x200f, Some("third")),
        (0x3000, None),
        (0x4000, None),
        (0x5000, None),
    ] {
        assert_eq!(bench.name(address).as_deref(), expected, "{address:#x}");
    }
}

#[test]
fn what_is_added_is_read_and_a_line_only_when_it_is_whole() {
    let mut bench = Bench::new(NamesFormat::PerfMap, b"1000 10 a\n2000 10 b");
    assert_eq!(bench.name(0x1000).as_deref(), Some("a"));
    assert_eq!(bench.name(0x2000), None, "its name may go on");
    bench.file.append(b"cd\n");
    assert_eq!(bench.name(0x2000).as_deref(), Some("bcd"));
    bench.file.append(b"1000 10 again\n");
    assert_eq!(bench.name(0x1000).as_deref(), Some("again"));
    bench.file.replace(b"1000 10 new\n", 2);
    assert_eq!(bench.name(0x1000).as_deref(), Some("new"), "another file");
    assert_eq!(bench.name(0x2000), None, "of which nothing is left");
    bench.file.replace(b"", 2);
    assert_eq!(bench.name(0x1000), None, "cut short: it begins anew");
}

/// A jitdump in one of the two byte orders.
struct Dump {
    bytes: Vec<u8>,
    is_big_endian: bool,
}

impl Dump {
    fn new(is_big_endian: bool) -> Self {
        let mut dump = Self { bytes: Vec::new(), is_big_endian };
        // magic, version, total_size, elf_mach, pad, pid.
        for word in [0x4a69_5444, 1, 40, 62, 0, 7] {
            dump.u32(word);
        }
        dump.u64(1); // timestamp
        dump.u64(0); // flags
        dump
    }

    fn u32(&mut self, value: u32) {
        let bytes = if self.is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
        self.bytes.extend(bytes);
    }

    fn u64(&mut self, value: u64) {
        let bytes = if self.is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
        self.bytes.extend(bytes);
    }

    fn prefix(&mut self, id: u32, len: usize) {
        self.u32(id);
        self.u32(len as u32);
        self.u64(2);
    }

    fn load(&mut self, address: u64, code: &[u8], name: &str) {
        self.prefix(0, 16 + 40 + name.len() + 1 + code.len());
        self.u32(7);
        self.u32(7);
        for word in [address, address, code.len() as u64, 1] {
            self.u64(word);
        }
        self.bytes.extend(name.as_bytes());
        self.bytes.push(0);
        self.bytes.extend(code);
    }

    fn relocate(&mut self, from: u64, to: u64, len_bytes: u64) {
        self.prefix(1, 16 + 48);
        self.u32(7);
        self.u32(7);
        for word in [to, from, to, len_bytes, 1] {
            self.u64(word);
        }
    }
}

#[test]
fn a_dump_of_either_byte_order_names_code_that_is_loaded_and_moved() {
    for is_big_endian in [false, true] {
        let mut dump = Dump::new(is_big_endian);
        dump.load(0x1000, &[0x90; 32], "first");
        dump.prefix(4, 16 + 8); // unwinding information
        dump.u64(0);
        dump.load(0x2000, &[0x90; 300_000], "long");
        dump.relocate(0x1000, 0x9000, 32);
        let mut bench = Bench::new(NamesFormat::JitDump, &dump.bytes);
        assert_eq!(bench.name(0x1000), None);
        assert_eq!(bench.name(0x901f).as_deref(), Some("first"));
        assert_eq!(bench.name(0x2000 + 299_999).as_deref(), Some("long"));
        // A record is read when it is whole.
        let whole = dump.bytes.len();
        dump.load(0x1000, &[0x90; 16], "second");
        for n in whole..dump.bytes.len() {
            bench.file.replace(&dump.bytes[..n], 1);
            assert_eq!(bench.name(0x1000), None, "{n}");
        }
        bench.file.replace(&dump.bytes, 1);
        assert_eq!(bench.name(0x100f).as_deref(), Some("second"));
    }
}

#[test]
fn a_dump_that_is_none_and_a_record_without_length_end_the_reading() {
    assert_eq!(Bench::new(NamesFormat::JitDump, &[0xff; 100]).name(0), None);
    let mut dump = Dump::new(false);
    dump.load(0x1000, &[0x90; 32], "first");
    dump.bytes.extend([0; 64]);
    let mut bench = Bench::new(NamesFormat::JitDump, &dump.bytes);
    assert_eq!(bench.name(0x1000).as_deref(), Some("first"));
}

#[test]
fn names_are_bounded_and_the_cut_is_told() {
    let mut text = Vec::new();
    for number in 0..120_000u64 {
        text.extend(format!("{:x} 10 {}\n", number * 16, "x".repeat(300)).as_bytes());
    }
    let mut bench = Bench::new(NamesFormat::PerfMap, &text);
    let names = bench.names.read(LoadObjectIdx(0), &key(), bench.format, &bench.file).unwrap();
    assert!(names.is_cut);
    assert!(names.table.n_bytes() <= limit::MAX_CODE_NAMES_BYTES + 1024);
    // The files of many processes together.
    for object in 0..4 {
        bench.names.read(LoadObjectIdx(object), &key(), bench.format, &bench.file);
    }
    let n_bytes: usize = bench.names.readers.values().map(|reader| reader.table.n_bytes()).sum();
    assert!(n_bytes <= limit::MAX_ALL_CODE_NAMES_BYTES);
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400), is_dump: bool) {
        let format = if is_dump { NamesFormat::JitDump } else { NamesFormat::PerfMap };
        let mut dump = Dump::new(false);
        dump.bytes.extend(&bytes);
        Bench::new(format, if is_dump { &dump.bytes } else { &bytes }).name(0x1000);
    }
}
