//! The daemon: its sessions, its answers and its clients.

use crate::screen::Terminal;
use crate::support::daemon::{Daemon, events, send};
use crate::support::{
    Running, assert_balanced, compile, copy_program, in_kernel, samples_of, total,
};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Command, Output};

const NEXT: &str = "{structure:cell}.{pointer+structure:cell next}";

fn chase() -> Running {
    Running::start(&compile("chase", &["-O2", "-g"]), &["8"]).0
}

/// The same program under a name that no other test's has.
fn chase_called(name: &str, daemon: &Daemon) -> PathBuf {
    let path = daemon.dir.path().join(name);
    copy_program(&compile("chase", &["-O2", "-g"]), &path);
    path
}

fn text(output: &Output) -> (Option<i32>, String, String) {
    let string = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), string(&output.stdout), string(&output.stderr))
}

#[test]
fn a_session_that_cannot_be_had_stops_no_other() {
    let program = chase();
    let config = format!(
        "[[session]]\nname = \"absent\"\nunit = \"no-such-unit-here\"\n\
         [[session]]\nname = \"wrong\"\npids = [{0}]\nevents = [\"no:such\"]\n\
         [[session]]\nname = \"gone\"\npids = [99999999]\n\
         [[session]]\nname = \"good\"\npids = [{0}]\n",
        program.pid()
    );
    let mut daemon = Daemon::start(&config);
    let state = |daemon: &Daemon, name: &str| daemon.session(name)["state"].clone();
    daemon.wait_until("each session is decided", |daemon| {
        ["absent", "wrong", "gone", "good"].iter().all(|name| state(daemon, name) != "starting")
    });
    assert_eq!(state(&daemon, "absent"), "waiting");
    assert_eq!(state(&daemon, "wrong"), "failed");
    assert_eq!(state(&daemon, "gone"), "failed");
    let detail = daemon.session("wrong")["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("no:such"), "{detail}");
    assert_eq!(daemon.get("/v1/health")["status"], "degraded");
    if state(&daemon, "good") == "failed" {
        eprintln!("not run: {}", daemon.session("good"));
        return;
    }
    let of_program = |snapshot: &Value| total(snapshot) - in_kernel(snapshot);
    let snapshot = daemon.snapshot_once("good", |snapshot| of_program(snapshot) >= 200);
    // Its loop touches nothing else.
    let (next, of_program) = (samples_of(&snapshot, NEXT), of_program(&snapshot));
    assert!(next * 100 >= of_program * 90, "{next} of {of_program}");
    let accounting = daemon.get("/v1/sessions/good/accounting");
    assert_balanced(&accounting);
    assert!(accounting["elapsed_ns"].as_u64() >= snapshot["elapsed_ns"].as_u64());
    daemon.wait_for_line(&["wrong"]);
}

#[test]
fn attach_stream_and_detach() {
    let daemon = Daemon::start("[limits]\nsessions = 1\n");
    let program = chase();
    let Some(id) = daemon.attach(&program.pid()) else { return };
    let list = daemon.get("/v1/sessions");
    assert_eq!(list["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(list["sessions"][0]["id"], id);
    assert_eq!(list["sessions"][0]["origin"], "request");
    assert_eq!(list["sessions"][0]["events"].as_array().unwrap().len(), 1, "{list}");
    let path = format!("/v1/sessions/{id}/stream?interval_ms=100");
    let mut stream = events(&daemon.socket, &path);
    let mut elapsed = 0;
    for _ in 0..4 {
        let (name, snapshot) = stream.next().unwrap();
        assert_eq!(name, "snapshot");
        assert_balanced(&snapshot);
        assert_eq!(snapshot["schema"], 2);
        let now = snapshot["elapsed_ns"].as_u64().unwrap();
        assert!(now > elapsed, "each snapshot is newer");
        elapsed = now;
    }
    let (status, line) = daemon.ask("DELETE", &format!("/v1/sessions/{id}"), "");
    assert_eq!((status, &line["state"]), (200, &json!("detached")));
    let rest: Vec<(String, Value)> = stream.collect();
    let (name, _) = rest.last().expect("the stream ends in order");
    assert_eq!(name, "end");
    let (_, last) = rest.iter().rev().find(|(name, _)| name == "snapshot").unwrap();
    assert_eq!(last["target"]["running"], false, "the final totals come before the end");
    assert_eq!(daemon.ask("GET", &format!("/v1/sessions/{id}"), "").0, 404);
    assert_eq!(daemon.get("/v1/sessions"), json!({"sessions": []}));
    assert!(daemon.attach(&program.pid()).is_some(), "nothing is left that counts");
    let (status, value) =
        daemon.ask("POST", "/v1/sessions", &format!("{{\"pids\":[{}]}}", program.pid()));
    assert_eq!((status, &value["code"]), (429, &json!("too_many")));
}

#[test]
fn a_target_that_ends_ends_its_session() {
    let mut daemon = Daemon::start("");
    let program = chase();
    let Some(id) = daemon.attach(&program.pid()) else { return };
    let stream = events(&daemon.socket, &format!("/v1/sessions/{id}/stream?interval_ms=60000"));
    drop(program);
    let rest: Vec<(String, Value)> = stream.collect();
    let (name, line) = rest.last().unwrap();
    assert_eq!((name.as_str(), &line["state"]), ("end", &json!("ended")), "{line}");
    let snapshot = daemon.snapshot_once(&id.to_string(), |_| true);
    assert_eq!(snapshot["target"]["running"], false, "the totals stay to be looked at");
}

#[test]
fn wrong_requests_are_told_what_is_wrong() {
    let daemon = Daemon::start("[limits]\nrequest_bytes = 1000\n");
    let check = |method: &str, path: &str, body: &str, status: u16, code: &str| {
        let (found, value) = daemon.ask(method, path, body);
        assert_eq!(
            (found, value["code"].as_str()),
            (status, Some(code)),
            "{method} {path}: {value}"
        );
        assert!(!value["message"].as_str().unwrap().is_empty());
    };
    check("GET", "/", "", 404, "not_found");
    check("GET", "/v2/sessions", "", 404, "not_found");
    check("GET", "/v1/sessions/1", "", 404, "not_found");
    check("GET", "/v1/sessions/1/else", "", 404, "not_found");
    check("PUT", "/v1/sessions", "", 405, "method_not_allowed");
    check("DELETE", "/v1/health", "", 405, "method_not_allowed");
    check("POST", "/v1/sessions", "{", 400, "bad_request");
    check("POST", "/v1/sessions", "{}", 400, "bad_request");
    check("POST", "/v1/sessions", "{\"pid\":1}", 400, "bad_request");
    check("POST", "/v1/sessions", "{\"pids\":[0]}", 400, "bad_request");
    check(
        "POST",
        "/v1/sessions",
        "{\"all\":true,\"events\":[\"no:such:one\"]}",
        400,
        "bad_request",
    );
    check("POST", "/v1/sessions", "{\"pids\":[99999999]}", 422, "not_attached");
    check("POST", "/v1/sessions", "{\"unit\":\"no-such-unit\"}", 422, "not_attached");
    check("POST", "/v1/sessions", &" ".repeat(2000), 413, "too_large");
    assert_eq!(daemon.get("/v1/sessions"), json!({"sessions": []}), "nothing stays of them");
    for bytes in [&b"\x16\x03\x01\x02\x00"[..], b"GET / SPDY/9\r\n\r\n", &[b'a'; 100_000]] {
        let answer = send(&daemon.socket, bytes);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    assert_eq!(daemon.get("/v1/health")["status"], "ok");
    for path in ["/v1/health", "/v1/sessions", "/metrics"] {
        let request = format!("HEAD {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let answer = send(&daemon.socket, request.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n"), "{answer}");
    }
}

#[test]
fn who_is_slow_or_too_many_is_turned_away() {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    let mut daemon = Daemon::start("[limits]\nconnections = 4\nrequest_s = 1\n");
    let mut slow = UnixStream::connect(&daemon.socket).unwrap();
    slow.write_all(b"GET /v1/health HTTP/1.1\r\nhost:").unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(!answer.contains("200 OK"), "its end came instead: {answer}");
    let program = chase();
    let Some(id) = daemon.attach(&program.pid()) else { return };
    daemon.wait_until("nobody else is connected", |daemon| {
        daemon.ask("GET", "/v1/health", "").1["n_connections"] == 1
    });
    let path = format!("/v1/sessions/{id}/stream");
    let mut streams: Vec<_> = (0..4).map(|_| events(&daemon.socket, &path)).collect();
    for stream in &mut streams {
        assert_eq!(stream.next().unwrap().0, "snapshot");
    }
    let (status, value) = daemon.ask("GET", "/v1/health", "");
    assert_eq!((status, &value["code"]), (429, &json!("too_many")));
    assert_eq!(streams[0].next().unwrap().0, "snapshot", "those that are there go on");
}

#[test]
fn metrics_say_what_the_sessions_do() {
    let mut daemon = Daemon::start("");
    let program = chase();
    let Some(id) = daemon.attach(&program.pid()) else { return };
    let id = id.to_string();
    daemon.snapshot_once(&id, |snapshot| total(snapshot) >= 200);
    let request = b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let answer = send(&daemon.socket, request);
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    let value = |series: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(series));
        line.unwrap_or_else(|| panic!("{series}: {text}")).trim().parse().unwrap()
    };
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(value(&format!("dataspace_build_info{{version=\"{version}\"}}")), 1);
    assert_eq!(value("dataspace_sessions{state=\"attached\"}"), 1);
    let kernel = value(&format!("dataspace_kernel_samples_total{{session=\"{id}\"}}"));
    let labels = format!("session=\"{id}\",window=\"60s\",object=\"{NEXT}\"");
    let next = value(&format!("dataspace_object_samples{{{labels}}}"));
    assert!((1..=kernel).contains(&next), "{next} of {kernel}");
    assert!(text.contains("object=\"other\""));
    // Where promtool is, it has nothing to say against it.
    let promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(std::process::Stdio::piped())
        .spawn();
    let Ok(mut promtool) = promtool else {
        eprintln!("not run: promtool is not installed");
        return;
    };
    std::io::Write::write_all(promtool.stdin.as_mut().unwrap(), text.as_bytes()).unwrap();
    assert!(promtool.wait_with_output().unwrap().status.success());
}

#[test]
fn a_scrape_shows_what_the_kernel_has_counted_by_now() {
    let mut daemon = Daemon::start("");
    let program = chase();
    let Some(id) = daemon.attach(&program.pid()) else { return };
    let path = format!("/v1/sessions/{id}/accounting");
    let request = b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let series = format!("dataspace_kernel_samples_total{{session=\"{id}\"}} ");
    let scraped = |daemon: &Daemon| -> u64 {
        let text = send(&daemon.socket, request);
        let line = text.lines().find_map(|line| line.strip_prefix(&series));
        line.unwrap_or_else(|| panic!("{text}")).trim().parse().unwrap()
    };
    let counted = |daemon: &Daemon| daemon.get(&path)["accounting"]["kernel"].as_u64().unwrap();
    // Nobody else asks, and by itself a session makes no snapshot so soon.
    let first = scraped(&daemon);
    let began = std::time::Instant::now();
    let mut n_newer = 0;
    daemon.wait_until("scrapes alone bring newer counts", |daemon| {
        n_newer = n_newer.max(scraped(daemon));
        n_newer >= first + 50
    });
    println!("{} samples more after {:?}", n_newer - first, began.elapsed());
    for _ in 0..5 {
        daemon.wait_until("a scrape shows what was counted before", |daemon| {
            let before = counted(daemon);
            let shown = scraped(daemon);
            let after = counted(daemon);
            assert!(shown <= after, "{shown} <= {after}");
            // One that waits for a new snapshot too long shows the one before.
            before <= shown
        });
    }
}

#[test]
fn names_and_groups_are_found_again() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not run: only root may profile names and control groups");
        return;
    }
    let name = format!("d-{}-name", std::process::id());
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let mut lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mount = lines.find(|words| words[2] == "cgroup2").map(|words| PathBuf::from(words[1]));
    let group = mount.map(|mount| mount.join(format!("dsp-{}-group", std::process::id())));
    let mut config = format!("[[session]]\nname = \"name\"\ncomm = [\"{name}\"]\n");
    if let Some(group) = &group {
        config += &format!("[[session]]\nname = \"group\"\ncgroup = \"{}\"\n", group.display());
    }
    let mut daemon = Daemon::start(&config);
    let path = chase_called(&name, &daemon);
    // Without a unified hierarchy that may be written to there are names only.
    let group = group.filter(|_| {
        daemon.wait_until("the group is looked for", |daemon| {
            daemon.session("group")["state"] == "waiting"
        });
        true
    });
    for round in 1..=2 {
        let made = group.as_ref().map(std::fs::create_dir);
        let is_grouped = matches!(made, Some(Ok(())));
        let (program, _) = Running::start(&path, &["8"]);
        let enough = 100 * round;
        if is_grouped {
            let procs = group.as_ref().unwrap().join("cgroup.procs");
            std::fs::write(procs, program.pid()).unwrap();
        }
        let snapshot =
            daemon.snapshot_once("name", |snapshot| samples_of(snapshot, NEXT) >= enough);
        let called = format!("processes called {name}");
        assert_eq!(snapshot["target"]["description"], called);
        assert_eq!(daemon.session("name")["target"], called);
        if is_grouped {
            daemon.snapshot_once("group", |snapshot| {
                snapshot["target"]["running"] == true && samples_of(snapshot, NEXT) >= 50
            });
        } else {
            eprintln!("not run: no control group can be made here ({made:?})");
        }
        drop(program);
        if is_grouped {
            // A process that was reaped may be in it a moment longer.
            daemon.wait_until("its group is empty", |_| {
                std::fs::remove_dir(group.as_ref().unwrap()).is_ok()
            });
        }
    }
}

