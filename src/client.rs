//! A client of the daemon: asks it over its socket, and shows its sessions as if they were ours.

mod address;
mod http;
mod remote;

pub(crate) use remote::RemoteSession;

use crate::daemon::client::token::Token;
use crate::daemon::config_file::DEFAULT_SOCKET;
use crate::daemon::relay::Elsewhere;
use crate::exit::{Failure, Kind};
use address::Address;
use anyhow::Context as _;
use dataspace_proto::api::{ApiError, ErrorCode, SessionLine, SessionSpec, VERSION};
use dataspace_proto::query::{Query, QueryAnswer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The daemon at one address.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    address: Address,
    token: Option<Arc<Token>>,
    place: TypedAddress,
}

/// Words that were typed to say where the daemon is, for hints of what to type next.
#[derive(Clone, Debug, Default)]
struct TypedAddress {
    /// The address, where it is not the usual socket.
    address: Option<String>,
    token_file: Option<String>,
}

impl TypedAddress {
    fn new(address: &Path, token_file: Option<&Path>) -> Self {
        let address = Some(address).filter(|address| *address != Path::new(DEFAULT_SOCKET));
        Self { address: address.map(shell_word), token_file: token_file.map(shell_word) }
    }

    /// `command`, which takes `option` for the address.
    fn of(&self, command: &str, option: &str) -> String {
        let given = |option: &str, value: &Option<String>| {
            value.as_ref().map(|value| format!(" {option} {value}")).unwrap_or_default()
        };
        let address = given(option, &self.address);
        format!("dataspace {command}{address}{}", given("--token-file", &self.token_file))
    }
}

/// `path` as a shell takes it for one word.
fn shell_word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:[]@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

impl Client {
    /// The daemon at `address`, a socket or `http://HOST:PORT`, with the token in `token_file`. Nothing
    /// is asked yet.
    ///
    /// # Errors
    /// Where that is no address, or the token cannot be had.
    pub(crate) fn new(address: &Path, token_file: Option<&Path>) -> anyhow::Result<Self> {
        let place = TypedAddress::new(address, token_file);
        let address = Address::parse(address)?;
        let token = token_file.map(Token::read).transpose()?.map(Arc::new);
        Ok(Self { address, token, place })
    }

    /// The words to type for `command`, one of those that only ask the daemon, for this one.
    pub(crate) fn typed(&self, command: &str) -> String {
        self.place.of(command, "--socket")
    }

    /// The same of `top`.
    pub(crate) fn typed_top(&self) -> String {
        match self.place.address {
            Some(_) => self.place.of("top", "--connect"),
            None => self.place.of("top --connect", ""),
        }
    }

    /// The way to the daemon, for whoever hands its answers on.
    pub(crate) fn elsewhere(&self) -> Elsewhere {
        self.address.elsewhere(self.token.as_deref())
    }

    /// Gets the answer at `path`, below the version.
    ///
    /// # Errors
    /// The daemon's, or that there is none.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        self.ask("GET", path, None)
    }

    /// The answer to a question to a session's history.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) fn query(&self, session: u64, query: &Query) -> anyhow::Result<QueryAnswer> {
        let body = json(query)?;
        self.ask("POST", &format!("sessions/{session}/query"), Some(&body))
    }

    /// Has the daemon attach; gives the session.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) fn attach(&self, spec: &SessionSpec) -> anyhow::Result<SessionLine> {
        let body = json(spec)?;
        self.ask("POST", "sessions", Some(&body))
    }

    /// The same; the session ends by itself when nobody watches it any more.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) fn attach_while_watched(&self, spec: &SessionSpec) -> anyhow::Result<SessionLine> {
        let body = json(spec)?;
        self.ask("POST", "sessions?ends_unwatched=true", Some(&body))
    }

    /// Has the daemon end a session; gives how it stood at the end.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) fn detach(&self, session: &str) -> anyhow::Result<SessionLine> {
        self.ask("DELETE", &format!("sessions/{}", part(session)?), None)
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: Option<&[u8]>,
    ) -> anyhow::Result<T> {
        let answer = self.open(method, path, body)?;
        let bytes = answer.bytes().context("reading the daemon's answer")?;
        serde_json::from_slice(&bytes).context("the daemon's answer is not understood")
    }

    /// An answer that is no error.
    fn open(&self, method: &str, path: &str, body: Option<&[u8]>) -> anyhow::Result<http::Answer> {
        let path = format!("/{VERSION}/{path}");
        let asked = http::HttpRequest { method, path: &path, body, token: self.token.as_deref() };
        let answer = http::ask(&self.address, &asked)
            .map_err(|error| unreachable_daemon(error, &self.address, &self.place))?;
        if (200..300).contains(&answer.status) {
            return Ok(answer);
        }
        let status = answer.status;
        let bytes = answer.bytes().context("reading the daemon's answer")?;
        match serde_json::from_slice::<ApiError>(&bytes) {
            Ok(error) => Err(failure(&error, self.token.is_some()).into()),
            Err(_) => Err(anyhow::anyhow!("the daemon answers {status} and does not say why")),
        }
    }
}

