//! A session's snapshots as server-sent events (HTML Living Standard, section 9.2): the newest one
//! each time the client takes one, so that a slow client gets fewer and nothing queues up.

use super::frame::Frame;
use super::session::{Session, Status};
use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame as Piece};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

/// How often a client may ask for a snapshot, and how seldom.
pub(super) const INTERVALS: std::ops::RangeInclusive<u64> = 100..=60_000;

/// Unless the client says otherwise.
pub(super) const DEFAULT_INTERVAL_MS: u64 = 1_000;

/// How long a stream is silent at most: what has nothing to say says so, and finds out whether
/// anybody still listens.
const SILENCE: Duration = Duration::from_secs(15);

/// How long a fresh snapshot is waited for, before it is looked whether the session is over.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where one client is.
struct Follower {
    session: Arc<Session>,
    frames: watch::Receiver<Option<Arc<Frame>>>,
    status: watch::Receiver<Status>,
    interval: Duration,
    /// When the next snapshot is due.
    due: Instant,
    sent: Option<Arc<Frame>>,
    spoke: Instant,
    is_over: bool,
}

impl Follower {
    /// The next event, when it is due; `None` after the last one.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        loop {
            let wake = self.due.min(self.spoke + SILENCE);
            let is_over = tokio::select! {
                () = sleep_until(wake) => false,
                _ = self.status.wait_for(Status::is_over) => true,
            };
            if is_over {
                return Some(self.last());
            }
            if let Some(frame) = self.fresh().await {
                self.due = Instant::now() + self.interval;
                self.spoke = Instant::now();
                let event = event("snapshot", &frame.json());
                self.sent = Some(frame);
                return Some(event);
            }
            if self.spoke.elapsed() >= SILENCE {
                self.spoke = Instant::now();
                return Some(Bytes::from_static(b": nothing new\n\n"));
            }
        }
    }

    /// A snapshot that this client has not got yet.
    async fn fresh(&mut self) -> Option<Arc<Frame>> {
        if Instant::now() < self.due {
            return None;
        }
        let is_sent =
            |frame: &Arc<Frame>| self.sent.as_ref().is_some_and(|sent| Arc::ptr_eq(sent, frame));
        let young = self.interval / 2;
        let newest = self.frames.borrow_and_update().clone();
        if let Some(frame) = newest.filter(|frame| !is_sent(frame) && frame.made.elapsed() < young)
        {
            return Some(frame);
        }
        self.session.wish();
        let _ = timeout(PATIENCE, self.frames.changed()).await;
        let newest = self.frames.borrow_and_update().clone();
        newest.filter(|frame| !is_sent(frame))
    }

    /// The final totals, if the client has not got them, and that they are.
    fn last(&mut self) -> Bytes {
        self.is_over = true;
        let line = serde_json::to_vec(&self.session.line()).unwrap_or_default();
        let end = event("end", &line);
        let newest = self.frames.borrow().clone();
        let is_new =
            |frame: &Arc<Frame>| !self.sent.as_ref().is_some_and(|sent| Arc::ptr_eq(sent, frame));
        match newest.filter(is_new) {
            Some(frame) => {
                let mut both = BytesMut::from(&event("snapshot", &frame.json())[..]);
                both.extend_from_slice(&end);
                both.freeze()
            }
            None => end,
        }
    }
}

/// JSON has no line ends, so the data is one line.
fn event(name: &str, data: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(name.len() + data.len() + 16);
    for part in [b"event: ", name.as_bytes(), b"\ndata: ", data, b"\n\n"] {
        bytes.extend_from_slice(part);
    }
    bytes.freeze()
}

type Next = Pin<Box<dyn Future<Output = (Follower, Option<Bytes>)> + Send>>;

/// The body of the answer.
pub(super) struct EventStream {
    next: Option<Next>,
}

impl EventStream {
    /// The snapshots of `session`, one each `interval`.
    pub(super) fn new(session: Arc<Session>, interval: Duration) -> Self {
        let now = Instant::now();
        let follower = Follower {
            frames: session.watch_frames(),
            status: session.watch_status(),
            session,
            interval,
            due: now,
            sent: None,
            spoke: now,
            is_over: false,
        };
        Self { next: Some(step(follower)) }
    }
}

fn step(mut follower: Follower) -> Next {
    Box::pin(async move {
        let event = follower.next().await;
        (follower, event)
    })
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Piece<Bytes>, Infallible>>> {
        let Some(next) = &mut self.next else { return Poll::Ready(None) };
        let (follower, event) = ready!(next.as_mut().poll(context));
        self.next = event.is_some().then(|| step(follower));
        Poll::Ready(event.map(|event| Ok(Piece::data(event))))
    }
}
