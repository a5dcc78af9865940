//! The token that opens the daemon over TCP: read from a file that nobody else may read.

use crate::exit::{Failure, Kind};
use anyhow::Context as _;
use rustix::fs::OFlags;
use std::borrow::Cow;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use subtle::ConstantTimeEq as _;

/// Shorter ones can be guessed: 16 characters of base64 are 96 bits.
const MIN_BYTES: usize = 16;

/// Bytes of one that is made here.
const RANDOM_BYTES: usize = 24;

/// Longer ones are none.
const MAX_BYTES: u64 = 4096;

/// Command that makes a token.
const MAKE: &str = "(umask 077; head -c 32 /dev/urandom | base64 -w0 > FILE)   makes one";

/// A secret. It is never printed.
pub(crate) struct Token(Vec<u8>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.is(&other.0)
    }
}

impl Token {
    /// The token in the file at `path`.
    ///
    /// # Errors
    /// Where the file cannot be read, others may read or change it, or what is in it is no token.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let what = || format!("the token file {}", path.display());
        // A FIFO would keep us waiting for somebody who writes to it.
        let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path);
        let file = file.with_context(what)?;
        let metadata = file.metadata().with_context(what)?;
        if !metadata.is_file() {
            return Err(Failure::new(Kind::Usage, format!("{} is no file", what())).into());
        }
        // A group may read it, as that of a scraper.
        if metadata.mode() & 0o027 != 0 {
            let message = format!("{} may be read by others, or changed by its group", what());
            let remedy = format!("chmod 0640 {}", path.display());
            return Err(Failure::new(Kind::NotPermitted, message).with_remedy(remedy).into());
        }
        let own = rustix::process::geteuid().as_raw();
        if ![0, own].contains(&metadata.uid()) {
            let message = format!("{} belongs to another user, who may change it", what());
            let remedy = format!("chown root {}", path.display());
            return Err(Failure::new(Kind::NotPermitted, message).with_remedy(remedy).into());
        }
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).with_context(what)?;
        Self::parse(&bytes).map_err(|why| {
            let message = format!("{}: {why}", what());
            Failure::new(Kind::Usage, message).with_remedy(MAKE).into()
        })
    }

    /// A new one, which nobody can guess.
    ///
    /// # Errors
    /// Where the kernel gives no random bytes.
    pub(crate) fn random() -> io::Result<Self> {
        let mut bytes = [0; RANDOM_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes.map(|byte| format!("{byte:02x}")).concat().into_bytes()))
    }

    fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let token = bytes.trim_ascii();
        // The token after `Bearer` (RFC 6750, section 2.1).
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte);
        if bytes.len() as u64 > MAX_BYTES || !token.iter().all(is_plain) {
            return Err("a token is one word of letters, digits and - . _ ~ + / =");
        }
        if token.len() < MIN_BYTES {
            return Err("a token has at least 16 characters");
        }
        Ok(Self(token.to_vec()))
    }

    /// Tells whether `given` is this token. How long that takes tells nothing but whether the lengths are alike.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        self.0.ct_eq(given).into()
    }

    /// The word itself.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// As a client sends it.
    pub(crate) fn header(&self) -> String {
        format!("Bearer {}", self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit;
    use std::os::unix::fs::PermissionsExt as _;

    const TOKEN: &str = "c2VjcmV0IHNlY3JldCBzZWNyZXQ=";

    #[test]
    fn only_the_very_token_is_taken() {
        let token = Token::parse(format!(" {TOKEN}\n").as_bytes()).unwrap();
        assert!(token.is(TOKEN.as_bytes()));
        for wrong in ["", "c2VjcmV0", &TOKEN[1..], &TOKEN.to_lowercase(), &format!("{TOKEN}=")] {
            assert!(!token.is(wrong.as_bytes()), "{wrong}");
        }
        assert_eq!(token.header(), format!("Bearer {TOKEN}"));
        assert_eq!(format!("{token:?}"), "Token", "it is in no log");
        for wrong in ["", "short", "two words of a token", "umlaut-äöü-umlaut-äöü"] {
            assert!(Token::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(Token::parse(&[b'a'; 5000]).is_err());
    }

    #[test]
    fn a_file_that_others_may_read_or_change_is_refused_with_the_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        std::fs::write(&path, TOKEN).unwrap();
        let read_with = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            Token::read(&path).map_err(|error| exit::code(&error))
        };
        for mode in [0o600, 0o640, 0o400, 0o440] {
            assert!(read_with(mode).is_ok(), "{mode:o}");
        }
        for mode in [0o644, 0o604, 0o602, 0o620, 0o660, 0o666] {
            assert_eq!(read_with(mode).unwrap_err(), exit::NOT_PERMITTED, "{mode:o}");
        }
        assert!(Token::read(&dir.path().join("absent")).is_err());
        assert!(Token::read(dir.path()).is_err());
        let fifo = dir.path().join("fifo");
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(Token::read(&fifo).unwrap_err().to_string().contains("is no file"));
    }
}
