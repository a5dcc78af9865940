//! Layouts, held to what the compiler says of the program, and to pahole.

use crate::support::{compile, compile_by, compile_sources, root, run, sheet};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The layouts of the types in `program` that are called `name`.
#[track_caller]
fn layouts(name: &str, program: &Path, args: &[&str]) -> Vec<Value> {
    let program = program.to_str().unwrap();
    lines(&[&["layout", name, program, "--json"], args].concat())
}

#[track_caller]
fn lines(args: &[&str]) -> Vec<Value> {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[track_caller]
fn only(name: &str, program: &Path) -> Value {
    let mut found = layouts(name, program, &[]);
    assert_eq!(found.len(), 1, "{name}");
    found.remove(0)
}

fn member<'a>(layout: &'a Value, path: &str) -> &'a Value {
    let members = layout["members"].as_array().unwrap();
    members.iter().find(|member| member["name"] == path).unwrap_or_else(|| panic!("{path}"))
}

fn program_of(language: &str, compiler: &str, flags: &[&str]) -> Option<PathBuf> {
    let installed = Command::new(compiler).arg("--version").output();
    if !installed.is_ok_and(|output| output.status.success()) {
        eprintln!("not run: {compiler} is not installed");
        return None;
    }
    let source = root().join(format!("tests/programs/layouts.{language}"));
    Some(compile_sources(compiler, &format!("layouts_{language}"), &[source], flags))
}

#[test]
fn offsets_and_sizes_are_the_compilers() {
    for compiler in ["gcc", "clang"] {
        let Some(program) = compile_by(compiler, "layouts", &["-O1", "-g"]) else { continue };
        let said = Command::new(&program).output().unwrap().stdout;
        let mut known: HashMap<&str, Value> = HashMap::new();
        let mut n_compared = 0;
        for line in std::str::from_utf8(&said).unwrap().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let (name, path) = words[0].split_once('.').unwrap_or((words[0], ""));
            let layout = known.entry(name).or_insert_with(|| only(name, &program));
            let number = |at: usize| words[at].parse::<u64>().unwrap();
            match words.len() {
                2 => assert_eq!(layout["size"], number(1), "{compiler} {line}"),
                _ => {
                    let member = member(layout, path);
                    let place = (&member["offset"], &member["size"]);
                    assert_eq!(place, (&json!(number(1)), &json!(number(2))), "{compiler} {line}");
                }
            }
            n_compared += 1;
        }
        assert!(n_compared > 30, "{compiler}: {n_compared}");
        let flags = &known["flags"];
        assert_eq!(member(flags, "b")["bits"], json!({"first": 3, "width": 7}));
        assert!(flags["members"].as_array().unwrap().iter().all(|it| it["samples"].is_null()));
    }
}

#[test]
fn a_sheet_has_the_compilers_offsets_and_sizes() {
    let program = compile("layouts", &["-O1", "-g"]);
    let said = Command::new(&program).output().unwrap().stdout;
    let Some(rows) = sheet(&["layout", "*", program.to_str().unwrap(), "--csv"]) else { return };
    let mut n_compared = 0;
    for line in std::str::from_utf8(&said).unwrap().lines() {
        let [place, offset, size] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
        let (layout, name) = place.split_once('.').unwrap();
        let row = rows.iter().find(|row| row["layout"] == layout && row["name"] == name);
        let row = row.unwrap_or_else(|| panic!("{place} is missing"));
        assert_eq!((&*row["offset"], &*row["size"]), (offset, size), "{place}");
        assert_eq!(row["samples"], "", "nothing was sampled");
        n_compared += 1;
    }
    assert!(n_compared > 20, "{n_compared}");
    let b = rows.iter().find(|row| row["layout"] == "flags" && row["name"] == "b").unwrap();
    assert_eq!((&*b["first_bit"], &*b["bits"]), ("3", "7"));
}

#[test]
fn pahole_finds_the_same() {
    let has = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    if !has("pahole") || !has("python3") {
        eprintln!("not run: pahole or python3 is not installed");
        return;
    }
    let programs = [
        (program_of("c", "gcc", &["-O1", "-g"]), 10),
        (program_of("cpp", "g++", &["-O1", "-g"]), 100),
        (program_of("rs", "rustc", &["-g"]), 100),
    ];
    for (program, least) in programs {
        let Some(program) = program else { continue };
        let mut command = Command::new(root().join("benches/layout/compare"));
        command.arg(env!("CARGO_BIN_EXE_dataspace")).arg(&program);
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let number = said.split(": ").nth(1).unwrap().split(' ').next().unwrap();
        assert!(number.parse::<u64>().unwrap() >= least, "{said}");
    }
}

#[test]
fn one_name_may_have_two_layouts() {
    let dir = tempfile::tempdir().unwrap();
    let sources = [
        ("a.c", "long long_one; char tail;", "int b(void); int main(void) { return b(); }"),
        ("b.c", "char small; short half;", "int b(void) { return twin.half + alike.n; }"),
    ]
    .map(|(name, members, code)| {
        let source = dir.path().join(name);
        let types = format!("struct twin {{ {members} }}; struct alike {{ int n; }};");
        let variables = "static struct twin twin; static struct alike alike;";
        std::fs::write(&source, format!("{types}\n{variables}\n{code}\n")).unwrap();
        source
    });
    let program =
        compile_sources("gcc", "twins", &sources, &["-g", "-fno-eliminate-unused-debug-types"]);
    let twins = layouts("struct twin", &program, &[]);
    // The program may have been compiled before, in another folder.
    let unit = |it: &Value| Path::new(it["unit"].as_str().unwrap()).file_name().unwrap().to_owned();
    let told: Vec<_> = twins.iter().map(|it| (unit(it), it["size"].clone())).collect();
    assert_eq!(told, [("a.c".into(), json!(16)), ("b.c".into(), json!(4))]);
    assert_eq!(layouts("alike", &program, &[]).len(), 1);
    assert_eq!(layouts("alike", &program, &["--every"]).len(), 2);
    assert_eq!(layouts("*i*", &program, &[]).len(), 3);
}

