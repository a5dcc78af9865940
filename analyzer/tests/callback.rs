//! What functions are given that the C library calls back, by the type path alone.

use crate::support::program::{Program, builds, has_memory_operand};
use crate::support::session::{Session, with};
use dataspace_proto::sample_line::SampleLine;

/// The answers to the accesses of a function through the registers that arguments are passed in, by build.
fn answers(function: &str, mut check: impl FnMut(&SampleLine, u64, &str)) {
    let flags = [
        "-O2 -g -fPIE -pie",
        "-O1 -g -gdwarf-4 -fno-pie -no-pie",
        "-O3 -g -fPIE -pie -Wl,-z,pack-relative-relocs",
    ];
    for (compiler, flags) in builds(flags) {
        let program = Program::compile(compiler, "callbacks.c", flags);
        let mut session = Session::of_type_path(&program);
        let mut n = 0;
        for access in program.function(function).iter().filter(|it| has_memory_operand(it)) {
            if access.memory_base() == iced_x86::Register::RSP {
                continue;
            }
            let line = session.exact(access.ip(), &with(&[]));
            check(
                &line,
                access.memory_displacement64(),
                &format!("{:#x} {compiler} {flags}", access.ip()),
            );
            n += 1;
        }
        assert!(n >= 1, "{function} {compiler} {flags}");
    }
}

fn member(line: &SampleLine) -> (Option<&str>, Option<&str>) {
    (line.type_name.as_deref(), line.member.as_deref())
}

#[test]
fn what_is_handed_to_the_library_beside_a_function_is_what_that_is_given() {
    answers("by_weight", |line, _, context| {
        assert_eq!(member(line), (Some("item"), Some("weight")), "{context}");
    });
    answers("by_pointed", |line, displacement, context| {
        if displacement == 0 {
            // An element of the array of pointers.
            assert_eq!(line.object.as_deref(), Some("{pointer+structure:item -}"), "{context}");
        } else {
            assert_eq!(member(line), (Some("item"), Some("weight")), "{context}");
        }
    });
    answers("by_key", |line, _, context| {
        assert_eq!(member(line), (Some("item"), Some("key")), "{context}");
    });
    answers("start", |line, _, context| {
        assert_eq!(member(line), (Some("work"), Some("n_done")), "{context}");
    });
}

#[test]
fn a_function_that_others_may_call_is_given_anything() {
    for function in ["of_two", "in_table", "kept", "of_halves", "of_anybody"] {
        answers(function, |line, _, context| {
            let (type_name, _) = member(line);
            let is_named = type_name.is_some_and(|it| ["item", "other", "work"].contains(&it));
            assert!(!is_named, "{function} {type_name:?} {context}");
        });
    }
}
