//! Names of data objects as samples of the history have them.

use crate::history::growing::{Frozen, Growing};
use crate::limit;
use crate::totals::rolling::ObjectIdx;
use crate::types::scalar_notation::ScalarNotation;
use dataspace_proto::reason::Reason;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A data object, and the variable by which it was reached; or the reason that there is none.
#[derive(Clone, Debug)]
pub(crate) struct DataName {
    /// The finest object.
    pub(crate) object: Arc<str>,
    /// The same as a programmer writes it.
    pub(crate) name: Arc<str>,
    /// The outermost object around it.
    pub(crate) aggregate: Arc<str>,
    pub(crate) type_name: Option<Arc<str>>,
    pub(crate) member: Option<Arc<str>>,
    pub(crate) variable: Option<Arc<str>>,
    pub(crate) reason: Option<Reason>,
    /// The way in which its values are written.
    pub(crate) notation: ScalarNotation,
}

/// All names of a session.
#[derive(Debug, Default)]
pub(crate) struct DataNames {
    list: Growing<DataName>,
    of_object: FxHashMap<(ObjectIdx, Option<Arc<str>>), u32>,
}

impl DataNames {
    /// The number of an object that was reached by a variable, made by `make` if it is new. Where there are too many,
    /// all that an object has further variables for has none.
    pub(crate) fn number(
        &mut self,
        object: ObjectIdx,
        variable: Option<&Arc<str>>,
        make: impl FnOnce(Option<&Arc<str>>) -> DataName,
    ) -> u32 {
        let is_full = self.list.len() >= limit::MAX_OBJECTS * 2;
        let variable = variable.filter(|_| !is_full);
        let key = (object, variable.cloned());
        if let Some(known) = self.of_object.get(&key) {
            return *known;
        }
        let number = self.list.push(make(variable));
        self.of_object.insert(key, number);
        number
    }

    pub(crate) fn freeze(&self) -> Frozen<DataName> {
        self.list.freeze()
    }
}
