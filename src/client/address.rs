//! Address of a daemon: a socket, or a host and port.

use crate::daemon::client::token::Token;
use crate::daemon::config_file::control_of;
use crate::daemon::relay::Elsewhere;
use crate::exit::{Failure, Kind};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::fmt;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time that the daemon may say nothing: a stream speaks at least every 15 seconds, and an attach
/// request takes up to ten.
const SILENCE: Duration = Duration::from_secs(30);

/// Time that a machine may take to answer that it is there.
const CONNECT: Duration = Duration::from_secs(10);

/// A daemon's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    Socket(PathBuf),
    /// Host and port.
    Http(String),
}

/// A connection.
pub(super) trait Connection: Read + Write + Send + fmt::Debug {}

impl Connection for UnixStream {}
impl Connection for TcpStream {}

impl Address {
    /// A path, or `http://HOST:PORT`.
    ///
    /// # Errors
    /// Where a URL is another one.
    pub(super) fn parse(text: &Path) -> Result<Self, Failure> {
        let wrong = |what: &str, remedy: &str| {
            let what = format!("{what}: {}", text.display());
            Err(Failure::new(Kind::Usage, what).with_remedy(remedy))
        };
        let Some((scheme, rest)) = text.to_str().and_then(|text| text.split_once("://")) else {
            return Ok(Self::Socket(text.to_path_buf()));
        };
        if scheme != "http" {
            let remedy = "ssh -L 9170:127.0.0.1:9170 HOST   then --connect http://127.0.0.1:9170";
            return wrong("the daemon speaks HTTP without TLS", remedy);
        }
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-.:[]".contains(c);
        let port = authority.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        if port.is_none() || !authority.chars().all(is_plain) {
            return wrong("no host and port", "--connect http://HOST:PORT");
        }
        Ok(Self::Http(authority.to_owned()))
    }

    /// The way there, for whoever hands answers on.
    pub(super) fn elsewhere(&self, token: Option<&Token>) -> Elsewhere {
        match self {
            Self::Socket(path) => Elsewhere::Sockets(vec![control_of(path), path.clone()]),
            Self::Http(authority) => Elsewhere::Network {
                authority: authority.clone(),
                authorization: token.map(Token::header),
            },
        }
    }

    /// Value of a request's `Host`.
    pub(super) fn host(&self) -> &str {
        match self {
            Self::Socket(_) => "dataspace",
            Self::Http(authority) => authority,
        }
    }

    /// Connects.
    ///
    /// # Errors
    /// Those of the socket.
    pub(super) fn connect(&self) -> std::io::Result<Box<dyn Connection>> {
        match self {
            // Who may connect to the socket of root and the group does not wait among the public.
            Self::Socket(path) => {
                let own = UnixStream::connect(control_of(path));
                waiting(own.or_else(|_| UnixStream::connect(path))?)
            }
            Self::Http(authority) => {
                let mut failed = std::io::Error::from(std::io::ErrorKind::NotFound);
                for address in authority.to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, CONNECT) {
                        Ok(stream) => return waiting(stream),
                        Err(error) => failed = error,
                    }
                }
                Err(failed)
            }
        }
    }
}

/// `stream`, on which [`SILENCE`] is waited for and no longer.
fn waiting(stream: impl Connection + AsFd + 'static) -> std::io::Result<Box<dyn Connection>> {
    for direction in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(&stream, direction, Some(SILENCE))?;
    }
    Ok(Box::new(stream))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "{}", path.display()),
            Self::Http(authority) => write!(f, "http://{authority}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_path_or_a_host_with_a_port() {
        let parse = |text: &str| Address::parse(Path::new(text));
        assert_eq!(parse("/run/x").unwrap(), Address::Socket("/run/x".into()));
        assert_eq!(parse("http").unwrap(), Address::Socket("http".into()));
        for text in ["http://127.0.0.1:9170", "http://[::1]:9170/", "http://a-b.example:1"] {
            let address = parse(text).unwrap();
            assert_eq!(format!("{address}"), text.trim_end_matches('/'));
        }
        for wrong in
            ["https://a:1", "http://a", "http://a:99999", "http://a:1/x", "http://u@a:1", "http://"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
