//! Work of a daemon for one page that clients cannot ask for: a command, or a recording.

use crate::broker::Terms;
use crate::file_source::FilePolicy;
use crate::session::files_of_recording;
use dataspace_collector::perf_data::read::RecordingFile;
use dataspace_proto::worker as proto;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Work of its own session.
#[derive(Debug)]
pub(crate) enum OwnWork {
    /// Samples what was asked for.
    Target,
    /// Samples a command, which is started with these words.
    Command(Vec<OsString>),
    /// Reads a recording.
    Recording {
        /// The recording, of which nothing was read yet.
        recording: RecordingFile,
        /// A directory below which load objects are looked for first.
        symfs: Option<PathBuf>,
    },
}

impl OwnWork {
    /// All that the broker does for whoever does it.
    pub(super) fn terms(&self) -> Terms {
        let live = FilePolicy { is_live: true, ..FilePolicy::default() };
        let (policy, command) = match self {
            Self::Target => (live, None),
            Self::Command(words) => (live, Some(words.clone())),
            Self::Recording { symfs, .. } => (files_of_recording(symfs.as_deref()), None),
        };
        let policy = FilePolicy { shows_sources: true, ..policy };
        Terms { command, ..Terms::of_files(policy) }
    }

    /// As a worker is told.
    pub(super) fn as_asked(&self) -> Option<proto::OwnWork> {
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        match self {
            Self::Target => None,
            Self::Command(words) => {
                let words = words.iter().map(|word| word.as_bytes().to_vec());
                Some(proto::OwnWork::Command(words.collect()))
            }
            Self::Recording { recording, symfs } => Some(proto::OwnWork::Recording {
                name: bytes(&recording.name),
                symfs: symfs.as_deref().map(bytes),
            }),
        }
    }

    /// Its target for a person, as long as nothing of it was found.
    pub(super) fn description(&self) -> Option<String> {
        match self {
            Self::Target => None,
            Self::Command(_) => Some("a command".to_owned()),
            Self::Recording { recording, .. } => Some(recording.name.display().to_string()),
        }
    }

    /// Words on its end, where it is not that of a target.
    pub(super) fn end_note(&self) -> Option<String> {
        self.is_recording().then(|| "the recording has been read".to_owned())
    }

    /// The file that lies beside the order.
    pub(super) const fn file(&self) -> Option<&File> {
        match self {
            Self::Recording { recording, .. } => Some(&recording.file),
            Self::Target | Self::Command(_) => None,
        }
    }

    /// Tells whether nothing of this machine is sampled.
    pub(super) const fn is_recording(&self) -> bool {
        matches!(self, Self::Recording { .. })
    }

    /// Tells whether it can be done once only: a command has effects, and what a pipe held is read.
    pub(super) const fn is_done_once(&self) -> bool {
        !matches!(self, Self::Target)
    }
}
