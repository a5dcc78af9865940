//! File bytes for the index: through traits that the session implements, so that the analyzer
//! itself does no I/O.

use dataspace_proto::address::Avma;
use dataspace_proto::reason::Reason;
use dataspace_proto::record::FileIdentity;
use std::borrow::Cow;
use std::sync::Arc;

/// Random access to the bytes of one file.
pub trait FileBytes: Send + Sync {
    /// The file's length in bytes.
    fn len(&self) -> u64;

    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// Where the file is shorter, cannot be read, or does not answer in time.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), FileError>;

    /// Number of its bytes that are stored: a sparse file claims more than anyone wrote.
    fn stored_bytes(&self) -> u64 {
        self.len()
    }

    /// Tells whether there is memory for so many of its bytes. To be asked before they are reserved.
    fn has_room(&self, _n_bytes: usize) -> bool {
        true
    }

    /// Tells whether nothing more of it is wanted. What cannot be read then is no fault of the file, and is told
    /// by whoever wants it no more.
    fn is_given_up(&self) -> bool {
        false
    }

    /// Tells whether there is nothing in it.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Cause of an error where memory is short or the session ends.
const NO_ROOM: &str = "there is no memory for them";

/// Reads a range of a file into shared memory, without a second copy.
pub(crate) fn read_shared(
    file: &dyn FileBytes,
    offset: u64,
    n_bytes: usize,
) -> Result<Arc<[u8]>, FileError> {
    if !file.has_room(n_bytes) {
        return Err(FileError { offset, n_bytes: n_bytes as u64, cause: NO_ROOM.to_owned() });
    }
    let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, n_bytes).collect();
    if let Some(buffer) = Arc::get_mut(&mut bytes) {
        file.read_exact_at(offset, buffer)?;
    }
    Ok(bytes)
}

/// Reason why bytes could not be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {n_bytes} bytes at offset {offset:#x}: {cause}")]
pub struct FileError {
    /// Their place in the file.
    pub offset: u64,
    /// Number of bytes.
    pub n_bytes: u64,
    /// The fault, in words.
    pub cause: String,
}

impl FileError {
    /// Tells that part of a file was left out for it; not where memory is short or the session ends: what is given up then is
    /// told in one place.
    pub(crate) fn tell_left_out(&self) {
        if self.cause == NO_ROOM {
            tracing::debug!(error = %self, "debug section left out");
        } else {
            tracing::warn!(error = %self, "debug section left out");
        }
    }
}

/// Name of a mapped file, and a process in which it was seen, so that it can be opened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LoadObjectKey {
    /// The path as the kernel tells it.
    pub path: Arc<[u8]>,
    /// Identity of the file.
    pub identity: FileIdentity,
    /// The process in which it was seen first; −1 where there is none any more.
    pub pid: i32,
    /// The mapping's range in that process, by which `/proc/PID/map_files` names it.
    pub range: (Avma, Avma),
    /// The mount namespace that the path is of; 0 for that of this program, or the recorder. Of
    /// another one the file must not be opened by its path here.
    pub mount_namespace: u64,
}

impl LoadObjectKey {
    /// The path as text.
    #[must_use]
    pub fn path_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.path)
    }
}

/// Names of a load object's separate debug file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebugFileQuery {
    /// Path of the load object.
    pub path: Arc<[u8]>,
    /// Its build-id.
    pub build_id: Option<Vec<u8>>,
    /// File name in `.gnu_debuglink`.
    pub debug_link: Option<Vec<u8>>,
    /// The process in which the load object was seen.
    pub pid: i32,
}

/// A file that debug information names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CompanionName {
    /// A `.dwo` file.
    Split {
        /// `DW_AT_dwo_name`.
        name: Arc<[u8]>,
        /// `DW_AT_comp_dir`, which the name may be relative to.
        dir: Option<Arc<[u8]>>,
    },
    /// The package of all of them, `FILE.dwp`.
    Package,
    /// The file with what dwz found in several.
    Supplementary {
        /// Its path, which may be relative to the directory of the file that names it.
        path: Arc<[u8]>,
        /// Its build-id; empty where it is not known by that.
        build_id: Vec<u8>,
    },
}

/// Opens the other files of one load object's debug information, whenever one is needed. It knows
/// in which process the load object was seen.
pub trait CompanionFiles: Send + std::fmt::Debug {
    /// The files that may be the one called `name`, best first. The index checks ids itself.
    fn open(&self, name: &CompanionName) -> Vec<Box<dyn FileBytes>>;
}

/// No companions: debug information must be whole.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCompanions;

impl CompanionFiles for NoCompanions {
    fn open(&self, _: &CompanionName) -> Vec<Box<dyn FileBytes>> {
        Vec::new()
    }
}

/// A file in which a process says what the code that it makes is called.
pub struct NamesFile {
    /// Its bytes, as many as there are now: it grows.
    pub bytes: Box<dyn FileBytes>,
    /// Its inode number: another file has to be read from its beginning.
    pub inode: u64,
}

/// Opens files for the index.
pub trait FileSource: Send {
    /// Opens the load object that `key` names.
    ///
    /// # Errors
    /// `object_missing` where it cannot be opened or is no regular file, `object_changed` where
    /// what is there now is another file than the one that was mapped.
    fn load_object(&self, key: &LoadObjectKey) -> Result<Box<dyn FileBytes>, Reason>;

    /// The files that may hold the debug information of a load object, best first. The index
    /// checks build-id or checksum itself.
    fn debug_files(&self, query: &DebugFileQuery) -> Vec<Box<dyn FileBytes>>;

    /// The file in which the process of `key` names its code: its perf map, or the dump at the path
    /// of `key`. To be opened anew each time. `None` if there is none, or none that can be trusted:
    /// it has to be owned by the process's user or by root.
    fn code_names(&self, _key: &LoadObjectKey, _format: NamesFormat) -> Option<NamesFile> {
        None
    }

    /// The opener of other files that the debug information of a load object names.
    fn companions(&self, _query: &DebugFileQuery) -> Box<dyn CompanionFiles> {
        Box::new(NoCompanions)
    }
}

/// Format of a file that names code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NamesFormat {
    /// `perf-PID.map`: lines of start, size and name.
    PerfMap,
    /// `jit-PID.dump`: records with the code itself.
    JitDump,
}

/// Index of a load object of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoadObjectIdx(pub u32);
