//! Gives a body to the refusals that hyper writes by itself, of requests that it cannot read: they
//! have none, and every other error of the API says what is wrong.

use super::answer::last_words;
use dataspace_proto::api::{ApiError, ErrorCode};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that puts words to hyper's mute refusals.
#[derive(Debug)]
pub(crate) struct Voiced<S> {
    stream: S,
    /// Bytes that are written in place of what hyper wrote.
    saying: Option<Saying>,
}

#[derive(Debug)]
struct Saying {
    bytes: Vec<u8>,
    n_written: usize,
    /// Number of bytes that hyper is to believe were written.
    n_meant: usize,
}

impl<S> Voiced<S> {
    pub(crate) const fn new(stream: S) -> Self {
        Self { stream, saying: None }
    }
}

/// Replacement for `bytes`, if that is a refusal without a body. All of ours have one.
fn words(bytes: &[u8]) -> Option<Vec<u8>> {
    let status = bytes.strip_prefix(b"HTTP/1.1 ")?.get(..4)?;
    let (code, message) = match status {
        b"400 " => (ErrorCode::BadRequest, "this is no request of HTTP/1.1"),
        b"414 " => (ErrorCode::UriTooLong, "the request's target is too long"),
        b"431 " => (ErrorCode::HeadTooLarge, "the request's head has too many or too long headers"),
        _ => return None,
    };
    let is_mute = memchr::memmem::find(bytes, b"\r\ncontent-length: 0\r\n").is_some();
    is_mute.then(|| last_words(&ApiError { code, message: message.to_owned() }))
}

impl<S: AsyncRead + Unpin> AsyncRead for Voiced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Voiced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.saying.is_none() {
            let saying = |words| Saying { bytes: words, n_written: 0, n_meant: bytes.len() };
            this.saying = words(bytes).map(saying);
        }
        let Some(saying) = &mut this.saying else {
            return Pin::new(&mut this.stream).poll_write(context, bytes);
        };
        while saying.n_written < saying.bytes.len() {
            let rest = &saying.bytes[saying.n_written..];
            let n_written = ready!(Pin::new(&mut this.stream).poll_write(context, rest))?;
            if n_written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            saying.n_written += n_written;
        }
        let n_meant = saying.n_meant;
        this.saying = None;
        Poll::Ready(Ok(n_meant))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match buffers.iter().find(|buffer| !buffer.is_empty()) {
            Some(first) if self.saying.is_some() || words(first).is_some() => {
                self.poll_write(context, first)
            }
            _ => Pin::new(&mut self.stream).poll_write_vectored(context, buffers),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    /// Sends `bytes` through a pipe that holds seven at a time, and gives what arrives.
    fn written(bytes: &[u8]) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (one, mut other) = tokio::io::duplex(7);
            let bytes = bytes.to_vec();
            let writer = tokio::spawn(async move {
                let mut stream = Voiced::new(one);
                stream.write_all(&bytes).await.unwrap();
            });
            let mut arrived = String::new();
            other.read_to_string(&mut arrived).await.unwrap();
            writer.await.unwrap();
            arrived
        })
    }

    #[test]
    fn a_mute_refusal_gets_words_and_nothing_else_is_touched() {
        let mute = "HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n\r\n";
        let arrived = written(mute.as_bytes());
        assert!(arrived.starts_with("HTTP/1.1 431 "), "{arrived}");
        let (head, body) = arrived.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())));
        let error: ApiError = serde_json::from_str(body).unwrap();
        assert_eq!(error.code, ErrorCode::HeadTooLarge);
        for other in [
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "data: HTTP/1.1 400 \r\ncontent-length: 0\r\n",
        ] {
            assert_eq!(written(other.as_bytes()), other);
        }
    }
}
