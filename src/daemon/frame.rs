//! A snapshot on its way to clients: made into bytes once, however many there are.

use super::peer::Rank;
use super::session::Owner;
use crate::config::Selection;
use crate::export::{folded, pprof};
use crate::lock::lock;
use crate::selection::reduce;
use crate::session::findings::Findings;
use bytes::Bytes;
use dataspace_proto::snapshot::Snapshot;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Instant;

/// The longest snapshot or profile in bytes: names come from debug information that anybody may have made, and a
/// client that takes nothing keeps one.
const MAX_BYTES: usize = 16 << 20;

/// The text around the JSON where it is an event of a stream (HTML Living Standard, section 9.2). JSON
/// has no line ends, so the data is one line.
const BEFORE: &[u8] = b"event: snapshot\ndata: ";
const AFTER: &[u8] = b"\n\n";

/// Findings of a session, and the time when they were made.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) findings: Findings,
    pub(super) made: Instant,
    event: OnceLock<Bytes>,
    pprof: SharedBytes,
    folded: SharedBytes,
}

impl Frame {
    /// Objects beyond `max_objects` are left out, and that is said. A user is not told what the daemon
    /// costs: that is of all its sessions, and so would tell of those of others.
    pub(super) fn new(mut findings: Findings, max_objects: usize, owner: Owner) -> Self {
        let snapshot = &mut findings.snapshot;
        if snapshot.objects.len() > max_objects {
            cut(snapshot, max_objects);
        }
        if owner.rank != Rank::Privileged {
            let cost = &mut Arc::make_mut(snapshot).cost;
            (cost.own_cpu_ns, cost.own_rss_bytes) = (0, 0);
        }
        let (pprof, folded) = Default::default();
        Self { findings, made: Instant::now(), event: OnceLock::new(), pprof, folded }
    }

    /// The snapshot as one line of JSON.
    pub(super) fn json(&self) -> Bytes {
        let event = self.event();
        event.slice(BEFORE.len()..event.len() - AFTER.len())
    }

    /// The snapshot as a compressed profile of pprof.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub(super) fn pprof(&self) -> io::Result<Bytes> {
        let age = Some(self.made.elapsed());
        self.pprof.get_or_make(|out| pprof::write(&self.findings, age, MAX_BYTES, out))
    }

    /// The snapshot as folded stacks.
    ///
    /// # Errors
    /// Where they cannot be written.
    pub(super) fn folded(&self) -> io::Result<Bytes> {
        self.folded.get_or_make(|out| folded::write(&self.findings, MAX_BYTES, out))
    }

    /// The snapshot as an event of a stream.
    pub(super) fn event(&self) -> Bytes {
        self.event.get_or_init(|| event_within(&self.findings.snapshot, MAX_BYTES)).clone()
    }
}

/// Bytes that all clients share that take them at a time; kept by them alone, as few ask for a profile.
#[derive(Debug, Default)]
struct SharedBytes(Mutex<Weak<Vec<u8>>>);

impl SharedBytes {
    fn get_or_make(&self, make: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<Bytes> {
        let mut shared = lock(&self.0);
        if let Some(bytes) = shared.upgrade() {
            return Ok(Bytes::from_owner(Taken(bytes)));
        }
        let mut bytes = Vec::new();
        make(&mut bytes)?;
        bytes.shrink_to_fit();
        let bytes = Arc::new(bytes);
        *shared = Arc::downgrade(&bytes);
        Ok(Bytes::from_owner(Taken(bytes)))
    }
}

/// The share of one client.
struct Taken(Arc<Vec<u8>>);

impl AsRef<[u8]> for Taken {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn cut(snapshot: &mut Arc<Snapshot>, max_objects: usize) {
    let selection = Selection { limit: Some(max_objects), filter: String::new() };
    reduce(Arc::make_mut(snapshot), &selection);
}

/// The event, with half of the objects as often as it has more than `max_bytes`.
fn event_within(snapshot: &Arc<Snapshot>, max_bytes: usize) -> Bytes {
    let mut snapshot = snapshot.clone();
    loop {
        let mut event = Bounded { bytes: BEFORE.to_vec(), max_bytes };
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
                [BEFORE, b"null"].concat()
            }
        };
        bytes.extend_from_slice(AFTER);
        // Not the room that was left for more: the frame is kept.
        return bytes.into_boxed_slice().into();
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

    #[test]
    fn what_is_left_out_is_said() {
        let owner = Owner::configuration();
        let whole = Frame::new(fixture::findings(), usize::MAX, owner);
        assert!(!whole.findings.snapshot.truncated);
        let cut = Frame::new(fixture::findings(), 2, owner);
        let json: Value = serde_json::from_slice(&cut.json()).unwrap();
        assert_eq!(json["truncated"], true);
        assert_eq!(json["objects"].as_array().unwrap().len(), 2);
        assert_eq!(json["objects"][0]["object"], "<Total>");
        assert!(json["cost"]["own_rss_bytes"].as_u64() > Some(0));
        let user = Owner { rank: Rank::User, ..owner };
        let shown = Frame::new(fixture::findings(), 2, user);
        let json: Value = serde_json::from_slice(&shown.json()).unwrap();
        assert_eq!(
            (&json["cost"]["own_rss_bytes"], &json["cost"]["own_cpu_ns"]),
            (&0.into(), &0.into())
        );
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
        assert!(event.len() <= max_bytes + AFTER.len());
        let json: Value = serde_json::from_slice(&event[BEFORE.len()..]).unwrap();
        assert_eq!(json["truncated"], true);
        let n_left = json["objects"].as_array().unwrap().len();
        assert!((100..n_objects / 2 + 1).contains(&n_left), "{n_left}");
    }

    #[test]
    fn all_clients_have_the_same_bytes() {
        let frame = Frame::new(fixture::findings(), 10, Owner::configuration());
        let (one, other) = (frame.event(), frame.json());
        assert_eq!(one.as_ptr(), frame.event().as_ptr());
        assert_eq!(one[BEFORE.len()..].as_ptr(), other.as_ptr());
        assert_eq!(one, [BEFORE, &other, AFTER].concat());
        let (one, other) = (frame.folded().unwrap(), frame.folded().unwrap());
        assert_eq!(one.as_ptr(), other.as_ptr());
        drop((one, other));
        assert!(frame.folded.0.lock().unwrap().upgrade().is_none(), "nobody keeps it");
    }
}
