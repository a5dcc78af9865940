//! A snapshot on its way to clients: made into JSON once, however many there are.

use bytes::Bytes;
use dataspace_proto::snapshot::Snapshot;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// A snapshot, and when it was made.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) made: Instant,
    json: OnceLock<Bytes>,
}

impl Frame {
    /// Objects beyond `max_objects` are left out, and that is said.
    pub(super) fn new(snapshot: Arc<Snapshot>, max_objects: usize) -> Self {
        let snapshot = if snapshot.objects.len() > max_objects {
            let mut cut = Snapshot::clone(&snapshot);
            cut.objects.truncate(max_objects);
            cut.truncated = true;
            Arc::new(cut)
        } else {
            snapshot
        };
        Self { snapshot, made: Instant::now(), json: OnceLock::new() }
    }

    /// The snapshot as one line.
    pub(super) fn json(&self) -> Bytes {
        let make = || match serde_json::to_vec(&*self.snapshot) {
            Ok(json) => Bytes::from(json),
            Err(error) => {
                tracing::error!(%error, "a snapshot cannot be written as JSON");
                Bytes::from_static(b"null")
            }
        };
        self.json.get_or_init(make).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn what_is_left_out_is_said() {
        let whole = Frame::new(Arc::new(fixture::running()), usize::MAX);
        assert!(!whole.snapshot.truncated);
        let cut = Frame::new(Arc::new(fixture::running()), 2);
        let json: serde_json::Value = serde_json::from_slice(&cut.json()).unwrap();
        assert_eq!(json["truncated"], true);
        assert_eq!(json["objects"].as_array().unwrap().len(), 2);
        assert_eq!(json["objects"][0]["object"], "<Total>");
    }
}
