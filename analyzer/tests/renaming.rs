//! What a compiler calls its base types does not count: a program whose debug information calls them
//! something else has the same data objects, for the same reasons.

use crate::truth::build::{Symbols, succeed};
use crate::truth::model::{Model, Truth};
use crate::truth::session::{self, Files, Sessions};
use crate::truth::trace;
use dataspace_proto::sample_line::{Evidence, SampleLine};
use iced_x86::InstructionInfoFactory;
use object::{Object as _, ObjectSection as _};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

/// Base types as gcc and clang call them.
const BASE_TYPES: [&str; 24] = [
    "char",
    "signed char",
    "unsigned char",
    "short int",
    "short unsigned int",
    "short",
    "unsigned short",
    "int",
    "unsigned int",
    "long int",
    "long unsigned int",
    "long",
    "unsigned long",
    "long long int",
    "long long unsigned int",
    "long long",
    "unsigned long long",
    "float",
    "double",
    "long double",
    "_Bool",
    "bool",
    "__int128",
    "__int128 unsigned",
];

/// What a base type is called in the renamed program: as long, for compilers write lengths as numbers.
fn renamed(idx: usize) -> String {
    let letter = char::from(b'A' + idx as u8);
    format!("{:_<width$}", format!("k{letter}"), width = BASE_TYPES[idx].len())
}

/// Assembly whose debug information has the other names. The code is the same.
fn with_names_changed(assembly: &str) -> (String, usize) {
    let mut n_changed = 0;
    let line = |line: &str| {
        let Some((directive, rest)) = line.trim_start().split_once('"') else {
            return line.to_owned();
        };
        let is_string = matches!(directive.trim(), ".string" | ".asciz" | ".ascii");
        let name = rest.split(['"', '\\']).next().unwrap_or_default();
        match BASE_TYPES.iter().position(|base| is_string && *base == name) {
            Some(idx) => {
                n_changed += 1;
                line.replacen(&format!("\"{name}"), &format!("\"{}", renamed(idx)), 1)
            }
            None => line.to_owned(),
        }
    };
    let changed = assembly.lines().map(line).collect::<Vec<_>>().join("\n") + "\n";
    (changed, n_changed)
}

/// An object of the renamed program as the other one has it.
fn named_back(object: &str) -> String {
    BASE_TYPES.iter().enumerate().rev().fold(object.to_owned(), |object, (idx, base)| {
        object.replace(&renamed(idx), &base.replace(' ', "_"))
    })
}

fn code(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    file.section_by_name(".text").unwrap().data().unwrap().to_vec()
}

/// What is compared of an answer: everything but types' names.
fn told(line: &SampleLine, object: fn(&str) -> String) -> impl PartialEq + std::fmt::Debug + use<> {
    (
        (line.trigger, line.addr, line.access, line.size, line.offset),
        (line.evidence, line.reason, line.member.clone(), line.variable.clone()),
        line.object.as_deref().map(object),
    )
}

/// Compiles `source` twice, steps through the one and asks about both.
fn compare(compiler: &str, source: &str, flags: &str) -> Option<BTreeMap<Evidence, u64>> {
    let context = format!("{compiler} {flags} {source}");
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/truth/programs").join(source);
    let mut command = Command::new(compiler);
    command.args(["-g", "-w", "-S"]).args(flags.split(' ')).arg(&source);
    match succeed(command.arg("-o").arg(path("own.s"))) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("skipped: {compiler} is not installed");
            return None;
        }
        result => result.unwrap(),
    }
    let assembly = std::fs::read_to_string(path("own.s")).unwrap();
    let (changed, n_changed) = with_names_changed(&assembly);
    assert!(n_changed > 3, "{context}: {n_changed} names");
    std::fs::write(path("renamed.s"), changed).unwrap();
    for name in ["own", "renamed"] {
        let mut link = Command::new(compiler);
        let assembly = path(name).with_extension("s");
        succeed(link.arg(assembly).arg("-o").arg(path(name)).arg("-lm")).unwrap();
    }
    assert!(code(&path("own")) == code(&path("renamed")), "{context}: other code");

    let main = Symbols::read(&path("own")).unwrap().address(|it| it == "main").unwrap();
    let trace = match trace::trace(&path("own"), main, 3000) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            eprintln!("skipped: programs may not be traced here: {error}");
            return None;
        }
        trace => trace.unwrap(),
    };
    let mappings = session::mappings(&trace.maps);
    let instead = Files { instead: Some((path("own"), path("renamed"))) };
    let mut sessions = [Files::default(), instead].map(|files| Sessions::over(&mappings, files));
    let mut factory = InstructionInfoFactory::new();
    let mut evidence = BTreeMap::new();
    for model in [Model::Exact, Model::AfterOneAddressed] {
        for pick in model.picks(&trace) {
            let truth = Truth::of(pick, &trace, &mut factory);
            let sample = model.sample(pick, truth.addr);
            let [own, renamed] =
                sessions.each_mut().map(|session| session.ask(model, sample).unwrap());
            let own_told = told(&own, str::to_owned);
            assert_eq!(own_told, told(&renamed, named_back), "{context}");
            if let Some(kind) = own.evidence {
                *evidence.entry(kind).or_default() += 1;
            }
        }
    }
    Some(evidence)
}

#[test]
fn objects_are_the_same_whatever_base_types_are_called() {
    let mut found = 0;
    for (compiler, source, flags) in [
        ("gcc", "records.c", "-O2"),
        ("gcc", "tree.c", "-O3"),
        ("gcc", "bits.c", "-O2"),
        ("gcc", "local.c", "-O1"),
        ("g++", "shapes.cpp", "-O2"),
        ("g++", "templates.cpp", "-O2"),
        ("clang", "records.c", "-O2"),
        ("clang", "matrix.c", "-O2"),
    ] {
        let evidence = compare(compiler, source, flags);
        println!("{compiler} {source} {flags}: {evidence:?}");
        found += evidence.map_or(0, |evidence| evidence.values().sum());
    }
    assert!(found == 0 || found > 1000, "{found} answers");
}
