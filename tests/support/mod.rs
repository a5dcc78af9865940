//! What end-to-end tests share: programs compiled and started, the binary run, its output read.
#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod daemon;
pub(crate) mod schema;
pub(crate) mod silent;
pub(crate) mod slow_field;

use serde_json::Value;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long anything that has to happen may take: on an idle machine it takes a moment, and on a busy one as
/// long as it takes to get a share of a CPU. A test that waits longer hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(900);

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Compiles `tests/programs/NAME.c` with gcc and `flags` to a file of its own.
pub(crate) fn compile(name: &str, flags: &[&str]) -> PathBuf {
    compile_by("gcc", name, flags).expect("gcc is installed")
}

/// The same with any compiler; `None`, with the reason printed, where it is not installed.
pub(crate) fn compile_by(compiler: &str, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let installed = Command::new(compiler).arg("--version").output();
    if !installed.is_ok_and(|output| output.status.success()) {
        eprintln!("not run: {compiler} is not installed");
        return None;
    }
    let sources = [root().join(format!("tests/programs/{name}.c"))];
    Some(compile_sources(compiler, name, &sources, flags))
}

/// Compiles `tests/programs/NAME.rs` with rustc and `flags` to a file of its own.
pub(crate) fn compile_rust(name: &str, flags: &[&str]) -> PathBuf {
    let sources = [root().join(format!("tests/programs/{name}.rs"))];
    let flags = [&["--edition", "2024", "-g"][..], flags].concat();
    compile_sources("rustc", name, &sources, &flags)
}

/// Compiles SQLite as a program, once for all tests: it takes half a minute.
pub(crate) fn sqlite() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT
        .get_or_init(|| {
            let amalgamation = sqlite_source();
            let include = format!("-I{}", amalgamation.parent().unwrap().display());
            let sources = [root().join("tests/programs/sqlite.c"), amalgamation];
            let flags = ["-O2", "-g", &include, "-DSQLITE_THREADSAFE=0", "-ldl", "-lm"];
            compile_sources("gcc", "sqlite", &sources, &flags)
        })
        .clone()
}

/// SQLite's source in the crate that bundles it.
fn sqlite_source() -> PathBuf {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|package| package["name"] == "libsqlite3-sys").unwrap();
    let manifest = Path::new(package["manifest_path"].as_str().unwrap());
    manifest.parent().unwrap().join("sqlite3/sqlite3.c")
}

/// What cargo says of the workspace and its dependencies.
pub(crate) fn metadata() -> Value {
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--format-version", "1", "--locked"]).current_dir(root());
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "cargo metadata failed");
    serde_json::from_slice(&output.stdout).unwrap()
}

pub(crate) fn compile_sources(
    compiler: &str,
    name: &str,
    sources: &[PathBuf],
    flags: &[&str],
) -> PathBuf {
    // Tests run side by side, in one process and in several: who compiles the same program has a file of his own.
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // By what is in the sources: a target directory may be shared with another checkout.
    let mut hasher = DefaultHasher::new();
    (compiler, flags).hash(&mut hasher);
    sources.iter().for_each(|source| std::fs::read(source).unwrap().hash(&mut hasher));
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let target = target.join(format!("{name}.{:016x}", hasher.finish()));
    if target.exists() {
        return target;
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let fresh = target.with_extension(format!("new{}-{number}", std::process::id()));
    let mut command = Command::new(compiler);
    command.args(sources).args(flags).arg("-o").arg(&fresh);
    assert!(command.status().unwrap().success(), "{command:?}");
    // The first one stays: a program that runs or was recorded is still the file of its name.
    match std::fs::hard_link(&fresh, &target) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => panic!("{error}"),
        _ => std::fs::remove_file(&fresh).unwrap(),
    }
    target
}

/// Copies a program that is to be executed. Not in this process: a child that another test forks meanwhile
/// would have the copy open for writing, and it could not be executed.
pub(crate) fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
}

/// A running program; it ends with this value.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
}

impl Running {
    /// Starts `program` and waits until it says "ready"; gives what it said before.
    pub(crate) fn start(program: &Path, args: &[&str]) -> (Self, Vec<String>) {
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = Vec::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        loop {
            let line = lines.next().expect("the program says ready").unwrap();
            if line == "ready" {
                break;
            }
            said.push(line);
        }
        (Self { child }, said)
    }

