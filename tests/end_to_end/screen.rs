//! What becomes of the output: the full screen on a real terminal, lines on a pipe that closes.
//! The terminal: `script`, from Debian's essential bsdutils, makes it.

use crate::support::{PATIENCE, compile, dataspace, run};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const LEAVE_ALTERNATE_SCREEN: &str = "\x1b[?1049l";

/// Size of the terminal.
const COLUMNS: u16 = 100;
const LINES: u16 = 30;

/// Our binary on a terminal of its own.
pub(crate) struct Terminal {
    script: Child,
    log: PathBuf,
    _dir: tempfile::TempDir,
}

impl Terminal {
    fn start() -> Self {
        Self::running("demo", "bucket.head")
    }

    /// Runs it with `args`, and waits until the screen shows an object.
    pub(crate) fn running(args: &str, object: &str) -> Self {
        Self::configured("", args, object)
    }

    /// The same of a user who has a configuration.
    fn configured(configuration: &str, args: &str, object: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("dataspace");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("dataspace.toml"), configuration).unwrap();
        let log = dir.path().join("screen");
        let binary = env!("CARGO_BIN_EXE_dataspace");
        let script = Command::new("script")
            .args(["-q", "-e", "-f", "-c"])
            .arg(format!("stty cols {COLUMNS} rows {LINES}; exec {binary} {args}"))
            .arg(&log)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // Else its frames are drawn in ASCII.
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm")
            .env("XDG_CONFIG_HOME", dir.path())
            .spawn()
            .unwrap();
        let terminal = Self { script, log, _dir: dir };
        wait_until("the screen shows objects", || terminal.text().contains(object));
        terminal
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// The picture that the terminal shows.
    fn picture(&self) -> String {
        let mut parser = vt100::Parser::new(LINES, COLUMNS, 0);
        parser.process(&fs::read(&self.log).unwrap_or_default());
        parser.screen().contents()
    }

