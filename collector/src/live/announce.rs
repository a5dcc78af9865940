//! What the analyzer is told before the first sample: names, namespaces and mappings from before the
//! session.

use crate::procfs::Procfs;
use dataspace_proto::record::{Comm, Namespace, Record};

/// Names of all threads, mount namespaces and mappings of all processes, as of time 0.
///
/// To be read after the side-band events are open: a mapping is then in one of the two, or in
/// both, which does no harm.
pub(crate) fn what_was_before(pids: &[i32], procfs: &Procfs) -> Vec<Record> {
    let mut records = Vec::new();
    let own_mount = procfs.mount_namespace("self");
    for &pid in pids {
        // Before the mappings, whose paths are those of the namespace.
        if let Some(mount) = procfs.mount_namespace(pid).filter(|mount| Some(*mount) != own_mount) {
            records.push(Record::Namespace(Namespace { time_ns: 0, pid, mount }));
        }
        for tid in procfs.tasks(pid).unwrap_or_default() {
            // A thread without a name has just ended.
            let Ok(name) = procfs.comm(pid, tid) else { continue };
            records.push(Record::Comm(Box::new(Comm { pid, tid, name, ..Comm::default() })));
        }
        match procfs.mappings(pid) {
            Ok(mappings) => {
                records.extend(mappings.into_iter().map(|mmap| Record::Mmap(Box::new(mmap))));
            }
            // It has ended.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => records.push(Record::Warning(
                format!(
                    "the mappings of process {pid} cannot be read ({error}): its data objects \
                     stay unknown; run as root, or give this program CAP_SYS_PTRACE"
                )
                .into(),
            )),
        }
    }
    records
}
