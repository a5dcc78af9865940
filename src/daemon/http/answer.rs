//! Answers as HTTP has them: a status, a kind, and bytes.

use super::stream::EventStream;
use crate::daemon::relay::RelayedBody;
use crate::daemon::session::sealed::Sealed;
use bytes::Bytes;
use dataspace_proto::api::{ApiError, ErrorCode};
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame as Piece, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde::Serialize;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The media type of most answers.
pub(crate) const JSON: &str = "application/json";

/// The body of an answer.
pub(crate) type AnswerBody =
    Either<Full<Bytes>, Either<SealedBody, Either<EventStream, RelayedBody>>>;

/// A body that a worker made.
pub(crate) struct SealedBody(Sealed);

impl Body for SealedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Piece<Bytes>, Infallible>>> {
        // What cannot be read ends it early, which the client sees by its length.
        let piece = self.0.next_piece().unwrap_or_else(|error| {
            tracing::error!(%error, "an answer breaks off");
            None
        });
        Poll::Ready(piece.map(|bytes| Ok(Piece::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.len() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len())
    }
}

/// An error as an answer.
pub(crate) fn refusal(error: &ApiError) -> Response<AnswerBody> {
    let status = StatusCode::from_u16(error.code.http_status());
    let mut response = json(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), error);
    if error.code == ErrorCode::Unauthorized {
        let challenge = HeaderValue::from_static("Bearer realm=\"dataspace\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

/// An error as it goes over a connection that is closed after it, where hyper does not write it.
pub(crate) fn last_words(error: &ApiError) -> Vec<u8> {
    let status = StatusCode::from_u16(error.code.http_status()).unwrap_or(StatusCode::BAD_REQUEST);
    let body = serde_json::to_string(error).unwrap_or_default();
    let reason = status.canonical_reason().unwrap_or_default();
    format!(
        "HTTP/1.1 {} {reason}\r\ncontent-type: {JSON}\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        status.as_u16(),
        body.len()
    )
    .into_bytes()
}

pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response<AnswerBody> {
    match serde_json::to_vec(value) {
        Ok(json) => json_bytes(status, json.into()),
        Err(error) => {
            tracing::error!(%error, "an answer cannot be written as JSON");
            json_bytes(StatusCode::INTERNAL_SERVER_ERROR, Bytes::from_static(b"null"))
        }
    }
}

pub(crate) fn json_bytes(status: StatusCode, json: Bytes) -> Response<AnswerBody> {
    full(status, JSON, json)
}

/// An answer of any kind that is whole.
pub(crate) fn full(status: StatusCode, kind: &'static str, bytes: Bytes) -> Response<AnswerBody> {
    with_body(status, kind, Either::Left(Full::new(bytes)))
}

/// An answer of any kind that a worker made.
pub(crate) fn sealed(
    status: StatusCode,
    kind: &'static str,
    bytes: Sealed,
) -> Response<AnswerBody> {
    with_body(status, kind, Either::Right(Either::Left(SealedBody(bytes))))
}

/// An answer of any kind.
pub(crate) fn with_body(
    status: StatusCode,
    kind: &'static str,
    body: AnswerBody,
) -> Response<AnswerBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
