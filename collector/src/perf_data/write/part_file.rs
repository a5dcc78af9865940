//! A recording before it has its name: how it gets it, and what becomes of the files in its way.
//!
//! A name is only ever given to a file that is locked, and only taken from one whose lock is held, so
//! that several recorders of one name do not take each other's file for one that was left behind.

use crate::access;
use crate::error::RecorderError;
use crate::system::procfs::Procfs;
use dataspace_proto::broker::Answer;
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Only for the user's own eyes, as `perf` has it: samples hold registers and parts of the stack.
const MODE: u32 = 0o600;

/// `S_ISVTX`: of such a directory's files only their owners may take the names away.
const STICKY: u32 = 0o1000;

/// The capability that makes everybody's files one's own, by its bit.
const CAP_FOWNER: u32 = 3;

/// So many recordings of one name that were broken off are kept.
const MAX_ASIDE: u32 = 1_000;

/// Number of times that another recorder may come in between before we give up.
const MAX_ATTEMPTS: usize = 10;

/// A file that is not whole yet.
pub(super) struct PartFile {
    name: RecordingName,
    /// The file that a killed recorder left, at its place now.
    aside: Option<PathBuf>,
}

/// The file of a recording, under the name that it has until it is whole, and the one that it gets then.
#[derive(Clone, Debug)]
pub struct RecordingName {
    file: Arc<File>,
    part: PathBuf,
    path: PathBuf,
}

impl PartFile {
    /// Begins the file that will be called `path`; what its end would meet is an error
    /// now, so far as it can be known.
    pub(super) fn create(path: &Path) -> Result<Self, RecorderError> {
        check_place(path)?;
        let part = with_suffix(path, ".part");
        let (file, unnamed) = unnamed(&part)?;
        match take_name(&file, &unnamed, &part) {
            Ok(aside) => {
                let name = RecordingName { file: Arc::new(file), part, path: path.into() };
                Ok(Self { name, aside })
            }
            Err(error) => {
                remove(&unnamed);
                Err(error)
            }
        }
    }

    pub(super) fn file(&self) -> &File {
        &self.name.file
    }

    /// The name that it has until it is whole.
    pub(super) fn part(&self) -> &Path {
        &self.name.part
    }

    /// Both names.
    pub(super) const fn name(&self) -> &RecordingName {
        &self.name
    }

    /// Words on how it began.
    pub(super) fn note(&self) -> Option<String> {
        self.aside.as_ref().map(|aside| note(self.part(), aside))
    }

    /// Gives the file its name; what had it gets `.old` at its end, as with `perf record`, and is given.
    pub(super) fn publish(&self) -> Result<Option<PathBuf>, RecorderError> {
        let failed = |what, source| io_error(self.part(), what, source);
        self.file().sync_all().map_err(|source| failed("synchronised", source))?;
        match access::end_recording(true) {
            None => self.name.publish(),
            Some(Ok(Answer::Recorded(old))) => Ok(old.map(|old| OsString::from_vec(old).into())),
            Some(Ok(Answer::NotRecorded(reason))) => Err(RecorderError::AtBroker { reason }),
            Some(answer) => Err(failed("renamed", answer.err().unwrap_or(Errno::PROTO).into())),
        }
    }

    /// Removes the file: nothing of worth is in it.
    pub(super) fn discard(&self) {
        if access::end_recording(false).is_none() {
            remove(self.part());
        }
    }
}

impl RecordingName {
    /// Gives the file its name, or removes it, for a worker who cannot.
    #[must_use]
    pub fn end(&self, is_whole: bool) -> Answer {
        if !is_whole {
            remove(&self.part);
            return Answer::Recorded(None);
        }
        match self.publish() {
            Ok(old) => Answer::Recorded(old.map(|old| old.into_os_string().into_vec())),
            Err(error) => {
                let cause = error.source().map(|cause| format!(": {cause}"));
                Answer::NotRecorded(format!("{error}{}", cause.unwrap_or_default()))
            }
        }
    }

