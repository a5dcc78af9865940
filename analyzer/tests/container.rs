//! Debug information in every container, and load objects in every layout.

use crate::support::program::{Program, has_tool, run};
use crate::support::session::{FAULTS, Session, TestFiles, object, with};
use dataspace_proto::record::FileIdentity;
use dataspace_proto::register::Register::Rdi;
use std::path::PathBuf;
use std::process::Command;

const HEAP: u64 = 0x7000_1234_5000;

/// The name of `p->key`, which needs debug information.
fn key(session: &mut Session, ip: u64) -> String {
    object(&session.exact(ip, &with(&[(Rdi, HEAP)]))).to_owned()
}

const NAMED: &str = "{structure:node}.{long_int key}";

/// The access in `load_key`, found before the symbols are taken off.
fn access(program: &Program) -> u64 {
    program.access("load_key", program.truth("struct node.key")).ip()
}

/// Takes the debug information out into a file of its own.
fn separate(program: &Program, name: &str) -> PathBuf {
    let debug = program.dir.path().join(name);
    run(Command::new("objcopy").arg("--only-keep-debug").arg(&program.path).arg(&debug));
    debug
}

#[test]
fn a_debug_link_is_followed_only_with_the_right_checksum() {
    let program = Program::c("shapes.c", "-O2 -g -Wl,--build-id=none");
    let ip = access(&program);
    let debug = separate(&program, "program.debug");
    let link = format!("--add-gnu-debuglink={}", debug.display());
    let program = program.changed_by("strip", &[]).changed_by("objcopy", &[&link]);
    let with_debug = |path: &PathBuf| {
        let files = TestFiles { debug: vec![path.clone()], ..TestFiles::default() };
        key(&mut Session::over(&program, files), ip)
    };
    assert_eq!(with_debug(&debug), NAMED);
    assert_eq!(key(&mut Session::new(&program), ip), "unascertainable");
    let mut bytes = std::fs::read(&debug).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    let wrong = program.dir.path().join("wrong.debug");
    std::fs::write(&wrong, bytes).unwrap();
    assert_eq!(with_debug(&wrong), "unascertainable");
}

#[test]
fn a_debug_file_is_found_by_its_build_id_and_not_by_another() {
    let program = Program::c("shapes.c", "-O2 -g -Wl,--build-id=sha1");
    let other = Program::c("shapes.c", "-O2 -g -Wl,--build-id=0x01020304");
    let ip = access(&program);
    let (debug, foreign) = (separate(&program, "ours"), separate(&other, "theirs"));
    let program = program.changed_by("strip", &[]);
    let with_debug = |debug: Vec<PathBuf>| {
        let files = TestFiles { debug, ..TestFiles::default() };
        key(&mut Session::over(&program, files), ip)
    };
    assert_eq!(with_debug(vec![foreign.clone(), debug]), NAMED, "the first right one");
    assert_eq!(with_debug(vec![foreign]), "unascertainable");
}

#[test]
fn compressed_sections_are_read() {
    for (flag, change) in [
        ("-gz=none", None),
        ("-gz=zlib", None),
        ("-gz=none", Some("--compress-debug-sections=zlib-gabi")),
        ("-gz=none", Some("--compress-debug-sections=zstd")),
    ] {
        let mut program = Program::c("shapes.c", &format!("-O2 -g {flag}"));
        if let Some(change) = change {
            let path = program.path.clone();
            let compress = Command::new("objcopy").arg(change).arg(&path).output().unwrap();
            if !compress.status.success() {
                eprintln!("skipped: objcopy has no {change}");
                continue;
            }
            program.bytes = std::fs::read(&path).unwrap();
        }
        let ip = access(&program);
        assert_eq!(key(&mut Session::new(&program), ip), NAMED, "{flag} {change:?}");
    }
}

#[test]
fn frame_descriptions_bound_the_functions_of_a_stripped_file() {
    for flags in ["-O2", "-O2 -g -fno-asynchronous-unwind-tables"] {
        let program = Program::c("shapes.c", flags);
        let ip = access(&program);
        let is_stripped = !flags.contains("-g");
        let program = if is_stripped { program.changed_by("strip", &[]) } else { program };
        let mut session = Session::new(&program);
        let line = session.exact(ip, &with(&[(Rdi, HEAP)]));
        let expected = if is_stripped { "unascertainable" } else { NAMED };
        assert_eq!(object(&line), expected, "{flags}");
        let line = session.exact(ip + 1, &with(&[(Rdi, HEAP)]));
        assert_eq!(object(&line), "unverifiable", "inside an instruction, {flags}");
    }
}

#[test]
fn linkers_may_lay_segments_out_as_they_like() {
    let linkers = [
        ("", ""),
        ("", "-Wl,-z,noseparate-code"),
        ("ld.gold", "-fuse-ld=gold"),
        ("ld.lld", "-fuse-ld=lld"),
        ("", "-static"),
        ("", "-Wl,-z,norelro"),
    ];
    for (linker, flag) in linkers {
        if !linker.is_empty() && !has_tool(linker) {
            continue;
        }
        for pie in ["-fPIE -pie", "-fno-pie -no-pie"] {
            if flag == "-static" && pie.contains("-pie ") {
                continue;
            }
            let program = Program::c("places.c", &format!("-O2 -g {pie} {flag}"));
            check_places(&program, &format!("{flag} {pie}"));
        }
    }
}

/// Code and data are found by the mappings of `/proc/PID/maps` and by those of the kernel's own
/// records, in which the loader's mprotect is not to be seen.
fn check_places(program: &Program, context: &str) {
    let load = program.access("behind", 0).ip();
    let path = program.path.to_str().unwrap();
    let by_maps = Session::new(program);
    let mut by_records = Session::without_mappings(TestFiles::default());
    for map in program.segment_mappings() {
        let (start, len, offset) = (map.start, map.len_bytes, map.file_offset);
        by_records.map(start, len, offset, map.is_executable, path, &FileIdentity::None);
    }
    for (mut session, mappings) in [(by_maps, "maps"), (by_records, "records")] {
        for (variable, expected) in [
            ("ratio", "{double ratio}"),
            ("fixed", "{structure:line}.{long_int id}"),
            ("file_line", "{structure:line}.{long_int id}"),
            ("n_calls", "{long_int n_calls}"),
            ("number", "{int number}"),
            ("zeroed", "{array[4096]:long_int zeroed}"),
        ] {
            let at = program.truth(&format!("&{variable}"));
            let line = session.sample(FAULTS, load, &with(&[(Rdi, at)]).at(at));
            let is_right = object(&line) == expected;
            assert!(is_right, "{variable}: {} {mappings} {context}", object(&line));
        }
        let end = program.truth("&zeroed") + 4095 * 8;
        let line = session.sample(FAULTS, load, &with(&[(Rdi, end)]).at(end));
        assert_eq!(object(&line), "{array[4096]:long_int zeroed}", "{mappings} {context}");
    }
}
