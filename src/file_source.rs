//! Opens load objects and debug files for the index: by the process that maps them where it still
//! runs, by path and build-id where it does not. A file is hostile: it may be a FIFO, a device, a
//! FUSE mount that never answers, or another file than the one that was mapped.

mod code_names;
mod companion;
mod permission;
mod place;
mod source_name;
mod source_text;
mod vdso;

pub(crate) use place::{is_elf, open_load_object};
pub(crate) use source_text::{NoSource, SourceText};

use crate::expendable::{Expendable, FilesEnd, Lent};
use companion::Companions;
use dataspace_analyzer::bytes::file::NamesFormat;
use dataspace_analyzer::bytes::file::{
    CompanionFiles, DebugFileQuery, FileBytes, FileError, FileSource, LoadObjectKey, NamesFile,
};
use dataspace_collector::system::procfs::Procfs;
use dataspace_proto::broker::{FilePlace, FileRoot};
use dataspace_proto::reason::Reason;
use dataspace_proto::record::{FileIdentity, build_id_text};
use dataspace_proto::worker::Viewer;
use place::{FileState, Opened};
use rustix::io::ReadWriteFlags;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::io::IoSliceMut;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that one read asks for, so that each gets a deadline of its own.
const CHUNK_BYTES: usize = 4 << 20;

/// Rules for looking for files.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct FilePolicy {
    /// A directory that holds the recorded machine's files (`--symfs`).
    pub(crate) symfs: Option<OsString>,
    /// True while the processes run on this machine.
    pub(crate) is_live: bool,
    /// Sources of programs are shown, where the user and the target both may read them.
    pub(crate) shows_sources: bool,
    /// A directory below which they are looked for first (`--source`).
    pub(crate) sources: Option<OsString>,
    /// User who has to be allowed to read what is opened, beside ourselves; what the process has mapped
    /// it could read.
    pub(crate) viewer: Option<Viewer>,
}

/// The session's [`FileSource`].
#[derive(Clone, Debug)]
pub(crate) struct SystemFiles {
    policy: FilePolicy,
    home: Option<PathBuf>,
    /// The cache of debuginfod's clients.
    fetched: Option<PathBuf>,
    expendable: Arc<Expendable>,
}

impl SystemFiles {
    /// A source that follows `policy`.
    #[must_use]
    pub(crate) fn new(policy: FilePolicy) -> Self {
        Self::until(policy, Arc::default())
    }

