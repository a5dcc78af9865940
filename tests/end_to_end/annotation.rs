//! Annotated code, held to a program of which it is known which load waits, and to objdump.

use crate::support::{Running, compile, run, sheet};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const NEXT: &str = "{structure:cell}.{pointer+structure:cell next}";
const NEXT_IN_SOURCE: &str = "cell.next";

/// The load in the program's loop, and the instruction after it, as objdump lists them.
fn load(program: &Path) -> (String, String) {
    let output = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(program).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let is_head = |row: &str| row.contains("<chase") && row.ends_with(">:");
    let chase = text.split("\n\n").find(|part| part.lines().any(is_head)).unwrap();
    let rows: Vec<(&str, &str)> =
        chase.lines().filter_map(|row| row.trim_start().split_once(":\t")).collect();
    let is_load = |text: &str| text.starts_with("mov ") && text.contains("(%r");
    let at = rows.iter().position(|(_, text)| is_load(text)).unwrap();
    (format!("0x{}", rows[at].0), format!("0x{}", rows[at + 1].0))
}

/// A recording of the program while it chases; `None`, said on standard error, where nothing can be sampled.
fn recorded(program: &Path, file: &str) -> Option<()> {
    // Sixteen megabytes: more than caches of one core have.
    let (running, _) = Running::start(program, &["16"]);
    let pid = running.pid();
    let output = run(&["record", "-o", file, "--max-size", "300K", "-p", &pid]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if matches!(output.status.code(), Some(3 | 4)) {
        eprintln!("not run: {said}");
        return None;
    }
    assert!(output.status.success(), "{said}");
    Some(())
}

fn json(args: &[&str]) -> Value {
    let output = run(&[&["annotate", "--json"], args].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(args: &[&str]) -> String {
    let output = run(&[&["annotate"], args].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn sum(rows: &Value, key: &str) -> u64 {
    rows.as_array().unwrap().iter().map(|row| row[key].as_u64().unwrap()).sum()
}

fn error(args: &[&str]) -> (Option<i32>, String) {
    let output = run(&[&["annotate"], args].concat());
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn the_instruction_that_waited_and_the_one_that_was_reported_are_told_apart() {
    let program = compile("chase", &["-O2", "-g"]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("perf.data");
    let file = file.to_str().unwrap();
    if recorded(&program, file).is_none() {
        return;
    }
    let (load, after) = load(&program);
    let document = json(&["-i", file, "chase"]);
    let total = &document["total"];
    let without = total["without_trigger"].as_object().unwrap().values();
    let without: u64 = without.map(|samples| samples.as_u64().unwrap()).sum();
    let number = |key: &str| total[key].as_u64().unwrap();
    assert_eq!(number("samples"), number("waited") + without);
    assert_eq!(
        number("reported") + number("waited_reported_elsewhere"),
        number("waited") + without + number("reported_waited_elsewhere")
    );
    assert_eq!(sum(&document["instructions"], "waited"), number("waited"), "each is somewhere");
    assert_eq!(sum(&document["instructions"], "reported"), number("reported"));
    assert_eq!(sum(&document["lines"], "waited"), number("waited"));

    for (rows, args) in [
        ("instructions", &["annotate", "--csv", "-i", file, "chase"][..]),
        ("lines", &["annotate", "--csv", "-i", file, "chase", "--by-line"]),
    ] {
        let Some(sheet) = sheet(args) else { continue };
        assert_eq!(sheet.len(), document[rows].as_array().unwrap().len(), "cutoffs cut none");
        let waited = sheet.iter().map(|row| row["waited"].parse::<u64>().unwrap());
        assert_eq!(waited.sum::<u64>(), number("waited"));
        assert!(sheet.iter().any(|row| row["object"] == NEXT), "{sheet:?}");
        assert!(sheet.iter().all(|row| row["function"] == "chase"), "{sheet:?}");
    }

    let instructions = document["instructions"].as_array().unwrap();
    let at = |address: &str| instructions.iter().find(|it| it["address"] == address).unwrap();
    // By far most samples are of the one load: all others are of instructions that wait for nothing.
    let waited = at(&load)["waited"].as_u64().unwrap();
    assert!(waited * 2 > number("waited"), "{waited} of {total}");
    assert_eq!(at(&load)["reported_at"][0]["address"], after, "{}", at(&load));
    assert!(at(&after)["reported"].as_u64().unwrap() * 2 > number("waited"));
    assert_eq!(at(&load)["object"], NEXT);
    assert_eq!(at(&load)["operand"], NEXT, "also without samples");
    assert_eq!(document["objects"][0]["object"], NEXT);
    assert_eq!(document["objects"][0]["name"], NEXT_IN_SOURCE);
    assert_eq!(document["objects"][0]["instructions"][0]["address"], load);

    let by_type = text(&["-i", file, "chase", "--names", "descriptor"]);
    assert!(by_type.contains(NEXT) && !by_type.contains(NEXT_IN_SOURCE), "{by_type}");
    let text = text(&["-i", file, "chase"]);
    let row = |address: &str| {
        let address = format!(" {}  ", address.trim_start_matches("0x"));
        text.lines().find(|row| row.contains(&address)).unwrap().to_owned()
    };
    assert!(row(&load).contains('W') && row(&load).contains(NEXT_IN_SOURCE), "{text}");
    assert!(row(&after).contains("r "), "{text}");
    assert!(text.contains(">        p = p->next;"), "the source: {text}");
    assert!(text.contains("- - - - ") && text.contains("cutoffs 0 %, cumulative 100 %"), "{text}");
    ways_to_it_and_from_it(file, &load);
}

fn ways_to_it_and_from_it(file: &str, load: &str) {
    let source = std::fs::read_to_string(crate::support::root().join("tests/programs/chase.c"));
    let line = 1 + source.unwrap().lines().position(|line| line.contains("p->next")).unwrap();
    let by_line = json(&["-i", file, &format!("chase.c:{line}")]);
    assert_eq!(by_line["function"], "chase");
    let lines = by_line["lines"].as_array().unwrap();
    let hottest = lines.iter().max_by_key(|line| line["waited"].as_u64()).unwrap();
    assert_eq!(
        (hottest["line"].as_u64(), &hottest["text"]),
        (Some(line as u64), &Value::from("        p = p->next;"))
    );
    let from_object = json(&["-i", file, "--where", &format!("object == \"{NEXT}\"")]);
    assert_eq!(from_object["function"], "chase");
    let cut = text(&["-i", file, "chase", "--by-line", "--cutoff", "50"]);
    let shown = cut.lines().filter(|row| row.contains(" >")).count();
    assert_eq!(shown, 2, "the title, and the line that has half of the samples: {cut}");
    assert!(text(&["-i", file, "chase", "--intel"]).contains("mov    rax,[r"));
    let load = load.trim_start_matches("0x");
    assert!(text(&["-i", file, "main"]).lines().all(|row| !row.contains(&format!(" {load}  "))));

    let (code, said) = error(&["-i", file, "chas"]);
    assert!(code == Some(1) && said.contains("did you mean chase?"), "{said}");
    let (code, said) = error(&["-i", file, "chase.c:1"]);
    assert!(code == Some(1) && said.contains("lines of it with samples"), "{said}");
    let (code, said) = error(&["-i", file, "chase", "--where", "objekt == 1"]);
    assert!(code == Some(2) && said.contains("no field objekt"), "{said}");
}

#[test]
fn a_function_without_samples_is_shown_and_so_is_one_without_its_source() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("moved.c");
    let original = crate::support::root().join("tests/programs/chase.c");
    std::fs::copy(original, &source).unwrap();
    let program = dir.path().join("moved");
    let built = Command::new("gcc").args(["-O0", "-g", "-o"]).arg(&program).arg(&source).status();
    assert!(built.unwrap().success());
    let file = dir.path().join("perf.data");
    let file = file.to_str().unwrap();
    if recorded(&program, file).is_none() {
        return;
    }
    let elsewhere = dir.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::rename(&source, elsewhere.join("moved.c")).unwrap();
    let text_of = |args: &[&str]| text(&[&["-i", file, "chase"], args].concat());
    let gone = text_of(&[]);
    assert!(gone.contains("not shown: there is no such file"), "{gone}");
    assert!(!gone.contains("p = p->next"), "{gone}");
    let found = text_of(&["--source", elsewhere.to_str().unwrap()]);
    assert!(found.contains("p = p->next") && !found.contains("not shown"), "{found}");
    let start = text(&["-i", file, "_start"]);
    assert!(start.contains("no samples in it"), "{start}");
}
