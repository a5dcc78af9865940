//! Answers to browsers: the files of the page, and the headers that confine it.

use super::answer::{AnswerBody, full, refusal};
use crate::daemon::relay::Elsewhere;
use crate::page::file::{self, PageFile};
use bytes::Bytes;
use dataspace_proto::api::{ApiError, ErrorCode};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

/// The file of the page that a request is for.
pub(super) fn asked<B>(request: &Request<B>) -> Option<&'static PageFile> {
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    file::file(request.uri().path()).filter(|_| is_read)
}

/// A file of the page. There is nothing secret in it.
pub(super) fn answer(file: &PageFile) -> Response<AnswerBody> {
    full(StatusCode::OK, file.kind, Bytes::from_static(file.text.as_bytes()))
}

/// The answer of another daemon, which `elsewhere` leads to.
pub(super) async fn relayed(
    elsewhere: &Elsewhere,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    match elsewhere.answer(request).await {
        Ok(answer) => answer.map(|body| Either::Right(Either::Right(Either::Right(body)))),
        Err(error) => {
            let message = format!("the daemon does not answer: {error}");
            refusal(&ApiError { code: ErrorCode::Ending, message })
        }
    }
}

/// `answer` as browsers may use it.
pub(super) fn confined(mut answer: Response<AnswerBody>) -> Response<AnswerBody> {
    for (name, value) in file::HEADERS {
        answer.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    answer
}
