//! Writes a session as a perf.data file or stream while it runs.
//!
//! The records of the rings are copied as the reader passes over them, and written in the order of
//! time when the session hands them on, so nothing is held longer than two rounds and one buffer.
//! They are what the kernel wrote, but for two fields. Samples of a fixed period do not carry it
//! (asking for it makes the kernel ignore it, see `event::period`), so each gets it here from our
//! own log, and every reader weighs it rightly. And ids, which the kernel gives to each thread and
//! CPU, and anew to each event that is opened while the session runs, are one for each event.
//! After the last record come the samples that were lost, by the kernel's count, so that the
//! file's own figures add up.
//!
//! A file is called `FILE.part` until it is whole; its header is brought up to date every second,
//! so that what a killed recorder leaves can be read.
//!
//! Source: Linux `tools/perf/Documentation/perf.data-file-format.txt`.

mod bound;
mod build_id;
mod feature;
mod file_note;
mod front;
mod part_file;
mod sink;
mod synthetic;
pub(crate) mod tracing;
mod waiting;
mod writer;

use crate::error::RecorderError;
pub(crate) use front::EventEntry;
pub use part_file::RecordingName;
pub(crate) use writer::{Start, Writer};

use crate::system::host::Host;
use sink::Sink;
use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Settings of a recording.
pub struct RecorderConfig {
    /// Its destination.
    pub output: Output,
    /// The session ends before the recording is longer than that, with its tables; but what comes
    /// before the first sample is always there.
    pub max_bytes: Option<u64>,
    /// The recorder: name and version.
    pub program: String,
    /// The command line of that.
    pub command_line: Vec<OsString>,
}

/// Destination of a recording.
pub enum Output {
    /// A file of this name, once it is whole. A file that has the name now gets `.old` at its end;
    /// a named pipe or a device is written to in pipe mode.
    File(PathBuf),
    /// A stream, in pipe mode.
    Stream {
        /// The stream.
        stream: Box<dyn Write + Send>,
        /// Its name in errors.
        name: PathBuf,
    },
}

/// A recording that can be written: its file is there. Dropped, it leaves nothing behind.
pub struct Recorder {
    /// Taken when the session begins.
    sink: Option<Sink>,
    host: Host,
    max_bytes: Option<u64>,
    program: String,
    command_line: Vec<OsString>,
    progress: Arc<Progress>,
}

impl Recorder {
    /// Begins the file.
    ///
    /// # Errors
    /// [`RecorderError`], when it cannot be written.
    pub fn create(config: RecorderConfig) -> Result<Self, RecorderError> {
        Self::create_unless(config, || false)
    }

    /// As [`Self::create`]; the reader of a named pipe is waited for until `is_given_up`.
    ///
    /// # Errors
    /// As [`Self::create`], and [`RecorderError::NoReader`] then.
    pub fn create_unless(
        config: RecorderConfig,
        is_given_up: impl Fn() -> bool,
    ) -> Result<Self, RecorderError> {
        let sink = match config.output {
            Output::File(path) => Sink::create(&path, is_given_up)?,
            Output::Stream { stream, name } => Sink::stream(stream, name),
        };
        Ok(Self {
            sink: Some(sink),
            host: Host::read(Path::new("/")),
            max_bytes: config.max_bytes,
            program: config.program,
            command_line: config.command_line,
            progress: Arc::default(),
        })
    }

    /// Words on how it began: what became of a file that was in its way.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        self.sink.as_ref()?.note()
    }

    /// The names of its file, for the broker of the process that writes it.
    #[must_use]
    pub fn name(&self) -> Option<RecordingName> {
        self.sink.as_ref()?.name().cloned()
    }

    /// Progress of the recording while a session writes it, and its end.
    #[must_use]
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(sink) = &self.sink {
            sink.discard();
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("progress", &self.progress).finish_non_exhaustive()
    }
}

/// A recording that is being written, seen from outside.
#[derive(Debug, Default)]
pub struct Progress {
    n_samples: AtomicU64,
    n_bytes: AtomicU64,
    result: Mutex<Option<Result<Recorded, RecorderError>>>,
}

/// A finished recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Samples in it.
    pub n_samples: u64,
    /// Samples that the kernel took and that are not in it: it holds their number.
    pub n_lost: u64,
    /// Of those, the ones that are longer with their period than a record can be.
    pub n_too_long: u64,
    /// Samples that came after it was as long as it may be: they are no part of it.
    pub n_behind_end: u64,
    /// Its length.
    pub n_bytes: u64,
    /// It ended because of its length.
    pub is_full: bool,
    /// The new name of the file that had its name before.
    pub previous: Option<PathBuf>,
}

impl Progress {
    /// Samples so far.
    #[must_use]
    pub fn n_samples(&self) -> u64 {
        self.n_samples.load(Ordering::Relaxed)
    }

    /// Bytes so far.
    #[must_use]
    pub fn n_bytes(&self) -> u64 {
        self.n_bytes.load(Ordering::Relaxed)
    }

    /// End of the recording. To be asked once, after the session has ended.
    ///
    /// # Errors
    /// [`RecorderError`], when it broke off; [`RecorderError::Unfinished`] also before its end.
    pub fn finished(&self) -> Result<Recorded, RecorderError> {
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        result.take().unwrap_or(Err(RecorderError::Unfinished))
    }

    fn tell(&self, n_samples: u64, n_bytes: u64) {
        self.n_samples.store(n_samples, Ordering::Relaxed);
        self.n_bytes.store(n_bytes, Ordering::Relaxed);
    }

    fn finish(&self, result: Result<Recorded, RecorderError>) {
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }
}
