//! Diagnostics for systemd's journal: each entry has its priority, and its fields as fields.

use crate::text::visible;
use std::fmt::{self, Write as _};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// Socket at which systemd-journald takes entries (`systemd-journald.service(8)`).
const SOCKET: &str = "/run/systemd/journal/socket";

/// Our fields begin so: those of the journal's own names mean something else.
const PREFIX: &str = "DATASPACE_";

/// Longest part of one value that is kept: an entry is one datagram, of which a socket takes 208 KiB
/// (`net.core.wmem_default`), and has a dozen fields.
const MAX_VALUE_BYTES: usize = 8 << 10;

/// Tells whether standard error is a stream to the journal: systemd tells its device and inode
/// (`systemd.exec(5)`, `$JOURNAL_STREAM`), and who redirected it since has another one.
pub(crate) fn is_stderr() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    let Ok(stat) = rustix::fs::fstat(std::io::stderr()) else { return false };
    stream == format!("{}:{}", stat.st_dev, stat.st_ino)
}

/// `text` with the priority of an error before each line (`sd-daemon(3)`).
pub(crate) fn as_errors(text: &str) -> String {
    text.lines().map(|line| format!("<3>{line}\n")).collect()
}

/// The way to the journal. tracing-journald has a message without its fields, which is all that
/// `journalctl` shows; and a journal that does not read would hold up whoever logs.
#[derive(Debug)]
pub(crate) struct Journal {
    socket: UnixDatagram,
    path: PathBuf,
    n_lost: AtomicU64,
}

impl Journal {
    /// The journal, if standard error leads there and it listens.
    pub(crate) fn of_stderr() -> Option<Self> {
        is_stderr().then(|| Self::at(Path::new(SOCKET)))?
    }

    fn at(path: &Path) -> Option<Self> {
        let socket = UnixDatagram::unbound().ok()?;
        socket.set_nonblocking(true).ok()?;
        path.exists().then(|| Self { socket, path: path.into(), n_lost: AtomicU64::new(0) })
    }

    /// Never waits. What the journal does not take is counted, and told with what it takes next.
    fn send(&self, entry: Entry) {
        let n_lost = self.n_lost.swap(0, Ordering::Relaxed);
        let is_sent = self.socket.send_to(&entry.into_bytes(n_lost), &self.path).is_ok();
        if !is_sent {
            self.n_lost.fetch_add(n_lost + 1, Ordering::Relaxed);
        }
    }
}

impl<S: Subscriber> Layer<S> for Journal {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut entry = Entry::new(*event.metadata().level());
        event.record(&mut entry);
        self.send(entry);
    }
}

/// One entry of the journal.
struct Entry {
    bytes: Vec<u8>,
    message: String,
    /// The fields, as they follow the message.
    fields: String,
}

impl Entry {
    fn new(level: Level) -> Self {
        // syslog(3): what an administrator has to see is a warning or worse.
        let priority = match level {
            Level::ERROR => "3",
            Level::WARN => "4",
            Level::INFO => "6",
            Level::DEBUG | Level::TRACE => "7",
        };
        let mut entry = Self { bytes: Vec::new(), message: String::new(), fields: String::new() };
        entry.push("PRIORITY", priority);
        entry.push("SYSLOG_IDENTIFIER", "dataspace");
        entry
    }

    /// A field in the form that takes any value: its name, its length, its bytes
    /// (systemd's "Native Journal Protocol").
    fn push(&mut self, name: &str, value: &str) {
        let is_end = |end: &usize| value.is_char_boundary(*end);
        let value = &value[..(0..=value.len().min(MAX_VALUE_BYTES)).rfind(is_end).unwrap_or(0)];
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(b'\n');
        self.bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
        self.bytes.extend_from_slice(value.as_bytes());
        self.bytes.push(b'\n');
    }

