//! Data that no variable of the debug information covers, and variables that C++ places, held
//! against addresses that the program tells and against its symbols.

use crate::support::program::{Program, builds, has_memory_operand, has_tool};
use crate::support::session::{Hand, Session, TestFiles, object, with};
use dataspace_analyzer::attribution::world::Paths;
use dataspace_analyzer::session::analyzer::Config;
use dataspace_proto::register::Register::{Rax, Rcx, Rdi, Rdx, Rsi};
use dataspace_proto::sample_line::{Evidence, SampleLine};
use iced_x86::Instruction;
use object::{Object as _, ObjectSymbol as _};

const BUILDS: [&str; 3] =
    ["-O2 -gdwarf-5 -fPIE -pie", "-O2 -gdwarf-4 -fno-pie -no-pie", "-O1 -gdwarf-5 -static"];

/// A session in which the address path alone answers.
fn by_address(program: &Program) -> Session {
    let config = Config { paths: Paths::Address, ..Config::default() };
    let mut session = Session::with_config(TestFiles::default(), config);
    for line in &program.maps {
        session.map_line(line, &dataspace_proto::record::FileIdentity::None);
    }
    session
}

/// Where a symbol is in the running program.
fn symbol(program: &Program, name: &str) -> u64 {
    let elf = object::File::parse(&*program.bytes).unwrap();
    let found = elf.symbols().find(|symbol| symbol.name() == Ok(name));
    found.unwrap_or_else(|| panic!("no symbol {name}")).address() + program.bias()
}

fn at(session: &mut Session, program: &Program, address: u64) -> SampleLine {
    let ip = program.only("_Z6behindPKl", has_memory_operand).ip();
    session.exact(ip, &with(&[(Rdi, address)]))
}

#[test]
fn what_the_compiler_made_is_named_for_its_type() {
    if !has_tool("g++") {
        return;
    }
    for flags in BUILDS {
        let program = Program::compile("g++", "objects.cpp", flags);
        let mut session = by_address(&program);
        for (name, expected) in [
            ("_ZTVN2ns6SquareIiEE", "{vtable for ns::Square<int>}"),
            ("_ZTIN2ns6SquareIiEE", "{typeinfo for ns::Square<int>}"),
            ("_ZTSN2ns6SquareIiEE", "{typeinfo name for ns::Square<int>}"),
            ("_ZTTN2ns6SquareIiEE", "{VTT for ns::Square<int>}"),
            ("_ZTI5Shape", "{typeinfo for Shape}"),
            ("_ZGVZ8instancevE4slow", "{guard variable for instance()::slow}"),
        ] {
            let elf = object::File::parse(&*program.bytes).unwrap();
            if elf.symbols().all(|symbol| symbol.name() != Ok(name)) {
                // gcc leaves a VTT out that inlining made useless.
                continue;
            }
            let line = at(&mut session, &program, symbol(&program, name));
            assert_eq!(object(&line), expected, "{flags}");
            assert_eq!(line.evidence, Some(Evidence::Address), "{flags}");
        }
        // As the program itself reaches it.
        let vtable = program.truth("&vtable");
        let line = at(&mut session, &program, vtable);
        assert_eq!(object(&line), "{vtable for ns::Square<int>}", "{flags}");
        let start = symbol(&program, "_ZTVN2ns6SquareIiEE");
        assert_eq!(line.offset, Some(vtable - start), "{flags}");
        // A virtual call reads it through a pointer of no useful type.
        let code = program.function("_Z9call_areaPK5Shape");
        let through = code.iter().filter(|here| has_memory_operand(here)).nth(1).unwrap();
        let mut both = Session::new(&program);
        let line = both.exact(through.ip(), &with(&[(Rax, vtable)]));
        assert_eq!(object(&line), "{vtable for ns::Square<int>}", "{flags}");
    }
}

