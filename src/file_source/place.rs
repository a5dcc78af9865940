//! One way to a file: it is gone where the rules allow, by ourselves or by our broker, and what is there is opened.

use super::FilePolicy;
use super::permission::{may_read, may_read_mapped, may_target_read};
use crate::ownership::OwnProcess;
use dataspace_collector::access;
use dataspace_collector::system::procfs::{Procfs, mapped_file};
use dataspace_proto::broker::{FilePlace, FileRoot};
use dataspace_proto::worker::Viewer;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
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
    FilePlace::Below { root, path, named_by, has_names: false }
}

/// A regular file.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) state: FileState,
    pub(super) stored_bytes: u64,
}

/// Opens what is at `place`; by the broker where there is one, who has a policy of his own.
pub(super) fn open(place: &FilePlace, policy: &FilePolicy) -> io::Result<Opened> {
    let file = access::object(place).unwrap_or_else(|| open_here(place, policy))?;
    let metadata = file.metadata()?;
    let state = FileState::of(&metadata);
    // stat(2) counts in units of 512 bytes, whatever the file system's blocks are. Some file
    // systems keep small files elsewhere and count nothing for them.
    let stored_bytes = metadata.blocks().saturating_mul(512).max(1 << 12);
    Ok(Opened { file, state, stored_bytes })
}

/// The beginning of every ELF file (ELF specification, `e_ident`).
const ELF: [u8; 4] = *b"\x7fELF";

/// Opens a load object, or a file that belongs to one, for a worker: ELF files, and those in which runtimes name code.
pub(crate) fn open_load_object(place: &FilePlace, policy: &FilePolicy) -> io::Result<File> {
    let file = open_here(place, policy)?;
    if !matches!(place, FilePlace::Below { has_names: true, .. }) {
        let mut magic = [0; ELF.len()];
        file.read_exact_at(&mut magic, 0)?;
        if magic != ELF {
            return Err(Errno::NOEXEC.into());
        }
    }
    Ok(file)
}

/// Opens what is at `place` with our own privileges, where the policy allows it.
pub(super) fn open_here(place: &FilePlace, policy: &FilePolicy) -> io::Result<File> {
    let viewer = policy.viewer.as_ref();
    let found = match place {
        FilePlace::Mapped { task, start, end } => {
            open_link(*task, &mapped_file(*start, *end), viewer)?
        }
        FilePlace::Program { task, name } => {
            let found = open_link(*task, Path::new("exe"), viewer)?;
            if name_of(&found)? != *name {
                return Err(io::ErrorKind::NotFound.into());
            }
            found
        }
        FilePlace::Below { root, path, has_names, .. } => {
            let path = Path::new(OsStr::from_bytes(path));
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let flags = if *has_names { flags | OFlags::NOFOLLOW } else { flags };
            match root {
                FileRoot::Task(task) => {
                    find_inside(&Procfs::default().root_of(*task), path, flags)?
                }
                FileRoot::Symfs => {
                    let symfs = policy.symfs.as_ref().ok_or(io::ErrorKind::NotFound)?;
                    find_inside(Path::new(symfs), path, flags)?
                }
                FileRoot::Machine if *has_names => find_inside(Path::new("/"), path, flags)?,
                FileRoot::Machine => rustix::fs::open(path, flags, Mode::empty())?,
            }
        }
    };
    let may_read = match place {
        FilePlace::Mapped { .. } | FilePlace::Program { .. } => {
            viewer.is_none_or(|viewer| may_read_mapped(viewer, &found))
        }
        FilePlace::Below { named_by, .. } => {
            viewer.is_none_or(|viewer| may_read(viewer, &found))
                && (!policy.is_live || may_target_read(*named_by, &found))
        }
    };
    if !may_read {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    open_regular(&found)
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

/// Finds a path below a directory, which is the root to every link on the way.
fn find_inside(root: &Path, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let of_root = OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY;
    let root = rustix::fs::open(root, of_root, Mode::empty())?;
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
    File::open(Procfs::default().own_file(found))
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
