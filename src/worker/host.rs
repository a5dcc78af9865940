//! One session in its worker: the daemon asks how it stands, and for what its clients want.

use super::frame::{self, MAX_BYTES};
use super::view::Viewed;
use super::{figures, object};
use crate::answer;
use crate::broker::wire::Connection;
use crate::config::{LiveOptions, RecordingOptions};
use crate::daemon::session::spec;
use crate::exit::{self, Failure};
use crate::export::{folded, pprof};
use crate::file_source::FilePolicy;
use crate::lock::lock;
use crate::memory_bound::{self, MemoryState};
use crate::session::findings::Findings;
use crate::session::inspection::Inspector;
use crate::session::question::Question;
use crate::session::{self, OpenRecording, Source};
use anyhow::Context as _;
use dataspace_collector::perf_data::read::RecordingFile;
use dataspace_collector::system::memory;
use dataspace_collector::target::TargetSpec;
use dataspace_proto::broker::CommandOutput;
use dataspace_proto::query::Query;
use dataspace_proto::view::View;
use dataspace_proto::worker::{Ask, Flag, OwnWork, Reply, SessionRequest, Standing, Wish};
use rustix::fd::OwnedFd;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Most rows of one answer to a question: some hundred kilobytes of JSON.
const MAX_ANSWER_ROWS: usize = 10_000;

/// Time after which the index for views of code is given up where nobody asks.
const INSPECTOR_IDLE: Duration = Duration::from_secs(30);

/// A session, as threads of the worker share it.
pub(super) struct Host {
    session: u64,
    request: SessionRequest,
    is_leaving: AtomicBool,
    is_hurried: Arc<AtomicBool>,
    is_over: AtomicBool,
    /// The newest snapshot's, as clients were shown it, and when it was made.
    shown: Mutex<Option<(Findings, Instant)>>,
    /// The beat that it had then.
    beat: AtomicU64,
    /// The index for views of code, while somebody looks at them, and when it was asked last.
    inspector: Mutex<Option<(Inspector, Instant)>>,
    /// The session itself, while it is there.
    source: Mutex<Option<Arc<dyn Source>>>,
    /// The recording that it reads, until it does.
    recording: Mutex<Option<File>>,
}

impl Host {
    /// Begins a session that is asked on the first connection, and for what takes long on the second. `recording` is the
    /// file that it reads, if it does.
    ///
    /// # Errors
    /// Where there are no threads.
    pub(super) fn begin(
        session: u64,
        request: SessionRequest,
        (followed, wished): (Connection, Connection),
        recording: Option<File>,
    ) -> io::Result<Arc<Self>> {
        let host = Arc::new(Self {
            session,
            request,
            is_leaving: AtomicBool::new(false),
            is_hurried: Arc::default(),
            is_over: AtomicBool::new(false),
            shown: Mutex::default(),
            beat: AtomicU64::new(0),
            inspector: Mutex::default(),
            source: Mutex::default(),
            recording: Mutex::new(recording),
        });
        let thread = |name: String| std::thread::Builder::new().name(name);
        let (one, other) = (Arc::clone(&host), Arc::clone(&host));
        thread(format!("session {session}")).spawn(move || {
            // A panic ends the connection, which tells.
            let _ = catch_unwind(AssertUnwindSafe(|| one.follow(&followed)));
            one.is_over.store(true, Ordering::Release);
            drop(followed);
            // What its threads had allocated is in heaps that other sessions may never use.
            memory::give_back();
        })?;
        thread(format!("wishes {session}")).spawn(move || {
            while let Ok(Some((wish, mut files))) = wished.receive::<Wish>() {
                let reply = other.fulfil(wish, files.pop());
                if wished.send(&reply, &[]).is_err() {
                    break;
                }
            }
        })?;
        Ok(host)
    }

