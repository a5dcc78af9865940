//! Debug information that is not here: the way out that is told, and followed to a debuginfod server on loopback.

use crate::support::{compile, copy_program, dataspace, run, samples_of};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server of Debian's package `debuginfod`.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// One of the debug files below `dir`, once it has that of `build_id`; `None` where it is not installed.
    fn start(dir: &Path, build_id: &str) -> Option<Self> {
        for _ in 0..5 {
            // One that is free; somebody else may be given it before the server is.
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut command = Command::new("debuginfod");
            command.args(["-F", "-d", ":memory:", "-p", &port.to_string()]).arg(dir);
            let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            let Ok(process) = process else {
                eprintln!("not run: debuginfod is not installed");
                return None;
            };
            let mut server = Self { process, port };
            if server.waits_until_it_has(build_id) {
                return Some(server);
            }
        }
        panic!("debuginfod does not serve");
    }

    /// Tells whether it has the file, once it has; false where it ends, or is silent for a minute.
    fn waits_until_it_has(&mut self, build_id: &str) -> bool {
        let until = Instant::now() + Duration::from_secs(60);
        while !self.has(build_id) {
            if self.process.try_wait().unwrap().is_some() || Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        true
    }

    fn has(&self, build_id: &str) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let request = format!("GET /buildid/{build_id}/debuginfo HTTP/1.0\r\n\r\n");
        let mut answer = [0; 12];
        stream.write_all(request.as_bytes()).is_ok()
            && stream.read_exact(&mut answer).is_ok()
            && answer.ends_with(b"200")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn said(command: &mut Command) -> (Value, String) {
    let output = command.output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    (serde_json::from_slice(&output.stdout).unwrap(), errors)
}

#[test]
fn what_is_missing_is_told_and_fetched_where_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let [program, debug, cache, file] =
        ["chase", "debug", "cache", "perf.data"].map(|name| dir.path().join(name));
    copy_program(&compile("chase", &["-O2", "-g", "-Wl,--build-id"]), &program);
    std::fs::create_dir(&debug).unwrap();
    let objcopy = |args: &[&str], to: &Path| {
        let done = Command::new("objcopy").args(args).arg(&program).arg(to).status().unwrap();
        assert!(done.success());
    };
    objcopy(&["--only-keep-debug"], &debug.join("chase.debug"));
    objcopy(&["--strip-all"], &program);
    let notes = Command::new("readelf").arg("-n").arg(&program).output().unwrap();
    let notes = String::from_utf8(notes.stdout).unwrap();
    let build_id = notes.split("Build ID: ").nth(1).unwrap().split_whitespace().next().unwrap();
    let recorded = ["record", "-e", "cpu-clock", "-c", "1000000", "-o", file.to_str().unwrap()];
    let until = ["--duration", "1", "--", program.to_str().unwrap(), "1"];
    let recorded = run(&[&recorded[..], &until].concat());
    if matches!(recorded.status.code(), Some(3 | 4)) {
        eprintln!("not run: {}", String::from_utf8_lossy(&recorded.stderr));
        return;
    }
    let report = |args: &[&str]| {
        let mut command = dataspace(&[&["report", "-i", file.to_str().unwrap()], args].concat());
        command.env("DEBUGINFOD_CACHE_PATH", &cache).env_remove("DEBUGINFOD_URLS");
        // perf's cache may have what is missing here.
        command.env("HOME", dir.path());
        command
    };
    const NEXT: &str = "{structure:cell}.{pointer+structure:cell next}";
    let (before, _) = said(&mut report(&["--json"]));
    assert_eq!(samples_of(&before, NEXT), 0);
    let missing = &before["undescribed"][0];
    assert_eq!(
        (&missing["module"], &missing["build_id"]),
        (&Value::from(program.to_str().unwrap()), &Value::from(build_id))
    );
    let n_unknown: u64 = before["accounting"]["unknown"]
        .as_object()
        .unwrap()
        .values()
        .map(|n| n.as_u64().unwrap())
        .sum();
    assert!(missing["samples"].as_u64().unwrap() > n_unknown / 2, "{missing}");
    let table = String::from_utf8(report(&[]).output().unwrap().stdout).unwrap();
    let (_, way_out) = table.split_once("no debug information").unwrap();
    assert!(way_out.contains(build_id) && way_out.contains("of no package"), "{way_out}");
    let refused = report(&["--debuginfod"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("export DEBUGINFOD_URLS="));
    let Some(server) = Server::start(&debug, build_id) else { return };
    let url = format!("http://127.0.0.1:{}", server.port);
    let mut fetching = report(&["--debuginfod", "--json"]);
    let (named, told) = said(fetching.env("DEBUGINFOD_URLS", format!("http://127.0.0.1:1 {url}")));
    assert!(samples_of(&named, NEXT) > 0, "{told}\n{}", named["accounting"]);
    assert!(told.contains(program.to_str().unwrap()), "{told}");
    assert_eq!(named["accounting"]["kernel"], before["accounting"]["kernel"]);
    let fetched = std::fs::read(cache.join(build_id).join("debuginfo")).unwrap();
    assert_eq!(fetched, std::fs::read(debug.join("chase.debug")).unwrap());
    drop(server);
    // It is in the cache from now on, also for those who do not ask for it.
    let (named, _) = said(&mut report(&["--json"]));
    assert!(samples_of(&named, NEXT) > 0);
}
