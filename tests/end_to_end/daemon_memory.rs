//! A bound on the daemon's memory, held against a program with much debug information. How much memory it
//! takes is the kernel's figure.

use crate::support::daemon::{Daemon, open_dir};
use crate::support::{self, Running, total};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Load objects of the program, units in each, functions in each of those, and structures.
const N_OBJECTS: usize = 32;
const N_UNITS: usize = 3;
const N_FUNCTIONS: usize = 40;
const N_STRUCTURES: usize = 12_000;

/// Opens each of its arguments, and calls them in turn.
const MAIN: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(int n, char **paths) {
    long (*all[64])(void);
    for (int i = 1; i < n; i++)
        all[i] = (long (*)(void))dlsym(dlopen(paths[i], RTLD_NOW | RTLD_LOCAL), "all");
    puts("ready");
    fflush(stdout);
    for (volatile long sum;;)
        for (int i = 1; i < n; i++) sum = all[i]();
}
"#;

/// A unit whose functions each walk through an array of a structure of their own. Its other structures are
/// only there to be described.
fn unit(number: usize) -> String {
    let mut text = String::new();
    for structure in 0..N_STRUCTURES {
        let _ = write!(text, "struct s{number}_{structure} {{");
        for member in 0..12 {
            let _ = write!(text, " long member_{structure}_{member};");
        }
        text += " };\n";
    }
    let mut calls = String::new();
    for function in 0..N_FUNCTIONS {
        let name = format!("s{number}_{function}");
        let _ = write!(
            text,
            "static struct {name} array_{name}[512];\n\
             __attribute__((noinline)) static long walk_{name}(struct {name} *p) {{\n\
             long sum = 0;\n\
             for (int i = 0; i < 512; i++) {{ sum += p[i].member_{function}_3; \
             p[i].member_{function}_7 = sum; }}\n\
             return sum; }}\n"
        );
        let _ = write!(calls, " + walk_{name}(array_{name})");
    }
    text + &format!("long unit_{number}(void) {{ return 0{calls}; }}\n")
}

/// Compiles the program in `dir`: it and its arguments. `None` where there is no compiler.
fn program(dir: &Path) -> Option<(PathBuf, Vec<PathBuf>)> {
    let path = |name: &str| dir.join(name);
    let write = |name: &str, text: &str| {
        std::fs::write(path(name), text).unwrap();
        path(name)
    };
    let mut sources: Vec<PathBuf> =
        (0..N_UNITS).map(|number| write(&format!("unit{number}.c"), &unit(number))).collect();
    let mut all = String::new();
    for number in 0..N_UNITS {
        let _ = writeln!(all, "long unit_{number}(void);");
    }
    all += "long all(void) { return unit_0() + unit_1() + unit_2(); }\n";
    sources.push(write("all.c", &all));
    let main = write("main.c", MAIN);
    let shared = ["-O1", "-g", "-fPIC", "-shared", "-fno-eliminate-unused-debug-types", "-o"];
    let gcc = |args: &[&str], to: &Path, sources: &[PathBuf]| {
        let status = Command::new("gcc").args(args).arg(to).args(sources).arg("-ldl").status();
        status.is_ok_and(|status| status.success())
    };
    if !gcc(&shared, &path("large.so"), &sources) || !gcc(&["-O1", "-o"], &path("main"), &[main]) {
        eprintln!("not run: gcc is not installed");
        return None;
    }
    // Each is a load object of its own.
    let copies = (0..N_OBJECTS).map(|number| path(&format!("large{number}.so")));
    let copies: Vec<PathBuf> = copies.collect();
    for copy in &copies {
        std::fs::copy(path("large.so"), copy).unwrap();
    }
    Some((path("main"), copies))
}