    /// Tells it something while it is busy.
    pub(super) fn flag(&self, flag: Flag) {
        if flag == Flag::Hurry {
            self.is_hurried.store(true, Ordering::Release);
        }
        self.is_leaving.store(true, Ordering::Release);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Answers until nobody asks any more; then the session ends.
    fn follow(&self, connection: &Connection) {
        let mut source: Option<Arc<dyn Source>> = None;
        while let Ok(Some((ask, mut files))) = connection.receive::<Ask>() {
            let reply = match (ask, &source) {
                (Ask::Attach, _) => match self.attach() {
                    Ok(begun) => {
                        let reply = Reply::Attached(self.standing(&*begun));
                        *lock(&self.source) = Some(Arc::clone(&begun));
                        source = Some(begun);
                        reply
                    }
                    Err(error) => {
                        let (code, message) = (exit::code(&error), format!("{error:#}"));
                        Reply::NotAttached { code, message }
                    }
                },
                (_, None) => Reply::Stopped,
                (Ask::Glance, Some(source)) => Reply::Standing(self.standing(&**source)),
                (Ask::Snapshot, Some(source)) => match self.snapshot(&**source, files.pop()) {
                    Ok(figures) => Reply::Snapshot(figures),
                    Err(error) => self.failed(&error),
                },
                (Ask::Stop, Some(source)) => {
                    source.stop();
                    Reply::Stopped
                }
            };
            if connection.send(&reply, &[]).is_err() {
                break;
            }
        }
        self.flag(Flag::Hurry);
        *lock(&self.source) = None;
        if let Some(source) = source {
            source.stop();
        }
    }

    fn options(&self) -> anyhow::Result<LiveOptions> {
        let spec = serde_json::from_slice(&self.request.spec).context("the request")?;
        let mut options = spec::options(&spec).map_err(anyhow::Error::msg)?;
        if let Some(viewer) = self.request.viewer.clone() {
            options.confine(viewer);
        }
        options.has_lines = self.request.has_lines;
        if let Some(OwnWork::Command(words)) = &self.request.own_work {
            let words = words.iter().cloned().map(OsString::from_vec);
            options.target = TargetSpec::Command(words.collect());
            // The standard output is for the page's address.
            options.command_output = CommandOutput::Stderr;
        }
        Ok(options)
    }

    /// Rules for the files of a view.
    fn files(&self, options: &LiveOptions) -> FilePolicy {
        let policy = match &self.request.own_work {
            Some(OwnWork::Recording { symfs, .. }) => session::files_of_recording(
                symfs.as_deref().map(|dir| Path::new(OsStr::from_bytes(dir))),
            ),
            _ => session::files_of(options),
        };
        FilePolicy { shows_sources: true, ..policy }
    }

    /// Begins to read a recording.
    fn read(&self, name: &[u8], symfs: Option<&[u8]>) -> anyhow::Result<Arc<dyn Source>> {
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let live = self.options()?;
        let options = RecordingOptions {
            windows: live.windows,
            ..RecordingOptions::of_samples(
                Some(path(name)),
                symfs.map(path),
                Some(live.history_bytes),
                true,
            )
        };
        let file = lock(&self.recording).take().context("a recording came without its file")?;
        let file = RecordingFile { file, name: path(name) };
        Ok(OpenRecording::of_file(file, &options).totals()?.into())
    }

    fn attach(&self) -> anyhow::Result<Arc<dyn Source>> {
        if let Some(OwnWork::Recording { name, symfs }) = &self.request.own_work {
            return self.read(name, symfs.as_deref());
        }
        let is_over = || self.is_leaving.load(Ordering::Acquire);
        let is_hurried = Arc::clone(&self.is_hurried);
        Ok(session::start_live_hurried_by(&self.options()?, is_hurried, &is_over)?.into())
    }

    /// The answer to a question, which may use `keys` besides its own, as JSON or CSV.
    fn answer(
        &self,
        query: &[u8],
        keys: BTreeMap<String, String>,
        is_csv: bool,
    ) -> io::Result<Option<Vec<u8>>> {
        let query = serde_json::from_slice::<Query>(query);
        let query = query.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let query = query.with_keys(keys);
        let refused =
            |failure: Failure| io::Error::new(io::ErrorKind::InvalidInput, failure.to_string());
        let mut question = Question::new(query).map_err(refused)?;
        question.bound(MAX_ANSWER_ROWS);
        if self.request.viewer.is_some() {
            question.confine().map_err(refused)?;
        }
        let Some(source) = lock(&self.source).clone() else { return Ok(None) };
        let answer = question.answer(&source.history(question.has_lines())).map_err(refused)?;
        if is_csv {
            let mut csv = Vec::new();
            answer::write_csv(&question, &answer, &mut csv)?;
            return Ok(Some(csv));
        }
        json(Some(answer))
    }

    /// A view of the samples.
    fn view(
        &self,
        view: View,
        request: &[u8],
        keys: BTreeMap<String, String>,
    ) -> io::Result<Option<Vec<u8>>> {
        let Some(source) = lock(&self.source).clone() else { return Ok(None) };
        let refused = |error: anyhow::Error| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{error:#}"))
        };
        let options = self.options().map_err(refused)?;
        let mut kept = lock(&self.inspector);
        let (inspector, used) =
            kept.get_or_insert_with(|| (Inspector::new(self.files(&options)), Instant::now()));
        *used = Instant::now();
        let is_confined = self.request.viewer.is_some();
        let mut viewed = Viewed { source: &*source, inspector, is_confined };
        viewed.view(view, request, keys).map(Some).map_err(refused)
    }

    fn standing(&self, source: &dyn Source) -> Standing {
        let memory = memory_bound::state();
        Standing {
            beat: self.beat.load(Ordering::Acquire),
            is_finished: source.is_finished(),
            n_short: memory_bound::n_wanted(),
            is_short: memory_bound::is_short(),
            is_above: memory.is_some_and(MemoryState::is_above),
            n_shed: memory.map(|memory| memory.n_shed.to_vec()).unwrap_or_default(),
        }
    }

    /// Writes a snapshot to `file` as an event; gives its figures as JSON.
    fn snapshot(&self, source: &dyn Source, file: Option<OwnedFd>) -> io::Result<Vec<u8>> {
        // It takes memory, and nobody may be waiting for it: who is has it locked.
        if let Ok(mut kept) = self.inspector.try_lock() {
            kept.take_if(|(_, used)| used.elapsed() > INSPECTOR_IDLE);
        }
        let mut findings = source.findings();
        self.beat.store(source.heartbeat(), Ordering::Release);
        if let Some(warning) = &self.request.warning {
            Arc::make_mut(&mut findings.snapshot).warnings.push(warning.clone());
        }
        let figures = serde_json::to_vec(&figures::of(&findings))?;
        let max_objects = usize::try_from(self.request.max_objects).unwrap_or(usize::MAX);
        frame::shown(&mut findings.snapshot, max_objects, self.request.viewer.is_none());
        write(file, &frame::event(&findings.snapshot))?;
        *lock(&self.shown) = Some((findings, Instant::now()));
        Ok(figures)
    }

    /// Makes what is wished for, in `file`.
    fn fulfil(&self, wish: Wish, file: Option<OwnedFd>) -> Reply {
        let making = || match wish {
            Wish::Query { query, keys, is_csv } => self.answer(&query, keys, is_csv),
            Wish::View { view, request, keys } => self.view(view, &request, keys),
            of_snapshot => self.made(&of_snapshot),
        };
        let bytes = catch_unwind(AssertUnwindSafe(making));
        let bytes = bytes.unwrap_or_else(|_| Err(io::Error::other("it panicked")));
        match bytes.and_then(|bytes| bytes.map(|bytes| write(file, &bytes)).transpose()) {
            Ok(Some(())) => Reply::Made,
            Ok(None) => Reply::Absent,
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                Reply::Refused(error.to_string())
            }
            Err(error) => self.failed(&error),
        }
    }

