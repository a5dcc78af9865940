//! A session of the daemon as a source of snapshots, like one of our own.

use super::{Client, part};
use crate::lock::lock;
use crate::session::Source;
use crate::session::findings::Findings;
use crate::session::question::Question;
use dataspace_proto::api::{SessionLine, SessionList, SessionSpec};
use dataspace_proto::query::QueryAnswer;
use dataspace_proto::snapshot::Snapshot;
use dataspace_proto::worker::MAX_MADE_BYTES;
use std::io::{BufRead, Read as _};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Interval at which the stream that tells of the session's end brings a snapshot: seldom, for those that are
/// Longest line of a stream: a snapshot, and the word before it.
const MAX_LINE_BYTES: u64 = MAX_MADE_BYTES + 64;

/// shown are asked for one by one.
const WATCH_INTERVAL_MS: u64 = 60_000;

/// Time that the final totals are waited for after the session was ended.
const FINAL_TIME: Duration = Duration::from_secs(8);

/// A session of the daemon.
pub(crate) struct RemoteSession {
    client: Client,
    id: u64,
    /// It was begun for us, and ends with us.
    is_ours: bool,
    shared: Arc<WatchedTotals>,
    watcher: Mutex<Option<JoinHandle<()>>>,
}

struct WatchedTotals {
    /// The newest totals, and whether they are the final ones.
    state: Mutex<(Arc<Snapshot>, bool)>,
    finished: Condvar,
}

impl RemoteSession {
    /// Shows the session `key` of the daemon, or the only one that there is.
    ///
    /// # Errors
    /// The daemon's, and that there is none or more than one.
    pub(crate) fn watch(client: Client, key: Option<&str>) -> anyhow::Result<Self> {
        let line = match key {
            Some(key) => client.get(&format!("sessions/{}", part(key)?))?,
            None => only_one(client.get::<SessionList>("sessions")?, &client)?,
        };
        Self::open(client, &line, false)
    }

    /// Has the daemon begin a session that ends with this value, or when nobody watches it any more: we may be
    /// killed.
    ///
    /// # Errors
    /// The daemon's.
    pub(crate) fn attach(client: Client, spec: &SessionSpec) -> anyhow::Result<Self> {
        let line = client.attach_while_watched(spec)?;
        let session = Self::open(client.clone(), &line, true);
        if session.is_err() {
            // Nobody else will end it.
            let _ = client.detach(&line.id.to_string());
        }
        session
    }

    fn open(client: Client, line: &SessionLine, is_ours: bool) -> anyhow::Result<Self> {
        let id = line.id;
        let first: Snapshot = client.get(&format!("sessions/{id}/snapshot"))?;
        let path = format!("sessions/{id}/stream?interval_ms={WATCH_INTERVAL_MS}");
        let mut events = client.open("GET", &path, None)?.stream();
        let state = Mutex::new((Arc::new(first), false));
        let shared = Arc::new(WatchedTotals { state, finished: Condvar::new() });
        let for_thread = shared.clone();
        let watcher = std::thread::Builder::new().name("watcher".to_owned()).spawn(move || {
            let is_in_order = for_thread.follow(&mut events);
            for_thread.finish(is_in_order);
        })?;
        Ok(Self { client, id, is_ours, shared, watcher: Mutex::new(Some(watcher)) })
    }
}

fn only_one(list: SessionList, client: &Client) -> anyhow::Result<SessionLine> {
    use crate::exit::{Failure, Kind};
    let refused = |what: &str, remedies: [(String, &str); 2]| {
        let width = remedies.iter().map(|(typed, _)| typed.len()).max().unwrap_or(0);
        let lines = remedies.map(|(typed, gives)| format!("{typed:width$}   {gives}"));
        Err(Failure::new(Kind::Usage, what).with_remedy(lines.join("\n")).into())
    };
    let top = client.typed_top();
    let mut sessions = list.sessions;
    match (sessions.pop(), sessions.is_empty()) {
        (Some(session), true) => Ok(session),
        (None, _) => {
            let attach = format!("{} -p PID", client.typed("attach"));
            let own = (format!("{top} -p PID"), "one of your own");
            refused("the daemon has no session that you may see", [own, (attach, "one that stays")])
        }
        (Some(_), false) => {
            let list = (client.typed("sessions"), "which they are");
            let one = (format!("{top} --session NUMBER"), "one of them");
            refused("the daemon has several sessions", [list, one])
        }
    }
}

