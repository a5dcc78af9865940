//! Build-ids of files of which the kernel told none, as those that were mapped before the session:
//! read from the files themselves, on a thread that may be left behind.
//!
//! A file can be on a file system that never answers, and what stands in it is its owner's to say: it
//! is read with bounds, and not for longer than the end of a recording waits.

use crate::access;
use crate::record::decode::{Cursor, NATIVE};
use crate::system::host::gnu_build_id;
use crate::system::memory;
use crate::system::procfs::Procfs;
use dataspace_proto::broker::{FileKind, FilePlace, FileRoot};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Time for which a recording's end waits for files that were not read yet.
const PATIENCE: Duration = Duration::from_secs(1);

/// More program headers than linkers write.
const MAX_SEGMENTS: u64 = 256;

/// The notes of a file have some hundred bytes.
const MAX_NOTE_BYTES: u64 = 64 << 10;

const PT_NOTE: u32 = 4;

/// A mapping whose file may tell its build-id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Mapped {
    pub(super) pid: i32,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) inode: u64,
    pub(super) path: Box<[u8]>,
}

/// Asks for build-ids, and has the answers at the end.
#[derive(Debug)]
pub(super) struct FileNotes {
    requests: Option<Sender<Mapped>>,
    answers: Receiver<(Box<[u8]>, Vec<u8>)>,
    asked: HashSet<(u64, Box<[u8]>)>,
}

impl FileNotes {
    /// Without a thread there are no answers.
    pub(super) fn new() -> Self {
        let ((requests, queue), (to, answers)) = (channel::<Mapped>(), channel());
        let procfs = Procfs::default();
        let work = move || {
            for mapped in queue {
                let build_id = build_id(&procfs, &mapped);
                if build_id.is_some_and(|id| to.send((mapped.path, id)).is_err()) {
                    break;
                }
            }
        };
        let thread = thread::Builder::new().name("build-ids".to_owned()).spawn(work);
        if let Err(error) = &thread {
            tracing::warn!(%error, "files mapped before have no build-id in the recording");
        }
        Self { requests: thread.is_ok().then_some(requests), answers, asked: HashSet::new() }
    }

    /// Asks for a file's build-id, once. Whether it was asked for now.
    pub(super) fn ask(&mut self, mapped: Mapped, max_files: usize) -> bool {
        let Some(requests) = &self.requests else { return false };
        self.asked.len() < max_files
            && self.asked.insert((mapped.inode, mapped.path.clone()))
            && requests.send(mapped).is_ok()
    }

    /// The files that could be read, by path.
    pub(super) fn finish(&mut self) -> impl Iterator<Item = (Box<[u8]>, Vec<u8>)> {
        // The thread ends when it has answered the last.
        self.requests = None;
        let deadline = Instant::now() + PATIENCE;
        std::iter::from_fn(move || {
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = self.answers.recv_timeout(left);
            if answer == Err(RecvTimeoutError::Timeout) {
                tracing::warn!(
                    "some files that were mapped before could not be read within a second: their \
                     build-ids are not in the recording"
                );
            }
            answer.ok()
        })
    }
}

/// The build-id of the file that is mapped there.
fn build_id(procfs: &Procfs, mapped: &Mapped) -> Option<Vec<u8>> {
    let Mapped { pid, start, end, inode, path } = mapped;
    // The very file, where we may; else what its process sees under that name, if it is that still.
    let very = FilePlace::Mapped { task: *pid, start: *start, end: *end };
    let named = FilePlace::Below {
        root: FileRoot::Task(*pid),
        path: path.to_vec(),
        named_by: Some(*pid),
        kind: FileKind::Elf,
    };
    let paths = [
        procfs.mapped_file(*pid, *start, *end),
        procfs.root_of(*pid).join(OsStr::from_bytes(path.strip_prefix(b"/").unwrap_or(path))),
    ];
    let open = |(place, path): (&FilePlace, &PathBuf)| match access::object(place) {
        Some(opened) => opened.ok().filter(|file| is_it(file, *inode)),
        None => open_here(path, *inode),
    };
    [very, named].iter().zip(&paths).find_map(|place| of_file(&open(place)?))
}

/// The build-id of the vdso, which is in no file and the same for all processes.
pub(super) fn of_vdso() -> Option<Vec<u8>> {
    let vdso = memory::vdso()?;
    of_elf(|bytes, at| {
        let at = usize::try_from(at).ok()?;
        bytes.copy_from_slice(vdso.get(at..)?.get(..bytes.len())?);
        Some(())
    })
}

fn is_it(file: &File, inode: u64) -> bool {
    file.metadata().is_ok_and(|there| there.is_file() && there.ino() == inode)
}