/// Profiles the program with a bound or without; gives the peak and the health at the end.
fn peak_with(
    (program, objects): &(PathBuf, Vec<PathBuf>),
    bound: &str,
) -> Option<(u64, serde_json::Value)> {
    let mut daemon = Daemon::start_in(open_dir(), bound, |_| {});
    let objects: Vec<&str> = objects.iter().map(|path| path.to_str().unwrap()).collect();
    let program = Running::start(program, &objects).0;
    let body = format!(
        "{{\"pids\":[{}],\"events\":[\"cpu-clock\"],\"period\":500000,\"max_overhead\":\"off\"}}",
        program.pid()
    );
    let (status, session) = daemon.ask("POST", "/v1/sessions", &body);
    if status == 422 {
        eprintln!("not run: {session}");
        return None;
    }
    // Accounts are held to the kernel's count by whoever takes a snapshot.
    let is_named =
        |snapshot: &serde_json::Value| snapshot["accounting"]["attributed"].as_u64() > Some(0);
    let id = session["id"].to_string();
    daemon.snapshot_once(&id, |snapshot| total(snapshot) >= 8_000 && is_named(snapshot));
    let health = daemon.get("/v1/health");
    Some((daemon.peak_mib(), health))
}

/// A program that is sampled quickly.
fn wanted(pid: &str) -> String {
    format!(
        "{{\"pids\":[{pid}],\"events\":[\"cpu-clock\"],\"period\":2000000,\"max_overhead\":\"off\"}}"
    )
}

#[test]
fn several_sessions_stay_below_what_they_may_take_together() {
    // The code of the daemon and of a worker counts in it, twice.
    const MAX_MIB: u64 = 60;
    const N_ROOM: usize = 4;
    let dir = tempfile::tempdir().unwrap();
    let Some((program, objects)) = program(dir.path()) else { return };
    let objects: Vec<&str> = objects.iter().map(|path| path.to_str().unwrap()).collect();
    let mut programs =
        objects.chunks(N_OBJECTS / N_ROOM).map(|some| Running::start(&program, some).0);
    let kept = programs.next().unwrap();
    let config = format!(
        "[limits]\nmemory_max = \"{MAX_MIB}M\"\n[[session]]\nname = \"kept\"\npids = [{}]\n\
         events = [\"cpu-clock\"]\nperiod = 2000000\nmax_overhead = \"off\"\n",
        kept.pid()
    );
    let mut daemon = Daemon::start_in(open_dir(), &config, |_| {});
    let programs: Vec<Running> = programs.collect();
    let attach = |daemon: &Daemon, n: usize| {
        daemon.ask("POST", "/v1/sessions", &wanted(&programs[n % programs.len()].pid()))
    };
    let (mut status, mut answer) = attach(&daemon, 0);
    if status == 422 {
        eprintln!("not run: {answer}");
        return;
    }
    // One that was given up meanwhile makes room for another.
    for n in 1..8 * N_ROOM {
        assert_eq!(status, 201, "{answer}\n{}", daemon.log());
        (status, answer) = attach(&daemon, n);
        if status != 201 {
            assert!(n >= N_ROOM - 1, "{answer}");
            break;
        }
    }
    assert_eq!((status, &answer["code"]), (429, &"too_many".into()), "{answer}");
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains("no session begins") && message.contains("memory_max"), "{message}");
    let is_named = |snapshot: &serde_json::Value| {
        let objects = snapshot["objects"].as_array().unwrap();
        objects
            .iter()
            .any(|o| o["object"].as_str().is_some_and(|name| name.contains("structure:s")))
    };
    daemon.snapshot_once("kept", is_named);
    daemon.wait_until("memory comes near the bound", |daemon| {
        daemon.get("/v1/health")["memory"]["shed"]["caches"].as_u64() > Some(0)
    });
    let (peak, health) = (daemon.peak_mib(), daemon.get("/v1/health"));
    println!("{peak} of {MAX_MIB} MiB: {health}");
    assert!(peak <= MAX_MIB, "{peak} MiB of {MAX_MIB} MiB: {health}");
    assert!(health["memory"]["shed"]["sessions"].is_u64(), "{health}");
}

