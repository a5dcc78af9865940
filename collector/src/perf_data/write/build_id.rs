//! The table of build-ids at a recording's end, gathered from the mappings that passed.

use super::file_note::{self, FileNotes, Mapped};
use crate::perf_data::format::build_id::{
    FIELD_BYTES, KERNEL, MAX_BUILD_ID_BYTES, MISC_HAS_LEN, NAME_ALIGN,
};
use crate::perf_data::format::bytes::Bytes;
use crate::perf_data::format::user_record::HEADER_BUILD_ID;
use crate::record::decode::{Cursor, NATIVE};
use crate::record::ring::{HEADER_BYTES, RawRecord};
use perf_event_open_sys::bindings as abi;
use std::collections::BTreeMap;

/// More files than a machine executes code from in one session; each takes some 100 bytes.
const MAX_FILES: usize = 1 << 16;
/// In an MMAP2: pid, tid, address, length and offset come before.
const IDENTITY_AT: usize = 32;
const PROT_EXEC: u32 = 4;
/// The name that the kernel gives the vdso's mapping.
const VDSO: &[u8] = b"[vdso]";

/// Files by path; of two that had one path, the later.
#[derive(Debug)]
pub(super) struct BuildIdTable {
    by_path: BTreeMap<Box<[u8]>, BuildId>,
    kernel: Option<BuildId>,
    /// Those of which the kernel told none.
    notes: FileNotes,
    /// The table's length, if all of those are answered.
    n_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BuildId {
    bytes: [u8; MAX_BUILD_ID_BYTES],
    len: u8,
}

impl BuildId {
    /// `None` for an empty one.
    fn new(bytes: &[u8]) -> Option<Self> {
        let len = bytes.len().min(MAX_BUILD_ID_BYTES);
        let mut id = Self { len: len as u8, ..Self::default() };
        id.bytes[..len].copy_from_slice(&bytes[..len]);
        (len > 0).then_some(id)
    }
}

impl BuildIdTable {
    pub(super) fn new() -> Self {
        Self { by_path: BTreeMap::new(), kernel: None, notes: FileNotes::new(), n_bytes: 0 }
    }

    /// The kernel's own.
    pub(super) fn set_kernel(&mut self, id: &[u8]) {
        self.kernel = BuildId::new(id);
        self.n_bytes += entry_bytes(KERNEL);
    }

    /// The most that the table takes.
    pub(super) const fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// Takes note of an MMAP2 of code; if it has no build-id, its file may.
    pub(super) fn see(&mut self, raw: &RawRecord<'_>) {
        if raw.kind == abi::PERF_RECORD_MMAP2 {
            let has_build_id = u32::from(raw.misc) & abi::PERF_RECORD_MISC_MMAP_BUILD_ID != 0;
            self.add(raw.payload, has_build_id);
        }
    }

    fn add(&mut self, payload: &[u8], has_build_id: bool) -> Option<()> {
        let (field, rest) = payload.get(IDENTITY_AT..)?.split_at_checked(FIELD_BYTES)?;
        let mut cursor = Cursor::new(rest, NATIVE);
        let prot = cursor.u32()?;
        cursor.u32()?; // flags
        let path = cursor.rest().split(|&byte| byte == 0).next().unwrap_or_default();
        if prot & PROT_EXEC == 0 {
            return None;
        }
        if !has_build_id {
            return self.ask(payload, field, path);
        }
        let id = BuildId::new(field.get(4..4 + usize::from(field[0]))?)?;
        self.insert(path.into(), id);
        Some(())
    }

    fn insert(&mut self, path: Box<[u8]>, id: BuildId) {
        if let Some(known) = self.by_path.get_mut(&path) {
            *known = id;
        } else if self.by_path.len() < MAX_FILES {
            self.n_bytes += entry_bytes(&path);
            self.by_path.insert(path, id);
        }
    }

    /// Has the file at `path` looked at, which the mapping in `payload` is of, by its inode.
    fn ask(&mut self, payload: &[u8], field: &[u8], path: &[u8]) -> Option<()> {
        if path == VDSO && !self.by_path.contains_key(path) {
            let id = BuildId::new(&file_note::of_vdso()?)?;
            self.insert(path.into(), id);
            return Some(());
        }
        // What else is in no file has another name: `//anon`.
        if !path.starts_with(b"/") || path.starts_with(b"//") {
            return None;
        }
        let mut cursor = Cursor::new(payload, NATIVE);
        let pid = cursor.task_id()?;
        cursor.task_id()?;
        let start = cursor.u64()?;
        let end = start.checked_add(cursor.u64()?)?;
        let inode = Cursor::new(field.get(8..)?, NATIVE).u64()?;
        if self.notes.ask(Mapped { pid, start, end, inode, path: path.into() }, MAX_FILES) {
            self.n_bytes += entry_bytes(path);
        }
        Some(())
    }

    /// Takes in what files had to say: no more than that is known. What the kernel told came later.
    pub(super) fn finish(&mut self) {
        for (path, id) in self.notes.finish() {
            if let Some(id) = BuildId::new(&id) {
                self.by_path.entry(path).or_insert(id);
            }
        }
    }