/// Opens the file at `path` if it is the one with this number. What else may stand there by now, a
/// device for example, is looked at and not opened: opening can do things of its own.
fn open_here(path: &Path, inode: u64) -> Option<File> {
    let there = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path).ok()?;
    is_it(&there, inode).then(|| File::open(Procfs::default().own_file(&there)).ok())?
}

fn of_file(file: &File) -> Option<Vec<u8>> {
    of_elf(|bytes, at| file.read_exact_at(bytes, at).ok())
}

/// Build-id in the notes of an ELF file of this machine's byte order, of which `read` fills bytes from an offset on.
fn of_elf(read: impl Fn(&mut [u8], u64) -> Option<()>) -> Option<Vec<u8>> {
    let mut header = [0; 64];
    read(&mut header, 0)?;
    let is_wide = match header.strip_prefix(b"\x7fELF")?.first()? {
        1 => false,
        2 => true,
        _ => return None,
    };
    // ELF-64 and ELF-32 object file format, "ELF header" and "Program header".
    let word = |bytes: &[u8], at: usize| Cursor::new(bytes.get(at..)?, NATIVE).u32().map(u64::from);
    let address = |bytes: &[u8], wide_at: usize, at: usize| match is_wide {
        true => Cursor::new(bytes.get(wide_at..)?, NATIVE).u64(),
        false => word(bytes, at),
    };
    let half = |at: usize| Cursor::new(header.get(at..)?, NATIVE).u16().map(u64::from);
    let segments_at = address(&header, 32, 28)?;
    let (n_bytes, n_segments) =
        if is_wide { (half(54)?, half(56)?) } else { (half(42)?, half(44)?) };
    for number in 0..n_segments.min(MAX_SEGMENTS) {
        let mut segment = [0; 56];
        let at = segments_at.checked_add(number * n_bytes)?;
        let segment = segment.get_mut(..usize::from(n_bytes as u16).min(56))?;
        read(segment, at)?;
        if word(segment, 0)? != u64::from(PT_NOTE) {
            continue;
        }
        let (at, len) = (address(segment, 8, 4)?, address(segment, 32, 16)?);
        let mut notes = vec![0; len.min(MAX_NOTE_BYTES) as usize];
        let id = read(&mut notes, at).and_then(|()| gnu_build_id(&notes));
        if id.is_some() {
            return id;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::record::{FileIdentity, Mmap};
    use std::process::Command;

    /// As `readelf -n` prints it.
    fn told(file: &Path) -> Option<Vec<u8>> {
        let output = Command::new("readelf").arg("-n").arg(file).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let hex = text.lines().find_map(|line| line.trim().strip_prefix("Build ID: "))?.to_owned();
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        Some((0..hex.len()).step_by(2).map(byte).collect())
    }

    fn mapped(mmap: &Mmap) -> Option<Mapped> {
        let FileIdentity::Inode { inode, .. } = mmap.identity else { return None };
        let (start, path) = (mmap.start.0, mmap.path.clone());
        let end = start + mmap.len_bytes;
        Some(Mapped { pid: std::process::id() as i32, start, end, inode, path })
    }

    #[test]
    fn our_own_libraries_have_the_build_ids_that_readelf_reads() {
        let mappings = Procfs::default().mappings(std::process::id() as i32).unwrap();
        let mut notes = FileNotes::new();
        for mapped in mappings.iter().filter(|mmap| mmap.is_executable).filter_map(mapped) {
            notes.ask(mapped, 100);
        }
        let mut n_compared = 0;
        for (path, id) in notes.finish() {
            let Some(told) = told(Path::new(OsStr::from_bytes(&path))) else { continue };
            assert_eq!(id, told, "{}", String::from_utf8_lossy(&path));
            n_compared += 1;
        }
        if n_compared == 0 {
            eprintln!("not run: no library here has a build-id that readelf shows");
        }
    }

    #[test]
    fn another_file_of_that_name_is_not_asked() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("7/root");
        std::fs::create_dir_all(&root).unwrap();
        let own = std::env::current_exe().unwrap();
        std::fs::copy(own, root.join("a")).unwrap();
        let inode = root.join("a").metadata().unwrap().ino();
        let procfs = Procfs::new(dir.path());
        let of = |inode| Mapped { pid: 7, start: 0, end: 1, inode, path: (*b"/a").into() };
        assert_eq!(build_id(&procfs, &of(inode)), told(&root.join("a")));
        assert_eq!(build_id(&procfs, &of(inode + 1)), None);
    }

    #[test]
    fn a_file_that_lies_about_itself_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        for fill in [0, 0x7f, 0xff] {
            let mut bytes = vec![fill; 4096];
            bytes[..5].copy_from_slice(b"\x7fELF\x02");
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(of_file(&File::open(&path).unwrap()), None);
            bytes[4] = 1;
            std::fs::write(&path, &bytes[..100]).unwrap();
            assert_eq!(of_file(&File::open(&path).unwrap()), None);
        }
    }
}
