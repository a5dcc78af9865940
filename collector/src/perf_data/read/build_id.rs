//! The build-ids that a recorder read from files after the fact, by path.
//!
//! Source: `tools/perf/Documentation/perf.data-file-format.txt`, `HEADER_BUILD_ID`.

use crate::perf_data::format::build_id::{
    FIELD_BYTES, MAX_BUILD_ID_BYTES, MISC_HAS_LEN, SHIFTED_KERNEL,
};
use crate::perf_data::format::bytes::until_nul;
use crate::record::decode::{Cursor, Endian, cpu_mode};
use dataspace_proto::record::CpuMode;
use std::collections::HashMap;

/// A build-id table longer than this is not one of a machine that we know: at 100 bytes a file it
/// has room for 600,000 files.
const MAX_TABLE_BYTES: usize = 64 << 20;

/// Build-ids by path, kernel and user apart.
#[derive(Debug, Default)]
pub(super) struct KnownBuildIds {
    of_kernel: HashMap<Box<[u8]>, Box<[u8]>>,
    of_user: HashMap<Box<[u8]>, Box<[u8]>>,
    n_bytes: usize,
}

/// One `struct perf_record_header_build_id`.
struct BuildIdEntry<'a> {
    is_kernel: bool,
    build_id: &'a [u8],
    path: &'a [u8],
}

impl KnownBuildIds {
    /// The build-id of the file that was mapped from `path`.
    pub(super) fn get(&self, mode: CpuMode, path: &[u8]) -> Option<&[u8]> {
        let build_id = match mode {
            CpuMode::Kernel => self.of_kernel.get(kernel_name(path)),
            _ => self.of_user.get(path),
        };
        build_id.map(AsRef::as_ref).filter(|build_id: &&[u8]| !build_id.is_empty())
    }

    /// Takes in the header section, which is a sequence of records.
    pub(super) fn add_section(&mut self, section: &[u8], endian: Endian) {
        let has_pid = !records(section, endian)
            .filter_map(|(misc, payload)| entry(misc, payload, endian, true))
            .any(|entry| entry.path == SHIFTED_KERNEL);
        for (misc, payload) in records(section, endian) {
            if let Some(entry) = entry(misc, payload, endian, has_pid) {
                self.add(&entry);
            }
        }
    }

    /// Takes in one `PERF_RECORD_HEADER_BUILD_ID` of a pipe.
    pub(super) fn add_record(&mut self, misc: u16, payload: &[u8], endian: Endian) {
        if let Some(entry) = entry(misc, payload, endian, true) {
            self.add(&entry);
        }
    }

    fn add(&mut self, entry: &BuildIdEntry<'_>) {
        let n_bytes = self.n_bytes.saturating_add(entry.path.len() + MAX_BUILD_ID_BYTES);
        if n_bytes <= MAX_TABLE_BYTES && !entry.path.is_empty() && !entry.build_id.is_empty() {
            self.n_bytes = n_bytes;
            let by_path = if entry.is_kernel { &mut self.of_kernel } else { &mut self.of_user };
            match by_path.get_mut(entry.path) {
                // One path, several files: other mount namespaces, or a new build. Which of them a
                // mapping is of, the table does not tell.
                Some(known) if **known != *entry.build_id => *known = Box::default(),
                Some(_) => {}
                None => {
                    by_path.insert(entry.path.into(), entry.build_id.into());
                }
            }
        }
    }
}

/// `[kernel.kallsyms]_text` is mapped, `[kernel.kallsyms]` has the build-id.
fn kernel_name(path: &[u8]) -> &[u8] {
    if !path.starts_with(b"[") {
        return path;
    }
    let end = path.iter().position(|&byte| byte == b']').map_or(path.len(), |at| at + 1);
    path.get(..end).unwrap_or(path)
}

/// The `misc` and the payload of each record of `section`, up to the first that is not whole.
fn records(section: &[u8], endian: Endian) -> impl Iterator<Item = (u16, &[u8])> {
    let mut cursor = Cursor::new(section, endian);
    std::iter::from_fn(move || {
        cursor.u32()?; // the type is 0, or that of the pipe's record
        let misc = cursor.u16()?;
        let len = u64::from(cursor.u16()?).checked_sub(8)?;
        Some((misc, cursor.take(len)?))
    })
}

