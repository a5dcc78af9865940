//! The paths of control groups, by the numbers that samples have.

use crate::limit;
use dataspace_proto::record::Cgroup;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Control groups that were told of.
#[derive(Debug, Default)]
pub(crate) struct CgroupTable {
    paths: FxHashMap<u64, Arc<str>>,
    n_bytes: usize,
}

impl CgroupTable {
    pub(crate) fn add(&mut self, cgroup: &Cgroup) {
        if self.n_bytes >= limit::MAX_CGROUP_BYTES {
            *self = Self::default();
        }
        let path: Arc<str> = String::from_utf8_lossy(&cgroup.path).into();
        // A path and what the table takes for it; one that is told again counts again.
        self.n_bytes += path.len() + 64;
        self.paths.insert(cgroup.id, path);
    }

    pub(crate) fn path(&self, id: u64) -> Option<Arc<str>> {
        self.paths.get(&id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_bounded() {
        let mut table = CgroupTable::default();
        let path: Box<[u8]> = vec![b'x'; 4096].into();
        for id in 0..10_000 {
            table.add(&Cgroup { time_ns: 0, id, path: path.clone() });
        }
        assert!(table.paths.len() <= limit::MAX_CGROUP_BYTES / 4096 + 1);
        assert!(table.path(9_999).is_some());
    }
}
