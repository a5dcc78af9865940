//! One way to a file: it is gone where the rules allow, by ourselves or by our broker, and what is there is opened.

use super::FilePolicy;
use super::permission::{may_read, may_read_mapped, may_target_have_read, may_target_read};
use super::source_name::is_source_name;
use crate::ownership::OwnProcess;
use dataspace_collector::access;
use dataspace_collector::system::procfs::{Procfs, mapped_file};
use dataspace_proto::broker::{FileKind, FilePlace, FileRoot};
use dataspace_proto::worker::Viewer;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

/// A load object's own path, or one that it names, from `root` on. `named_by` is a task of the process that has it, where
/// that still runs.
pub(super) fn below(root: FileRoot, path: &Path, named_by: Option<i32>) -> FilePlace {
    let path = path.as_os_str().as_bytes().to_vec();
    FilePlace::Below { root, path, named_by, kind: FileKind::Elf }
}

/// A regular file.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) state: FileState,
    pub(super) stored_bytes: u64,
    pub(super) inode: u64,
}

/// Opens what is at `place`; by the broker where there is one, who has a policy of his own.
pub(super) fn open(place: &FilePlace, policy: &FilePolicy) -> io::Result<Opened> {
    let file = access::object(place).unwrap_or_else(|| open_here(place, policy))?;
    let metadata = file.metadata()?;
    let state = FileState::of(&metadata);
    // stat(2) counts in units of 512 bytes, whatever the file system's blocks are. Some file
    // systems keep small files elsewhere and count nothing for them.
    let stored_bytes = metadata.blocks().saturating_mul(512).max(1 << 12);
    Ok(Opened { file, state, stored_bytes, inode: metadata.ino() })
}

/// The beginning of every ELF file (ELF specification, `e_ident`).
const ELF: [u8; 4] = *b"\x7fELF";

/// Tells whether a file begins as an ELF file does.
///
/// # Errors
/// What the kernel said, also where the file is too short.
pub(crate) fn is_elf(file: &File) -> io::Result<bool> {
    let mut magic = [0; ELF.len()];
    file.read_exact_at(&mut magic, 0)?;
    Ok(magic == ELF)
}

/// Opens a load object, or a file that belongs to one, for a worker: ELF files, those in which runtimes name code, and
/// sources, by their names.
pub(crate) fn open_load_object(place: &FilePlace, policy: &FilePolicy) -> io::Result<File> {
    let file = open_here(place, policy)?;
    if kind_of(place) == FileKind::Elf && !is_elf(&file)? {
        return Err(Errno::NOEXEC.into());
    }
    Ok(file)
}

/// Kind that the file at a place has to be of.
const fn kind_of(place: &FilePlace) -> FileKind {
    match place {
        FilePlace::Below { kind, .. } => *kind,
        FilePlace::Mapped { .. } | FilePlace::Program { .. } => FileKind::Elf,
    }
}

