//! The body of a request, within the daemon's limits.

use crate::daemon::state::Daemon;
use bytes::Bytes;
use dataspace_proto::api::{ApiError, ErrorCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;

/// All of it.
///
/// # Errors
/// Where it is too long, does not come in time, or breaks off.
pub(super) async fn read(daemon: &Daemon, body: &mut Incoming) -> Result<Bytes, ApiError> {
    let wrong = |code, message: String| ApiError { code, message };
    let limits = daemon.limits();
    let body = Limited::new(body, limits.request_bytes).collect();
    let body = tokio::time::timeout(limits.request_time(), body).await;
    let too_slow = |_| wrong(ErrorCode::TooSlow, "the request's body does not come".into());
    let body = body.map_err(too_slow)?.map_err(|error| {
        if error.is::<LengthLimitError>() {
            let message = format!("a request has at most {} bytes", limits.request_bytes);
            wrong(ErrorCode::TooLarge, message)
        } else {
            wrong(ErrorCode::BadRequest, format!("the request's body breaks off: {error}"))
        }
    })?;
    Ok(body.to_bytes())
}
