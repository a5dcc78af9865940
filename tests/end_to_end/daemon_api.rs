//! The daemon's API, held to the document that it serves, and to a program that knows its page faults.

use crate::export::{LEAVES, stacks};
use crate::support::daemon::{Daemon, send};
use crate::support::schema::faults;
use crate::support::{Running, compile, total};
use serde_json::{Value, json};
use std::io::Read as _;
use std::sync::Mutex;

/// What no answer may have in it: of the program's command line.
const SECRET: &str = "a-password-on-the-command-line";

/// Holds what the daemon answers to its document.
struct Held {
    daemon: Daemon,
    document: Value,
    /// Operations that were answered, with their statuses.
    seen: Mutex<Vec<(String, String, u16)>>,
}

/// An answer as it came.
struct Raw {
    status: u16,
    head: String,
    body: Vec<u8>,
}

fn ask(daemon: &Daemon, method: &str, path: &str, body: &str) -> Raw {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let mut stream = std::os::unix::net::UnixStream::connect(&daemon.socket).unwrap();
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let body = answer.split_off(end + 4);
    let head = String::from_utf8(answer).unwrap().to_ascii_lowercase();
    Raw { status: head.split(' ').nth(1).unwrap().parse().unwrap(), head, body }
}

impl Held {
    fn new(daemon: Daemon) -> Self {
        let document = daemon.get("/v1/openapi.json");
        Self { daemon, document, seen: Mutex::default() }
    }

    /// Asks, and holds the answer to what the document says of `template`.
    #[track_caller]
    fn ask(&self, method: &str, template: &str, keys: &[&str], body: &str) -> Raw {
        let mut path = template.to_owned();
        for key in keys {
            let (before, behind) = path.split_once('{').unwrap();
            path = format!("{before}{key}{}", behind.split_once('}').unwrap().1);
        }
        let answer = ask(&self.daemon, method, &path, body);
        let described = &self.document["paths"][template.split('?').next().unwrap()];
        let described = &described[method.to_lowercase()]["responses"][answer.status.to_string()];
        assert!(described.is_object(), "{method} {path}: {} is not described", answer.status);
        let described = match described["$ref"].as_str() {
            Some(place) => self.document.pointer(&place[1..]).unwrap(),
            None => described,
        };
        let (kind, content) = described["content"].as_object().unwrap().iter().next().unwrap();
        assert!(answer.head.contains(&format!("content-type: {kind}\r\n")), "{}", answer.head);
        if kind == "application/json" {
            let value: Value = serde_json::from_slice(&answer.body).unwrap();
            let faults = faults(&self.document, &content["schema"], &value);
            assert!(faults.is_empty(), "{method} {path}: {faults:#?}");
        }
        let text = String::from_utf8_lossy(&answer.body);
        assert!(!text.contains(SECRET), "{method} {path}: {text}");
        self.seen.lock().unwrap().push((method.into(), template.into(), answer.status));
        answer
    }

    #[track_caller]
    fn json(&self, method: &str, template: &str, keys: &[&str], body: &str) -> (u16, Value) {
        let answer = self.ask(method, template, keys, body);
        (answer.status, serde_json::from_slice(&answer.body).unwrap())
    }
}

/// A daemon attached to all page faults of the program, which has ended its work; `None`, with the reason
/// printed, where there are none to be had.
fn with_leaves() -> Option<(Held, String, Running)> {
    let keys = "[keys]\npair = \"offset / 16\"\nshort = \"pair + 0\"\n";
    let mut daemon = Daemon::start(&format!("[limits]\nsessions = 2\n{keys}"));
    let mut program = Running::start(&compile("leaves", &["-O2", "-g"]), &[SECRET]).0;
    let body = json!({"pids": [program.pid().parse::<i32>().unwrap()], "events": ["page-faults"],
                      "period": 1, "max_overhead": "off"});
    let (status, line) = daemon.ask("POST", "/v1/sessions", &body.to_string());
    if status == 422 {
        eprintln!("not run: {line}");
        return None;
    }
    assert_eq!(status, 201, "{line}");
    let id = line["id"].to_string();
    program.say("go");
    daemon.snapshot_once(&id, |snapshot| {
        let of = |name: &str| crate::support::samples_of(snapshot, name);
        of("{structure:leaf}") == 600 && snapshot["accounting"]["unknown"].get("pending").is_none()
    });
    Some((Held::new(daemon), id, program))
}