    fn record(&mut self, field: &Field, value: &str, shown: fmt::Arguments<'_>) {
        if field.name() == "message" {
            self.message.push_str(value);
            return;
        }
        // Writing to a String cannot fail.
        let _ = write!(self.fields, " {}={shown}", field.name());
        let is_plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
        let name = field.name().to_ascii_uppercase();
        let name = name.replace(|c| !is_plain(c), "_");
        self.push(&format!("{PREFIX}{name}"), value);
    }

    fn into_bytes(mut self, n_lost: u64) -> Vec<u8> {
        let mut message = std::mem::take(&mut self.message) + &self.fields;
        if n_lost > 0 {
            let _ = write!(message, " ({n_lost} entries before this one were lost)");
        }
        self.push("MESSAGE", &visible(&message));
        self.bytes
    }
}

impl Visit for Entry {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record(field, value, format_args!("{value:?}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let value = format!("{value:?}");
        self.record(field, &value, format_args!("{value}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use tracing_subscriber::layer::SubscriberExt as _;

    /// Name and value of each field of a datagram, read as the protocol says.
    fn read(socket: &UnixDatagram) -> HashMap<String, String> {
        let mut buffer = vec![0; 1 << 20];
        let n = socket.recv(&mut buffer).unwrap();
        let mut rest = &buffer[..n];
        let mut fields = HashMap::new();
        while !rest.is_empty() {
            let end = rest.iter().position(|&byte| byte == b'\n').unwrap();
            let name = String::from_utf8(rest[..end].to_vec()).unwrap();
            let (len, value) = rest[end + 1..].split_at(8);
            let len = usize::try_from(u64::from_le_bytes(len.try_into().unwrap())).unwrap();
            fields.insert(name, String::from_utf8(value[..len].to_vec()).unwrap());
            assert_eq!(value[len], b'\n');
            rest = &value[len + 1..];
        }
        fields
    }

    #[test]
    fn an_entry_has_priority_message_and_fields() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        assert!(Journal::at(&path).is_none(), "nobody listens");
        let journald = UnixDatagram::bind(&path).unwrap();
        let journal = Journal::at(&path).unwrap();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(journal), || {
            let reason = "not\nyours\x1b[2J";
            tracing::warn!(uid = 7, reason, "refused");
            tracing::info!(error.code = ?Some(1), "{}", "x".repeat(1 << 20));
        });
        let entry = read(&journald);
        assert_eq!((&*entry["PRIORITY"], &*entry["SYSLOG_IDENTIFIER"]), ("4", "dataspace"));
        assert_eq!(entry["MESSAGE"], "refused uid=7 reason=\"not\\nyours\\u{1b}[2J\"");
        assert_eq!(entry["DATASPACE_UID"], "7");
        assert_eq!(entry["DATASPACE_REASON"], "not\nyours\x1b[2J");
        let entry = read(&journald);
        assert_eq!((&*entry["PRIORITY"], &*entry["DATASPACE_ERROR_CODE"]), ("6", "Some(1)"));
        assert_eq!(entry["MESSAGE"].len(), MAX_VALUE_BYTES);
    }

    #[test]
    fn a_journal_that_does_not_read_holds_nobody_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let journald = UnixDatagram::bind(&path).unwrap();
        let journal = Journal::at(&path).unwrap();
        let lost = || journal.n_lost.load(Ordering::Relaxed);
        while lost() < 3 {
            journal.send(Entry::new(Level::INFO));
        }
        read(&journald);
        journal.send(Entry::new(Level::INFO));
        assert_eq!(lost(), 0);
        journald.set_nonblocking(true).unwrap();
        let mut last = String::new();
        while let Ok(n) = journald.recv(&mut [0; 1 << 12]) {
            assert!(n > 0);
            last = n.to_string();
        }
        assert!(!last.is_empty());
    }

    #[test]
    fn standard_error_is_the_journal_only_where_it_is_that_stream() {
        // Under `cargo test` it is a pipe or a terminal.
        assert!(std::env::var_os("JOURNAL_STREAM").is_some() || !is_stderr());
        assert_eq!(as_errors("error: a\n  b\n"), "<3>error: a\n<3>  b\n");
    }
}