#[test]
fn statics_of_classes_templates_and_name_spaces_are_qualified() {
    if !has_tool("g++") {
        return;
    }
    for flags in BUILDS {
        let program = Program::compile("g++", "objects.cpp", flags);
        let mut session = by_address(&program);
        for (variable, expected) in [
            ("Shape::n_made", "{int Shape::n_made}"),
            ("ns::Registry<long int>::count", "{long_int ns::Registry<long int>::count}"),
            ("ns::shared", "{int ns::shared}"),
            ("ns::hidden", "{array[8]:int ns::hidden}"),
        ] {
            let line = at(&mut session, &program, program.truth(&format!("&{variable}")));
            assert_eq!(object(&line), expected, "{flags}");
            assert_eq!(line.variable.as_deref(), Some(variable), "{flags}");
        }
        let line = at(&mut session, &program, program.truth("&slow"));
        // Eight bytes are read there: more than the member has.
        assert_eq!(object(&line), "{structure:ns::Slow}", "{flags}");
        assert_eq!(line.variable.as_deref(), Some("slow"), "{flags}");
    }
}

#[test]
fn a_copy_of_a_librarys_variable_has_the_type_that_is_declared() {
    if !has_tool("g++") {
        return;
    }
    // Position independent code may go through a pointer instead.
    let program = Program::compile("g++", "objects.cpp", "-O2 -gdwarf-5 -fno-pie -no-pie");
    let mut session = by_address(&program);
    let line = at(&mut session, &program, program.truth("&environ"));
    assert_eq!(object(&line), "{pointer+pointer+char environ}");
}

#[test]
fn literals_constants_and_slots_are_what_they_are() {
    if !has_tool("g++") {
        return;
    }
    for flags in BUILDS {
        let program = Program::compile("g++", "objects.cpp", flags);
        let mut session = by_address(&program);
        let text = program.truth("&text");
        for into in [0, 5, 18] {
            let line = at(&mut session, &program, text + into);
            assert_eq!(object(&line), "{string_literal -}", "{into} {flags}");
            assert_eq!(line.offset, Some(into), "{flags}");
        }
        let constant = program.only("_Z6scaledd", has_memory_operand);
        // Whatever is asked first, and both again.
        let mut other = by_address(&program);
        for session in [&mut session, &mut other] {
            for _ in 0..2 {
                let line = session.exact(constant.ip(), &Hand::default());
                assert_eq!(object(&line), "{.rodata -}", "{flags}");
                let line = at(session, &program, text + 5);
                assert_eq!(object(&line), "{string_literal -}", "{flags}");
            }
        }
    }
    let program = Program::compile("g++", "objects.cpp", BUILDS[1]);
    let elf = object::File::parse(&*program.bytes).unwrap();
    let table = elf.dynamic_symbol_table().unwrap();
    let mut session = by_address(&program);
    let mut n_slots = 0;
    for (slot, relocation) in elf.dynamic_relocations().unwrap() {
        let object::RelocationTarget::Symbol(idx) = relocation.target() else { continue };
        use object::ObjectSymbolTable as _;
        let name = table.symbol_by_index(idx).unwrap().name().unwrap().to_owned();
        let line = at(&mut session, &program, slot);
        if name == "printf" || name == "fopen" {
            assert_eq!(object(&line), format!("{{GOT {name}}}"));
            n_slots += 1;
        }
    }
    assert!(n_slots >= 1);
}

#[test]
fn what_lies_after_the_end_of_a_symbol_is_not_named_for_it() {
    if !has_tool("g++") {
        return;
    }
    let program = Program::compile("g++", "objects.cpp", BUILDS[2]);
    let elf = object::File::parse(&*program.bytes).unwrap();
    let mut symbols: Vec<(u64, u64)> = elf
        .symbols()
        .filter(|it| it.kind() == object::SymbolKind::Data && it.size() != 0)
        .map(|it| (it.address(), it.address() + it.size()))
        .collect();
    symbols.sort_unstable();
    let is_covered = |at| symbols.iter().any(|(start, end)| (*start..*end).contains(&at));
    let before_gaps =
        symbols.windows(2).filter(|both| both[0].1 < both[1].0 && !is_covered(both[0].1));
    let mut n_gaps = 0;
    for (start, end) in before_gaps.map(|both| both[0]).take(40) {
        // The symbol is asked first, so that its answer is there when the gap is asked.
        let mut session = by_address(&program);
        let inside = at(&mut session, &program, start + program.bias());
        let after = at(&mut session, &program, end + program.bias());
        assert!(inside.object.is_some() && inside.object != after.object, "{end:#x} {after:?}");
        n_gaps += 1;
    }
    assert!(n_gaps > 10, "{n_gaps}");
}

