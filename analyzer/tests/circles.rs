//! Files of debug information that name each other in circles, claim absurd lengths or are cut: no
//! panic, no loop without an end, no absurd allocation.

use crate::hostile::{ask, attribute, crafted_with};
use crate::support::allocation::bounded;
use crate::support::parts::{self, misses};
use crate::support::program::{Program, has_tool, run};
use crate::support::session::{Session, TestFiles, with};
use dataspace_proto::register::Register;
use object::{Object as _, ObjectSection as _};
use std::process::Command;

/// Answers about a program whose companions are `companions`, whatever they are.
fn ask_with(program: &Program, companions: &[Vec<u8>]) {
    bounded(|| {
        let companions = Some(companions.to_vec());
        let files = TestFiles { companions, ..TestFiles::default() };
        misses(program, files, "hostile");
    });
}

#[test]
fn signatures_that_lead_in_circles_end() {
    // Abbreviations: a type unit; a declaration and a pointer by signature.
    let abbreviations = ".uleb128 50\n.byte 0x41, 1, 0, 0\n\
        .uleb128 51\n.byte 0x13, 0, 0x69, 0x20, 0, 0\n\
        .uleb128 52\n.byte 0x0f, 0, 0x49, 0x20, 0, 0\n";
    let unit = |own: u32, entry: &str| {
        format!(
            ".long 3f - 2f\n2: .value 4\n.long .Labbrev\n.byte 8\n.quad {own}\n.long 24\n\
             .uleb128 50\n{entry}.uleb128 0\n3:\n"
        )
    };
    let cases = [
        // A type that says it is itself.
        unit(7, ".uleb128 51\n.quad 7\n"),
        // Two that say they are each other.
        unit(7, ".uleb128 51\n.quad 8\n") + &unit(8, ".uleb128 51\n.quad 7\n"),
        // A pointer to itself, and one to a type that is not there.
        unit(7, ".uleb128 52\n.quad 7\n"),
        unit(7, ".uleb128 52\n.quad 9\n"),
        // Two units of one signature; a type outside its unit.
        unit(7, ".uleb128 51\n.quad 7\n").repeat(2),
        unit(7, "").replace(".long 24", ".long 0x7fffffff"),
    ];
    for types in cases {
        let section = format!(".section .debug_types, \"\", @progbits\n{types}");
        let program = crafted_with(&[
            ("# ENTRIES", ".Ltype: .uleb128 52\n.quad 7\n"),
            ("# ABBREVIATIONS", abbreviations),
            ("# UNITS", &section),
        ]);
        assert!(ask(program.bytes.clone(), &program, "touch").is_ok(), "{types}");
        attribute(program.bytes.clone(), &program, "touch");
    }
}

#[test]
fn a_skeleton_that_names_itself_is_no_split_unit() {
    let program = parts::build("gcc", "-O2 -gdwarf-5 -gsplit-dwarf");
    let itself = std::fs::read(&program.path).unwrap();
    let dwo = std::fs::read(program.dir.path().join("far.dwo")).unwrap();
    // The same again with the names of sections of split units: the skeleton is its own other half.
    let twin = program.dir.path().join("twin");
    let mut command = Command::new("objcopy");
    for name in ["info", "abbrev", "str", "line"] {
        command.arg("--rename-section").arg(format!(".debug_{name}=.debug_{name}.dwo"));
    }
    run(command.arg(&program.path).arg(&twin));
    let twin = std::fs::read(twin).unwrap();
    ask_with(&program, &[itself.clone(), twin.clone()]);
    // One file for both skeletons, and one that is only there in part.
    ask_with(&program, &[twin, dwo.clone(), itself]);
    for len in (0..dwo.len()).step_by(97) {
        ask_with(&program, &[dwo[..len].to_vec()]);
    }
}

#[test]
fn the_index_of_a_package_may_claim_anything() {
    if !has_tool("dwp") {
        return;
    }
    let program = parts::build("gcc", "-O2 -gdwarf-4 -gsplit-dwarf -fdebug-types-section");
    let mut command = Command::new("dwp");
    command.current_dir(program.dir.path()).args(["-e", "program", "-o", "program.dwp"]);
    run(&mut command);
    let bytes = std::fs::read(program.dir.path().join("program.dwp")).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    for name in [".debug_cu_index", ".debug_tu_index"] {
        let (start, len) = elf.section_by_name(name).unwrap().file_range().unwrap();
        let words = (start..start + len).step_by(4).map(|at| at as usize);
        for at in words {
            for value in [0, 1, 3, 0x7fff_ffff, u32::MAX] {
                let mut damaged = bytes.clone();
                damaged[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
                ask_with(&program, &[damaged]);
            }
        }
    }
}

#[test]
fn a_supplementary_link_to_itself_ends() {
    // The file's own name and its own build-id.
    let link =
        ".section .gnu_debugaltlink, \"\", @progbits\n.asciz \"program\"\n.long 0x04030201\n";
    // A pointer to what is at every offset of the other file: this one.
    let abbreviations = ".uleb128 50\n.byte 0x0f, 0, 0x49\n.uleb128 0x1f20\n.byte 0, 0\n\
        .uleb128 51\n.byte 0x16, 0, 0x49\n.uleb128 0x1f20\n.byte 0, 0\n";
    for code in [50, 51] {
        for offset in ["0", "11", ".Ltype - .Linfo + 4", "0x7fffffff"] {
            let program = crafted_with(&[
                ("# ENTRIES", &format!(".Ltype: .uleb128 {code}\n.long {offset}\n")),
                ("# ABBREVIATIONS", abbreviations),
                ("# UNITS", link),
            ]);
            bounded(|| {
                let companions = Some(vec![program.bytes.clone()]);
                let files = TestFiles { companions, ..TestFiles::default() };
                let mut session = Session::over(&program, files);
                for instruction in program.function("touch") {
                    session.exact(instruction.ip(), &with(&[(Register::Rdi, 64)]));
                }
            });
        }
    }
}