    /// The same, which gives nothing more from the `end` on.
    pub(crate) fn until(policy: FilePolicy, end: Arc<FilesEnd>) -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let fetched = debuginfod_cache();
        Self { policy, home, fetched, expendable: Arc::new(Expendable::until(end)) }
    }

    fn bytes(&self, opened: Opened) -> Box<dyn FileBytes> {
        let Opened { file, state, stored_bytes, .. } = opened;
        let file = Lent::new(file, Arc::clone(&self.expendable));
        Box::new(OpenFile { file, state, stored_bytes })
    }

    /// Places where the load object may be, most trustworthy first.
    fn places(&self, key: &LoadObjectKey) -> Vec<FilePlace> {
        let path = Path::new(OsStr::from_bytes(undeleted(&key.path))).to_path_buf();
        let (mut places, mut named_by) = (Vec::new(), None);
        if self.policy.is_live && key.pid > 0 {
            let (start, end) = (key.range.0.0, key.range.1.0);
            let task = Procfs::default().living_task(key.pid);
            named_by = Some(task);
            places.push(FilePlace::Mapped { task, start, end });
            places.push(FilePlace::Program { task, name: key.path.to_vec() });
            places.push(place::below(FileRoot::Task(task), &path, named_by));
        }
        if self.policy.symfs.is_some() {
            places.push(place::below(FileRoot::Symfs, &path, None));
        }
        if let FileIdentity::BuildId(build_id) = &key.identity {
            let cached = self.cached_by_build_id(build_id, "elf");
            places.extend(cached.map(|path| place::below(FileRoot::Machine, &path, named_by)));
        }
        // A path of another mount namespace is another file here, unless its build-id tells that not.
        let is_of_here =
            key.mount_namespace == 0 || matches!(key.identity, FileIdentity::BuildId(_));
        if is_of_here && undeleted(&key.path).len() == key.path.len() {
            places.push(place::below(FileRoot::Machine, &path, named_by));
        }
        places
    }

    /// perf's cache, `~/.debug/.build-id/ab/cdef…/elf`.
    fn cached_by_build_id(&self, build_id: &[u8], name: &str) -> Option<PathBuf> {
        let (dir, rest) = build_id_path(build_id)?;
        Some(self.home.as_ref()?.join(".debug/.build-id").join(dir).join(rest).join(name))
    }

    /// Places of the separate debug file: by build-id, then by the link's name.
    fn debug_places(&self, query: &DebugFileQuery) -> Vec<PathBuf> {
        let mut places = Vec::new();
        if let Some(build_id) = &query.build_id {
            places.extend(installed_by_build_id(build_id, "debug"));
            places.extend(self.cached_by_build_id(build_id, "debug"));
            places.extend(self.cached_by_build_id(build_id, "elf"));
            let directory = build_id_text(build_id);
            places.extend(self.fetched.as_ref().map(|it| it.join(directory).join("debuginfo")));
        }
        let path = Path::new(OsStr::from_bytes(undeleted(&query.path)));
        if let (Some(link), Some(dir)) = (&query.debug_link, path.parent()) {
            // The link is a plain file name: anything else would lead elsewhere.
            let link = Path::new(OsStr::from_bytes(link));
            if link.file_name() == Some(link.as_os_str()) {
                let inside = dir.strip_prefix("/").unwrap_or(dir);
                places.push(dir.join(link));
                places.push(dir.join(".debug").join(link));
                places.push(Path::new("/usr/lib/debug").join(inside).join(link));
            }
        }
        places
    }

    /// The load object at `place`; `None` where it is not to be had in time, or not at all.
    fn open(&self, place: FilePlace) -> Option<Opened> {
        let policy = self.policy.clone();
        self.expendable.run(move || place::open(&place, &policy))?.ok()
    }

    /// Those of `paths` that are there, as the process `pid` sees them before this one does.
    fn open_all(&self, pid: i32, paths: &[PathBuf]) -> Vec<Box<dyn FileBytes>> {
        let is_running = self.policy.is_live && pid > 0;
        let task = is_running.then(|| Procfs::default().living_task(pid));
        let symfs = self.policy.symfs.is_some().then_some(FileRoot::Symfs);
        let roots = symfs.into_iter().chain(task.map(FileRoot::Task)).chain([FileRoot::Machine]);
        let mut files: Vec<Box<dyn FileBytes>> = Vec::new();
        for root in roots {
            let opened = paths.iter().filter_map(|path| self.open(place::below(root, path, task)));
            files.extend(opened.map(|opened| self.bytes(opened)));
        }
        files
    }
}

impl FileSource for SystemFiles {
    fn load_object(&self, key: &LoadObjectKey) -> Result<Box<dyn FileBytes>, Reason> {
        if &*key.path == b"[vdso]" {
            return self.vdso(&key.identity);
        }
        let mut reason = Reason::ObjectMissing;
        for place in self.places(key) {
            let identity = key.identity.clone();
            // --symfs names the files to use: their inodes are another machine's.
            let is_chosen = matches!(place, FilePlace::Below { root: FileRoot::Symfs, .. });
            let Some(opened) = self.open(place) else { continue };
            let is_it = is_chosen || is_same_inode(opened.inode, &identity);
            let bytes = self.bytes(opened);
            if is_it {
                return Ok(bytes);
            }
            reason = Reason::ObjectChanged;
        }
        Err(reason)
    }

    fn debug_files(&self, query: &DebugFileQuery) -> Vec<Box<dyn FileBytes>> {
        self.open_all(query.pid, &self.debug_places(query))
    }

    fn code_names(&self, key: &LoadObjectKey, format: NamesFormat) -> Option<NamesFile> {
        self.names_file(key, format)
    }

    fn companions(&self, query: &DebugFileQuery) -> Box<dyn CompanionFiles> {
        Box::new(Companions::new(self.clone(), query.clone()))
    }
}

/// Tells whether a file can be the one that was mapped, by its inode number. Device numbers are not
/// compared: btrfs and overlayfs show other ones to stat(2) than to the memory map.
fn is_same_inode(own: u64, identity: &FileIdentity) -> bool {
    match identity {
        FileIdentity::Inode { inode, .. } if *inode != 0 => own == *inode,
        _ => true,
    }
}

/// The path without the kernel's mark of a deleted file.
fn undeleted(path: &[u8]) -> &[u8] {
    path.strip_suffix(b" (deleted)").unwrap_or(path)
}

/// Directory in which clients of debuginfod keep what they fetched (debuginfod_find_debuginfo(3), "CACHE").
pub(crate) fn debuginfod_cache() -> Option<PathBuf> {
    let path = |name| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let cache = || path("XDG_CACHE_HOME").or_else(|| Some(path("HOME")?.join(".cache")));
    path("DEBUGINFOD_CACHE_PATH").or_else(|| Some(cache()?.join("debuginfod_client")))
}