#[test]
fn every_answer_is_as_the_document_says() {
    let Some((held, id, program)) = with_leaves() else { return };
    let id = id.as_str();
    for path in ["/metrics", "/v1/openapi.json", "/v1/health", "/v1/sessions"] {
        assert_eq!(held.ask("GET", path, &[], "").status, 200);
        assert_eq!(held.ask("GET", &format!("{path}?x=1"), &[], "").status, 400);
    }
    let of_session = ["", "/snapshot", "/accounting", "/pprof", "/folded", "/stream"];
    for part in of_session {
        let path = format!("/v1/sessions/{{session}}{part}");
        for wrong in ["777", "+1", "01", "no-such", "a%20b", "%2e%2e"] {
            assert_eq!(held.ask("GET", &path, &[wrong], "").status, 404, "{part} {wrong}");
        }
        assert_eq!(held.ask("GET", &path, &["%zz"], "").status, 400, "{part}");
        assert_eq!(held.ask("GET", &format!("{path}?limit=3"), &[id], "").status, 400, "{part}");
        if part != "/stream" {
            assert_eq!(held.ask("GET", &path, &[id], "").status, 200, "{part}");
        }
    }
    let objects = "/v1/sessions/{session}/objects/{object}";
    let snapshot: Value = held.json("GET", "/v1/sessions/{session}/snapshot", &[id], "").1;
    for object in snapshot["objects"].as_array().unwrap() {
        let object = object["id"].to_string();
        assert_eq!(held.ask("GET", objects, &[id, &object], "").status, 200);
        held.ask("GET", &format!("{objects}/layout"), &[id, &object], "");
    }
    for wrong in ["+0", "00", "99999", "4294967296", "x", "-1"] {
        assert_eq!(held.ask("GET", objects, &[id, wrong], "").status, 404, "{wrong}");
        assert_eq!(held.ask("GET", &format!("{objects}/layout"), &[id, wrong], "").status, 404);
    }
    let query = |body: &str| held.ask("POST", "/v1/sessions/{session}/query", &[id], body).status;
    assert_eq!((query("{}"), query("{\"by\":[\"object\"]}")), (200, 200));
    for wrong in ["", "7", "{\"by\":[\"objekt\"]}", "{\"by\":[\"cpu\"],\"x\":1}"] {
        assert_eq!(query(wrong), 400, "{wrong}");
    }
    assert_eq!(query(&" ".repeat(100_000)), 413);
    let view = |name: &str, body: &str| {
        held.ask("POST", &format!("/v1/sessions/{{session}}/{name}"), &[id], body).status
    };
    let members = "{\"object\":\"{structure:leaf}\"}";
    for (name, right) in
        [("sharing", "{}"), ("code", "{}"), ("members", members), ("measurement", "{}")]
    {
        assert_eq!(view(name, right), 200, "{name}");
        for wrong in ["", "7", "{\"x\":1}", "{\"where\":\"1 +\"}"] {
            assert_eq!(view(name, wrong), 400, "{name} {wrong}");
        }
        assert_eq!(view(name, &" ".repeat(100_000)), 413, "{name}");
    }
    let attach = |body: &str| held.ask("POST", "/v1/sessions", &[], body).status;
    assert_eq!((attach("{}"), attach("{\"pids\":[99999999]}")), (400, 422));
    assert_eq!(attach(&" ".repeat(100_000)), 413);
    let own = format!("{{\"pids\":[{}],\"name\":\"own\"}}", program.pid());
    assert_eq!((attach(&own), attach(&own)), (201, 429));
    let session = "/v1/sessions/{session}";
    let (status, line) = held.json("DELETE", session, &["own"], "");
    assert_eq!((status, &line["state"]), (200, &json!("detached")));
    assert_eq!(held.ask("DELETE", session, &["own"], "").status, 404);
    let seen = held.seen.lock().unwrap();
    for (path, item) in held.document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let is_this = |seen: &&(String, String, u16)| {
                seen.0.eq_ignore_ascii_case(method) && seen.1 == *path && seen.2 < 300
            };
            // The stream does not end by itself; others read it.
            assert!(path.ends_with("/stream") || seen.iter().any(|seen| is_this(&seen)), "{path}");
        }
    }
}