    /// At no time is there no file of that name, if there was one.
    fn publish(&self) -> Result<Option<PathBuf>, RecorderError> {
        if !is_named(&self.file, &self.part) {
            return Err(RecorderError::Moved { path: self.part.clone() });
        }
        let old = self.take_place()?;
        // The name is not safe from a loss of power before its directory is. Some file systems
        // cannot do that, and a directory need not be readable.
        if let Err(error) = File::open(directory(&self.path)).and_then(|dir| dir.sync_all()) {
            tracing::debug!(%error, "the directory is not synchronised");
        }
        Ok(old)
    }

    fn take_place(&self) -> Result<Option<PathBuf>, RecorderError> {
        for _ in 0..MAX_ATTEMPTS {
            check_place(&self.path)?;
            let given = match self.path.symlink_metadata() {
                Ok(_) => match self.replace() {
                    // It was taken away meanwhile.
                    Err(RecorderError::Io { source, .. })
                        if source.kind() == io::ErrorKind::NotFound
                            && is_named(&self.file, &self.part) =>
                    {
                        continue;
                    }
                    replaced => return replaced.map(Some),
                },
                Err(_) => rename_to_free(&self.part, &self.path),
            };
            match given {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                given => {
                    return given.map(|()| None).map_err(|error| self.not_renamed(error));
                }
            }
        }
        Err(self.not_renamed(io::ErrorKind::AlreadyExists.into()))
    }

    /// Changes places with the file that is there, then gives that one the other name.
    fn replace(&self) -> Result<PathBuf, RecorderError> {
        let old = with_suffix(&self.path, ".old");
        // While we hold its lock no recorder takes it for a recording that was left behind.
        let locked = open_there(&self.path).ok().filter(|there| lock(there, &self.path).is_ok());
        let exchange = || renameat_with(CWD, &self.part, CWD, &self.path, RenameFlags::EXCHANGE);
        let renamed = match exchange() {
            Ok(()) => {
                return Ok(match fs::rename(&self.part, &old) {
                    Ok(()) => old,
                    // The recording has its name; the one before has ours.
                    Err(error) => {
                        tracing::warn!(%error, "the file before is called {}", self.part.display());
                        self.part.clone()
                    }
                });
            }
            Err(errno) if is_unknown(errno) => self.replace_by_links(&old),
            Err(errno) => Err(errno.into()),
        };
        drop(locked);
        renamed.map(|()| old).map_err(|error| self.not_renamed(error))
    }

    /// A second name first, so that the first one can be taken over; where a file system has no
    /// hard links it is without a file for a moment.
    fn replace_by_links(&self, old: &Path) -> io::Result<()> {
        let second = passing_name(old);
        match fs::hard_link(&self.path, &second) {
            Ok(()) => fs::rename(&second, old).inspect_err(|_| remove(&second))?,
            Err(_) => fs::rename(&self.path, old)?,
        }
        fs::rename(&self.part, &self.path)
    }

    fn not_renamed(&self, source: io::Error) -> RecorderError {
        io_error(&self.part, "renamed", source)
    }
}

/// Finds out what a recording of that name will meet at its end.
fn check_place(path: &Path) -> Result<(), RecorderError> {
    // Nothing of that name, or nothing that can be seen, which creating a file will tell.
    let Ok(there) = path.symlink_metadata() else { return Ok(()) };
    if there.is_dir() {
        return Err(RecorderError::Directory { path: path.into() });
    }
    let old = with_suffix(path, ".old");
    let old_there = old.symlink_metadata().ok();
    if old_there.as_ref().is_some_and(Metadata::is_dir) {
        return Err(RecorderError::OldIsDirectory { path: path.into(), old });
    }
    let Ok(directory) = fs::metadata(directory(path)) else { return Ok(()) };
    let is_mine = |owned: &Metadata| owned.uid() == geteuid().as_raw();
    if directory.mode() & STICKY == 0 || is_mine(&directory) {
        return Ok(());
    }
    let foreign = [(path, Some(there)), (&old, old_there)].into_iter().find_map(|(path, there)| {
        let there = there.filter(|there| !is_mine(there))?;
        Some((path.to_owned(), there.uid()))
    });
    match foreign.filter(|_| !owns_all_files()) {
        None => Ok(()),
        Some((path, owner)) => {
            let source = Errno::PERM.into();
            Err(RecorderError::NotOurs { path, owner, source })
        }
    }
}