/// First byte and rest of a build-id in hexadecimal.
fn build_id_path(build_id: &[u8]) -> Option<(String, String)> {
    let (first, rest) = build_id.split_first()?;
    (!rest.is_empty()).then(|| (build_id_text(&[*first]), build_id_text(rest)))
}

/// The file of that build-id and kind where distributions install such files.
fn installed_by_build_id(build_id: &[u8], ending: &str) -> Option<PathBuf> {
    let (dir, rest) = build_id_path(build_id)?;
    Some(Path::new("/usr/lib/debug/.build-id").join(dir).join(format!("{rest}.{ending}")))
}

/// An open file whose every read has a deadline.
#[derive(Debug)]
struct OpenFile {
    file: Lent,
    state: FileState,
    stored_bytes: u64,
}

impl OpenFile {
    /// Reads what the kernel has in memory, and tells whether that was all of it. It cannot wait:
    /// network file systems and FUSE refuse the flag.
    fn read_at_hand(&self, offset: u64, buffer: &mut [u8]) -> bool {
        let Some(file) = self.file.file() else { return false };
        let mut n_read = 0;
        while n_read < buffer.len() {
            let rest = &mut [IoSliceMut::new(&mut buffer[n_read..])];
            let at = offset.saturating_add(n_read as u64);
            match rustix::io::preadv2(&*file, rest, at, ReadWriteFlags::NOWAIT) {
                Ok(n @ 1..) => n_read += n,
                Ok(0) | Err(_) => return false,
            }
        }
        self.state.check(&file).is_ok()
    }
}

impl FileBytes for OpenFile {
    fn len(&self) -> u64 {
        self.state.len
    }

    fn stored_bytes(&self) -> u64 {
        self.stored_bytes
    }

    fn has_room(&self, n_bytes: usize) -> bool {
        !self.file.expendable().refuses(n_bytes)
    }

