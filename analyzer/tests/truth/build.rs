//! One program, compiled in one way.

use object::{Object as _, ObjectSegment as _, ObjectSymbol as _};
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a program is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    C,
    Cpp,
    Rust,
}

impl Language {
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Cpp => "cpp",
            Self::Rust => "rs",
        }
    }
}

/// A program's source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) name: &'static str,
    pub(crate) language: Language,
}

impl Source {
    pub(crate) fn path(self) -> PathBuf {
        let file = format!("{}.{}", self.name, self.language.extension());
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/truth/programs").join(file)
    }
}

/// A source, a compiler and its flags; the word `stripped` among the flags is for us.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Build {
    pub(crate) source: Source,
    pub(crate) compiler: &'static str,
    pub(crate) flags: &'static str,
}

/// A compiled program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// What runs.
    pub(crate) path: PathBuf,
    /// The same with its symbols.
    pub(crate) symbols: PathBuf,
}

impl Build {
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.source.name, self.variant())
    }

    /// Compiler and flags in one word.
    pub(crate) fn variant(&self) -> String {
        format!("{}{}", self.compiler, self.flags.replace("-Copt-level=", "-O").replace(' ', ""))
    }

    /// Compiler and level of optimisation.
    pub(crate) fn level(&self) -> String {
        let first = self.flags.split(' ').next().unwrap_or_default();
        format!("{} {}", self.compiler, first.replace("-Copt-level=", "-O"))
    }

    /// Whether this machine can run what it makes.
    pub(crate) fn can_run(&self) -> bool {
        !self.flags.contains("x86-64-v3")
            || (std::arch::is_x86_feature_detected!("avx2")
                && std::arch::is_x86_feature_detected!("bmi2")
                && std::arch::is_x86_feature_detected!("fma"))
    }

    /// Where the program's own code begins. Before a Rust program's own `main` there are some
    /// fifty thousand steps of its runtime, the same in each.
    pub(crate) fn main(&self, symbols: &Symbols) -> Option<u64> {
        let name = self.source.name;
        match self.source.language {
            Language::C | Language::Cpp => symbols.address(|it| it == "main"),
            Language::Rust => {
                let own = format!("{}{name}4main", name.len());
                // Behind it stands a hash in the older way to write names, nothing in the newer.
                let is_main = |rest: &str| rest.is_empty() || rest.starts_with("17h");
                symbols.address(|it| it.split_once(&own).is_some_and(|(_, rest)| is_main(rest)))
            }
        }
    }

    /// Compiles it in `dir`, if it is not there yet.
    pub(crate) fn compile(&self, dir: &Path) -> Result<Program> {
        let symbols = dir.join(self.name().replace('/', "-"));
        let is_stripped = self.flags.contains("stripped");
        let path = if is_stripped { symbols.with_extension("stripped") } else { symbols.clone() };
        let newer = |built: &Path| {
            let modified = |path: &Path| std::fs::metadata(path).and_then(|it| it.modified());
            modified(built)
                .is_ok_and(|built| modified(&self.source.path()).is_ok_and(|s| s < built))
        };
        if !newer(&symbols) {
            let flags = self.flags.split(' ').filter(|flag| *flag != "stripped");
            let mut command = Command::new(self.compiler);
            command.arg("-g").args(flags).arg(self.source.path()).arg("-o").arg(&symbols);
            match self.source.language {
                Language::C => command.args(["-std=gnu11", "-w", "-lm"]),
                Language::Cpp => command.args(["-std=c++17", "-w"]),
                Language::Rust => command.args(["--edition=2021", "-Awarnings"]),
            };
            succeed(&mut command)?;
        }
        if is_stripped && !newer(&path) {
            succeed(Command::new("strip").arg("--strip-all").arg(&symbols).arg("-o").arg(&path))?;
        }
        Ok(Program { path, symbols })
    }
}

pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::other(format!("{command:?}\n{}", String::from_utf8_lossy(&output.stderr))))
}

/// The functions of a load object by their symbols, to name where an answer went wrong.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    /// First address, length, name.
    functions: Vec<(u64, u64, String)>,
    /// Place in the file, length, first address.
    segments: Vec<(u64, u64, u64)>,
}

impl Symbols {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path)?;
        let file = object::File::parse(&*bytes).map_err(Error::other)?;
        let mut functions: Vec<_> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| symbol.is_definition())
            .filter_map(|it| Some((it.address(), it.size(), it.name().ok()?.to_owned())))
            .collect();
        functions.sort();
        let segment = |segment: object::Segment<'_, '_>| {
            let (offset, len_bytes) = segment.file_range();
            (offset, len_bytes, segment.address())
        };
        Ok(Self { functions, segments: file.segments().map(segment).collect() })
    }

    pub(crate) fn address(&self, is_it: impl Fn(&str) -> bool) -> Option<u64> {
        self.functions.iter().find(|(_, _, it)| is_it(it)).map(|(address, _, _)| *address)
    }

    /// The address, in the file's terms, of what is at `offset` in the file.
    pub(crate) fn svma(&self, offset: u64) -> u64 {
        let holds = |(start, len_bytes, _): &&(u64, u64, u64)| {
            offset.checked_sub(*start).is_some_and(|into| into < *len_bytes)
        };
        let segment = self.segments.iter().find(holds);
        segment.map_or(offset, |(start, _, address)| address + (offset - start))
    }

    /// The function at `address` and how far into it that is.
    pub(crate) fn function(&self, address: u64) -> Option<(&str, u64)> {
        let end = self.functions.partition_point(|(start, _, _)| *start <= address);
        let (start, size, name) = self.functions[..end].last()?;
        let offset = address - start;
        (offset < (*size).max(1)).then_some((name, offset))
    }
}