#[test]
fn clients_attach_list_and_detach() {
    let daemon = Daemon::start("");
    let program = chase();
    let run = |args: &[&str]| text(&daemon.client(args).output().unwrap());
    let (code, _, errors) = run(&["attach", "-p", &program.pid(), "--name", "mine"]);
    if code == Some(3) && errors.contains("CAP_PERFMON") {
        eprintln!("not run: {errors}");
        return;
    }
    assert_eq!(code, Some(0), "{errors}");
    let (_, out, _) = run(&["sessions"]);
    assert!(out.contains("mine") && out.contains("attached"), "{out}");
    let (_, out, _) = run(&["sessions", "--json"]);
    let list: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(list, daemon.get("/v1/sessions"));
    let (code, out, _) = run(&["status"]);
    assert!(code == Some(0) && out.starts_with("ok: version "), "{out}");
    let (code, _, errors) = run(&["attach", "-p", &program.pid(), "--name", "mine"]);
    assert!(code == Some(1) && errors.contains("called mine"), "{errors}");
    let (code, _, errors) = run(&["attach", "-p", "99999999"]);
    assert!(code == Some(1) && errors.contains("99999999"), "{errors}");
    let (code, _, errors) = run(&["attach", "-p", "1", "-e", "no-such-event"]);
    assert!(code == Some(2), "{errors}");
    let (code, out, _) = run(&["detach", "mine", "--json"]);
    assert_eq!(code, Some(0));
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["state"], "detached");
    let (code, _, errors) = run(&["detach", "mine"]);
    assert!(code == Some(1) && errors.contains("no session mine"), "{errors}");
    drop(daemon);
    let output = crate::support::run(&["status", "--socket", "/no/such/dataspace.sock"]);
    let (code, _, errors) = text(&output);
    assert!(code == Some(1) && errors.contains("sudo dataspace daemon"), "{errors}");
}