#[test]
fn a_name_without_a_type_yields_to_a_type() {
    if !has_tool("g++") {
        return;
    }
    let program = Program::compile("g++", "objects.cpp", BUILDS[0]);
    let mut session = Session::new(&program);
    let vtable = program.truth("&vtable");
    let line = at(&mut session, &program, vtable);
    assert_eq!(object(&line), "{const+long_int p[]}");
    assert_eq!(line.evidence, Some(Evidence::Type), "a second witness would know a type");
}

#[test]
fn a_variable_that_nothing_names_keeps_its_reason() {
    let program = Program::c("places.c", "-O2 -g");
    let access = program.access("behind", 0).ip();
    let number = program.truth("&number");
    let program = program.changed_by("strip", &[]);
    let mut session = by_address(&program);
    let line = session.exact(access, &with(&[(Rdi, number)]));
    assert_eq!(object(&line), "unidentified");
}

#[test]
fn symbols_name_variables_without_debug_information() {
    let program = Program::c("places.c", "-O2 -g").changed_by("strip", &["-g"]);
    let mut session = Session::new(&program);
    let access = program.access("behind", 0).ip();
    for (variable, expected) in
        [("number", "{- number}"), ("n_calls", "{- n_calls}"), ("file_line", "{- file_line}")]
    {
        let address = program.truth(&format!("&{variable}"));
        let line = session.exact(access, &with(&[(Rdi, address)]));
        assert_eq!(object(&line), expected);
        assert_eq!(line.variable.as_deref(), Some(variable));
    }
    let zeroed = program.truth("&zeroed");
    let line = session.exact(access, &with(&[(Rdi, zeroed + 4095 * 8)]));
    assert_eq!((object(&line), line.offset), ("{- zeroed}", Some(4095 * 8)));
}

#[test]
fn of_arrays_side_by_side_the_address_tells_which_is_counted_down() {
    let mut n_counted = 0;
    for (compiler, flags) in builds(["-O1 -g", "-O2 -g -fno-pie -no-pie"]) {
        let program = Program::compile(compiler, "neighbours.c", flags);
        let arrays =
            [("words", "Word"), ("further_words", "Word"), ("texts", "Text"), ("pairs", "Pair")];
        for (array, kind) in arrays {
            let code = program.function(&format!("{array}_down"));
            let is_counted = |it: &&Instruction| {
                it.memory_size().size() == 2 && it.memory_index() == iced_x86::Register::None
            };
            for access in code.iter().filter(is_counted) {
                n_counted += 1;
                let base = [("RAX", Rax), ("RCX", Rcx), ("RDX", Rdx), ("RDI", Rdi), ("RSI", Rsi)];
                let name = format!("{:?}", access.memory_base());
                let (_, register) = base.into_iter().find(|it| it.0 == name).unwrap();
                for element in 0..8 {
                    // `v` is the only short.
                    let into = if kind == "Text" { 14 } else { 8 };
                    let addr = symbol(&program, array) + 16 * element + into;
                    let value = addr.wrapping_sub(access.memory_displacement64());
                    let mut session = Session::new(&program);
                    let line = session.exact(access.ip(), &with(&[(register, value)]));
                    let context = format!("{array}[{element}] {compiler} {flags} {line:?}");
                    let named = object(&line);
                    assert!(named.starts_with(&format!("{{structure:{kind}}}")), "{context}");
                    assert!(named.ends_with(" v}"), "{context}");
                    assert_eq!(line.variable.as_deref(), Some(array), "{context}");
                }
            }
        }
    }
    assert_ne!(n_counted, 0, "no compiler counts a pointer down");
}
