//! Listings of functions, held to `objdump -dl` instruction by instruction, and their lines to `addr2line -i`.

use crate::support::program::{has_tool, run, source};
use crate::support::session::TestFiles;
use dataspace_analyzer::bytes::file::{LoadObjectIdx, LoadObjectKey};
use dataspace_analyzer::index::code_listing::{AssemblySyntax, CodeListing};
use dataspace_analyzer::index::worker::Worker;
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::record::FileIdentity;
use object::{Object as _, ObjectSymbol as _, SymbolKind};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;

/// Functions of one program that are compared.
const N_FUNCTIONS: usize = 40;

/// An instruction as objdump lists it.
#[derive(Debug)]
struct Dumped {
    bytes: String,
    text: String,
    /// File and line of the last line above it that names one.
    line: Option<(String, u32)>,
}

fn listing(path: &Path, at: u64) -> CodeListing {
    let key = LoadObjectKey {
        path: path.as_os_str().as_bytes().into(),
        identity: FileIdentity::None,
        pid: -1,
        range: (Avma(0), Avma(0)),
        mount_namespace: 0,
    };
    let mut worker = Worker::new(Box::new(TestFiles::default()));
    worker.listing(LoadObjectIdx(0), &key, Svma(at), AssemblySyntax::Att).unwrap()
}

/// The functions of the program's own: first address and length.
fn functions(path: &Path) -> Vec<(u64, u64)> {
    let bytes = std::fs::read(path).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let is_code = |it: &object::Symbol<'_, '_>| it.kind() == SymbolKind::Text && it.size() > 30;
    let symbols = elf.symbols().filter(is_code).map(|it| (it.address(), it.size()));
    let mut all: Vec<(u64, u64)> = symbols.collect();
    all.sort_unstable();
    all.dedup_by_key(|(start, _)| *start);
    // Some of each part of a large program.
    let step = all.len().div_ceil(N_FUNCTIONS).max(1);
    all.into_iter().step_by(step).collect()
}

/// What objdump lists from `start` to `end`.
fn dumped(path: &Path, start: u64, end: u64) -> BTreeMap<u64, Dumped> {
    let mut command = Command::new("objdump");
    command.arg("-dlwz").arg(format!("--start-address={start:#x}"));
    command.arg(format!("--stop-address={end:#x}")).arg(path);
    let text = String::from_utf8_lossy(&run(&mut command)).into_owned();
    let (mut found, mut line) = (BTreeMap::new(), None);
    for row in text.lines() {
        let mut parts = row.split('\t');
        let address = parts.next().and_then(|it| it.trim().strip_suffix(':'));
        let address = address.and_then(|it| u64::from_str_radix(it, 16).ok());
        if let (Some(address), Some(bytes)) = (address, parts.next()) {
            let bytes = bytes.split_whitespace().collect();
            let text = parts.next().unwrap_or_default().trim().to_owned();
            found.insert(address, Dumped { bytes, text, line: line.clone() });
        } else if let Some((file, number)) = row.rsplit_once(':') {
            let number = number.split(' ').next().and_then(|it| it.parse().ok());
            line = number.map(|number| (file.to_owned(), number)).or(line);
        }
    }
    found
}

/// An instruction without what two disassemblers spell in their own ways.
fn plain(text: &str) -> String {
    let text = text.split(['#', '<']).next().unwrap();
    // Prefixes that fill up, and segments of string instructions, are written or not.
    let words = text.split_whitespace().filter(|word| *word != "data16");
    let text = words.collect::<Vec<_>>().join(" ").replace("%ds:(", "(").replace("%es:(", "(");
    let (mnemonic, operands) = text.split_once(' ').unwrap_or((&text, ""));
    // The room between two loops: prefixes that mean nothing are written or not.
    if text.contains("nop") {
        return "nop".to_owned();
    }
    // A pointer in memory has the only size that there is.
    let mnemonic = match mnemonic {
        "callq" => "call",
        "jmpq" => "jmp",
        "pushq" => "push",
        "popq" => "pop",
        other => other,
    };
    let is_number = !operands.is_empty() && operands.bytes().all(|it| it.is_ascii_hexdigit());
    let mut operands = operands.replace("0x0(", "(").replace(",1)", ")");
    if is_number {
        operands.insert_str(0, "0x");
    }
    // `imul $3,%rax,%rax` may be written with two operands, and a shift by one without it.
    let mut parts: Vec<&str> = operands.split(',').collect();
    if mnemonic == "imul" && parts.len() == 3 && parts[1] == parts[2] {
        parts.pop();
    }
    if ["shl", "shr", "sar", "rol", "ror"].iter().any(|it| mnemonic.starts_with(it))
        && parts.len() == 2
        && parts[0] == "$0x1"
    {
        parts.remove(0);
    }
    format!("{mnemonic} {}", parts.join(","))
}