    /// The bytes of what is wished for of the newest snapshot; `None` where there is none, or no such thing.
    fn made(&self, wish: &Wish) -> io::Result<Option<Vec<u8>>> {
        let Some((findings, made)) = lock(&self.shown).clone() else { return Ok(None) };
        let mut bytes = Vec::new();
        match wish {
            Wish::Object(id) => return json(object::detail(&findings, *id)),
            Wish::Layout(id) => return json(object::layout(&findings, *id)),
            Wish::Pprof => pprof::write(&findings, Some(made.elapsed()), MAX_BYTES, &mut bytes)?,
            Wish::Folded => folded::write(&findings, MAX_BYTES, &mut bytes)?,
            Wish::Query { .. } | Wish::View { .. } => return Ok(None),
        }
        Ok(Some(bytes))
    }

    fn failed(&self, error: &io::Error) -> Reply {
        tracing::error!(%error, session = self.session, "an answer cannot be made");
        Reply::Failed(error.to_string())
    }
}

/// Writes `bytes` to a file that came with what was asked.
fn write(file: Option<OwnedFd>, bytes: &[u8]) -> io::Result<()> {
    let file = file.ok_or_else(|| io::Error::other("it was asked without a file"))?;
    File::from(file).write_all(bytes)
}

fn json(value: Option<impl Serialize>) -> io::Result<Option<Vec<u8>>> {
    Ok(value.map(|value| serde_json::to_vec(&value)).transpose()?)
}
