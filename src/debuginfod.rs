//! A client of debuginfod servers: debug information by build-id, into the cache that all clients share.
//!
//! Source: debuginfod(8), "WEBAPI"; debuginfod_find_debuginfo(3), "ENVIRONMENT" and "CACHE".

use crate::file_source::is_elf;
use crate::text::size;
use anyhow::Context as _;
use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use ureq::Agent;

/// Longest wait for a server to be there.
const CONNECT: Duration = Duration::from_secs(30);

/// The same for the beginning of its answer: it may have to unpack a package first.
const ANSWER: Duration = Duration::from_secs(90);

/// Time for a whole file, unless `DEBUGINFOD_MAXTIME` says otherwise.
const WHOLE: Duration = Duration::from_secs(1800);

/// The same at most.
const LONGEST: Duration = Duration::from_secs(86_400);

/// The largest file, unless `DEBUGINFOD_MAXSIZE` says otherwise: Chromium's has less.
const MAX_FILE_BYTES: u64 = 4 << 30;

/// Time between two words on progress.
const WORD: Duration = Duration::from_millis(200);

/// A build-id has 8 to 64 bytes (`--build-id` of ld(1)).
const BUILD_ID_CHARS: std::ops::RangeInclusive<usize> = 16..=128;

/// Servers, cache and bounds.
#[derive(Debug)]
pub(crate) struct DebuginfodClient {
    servers: Vec<String>,
    cache: PathBuf,
    max_bytes: u64,
    agent: Agent,
}

/// One file that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// It is there, with so many bytes, which were there before or have come.
    There(u64),
    /// No server has it.
    Nowhere,
}

/// The servers that the user names.
pub(crate) fn servers() -> Vec<String> {
    servers_of(&std::env::var("DEBUGINFOD_URLS").unwrap_or_default())
}

/// Servers in a value of `DEBUGINFOD_URLS`; other words in it are policies of other clients.
fn servers_of(urls: &str) -> Vec<String> {
    let is_url = |word: &&str| word.starts_with("https://") || word.starts_with("http://");
    let words = urls.split_ascii_whitespace().filter(is_url);
    words.map(|word| word.trim_end_matches('/').to_owned()).collect()
}

/// Tells whether a text is a build-id in hexadecimal, and so a plain name of a directory.
pub(crate) fn is_build_id(text: &str) -> bool {
    let is_hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    BUILD_ID_CHARS.contains(&text.len()) && text.bytes().all(is_hex)
}

impl DebuginfodClient {
    /// A client of `servers` that keeps files in `cache`.
    pub(crate) fn new(servers: Vec<String>, cache: PathBuf) -> Self {
        let number = |name| std::env::var(name).ok()?.parse::<u64>().ok().filter(|it| *it != 0);
        let whole = number("DEBUGINFOD_MAXTIME").map_or(WHOLE, Duration::from_secs).min(LONGEST);
        let config = Agent::config_builder()
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(ANSWER))
            .timeout_global(Some(whole))
            .user_agent(concat!("dataspace/", env!("CARGO_PKG_VERSION")))
            .http_status_as_error(false)
            .build();
        let max_bytes = number("DEBUGINFOD_MAXSIZE").unwrap_or(MAX_FILE_BYTES);
        Self { servers, cache, max_bytes, agent: config.into() }
    }

    /// Has the debug information of `build_id` in the cache; tells how many bytes have come so far, now and then.
    ///
    /// # Errors
    /// The last server's, where none has the file and one could not be asked; those of the cache.
    pub(crate) fn fetch(
        &self,
        build_id: &str,
        progress: &mut dyn FnMut(u64),
    ) -> anyhow::Result<Fetched> {
        anyhow::ensure!(is_build_id(build_id), "no build-id: {build_id:?}");
        let directory = self.cache.join(build_id);
        let file = directory.join("debuginfo");
        if let Ok(known) = File::open(&file)
            && is_elf(&known).unwrap_or(false)
        {
            return Ok(Fetched::There(known.metadata()?.len()));
        }
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&directory);
        made.with_context(|| format!("making {}", directory.display()))?;
        let mut failed = None;
        for server in &self.servers {
            let url = format!("{server}/buildid/{build_id}/debuginfo");
            match self.fetch_from(&url, &file, progress) {
                Ok(Some(n_bytes)) => return Ok(Fetched::There(n_bytes)),
                Ok(None) => {}
                Err(error) => failed = Some(error.context(url)),
            }
        }
        failed.map_or(Ok(Fetched::Nowhere), Err)
    }

    fn fetch_from(
        &self,
        url: &str,
        file: &Path,
        progress: &mut dyn FnMut(u64),
    ) -> anyhow::Result<Option<u64>> {
        let mut answer = self.agent.get(url).call()?;
        match answer.status().as_u16() {
            200 => {}
            404 => return Ok(None),
            status => anyhow::bail!("it answers {status}"),
        }
        // It goes with this process's way out, and nobody else has its name.
        let directory = file.parent().context("a file without a directory")?;
        let mut partial = tempfile::Builder::new()
            .prefix(".debuginfo.")
            .permissions(Permissions::from_mode(0o400))
            .tempfile_in(directory)
            .with_context(|| format!("making a file in {}", directory.display()))?;
        let n_bytes = self.copy(answer.body_mut().as_reader(), partial.as_file_mut(), progress)?;
        anyhow::ensure!(is_elf(partial.as_file()).unwrap_or(false), "what it has is no ELF file");
        partial.persist(file).context("naming the file")?;
        Ok(Some(n_bytes))
    }

    fn copy(
        &self,
        mut body: impl Read,
        file: &mut File,
        progress: &mut dyn FnMut(u64),
    ) -> anyhow::Result<u64> {
        let mut buffer = vec![0; 64 << 10];
        let (mut n_bytes, mut next) = (0, Instant::now() + WORD);
        loop {
            let n_read = match body.read(&mut buffer) {
                Ok(0) => break,
                Ok(n_read) => n_read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            n_bytes += n_read as u64;
            let most = size(self.max_bytes);
            anyhow::ensure!(n_bytes <= self.max_bytes, "it has more than {most}");
            file.write_all(&buffer[..n_read]).context("writing to the cache")?;
            if Instant::now() >= next {
                next = Instant::now() + WORD;
                progress(n_bytes);
            }
        }
        Ok(n_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_are_servers_and_only_hex_is_a_build_id() {
        let urls = "ima:enforcing https://a.example/ http://b.example:8002 ima:ignore file:///c";
        assert_eq!(servers_of(urls), ["https://a.example", "http://b.example:8002"]);
        assert!(is_build_id("a50d6825e71f1473372299161f75fe50e80452de"));
        for wrong in ["", "..", "a50d", "A50D6825E71F1473", "a50d6825e71f147/"] {
            assert!(!is_build_id(wrong), "{wrong}");
        }
    }
}