/// The same file, however its path is spelled.
fn is_same_file(one: &str, other: &str) -> bool {
    let name = |path: &str| Path::new(path).file_name().map(ToOwned::to_owned);
    let whole = |path: &str| std::fs::canonicalize(path).ok();
    one == other || name(one) == name(other) && whole(one) == whole(other)
}

/// The line table as it is written down: names of files without directories, and lines, by address. Where code has a
/// section of its own, and before the first row that names a file, `objdump -l` takes the file from elsewhere
/// (binutils 2.40); this does not.
fn written(path: &Path) -> BTreeMap<u64, (String, u32)> {
    let text = run(Command::new("objdump").arg("--dwarf=decodedline").arg(path));
    let text = String::from_utf8_lossy(&text).into_owned();
    let row = |row: &str| {
        let mut words = row.split_whitespace();
        let (file, line, address) = (words.next()?, words.next()?, words.next()?);
        let address = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
        Some((address, (file.to_owned(), line.parse().ok()?)))
    };
    text.lines().filter_map(row).collect()
}

/// Compares a program's functions with what objdump lists: gives how many, and how many instructions.
fn compare(path: &Path, context: &str) -> (usize, usize) {
    let (mut n_functions, mut n_instructions) = (0, 0);
    let written = written(path);
    for (start, n_bytes) in functions(path) {
        let listing = listing(path, start);
        let own = listing.parts.iter().find(|part| part.contains(&start)).unwrap().clone();
        assert_eq!((own.start, own.end), (start, start + n_bytes), "{context}: {:?}", listing.name);
        let dumped = dumped(path, own.start, own.end);
        let listed = listing.instructions.iter().filter(|it| own.contains(&it.at.0));
        let listed: BTreeMap<u64, _> = listed.map(|it| (it.at.0, it)).collect();
        assert!(listed.keys().eq(dumped.keys()), "{context}: {:?} at {start:#x}", listing.name);
        for (at, it) in listed {
            let dumped = &dumped[&at];
            let bytes: String = it.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(bytes, dumped.bytes, "{context} {at:#x}");
            assert_eq!(plain(&it.text), plain(&dumped.text), "{context} {at:#x}");
            n_instructions += 1;
            // Where no line is named, objdump goes on with the one above.
            let Some(line) = it.lines.first() else { continue };
            let (file, number) = dumped.line.as_ref().unwrap();
            let path: &str = line.path.as_deref().unwrap_or_default();
            let is_written = || {
                let row = written.range(..=at).next_back();
                row.is_some_and(|(_, (file, number))| {
                    *number == line.line && path.rsplit('/').next() == Some(&**file)
                })
            };
            let is_same = line.line == *number && (is_same_file(path, file) || is_written());
            assert!(is_same, "{context} {at:#x}: {line:?}, {:?}", dumped.line);
        }
        n_functions += 1;
    }
    (n_functions, n_instructions)
}

/// The lines of an instruction and of the calls around it, as `addr2line -i` has them.
fn chains(path: &Path, addresses: &[u64]) -> BTreeMap<u64, Vec<u32>> {
    let mut command = Command::new("addr2line");
    command.args(["-a", "-i", "-e"]).arg(path);
    command.args(addresses.iter().map(|at| format!("{at:#x}")));
    let text = String::from_utf8_lossy(&run(&mut command)).into_owned();
    let mut found: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    let mut at = 0;
    for row in text.lines() {
        match row.strip_prefix("0x").and_then(|it| u64::from_str_radix(it, 16).ok()) {
            Some(address) => at = address,
            None => {
                let line = row.rsplit_once(':').and_then(|(_, it)| it.split(' ').next());
                let line = line.and_then(|it| it.parse().ok()).unwrap_or(0);
                found.entry(at).or_default().push(line);
            }
        }
    }
    found
}