fn owns_all_files() -> bool {
    Procfs::default().status("self").is_ok_and(|own| own.holds(CAP_FOWNER))
}

/// A file beside `part` that nobody else knows, locked.
fn unnamed(part: &Path) -> Result<(File, PathBuf), RecorderError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(MODE);
    let attempt = || {
        let path = passing_name(part);
        options.open(&path).map(|file| (file, path))
    };
    for _ in 1..MAX_ATTEMPTS {
        match attempt() {
            // The number of a process that was killed in between was given again.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => {
                let not_created = |source| RecorderError::NotCreated { path: part.into(), source };
                let (file, path) = opened.map_err(not_created)?;
                lock(&file, &path)?;
                return Ok((file, path));
            }
        }
    }
    let source = io::ErrorKind::AlreadyExists.into();
    Err(RecorderError::NotCreated { path: part.into(), source })
}

/// Gives `file`, which is locked, its name, and tells where the file went that had it.
fn take_name(file: &File, from: &Path, part: &Path) -> Result<Option<PathBuf>, RecorderError> {
    let mut aside = None;
    for _ in 0..MAX_ATTEMPTS {
        match rename_to_free(from, part) {
            Ok(()) if is_named(file, part) => return Ok(aside),
            Ok(()) => break,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                aside = put_aside(part)?.or(aside);
            }
            Err(source) => return Err(RecorderError::NotCreated { path: part.into(), source }),
        }
    }
    Err(RecorderError::InUse { path: part.into() })
}

/// Another recorder's file is left alone; that of one which was killed is kept under a name that is
/// free, which is given. Nothing is where somebody else was quicker.
fn put_aside(part: &Path) -> Result<Option<PathBuf>, RecorderError> {
    let opened = open_there(part);
    let in_the_way = |source| io_error(part, "put aside", source);
    let there = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(in_the_way)?,
    };
    if !there.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(RecorderError::NoFile { path: part.into() });
    }
    lock(&there, part)?;
    if !is_named(&there, part) {
        return Ok(None);
    }
    for number in 0..MAX_ASIDE {
        let suffix = if number == 0 { ".old".to_owned() } else { format!(".old.{number}") };
        let aside = with_suffix(part, &suffix);
        match rename_to_free(part, &aside) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            renamed => {
                renamed.map_err(in_the_way)?;
                tracing::warn!("{}", note(part, &aside));
                return Ok(Some(aside));
            }
        }
    }
    Err(in_the_way(io::ErrorKind::AlreadyExists.into()))
}

fn note(part: &Path, aside: &Path) -> String {
    let (part, aside) = (part.display(), aside.display());
    format!("{part} was left by a recorder that was killed; it is now called {aside}")
}

/// Opens what has this name, but for a link, and waits for nobody.
fn open_there(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Until the file is closed, which the end of the process does at the latest.
fn lock(file: &File, path: &Path) -> Result<(), RecorderError> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(RecorderError::InUse { path: path.into() }),
        Err(errno) => {
            // Some network file systems have no locks.
            tracing::debug!(%errno, path = %path.display(), "no lock");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Tells whether `path` is the name of `file`, and not of another that took it.
fn is_named(file: &File, path: &Path) -> bool {
    let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(file), Ok(there)) => identity(file) == identity(there),
        _ => false,
    }
}

/// Renames without ever replacing a file: [`io::ErrorKind::AlreadyExists`] if there is one.
fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(errno) if is_unknown(errno) => match fs::hard_link(from, to) {
            Ok(()) => fs::remove_file(from),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            // A file system with neither: then not at one stroke.
            Err(_) if to.symlink_metadata().is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(from, to),
        },
        renamed => renamed.map_err(Into::into),
    }
}

/// Tells whether the kernel or the file system knows no such way to rename.
fn is_unknown(errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
}