#[test]
fn top_shows_a_session_of_the_daemon_like_one_of_its_own() {
    let mut daemon = Daemon::start("");
    let program = chase();
    let Some(id) = daemon.attach(&program.pid()) else { return };
    daemon.snapshot_once(&id.to_string(), |snapshot| total(snapshot) >= 100);
    let socket = daemon.socket.to_str().unwrap().to_owned();
    let top = |args: &[&str]| {
        let mut command = crate::support::dataspace(&["top", "--connect", &socket]);
        text(&command.args(args).output().unwrap())
    };
    let (code, out, errors) = top(&["--json", "--interval", "0.1", "--duration", "1"]);
    assert_eq!(code, Some(0), "{errors}");
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.iter().for_each(assert_balanced);
    assert!(samples_of(lines.last().unwrap(), NEXT) > 0);
    assert_eq!(daemon.get("/v1/sessions")["sessions"][0]["state"], "attached", "it goes on");
    let (code, out, errors) = top(&["--once", "--duration", "0.2", "--session", &id.to_string()]);
    assert!(code == Some(0) && out.contains("<Total>"), "{out}{errors}");
    // Without a time it is what there is now.
    let (code, out, errors) = top(&["--session", &id.to_string(), "--once"]);
    assert!(code == Some(0) && out.contains("cell.next"), "{out}{errors}");
    let (code, out, errors) = top(&["--once", "--json"]);
    let now: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{errors}"));
    assert_eq!((code, &now["target"]["running"]), (Some(0), &json!(true)));
    assert_balanced(&now);
    assert!(total(&now) >= 100, "{now}");
    // A session of its own ends with it, in order.
    let (code, out, errors) = top(&["-p", &program.pid(), "--json", "--duration", "1"]);
    assert_eq!(code, Some(0), "{errors}");
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(last["target"]["running"], false, "the last line has the final totals");
    assert_balanced(&last);
    assert_eq!(daemon.get("/v1/sessions")["sessions"].as_array().unwrap().len(), 1);
    let (code, _, errors) = top(&["--session", "7777", "--once"]);
    assert!(code == Some(1) && errors.contains("7777"), "{errors}");
    // When the target ends, so does the view.
    let mut command = crate::support::dataspace(&["top", "--connect", &socket, "--json"]);
    let view = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(program);
    let (code, out, _) = text(&view.wait_with_output().unwrap());
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!((code, &last["target"]["running"]), (Some(0), &json!(false)));
}

