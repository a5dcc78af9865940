//! What functions give back in memory is known where it is made, by the rules of the psABI.

use crate::support::program::{Program, has_memory_operand, has_tool};
use crate::support::session::{Hand, Session, object, with};
use dataspace_proto::register::Register::{R12, Rax, Rbp, Rbx, Rdi, Rdx, Rsp};

const HEAP: u64 = 0x7000_1234_5000;
const STACK: u64 = 0x7ffd_1234_5000;
const BUILDS: [&str; 3] =
    ["-O2 -gdwarf-5", "-O1 -gdwarf-5 -fno-omit-frame-pointer", "-O3 -gdwarf-5"];

/// All pointers to the same place, whichever register has the one that is used.
fn everywhere() -> Hand {
    let registers = [Rdi, Rax, Rbx, Rbp, Rdx, R12];
    let mut all: Vec<_> = registers.map(|register| (register, HEAP)).to_vec();
    all.push((Rsp, STACK));
    with(&all)
}

/// The program in each build, where its compiler is.
fn programs() -> impl Iterator<Item = (Program, &'static str)> {
    let builds = BUILDS.into_iter().filter(|_| has_tool("g++"));
    builds.map(|flags| (Program::compile("g++", "returned.cpp", flags), flags))
}

#[test]
fn a_result_in_memory_is_what_the_function_is_declared_to_return() {
    for (program, flags) in programs() {
        let mut session = Session::new(&program);
        let access = program.access("_Z4makel", program.truth("Wide.c"));
        let line = session.exact(access.ip(), &everywhere());
        assert_eq!(object(&line), "{structure:Wide}.{double c}", "{flags}");
    }
}

#[test]
fn a_small_result_that_only_lies_in_memory_is_not_what_it_points_at() {
    for (program, flags) in programs() {
        let mut session = Session::new(&program);
        // Stores of eight bytes at offset 0: into the result and into what it holds.
        let names: Vec<String> = program
            .function("_Z3ownl")
            .into_iter()
            .filter(|access| has_memory_operand(access) && access.memory_displacement64() == 0)
            .map(|access| object(&session.exact(access.ip(), &everywhere())).to_owned())
            .collect();
        let owner = "{structure:Owner}.{pointer+structure:Wide held}";
        assert!(names.iter().any(|name| name == owner), "{names:?} {flags}");
    }
}

#[test]
fn what_is_passed_in_two_registers_moves_the_next_argument_on() {
    for (program, flags) in programs() {
        let mut session = Session::new(&program);
        for function in ["_Z9pass_pairPvPc", "_Z10pass_mixedPvd"] {
            let access = program.access(function, program.truth("Wide.b"));
            let line = session.exact(access.ip(), &everywhere());
            assert_eq!(object(&line), "{structure:Wide}.{long_int b}", "{function} {flags}");
        }
    }
}

#[test]
fn what_is_passed_in_another_way_is_never_taken_for_the_next_argument() {
    for (program, flags) in programs() {
        let mut session = Session::new(&program);
        for function in ["_Z11pass_sharedPvP5Other", "_Z11pass_vectorPv"] {
            let access = program.access(function, program.truth("Wide.b"));
            let line = session.exact(access.ip(), &everywhere());
            let right = ["{structure:Wide}.{long_int b}", "unidentified", "undetermined"];
            assert!(right.contains(&object(&line)), "{} {function} {flags}", object(&line));
        }
    }
}