/// A name that no other process uses, and this one only once.
fn passing_name(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    with_suffix(path, &format!(".{}-{number}", std::process::id()))
}

pub(super) fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(%error, path = %path.display(), "the file stays");
    }
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

pub(super) fn io_error(path: &Path, what: &'static str, source: io::Error) -> RecorderError {
    RecorderError::Io { path: path.into(), what, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::thread;

    fn names(dir: &Path) -> Vec<String> {
        let names = fs::read_dir(dir).unwrap().flatten().map(|entry| entry.file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn what_killed_recorders_left_is_put_aside_each_under_its_own_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(dir.path().join("a.part.old"), "first").unwrap();
        fs::write(dir.path().join("a.part"), "second").unwrap();
        let part = PartFile::create(&path).unwrap();
        let aside = dir.path().join("a.part.old.1");
        assert_eq!(fs::read(dir.path().join("a.part.old")).unwrap(), b"first");
        assert_eq!(fs::read(&aside).unwrap(), b"second");
        let note = part.note().unwrap();
        assert!(note.contains("a.part ") && note.contains(aside.to_str().unwrap()), "{note}");
        assert_eq!(names(dir.path()), ["a.part", "a.part.old", "a.part.old.1"]);
    }

    #[test]
    fn of_recorders_that_come_at_once_one_wins_and_nothing_is_lost() {
        for _ in 0..50 {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a");
            fs::write(dir.path().join("a.part"), "left").unwrap();
            let created = thread::scope(|scope| {
                let create = || scope.spawn(|| PartFile::create(&path));
                let all: Vec<_> = (0..8).map(|_| create()).collect();
                all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
            });
            let won: Vec<_> = created.iter().flatten().collect();
            assert_eq!(won.len(), 1);
            let lost = created.iter().filter_map(|one| one.as_ref().err());
            assert!(lost.into_iter().all(|error| matches!(error, RecorderError::InUse { .. })));
            assert!(is_named(won[0].file(), &dir.path().join("a.part")));
            assert_eq!(names(dir.path()), ["a.part", "a.part.old"]);
            assert_eq!(fs::read(dir.path().join("a.part.old")).unwrap(), b"left");
        }
    }

    #[test]
    fn a_file_of_the_users_beside_the_old_one_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        for (name, text) in [("a", "before"), ("a.old", "older"), ("a.old.part", "another's")] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let part = PartFile::create(&path).unwrap();
        part.file().write_all(b"new").unwrap();
        assert_eq!(part.publish().unwrap(), Some(dir.path().join("a.old")));
        let text = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!([text("a"), text("a.old"), text("a.old.part")], ["new", "before", "another's"]);
        assert_eq!(names(dir.path()), ["a", "a.old", "a.old.part"]);
    }

    #[test]
    fn without_an_exchange_of_names_links_do() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "before").unwrap();
        let part = PartFile::create(&path).unwrap();
        part.file().write_all(b"new").unwrap();
        part.name.replace_by_links(&dir.path().join("a.old")).unwrap();
        assert_eq!(names(dir.path()), ["a", "a.old"]);
        let mut text = String::new();
        File::open(&path).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "new");
    }

    #[test]
    fn what_the_end_would_meet_is_met_at_the_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::create_dir(dir.path().join("a.old")).unwrap();
        let first = PartFile::create(&path).unwrap();
        // It comes while the first one records: then only the end can tell.
        fs::write(&path, "before").unwrap();
        let result = PartFile::create(&path);
        assert!(matches!(result, Err(RecorderError::OldIsDirectory { .. })));
        assert!(matches!(first.publish(), Err(RecorderError::OldIsDirectory { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"before");
        assert_eq!(names(dir.path()), ["a", "a.old", "a.part"]);
    }

    #[test]
    fn what_is_no_file_is_not_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a.part")).unwrap();
        let result = PartFile::create(&dir.path().join("a"));
        assert!(matches!(result, Err(RecorderError::NoFile { .. })));
        assert_eq!(names(dir.path()), ["a.part"]);
    }
}
