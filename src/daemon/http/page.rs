//! Answers to browsers: the files of the page, and the headers that confine it.

use super::answer::{AnswerBody, full, refusal};
use crate::daemon::relay::Elsewhere;
use crate::page;
use crate::page::served::{self, ServedFile};
use dataspace_proto::api::{ApiError, ErrorCode};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

/// The file of the page that a request is for.
pub(super) fn asked<B>(request: &Request<B>) -> Option<&'static ServedFile> {
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    served::file(request.uri().path()).filter(|_| is_read)
}

/// A file of the page, compressed where the browser takes that: all do since 1999 (RFC 9110, section 12.5.3).
pub(super) fn answer<B>(file: &ServedFile, request: &Request<B>) -> Response<AnswerBody> {
    let accepted = request.headers().get_all(ACCEPT_ENCODING);
    let mut codings =
        accepted.iter().filter_map(|value| value.to_str().ok()).flat_map(|it| it.split(','));
    if !codings.any(|coding| coding.trim() == "gzip") {
        return full(StatusCode::OK, file.kind, file.plain.clone());
    }
    let mut answer = full(StatusCode::OK, file.kind, file.zipped.clone());
    answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    answer
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
    for (name, value) in page::HEADERS {
        answer.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    answer
}