fn build(dir: &Path, compiler: &str, name: &str, flags: &str) -> std::path::PathBuf {
    let path = dir.join(format!("{name}{flags}").replace([' ', '/'], "_"));
    let mut command = Command::new(compiler);
    command.current_dir(dir).args(flags.split(' ')).arg(source(name)).arg("-o").arg(&path);
    run(&mut command);
    path
}

#[test]
fn listings_are_what_objdump_lists() {
    if !has_tool("objdump") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (compiler, name, flags, least) in [
        ("gcc", "flow.c", "-g -O0", 3),
        ("gcc", "flow.c", "-g -O2", 3),
        ("gcc", "passing.c", "-g -O2", 1),
        ("g++", "sequences.cpp", "-std=c++20 -g -O2", 3),
        ("clang", "shapes.c", "-g -O2", 1),
        ("rustc", "shapes.rs", "-g -O", 10),
    ] {
        if !has_tool(compiler) {
            continue;
        }
        let path = build(dir.path(), compiler, name, flags);
        let context = format!("{compiler} {flags} {name}");
        let (n_functions, n_instructions) = compare(&path, &context);
        eprintln!("{context}: {n_functions} functions, {n_instructions} instructions");
        assert!(n_functions >= least, "{context}: {n_functions} functions");
    }
}

#[test]
fn lines_of_calls_in_line_are_told_outwards() {
    if !has_tool("addr2line") || !has_tool("g++") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = build(dir.path(), "g++", "sequences.cpp", "-std=c++20 -g -O2");
    let mut n_inlined = 0;
    for (start, _) in functions(&path).into_iter().take(10) {
        let listing = listing(&path, start);
        let addresses: Vec<u64> = listing.instructions.iter().map(|it| it.at.0).collect();
        let chains = chains(&path, &addresses);
        for it in listing.instructions.iter().filter(|it| !it.lines.is_empty()) {
            let lines: Vec<u32> = it.lines.iter().map(|line| line.line).collect();
            assert_eq!(lines, chains[&it.at.0], "{:?} {:#x}", listing.name, it.at.0);
            n_inlined += usize::from(lines.len() > 1);
        }
    }
    assert!(n_inlined > 20, "{n_inlined} instructions were put in line");
}

#[test]
fn operands_are_named_as_samples_would_be() {
    let dir = tempfile::tempdir().unwrap();
    let text = "struct cell { struct cell *next; long key; };\n\
        long counter;\n\
        __attribute__((noinline)) long sum(struct cell *p) {\n\
            long n = 0; for (; p; p = p->next) n += p->key; counter = n; return n; }\n\
        int main(void) { struct cell c = {0, 7}; return sum(&c) != 7; }\n";
    let (file, path) = (dir.path().join("cells.c"), dir.path().join("cells"));
    std::fs::write(&file, text).unwrap();
    run(Command::new("gcc").args(["-g", "-O2", "-o"]).arg(&path).arg(&file));
    let bytes = std::fs::read(&path).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let sum = elf.symbols().find(|symbol| symbol.name() == Ok("sum")).unwrap().address();
    let listing = listing(&path, sum);
    assert_eq!(listing.name.as_deref(), Some("sum"));
    let operands = listing.instructions.iter().flat_map(|it| &it.operands);
    let objects: Vec<&str> = operands
        .filter(|it| it.is_written_out)
        .filter_map(|it| it.object.as_ref().ok().map(|object| &*object.descriptor))
        .collect();
    for object in [
        "{structure:cell}.{long_int key}",
        "{structure:cell}.{pointer+structure:cell next}",
        "{long_int counter}",
    ] {
        assert!(objects.contains(&object), "{object}: {objects:?}");
    }
    let names = listing.instructions.iter().filter_map(|it| it.refers_to.as_ref()?.1.as_deref());
    assert!(names.clone().any(|name| name == "counter"), "{:?}", names.collect::<Vec<_>>());
}
