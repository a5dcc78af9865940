//! Debug information in every form that compilers and dwz write: type units, split units and
//! packages of them, supplementary files.

use crate::support::parts::{build, check, misses, readelf};
use crate::support::program::{Program, compilers, has_tool, run};
use crate::support::session::TestFiles;
use object::{Object as _, ObjectSection as _};
use std::process::Command;

#[test]
fn two_units_in_one_file_are_read() {
    for compiler in compilers() {
        for flags in ["-O2 -gdwarf-5", "-O2 -gdwarf-4", "-O1 -gdwarf-5 -x c++"] {
            let program = build(compiler, flags);
            check(&program, &format!("{compiler} {flags}"));
        }
    }
}

#[test]
fn types_in_units_of_their_own_are_found_by_signature() {
    for compiler in compilers() {
        for (version, mark) in [("-gdwarf-5", "DW_UT_type"), ("-gdwarf-4", ".debug_types")] {
            for language in ["", "-x c++"] {
                let flags = format!("-O2 {version} -fdebug-types-section {language}");
                let program = build(compiler, &flags);
                // clang gives only types of C++ units of their own.
                let has_units = compiler == "gcc" || !language.is_empty();
                assert_eq!(readelf(&program.path).contains(mark), has_units, "{compiler} {flags}");
                check(&program, &format!("{compiler} {flags}"));
            }
        }
    }
}

#[test]
fn split_units_are_read_from_their_files() {
    for compiler in compilers() {
        for flags in [
            "-O2 -gdwarf-5 -gsplit-dwarf",
            "-O2 -gdwarf-4 -gsplit-dwarf",
            "-O1 -gdwarf-5 -gsplit-dwarf -x c++ -fdebug-types-section",
            "-O1 -gdwarf-4 -gsplit-dwarf -x c++ -fdebug-types-section",
        ] {
            let program = build(compiler, flags);
            let context = format!("{compiler} {flags}");
            assert!(program.dir.path().join("far.dwo").exists(), "{context}");
            check(&program, &context);
        }
    }
}

/// Moves the `.dwo` files of a program into a package beside it.
fn pack(program: &Program, tool: &str) {
    let mut command = Command::new(tool);
    command.current_dir(program.dir.path()).args(["-e", "program", "-o", "program.dwp"]);
    run(&mut command);
    for name in ["near", "far"] {
        std::fs::remove_file(program.dir.path().join(format!("{name}.dwo"))).unwrap();
    }
}

#[test]
fn split_units_are_read_from_their_package() {
    // The one of binutils knows only DWARF 4, and that of LLVM 14 never ends over DWARF 5 of gcc's.
    for (tool, compiler, flags) in [
        ("dwp", "gcc", "-O2 -gdwarf-4 -gsplit-dwarf"),
        ("dwp", "gcc", "-O2 -gdwarf-4 -gsplit-dwarf -fdebug-types-section"),
        ("dwp", "clang", "-O1 -gdwarf-4 -gsplit-dwarf -x c++ -fdebug-types-section"),
        ("llvm-dwp", "clang", "-O2 -gdwarf-5 -gsplit-dwarf"),
        ("llvm-dwp", "clang", "-O1 -gdwarf-5 -gsplit-dwarf -x c++ -fdebug-types-section"),
        ("llvm-dwp", "clang", "-O2 -gdwarf-4 -gsplit-dwarf"),
    ] {
        if !has_tool(tool) || !has_tool(compiler) {
            continue;
        }
        let program = build(compiler, flags);
        pack(&program, tool);
        check(&program, &format!("{tool} {compiler} {flags}"));
    }
}

#[test]
fn dwz_shares_entries_within_one_file_and_among_several() {
    if !has_tool("dwz") {
        return;
    }
    for flags in ["-O2 -gdwarf-5", "-O2 -gdwarf-4", "-O1 -gdwarf-5 -x c++"] {
        for (arguments, mark) in [
            (&[][..], "DW_TAG_partial_unit"),
            (&["-m", "common"][..], ".gnu_debugaltlink"),
            (&["-m", "common", "-5"][..], ".debug_sup"),
        ] {
            let mut program = build("gcc", flags);
            let dir = program.dir.path();
            std::fs::copy(&program.path, dir.join("twin")).unwrap();
            let mut command = Command::new("dwz");
            command.current_dir(dir).args(arguments).args(["program", "twin"]);
            run(&mut command);
            let context = format!("dwz {arguments:?} {flags}");
            assert!(readelf(&program.path).contains(mark), "{context}");
            program.bytes = std::fs::read(&program.path).unwrap();
            check(&program, &context);
        }
    }
}

