//! Elements after a header, tables in an array that a loop goes over, and members of a class behind its base.

use crate::support::program::{Program, has_memory_operand, has_tool};
use crate::support::session::{Session, object, with};

/// What the type path says of each access of two bytes in a function; all others in it are to numbers and pointers.
fn of_two_bytes(function: &str, mut check: impl FnMut(Option<&str>, &str)) {
    for compiler in ["g++", "clang++"].into_iter().filter(|it| has_tool(it)) {
        for flags in ["-O1 -g", "-O2 -g", "-O2 -g -gdwarf-4 -fno-tree-vectorize"] {
            let program = Program::compile(compiler, "trailing.cpp", flags);
            let mut session = Session::of_type_path(&program);
            let (mut n, context) = (0, format!("{function} {compiler} {flags}"));
            for access in program.function(function).iter().filter(|it| has_memory_operand(it)) {
                if access.memory_size().size() == 2 {
                    let line = session.exact(access.ip(), &with(&[]));
                    let name = line.object.as_deref().map(|_| object(&line).to_owned());
                    check(name.as_deref(), &format!("{:#x} {context}", access.ip()));
                    n += 1;
                }
            }
            assert!(n > 0, "{context}");
        }
    }
}

#[test]
fn elements_after_a_header_are_of_the_type_that_it_is_made_for() {
    for function in ["of_vector", "of_text", "of_texts"] {
        of_two_bytes(function, |name, context| {
            assert!(name.is_some_and(|name| name.contains("unsigned")), "{name:?} {context}");
        });
    }
}

#[test]
fn of_two_types_neither_is_after_the_header() {
    of_two_bytes("of_table", |name, context| {
        // The code itself says as what it takes them.
        assert!(name.is_none_or(|name| !name.contains("char16")), "{name:?} {context}");
    });
}

#[test]
fn a_loop_over_tables_ends_behind_the_last_one() {
    of_two_bytes("of_both", |name, context| {
        assert!(name.is_some_and(|name| name.contains("short")), "{name:?} {context}");
    });
}

#[test]
fn behind_a_base_is_no_further_object_of_its_type() {
    of_two_bytes("behind_base", |name, context| {
        assert!(name.is_none_or(|name| name.contains("short")), "{name:?} {context}");
    });
}
