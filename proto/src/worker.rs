//! Messages between the daemon and a worker of it, which does the work of one user's sessions.
//!
//! On the first connection the daemon gives orders. Each session has two of its own, on which the daemon asks and the
//! worker replies, one after the other: one to follow it, one for answers that take long to make. Bytes for clients are
//! written to a memory file (`memfd_create(2)`) that lies beside what is asked; the daemon seals it, hands it on and never
//! reads it. Beside replies there is nothing.

use crate::accounting::Accounting;
use crate::event_count::EventCount;
use crate::view::View;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The longest bytes for clients, in one file: names come from debug information that anybody may have made, and a
/// client that takes nothing keeps one.
pub const MAX_MADE_BYTES: u64 = 16 << 20;

/// Text before and after the JSON of a snapshot, which make an event of a stream of it (HTML Living Standard, section
/// 9.2). JSON has no line ends, so the data is one line.
pub const EVENT_TEXT: (&[u8], &[u8]) = (b"event: snapshot\ndata: ", b"\n\n");

/// An order to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// The first: beside it is the connection by which the worker asks for what it may have, if it is to.
    Access,
    /// A session begins. Beside it: its two connections, and the recording that it reads, if it does.
    Begin {
        /// Its number.
        session: u64,
        /// All that it is begun with.
        request: SessionRequest,
    },
    /// A session is told something while it is busy.
    Flag {
        /// Its number.
        session: u64,
        /// The news.
        flag: Flag,
    },
    /// Resident memory is to be below so many bytes, if below any.
    Memory {
        /// The bound.
        max_bytes: Option<u64>,
    },
}

/// News for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flag {
    /// What was mapped before is waited for no longer: it is to end.
    Leave,
    /// Nothing is waited for: the daemon ends.
    Hurry,
}

/// All that a session of a worker begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRequest {
    /// The request, as JSON of [`SessionSpec`](crate::api::SessionSpec).
    pub spec: Vec<u8>,
    /// The work, where it is not for what the spec names.
    pub own_work: Option<OwnWork>,
    /// The user for whom it is, where he may not see all.
    pub viewer: Option<Viewer>,
    /// Most objects in a snapshot.
    pub max_objects: u64,
    /// The history has source lines from the beginning: they are told after the end, too.
    pub has_lines: bool,
    /// Something that its viewers are to know.
    pub warning: Option<String>,
}

/// Work that only whoever starts a daemon for a page of his own can ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OwnWork {
    /// To sample a command from its first instruction: its words. The broker starts it.
    Command(Vec<Vec<u8>>),
    /// To read a recording.
    Recording {
        /// Its name, for a person.
        name: Vec<u8>,
        /// A directory below which load objects are looked for first.
        symfs: Option<Vec<u8>>,
    },
}

/// A user with fewer privileges than the daemon's.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Viewer {
    /// The user.
    pub uid: u32,
    /// His group.
    pub gid: u32,
    /// His other groups.
    pub groups: Vec<u32>,
}

/// A question about a session, by who follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// Opens its events.
    Attach,
    /// How it stands.
    Glance,
    /// A snapshot.
    Snapshot,
    /// Ends it in order: the next snapshot is the last.
    Stop,
}

/// An answer that takes long to make, of the newest snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wish {
    /// An object, by its number.
    Object(u32),
    /// Its layout.
    Layout(u32),
    /// A profile of pprof.
    Pprof,
    /// Folded stacks.
    Folded,
    /// The answer to a question to the history, of it as it is then.
    Query {
        /// JSON of [`Query`](crate::query::Query).
        query: Vec<u8>,
        /// Keys of the daemon's configuration, by name.
        keys: BTreeMap<String, String>,
        /// The answer is CSV, not JSON.
        is_csv: bool,
    },
    /// A view of the history, as JSON.
    View {
        /// Which one.
        view: View,
        /// JSON of [`ViewRequest`](crate::view::ViewRequest).
        request: Vec<u8>,
        /// Keys of the daemon's configuration, by name.
        keys: BTreeMap<String, String>,
    },
}

/// The reply to an [`Ask`] or a [`Wish`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// It samples.
    Attached(Standing),
    /// It does not.
    NotAttached {
        /// The exit code that a command would have.
        code: u8,
        /// Why.
        message: String,
    },
    /// How it stands.
    Standing(Standing),
    /// A snapshot is in the file, as an event of a stream. [`Figures`] are its own, as JSON.
    Snapshot(Vec<u8>),
    /// It has ended.
    Stopped,
    /// What was wished for is in the file.
    Made,
    /// There is no such object, or no layout of it.
    Absent,
    /// What was wished for means nothing.
    Refused(String),
    /// It cannot be made.
    Failed(String),
}

/// How a session stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Heartbeats so far.
    pub beat: u64,
    /// True once its target has ended and its totals are final.
    pub is_finished: bool,
    /// Number of times that the worker's memory was short though all was given up that could be: a session is to be.
    pub n_short: u64,
    /// True while its memory is short.
    pub is_short: bool,
    /// True while it has more than it should.
    pub is_above: bool,
    /// Number of times that each kind of thing was asked to be given up for want of memory.
    pub n_shed: Vec<u64>,
}

/// Figures of a snapshot, which the daemon tells itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The target, for a person.
    pub target: String,
    /// Names of the events.
    pub events: Vec<String>,
    /// The session's length.
    pub elapsed_ns: u64,
    /// Account of the samples.
    pub accounting: Accounting,
    /// Exact counts, where they were asked for: at most [`Self::MAX_COUNTS`].
    pub counts: Vec<EventCount>,
    /// Time that sampling took from the target.
    pub target_cost_ns: u64,
    /// CPU time that the session has used.
    pub own_cpu_ns: u64,
    /// Batches of records that wait.
    pub n_batches: u64,
    /// Questions about code that wait.
    pub n_questions: u64,
    /// The window that the objects are counted over.
    pub window: String,
    /// The objects with the most samples of their own, then all others together.
    pub objects: Vec<(String, u64)>,
}

impl Figures {
    /// Objects of one session that have a series of their own, and the one that stands for all others. With 16 sessions
    /// that makes 336 series.
    pub const MAX_OBJECTS: usize = 21;

    /// Counts of one session: a measurement has about ten, on two kinds of core twice as many.
    pub const MAX_COUNTS: usize = 32;

    /// The longest name of an object, in characters: C++ templates have names of kilobytes.
    pub const MAX_NAME_CHARS: usize = 200;
}
