//! Records of a process that was there before: names, namespace and mappings, of time 0.

use crate::system::procfs::{Mappings, Procfs};
use dataspace_proto::record::{Comm, Mmap, Namespace, Record};
use std::io::{self, ErrorKind};

/// Threads of a process whose names are read without asking.
const MAX_SHORT_THREADS: usize = 2_048;

/// Records of a process that is there, each read when it is taken; its mappings, which it may keep locked, only if
/// they are asked for.
pub(crate) fn records(
    pid: i32,
    procfs: &Procfs,
    with_mappings: bool,
) -> impl Iterator<Item = Record> + use<> {
    let tids = procfs.tasks(pid).unwrap_or_default();
    // Before the mappings, whose paths are those of the namespace.
    let namespace = namespace(pid, procfs).into_iter();
    let names = names(pid, tids, procfs.clone());
    let procfs = procfs.clone();
    let mappings = with_mappings.then(|| std::iter::once_with(move || mappings(pid, &procfs)));
    namespace.chain(names).chain(mappings.into_iter().flatten().flatten())
}

/// The same, to be held. Of one with many mappings or threads only the first ones,
/// unless it `may_be_long`, which is asked when that is known.
pub(crate) fn of_process(
    pid: i32,
    procfs: &Procfs,
    may_be_long: &mut dyn FnMut() -> bool,
) -> Vec<Record> {
    let mut records = Vec::from_iter(namespace(pid, procfs));
    let mut tids = procfs.tasks(pid).unwrap_or_default();
    let n_threads = tids.len();
    if n_threads > MAX_SHORT_THREADS && !may_be_long() {
        tids.truncate(MAX_SHORT_THREADS);
        records.push(warning(format!(
            "process {pid} has more threads ({n_threads}) than could be read while those of others \
             were: names of some stay unknown; attach to it alone"
        )));
    }
    records.extend(names(pid, tids, procfs.clone()));
    match procfs.mappings_within(pid, may_be_long) {
        Ok(Mappings { mappings, is_cut }) => {
            records.extend(mappings.into_iter().map(|mmap| Record::Mmap(Box::new(mmap))));
            if is_cut {
                records.push(warning(format!(
                    "process {pid} has more mappings than could be read while those of others were: \
                     data objects of some stay unknown; attach to it alone"
                )));
            }
        }
        Err(error) => records.extend(mapping(pid, Err(error))),
    }
    records
}

fn namespace(pid: i32, procfs: &Procfs) -> Option<Record> {
    let own_mount = procfs.mount_namespace("self");
    let mount = procfs.mount_namespace(pid).filter(|mount| Some(*mount) != own_mount)?;
    Some(Record::Namespace(Namespace { time_ns: 0, pid, mount }))
}

fn names(pid: i32, tids: Vec<i32>, procfs: Procfs) -> impl Iterator<Item = Record> {
    tids.into_iter().filter_map(move |tid| {
        // A thread without a name has just ended.
        let name = procfs.comm(pid, tid).ok()?;
        Some(Record::Comm(Box::new(Comm { pid, tid, name, ..Comm::default() })))
    })
}

fn mappings(pid: i32, procfs: &Procfs) -> impl Iterator<Item = Record> + use<> {
    let (reader, error) = match procfs.mapping_reader(pid) {
        Ok(reader) => (Some(reader), None),
        Err(error) => (None, Some(Err(error))),
    };
    let all = error.into_iter().chain(reader.into_iter().flatten());
    all.filter_map(move |read| mapping(pid, read))
}

/// A mapping, or why there is none.
fn mapping(pid: i32, read: io::Result<Mmap>) -> Option<Record> {
    let error = match read {
        Ok(mmap) => return Some(Record::Mmap(Box::new(mmap))),
        Err(error) => error,
    };
    match error.kind() {
        // It has ended.
        ErrorKind::NotFound => None,
        ErrorKind::FileTooLarge => Some(warning(format!(
            "process {pid} has more mappings than are read: data objects of some stay unknown"
        ))),
        _ => Some(warning(format!(
            "the mappings of process {pid} cannot be read ({error}): its data objects stay unknown; \
             run as root, or give this program CAP_SYS_PTRACE"
        ))),
    }
}

pub(crate) fn warning(text: String) -> Record {
    Record::Warning(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// Makes process `pid` with a thread for each of `tids`, and a mapping for each of `paths`.
    fn make(root: &Path, pid: i32, tids: impl IntoIterator<Item = i32>, paths: &[&str]) {
        for tid in tids {
            let task = root.join(format!("{pid}/task/{tid}"));
            fs::create_dir_all(&task).unwrap();
            fs::write(task.join("comm"), format!("name{tid}\n")).unwrap();
        }
        let line = |path: &&str| format!("1000-2000 r-xp 00000000 00:00 0 {path}\n");
        fs::write(root.join(format!("{pid}/maps")), paths.iter().map(line).collect::<String>())
            .unwrap();
    }

    #[test]
    fn of_a_list_that_cannot_be_read_a_warning_is_told() {
        let root = tempfile::tempdir().unwrap();
        make(root.path(), 7, [7], &[]);
        fs::remove_file(root.path().join("7/maps")).unwrap();
        fs::create_dir(root.path().join("7/maps")).unwrap();
        let told: Vec<Record> = records(7, &Procfs::new(root.path()), true).collect();
        let Some(Record::Warning(text)) = told.last() else { panic!("{told:?}") };
        assert!(text.contains("mappings of process 7 cannot be read"), "{text}");
    }

    #[test]
    fn names_that_are_left_out_are_told_of() {
        let root = tempfile::tempdir().unwrap();
        let n_more = 3;
        make(root.path(), 7, 7..7 + (MAX_SHORT_THREADS + n_more) as i32, &["/a"]);
        let procfs = Procfs::new(root.path());
        let n_names = |records: &[Record]| {
            records.iter().filter(|record| matches!(record, Record::Comm(_))).count()
        };
        let is_told = |record: &Record| matches!(record, Record::Warning(text) if text.contains("more threads (2051)"));
        let cut = of_process(7, &procfs, &mut || false);
        assert_eq!((n_names(&cut), cut.iter().any(is_told)), (MAX_SHORT_THREADS, true));
        let whole = [of_process(7, &procfs, &mut || true), records(7, &procfs, true).collect()];
        for whole in whole {
            assert_eq!(n_names(&whole), MAX_SHORT_THREADS + n_more);
            assert!(!whole.iter().any(is_told));
        }
    }
}