/// Every answer that needs a type, where the files named here are offered for every companion.
fn unknown_without(program: &Program, companions: Vec<Vec<u8>>, context: &str) {
    let files = TestFiles { companions: Some(companions), ..TestFiles::default() };
    let misses = misses(program, files, context);
    assert_eq!(misses.len(), 15, "nothing is named, {context}: {misses:#?}");
    for miss in misses {
        // Symbols have names without debug information, and no types.
        let is_unknown = ["unascertainable", "unidentified", "undetermined", "None", "{-"]
            .iter()
            .any(|word| miss.contains(&format!(": {word} ")));
        assert!(is_unknown, "{miss}");
    }
}

#[test]
fn a_split_unit_that_is_missing_is_unknown() {
    for compiler in compilers() {
        for flags in ["-O2 -gdwarf-5 -gsplit-dwarf", "-O2 -gdwarf-4 -gsplit-dwarf"] {
            let program = build(compiler, flags);
            unknown_without(&program, Vec::new(), &format!("{compiler} {flags}"));
        }
    }
}

#[test]
fn a_split_unit_of_another_build_is_not_taken() {
    for flags in ["-O2 -gdwarf-5 -gsplit-dwarf", "-O2 -gdwarf-4 -gsplit-dwarf"] {
        let program = build("gcc", flags);
        let other = build("gcc", &flags.replace("-O2", "-O0"));
        let read = |name: &str| std::fs::read(other.dir.path().join(name)).unwrap();
        let theirs = vec![read("near.dwo"), read("far.dwo"), read("program")];
        unknown_without(&program, theirs, flags);
        // The right one is found among others.
        let ours = |name: &str| std::fs::read(program.dir.path().join(name)).unwrap();
        let all = vec![read("near.dwo"), read("far.dwo"), ours("near.dwo"), ours("far.dwo")];
        let files = TestFiles { companions: Some(all), ..TestFiles::default() };
        assert_eq!(misses(&program, files, flags), Vec::<String>::new());
    }
}

#[test]
fn a_supplementary_file_of_another_build_is_not_taken() {
    if !has_tool("dwz") {
        return;
    }
    for form in [&["-m", "common"][..], &["-m", "common", "-5"][..]] {
        let program = build("gcc", "-O2 -gdwarf-5");
        let dir = program.dir.path();
        std::fs::copy(&program.path, dir.join("twin")).unwrap();
        run(Command::new("dwz").current_dir(dir).args(form).args(["program", "twin"]));
        // The file itself is no supplementary one, nor is one with another id.
        let bytes = std::fs::read(dir.join("common")).unwrap();
        let id = if form.len() == 2 { ".note.gnu.build-id" } else { ".debug_sup" };
        let elf = object::File::parse(&*bytes).unwrap();
        let (start, len) = elf.section_by_name(id).unwrap().file_range().unwrap();
        let mut foreign = bytes.clone();
        foreign[(start + len - 1) as usize] ^= 1;
        let itself = std::fs::read(&program.path).unwrap();
        for offered in [vec![], vec![itself.clone()], vec![foreign.clone()]] {
            let files = TestFiles { companions: Some(offered), ..TestFiles::default() };
            let misses = misses(&program, files, "without");
            assert!(!misses.is_empty());
            let wrong = |miss: &&String| miss.contains(": {") && !miss.contains(": {-");
            assert_eq!(misses.iter().find(wrong), None, "{form:?}");
        }
        let files =
            TestFiles { companions: Some(vec![itself, foreign, bytes]), ..TestFiles::default() };
        assert_eq!(misses(&program, files, "with"), Vec::<String>::new(), "{form:?}");
    }
}

#[test]
fn split_units_and_old_names_may_be_compressed() {
    let program = build("gcc", "-O2 -gdwarf-5 -gsplit-dwarf");
    for name in ["near.dwo", "far.dwo", "program"] {
        let mut command = Command::new("objcopy");
        command.arg("--compress-debug-sections=zlib-gabi").arg(program.dir.path().join(name));
        run(&mut command);
    }
    check(&program, "compressed");
    let program = build("gcc", "-O2 -gdwarf-5 -fno-asynchronous-unwind-tables");
    let program = program.changed_by("objcopy", &["--compress-debug-sections=zlib-gnu"]);
    assert!(readelf(&program.path).contains(".zdebug_info"));
    check(&program, "zdebug");
}