    fn is_given_up(&self) -> bool {
        self.file.expendable().is_given_up()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), FileError> {
        let n_bytes = buffer.len() as u64;
        let failed = |cause: String| FileError { offset, n_bytes, cause };
        let expendable = self.file.expendable();
        if !expendable.refuses(buffer.len()) && self.read_at_hand(offset, buffer) {
            return Ok(());
        }
        let mut at = offset;
        for chunk in buffer.chunks_mut(CHUNK_BYTES) {
            let (file, state, n) = (self.file.file(), self.state, chunk.len());
            let file = file.ok_or_else(|| failed("it is closed".to_owned()))?;
            let read = expendable.run(move || {
                let mut bytes = vec![0; n];
                file.read_exact_at(&mut bytes, at)?;
                state.check(&file).map(|()| bytes)
            });
            let bytes = read
                .ok_or_else(|| failed(expendable.silence().to_owned()))?
                .map_err(|error| failed(error.to_string()))?;
            chunk.copy_from_slice(&bytes);
            at = at.saturating_add(n as u64);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::place::open_here;
    use super::*;
    use dataspace_proto::address::Avma;
    use std::fs::File;
    use std::os::unix::ffi::OsStringExt as _;
    use std::os::unix::fs::MetadataExt as _;
    use std::os::unix::fs::symlink;

    fn key(path: &Path, identity: FileIdentity) -> LoadObjectKey {
        let path = path.as_os_str().as_bytes().into();
        LoadObjectKey { path, identity, pid: -1, range: (Avma(0), Avma(0)), mount_namespace: 0 }
    }

    fn open(path: &Path, identity: FileIdentity, symfs: Option<&Path>) -> Result<Vec<u8>, Reason> {
        let policy = FilePolicy { symfs: symfs.map(|dir| dir.into()), ..FilePolicy::default() };
        let file = SystemFiles::new(policy).load_object(&key(path, identity))?;
        let mut bytes = vec![0; usize::try_from(file.len()).unwrap()];
        file.read_exact_at(0, &mut bytes).unwrap();
        Ok(bytes)
    }

    fn inode(inode: u64) -> FileIdentity {
        FileIdentity::Inode { major: 0, minor: 0, inode, generation: 0 }
    }

    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
        for path in [&*fifo, dir.path(), Path::new("/dev/zero"), Path::new("/no/such/file")] {
            assert_eq!(
                open(path, FileIdentity::None, None),
                Err(Reason::ObjectMissing),
                "{path:?}"
            );
        }
    }

    #[test]
    fn what_the_kernel_answers_is_no_file() {
        for path in ["/proc/self/maps", "/proc/kmsg", "/sys/devices/system/cpu/online"] {
            let path = Path::new(path);
            if !path.exists() {
                eprintln!("not run: {} is not there", path.display());
                continue;
            }
            assert_eq!(
                open(path, FileIdentity::None, None),
                Err(Reason::ObjectMissing),
                "{path:?}"
            );
        }
    }

    #[test]
    fn another_file_in_the_place_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "bytes").unwrap();
        let number = std::fs::metadata(&path).unwrap().ino();
        assert_eq!(open(&path, inode(number), None).as_deref(), Ok(&b"bytes"[..]));
        assert_eq!(open(&path, inode(number + 1), None), Err(Reason::ObjectChanged));
        assert_eq!(open(&path, inode(0), None).as_deref(), Ok(&b"bytes"[..]), "not told");
    }

    #[test]
    fn a_path_of_another_mount_namespace_is_not_opened_here() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "host").unwrap();
        let number = std::fs::metadata(&path).unwrap().ino();
        let files = SystemFiles::new(FilePolicy::default());
        let open = |identity, mount_namespace| {
            let key = LoadObjectKey { mount_namespace, ..key(&path, identity) };
            files.load_object(&key).map(|file| file.len())
        };
        assert_eq!(open(FileIdentity::None, 0), Ok(4));
        assert_eq!(open(FileIdentity::None, 77), Err(Reason::ObjectMissing));
        // Numbers are given out anew in each file system.
        assert_eq!(open(inode(number), 77), Err(Reason::ObjectMissing));
        // What has a build-id is compared by that, by the index.
        assert_eq!(open(FileIdentity::BuildId([1; 20].into()), 77), Ok(4));
    }

    #[test]
    fn a_file_that_is_written_to_is_not_read_any_further() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "first").unwrap();
        let files = SystemFiles::new(FilePolicy::default());
        let file = files.load_object(&key(&path, FileIdentity::None)).unwrap();
        let mut byte = [0];
        file.read_exact_at(4, &mut byte).unwrap();
        assert_eq!(&byte, b"t");
        File::options().write(true).open(&path).unwrap().set_len(2).unwrap();
        assert!(file.read_exact_at(4, &mut byte).is_err(), "cut short");
        assert!(file.read_exact_at(0, &mut byte).is_err(), "of what is another file now");
    }

    #[test]
    fn a_process_that_is_not_the_users_leads_to_no_file_for_him() {
        let pid = std::process::id().cast_signed();
        let own = std::env::current_exe().unwrap().into_os_string().into_vec();
        let exe = |name: &[u8]| FilePlace::Program { task: pid, name: name.to_vec() };
        let policy = FilePolicy::default();
        assert!(open_here(&exe(&own), &policy).is_ok());
        let error = open_here(&exe(b"/other"), &policy).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
        let viewer = Viewer { uid: 4_000_000, gid: 4_000_000, groups: Vec::new() };
        let policy = FilePolicy { viewer: Some(viewer), ..policy };
        let error = open_here(&exe(&own), &policy).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn no_link_leads_out_of_symfs() {
        let (outside, symfs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let secret = outside.path().join("secret");
        std::fs::write(&secret, "secret").unwrap();
        std::fs::create_dir(symfs.path().join("bin")).unwrap();
        symlink(&secret, symfs.path().join("bin/program")).unwrap();
        let program = Path::new("/bin/program");
        assert_eq!(
            open(program, FileIdentity::None, Some(symfs.path())),
            Err(Reason::ObjectMissing)
        );
        std::fs::remove_file(symfs.path().join("bin/program")).unwrap();
        std::fs::write(symfs.path().join("bin/program"), "ours").unwrap();
        // The recorded inode is another machine's: the directory was chosen by hand.
        let found = open(program, inode(1), Some(symfs.path()));
        assert_eq!(found.as_deref(), Ok(&b"ours"[..]));
    }

    #[test]
    fn a_debug_link_is_a_plain_name() {
        let files = SystemFiles::new(FilePolicy::default());
        let query = |link: &str| DebugFileQuery {
            path: b"/usr/bin/tool".as_slice().into(),
            debug_link: Some(link.as_bytes().to_vec()),
            ..DebugFileQuery::default()
        };
        let places = files.debug_places(&query("tool.debug"));
        assert!(places.contains(&PathBuf::from("/usr/lib/debug/usr/bin/tool.debug")));
        assert_eq!(files.debug_places(&query("../../etc/shadow")), Vec::<PathBuf>::new());
    }
}
