//! The kernel's descriptions of its tracepoints.

use crate::access;
use crate::error::Error;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

const MOUNT: &str = "sudo mount -t tracefs nodev /sys/kernel/tracing";
const READ: &str =
    "run as root, or: sudo mount -o remount,mode=755 /sys/kernel/tracing (root of it is 0700)";

/// A format has some hundred bytes; all formats of `trace_printk` some ten thousand.
const MAX_FILE_BYTES: usize = 4 << 20;
/// More than the longest of the files that can be read but once.
const PIECE_BYTES: usize = 1 << 16;

/// The tracefs of a machine, below a root that tests can fake.
#[derive(Clone, Debug)]
pub struct Tracefs {
    places: [PathBuf; 2],
}

impl Tracefs {
    /// The tracefs of the machine whose root directory is `root`.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { places: [root.join("sys/kernel/tracing"), root.join("sys/kernel/debug/tracing")] }
    }

    /// The number by which `perf_event_open` knows the tracepoint.
    ///
    /// # Errors
    /// [`Error::Tracepoint`] where tracefs is not there or may not be read, and
    /// [`Error::NoSuchEvent`] where it has no such tracepoint.
    pub fn tracepoint_id(&self, system: &str, name: &str) -> Result<u64, Error> {
        let event = format!("{system}:{name}");
        let place = match self.place() {
            Ok(place) => place,
            Err((why, remedy)) => return Err(Error::Tracepoint { event, why, remedy }),
        };
        let path = place.join("events").join(system).join(name).join("id");
        match access::file(&path).and_then(io::read_to_string) {
            Ok(id) => id.trim().parse().map_err(|_| Error::Tracepoint {
                event,
                why: format!("{} holds no number", path.display()),
                remedy: MOUNT,
            }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let why = format!("{} may not be read", path.display());
                Err(Error::Tracepoint { event, why, remedy: READ })
            }
            Err(_) => Err(Error::NoSuchEvent {
                event,
                errno: rustix::io::Errno::NOENT,
                why: "this kernel has no such tracepoint".to_owned(),
                remedy: "; the names are below /sys/kernel/tracing/events",
            }),
        }
    }

    /// The first place that has events.
    ///
    /// # Errors
    /// Why there is none, and the command that helps.
    pub fn place(&self) -> Result<&Path, (String, &'static str)> {
        let mut reason = ("tracefs is not mounted".to_owned(), MOUNT);
        for place in &self.places {
            match access::identity(&place.join("events")) {
                Ok(_) => return Ok(place),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    reason = (format!("{} may not be read", place.display()), READ);
                }
                Err(_) => {}
            }
        }
        Err(reason)
    }
}

/// Reads a file of tracefs.
///
/// Some of these files give all they have to the first read, whatever its length, and nothing to a
/// second (`show_header()` in Linux `kernel/trace/trace_events.c`): not for `read_to_end`, which
/// begins with a short one.
pub(crate) fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = access::file(path)?;
    let mut bytes = Vec::new();
    let mut piece = vec![0; PIECE_BYTES];
    while bytes.len() < MAX_FILE_BYTES {
        match file.read(&mut piece)? {
            0 => break,
            n_bytes => bytes.extend_from_slice(&piece[..n_bytes]),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_id_is_found_and_its_absence_explained() {
        let dir = tempfile::tempdir().unwrap();
        let tracefs = Tracefs::new(dir.path());
        let missing = tracefs.tracepoint_id("sched", "sched_switch").unwrap_err();
        assert!(missing.to_string().contains("sudo mount -t tracefs"), "{missing}");
        let event = dir.path().join("sys/kernel/debug/tracing/events/sched/sched_switch");
        fs::create_dir_all(&event).unwrap();
        fs::write(event.join("id"), "314\n").unwrap();
        assert_eq!(tracefs.tracepoint_id("sched", "sched_switch").unwrap(), 314);
        let unknown = tracefs.tracepoint_id("sched", "no_such").unwrap_err();
        assert!(matches!(unknown, Error::NoSuchEvent { .. }));
    }
}