/// Reads one entry; `perf` before 2.6.34 wrote it without the process id.
fn entry(misc: u16, payload: &[u8], endian: Endian, has_pid: bool) -> Option<BuildIdEntry<'_>> {
    let mut cursor = Cursor::new(payload, endian);
    if has_pid {
        cursor.u32()?; // −1 on the host; a guest's files are not ours
    }
    let field = cursor.take(FIELD_BYTES as u64)?;
    let len = match field.get(MAX_BUILD_ID_BYTES) {
        Some(&len) if misc & MISC_HAS_LEN != 0 => usize::from(len).min(MAX_BUILD_ID_BYTES),
        _ => MAX_BUILD_ID_BYTES,
    };
    let mode = cpu_mode(misc);
    let path = until_nul(cursor.rest());
    let build_id = field.get(..len)?;
    (!matches!(mode, CpuMode::Guest | CpuMode::Other)).then_some(BuildIdEntry {
        is_kernel: mode == CpuMode::Kernel,
        build_id,
        path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: u16 = 1;
    const USER: u16 = 2;

    fn record(misc: u16, has_pid: bool, build_id: &[u8], path: &[u8]) -> Vec<u8> {
        let mut payload = if has_pid { vec![0xff; 4] } else { Vec::new() };
        let mut field = [0; 24];
        field[..build_id.len()].copy_from_slice(build_id);
        field[20] = build_id.len() as u8;
        payload.extend(field);
        payload.extend(path);
        payload.push(0);
        let mut record = 0u32.to_le_bytes().to_vec();
        record.extend(misc.to_le_bytes());
        record.extend((payload.len() as u16 + 8).to_le_bytes());
        record.extend(payload);
        record
    }

    #[test]
    fn kernel_and_user_files_of_one_name_are_two() {
        let mut section = record(USER | MISC_HAS_LEN, true, &[1; 16], b"/lib/ld.so");
        section.extend(record(KERNEL, true, &[2; 20], b"[kernel.kallsyms]"));
        let mut ids = KnownBuildIds::default();
        ids.add_section(&section, Endian::Little);
        assert_eq!(ids.get(CpuMode::User, b"/lib/ld.so"), Some(&[1; 16][..]));
        assert_eq!(ids.get(CpuMode::Kernel, b"[kernel.kallsyms]_text"), Some(&[2; 20][..]));
        assert_eq!(ids.get(CpuMode::User, b"[kernel.kallsyms]"), None);
    }

    #[test]
    fn the_oldest_tables_have_no_process_id() {
        let mut section = record(KERNEL, false, &[2; 20], b"[kernel.kallsyms]");
        section.extend(record(USER, false, &[3; 20], b"/bin/true"));
        let mut ids = KnownBuildIds::default();
        ids.add_section(&section, Endian::Little);
        assert_eq!(ids.get(CpuMode::User, b"/bin/true"), Some(&[3; 20][..]));
    }

    #[test]
    fn a_path_of_two_files_has_no_build_id() {
        let mut section = record(USER, true, &[1; 20], b"/bin/true");
        section.extend(record(USER, true, &[2; 20], b"/bin/true"));
        section.extend(record(USER, true, &[1; 20], b"/bin/true"));
        section.extend(record(USER, true, &[3; 20], b"/bin/false"));
        section.extend(record(USER, true, &[3; 20], b"/bin/false"));
        let mut ids = KnownBuildIds::default();
        ids.add_section(&section, Endian::Little);
        assert_eq!(ids.get(CpuMode::User, b"/bin/true"), None);
        assert_eq!(ids.get(CpuMode::User, b"/bin/false"), Some(&[3; 20][..]));
    }

    #[test]
    fn a_cut_table_gives_what_is_whole() {
        let mut section = record(USER, true, &[1; 20], b"/bin/true");
        section.extend(record(USER, true, &[1; 20], b"/bin/false"));
        section.pop();
        let mut ids = KnownBuildIds::default();
        ids.add_section(&section, Endian::Little);
        assert!(ids.get(CpuMode::User, b"/bin/true").is_some());
        assert!(ids.get(CpuMode::User, b"/bin/false").is_none());
    }
}
