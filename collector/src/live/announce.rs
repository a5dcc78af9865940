//! What the analyzer is told before the first sample: names and mappings from before the session.

use crate::procfs::Procfs;
use dataspace_proto::record::{Comm, Record};

/// Names of all threads and mappings of all processes, at time 0.
///
/// To be read after the side-band events are open: a mapping is then in one of the two, or in
/// both, which does no harm.
pub(crate) fn what_was_before(pids: &[i32], procfs: &Procfs) -> Vec<Record> {
    let mut records = Vec::new();
    for &pid in pids {
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
