//! The way in over TCP: where it is, and who is let in. Only where the configuration says so.

use super::peer::{Peer, Rank};
use super::token::Token;
use crate::exit::{Failure, Kind};
use anyhow::Context as _;
use dataspace_proto::api::{ApiError, ErrorCode};
use hyper::header::{AUTHORIZATION, HOST, HeaderName, HeaderValue, ORIGIN};
use hyper::{Request, Uri};
use rustix::io::Errno;
use serde::Deserialize;
use std::borrow::Cow;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;

/// The table `[tcp]` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TcpConfig {
    /// Addresses to listen at.
    pub(crate) listen: SocketAddr,
    /// File of the token.
    pub(crate) token_file: PathBuf,
    /// Rights of a client with the token.
    #[serde(default)]
    pub(crate) rights: Rights,
    /// True where other machines may connect.
    #[serde(default)]
    pub(crate) allow_remote: bool,
    /// Names of this machine that a request may be meant for, besides `localhost` and addresses.
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
}

/// Rights of a client with the token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Rights {
    /// See all sessions, and change nothing.
    #[default]
    Read,
    /// Root's rights: to see, attach and detach.
    All,
}

impl TcpConfig {
    /// Checks for what cannot be meant, and gives its key.
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        if !self.listen.ip().is_loopback() && !self.allow_remote {
            let message = format!(
                "{} is not this machine's own address: tokens and totals would go over the network as \
                 they are; allow_remote = true permits that",
                self.listen
            );
            return Err(("listen", message));
        }
        let is_name = |host: &String| {
            !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c))
        };
        match self.hosts.iter().find(|host| !is_name(host)) {
            Some(wrong) => Err(("hosts", format!("a host is a name without a port: {wrong:?}"))),
            None => Ok(()),
        }
    }

    /// Listens.
    ///
    /// # Errors
    /// Where the address cannot be had.
    pub(crate) fn bind(&self) -> anyhow::Result<TcpListener> {
        let what = || format!("listening on {}", self.listen);
        let listener =
            TcpListener::bind(self.listen).map_err(|error| without_network(error, what()))?;
        listener.set_nonblocking(true).with_context(what)?;
        let address = listener.local_addr().with_context(what)?;
        if self.listen.ip().is_loopback() {
            tracing::info!(%address, "listening on TCP");
        } else {
            tracing::warn!(
                %address,
                "listening on TCP for other machines: tokens and totals go over the network as they \
                 are, so put TLS in front of it"
            );
        }
        Ok(listener)
    }
}

/// Hint how to give the packaged service what it does without (systemd/README.md).
const GRANT: &str = "systemctl edit dataspace   takes, where this is systemd's service:
  [Service]
  RestrictAddressFamilies=AF_INET AF_INET6
  IPAddressAllow=localhost";

/// Reason for `what` to fail, and the remedy where a service may use no network.
fn without_network(error: io::Error, what: String) -> anyhow::Error {
    match Errno::from_io_error(&error) {
        Some(Errno::AFNOSUPPORT | Errno::PERM) => {
            let message = format!("{what}: {error}: this daemon may use no network");
            Failure::new(Kind::NotPermitted, message).with_remedy(GRANT).into()
        }
        _ => anyhow::Error::from(error).context(what),
    }
}

/// Checks that a request over TCP is meant for this machine, and that no page of another site makes it.
///
/// # Errors
/// Where it is not, or one does.
pub(crate) fn check_site<B>(
    tcp: Option<&(TcpConfig, Token)>,
    peer: &Peer,
    request: &Request<B>,
) -> Result<(), ApiError> {
    if peer.address.is_none() {
        return Ok(());
    }
    let refuse = |code, why: &str| Err(ApiError { code, ..peer.refuse("connect", why) });
    let Some((tcp, _)) = tcp else {
        return refuse(ErrorCode::Unauthorized, "TCP is not configured any more");
    };
    let named = |host: &str| is_ours(host, &tcp.hosts);
    let is_meant = request.uri().authority().is_none_or(|host| named(host.as_str()));
    let host = only(request, &HOST).ok().flatten().and_then(|host| host.to_str().ok());
    let host = host.filter(|host| is_meant && named(host));
    // A page of a stranger may have its own name lead to this machine (DNS rebinding), but the browser
    // still says that name.
    let Some(host) = host else {
        let why = "this is not meant for this machine: it has another name (see tcp.hosts)";
        return refuse(ErrorCode::WrongHost, why);
    };
    // Whoever speaks TLS in front of us hands on the browser's own words.
    let is_own = |origin: &str| {
        let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        rest.is_some_and(|rest| rest.eq_ignore_ascii_case(host))
    };
    match only(request, &ORIGIN) {
        Ok(None) => Ok(()),
        Ok(Some(origin)) if origin.to_str().is_ok_and(is_own) => Ok(()),
        _ => refuse(ErrorCode::WrongHost, "a page of another site may not ask"),
    }
}