/// A session's number or name as a part of a path.
///
/// # Errors
/// Where it can be neither.
pub(crate) fn part(session: &str) -> Result<&str, Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._@:-".contains(c);
    if session.is_empty() || !session.chars().all(is_plain) {
        let what = format!("a session has a number, or a name of letters and digits: {session:?}");
        return Err(Failure::new(Kind::Usage, what));
    }
    Ok(session)
}

fn json(value: &impl Serialize) -> anyhow::Result<Vec<u8>> {
    serde_json::to_vec(value).context("writing the request")
}

fn unreachable_daemon(error: io::Error, address: &Address, place: &TypedAddress) -> anyhow::Error {
    let is_absent =
        matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused);
    let what = match error.kind() {
        _ if is_absent => "no daemon listens on",
        io::ErrorKind::PermissionDenied => "this user may not connect to",
        _ => "asking the daemon at",
    };
    let what = format!("{what} {address}");
    if is_absent {
        let start = match (address, &place.address) {
            (Address::Socket(_), Some(path)) => format!("sudo dataspace daemon --socket {path}"),
            // Where it listens over TCP, its configuration says.
            _ => "sudo dataspace daemon".to_owned(),
        };
        let where_else = "--connect PATH|URL";
        let width = start.len().max(where_else.len());
        let remedy =
            format!("{start:width$}   start one\n{where_else:width$}   where it is otherwise");
        return Failure::new(Kind::Failed, what).with_remedy(remedy).into();
    }
    anyhow::Error::from(error).context(what)
}

/// The daemon's error, with what helps and the exit code that it would have had here. `has_token` tells
/// whether it was given one.
fn failure(error: &ApiError, has_token: bool) -> Failure {
    let message = match error.code {
        // What it says is of its own rights, not of those of whoever reads it.
        ErrorCode::MissingPrivilege => format!("the daemon lacks a privilege: {}", error.message),
        _ => error.message.clone(),
    };
    let failure = Failure::new(error.code.into(), message);
    match error.code {
        ErrorCode::Unauthorized if has_token => failure.with_remedy(
            "the daemon refuses the token of --token-file; its own is in tcp.token_file of its \
             configuration, as it was when that was last read",
        ),
        ErrorCode::Unauthorized => failure.with_remedy("--token-file FILE   the daemon's token"),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit;

    #[test]
    fn hints_name_the_daemon_that_was_asked() {
        let typed = |address: &str, token_file: Option<&str>| {
            let place = TypedAddress::new(Path::new(address), token_file.map(Path::new));
            let address = Address::parse(Path::new(address)).unwrap();
            let client = Client { address, token: None, place };
            [client.typed("sessions"), client.typed_top()]
        };
        let usual = ["dataspace sessions", "dataspace top --connect"];
        assert_eq!(typed(DEFAULT_SOCKET, None), usual);
        let other =
            ["dataspace sessions --socket 'a b'\\''c'", "dataspace top --connect 'a b'\\''c'"];
        assert_eq!(typed("a b'c", None), other);
        let over_tcp = [
            "dataspace sessions --socket http://[::1]:9170 --token-file t",
            "dataspace top --connect http://[::1]:9170 --token-file t",
        ];
        assert_eq!(typed("http://[::1]:9170", Some("t")), over_tcp);
    }

    #[test]
    fn errors_of_the_daemon_have_their_exit_codes() {
        let failure = |code, has_token| failure(&ApiError { code, message: "x".into() }, has_token);
        let code = |code| exit::code(&failure(code, false).into());
        let remedy = |has_token| format!("{:?}", failure(ErrorCode::Unauthorized, has_token));
        assert!(remedy(false).contains("--token-file FILE") && remedy(true).contains("refuses"));
        assert_eq!(code(ErrorCode::NotPermitted), exit::NOT_PERMITTED);
        assert_eq!(code(ErrorCode::MissingPrivilege), exit::NOT_PERMITTED);
        assert_eq!(code(ErrorCode::NotAttached), exit::FAILED);
        assert_eq!(code(ErrorCode::BadRequest), exit::USAGE);
        assert_eq!(code(ErrorCode::Unsupported), exit::UNSUPPORTED);
        assert_eq!(code(ErrorCode::NotFound), exit::FAILED);
        let client = Client::new(Path::new("/no/such/socket"), None).unwrap();
        let error = client.get::<SessionLine>("sessions/1").unwrap_err();
        assert!(format!("{error:#}").contains("no daemon listens on"), "{error:#}");
        let hint = format!("{:?}", error.downcast_ref::<Failure>());
        assert!(hint.contains("sudo dataspace daemon --socket /no/such/socket"), "{hint}");
        assert!(part("a/b").is_err() && part("").is_err() && part("redis-1").is_ok());
    }
}