    /// Writes the table: a sequence of records.
    pub(super) fn write(&self, bytes: &mut Bytes) {
        let kernel = self.kernel.iter().map(|id| (KERNEL, id, true));
        let files = self.by_path.iter().map(|(path, id)| (&**path, id, false));
        for (path, id, is_kernel) in kernel.chain(files) {
            let mode =
                if is_kernel { abi::PERF_RECORD_MISC_KERNEL } else { abi::PERF_RECORD_MISC_USER };
            bytes.record(HEADER_BUILD_ID, mode as u16 | MISC_HAS_LEN, |bytes| {
                bytes.i32(-1); // of the host
                bytes.bytes(&id.bytes);
                bytes.bytes(&[id.len, 0, 0, 0]);
                // With what comes before, which perf leaves at 36 bytes; perf 7.2 refuses a pipe in
                // which such a record is not a multiple of 8.
                let n_bytes = (path.len() + 1).next_multiple_of(NAME_ALIGN) + 4;
                let end = bytes.0.len() + n_bytes;
                bytes.bytes(path);
                bytes.0.resize(end, 0);
            });
        }
    }
}

/// The most that a record of so many bytes, which holds the path, adds to the table.
pub(super) const fn most_bytes(n_record_bytes: usize) -> u64 {
    (n_record_bytes + NAME_ALIGN) as u64
}

/// Bytes of a file in the table.
const fn entry_bytes(path: &[u8]) -> u64 {
    let name_bytes = (path.len() + 1).next_multiple_of(NAME_ALIGN) + 4;
    (HEADER_BYTES + size_of::<i32>() + FIELD_BYTES + name_bytes) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mmap2(size: u8, prot: u32, path: &[u8]) -> Vec<u8> {
        let mut payload = vec![0; IDENTITY_AT];
        payload.extend([size, 0, 0, 0]);
        payload.extend([0xab; MAX_BUILD_ID_BYTES]);
        payload.extend(prot.to_ne_bytes());
        payload.extend([0; 4]);
        payload.extend(path);
        payload
    }

    fn see(ids: &mut BuildIdTable, payload: &[u8]) {
        let misc = abi::PERF_RECORD_MISC_MMAP_BUILD_ID as u16;
        ids.see(&RawRecord { kind: abi::PERF_RECORD_MMAP2, misc, payload });
    }

    #[test]
    fn code_is_listed_once_and_data_is_not() {
        let mut ids = BuildIdTable::new();
        for payload in [
            mmap2(20, PROT_EXEC, b"/lib/a\0\0"),
            mmap2(3, PROT_EXEC, b"/lib/a\0\0"),
            mmap2(20, 1, b"/lib/data\0"),
            mmap2(0, PROT_EXEC, b"/lib/none\0"),
            mmap2(21, PROT_EXEC, b"/lib/long\0"),
        ] {
            see(&mut ids, &payload);
        }
        let listed: Vec<_> = ids.by_path.iter().map(|(path, id)| (&**path, id.len)).collect();
        assert_eq!(listed, [(&b"/lib/a"[..], 3)]);
        let mut bytes = Bytes::default();
        ids.set_kernel(&[1; 20]);
        ids.finish();
        ids.write(&mut bytes);
        assert_eq!(bytes.0.len() as u64, ids.n_bytes());
        assert_eq!(bytes.0.len(), 2 * (8 + 4 + 24 + 64 + 4));
    }

    #[test]
    fn the_vdso_is_listed_with_the_note_that_it_has() {
        let Some(vdso) = crate::system::memory::vdso() else {
            eprintln!("not run: this process has no vdso");
            return;
        };
        let mut ids = BuildIdTable::new();
        let payload = mmap2(0, PROT_EXEC, b"[vdso]\0\0");
        ids.see(&RawRecord { kind: abi::PERF_RECORD_MMAP2, misc: 0, payload: &payload });
        ids.see(&RawRecord { kind: abi::PERF_RECORD_MMAP2, misc: 0, payload: &payload });
        let id = ids.by_path[VDSO];
        let id = &id.bytes[..usize::from(id.len)];
        let note = [b"GNU\0", id].concat();
        assert!(vdso.windows(note.len()).any(|part| part == note), "{id:x?}");
        assert_eq!(ids.n_bytes(), entry_bytes(VDSO));
    }

    #[test]
    fn no_record_adds_more_than_is_kept_free() {
        for n_path in [1, 7, 63, 64, 100, 4000] {
            let payload = mmap2(20, PROT_EXEC, &vec![b'a'; n_path]);
            let mut ids = BuildIdTable::new();
            see(&mut ids, &payload);
            assert!((1..=most_bytes(HEADER_BYTES + payload.len())).contains(&ids.n_bytes()));
        }
    }

    #[test]
    fn every_cut_is_no_panic() {
        let payload = mmap2(20, PROT_EXEC, b"/lib/a");
        for n in 0..payload.len() {
            see(&mut BuildIdTable::new(), &payload[..n]);
        }
    }
}
