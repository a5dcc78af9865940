//! Load objects without debug information, and the samples that have no data object for want of it.

use crate::attribution::code_place::user_ip;
use crate::attribution::verdict::Attribution;
use crate::attribution::world::World;
use crate::bytes::file::LoadObjectIdx;
use crate::process::table::{Backing, ObjectState, ProcessTable};
use dataspace_proto::reason::Reason;
use dataspace_proto::record::{FileIdentity, Sample, build_id_text};
use dataspace_proto::snapshot::Undescribed;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Load objects that are told of: the others have fewer samples.
const MAX_TOLD: usize = 20;

/// Samples without a data object, by the load object whose code was interrupted.
#[derive(Debug, Default)]
pub(crate) struct UndescribedObjects(FxHashMap<LoadObjectIdx, u64>);

impl UndescribedObjects {
    /// Counts a sample that has no data object, if its code has no debug information.
    pub(crate) fn count(&mut self, sample: &Sample, attribution: &Attribution, world: &World) {
        let of_site = attribution.site.map(|site| world.sites.code(site).0);
        let mapped = || match world.processes.mapping(sample.pid, user_ip(sample))?.backing {
            Backing::File(object) => Some(object),
            Backing::Anonymous | Backing::Kernel => None,
        };
        let Some(object) = of_site.or_else(mapped) else { return };
        if !is_described(object, &world.processes) {
            *self.0.entry(object).or_default() += 1;
        }
    }

    /// The load objects with most samples.
    pub(crate) fn lines(&self, processes: &ProcessTable) -> Vec<Undescribed> {
        // Debug information may have come since.
        let still = self.0.iter().filter(|(object, _)| !is_described(**object, processes));
        let mut counts: Vec<(LoadObjectIdx, u64)> = still.map(|(it, n)| (*it, *n)).collect();
        counts.sort_unstable_by_key(|(object, n)| (Reverse(*n), object.0));
        let lines = counts.into_iter().take(MAX_TOLD).filter_map(|(object, samples)| {
            let known = processes.object(object)?;
            let facts = match &known.state {
                ObjectState::Open(facts) => Some(facts),
                _ => None,
            };
            let read = facts.and_then(|facts| facts.build_id.as_deref());
            let told = match &known.key.identity {
                FileIdentity::BuildId(build_id) => Some(&**build_id),
                FileIdentity::Inode { .. } | FileIdentity::None => None,
            };
            Some(Undescribed {
                module: known.key.path_text().into_owned(),
                build_id: read.or(told).map(build_id_text),
                is_missing: facts.is_none(),
                is_elsewhere: known.key.mount_namespace != 0,
                samples,
            })
        });
        lines.collect()
    }
}

fn is_described(object: LoadObjectIdx, processes: &ProcessTable) -> bool {
    match processes.object(object).map(|known| &known.state) {
        Some(ObjectState::Open(facts)) => facts.has_debug,
        Some(ObjectState::Failed(Reason::ObjectMissing | Reason::ObjectChanged)) => false,
        _ => true,
    }
}