#[test]
fn memory_stays_below_what_it_may_be_and_accounts_stay_exact() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = program(dir.path()) else { return };
    let off = "[limits]\nmemory_max = \"off\"\n";
    let Some((unbounded, health)) = peak_with(&program, off) else { return };
    assert!(health["memory"].is_null(), "{health}");
    let max = unbounded * 7 / 8;
    let bound = format!("[limits]\nmemory_max = \"{max}M\"\n");
    let Some((bounded, health)) = peak_with(&program, &bound) else { return };
    println!("without a bound {unbounded} MiB, with one of {max} MiB {bounded} MiB: {health}");
    assert!(bounded <= max, "{bounded} MiB of {max} MiB: {health}");
    assert!(health["memory"]["shed"]["caches"].as_u64() > Some(0), "{health}");
}

#[test]
fn sessions_are_given_up_where_giving_up_all_else_is_not_enough() {
    // What is known of mappings is needed as long as the session lasts.
    const N_MAPPINGS: &str = "60000";
    const N_SESSIONS: usize = 4;
    let program = support::compile("mappings", &["-O1", "-g"]);
    let kept = Running::start(&program, &[]).0;
    let session =
        format!("[[session]]\nname = \"kept\"\npids = [{}]\nmax_overhead = \"off\"\n", kept.pid());
    let mut daemon = Daemon::start_in(open_dir(), &session, |_| {});
    let programs: Vec<Running> =
        (0..N_SESSIONS).map(|_| Running::start(&program, &[N_MAPPINGS]).0).collect();
    let mut ids = Vec::new();
    for program in &programs {
        let Some(id) = daemon.attach(&program.pid()) else { return };
        daemon.snapshot_once(&id.to_string(), |snapshot| total(snapshot) > 0);
        ids.push(id);
    }
    let resident = |daemon: &Daemon| daemon.memory_mib("VmRSS:");
    let before = resident(&daemon);
    let has_one_worker = support::workers(&daemon.process).len() == 1;
    // At least 16 MiB of a bound are left free: so much is too little by 8.
    let max = before + 8;
    std::fs::write(&daemon.config, format!("[limits]\nmemory_max = \"{max}M\"\n{session}"))
        .unwrap();
    daemon.signal(rustix::process::Signal::HUP);
    let shed =
        |daemon: &Daemon, what: &str| daemon.get("/v1/health")["memory"]["shed"][what].as_u64();
    daemon.wait_until("a session is given up", |daemon| shed(daemon, "sessions") > Some(0));
    daemon.wait_until("memory is not short any more", |daemon| {
        daemon.get("/v1/health")["memory"]["is_short"] == false
    });
    let (after, n_given_up) = (resident(&daemon), shed(&daemon, "sessions").unwrap());
    println!("{before} MiB, {after} after {n_given_up} sessions of {max} MiB were given up");
    assert!(after < before && after <= max - 16, "{before} MiB, {after} of {max}");
    for what in ["caches", "indices", "answers", "work"] {
        assert!(shed(&daemon, what) > Some(0), "{what} before sessions");
    }
    // The youngest of a worker's that were asked for go first, and say why; that of the configuration stays.
    assert!(n_given_up < N_SESSIONS as u64, "one is enough: {}", daemon.log());
    let is_over = |id: &u64| daemon.session(&id.to_string())["state"] == "ended";
    let (gone, left): (Vec<u64>, Vec<u64>) = ids.into_iter().partition(is_over);
    assert_eq!(gone.len() as u64, n_given_up, "{}", daemon.log());
    // Which session is in which of several workers is not told.
    let is_younger = |id: &u64| left.iter().all(|left| left < id);
    assert!(!has_one_worker || gone.iter().all(is_younger), "{}", daemon.log());
    for id in &gone {
        let session = daemon.session(&id.to_string());
        assert_eq!(session["state"], "ended", "{session}");
        assert!(session["detail"].as_str().unwrap().contains("memory was short"), "{session}");
    }
    for name in left.iter().map(u64::to_string).chain(["kept".to_owned()]) {
        assert_eq!(daemon.session(&name)["state"], "attached", "{name}: {}", daemon.log());
        let n_before = total(&daemon.get(&format!("/v1/sessions/{name}/snapshot")));
        daemon.snapshot_once(&name, |snapshot| total(snapshot) > n_before);
    }
}
