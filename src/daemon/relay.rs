//! The way to another daemon, whose answers are handed on as they are.

use bytes::Bytes;
use hyper::body::{Body, Frame as Piece, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap,
    HeaderValue,
};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// Time that the other one may take to be there.
const CONNECT: Duration = Duration::from_secs(10);

/// Time until its answer begins: the longest takes a daemon thirty seconds to make.
const ANSWER: Duration = Duration::from_secs(60);

/// Place of another daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Elsewhere {
    /// Its sockets, in the order in which they are tried.
    Sockets(Vec<PathBuf>),
    /// Its host and port, and the value of `Authorization` that it wants.
    Network {
        /// Host and port.
        authority: String,
        /// `Bearer`, and the token.
        authorization: Option<String>,
    },
}

/// The body of an answer from elsewhere.
pub(crate) struct RelayedBody(Incoming);

impl Body for RelayedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Piece<Bytes>, Infallible>>> {
        let frame = std::task::ready!(Pin::new(&mut self.0).poll_frame(context));
        Poll::Ready(match frame {
            Some(Ok(frame)) => Some(Ok(frame)),
            // A stream has no `end` then, and what has a length is shorter than that.
            Some(Err(error)) => {
                tracing::warn!(%error, "the daemon's answer breaks off");
                None
            }
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl Elsewhere {
    /// The other daemon's answer.
    ///
    /// # Errors
    /// Where it gives none.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> io::Result<Response<RelayedBody>> {
        Ok(self.relayed(request).await?.map(RelayedBody))
    }

    async fn relayed(&self, mut request: Request<Incoming>) -> io::Result<Response<Incoming>> {
        let headers = self.headers(request.headers())?;
        *request.headers_mut() = headers;
        match self {
            Self::Sockets(paths) => {
                let mut failed = io::Error::from(io::ErrorKind::NotFound);
                for path in paths {
                    match UnixStream::connect(path).await {
                        Ok(stream) => return asked(stream, request).await,
                        Err(error) => failed = error,
                    }
                }
                Err(failed)
            }
            Self::Network { authority, .. } => {
                let connecting = tokio::time::timeout(CONNECT, TcpStream::connect(authority));
                asked(connecting.await.map_err(|_| io::ErrorKind::TimedOut)??, request).await
            }
        }
    }

    /// The part of a request's headers that the other one has to know.
    fn headers(&self, given: &HeaderMap) -> io::Result<HeaderMap> {
        let mut headers = HeaderMap::new();
        for name in [CONTENT_TYPE, CONTENT_LENGTH, ACCEPT_ENCODING] {
            if let Some(value) = given.get(&name) {
                headers.insert(name, value.clone());
            }
        }
        let (host, authorization) = match self {
            Self::Sockets(_) => ("dataspace", None),
            Self::Network { authority, authorization } => (&**authority, authorization.as_ref()),
        };
        headers.insert(HOST, HeaderValue::from_str(host).map_err(io::Error::other)?);
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        if let Some(authorization) = authorization {
            let value = HeaderValue::from_str(authorization).map_err(io::Error::other)?;
            headers.insert(AUTHORIZATION, value);
        }
        Ok(headers)
    }
}

/// Asks over a connection that is for this one request.
async fn asked(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Incoming>,
) -> io::Result<Response<Incoming>> {
    let shaken = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(io::Error::other)?;
    // It ends when nobody reads the answer any more.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    let answer = tokio::time::timeout(ANSWER, sender.send_request(request)).await;
    let mut answer = answer.map_err(|_| io::ErrorKind::TimedOut)?.map_err(io::Error::other)?;
    // It is of that connection.
    answer.headers_mut().remove(CONNECTION);
    Ok(answer)
}