    /// Presses `keys`, and waits until all of `expected` is in the picture, and none of `gone`.
    #[track_caller]
    fn leads_to(&mut self, keys: &str, expected: &[&str], gone: &[&str]) {
        self.press(keys);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let picture = self.picture();
            let has = |text: &&str| picture.contains(*text);
            if expected.iter().all(has) && !gone.iter().any(has) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{keys:?} is to show {expected:?}, not {gone:?}:\n{picture}"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.script.stdin.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// What stays on the terminal when the screen was left, which is waited for.
    pub(crate) fn left_behind(&mut self) -> String {
        wait_until("the screen is left", || self.script.try_wait().unwrap().is_some());
        assert_eq!(self.script.wait().unwrap().code(), Some(0));
        let text = self.text();
        let (_, after) = text.rsplit_once(LEAVE_ALTERNATE_SCREEN).expect("it is restored");
        after.to_owned()
    }

    /// The process number of what runs on the terminal.
    fn pid(&self) -> Pid {
        let script = self.script.id();
        let children =
            fs::read_to_string(format!("/proc/{script}/task/{script}/children")).unwrap();
        Pid::from_raw(children.trim().parse().unwrap()).unwrap()
    }
}

/// Tells whether the screen can show anything here; the reason is printed where it cannot.
fn can_sample() -> bool {
    let output = run(&["demo", "--once", "--duration", "0.1"]);
    let is_possible = !matches!(output.status.code(), Some(3 | 4));
    if !is_possible {
        eprintln!("not run: {}", String::from_utf8_lossy(&output.stderr));
    }
    is_possible
}

#[track_caller]
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

#[test]
fn keys_and_signals_leave_a_table_behind() {
    if !can_sample() {
        return;
    }
    let check = |keys: &str| {
        let mut terminal = Terminal::start();
        if keys == "SIGTERM" {
            kill_process(terminal.pid(), Signal::TERM).unwrap();
        } else {
            terminal.press(keys);
        }
        let after = terminal.left_behind();
        assert!(after.contains("totals are final"), "{keys:?}: {after}");
    };
    for keys in ["q", "\x03", "jj\r?qqq", "/price\rq", "SIGTERM"] {
        check(keys);
    }
}

#[test]
fn a_filter_goes_along_from_view_to_view_and_back() {
    if !can_sample() {
        return;
    }
    let mut terminal = Terminal::start();
    terminal.leads_to("", &["order", "particle"], &[]);
    let filter = "only type == \"order\"";
    terminal.leads_to("/=type == \"order\"\r", &[filter, "▾ order"], &["particle"]);
    terminal.leads_to("\r", &["┌ object", "HOTTEST LINES", filter], &[]);
    terminal.leads_to("l", &["┌ layout", "FIRST", "price", filter], &["HOTTEST LINES"]);
    terminal.leads_to("c", &["┌ code", "●", "order.", filter], &["┌ layout"]);
    terminal.leads_to("t", &["┌ threads", "samples on memory", filter], &["●"]);
    terminal.leads_to("q", &["┌ code", filter], &["┌ threads"]);
    terminal.leads_to("q", &["┌ layout", filter], &["┌ code"]);
    terminal.leads_to("q\x1b", &["R:W", filter], &["┌", "particle"]);
    terminal.leads_to("F", &["particle"], &[filter]);
    terminal.press("q");
    assert!(terminal.left_behind().contains("totals are final"));
}

#[test]
fn what_is_under_the_cursor_is_watched_and_left_again() {
    let own = std::process::id().to_string();
    let args = ["top", "-p", &own, "-e", "mem:0x1000/8", "--once", "--duration", "0.1"];
    if !can_sample() || matches!(run(&args).status.code(), Some(3 | 4)) {
        eprintln!("not run: no breakpoint can be had");
        return;
    }
    let mut terminal = Terminal::start();
    // The prompt says "price" before any row does.
    terminal.leads_to("/price\r", &["▾ order", ".price"], &["particle"]);
    terminal.leads_to("W", &["events    mem:0x", "SAMPLES", "q leaves"], &["R:W"]);
    terminal.leads_to("q", &["R:W", "price"], &["mem:0x"]);
    terminal.press("q");
    assert!(terminal.left_behind().contains("totals are final"));
}

/// In a worker no file can be opened: settings have to be read before.
#[test]
fn columns_and_keys_are_those_of_the_users_configuration() {
    if !can_sample() {
        return;
    }
    let program = compile("chase", &["-O1", "-g"]);
    let configuration = "[screen]\ncolumns = [\"rate\", \"samples\"]\n[keys]\nhalf = \"cpu / 2\"";
    let args = format!("top -- {}", program.display());
    let mut terminal = Terminal::configured(configuration, &args, "cell");
    terminal.leads_to("", &["RATE/S", "SAMPLES"], &["SHARE", "EVIDENCE"]);
    terminal.leads_to("g", &["half"], &[]);
    terminal.press("qq");
    terminal.left_behind();
}

/// A mistake is told before anything runs, and only where a screen is to be drawn.
#[test]
fn a_mistake_in_the_screens_configuration_is_told_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("dataspace");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("dataspace.toml"), "[screen]\ncolumns = [\"weight\"]\n").unwrap();
    let binary = env!("CARGO_BIN_EXE_dataspace");
    let on_terminal = Command::new("script")
        .args([
            "-q",
            "-e",
            "-c",
            &format!("{binary} top -- touch {}", dir.path().join("ran").display()),
        ])
        .arg("/dev/null")
        .env("XDG_CONFIG_HOME", dir.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&on_terminal.stdout);
    assert_eq!(on_terminal.status.code(), Some(2), "{said}");
    assert!(said.contains("dataspace.toml:2: ") && said.contains("weight"), "{said}");
    assert!(!fs::exists(dir.path().join("ran")).unwrap(), "the command was started");
    let mut annotate = dataspace(&["annotate", "main", "-i", "/nowhere", "--where", "cpu == 0"]);
    let without = annotate.env("XDG_CONFIG_HOME", dir.path()).output().unwrap();
    let said = String::from_utf8_lossy(&without.stderr);
    assert!(said.contains("/nowhere") && !said.contains("weight"), "{said}");
}

#[test]
fn it_ends_when_its_terminal_is_gone() {
    if !can_sample() {
        return;
    }
    let mut terminal = Terminal::start();
    let pid = terminal.pid();
    terminal.script.kill().unwrap();
    terminal.script.wait().unwrap();
    wait_until("the process is gone", || !fs::exists(format!("/proc/{pid}")).unwrap());
}

#[test]
fn a_reader_that_had_enough_is_no_failure() {
    if !can_sample() {
        return;
    }
    let args = ["demo", "--json", "--duration", "3", "--interval", "0.1"];
    let mut session = dataspace(&args);
    let mut session = session.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(session.stdout.take().unwrap()).read_line(&mut line).unwrap();
    // The reader is dropped: the next line finds a broken pipe.
    let output = session.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
