//! Opens the files in which runtimes name the code they make: `perf-PID.map` and `jit-PID.dump`. They
//! are in directories that anyone may write to, and they grow.

use super::place::{self, Opened};
use super::{FilePolicy, SystemFiles, undeleted};
use crate::expendable::Lent;
use crate::ownership;
use dataspace_analyzer::bytes::file::NamesFormat;
use dataspace_analyzer::bytes::file::{FileBytes, FileError, LoadObjectKey, NamesFile};
use dataspace_collector::system::procfs::Procfs;
use dataspace_proto::broker::{FileKind, FilePlace, FileRoot};
use dataspace_proto::record::FileIdentity;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::Arc;

/// A file's times are those of the last tick of a clock, and so is when a process began.
const SLACK_S: i64 = 1;

/// Process that may have written a file, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Writer {
    uid: u32,
    /// Begin of the process: a file last written before is of another one that had the number, in seconds since
    /// 1970.
    since_s: Option<i64>,
}

impl Writer {
    fn may_have_written(self, metadata: &Metadata) -> bool {
        let is_owner = metadata.uid() == self.uid || metadata.uid() == 0;
        is_owner && self.since_s.is_none_or(|since| metadata.mtime() + SLACK_S >= since)
    }
}

impl SystemFiles {
    /// The names' file of the process of `key`.
    pub(super) fn names_file(&self, key: &LoadObjectKey, format: NamesFormat) -> Option<NamesFile> {
        let (policy, key) = (self.policy.clone(), key.clone());
        let opened = self.expendable.run(move || {
            let task = policy.is_live.then(|| Procfs::default().living_task(key.pid));
            let (root, writer) = match task.and_then(|task| Some((task, process(task)?))) {
                Some((task, writer)) => (FileRoot::Task(task), writer),
                // Of a process that is gone there is what it left behind, here or nowhere.
                None if key.mount_namespace != 0 => return None,
                None => {
                    let writer = Writer { uid: ownership::user(), since_s: None };
                    let has_symfs = policy.symfs.is_some();
                    (if has_symfs { FileRoot::Symfs } else { FileRoot::Machine }, writer)
                }
            };
            let path = match format {
                NamesFormat::PerfMap => {
                    let pid = task.map_or(key.pid, |task| innermost_pid(task, key.pid));
                    format!("/tmp/perf-{pid}.map").into_bytes()
                }
                NamesFormat::JitDump => undeleted(&key.path).to_vec(),
            };
            let named_by = if let FileRoot::Task(task) = root { Some(task) } else { None };
            let place = FilePlace::Below { root, path, named_by, kind: FileKind::CodeNames };
            let opened = open(&place, &policy, writer, &key.identity);
            tracing::debug!(?place, ?writer, ?opened, "names of code");
            opened.ok()
        })??;
        let inode = opened.inode;
        let file = Lent::new(opened.file, Arc::clone(&self.expendable));
        let bytes = GrowingFile { len: opened.state.len, file };
        Some(NamesFile { bytes: Box::new(bytes), inode })
    }
}

/// Opens what is at `place`, if `writer` may have written it.
fn open(
    place: &FilePlace,
    policy: &FilePolicy,
    writer: Writer,
    identity: &FileIdentity,
) -> io::Result<Opened> {
    let opened = place::open(place, policy)?;
    let is_trusted = writer.may_have_written(&opened.file.metadata()?);
    if is_trusted && super::is_same_inode(opened.inode, identity) {
        return Ok(opened);
    }
    Err(io::ErrorKind::PermissionDenied.into())
}

/// The user of a running process whose files are made, and when it began.
fn process(task: i32) -> Option<Writer> {
    let users = Procfs::default().status(task).ok()?.users?;
    Some(Writer { uid: users.file_system, since_s: began_s(task) })
}

/// Time when a process began, in seconds since 1970.
fn began_s(task: i32) -> Option<i64> {
    use rustix::time::{ClockId, clock_gettime};
    let ticks = Procfs::default().start_time_ticks(task).ok()?;
    let began_s = ticks.checked_div(rustix::param::clock_ticks_per_second())?;
    let booted_s =
        clock_gettime(ClockId::Realtime).tv_sec - clock_gettime(ClockId::Boottime).tv_sec;
    Some(booted_s + i64::try_from(began_s).ok()?)
}

