//! Programs to profile, and sessions run to their end.

use dataspace_collector::channel::batch::{self, BatchReceiver};
use dataspace_collector::error::{Error, ErrorKind};
use dataspace_collector::live::{Live, LiveConfig, Outcome, Running};
use dataspace_proto::accounting::Collected;
use dataspace_proto::record::{Record, Sample};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A C program, compiled.
pub(crate) struct Program {
    dir: tempfile::TempDir,
}

impl Program {
    /// Compiles `source` without PIE, so that symbols have their addresses in the file.
    pub(crate) fn new(source: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("program.c");
        std::fs::write(&file, source).unwrap();
        let status = Command::new("gcc")
            .args(["-O1", "-g", "-no-pie", "-pthread", "-o"])
            .arg(dir.path().join("program"))
            .arg(&file)
            .status()
            .expect("gcc runs");
        assert!(status.success(), "the program compiles");
        Self { dir }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("program")
    }

    /// The address of a symbol.
    pub(crate) fn address(&self, symbol: &str) -> u64 {
        let output = Command::new("nm").arg(self.path()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().find(|line| line.ends_with(&format!(" {symbol}"))).unwrap();
        u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
    }

    /// Runs it with pipes as its input and output, which is how test and program wait for each
    /// other.
    pub(crate) fn spawn(&self) -> Partner {
        Partner::spawn(&self.path())
    }

    pub(crate) fn argv(&self) -> Vec<OsString> {
        vec![self.path().into_os_string()]
    }
}

/// Copies a program that is to be executed. Not in this process: a child that another test forks meanwhile
/// would have the copy open for writing, and it could not be executed.
pub(crate) fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
}

/// A running program that talks.
pub(crate) struct Partner {
    pub(crate) child: Child,
    pub(crate) input: Option<ChildStdin>,
    pub(crate) output: BufReader<ChildStdout>,
}

