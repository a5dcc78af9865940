//! PlaceTable in code at which samples of the history were.

use crate::bytes::file::LoadObjectIdx;
use crate::history::growing::{Frozen, Growing};
use crate::limit;
use dataspace_proto::address::Svma;
use dataspace_proto::sample_line::Scope;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A place in code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SampledPlace {
    /// The code that was interrupted.
    pub(crate) scope: Arc<Scope>,
    /// The trigger, where it is known: its load object, and its address in there. Of code that is in no file, the
    /// address in the process.
    pub(crate) trigger: Option<(Option<LoadObjectIdx>, Svma)>,
}

/// Key of a place: load object, where the scope lies, which is kept by the place, and an address.
pub(crate) type PlaceKey = (u32, usize, u64);

/// The key of a place of this scope, with a trigger at an address that means the same in all samples of the load
/// object.
pub(crate) fn key(object: Option<LoadObjectIdx>, scope: &Arc<Scope>, at: Option<u64>) -> PlaceKey {
    let object = object.map_or(u32::MAX, |object| object.0);
    (object, Arc::as_ptr(scope) as usize, at.unwrap_or(u64::MAX))
}

/// All places of a session.
#[derive(Debug, Default)]
pub(crate) struct PlaceTable {
    list: Growing<SampledPlace>,
    of_key: FxHashMap<PlaceKey, u32>,
    /// Scopes of code of which only the load object is known.
    modules: FxHashMap<LoadObjectIdx, Arc<Scope>>,
}

impl PlaceTable {
    pub(crate) fn find(&self, key: PlaceKey) -> Option<u32> {
        self.of_key.get(&key).copied()
    }

    /// Tells whether further triggers are left out.
    pub(crate) const fn is_full(&self) -> bool {
        self.list.len() >= limit::MAX_HISTORY_PLACES
    }

    pub(crate) fn add(&mut self, key: PlaceKey, place: SampledPlace) -> u32 {
        let number = self.list.push(place);
        self.of_key.insert(key, number);
        number
    }

    /// The scope of code in a load object of which nothing more is known.
    pub(crate) fn module(&mut self, object: LoadObjectIdx, path: &[u8]) -> Arc<Scope> {
        let scope = || {
            let object = String::from_utf8_lossy(path).into();
            Arc::new(Scope { object, ..Scope::default() })
        };
        Arc::clone(self.modules.entry(object).or_insert_with(scope))
    }

    pub(crate) fn freeze(&self) -> Frozen<SampledPlace> {
        self.list.freeze()
    }
}