#[test]
fn a_session_has_the_windows_that_it_was_asked_for() {
    let held = Held::new(Daemon::start(""));
    let program = Running::start(&compile("leaves", &["-O2", "-g"]), &[SECRET]).0;
    let attach = |windows: Value| {
        let body = json!({"pids": [program.pid().parse::<i32>().unwrap()], "windows_s": windows});
        held.json("POST", "/v1/sessions", &[], &body.to_string())
    };
    for wrong in [json!([]), json!([0]), json!([301]), json!([5, 5]), json!([1, 2, 3, 4, 5])] {
        let (status, error) = attach(wrong);
        assert_eq!((status, &error["code"]), (400, &json!("bad_request")), "{error}");
    }
    for (windows, names) in [
        (json!([5, 300, 60]), &["all", "300s", "60s", "5s"][..]),
        (json!(null), &["all", "60s", "10s", "1s"]),
    ] {
        let (status, line) = attach(windows);
        if status == 422 {
            eprintln!("not run: {line}");
            return;
        }
        let id = line["id"].to_string();
        let body = held.ask("GET", "/v1/sessions/{session}/snapshot", &[&id], "").body;
        let text = String::from_utf8(body).unwrap();
        let (_, metrics) = text.split_once("\"metrics\":{").unwrap();
        let places: Vec<usize> =
            names.iter().map(|name| metrics.find(&format!("\"{name}\":{{")).unwrap()).collect();
        assert!(places.is_sorted(), "{names:?}: {text}");
        let snapshot: Value = serde_json::from_str(&text).unwrap();
        let metrics = snapshot["objects"][0]["metrics"].as_object().unwrap();
        assert_eq!(metrics.len(), names.len(), "{metrics:?}");
    }
}