/// Opens what is at `place` with our own privileges, where the policy allows it.
pub(super) fn open_here(place: &FilePlace, policy: &FilePolicy) -> io::Result<File> {
    let has_names = kind_of(place) == FileKind::CodeNames;
    let is_source = kind_of(place) == FileKind::Source;
    if is_source && !policy.shows_sources {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let found = find(place, policy)?;
    // A link leads to what has another name.
    if is_source && !is_source_name(Path::new(OsStr::from_bytes(&name_of(&found)?))) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    // One of several names may be another's file.
    let is_linked = || rustix::fs::fstat(&found).is_ok_and(|stat| stat.st_nlink > 1);
    if !may_open(place, policy, &found) || (has_names && is_linked()) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    open_regular(&found)
}

/// Finds what is at `place`, without a look at what it is.
fn find(place: &FilePlace, policy: &FilePolicy) -> io::Result<OwnedFd> {
    let viewer = policy.viewer.as_ref();
    let has_names = kind_of(place) == FileKind::CodeNames;
    match place {
        FilePlace::Mapped { task, start, end } => {
            open_link(*task, &mapped_file(*start, *end), viewer)
        }
        FilePlace::Program { task, name } => {
            let found = open_link(*task, Path::new("exe"), viewer)?;
            if name_of(&found)? != *name {
                return Err(io::ErrorKind::NotFound.into());
            }
            Ok(found)
        }
        FilePlace::Below { root, path, .. } => {
            let path = Path::new(OsStr::from_bytes(path));
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let flags = if has_names { flags | OFlags::NOFOLLOW } else { flags };
            if has_names && !is_names_file(path) {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            let chosen = |directory: &Option<OsString>| {
                let directory = directory.as_ref().ok_or(io::ErrorKind::NotFound)?;
                find_inside(&root_at(Path::new(directory))?, path, flags)
            };
            match root {
                FileRoot::Task(task) => {
                    find_inside(&open_link(*task, Path::new("root"), viewer)?, path, flags)
                }
                FileRoot::Symfs => chosen(&policy.symfs),
                FileRoot::Sources => chosen(&policy.sources),
                FileRoot::Machine if has_names => {
                    find_inside(&root_at(Path::new("/"))?, path, flags)
                }
                FileRoot::Machine => Ok(rustix::fs::open(path, flags, Mode::empty())?),
            }
        }
    }
}

/// Tells whether what was found at `place` may be read by all who have to be allowed to.
fn may_open(place: &FilePlace, policy: &FilePolicy, found: &OwnedFd) -> bool {
    let viewer = policy.viewer.as_ref();
    match place {
        FilePlace::Mapped { .. } | FilePlace::Program { .. } => {
            viewer.is_none_or(|viewer| may_read_mapped(viewer, found))
        }
        FilePlace::Below { root, named_by, kind, .. } => {
            let may_target = match (root, kind) {
                // The user chose the directory, whoever named the file in it.
                (FileRoot::Sources, FileKind::Source) => true,
                (_, FileKind::Source) => may_target_have_read(*named_by, found),
                _ => !policy.is_live || may_target_read(*named_by, found),
            };
            viewer.is_none_or(|viewer| may_read(viewer, found)) && may_target
        }
    }
}

/// Opens what a link in a process's directory of procfs leads to. For `viewer` that process has to be
/// his own still: another one may have got its number.
fn open_link(pid: i32, link: &Path, viewer: Option<&Viewer>) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let Some(Viewer { uid, gid, .. }) = viewer else {
        return Procfs::default().directory(pid)?.open_inside(link, flags);
    };
    let process = OwnProcess::open(pid, *uid, *gid);
    let denied = |_| io::Error::from(io::ErrorKind::PermissionDenied);
    process.map_err(denied)?.open_in_directory(link, flags)
}

/// The path by which the kernel knows an open file.
fn name_of(found: &OwnedFd) -> io::Result<Vec<u8>> {
    let link = std::fs::read_link(Procfs::default().own_file(found))?;
    Ok(link.into_os_string().into_vec())
}

/// Tells whether a file's name is one that runtimes give to files of names: those are not held to be ELF files, so that
/// a worker could ask for any text under that pretext (perf's `tools/perf/Documentation/jit-interface.txt`, and
/// `jit_detect()` in `tools/perf/util/jitdump.c`).
fn is_names_file(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let number = |before, after| name.strip_prefix(before)?.strip_suffix(after);
    let number = number("perf-", ".map").or_else(|| number("jit-", ".dump"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

fn root_at(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Finds a path below a directory, which is the root to every link on the way.
fn find_inside(root: &OwnedFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let inside = path.strip_prefix("/").unwrap_or(path);
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(root, inside, flags, Mode::empty(), resolve)?)
}

/// File systems of which a read is a question to the kernel and may have effects, `/proc/kmsg`'s among them
/// (`include/uapi/linux/magic.h`; `PROC_SUPER_MAGIC` and on): no program is there, and a target that has its debug
/// information name such a file would choose what is read with our privileges.
const KERNELS_OWN: [u32; 11] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x7472_6163, // tracefs
    0x6462_6720, // debugfs
    0x7363_6673, // securityfs
    0x6265_6570, // configfs
    0x1cd1,      // devpts
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0xcafe_4a11, // bpf
    0x6165_676c, // pstore
];

/// Opens for reading what an `O_PATH` descriptor names, if it is a regular file: opening a FIFO or
/// a device could wait for ever or have effects.
fn open_regular(found: &OwnedFd) -> io::Result<File> {
    let stat = rustix::fs::fstat(found)?;
    let file_system = rustix::fs::fstatfs(found)?.f_type as u32;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
        || KERNELS_OWN.contains(&file_system)
    {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // Whoever has a lease on it is not waited for (fcntl(2), "Leases"): that takes 45 s for each file.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(rustix::fs::open(Procfs::default().own_file(found), flags, Mode::empty())?.into())
}

/// Stamp that changes when a file is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileState {
    pub(super) len: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
}

impl FileState {
    fn of(metadata: &std::fs::Metadata) -> Self {
        Self { len: metadata.len(), modified: (metadata.mtime(), metadata.mtime_nsec()) }
    }

    /// Sections are read as they are needed: bytes of two builds must not come together.
    pub(super) fn check(self, file: &File) -> io::Result<()> {
        if Self::of(&file.metadata()?) == self {
            return Ok(());
        }
        Err(io::Error::other("the file was written to since it was opened"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn a_file_of_names_has_the_name_of_one() {
        for name in ["/tmp/perf-1.map", "/x/jit-4711.dump"] {
            assert!(is_names_file(Path::new(name)), "{name}");
        }
        for name in ["/etc/shadow", "perf-.map", "perf-1.map.x", "jit-1x.dump", "/tmp/perf-1.map/x"]
        {
            assert!(!is_names_file(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn who_has_a_lease_on_a_file_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "\x7fELF").unwrap();
        // The kernel would have us wait for the other one, 45 seconds, and then open it.
        let script = "import fcntl, signal, sys\n\
                      signal.signal(signal.SIGIO, signal.SIG_IGN)\n\
                      file = open(sys.argv[1])\n\
                      fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n\
                      print('leased', flush=True)\n\
                      sys.stdin.read()";
        let mut holder = Command::new("python3");
        let holder = holder.args(["-c", script]).arg(&path).stdin(Stdio::piped());
        let Ok(mut holder) = holder.stdout(Stdio::piped()).spawn() else {
            return eprintln!("not run: python3 is not installed");
        };
        let mut said = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let place = below(FileRoot::Machine, &path, None);
        let opened = said.starts_with("leased").then(|| open_here(&place, &FilePolicy::default()));
        drop(holder.stdin.take());
        holder.wait().unwrap();
        match opened {
            Some(opened) => assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::WouldBlock),
            None => eprintln!("not run: this file system gives no leases"),
        }
        assert!(open_here(&place, &FilePolicy::default()).is_ok());
    }
}