impl Partner {
    pub(crate) fn spawn(path: &Path) -> Self {
        let mut command = Command::new(path);
        command.current_dir(path.parent().unwrap()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { input: child.stdin.take(), child, output }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub(crate) fn read_line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    pub(crate) fn say(&mut self, word: &str) {
        writeln!(self.input.as_mut().unwrap(), "{word}").unwrap();
    }

    /// Closes its input, and waits for its end.
    pub(crate) fn finish(&mut self) {
        drop(self.input.take());
        self.child.wait().unwrap();
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Opens a session, or says why this machine does not let us and gives `None`.
pub(crate) fn open(config: LiveConfig) -> Option<Live> {
    match Live::open(config) {
        Ok(live) => Some(live),
        Err(error) => {
            skip(&error);
            None
        }
    }
}

fn skip(error: &Error) {
    assert!(
        matches!(error.kind(), ErrorKind::NotPermitted | ErrorKind::MachineCannot),
        "only what this machine does not permit may be skipped: {error}"
    );
    eprintln!("skipped: {error}");
}

/// A session that runs, and what it said so far.
pub(crate) struct Session {
    pub(crate) running: Running,
    pub(crate) receiver: BatchReceiver,
    pub(crate) said: Said,
}

/// All records of a session.
#[derive(Default)]
pub(crate) struct Said {
    pub(crate) records: Vec<Record>,
}

impl Session {
    pub(crate) fn start(live: Live) -> Self {
        let (sender, receiver) = batch::channel(64, 1024);
        Self { running: live.start(sender).unwrap(), receiver, said: Said::default() }
    }

    /// Takes records until `wanted` holds of one.
    pub(crate) fn wait_for(&mut self, wanted: impl Fn(&Record) -> bool) {
        loop {
            let batch = self.receiver.receive().expect("the session goes on");
            let is_there = batch.iter().any(&wanted);
            self.said.records.extend(batch.iter().cloned());
            if is_there {
                return;
            }
        }
    }

    /// Takes what is left.
    pub(crate) fn finish(mut self) -> (Said, Outcome) {
        while let Some(batch) = self.receiver.receive() {
            self.said.records.extend(batch.iter().cloned());
            self.receiver.recycle(batch);
        }
        let outcome = self.running.join();
        self.said.check(&outcome.collected);
        (self.said, outcome)
    }
}

impl Said {
    pub(crate) fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.records.iter().filter_map(|record| match record {
            Record::Sample(sample) => Some(sample),
            _ => None,
        })
    }

    pub(crate) fn warnings(&self) -> Vec<&str> {
        self.records
            .iter()
            .filter_map(|record| match record {
                Record::Warning(text) => Some(&**text),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn has_mapping(&self, path: &Path) -> bool {
        use std::os::unix::ffi::OsStrExt;
        self.records.iter().any(|record| {
            matches!(record, Record::Mmap(mmap) if *mmap.path == *path.as_os_str().as_bytes())
        })
    }

    /// What holds in every session: both sides of the counts are equal at each place in the
    /// stream, what they call delivered had come, and times rise.
    fn check(&self, last: &Collected) {
        let (mut n_samples, mut time_ns, mut n_late, mut n_counts) = (0, 0, 0, 0);
        for record in &self.records {
            if let Some(at_ns) = record.time_ns() {
                n_late += u64::from(at_ns < time_ns);
                time_ns = time_ns.max(at_ns);
            }
            match record {
                Record::Sample(_) => n_samples += 1,
                Record::Collected(counts) => {
                    n_counts += 1;
                    let right = counts.delivered
                        + counts.ring_full
                        + counts.channel_full
                        + counts.undecodable;
                    assert_eq!(counts.kernel_samples, right, "{counts:?}");
                    assert_eq!(counts.delivered, n_samples, "{counts:?}");
                }
                _ => {}
            }
        }
        assert!(n_counts > 0, "the counts are told at the end at least");
        assert_eq!(last.delivered, n_samples);
        assert!(n_late <= last.late, "{n_late} went back in time, {} were told of", last.late);
        assert!(matches!(self.records.last(), Some(Record::Collected(_))));
        assert_eq!(last.undecodable, 0);
    }
}

/// Set in the copy of the test that runs in another place.
const INNER: &str = "DATASPACE_TEST_INNER";

/// Runs `test`, which is called `name`, where tracefs is mounted: in a mount namespace of its own
/// if it is not here.
pub(crate) fn with_tracefs(name: &str, test: impl FnOnce()) {
    let is_there = Path::new("/sys/kernel/tracing/events").exists();
    if is_there || std::env::var_os(INNER).is_some() {
        return test();
    }
    let mount = "mount -t tracefs nodev /sys/kernel/tracing || exit 77; exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", mount]).arg(std::env::current_exe().unwrap());
    run_inner(command, name);
}

/// Runs `test`, which is called `name`, where few files can be open.
pub(crate) fn with_few_files(name: &str, test: impl FnOnce()) {
    if std::env::var_os(INNER).is_some() {
        return test();
    }
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 32 || exit 77; exec \"$0\" \"$@\""]);
    command.arg(std::env::current_exe().unwrap());
    run_inner(command, name);
}

/// Runs `test`, which is called `name`, as a user without privileges.
pub(crate) fn as_nobody(name: &str, test: impl FnOnce()) {
    let am_root = is_root();
    if !am_root || std::env::var_os(INNER).is_some() {
        return test();
    }
    // The test's own directory may be closed to others.
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("test");
    copy_program(&std::env::current_exe().unwrap(), &copy);
    let open = Command::new("chmod").arg("755").arg(dir.path()).arg(&copy).status().unwrap();
    assert!(open.success());
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]);
    command.arg("--").arg(&copy).current_dir("/tmp");
    run_inner(command, name);
}

fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status").unwrap().contains("Uid:\t0\t0")
}

fn run_inner(mut command: Command, name: &str) {
    let status = command.args(["--exact", name, "--nocapture"]).env(INNER, "1").status();
    match status {
        Ok(status) if status.success() => {}
        // A test that fails ends with this code, or by a signal; what goes before it, with another.
        Ok(status) if status.code().is_some_and(|code| code != 101) => {
            eprintln!("skipped: {name} cannot be set up here");
        }
        Ok(status) => panic!("{name} failed inside: {status}"),
        Err(error) => eprintln!("skipped: {command:?}: {error}"),
    }
}