#[test]
fn a_session_goes_with_the_client_that_is_killed_and_one_that_was_attached_stays() {
    let mut daemon = Daemon::start("");
    let program = chase();
    let Some(id) = daemon.attach(&program.pid()) else { return };
    let socket = daemon.socket.to_str().unwrap().to_owned();
    let mut top = crate::support::dataspace(&["top", "--connect", &socket]);
    let mut top = top
        .args(["-p", &program.pid(), "--json", "--interval", "0.1"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = std::io::BufReader::new(top.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert!(serde_json::from_str::<Value>(&line).is_ok(), "{line}\n{}", daemon.log());
    let ids = |daemon: &Daemon| -> Vec<u64> {
        let list = daemon.get("/v1/sessions");
        let sessions = list["sessions"].as_array().unwrap();
        sessions.iter().map(|session| session["id"].as_u64().unwrap()).collect()
    };
    assert_eq!(ids(&daemon), [id, id + 1]);
    top.kill().unwrap();
    top.wait().unwrap();
    daemon.wait_until("the killed client's session ends", |daemon| ids(daemon) == [id]);
    assert_eq!(daemon.session(&id.to_string())["state"], "attached");
    daemon.wait_for_line(&["nobody looks at it any more"]);
    // One whose target ends meanwhile is gone as well.
    let body = format!("{{\"pids\":[{}]}}", program.pid());
    let (status, line) = daemon.ask("POST", "/v1/sessions?ends_unwatched=true", &body);
    assert_eq!(status, 201, "{line}");
    drop(program);
    daemon.wait_until("the other one has ended", |daemon| {
        daemon.session(&id.to_string())["state"] == "ended"
    });
    daemon.wait_until("the unwatched one is gone", |daemon| ids(daemon) == [id]);
}

#[test]
fn the_screen_shows_a_session_of_the_daemon() {
    let daemon = Daemon::start("");
    let program = chase();
    if daemon.attach(&program.pid()).is_none() {
        return;
    }
    let command = format!("top --connect {}", daemon.socket.display());
    let mut terminal = Terminal::running(&command, "cell");
    terminal.press("q");
    let after = terminal.left_behind();
    assert!(after.contains("<Total>"), "{after}");
}

#[test]
fn a_configuration_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("d.toml");
    let check = |config: &str| {
        std::fs::write(&file, config).unwrap();
        text(
            &Command::new(env!("CARGO_BIN_EXE_dataspace"))
                .args(["config", "check"])
                .arg(&file)
                .output()
                .unwrap(),
        )
    };
    let (code, out, _) = check("[[session]]\nname = \"a\"\nunit = \"redis\"\n");
    assert!(code == Some(0) && out.contains("1 session"), "{out}");
    let (code, _, errors) = check("\n\ncolour = 1\n");
    assert!(code == Some(2) && errors.contains("d.toml:3: unknown field `colour`"), "{errors}");
    let example = crate::support::run(&["config", "check", "systemd/dataspace.toml"]);
    assert_eq!(example.status.code(), Some(0), "{example:?}");
    std::fs::remove_file(&file).unwrap();
    let missing = crate::support::run(&["config", "check", file.to_str().unwrap()]);
    assert_eq!(missing.status.code(), Some(1));
}

#[test]
fn counts_of_a_measurement_are_metrics_that_rise() {
    let program = chase();
    let config =
        format!("[[session]]\nname = \"m\"\npids = [{}]\nmeasure = \"time\"\n", program.pid());
    let mut daemon = Daemon::start(&config);
    let state = |daemon: &Daemon| daemon.session("m")["state"].clone();
    daemon.wait_until("the session is decided", |daemon| state(daemon) != "starting");
    if state(&daemon) == "failed" {
        eprintln!("not run: {}", daemon.session("m"));
        return;
    }
    let counted = |daemon: &Daemon| -> Option<f64> {
        let request = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        let metrics = send(&daemon.socket, request);
        let begin = "dataspace_events_total{session=\"m\",event=\"task-clock\"";
        let line = metrics.lines().find(|line| line.starts_with(begin))?;
        line.rsplit_once(' ')?.1.parse().ok()
    };
    let mut first = None;
    daemon.wait_until("task-clock is counted", |daemon| {
        first = counted(daemon).filter(|ns| *ns > 0.0);
        first.is_some()
    });
    daemon.wait_until("it is counted on", |daemon| counted(daemon) > first);
    let snapshot = daemon.snapshot_once("m", |snapshot| total(snapshot) > 0);
    let counts = snapshot["counts"].as_array().unwrap();
    let names: Vec<&str> = counts.iter().map(|count| count["event"].as_str().unwrap()).collect();
    assert_eq!(names[..4], ["task-clock", "context-switches", "cpu-migrations", "page-faults"]);
    let answer = daemon.ask(
        "POST",
        "/v1/sessions",
        r#"{"pids":[1],"measure":"time","events":["cpu-clock"]}"#,
    );
    assert_eq!(answer.0, 400, "{}", answer.1);
}
