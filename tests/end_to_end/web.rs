//! `dataspace web`: whom it lets in, what it serves, and its views, held to what a program says of itself.

use crate::support::daemon::Daemon;
use crate::support::{PATIENCE, Running, compile, dataspace, root};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Samples that each thread is to have on its counter.
const ENOUGH: u64 = 40;

/// A server of the page.
struct Web {
    process: Child,
    address: String,
    token: String,
}

/// An answer: its status, its head in small letters, and its body.
type Answer = (u16, String, Vec<u8>);

impl Web {
    /// One that was started with `args`; `None`, with the reason printed, where live events are not to be had.
    fn start(args: &[&str]) -> Option<Self> {
        let mut process = dataspace(&[&["web"], args].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some(rest) = line.strip_prefix("http://") else {
            let mut errors = String::new();
            process.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
            let code = process.wait().unwrap().code();
            assert!(matches!(code, Some(3 | 4)), "{code:?}: {errors}");
            eprintln!("not run: {errors}");
            return None;
        };
        let (address, token) = rest.trim_end().split_once("/#token=").unwrap();
        let (address, token) = (address.to_owned(), token.to_owned());
        Some(Self { process, address, token })
    }

    /// The answer to a request with these lines in its head.
    fn send(&self, line: &str, head: &[&str], body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head: String = head.iter().map(|line| format!("{line}\r\n")).collect();
        let length = body.len();
        let request = format!(
            "{line} HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n{head}\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|at| at == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head, answer[end + 4..].to_vec())
    }

    fn head(&self) -> [String; 2] {
        [format!("host: {}", self.address), format!("authorization: Bearer {}", self.token)]
    }

    /// The JSON of an answer, and its status.
    fn ask(&self, line: &str, body: &Value) -> (u16, Value) {
        let head = self.head();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, _, answer) = self.send(line, &[&head[0], &head[1]], &body);
        let json = serde_json::from_slice(&answer);
        (status, json.unwrap_or_else(|error| panic!("{error}: {answer:?}")))
    }

    /// Its first session, once that has ended.
    fn ended(&self) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (_, sessions) = self.ask("GET /v1/sessions", &Value::Null);
            let session = &sessions["sessions"][0];
            if session["state"] == "ended" {
                return session.clone();
            }
            assert!(Instant::now() < deadline, "{session}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The view of its first session, once `is_enough` holds of it.
    fn view(&self, name: &str, request: &Value, is_enough: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (status, view) = self.ask(&format!("POST /v1/sessions/1/{name}"), request);
            if status == 200 && is_enough(&view) {
                return view;
            }
            assert!(Instant::now() < deadline, "{name}: {status} {view}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn ends_well(&mut self) {
        kill_process(Pid::from_child(&self.process), Signal::INT).unwrap();
        let status = self.process.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A program whose two threads count in one cache line: itself, and the address and thread of each counter.
fn counting() -> (Running, Vec<(String, u64)>) {
    let flags = ["-O2", "-g", "-pthread", "-fno-toplevel-reorder"];
    let (running, said) = Running::start(&compile("sharing", &flags), &["members", "atomic"]);
    let counter = |line: &String| {
        let words: Vec<&str> = line.split(' ').collect();
        (words[1].to_owned(), words[2].parse().unwrap())
    };
    let counters = said.iter().map(counter).collect();
    (running, counters)
}

#[test]
fn the_page_is_for_everybody_here_and_a_session_for_who_has_the_token() {
    let (running, _) = counting();
    let Some(mut web) = Web::start(&["-p", &running.pid()]) else { return };
    assert!(web.address.starts_with("127.0.0.1:"), "{}", web.address);
    let [host, token] = web.head();
    for (path, kind) in
        [("/", "text/html"), ("/app.js", "text/javascript"), ("/style.css", "text/css")]
    {
        let (status, head, body) = web.send(&format!("GET {path}"), &[&host], "");
        assert_eq!(status, 200, "{path}");
        assert!(head.contains(&format!("content-type: {kind}")) && !body.is_empty(), "{head}");
        for says in [
            "content-security-policy: default-src 'none'; script-src 'self';",
            "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(head.contains(says), "{path} does not say {says}: {head}");
        }
    }
    let sessions = "GET /v1/sessions";
    let other_first = if web.token.starts_with('0') { '1' } else { '0' };
    let wrong = format!("authorization: Bearer {other_first}{}", &web.token[1..]);
    for head in [&[&*host][..], &[&host, &wrong], &[&host, &token, &token]] {
        assert_eq!(web.send(sessions, head, "").0, 401, "{head:?}");
    }
    let own = format!("origin: http://{}", web.address);
    assert_eq!(web.send(sessions, &[&host, &token, &own], "").0, 200);
    let port = web.address.rsplit_once(':').unwrap().1;
    let other_port = format!("origin: http://127.0.0.1:1{port}");
    for origin in ["origin: http://evil.example", "origin: null", &other_port] {
        for path in [sessions, "GET /"] {
            assert_eq!(web.send(path, &[&host, &token, origin], "").0, 421, "{origin}");
        }
    }
    // Another site's name may lead here (DNS rebinding).
    for other in ["host: evil.example", &format!("host: evil.example:{port}"), "x: y"] {
        for path in [sessions, "GET /"] {
            assert_eq!(web.send(path, &[other, &token], "").0, 421, "{other}");
        }
    }
    let lines = std::fs::read_to_string(format!("/proc/{}/cmdline", web.process.id())).unwrap();
    assert!(!lines.contains(&web.token), "everybody may read that");
    web.ends_well();
}

#[test]
fn views_tell_what_the_program_says_of_its_counters() {
    let (running, counters) = counting();
    let Some(web) = Web::start(&["-p", &running.pid()]) else { return };
    let writes = |view: &Value, (address, tid): &(String, u64)| -> u64 {
        let lines = view["lines"].as_array().unwrap().iter();
        let parts = lines.flat_map(|line| line["parts"].as_array().unwrap());
        let own = parts.filter(|part| part["address"] == **address && part["tid"] == *tid);
        own.map(|part| part["writes"].as_u64().unwrap()).sum()
    };
    let sharing = web.view("sharing", &json!({}), |view| {
        counters.iter().all(|counter| writes(view, counter) >= ENOUGH)
    });
    assert_eq!(sharing["lines"][0]["sharing"], "false", "{sharing}");
    // `offsetof`: two longs, one after the other.
    let members = web.view("members", &json!({"object": "{structure:stats}"}), |_| true);
    let places: Vec<_> = members["members"].as_array().unwrap().iter().collect();
    let place = |at: usize| (&places[at]["name"], &places[at]["offset"], &places[at]["size"]);
    assert_eq!(place(0), (&json!("hits"), &json!(0), &json!(8)));
    assert_eq!(place(1), (&json!("misses"), &json!(8), &json!(8)));
    let code = web.view("code", &json!({"function": "count_left"}), |_| true);
    let source = std::fs::read_to_string(root().join("tests/programs/sharing.c")).unwrap();
    let source: Vec<&str> = source.lines().collect();
    let lines = code["lines"].as_array().unwrap();
    assert!(!lines.is_empty(), "{code}");
    for line in lines.iter().filter(|line| line["text"].is_string()) {
        let number = usize::try_from(line["line"].as_u64().unwrap()).unwrap();
        assert_eq!(line["text"].as_str().unwrap().trim_end(), source[number - 1].trim_end());
    }
    assert!(lines.iter().any(|line| line["text"].is_string()), "sources are shown: {code}");
    let measured = web.view("measurement", &json!({}), |_| true);
    let rows = measured["rows"].as_array().unwrap().iter();
    let sum: u64 = rows.map(|row| row["metrics"]["samples"].as_u64().unwrap()).sum();
    assert_eq!(measured["total"]["samples"], sum, "{measured}");
    let only = json!({"where": format!("thread == {}", counters[0].1)});
    let one = web.view("sharing", &only, |_| true);
    assert_eq!(writes(&one, &counters[1]), 0, "only the first thread's samples count: {one}");
    for (name, request, says) in [
        ("sharing", json!({"where": "threat == 1"}), "threat"),
        ("code", json!({"function": "no_such_function"}), "no_such_function"),
        ("members", json!({"object": "{long_int}"}), "has members"),
        ("members", json!({}), "object is missing"),
        ("measurement", json!({"unknown": 1}), "unknown"),
    ] {
        let (status, error) = web.ask(&format!("POST /v1/sessions/1/{name}"), &request);
        assert_eq!(status, 400, "{name} {request}: {error}");
        assert!(error["message"].as_str().unwrap().contains(says), "{error}");
    }
}

#[test]
fn a_page_of_a_daemon_hands_its_answers_on_and_finds_it_again() {
    let (running, _) = counting();
    let mut daemon = Daemon::start("");
    let Some(id) = daemon.attach(&running.pid()) else { return };
    let socket = daemon.socket.to_str().unwrap().to_owned();
    let web = Web::start(&["--connect", &socket]).unwrap();
    let sessions = "GET /v1/sessions";
    assert_eq!(web.ask(sessions, &Value::Null).1, daemon.get("/v1/sessions"));
    let (status, answer) = web.ask("GET /v1/sessions/77", &Value::Null);
    assert_eq!((status, &answer["code"]), (404, &json!("not_found")));
    // A stream is handed on as it comes.
    let [host, token] = web.head();
    let mut stream = TcpStream::connect(&web.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let path = format!("/v1/sessions/{id}/stream?interval_ms=100");
    write!(stream, "GET {path} HTTP/1.1\r\n{host}\r\n{token}\r\n\r\n").unwrap();
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let snapshots = lines.filter(|line| line == "event: snapshot").take(3).count();
    assert_eq!(snapshots, 3);
    daemon.signal(Signal::TERM);
    daemon.ends_well();
    let (status, answer) = web.ask(sessions, &Value::Null);
    assert_eq!(status, 503, "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("does not answer"), "{answer}");
}

#[test]
fn a_command_is_sampled_and_answers_questions_after_its_end() {
    let program = compile("sharing", &["-O2", "-g", "-pthread", "-fno-toplevel-reorder"]);
    let program = program.to_str().unwrap();
    let Some(mut web) = Web::start(&["--", program, "members", "atomic"]) else { return };
    let is_enough = |view: &Value| view["lines"][0]["samples"].as_u64() >= Some(ENOUGH);
    // Not a question that asks for lines: they are there all the same.
    web.view("query", &json!({"by": ["object"]}), |it| {
        it["total"]["samples"].as_u64() >= Some(4 * ENOUGH)
    });
    // The program ends with its input, which is ours.
    drop(web.process.stdin.take());
    let session = web.ended();
    assert_eq!(session["n_attached"], 1, "it is not run again: {session}");
    let shared = web.view("sharing", &json!({}), is_enough);
    assert_eq!(shared["lines"][0]["sharing"], "false", "{shared}");
    let by_line = web.view("query", &json!({"by": ["line"], "where": "line != null"}), |_| true);
    let line = by_line["rows"][0]["key"][0].as_str().unwrap_or_default();
    assert!(line.contains("/sharing.c:"), "{by_line}");
    let by_function = json!({"by": ["function"], "where": "function.startsWith(\"count_\")"});
    let answer = web.view("query", &by_function, |_| true);
    let (status, last) = web.ask("GET /v1/sessions/1/snapshot", &Value::Null);
    assert_eq!((status, &answer["rows_of_span"]), (200, &last["accounting"]["kernel"]));
    let code = web.view("code", &json!({"function": "count_left"}), |_| true);
    assert_eq!(code["function"], "count_left");
    // Of a part of the samples views tell less, and of all parts together as much.
    let half = |condition: &str| {
        let request = json!({"object": "{structure:stats}", "where": condition});
        let members = web.view("members", &request, |_| true);
        let code = json!({"function": "count_left", "where": condition});
        let code = web.view("code", &code, |_| true);
        let samples = [&members["samples"], &code["total"]["samples"]];
        samples.map(|it| it.as_u64().unwrap())
    };
    let [all, loud, quiet] =
        ["true", "function == \"count_left\"", "function != \"count_left\""].map(half);
    assert_eq!(all[0], loud[0] + quiet[0]);
    assert_eq!((all[1], quiet[1]), (loud[1], 0), "{all:?} {quiet:?}");
    let late = json!({"object": "{structure:stats}", "function": "count_left", "span": "1h.."});
    assert_eq!(web.view("members", &late, |_| true)["samples"], 0);
    assert_eq!(web.view("code", &late, |_| true)["total"]["samples"], 0);
    web.ends_well();
}

#[test]
fn a_recording_has_all_views_and_no_sample_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    let file = file.to_str().unwrap();
    let (running, _) = counting();
    let args = ["record", "--json", "--duration", "1", "-o", file, "-p", &running.pid()];
    let recorded = dataspace(&args).output().unwrap();
    if !recorded.status.success() {
        let errors = String::from_utf8_lossy(&recorded.stderr);
        assert!(matches!(recorded.status.code(), Some(3 | 4)), "{errors}");
        eprintln!("not run: {errors}");
        return;
    }
    let recorded: Value = serde_json::from_slice(&recorded.stdout).unwrap();
    let mut web = Web::start(&["-i", file]).unwrap();
    let session = web.ended();
    assert_eq!(session["target"], file);
    let answer = web.view("query", &json!({"by": ["object"]}), |_| true);
    assert_eq!(answer["rows_held"], recorded["samples"], "{answer}");
    for (view, request) in [
        ("sharing", json!({})),
        ("members", json!({"object": "{structure:stats}"})),
        ("code", json!({})),
        ("measurement", json!({})),
    ] {
        web.view(view, &request, |_| true);
    }
    // Its load objects are of the machine that recorded.
    let (status, error) = web.ask("POST /v1/sessions", &json!({"pids": [std::process::id()]}));
    assert_eq!((status, &error["code"]), (400, &json!("bad_request")), "{error}");
    web.ends_well();
    let missing = dataspace(&["web", "-i", "/nonexistent"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("/nonexistent"));
}
