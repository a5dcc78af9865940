//! A session's findings at one moment: the snapshot that goes over the wire, and the rest, which does not.

use dataspace_analyzer::history::store::HistoryView;
use dataspace_analyzer::session::analyzer::Analyzer;
use dataspace_analyzer::session::report::{FunctionLine, TypeLayout};
use dataspace_proto::snapshot::{ObjectLine, Snapshot};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// All that a session tells. A copy shares everything with the original.
#[derive(Clone, Debug)]
pub(crate) struct Findings {
    /// The totals.
    pub(crate) snapshot: Arc<Snapshot>,
    /// Functions that access the objects, for exports and an object's details: several times as long as the
    /// snapshot.
    pub(crate) functions: Arc<[FunctionLine]>,
    /// Layouts of outermost aggregates, by the object's number.
    pub(crate) layouts: Arc<BTreeMap<u32, Arc<TypeLayout>>>,
    /// The samples themselves, where the session keeps them and somebody has asked.
    pub(crate) history: Option<Arc<HistoryView>>,
    /// Lengths of the session's queues, where it is live.
    pub(crate) queues: Queues,
}

/// Lengths of the queues of a live session. Samples that wait for debug information are `pending`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Queues {
    /// Batches of records between collector and analyzer.
    pub(crate) batches: usize,
    /// Questions about code and data that the index worker has not come to.
    pub(crate) questions: usize,
}

impl Findings {
    /// The object with a layout that is, or is around, the one of this descriptor.
    pub(crate) fn layout_around(&self, object: &str) -> Option<(&ObjectLine, &Arc<TypeLayout>)> {
        let objects = &self.snapshot.objects;
        let ids: HashMap<u32, &ObjectLine> = objects.iter().map(|it| (it.id, it)).collect();
        let mut next = objects.iter().find(|line| &*line.object == object);
        for _ in 0..objects.len() {
            let line = next?;
            if let Some(layout) = self.layouts.get(&line.id) {
                return Some((line, layout));
            }
            next = line.parent_id.and_then(|id| ids.get(&id).copied());
        }
        None
    }

    /// The same with the history as it is now.
    pub(crate) fn with_history(self, analyzer: &Analyzer) -> Self {
        Self { history: analyzer.history().map(Arc::new), ..self }
    }

    /// `snapshot`, which `analyzer` has just made, with the rest of what it knows.
    pub(crate) fn new(snapshot: Snapshot, analyzer: &Analyzer, queues: Queues) -> Self {
        Self {
            history: None,
            snapshot: Arc::new(snapshot),
            functions: analyzer.functions(),
            layouts: Arc::new(analyzer.layouts()),
            queues,
        }
    }
}

/// Findings of a session in another process, which tells no more than the snapshot.
impl From<Arc<Snapshot>> for Findings {
    fn from(snapshot: Arc<Snapshot>) -> Self {
        Self {
            snapshot,
            functions: Arc::default(),
            layouts: Arc::default(),
            history: None,
            queues: Queues::default(),
        }
    }
}