/// The number that a process has in the innermost namespace that it is in, which it knows itself by.
fn innermost_pid(task: i32, pid: i32) -> i32 {
    let status = Procfs::default().status(task);
    status.ok().and_then(|status| status.innermost_pid).unwrap_or(pid)
}

/// A file that is written to while it is read: what is there now stays.
#[derive(Debug)]
struct GrowingFile {
    file: Lent,
    len: u64,
}

impl FileBytes for GrowingFile {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), FileError> {
        let n_bytes = buffer.len() as u64;
        let failed = |cause: String| FileError { offset, n_bytes, cause };
        let file = self.file.file().ok_or_else(|| failed("it is closed".to_owned()))?;
        let n = buffer.len();
        let read = self.file.expendable().run(move || {
            let mut bytes = vec![0; n];
            file.read_exact_at(&mut bytes, offset).map(|()| bytes)
        });
        let bytes = read
            .ok_or_else(|| failed("the file does not answer".to_owned()))?
            .map_err(|error| failed(error.to_string()))?;
        buffer.copy_from_slice(&bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::FilePolicy;
    use super::*;
    use dataspace_proto::address::Avma;
    use std::os::unix::fs::symlink;

    fn key(pid: i32, path: &str) -> LoadObjectKey {
        LoadObjectKey {
            path: path.as_bytes().into(),
            identity: FileIdentity::None,
            pid,
            range: (Avma(0), Avma(0)),
            mount_namespace: 0,
        }
    }

    fn own(since_s: Option<i64>) -> Writer {
        Writer { uid: rustix::process::geteuid().as_raw(), since_s }
    }

    #[test]
    fn a_map_is_a_plain_file_of_its_process() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("perf-7.map");
        let policy = FilePolicy { symfs: Some(root.path().into()), ..FilePolicy::default() };
        let place = FilePlace::Below {
            root: FileRoot::Symfs,
            path: b"perf-7.map".to_vec(),
            named_by: None,
            kind: FileKind::CodeNames,
        };
        let opens = |writer| open(&place, &policy, writer, &FileIdentity::None);
        assert!(opens(own(None)).is_err(), "there is none");
        std::fs::write(&path, "1000 10 f\n").unwrap();
        assert!(opens(own(None)).is_ok());
        let written_s = std::fs::metadata(&path).unwrap().mtime();
        assert!(opens(own(Some(written_s))).is_ok());
        assert!(opens(own(Some(written_s + 10))).is_err(), "of the last one with that number");
        let is_root = rustix::process::geteuid().is_root();
        let stranger = Writer { uid: 4711, since_s: None };
        assert_eq!(opens(stranger).is_ok(), is_root, "root may write for all, and no other");
        std::fs::rename(&path, root.path().join("elsewhere")).unwrap();
        symlink("elsewhere", &path).unwrap();
        assert!(opens(own(None)).is_err(), "a link");
    }

    #[test]
    fn a_map_of_a_running_process_is_found_and_grows() {
        let pid = std::process::id();
        let path = format!("/tmp/perf-{pid}.map");
        std::fs::write(&path, "1000 10 f\n").unwrap();
        let files = SystemFiles::new(FilePolicy { is_live: true, ..FilePolicy::default() });
        let pid = i32::try_from(pid).unwrap();
        let file = files.names_file(&key(pid, "[perf map]"), NamesFormat::PerfMap).unwrap();
        std::fs::write(&path, "1000 10 f\n2000 10 g\n").unwrap();
        let mut bytes = vec![0; usize::try_from(file.bytes.len()).unwrap()];
        file.bytes.read_exact_at(0, &mut bytes).unwrap();
        assert_eq!(bytes, b"1000 10 f\n");
        std::fs::remove_file(&path).unwrap();
        assert!(files.names_file(&key(pid, "[perf map]"), NamesFormat::PerfMap).is_none());
    }

    #[test]
    fn a_map_of_another_mount_namespace_is_not_looked_for_here() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("tmp")).unwrap();
        std::fs::write(root.path().join("tmp/perf-7.map"), "1000 10 f\n").unwrap();
        let policy = FilePolicy { symfs: Some(root.path().into()), ..FilePolicy::default() };
        let files = SystemFiles::new(policy);
        let is_there = |key: &LoadObjectKey| files.names_file(key, NamesFormat::PerfMap).is_some();
        assert!(is_there(&key(7, "[perf map]")));
        assert!(!is_there(&LoadObjectKey { mount_namespace: 77, ..key(7, "[perf map]") }));
    }
}
