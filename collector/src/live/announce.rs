//! What the analyzer is told before the first sample: names, namespaces and mappings from before the
//! session.

use crate::procfs::{Mappings, Procfs};
use dataspace_proto::record::{Comm, Namespace, Record};

/// Threads of a process whose names are read without asking.
const MAX_SHORT_THREADS: usize = 2_048;

/// Names of all threads, mount namespaces and mappings of all processes, as of time 0.
///
/// To be read after the side-band events are open: a mapping is then in one of the two, or in
/// both, which does no harm.
pub(crate) fn what_was_before(pids: &[i32], procfs: &Procfs) -> Vec<Record> {
    pids.iter().flat_map(|&pid| of_process(pid, procfs, &mut || true)).collect()
}

/// The same of one process. Of one with many mappings or threads only the first ones, unless it
/// `may_be_long`, which is asked when that is known.
pub(crate) fn of_process(
    pid: i32,
    procfs: &Procfs,
    may_be_long: &mut dyn FnMut() -> bool,
) -> Vec<Record> {
    let mut records = Vec::new();
    let own_mount = procfs.mount_namespace("self");
    // Before the mappings, whose paths are those of the namespace.
    if let Some(mount) = procfs.mount_namespace(pid).filter(|mount| Some(*mount) != own_mount) {
        records.push(Record::Namespace(Namespace { time_ns: 0, pid, mount }));
    }
    let mut tids = procfs.tasks(pid).unwrap_or_default();
    if tids.len() > MAX_SHORT_THREADS && !may_be_long() {
        tids.truncate(MAX_SHORT_THREADS);
    }
    for tid in tids {
        // A thread without a name has just ended.
        let Ok(name) = procfs.comm(pid, tid) else { continue };
        records.push(Record::Comm(Box::new(Comm { pid, tid, name, ..Comm::default() })));
    }
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
        // It has ended.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => records.push(warning(format!(
            "the mappings of process {pid} cannot be read ({error}): its data objects stay unknown; \
             run as root, or give this program CAP_SYS_PTRACE"
        ))),
    }
    records
}

fn warning(text: String) -> Record {
    Record::Warning(text.into())
}