    /// Its process number, as an argument.
    pub(crate) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Writes a line to its standard input.
    pub(crate) fn say(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
        input.flush().unwrap();
    }

    /// Whether it still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary with `args`.
pub(crate) fn dataspace(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dataspace"));
    command.args(args).current_dir(root());
    command
}

/// What the binary prints.
pub(crate) fn run(args: &[&str]) -> Output {
    dataspace(args).stdin(Stdio::null()).output().unwrap()
}

/// The rows that Python's reader of CSV takes from what the binary prints; `None`, with the reason printed, where there
/// is no Python.
pub(crate) fn sheet(args: &[&str]) -> Option<Vec<HashMap<String, String>>> {
    let script = "import csv, json, sys, io\n\
                  text = io.TextIOWrapper(sys.stdin.buffer, newline='')\n\
                  print(json.dumps(list(csv.DictReader(text, strict=True))))";
    let output = run(args);
    assert!(output.status.success(), "{output:?}");
    let mut python = Command::new("python3");
    let reader = python.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut reader) = reader else {
        eprintln!("not run: python3 is not installed");
        return None;
    };
    reader.stdin.take().unwrap().write_all(&output.stdout).unwrap();
    let read = reader.wait_with_output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    Some(serde_json::from_slice(&read.stdout).unwrap())
}