#[test]
fn a_question_is_answered_by_the_samples_themselves() {
    let Some((held, id, program)) = with_leaves() else { return };
    let body = json!({
        "by": ["function", "member", "line"],
        "where": "aggregate == \"{structure:leaf}\" && access == \"store\"",
        "limit": 2,
    });
    let query = "/v1/sessions/{session}/query";
    let (status, answer) = held.json("POST", query, &[&id], &body.to_string());
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["total"]["samples"], 600, "those beyond the limit count: {answer}");
    assert_eq!((&answer["truncated"], answer["rows"].as_array().unwrap().len()), (&json!(true), 2));
    for (row, (function, member, n)) in answer["rows"]
        .as_array()
        .unwrap()
        .iter()
        .zip([("fill_keys", "key", 300), ("fill_counts", "count", 200)])
    {
        assert_eq!((&row["key"][0], &row["key"][1]), (&json!(function), &json!(member)));
        assert!(row["key"][2].as_str().unwrap().contains("leaves.c:"), "{row}");
        assert_eq!(row["metrics"]["period"], json!({"page-faults": n}));
    }
    // A key of the configuration, one of the question made of it, and the answer as CSV.
    let body = json!({"by": ["own", "short"], "keys": {"own": "pair * 2"},
                      "where": "aggregate == \"{structure:leaf}\"", "metrics": ["samples"]});
    let csv = ask(
        &held.daemon,
        "POST",
        &format!("/v1/sessions/{id}/query?format=csv"),
        &body.to_string(),
    );
    assert!(csv.head.contains("content-type: text/csv"), "{}", csv.head);
    let csv = String::from_utf8(csv.body).unwrap();
    assert_eq!(csv, "\"own\",\"short\",\"samples\"\r\n0,0,400\r\n2,1,200\r\n");
    let wrong = ask(&held.daemon, "POST", &format!("/v1/sessions/{id}/query?format=xml"), "{}");
    assert_eq!(wrong.status, 400);
    // The same by our own client.
    let socket = held.daemon.socket.to_str().unwrap();
    let args =
        ["top", "--connect", socket, "--session", &id, "--once", "--json", "--by", "function"];
    let filter = ["--where", "aggregate == \"{structure:leaf}\""];
    let output = crate::support::run(&[&args[..], &filter].concat());
    assert!(output.status.success(), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["rows"][0]["key"], json!(["fill_keys"]), "{answer}");
    assert_eq!(answer["total"]["samples"], 600);
    // One that ends with the client answers before that.
    let own = ["top", "--connect", socket, "-p", &program.pid(), "--once", "--duration", "0.2"];
    let output = crate::support::run(&[&own[..], &["--json", "--by", "function"]].concat());
    assert!(output.status.success(), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["by"], json!(["function"]));
}

#[test]
fn an_object_has_its_functions_and_its_members_their_places() {
    let Some((held, id, _program)) = with_leaves() else { return };
    let snapshot = held.json("GET", "/v1/sessions/{session}/snapshot", &[&id], "").1;
    let object_id = |name: &str| {
        let objects = snapshot["objects"].as_array().unwrap();
        objects.iter().find(|object| object["object"] == name).unwrap()["id"].to_string()
    };
    let object = "/v1/sessions/{session}/objects/{object}";
    let key = held.json("GET", object, &[&id, &object_id(LEAVES[0].0)], "").1;
    let functions = |detail: &Value| -> Vec<(String, u64, u64)> {
        let sums = detail["functions"].as_array().unwrap().iter();
        let number = |sum: &Value, name: &str| sum[name].as_u64().unwrap();
        sums.map(|sum| {
            let name = sum["scope"]["function"].as_str().unwrap().to_owned();
            (name, number(sum, "samples"), number(sum, "stores"))
        })
        .collect()
    };
    let expected = |names: &[(&str, u64)]| -> Vec<(String, u64, u64)> {
        names.iter().map(|(name, n)| ((*name).to_owned(), *n, *n)).collect()
    };
    assert_eq!(functions(&key), expected(&[("fill_keys", 300), ("fill_more", 100)]));
    assert_eq!(key["parents"][1]["object"], "{structure:leaf}");
    assert_eq!(key["functions"][0]["events"], json!({"page-faults": 300}));
    let leaf = held.json("GET", object, &[&id, &object_id("{structure:leaf}")], "").1;
    let all = [("fill_keys", 300), ("fill_counts", 200), ("fill_more", 100)];
    assert_eq!(functions(&leaf), expected(&all));
    assert_eq!(leaf["children"].as_array().unwrap().len(), 2);

    let layout =
        held.json("GET", &format!("{object}/layout"), &[&id, &object_id(LEAVES[2].0)], "").1;
    assert_eq!((&layout["type"], &layout["size"]), (&json!("structure:leaf"), &json!(4096)));
    assert_eq!((&layout["hole_bytes"], &layout["padding_bytes"]), (&json!(4), &json!(0)));
    let rows: Vec<(String, u64, u64, u64)> = layout["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(|member| {
            let number = |name: &str| member[name].as_u64().unwrap();
            let samples = member["metrics"]["all"]["samples"].as_u64().unwrap_or(0);
            (
                member["name"].as_str().unwrap().into(),
                number("offset"),
                number("hole_before"),
                samples,
            )
        })
        .collect();
    let row = |name: &str, offset, hole, samples| (name.to_owned(), offset, hole, samples);
    let expected = [
        row("key", 0, 0, 400),
        row("flags", 8, 0, 0),
        row("count", 16, 4, 200),
        row("rest", 24, 0, 0),
    ];
    assert_eq!(rows, expected);
    assert_eq!(layout["members"][3]["elements"], 4072);
    let line = json!({"index": 0, "samples": 600, "loads": 0, "stores": 600, "latency": 0, "n_members": 2});
    assert_eq!((&layout["cache_lines"], &layout["spread_samples"]), (&json!([line]), &json!(0)));
}