/// Client that `request`, whose site was checked, comes from: it is known by its socket, or has the token that `tcp` has, if
/// TCP is configured.
///
/// # Errors
/// Where he is neither.
pub(crate) fn admit<'a, B>(
    tcp: Option<&(TcpConfig, Token)>,
    peer: &'a Peer,
    request: &Request<B>,
) -> Result<Cow<'a, Peer>, ApiError> {
    let Some(address) = peer.address else { return Ok(Cow::Borrowed(peer)) };
    let refuse = |code, why: &str| Err(ApiError { code, ..peer.refuse("connect", why) });
    let Some((tcp, token)) = tcp else {
        return refuse(ErrorCode::Unauthorized, "TCP is not configured any more");
    };
    let given = only(request, &AUTHORIZATION).ok().flatten();
    let given = given.and_then(|given| bearer(given.as_bytes()));
    match given {
        Some(given) if token.is(given) => {
            let rank = if tcp.rights == Rights::All { Rank::Privileged } else { Rank::Observer };
            Ok(Cow::Owned(Peer::with_token(address, rank)))
        }
        Some(_) => refuse(ErrorCode::Unauthorized, "this is not the token"),
        None => {
            refuse(ErrorCode::Unauthorized, "a request over TCP needs Authorization: Bearer TOKEN")
        }
    }
}

/// The value of a header that a request has at most once.
fn only<'a, B>(
    request: &'a Request<B>,
    name: &HeaderName,
) -> Result<Option<&'a HeaderValue>, NotOne> {
    let mut given = request.headers().get_all(name).iter();
    match (given.next(), given.next()) {
        (None, _) => Ok(None),
        (Some(one), None) => Ok(Some(one)),
        _ => Err(NotOne),
    }
}

/// A header is there more than once.
#[derive(Debug)]
struct NotOne;

/// The token after `Bearer` (RFC 6750, section 2.1).
fn bearer(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Tells whether a request for `host` is meant for this machine: no stranger's name is an address.
fn is_ours(host: &str, names: &[String]) -> bool {
    let Ok(uri) = host.parse::<Uri>() else { return false };
    let Some(authority) = uri.authority().filter(|authority| authority.as_str() == host) else {
        return false;
    };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    !host.contains('@')
        && (name.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || names.iter().any(|known| known.eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strangers_name_is_not_ours() {
        let names = ["metrics.example".to_owned()];
        for ours in [
            "localhost",
            "LOCALHOST:9170",
            "127.0.0.1:9170",
            "[::1]:9170",
            "192.0.2.7",
            "Metrics.Example:80",
        ] {
            assert!(is_ours(ours, &names), "{ours}");
        }
        for other in [
            "",
            "attacker.example",
            "localhost.attacker.example:9170",
            "127.0.0.1.nip.example",
            "attacker.example@localhost",
            "localhost/x",
            "metrics.example.",
        ] {
            assert!(!is_ours(other, &names), "{other}");
        }
    }

    #[test]
    fn the_scheme_is_bearer_however_it_is_spelled() {
        assert_eq!(bearer(b"Bearer abc"), Some(&b"abc"[..]));
        assert_eq!(bearer(b"bEARER  abc "), Some(&b"abc"[..]));
        for other in [&b"Basic abc"[..], b"Bearer", b"", b"abc", b"Bearerabc"] {
            assert_eq!(bearer(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_service_without_network_says_what_gives_it_one() {
        let failed = |errno: Errno| without_network(errno.into(), "listening".into());
        for errno in [Errno::AFNOSUPPORT, Errno::PERM] {
            let error = failed(errno);
            assert_eq!(crate::exit::code(&error), crate::exit::NOT_PERMITTED);
            let failure = format!("{:?}", error.downcast_ref::<Failure>().unwrap());
            assert!(failure.contains("RestrictAddressFamilies=AF_INET"), "{failure}");
        }
        let error = failed(Errno::ADDRINUSE);
        assert!(error.downcast_ref::<Failure>().is_none() && error.to_string() == "listening");
    }

    #[test]
    fn other_machines_are_let_in_only_where_that_is_said() {
        let config = |listen: &str, allow_remote| TcpConfig {
            listen: listen.parse().unwrap(),
            token_file: "/token".into(),
            rights: Rights::Read,
            allow_remote,
            hosts: Vec::new(),
        };
        for own in ["127.0.0.1:1", "[::1]:1", "127.9.9.9:0"] {
            assert_eq!(config(own, false).check(), Ok(()));
        }
        for open in ["0.0.0.0:1", "[::]:1", "192.0.2.7:1"] {
            assert!(config(open, false).check().unwrap_err().1.contains("allow_remote"), "{open}");
            assert_eq!(config(open, true).check(), Ok(()));
        }
        let wrong = TcpConfig { hosts: vec!["a:80".into()], ..config("127.0.0.1:1", false) };
        assert!(wrong.check().is_err());
    }
}
