//! Files and directories of sysfs, read within bounds.

use crate::access;
use std::io::{self, Read};
use std::path::Path;

/// An attribute of sysfs is at most a page (Linux `fs/sysfs/file.c`).
const MAX_FILE_BYTES: u64 = 4_096;

/// Directory of the PMUs, below a machine's root.
pub(crate) const PMUS: &str = "sys/bus/event_source/devices";

/// PMUs looked at: a server with eight sockets has about 500, most of them uncore.
pub(crate) const MAX_PMUS: usize = 4_096;

/// The text of one file.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    access::file(path)?.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The number that a file holds.
pub(crate) fn number(path: &Path) -> Option<u32> {
    text(path).ok()?.trim().parse().ok()
}

/// The names in a directory, in order, at most `max`; none where there is no such directory.
pub(crate) fn names(directory: &Path, max: usize) -> Vec<String> {
    let Ok(entries) = access::entries(directory) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.name.into_string().ok());
    let mut names: Vec<String> = names.take(max).collect();
    names.sort_unstable();
    names
}

/// Tells whether there is such a file.
pub(crate) fn exists(path: &Path) -> bool {
    access::identity(path).is_ok()
}

/// Tells whether `text` is the name of one file, not a path.
pub(crate) fn is_file_name(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('.') && !text.contains(['/', '\0'])
}