#[test]
fn exports_add_up_to_the_snapshot_and_tell_no_address() {
    let Some((held, id, _program)) = with_leaves() else { return };
    let snapshot = held.json("GET", "/v1/sessions/{session}/snapshot", &[&id], "").1;
    let folded = held.ask("GET", "/v1/sessions/{session}/folded", &[&id], "").body;
    let folded = String::from_utf8(folded).unwrap();
    let stacks = stacks(&folded);
    assert!(stacks.values().sum::<u64>() >= total(&snapshot));
    for (member, function, n_faults) in LEAVES {
        let stack = format!("<Total>;{{structure:leaf}};{member};{function}");
        assert_eq!(stacks.get(&*stack), Some(&n_faults), "{folded}");
    }
    let pprof = held.ask("GET", "/v1/sessions/{session}/pprof", &[&id], "");
    assert!(pprof.head.contains("filename=\"session-"), "{}", pprof.head);
    let mut profile = Vec::new();
    flate2::read::GzDecoder::new(&*pprof.body).read_to_end(&mut profile).unwrap();
    let text = String::from_utf8_lossy(&profile);
    assert!(text.contains("fill_more") && text.contains("{structure:leaf}"));
    for text in [&folded, &*text] {
        assert!(!text.contains(SECRET) && !text.contains("0x"), "{text}");
    }
}

#[test]
fn what_is_no_request_is_told_so_like_all_else() {
    let daemon = Daemon::start("");
    let long = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "a".repeat(80_000));
    let many: String = (0..200).map(|idx| format!("h{idx}: x\r\n")).collect();
    let many = format!("GET / HTTP/1.1\r\n{many}\r\n");
    for (bytes, says) in [
        (&b"GET / SPDY/9\r\n\r\n"[..], ("400", "bad_request")),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", ("400", "bad_request")),
        (long.as_bytes(), ("4", "")),
        (many.as_bytes(), ("431", "head_too_large")),
    ] {
        let answer = send(&daemon.socket, bytes);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {}", says.0)), "{head}");
        let error: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
        assert!(error["code"].as_str().unwrap().contains(says.1), "{answer}");
    }
    for (method, path, allow) in [
        ("PUT", "/v1/sessions", "get, head, post"),
        ("OPTIONS", "/v1/health", "get, head"),
        ("TRACE", "/metrics", "get, head"),
        ("POST", "/v1/sessions/1", "get, head, delete"),
    ] {
        let answer = ask(&daemon, method, path, "");
        assert_eq!(answer.status, 405, "{method} {path}");
        assert!(answer.head.contains(&format!("allow: {allow}\r\n")), "{}", answer.head);
    }
    for path in ["//v1/health", "/v1/health/", "/v1//health", "/v1/health%2f"] {
        assert_eq!(ask(&daemon, "GET", path, "").status, 404, "{path}");
    }
    assert_eq!(ask(&daemon, "GET", "/v1/he%61lth", "").status, 200);
    let head = ask(&daemon, "HEAD", "/v1/health", "");
    let body = ask(&daemon, "GET", "/v1/health", "").body;
    assert!(head.status == 200 && head.body.is_empty() && !body.is_empty());
}
