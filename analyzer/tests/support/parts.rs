//! Two units that share types, built by any compiler in any form of debug information, and what
//! they must be named.

use super::program::{Program, run, source};
use super::session::{FAULTS, Session, TestFiles, object, with};
use dataspace_proto::register::Register::{Rbx, Rdi};
use std::path::Path;
use std::process::Command;

const HEAP: u64 = 0x7000_1234_5000;

/// Compiles `near.c` and `far.c` in a directory of their own, apart, and links them.
pub(crate) fn build(compiler: &str, flags: &str) -> Program {
    let dir = tempfile::tempdir().unwrap();
    compile(dir.path(), compiler, flags);
    let path = link(dir.path(), compiler, flags);
    Program::of(dir, path)
}

pub(crate) fn compile(dir: &Path, compiler: &str, flags: &str) {
    for name in ["near", "far"] {
        let mut command = Command::new(compiler);
        command.current_dir(dir).args(flags.split_whitespace());
        command.arg("-c").arg(source(&format!("{name}.c"))).args(["-o", &format!("{name}.o")]);
        run(&mut command);
    }
}

pub(crate) fn link(dir: &Path, compiler: &str, flags: &str) -> std::path::PathBuf {
    let link: Vec<&str> = flags.split_whitespace().filter(|flag| !flag.starts_with("-x")).collect();
    let link = link.into_iter().filter(|flag| *flag != "c++");
    run(Command::new(compiler)
        .current_dir(dir)
        .args(link)
        .args(["near.o", "far.o", "-o", "program"]));
    dir.join("program")
}

/// Everything that is wrong or missing, one line for each.
pub(crate) fn misses(program: &Program, files: TestFiles, context: &str) -> Vec<String> {
    let is_cpp = context.contains("c++");
    let part = if is_cpp { "structure:shop::part" } else { "structure:part" };
    let spot = if is_cpp { "structure:shop::spot" } else { "structure:spot" };
    let mut session = Session::over(program, files);
    let mut misses = Vec::new();
    let mut check = |what: &str, found: &str, expected: &str| {
        if found != expected {
            misses.push(format!("{what}: {found} and not {expected}, {context}"));
        }
    };
    let (weight, height) =
        (program.truth("struct part.weight"), program.truth("struct part.box.height"));
    let y = program.truth("struct part.spots") + 12;
    for (function, offset, register, expected) in [
        ("near_height", height, Rdi, format!("{{{part}}}.{{structure:- box}}.{{int height}}")),
        ("near_next", 0, Rdi, format!("{{{part}}}.{{pointer+{part} next}}")),
        ("far_weight", weight, Rdi, format!("{{{part}}}.{{int weight}}")),
        ("far_spot", y, Rdi, format!("{{{part}}}.{{array[3]:{spot} spots}}.{{int y}}")),
        ("far_later", weight, Rbx, format!("{{{part}}}.{{int weight}}")),
    ] {
        let access = program.access(function, offset);
        let line = session.exact(access.ip(), &with(&[(register, HEAP)]));
        check(function, object(&line), &expected);
        check(function, &format!("{:?}", line.offset), &format!("{:?}", Some(offset)));
    }
    // The address path: an instruction whose operand is at the address of the variable.
    let load = program.access("far_weight", weight).ip();
    for (variable, expected) in [
        ("near_part.weight", format!("{{{part}}}.{{int weight}}")),
        ("near_count", "{int near_count}".to_owned()),
        ("far_parts.height", format!("{{{part}}}.{{structure:- box}}.{{int height}}")),
        ("far_number", "{int far_number}".to_owned()),
        ("far_inner", "{int far_inner}".to_owned()),
    ] {
        let at = program.truth(&format!("&{variable}"));
        let line = session.sample(FAULTS, load, &with(&[(Rdi, at - weight)]).at(at));
        check(variable, object(&line), &expected);
    }
    misses
}

/// Fails with everything that is not named as it must be.
pub(crate) fn check(program: &Program, context: &str) {
    let misses = misses(program, TestFiles::default(), context);
    assert!(misses.is_empty(), "{misses:#?}");
}

/// What readelf shows of the debug information of `file`.
pub(crate) fn readelf(file: &Path) -> String {
    let shown = Command::new("readelf").args(["-W", "-S", "--debug-dump=info"]).arg(file).output();
    String::from_utf8_lossy(&shown.unwrap().stdout).into_owned()
}
