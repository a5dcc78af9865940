//! The programs whose steps are the truth, and the ways in which each is built.

use crate::truth::build::{Build, Language, Source};

/// Programs of very different character; each tells its own in its first line.
pub(crate) const SOURCES: &[(Language, &[&str])] = &[
    (
        Language::C,
        &[
            "assembly",
            "bits",
            "calls",
            "control",
            "floats",
            "handlers",
            "interpreter",
            "list",
            "local",
            "matrix",
            "parser",
            "records",
            "sort",
            "text",
            "tree",
        ],
    ),
    (Language::Cpp, &["containers", "exceptions", "shapes", "templates"]),
    (Language::Rust, &["collections", "iterators", "machine", "panics", "traits"]),
];

/// Flags of gcc and clang, for C and C++.
const C_FLAGS: &[&str] = &[
    "-O0",
    "-O1",
    "-O2",
    "-O3",
    "-Os",
    "-O3 -march=x86-64-v3",
    "-O2 -fno-pie -no-pie",
    "-O2 -fomit-frame-pointer -fcf-protection",
    "-O1 -fno-omit-frame-pointer -fno-plt",
    "-O2 stripped",
];

/// Flags of rustc.
const RUST_FLAGS: &[&str] = &[
    "-Copt-level=0",
    "-Copt-level=1",
    "-Copt-level=2",
    "-Copt-level=3",
    "-Copt-level=3 -Ctarget-cpu=x86-64-v3",
    "-Copt-level=2 stripped",
];

/// Every build of every program.
pub(crate) fn builds() -> Vec<Build> {
    let mut builds = Vec::new();
    for (language, names) in SOURCES {
        let (compilers, flags): (&[&str], _) = match language {
            Language::C => (&["gcc", "clang"], C_FLAGS),
            Language::Cpp => (&["g++", "clang++"], C_FLAGS),
            Language::Rust => (&["rustc"], RUST_FLAGS),
        };
        for name in *names {
            let source = Source { name, language: *language };
            for compiler in compilers {
                builds.extend(flags.iter().map(|flags| Build { source, compiler, flags }));
            }
        }
    }
    builds
}
