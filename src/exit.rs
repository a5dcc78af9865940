//! Exit codes, and which one an error leads to. Scripts rely on them: they stay as they are.

use crate::journal;
use crate::text::visible;
use dataspace_proto::api::ErrorCode;
use std::fmt;
use std::io::{self, Write};

/// Failed for a reason that no other code names.
pub(crate) const FAILED: u8 = 1;
/// The command line makes no sense. Clap uses the same.
pub(crate) const USAGE: u8 = 2;
/// A privilege is missing.
pub(crate) const NOT_PERMITTED: u8 = 3;
/// This machine or its kernel has not got it.
pub(crate) const UNSUPPORTED: u8 = 4;
/// Ctrl-C or SIGTERM came before there was a result: 128 + SIGINT, as shells count.
pub(crate) const INTERRUPTED: u8 = 130;

/// Kind of a failure, so far as the exit code tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// [`FAILED`].
    Failed = FAILED,
    /// [`USAGE`].
    Usage = USAGE,
    /// [`NOT_PERMITTED`].
    NotPermitted = NOT_PERMITTED,
    /// [`UNSUPPORTED`].
    Unsupported = UNSUPPORTED,
    /// [`INTERRUPTED`].
    Interrupted = INTERRUPTED,
}

/// The kind that a command has where it is refused what it asked a daemon for.
impl From<ErrorCode> for Kind {
    fn from(code: ErrorCode) -> Self {
        match code {
            ErrorCode::NotPermitted | ErrorCode::Unauthorized | ErrorCode::MissingPrivilege => {
                Self::NotPermitted
            }
            ErrorCode::Unsupported => Self::Unsupported,
            ErrorCode::BadRequest => Self::Usage,
            _ => Self::Failed,
        }
    }
}

/// An error that knows its exit code and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    remedy: Option<String>,
}

impl Failure {
    /// A failure with nothing to be done about it.
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), remedy: None }
    }

    /// Says what lifts the failure: a command to type, if there is one.
    pub(crate) fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The exit code of another process, which has told why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told(pub(crate) u8);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the worker ended with {}", self.0)
    }
}

impl std::error::Error for Told {}

/// Prints the error, if there is one, and gives the exit code.
pub(crate) fn report(result: anyhow::Result<()>) -> u8 {
    let Err(error) = result else { return 0 };
    if let Some(Told(code)) = error.downcast_ref() {
        return *code;
    }
    let code = code(&error);
    if code != 0 {
        // `eprint!` panics where standard error is gone, as when a terminal was closed.
        let mut text = message(&error);
        if journal::is_stderr() {
            text = journal::as_errors(&text);
        }
        let _ = io::stderr().write_all(text.as_bytes());
    }
    code
}

/// The exit code of `error`: the first of its causes that knows one decides.
pub(crate) fn code(error: &anyhow::Error) -> u8 {
    for cause in error.chain() {
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            return failure.kind as u8;
        }
        let io_kind = match cause.downcast_ref::<serde_json::Error>() {
            Some(json) => json.io_error_kind(),
            None => cause.downcast_ref::<io::Error>().map(io::Error::kind),
        };
        match io_kind {
            // `dataspace script | head` is a success of both.
            Some(io::ErrorKind::BrokenPipe) => return 0,
            Some(io::ErrorKind::PermissionDenied) => return NOT_PERMITTED,
            _ => {}
        }
    }
    FAILED
}

fn message(error: &anyhow::Error) -> String {
    let mut text = format!("error: {}\n", visible(&format!("{error:#}")));
    let remedies =
        error.chain().filter_map(|cause| cause.downcast_ref::<Failure>()?.remedy.as_deref());
    for remedy in remedies {
        for line in remedy.lines() {
            text.push_str(&format!("  {}\n", visible(line)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn the_cause_decides_the_code() {
        let check =
            |error: anyhow::Error, expect: u8| assert_eq!(code(&error), expect, "{error:#}");
        check(anyhow::anyhow!("plain"), FAILED);
        check(Failure::new(Kind::Usage, "no target").into(), USAGE);
        check(Failure::new(Kind::NotPermitted, "paranoid").into(), NOT_PERMITTED);
        check(Failure::new(Kind::Unsupported, "no such event").into(), UNSUPPORTED);
        check(Failure::new(Kind::Interrupted, "interrupted").into(), INTERRUPTED);
        let pipe: io::Result<()> = Err(io::ErrorKind::BrokenPipe.into());
        check(pipe.context("writing the table").unwrap_err(), 0);
        let denied: io::Result<()> = Err(io::ErrorKind::PermissionDenied.into());
        check(denied.context("opening perf.data").unwrap_err(), NOT_PERMITTED);
    }

    #[test]
    fn json_written_to_a_closed_pipe_is_no_failure() {
        struct Closed;
        impl io::Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let error = serde_json::to_writer(Closed, &1).unwrap_err();
        assert_eq!(code(&error.into()), 0);
    }

    #[test]
    fn the_remedy_follows_the_message() {
        let failure = Failure::new(Kind::NotPermitted, "pid 1 belongs to root")
            .with_remedy("run: sudo dataspace top -p 1");
        let error = anyhow::Error::from(failure).context("attaching");
        assert_eq!(
            message(&error),
            "error: attaching: pid 1 belongs to root\n  run: sudo dataspace top -p 1\n"
        );
    }
}