impl WatchedTotals {
    /// Reads events until the last one; whether that came.
    fn follow(&self, events: &mut dyn BufRead) -> bool {
        let mut name = String::new();
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut *events).take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
            if !read.is_ok_and(|n_read| n_read > 0) || !line.ends_with(b"\n") {
                return false;
            }
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            if let Some(event) = text.strip_prefix(b"event: ") {
                name = String::from_utf8_lossy(event).into_owned();
            } else if let Some(data) = text.strip_prefix(b"data: ") {
                match (name.as_str(), serde_json::from_slice(data)) {
                    ("end", _) => return true,
                    ("snapshot", Ok(snapshot)) => self.keep(snapshot),
                    _ => {}
                }
            }
        }
    }

    /// Takes newer totals in; the final ones stay.
    fn keep(&self, snapshot: Snapshot) {
        let (newest, is_finished) = &mut *lock(&self.state);
        if !*is_finished {
            *newest = Arc::new(snapshot);
        }
    }

    fn finish(&self, is_in_order: bool) {
        let (newest, is_finished) = &mut *lock(&self.state);
        let last = Arc::make_mut(newest);
        last.target.running = false;
        if !is_in_order {
            last.warnings.push("the daemon is gone: the totals end here".to_owned());
        }
        *is_finished = true;
        self.finished.notify_all();
    }

    fn wait(&self, time: Duration) {
        let is_going_on = |state: &mut (Arc<Snapshot>, bool)| !state.1;
        drop(self.finished.wait_timeout_while(lock(&self.state), time, is_going_on));
    }
}

impl Source for RemoteSession {
    fn findings(&self) -> Findings {
        self.snapshot().into()
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        if !self.is_finished()
            && let Ok(snapshot) = self.client.get(&format!("sessions/{}/snapshot", self.id))
        {
            // The watcher may have got the final totals meanwhile.
            self.shared.keep(snapshot);
        }
        lock(&self.shared.state).0.clone()
    }

    fn answers_at_end(&self) -> bool {
        // A session that is ours is gone then.
        !self.is_ours
    }

    fn ask(&self, question: &Question) -> anyhow::Result<QueryAnswer> {
        self.client.query(self.id, &question.query)
    }

    fn ask_all(&self, questions: &[Question]) -> anyhow::Result<Vec<QueryAnswer>> {
        questions.iter().map(|question| self.ask(question)).collect()
    }

    fn is_finished(&self) -> bool {
        lock(&self.shared.state).1
    }

    fn stop(&self) {
        let watcher = lock(&self.watcher).take();
        if watcher.is_none() || !self.is_ours {
            return;
        }
        // The stream brings the final totals before it ends.
        match self.client.detach(&self.id.to_string()) {
            Ok(_) => self.shared.wait(FINAL_TIME),
            Err(error) => tracing::debug!("the session is not detached: {error:#}"),
        }
    }
}

impl Drop for RemoteSession {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn shared() -> WatchedTotals {
        let state = Mutex::new((Arc::new(fixture::running()), false));
        WatchedTotals { state, finished: Condvar::new() }
    }

    #[test]
    fn the_last_event_ends_a_stream_and_nothing_else_does_in_order() {
        let last = serde_json::to_string(&fixture::ended()).unwrap();
        let stream =
            format!(": nothing new\n\nevent: snapshot\ndata: {last}\n\nevent: end\ndata: {{}}\n\n");
        let whole = shared();
        let is_in_order = whole.follow(&mut stream.as_bytes());
        whole.finish(is_in_order);
        let (newest, is_finished) = &*lock(&whole.state);
        assert!(is_in_order && *is_finished);
        assert_eq!(serde_json::to_string(&**newest).unwrap(), last);
        let broken = shared();
        let is_in_order = broken.follow(&mut &b"event: snapshot\ndata: {"[..]);
        broken.finish(is_in_order);
        let last = lock(&broken.state).0.clone();
        assert!(!is_in_order && !last.target.running);
        assert!(last.warnings.iter().any(|warning| warning.contains("daemon is gone")));
    }

    #[test]
    fn without_a_name_the_only_session_is_meant() {
        use dataspace_proto::api::{Origin, SessionState};
        let line = |id| SessionLine {
            id,
            name: None,
            origin: Origin::Request,
            uid: 0,
            state: SessionState::Attached,
            detail: None,
            target: "x".into(),
            events: Vec::new(),
            n_attached: 1,
        };
        let of = |ids: &[u64]| SessionList { sessions: ids.iter().copied().map(line).collect() };
        let client = Client::new(std::path::Path::new("x.sock"), None).unwrap();
        assert_eq!(only_one(of(&[7]), &client).unwrap().id, 7);
        let hint = |ids: &[u64]| {
            let error = only_one(of(ids), &client).unwrap_err();
            format!("{:?}", error.downcast_ref::<crate::exit::Failure>())
        };
        let none = hint(&[]);
        assert!(none.contains("dataspace top --connect x.sock -p PID"), "{none}");
        assert!(none.contains("dataspace attach --socket x.sock -p PID"), "{none}");
        let several = hint(&[1, 2]);
        assert!(several.contains("dataspace sessions --socket x.sock "), "{several}");
        assert!(several.contains("dataspace top --connect x.sock --session NUMBER"), "{several}");
    }
}
