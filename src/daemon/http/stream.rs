//! A session's snapshots as server-sent events (HTML Living Standard, section 9.2): the newest one
//! each time the client takes one, so that a slow client gets fewer and nothing queues up.

use super::answer::{AnswerBody, with_body};
use super::path::number;
use super::route::Asked;
use crate::daemon::session::frame::Frame;
use crate::daemon::session::sealed::Sealed;
use crate::daemon::session::{Session, Status, Watching};
use bytes::Bytes;
use dataspace_proto::api::{ApiError, ErrorCode};
use http_body_util::Either;
use hyper::Response;
use hyper::body::{Body, Frame as Piece};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Intervals at which a client may ask for snapshots, in milliseconds.
pub(crate) const INTERVALS: std::ops::RangeInclusive<u64> = 100..=60_000;

/// Unless the client says otherwise.
pub(crate) const DEFAULT_INTERVAL_MS: u64 = 1_000;

/// Longest silence of a stream: what has nothing to say says so, and finds out whether
/// anybody still listens.
const SILENCE: Duration = Duration::from_secs(15);

/// State of one client's stream.
struct Follower {
    session: Arc<Session>,
    _watching: Watching,
    status: watch::Receiver<Status>,
    interval: Duration,
    /// Time when the next snapshot is due.
    due: Instant,
    /// Not kept alive for that: it may be the last one that has it.
    sent: Weak<Frame>,
    spoke: Instant,
    is_over: bool,
    /// The last event, which is still to be sent when the session is over.
    rest: Option<Bytes>,
    /// Rest of an event that is being sent.
    sending: Option<Sealed>,
}

impl Follower {
    /// The next event, when it is due; `None` after the last one.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(piece) = self.piece() {
            return Some(piece);
        }
        if self.is_over {
            return self.rest.take();
        }
        loop {
            let wake = self.due.min(self.spoke + SILENCE);
            let is_over = tokio::select! {
                () = sleep_until(wake) => false,
                _ = self.status.wait_for(Status::is_over) => true,
            };
            if is_over {
                return self.last();
            }
            if let Some(frame) = self.fresh().await {
                self.spoke = Instant::now();
                self.sent = Arc::downgrade(&frame);
                self.sending = Some(frame.event.clone());
                return self.piece();
            }
            if self.spoke.elapsed() >= SILENCE {
                self.spoke = Instant::now();
                return Some(Bytes::from_static(b": nothing new\n\n"));
            }
        }
    }

    /// The next piece of the event that is being sent, if there is any.
    fn piece(&mut self) -> Option<Bytes> {
        let piece = self.sending.as_mut()?.next_piece();
        let piece = piece.inspect_err(|error| tracing::error!(%error, "a stream breaks off"));
        let piece = piece.ok().flatten();
        if piece.is_none() {
            self.sending = None;
        }
        piece
    }

    /// A snapshot that this client has not got yet, if one is due and there is one.
    async fn fresh(&mut self) -> Option<Arc<Frame>> {
        if Instant::now() < self.due {
            return None;
        }
        let newest = self.session.renewed(self.interval / 2).await;
        self.due = Instant::now() + self.interval;
        newest.filter(|frame| !self.has_sent(frame))
    }

    fn has_sent(&self, frame: &Arc<Frame>) -> bool {
        std::ptr::eq(Arc::as_ptr(frame), self.sent.as_ptr())
    }

    /// The final totals, if the client has not got them, and that they are.
    fn last(&mut self) -> Option<Bytes> {
        self.is_over = true;
        let line = serde_json::to_vec(&self.session.line()).unwrap_or_default();
        let end: Bytes = [b"event: end\ndata: ", &line[..], b"\n\n"].concat().into();
        match self.session.newest().filter(|frame| !self.has_sent(frame)) {
            Some(frame) => {
                self.rest = Some(end);
                self.sending = Some(frame.event.clone());
                self.piece()
            }
            None => Some(end),
        }
    }
}

type Next = Pin<Box<dyn Future<Output = (Follower, Option<Bytes>)> + Send>>;

/// The body of the answer.
pub(crate) struct EventStream {
    next: Option<Next>,
}

impl EventStream {
    /// The snapshots of `session`, one each `interval`.
    pub(crate) fn new(session: Arc<Session>, interval: Duration) -> Self {
        let now = Instant::now();
        let follower = Follower {
            status: session.watch_status(),
            _watching: session.watched(),
            session,
            interval,
            due: now,
            sent: Weak::new(),
            spoke: now,
            is_over: false,
            rest: None,
            sending: None,
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

/// Snapshots of a session, as they come.
pub(crate) async fn answer(asked: Asked<'_>) -> Result<Response<AnswerBody>, ApiError> {
    let interval = interval(&asked.query)?;
    let events = EventStream::new(asked.session()?, interval);
    let body = Either::Right(Either::Right(Either::Left(events)));
    Ok(with_body(asked.route.success, asked.route.answer.kind, body))
}

/// `interval_ms=…` of the stream's query.
fn interval(query: &[(String, String)]) -> Result<Duration, ApiError> {
    let Some((_, value)) = query.last() else {
        return Ok(Duration::from_millis(DEFAULT_INTERVAL_MS));
    };
    let (least, most) = (INTERVALS.start(), INTERVALS.end());
    let ms = number(value).filter(|ms| INTERVALS.contains(ms) && query.len() == 1);
    let message = || format!("interval_ms is one number from {least} to {most}");
    let ms = ms.ok_or_else(|| ApiError { code: ErrorCode::BadRequest, message: message() })?;
    Ok(Duration::from_millis(ms))
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

#[cfg(test)]
mod tests {
    use super::super::path;
    use super::*;

    fn ms(query: &str) -> Result<u128, ApiError> {
        interval(&path::query(Some(query))?).map(|interval| interval.as_millis())
    }

    #[test]
    fn intervals_have_bounds() {
        assert_eq!(ms("").unwrap(), 1000);
        assert_eq!(ms("interval_ms=250").unwrap(), 250);
        for wrong in ["1", "x", "99999999", "+250", "", "250&interval_ms=300"] {
            let error = ms(&format!("interval_ms={wrong}")).unwrap_err();
            assert_eq!(error.code, ErrorCode::BadRequest, "{wrong}");
        }
    }
}