#[test]
fn a_separate_debug_file_is_found() {
    let whole = compile("layouts", &["-O1", "-g"]);
    let dir = tempfile::tempdir().unwrap();
    let (program, debug) = (dir.path().join("program"), dir.path().join("program.debug"));
    let objcopy = |args: &[&Path]| {
        assert!(Command::new("objcopy").args(args).status().unwrap().success());
    };
    objcopy(&["--only-keep-debug".as_ref(), &whole, &debug]);
    objcopy(&["--strip-debug".as_ref(), &whole, &program]);
    let failed = run(&["layout", "plain", program.to_str().unwrap()]);
    let said = String::from_utf8(failed.stderr).unwrap();
    assert!(said.contains("no debug information") && said.contains("-g"), "{said}");
    let link = format!("--add-gnu-debuglink={}", debug.display());
    objcopy(&[link.as_ref(), &program]);
    assert_eq!(only("plain", &program), only("plain", &whole));
}

#[test]
fn what_is_not_there_is_told_with_what_may_be_meant() {
    let program = compile("layouts", &["-O1", "-g"]);
    let failed = |args: &[&str]| {
        let output = run(&[&["layout"], args].concat());
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let path = program.to_str().unwrap();
    let (code, said) = failed(&["flagz", path]);
    assert!(code == 1 && said.contains("did you mean: flags"), "{said}");
    assert_eq!(failed(&["plain"]).0, 2);
    assert_eq!(failed(&["plain", "/no/such/file"]).0, 1);
    assert_eq!(failed(&["plain", "/"]).0, 2);
    let text = root().join("Cargo.toml");
    let (code, said) = failed(&["plain", text.to_str().unwrap()]);
    assert!(code == 1 && said.contains("ELF"), "{said}");
    assert_eq!(only("nested_t", &program)["type"], "nested", "by its typedef");
    assert_eq!(only("nested_t", &program)["alias"], "nested_t");
}

#[test]
fn text_names_holes_borders_and_bits() {
    let program = compile("layouts", &["-O1", "-g"]);
    let printed = |name: &str| {
        let output = run(&["layout", name, program.to_str().unwrap()]);
        String::from_utf8(output.stdout).unwrap()
    };
    let large = printed("large");
    for part in
        ["struct large", "X  crosses", "----- 64 B: next line -----", "144 B, 3 cache lines"]
    {
        assert!(large.contains(part), "{large}");
    }
    let flags = printed("flags");
    assert!(flags.contains("-- 6 bits hole --") && flags.contains("b:7"), "{flags}");
    assert!(!flags.contains('\x1b'), "no colour in a pipe");
    assert!(flags.lines().all(|line| line.chars().count() <= 80), "{flags}");
}

#[test]
fn figures_are_those_of_the_samples() {
    let program = compile("straddle", &["-O1", "-g"]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    let (file, path) = (file.to_str().unwrap(), program.to_str().unwrap());
    let output = run(&["record", "-e", "page-faults", "-c", "1", "-o", file, "--", path]);
    if matches!(output.status.code(), Some(3 | 4)) {
        eprintln!("not run: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let found = lines(&["layout", "item", "-i", file, "--json"]);
    assert_eq!(found.len(), 1);
    let item = &found[0];
    let count = member(item, "count");
    assert_eq!((&item["samples"], &item["alignment"]), (&json!(40), &json!(0)), "{item}");
    assert_eq!(
        (&count["samples"], &count["writes"], &count["reads"]),
        (&json!(40), &json!(40), &json!(0))
    );
    assert_eq!(count["n_threads"], 1);
    assert_eq!(member(item, "cold")["samples"], 0, "it was measured, and not touched");
    // A page fault is no wait for a line, and no time.
    assert!(count["first_touch"].is_null() && count["time_ns"].is_null(), "{count}");
    let notes: Vec<&str> =
        item["notes"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert!(notes[0].contains("byte 0 of their line: 20 of the 40"), "{notes:?}");
    assert!(notes[1].contains("8 of the 40 sampled instances (20.0%) straddle"), "{notes:?}");
    let table = &lines(&["layout", "table", path, "-i", file, "--json"])[0];
    let hottest: Vec<u64> = member(table, "slots")["hottest"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["index"].as_u64().unwrap())
        .collect();
    assert_eq!(hottest, [512, 1024, 1536, 2048, 2560, 3072, 3584], "{table}");
    assert!(table["unit"].as_str().unwrap().ends_with("straddle.c"));
    // Of a type that no sample touched everything is known to be nothing.
    let failed = run(&["layout", "itme", "-i", file]);
    assert!(String::from_utf8(failed.stderr).unwrap().contains("did you mean: item"));
}
