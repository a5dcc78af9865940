//! A small program: compiled, run once for what it tells of itself, and decoded.

use dataspace_proto::register::Register;
use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind};
use object::read::elf::ProgramHeader as _;
use object::{Object as _, ObjectSymbol as _};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A compiled program and the truth about it, told by itself.
pub(crate) struct Program {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
    /// What it printed: `struct node.key`, `sizeof struct node`, `&table`.
    truth: HashMap<String, u64>,
    /// Its own `/proc/self/maps`.
    pub(crate) maps: Vec<String>,
}

/// A mapping of one segment, as the kernel makes it.
pub(crate) struct SegmentMapping {
    pub(crate) start: u64,
    pub(crate) len_bytes: u64,
    pub(crate) file_offset: u64,
    pub(crate) is_executable: bool,
}

/// Where the programs' sources are.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// Whether a tool can be run; the test that needs it says so where it cannot.
pub(crate) fn has_tool(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok_and(|out| out.status.success());
    if !found {
        eprintln!("skipped: {tool} is not installed");
    }
    found
}

/// Compilers of C that are here: gcc always is.
pub(crate) fn compilers() -> impl Iterator<Item = &'static str> {
    ["gcc", "clang"].into_iter().filter(|compiler| has_tool(compiler))
}

/// Each of them with each of these flags.
pub(crate) fn builds<const N: usize>(
    flags: [&'static str; N],
) -> impl Iterator<Item = (&'static str, &'static str)> {
    compilers().flat_map(move |compiler| flags.map(|flags| (compiler, flags)))
}

/// Runs a tool that must succeed.
pub(crate) fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

impl Program {
    /// Compiles a C program with gcc and runs it.
    pub(crate) fn c(name: &str, flags: &str) -> Self {
        Self::compile("gcc", name, flags)
    }

    /// Compiles a program and runs it.
    pub(crate) fn compile(compiler: &str, name: &str, flags: &str) -> Self {
        Self::of_units(compiler, &[name], flags)
    }

    /// The same of several sources, each a unit of its own.
    pub(crate) fn of_units(compiler: &str, names: &[&str], flags: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        let mut command = Command::new(compiler);
        let sources = names.iter().map(|name| source(name));
        command.args(flags.split_whitespace()).args(sources).arg("-o").arg(&path);
        // gfortran leaves a file for each module where it is run.
        run(command.current_dir(dir.path()));
        Self::of(dir, path)
    }

    /// Builds a Go program without the optimiser and runs it; `None`, said on standard error, where
    /// Go is not installed.
    pub(crate) fn go(name: &str) -> Option<Self> {
        // `go` has no option `--version`.
        if !Command::new("go").arg("version").output().is_ok_and(|out| out.status.success()) {
            eprintln!("skipped: go is not installed");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        let mut command = Command::new("go");
        command.args(["build", "-ldflags=-compressdwarf=false", "-o"]).arg(&path).arg(source(name));
        run(command.env("GOFLAGS", "").env("GO111MODULE", "off"));
        Some(Self::of(dir, path))
    }

    /// A program that is there already.
    pub(crate) fn of(dir: tempfile::TempDir, path: PathBuf) -> Self {
        let printed = String::from_utf8(run(&mut Command::new(&path))).unwrap();
        let mut truth = HashMap::new();
        let mut maps = Vec::new();
        for line in printed.lines() {
            if let Some(map) = line.strip_prefix("map ") {
                maps.push(map.to_owned());
            } else if let Some((key, value)) = line.rsplit_once(' ') {
                truth.insert(key.to_owned(), value.parse().unwrap());
            }
        }
        let bytes = std::fs::read(&path).unwrap();
        Self { dir, path, bytes, truth, maps }
    }

    /// The same program, with the file changed by `tool` (strip, objcopy) in place.
    pub(crate) fn changed_by(mut self, tool: &str, arguments: &[&str]) -> Self {
        run(Command::new(tool).args(arguments).arg(&self.path));
        self.bytes = std::fs::read(&self.path).unwrap();
        self
    }

    /// A library that this program loaded, and told where its function `told` is.
    pub(crate) fn loaded(&self, library: &Path, told: &str) -> Self {
        let bytes = std::fs::read(library).unwrap();
        let elf = object::File::parse(&*bytes).unwrap();
        let mut symbols = elf.symbols().chain(elf.dynamic_symbols());
        let function = symbols.find(|symbol| symbol.name() == Ok(told)).unwrap();
        let bias = self.truth(&format!("&{told}")) - function.address();
        let mut truth = self.truth.clone();
        // Libraries are linked to begin at 0.
        truth.insert("&__ehdr_start".to_owned(), bias);
        let dir = tempfile::tempdir().unwrap();
        Self { dir, path: library.to_owned(), bytes, truth, maps: self.maps.clone() }
    }

    /// What the program told.
    pub(crate) fn truth(&self, key: &str) -> u64 {
        *self.truth.get(key).unwrap_or_else(|| panic!("the program tells no {key:?}"))
    }

    /// What the loader added to the file's addresses.
    pub(crate) fn bias(&self) -> u64 {
        let elf =
            object::read::elf::ElfFile64::<object::LittleEndian>::parse(&*self.bytes).unwrap();
        let endian = object::LittleEndian;
        let loads = elf.elf_program_headers().iter();
        let first = loads
            .filter(|header| header.p_type(endian) == object::elf::PT_LOAD)
            .map(|header| header.p_vaddr(endian))
            .min();
        self.truth("&__ehdr_start") - first.unwrap()
    }

    /// The mappings that the kernel makes of the segments at exec, before the loader's mprotect.
    pub(crate) fn segment_mappings(&self) -> Vec<SegmentMapping> {
        const PAGE: u64 = 4096;
        let elf =
            object::read::elf::ElfFile64::<object::LittleEndian>::parse(&*self.bytes).unwrap();
        let endian = object::LittleEndian;
        let loads = elf.elf_program_headers().iter();
        loads
            .filter(|header| header.p_type(endian) == object::elf::PT_LOAD)
            .map(|header| {
                let start = header.p_vaddr(endian) / PAGE * PAGE;
                let end = header.p_vaddr(endian) + header.p_filesz(endian);
                SegmentMapping {
                    start: start + self.bias(),
                    len_bytes: end.next_multiple_of(PAGE) - start,
                    file_offset: header.p_offset(endian) / PAGE * PAGE,
                    is_executable: header.p_flags(endian).contains(object::elf::PF_X),
                }
            })
            .collect()
    }

    /// First address and length of the function, in the file's terms.
    pub(crate) fn function_range(&self, name: &str) -> (u64, u64) {
        let elf = object::File::parse(&*self.bytes).unwrap();
        let symbol = elf
            .symbols()
            .chain(elf.dynamic_symbols())
            .find(|symbol| symbol.name() == Ok(name))
            .unwrap_or_else(|| panic!("no symbol {name}"));
        (symbol.address(), symbol.size())
    }

    /// The instructions of a function, at the addresses of the running program.
    pub(crate) fn function(&self, name: &str) -> Vec<Instruction> {
        let (start, len_bytes) = self.function_range(name);
        self.decode(start, len_bytes)
    }

    /// The instructions of a range in the file's terms, at the addresses of the running program.
    pub(crate) fn decode(&self, start: u64, len_bytes: u64) -> Vec<Instruction> {
        let elf =
            object::read::elf::ElfFile64::<object::LittleEndian>::parse(&*self.bytes).unwrap();
        let endian = object::LittleEndian;
        let code = elf.elf_program_headers().iter().find_map(|header| {
            header.data_range(endian, &*self.bytes, start, len_bytes).ok().flatten()
        });
        let code = code.expect("the function lies in a segment");
        let at = start + self.bias();
        Decoder::with_ip(64, code, at, DecoderOptions::NONE).into_iter().collect()
    }

    /// The only instruction of a function that `is_it` picks.
    pub(crate) fn only(&self, name: &str, is_it: impl Fn(&Instruction) -> bool) -> Instruction {
        let code = self.function(name);
        let found: Vec<&Instruction> = code.iter().filter(|here| is_it(here)).collect();
        match found[..] {
            [only] => *only,
            _ => panic!("{} fit in {name}: {:#?}", found.len(), mnemonics(&code)),
        }
    }

    /// The only call in a function.
    pub(crate) fn call_in(&self, name: &str) -> Instruction {
        use iced_x86::FlowControl::{Call, IndirectCall};
        self.only(name, |here| matches!(here.flow_control(), Call | IndirectCall))
    }

    /// The only instruction of a function with a memory operand at `displacement` from a register
    /// other than rsp and rbp.
    pub(crate) fn access(&self, name: &str, displacement: u64) -> Instruction {
        self.only(name, |here| {
            has_memory_operand(here)
                && !here.is_ip_rel_memory_operand()
                && !is_frame_register(here.memory_base())
                && here.memory_displacement64() == displacement
        })
    }

    /// The only instruction of a function with a memory operand at `displacement` from rsp or rbp.
    pub(crate) fn frame_access(&self, name: &str, displacement: i64) -> Instruction {
        self.only(name, |here| {
            has_memory_operand(here)
                && is_frame_register(here.memory_base())
                && here.memory_displacement64().cast_signed() == displacement
        })
    }

    /// The only instruction of a function whose operand holds this address.
    pub(crate) fn static_access(&self, name: &str, address: u64) -> Instruction {
        self.only(name, |here| {
            has_memory_operand(here)
                && here.memory_base().full_register() != iced_x86::Register::RBP
                && here.memory_displacement64() == address
        })
    }
}

fn is_frame_register(register: iced_x86::Register) -> bool {
    matches!(register, iced_x86::Register::RSP | iced_x86::Register::RBP)
}

/// The sampled register that an operand names.
pub(crate) fn sampled_register(register: iced_x86::Register) -> Option<Register> {
    let name = format!("{:?}", register.full_register());
    Register::ALL.into_iter().find(|other| format!("{other:?}").eq_ignore_ascii_case(&name))
}

/// Whether the instruction touches memory by a written-out operand.
pub(crate) fn has_memory_operand(instruction: &Instruction) -> bool {
    let kinds = (0..instruction.op_count()).map(|operand| instruction.op_kind(operand));
    let touches =
        !matches!(instruction.mnemonic(), iced_x86::Mnemonic::Lea | iced_x86::Mnemonic::Nop);
    touches && kinds.into_iter().any(|kind| kind == OpKind::Memory)
}

fn mnemonics(code: &[Instruction]) -> Vec<String> {
    code.iter()
        .map(|here| {
            format!(
                "{:#x} {:?} {:?}+{:?}*{}+{:#x}",
                here.ip(),
                here.mnemonic(),
                here.memory_base(),
                here.memory_index(),
                here.memory_index_scale(),
                here.memory_displacement64()
            )
        })
        .collect()
}