/// The last snapshot that the binary prints with `args`, its accounting checked; `None`, with the
/// reason printed, where live events are not to be had.
pub(crate) fn last_snapshot(args: &[&str]) -> Option<Value> {
    let output = run(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    if matches!(output.status.code(), Some(3 | 4)) {
        eprintln!("not run: {errors}");
        return None;
    }
    assert!(output.status.success(), "{args:?}: {:?}\n{errors}", output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    for line in text.lines() {
        assert_balanced(&serde_json::from_str(line).unwrap());
    }
    Some(serde_json::from_str(text.lines().last().expect("at least one snapshot")).unwrap())
}

/// The last snapshot of `top` with `args`, which goes on until `is_enough` holds of one: how long it
/// takes to get so many samples is the machine's affair. `None` as of `last_snapshot`.
pub(crate) fn snapshot_once(
    args: &[&str],
    mut is_enough: impl FnMut(&Value) -> bool,
) -> Option<Value> {
    let (command, args) = args.split_first().unwrap();
    let duration = PATIENCE.as_secs().to_string();
    let until = ["--json", "--interval", "0.2", "--duration", &duration];
    let mut session = dataspace(&[&[*command][..], &until, args].concat())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = rustix::process::Pid::from_child(&session);
    let mut is_asked_to_end = false;
    let mut last = None;
    for line in BufReader::new(session.stdout.take().unwrap()).lines() {
        let snapshot = serde_json::from_str(&line.unwrap()).unwrap();
        assert_balanced(&snapshot);
        if !is_asked_to_end && is_enough(&snapshot) {
            rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
            is_asked_to_end = true;
        }
        last = Some(snapshot);
    }
    let output = session.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    if matches!(output.status.code(), Some(3 | 4)) {
        eprintln!("not run: {errors}");
        return None;
    }
    assert!(output.status.success(), "{args:?}: {:?}\n{errors}", output.status);
    Some(last.expect("at least one snapshot"))
}

/// What perf recorded of a program: the line that `script` gives each sample, and what it said.
pub(crate) struct Recorded {
    pub(crate) lines: Vec<Value>,
    pub(crate) said: Vec<String>,
}

/// Records `program` from start to end, `sampling` being perf's and `script` our options; `None`, with the reason printed, where perf cannot.
pub(crate) fn record(
    program: &Path,
    args: &[&str],
    event: &str,
    sampling: &[&str],
    script: &[&str],
) -> Option<Recorded> {
    const REGISTERS: &str = "ax,bx,cx,dx,si,di,bp,sp,ip,flags,r8,r9,r10,r11,r12,r13,r14,r15";
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-e", event]).args(sampling);
    perf.args([format!("--intr-regs={REGISTERS}"), format!("--user-regs={REGISTERS}")]);
    perf.arg("-o").arg(&file).arg("--").arg(program).args(args);
    let said = String::from_utf8(perf_record(&mut perf)?.stdout).unwrap();
    let script = run(&[&["script", "-i", file.to_str().unwrap()], script].concat());
    assert!(script.status.success(), "{}", String::from_utf8_lossy(&script.stderr));
    let lines = String::from_utf8(script.stdout).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    Some(Recorded { lines, said: said.lines().map(str::to_owned).collect() })
}

/// A shell's script that runs its arguments for two seconds on a CPU, which a busy machine takes longer to
/// give them (`schedstat` counts them), and then ends them.
pub(crate) const FOR_A_WHILE: &str = "\"$@\" & while read -r ns rest < /proc/$!/schedstat && \
    [ $ns -lt 2000000000 ]; do sleep 0.05; done; kill $!; wait $!; true";

/// What `perf record` prints; `None`, with the reason printed, where it cannot.
pub(crate) fn perf_record(perf: &mut Command) -> Option<Output> {
    // Beside a session on the whole system, as other tests have for some seconds, perf 6.1 aborts at mappings
    // whose flags the kernel left as they are for our events.
    const N_TRIES: usize = 5;
    let mut why = String::new();
    for _ in 0..N_TRIES {
        match perf.output() {
            Ok(output) if output.status.success() => return Some(output),
            Ok(output) => why = String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => why = error.to_string(),
        }
    }
    eprintln!("not run: perf record does not work here: {why}");
    None
}

/// Design invariant 4: kernel = attributed + Σ unknown + not_memory + Σ lost.
pub(crate) fn assert_balanced(snapshot: &Value) {
    let accounting = &snapshot["accounting"];
    let sum = |value: &Value| -> u64 {
        value.as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
    };
    let count = |name: &str| accounting[name].as_u64().unwrap();
    let right = count("attributed")
        + sum(&accounting["unknown"])
        + count("not_memory")
        + sum(&accounting["lost"]);
    assert_eq!(count("kernel"), right, "{accounting}");
}

/// Samples of the object called `name`, 0 if it is not there.
pub(crate) fn samples_of(snapshot: &Value, name: &str) -> u64 {
    let objects = snapshot["objects"].as_array().unwrap();
    let named = objects.iter().filter(|object| object["object"] == name);
    named.map(|object| object["metrics"]["all"]["samples"].as_u64().unwrap()).sum()
}

/// Samples that the kernel took and nobody got, whatever the cause.
pub(crate) fn lost(snapshot: &Value) -> u64 {
    let causes = snapshot["accounting"]["lost"].as_object().unwrap();
    causes.values().map(|count| count.as_u64().unwrap()).sum()
}

/// Samples of the kernel's own work, which are no accesses of the program's.
pub(crate) fn in_kernel(snapshot: &Value) -> u64 {
    snapshot["accounting"]["unknown"]["kernel"].as_u64().unwrap_or(0)
}

/// Samples in `<Total>`.
pub(crate) fn total(snapshot: &Value) -> u64 {
    samples_of(snapshot, "<Total>")
}

/// The processes that `parent` has begun.
pub(crate) fn children(parent: &Child) -> Vec<i32> {
    let tasks = format!("/proc/{}/task", parent.id());
    let tasks = std::fs::read_dir(tasks).unwrap().flatten();
    tasks.flat_map(|task| children_of(&task.path())).collect()
}

fn children_of(task: &Path) -> Vec<i32> {
    let text = std::fs::read_to_string(task.join("children")).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// Its workers: a command's is a child of its first thread, the daemon's are executed as such. Openers come and go.
pub(crate) fn workers(parent: &Child) -> Vec<i32> {
    let last_argument = |pid: &i32| {
        let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.trim_end_matches('\0').rsplit('\0').next().unwrap_or_default().to_owned()
    };
    let first = PathBuf::from(format!("/proc/{0}/task/{0}", parent.id()));
    let of_first = children_of(&first).into_iter().filter(|pid| last_argument(pid) != "opener");
    let executed = children(parent).into_iter().filter(|pid| last_argument(pid) == "worker");
    let mut workers: Vec<i32> = of_first.chain(executed).collect();
    workers.sort_unstable();
    workers.dedup();
    workers
}
