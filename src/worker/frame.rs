//! A snapshot on its way to clients: made into bytes that the daemon hands on.

use crate::config::Selection;
use crate::selection::reduce;
use dataspace_proto::snapshot::Snapshot;
use dataspace_proto::worker::{EVENT_TEXT, MAX_MADE_BYTES};
use std::io;
use std::sync::Arc;

/// The longest snapshot or profile in bytes.
pub(super) const MAX_BYTES: usize = MAX_MADE_BYTES as usize;

/// The snapshot as it is shown to clients: objects beyond `max_objects` are left out, and that is said. Who may not see
/// all is not told what the worker costs.
pub(super) fn shown(snapshot: &mut Arc<Snapshot>, max_objects: usize, shows_cost: bool) {
    if snapshot.objects.len() > max_objects {
        cut(snapshot, max_objects);
    }
    if !shows_cost {
        let cost = &mut Arc::make_mut(snapshot).cost;
        (cost.own_cpu_ns, cost.own_rss_bytes) = (0, 0);
    }
}

/// The snapshot as an event of a stream.
pub(super) fn event(snapshot: &Arc<Snapshot>) -> Vec<u8> {
    event_within(snapshot, MAX_BYTES)
}

fn cut(snapshot: &mut Arc<Snapshot>, max_objects: usize) {
    let selection = Selection { limit: Some(max_objects), filter: String::new() };
    reduce(Arc::make_mut(snapshot), &selection);
}

/// The event, with half of the objects as often as it has more than `max_bytes`.
fn event_within(snapshot: &Arc<Snapshot>, max_bytes: usize) -> Vec<u8> {
    let (before, after) = EVENT_TEXT;
    let mut snapshot = snapshot.clone();
    loop {
        let mut event = Bounded { bytes: before.to_vec(), max_bytes };
        let written = serde_json::to_writer(&mut event, &*snapshot);
        let n_objects = snapshot.objects.len();
        let mut bytes = match written {
            Ok(()) => event.bytes,
            Err(error) if error.is_io() && n_objects > 1 => {
                cut(&mut snapshot, n_objects / 2);
                continue;
            }
            Err(error) => {
                tracing::error!(%error, "a snapshot cannot be written as JSON");
                [before, b"null"].concat()
            }
        };
        bytes.extend_from_slice(after);
        return bytes;
    }
}

/// Takes up to `max_bytes`.
struct Bounded {
    bytes: Vec<u8>,
    max_bytes: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + more.len() > self.max_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use serde_json::Value;

    fn json(event: &[u8]) -> Value {
        let (before, after) = EVENT_TEXT;
        serde_json::from_slice(event.strip_prefix(before).unwrap().strip_suffix(after).unwrap())
            .unwrap()
    }

    #[test]
    fn what_is_left_out_is_said() {
        let shown = |max_objects, shows_cost| {
            let mut snapshot = fixture::findings().snapshot;
            shown(&mut snapshot, max_objects, shows_cost);
            json(&event(&snapshot))
        };
        assert_eq!(shown(usize::MAX, true)["truncated"], false);
        let cut = shown(2, true);
        assert_eq!(cut["truncated"], true);
        assert_eq!(cut["objects"].as_array().unwrap().len(), 2);
        assert_eq!(cut["objects"][0]["object"], "<Total>");
        assert!(cut["cost"]["own_rss_bytes"].as_u64() > Some(0));
        let cost = &shown(2, false)["cost"];
        assert_eq!((&cost["own_rss_bytes"], &cost["own_cpu_ns"]), (&0.into(), &0.into()));
    }

    #[test]
    fn long_names_leave_fewer_objects() {
        let mut snapshot = fixture::running();
        let model = snapshot.objects[1].clone();
        snapshot.objects.extend((0..1000).map(|_| model.clone()));
        for line in &mut snapshot.objects[1..] {
            line.object = "x".repeat(4096).into();
        }
        let n_objects = snapshot.objects.len();
        let max_bytes = 1 << 20;
        let event = event_within(&Arc::new(snapshot), max_bytes);
        assert!(event.len() <= max_bytes + EVENT_TEXT.1.len());
        let json = json(&event);
        assert_eq!(json["truncated"], true);
        let n_left = json["objects"].as_array().unwrap().len();
        assert!((100..n_objects / 2 + 1).contains(&n_left), "{n_left}");
    }
}
